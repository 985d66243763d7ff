"""Peeling has the law of its rounds, however many of them are drawn together.

The chi-square tests have a fixed seed; a sound sampler fails one for at most 1e-6 of the seeds.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from scipy.stats import chisquare

import dpselect as dps
from dpselect.mechanisms import peeling
from dpselect.sampling import SeededBits
from dpselect.scores import Scores

SMALLEST_P = 1e-7
SCORES = [3, 3, 2, 0]


def p_value(mechanism: dps.Peeling, scores: Any, draws: int) -> float:
    """Return the p-value of sequences drawn one after another from one source of bits, under the stated law."""
    bits = SeededBits(1)
    table = Scores.of(scores)
    drawn = Counter(tuple(mechanism.draw(table, bits).positions().tolist()) for _ in range(draws))
    law = mechanism.law(scores)
    expected = np.array(list(law.values())) * draws
    return float(chisquare([drawn[outcome] for outcome in law], expected * (draws / expected.sum())).pvalue)


@pytest.mark.slow
@pytest.mark.parametrize("noise", ["exponential", "laplace"])
@pytest.mark.parametrize("together", [1, 2, 16])
def test_the_law_is_that_of_the_rounds_however_many_are_drawn_together(
    noise: str, together: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peeling, "_ROUNDS", together)
    assert p_value(dps.Peeling(k=3, epsilon=2.0, noise=noise), SCORES, 600) > SMALLEST_P


@pytest.mark.slow
@pytest.mark.parametrize(("name", "value"), [("_WINDOW", 1), ("_DEPTH", 0.1), ("_BINS", 100)])
def test_the_law_does_not_depend_on_how_items_are_binned(
    name: str, value: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peeling, name, value)
    assert p_value(dps.Peeling(k=3, epsilon=2.0), SCORES, 600) > SMALLEST_P


@pytest.mark.slow
def test_chi_square_rejects_rounds_over_the_wrong_items(monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin: a bin that claims a quarter of its items wins too rarely."""

    def update(left: peeling.ItemsLeft) -> None:
        original(left)
        left.log_size = left.log_size - np.log([4.0, *[1.0] * (len(left.log_size) - 1)])

    original = peeling.ItemsLeft._update
    monkeypatch.setattr(peeling.ItemsLeft, "_update", update)
    assert p_value(dps.Peeling(k=3, epsilon=2.0), SCORES, 600) < SMALLEST_P


def test_leaders_far_ahead_are_taken_first_and_the_rest_stays_random() -> None:
    """Locations relative to the leaders would be rounded by more than the noise."""
    scores = [10**18, 10**17, *([5] * 20)]
    mechanism = dps.Peeling(k=4, epsilon=1.0)
    drawn = {tuple(mechanism.select(scores, seed=seed).tolist()) for seed in range(20)}
    assert {sequence[:2] for sequence in drawn} == {(0, 1)}
    assert len(drawn) > 10


def test_more_rounds_than_are_drawn_together_take_every_item_once() -> None:
    k = 3 * peeling._ROUNDS + 5
    scores = np.arange(k) // 3
    for seed in range(3):
        assert sorted(dps.Peeling(k=k, epsilon=1.0).select(scores, seed=seed).tolist()) == list(range(k))
