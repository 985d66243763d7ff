"""The chance that normal noise leaves every rank right."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import dpselect as dps
from dpselect._numbers import exact_fraction as exact
from dpselect.forecast import in_order
from dpselect.forecast.curves import exact_chance, noisy_groups
from dpselect.forecast.in_order import chance_in_order
from dpselect.forecast.noisy import NoisyGroups
from dpselect.sampling.noise import NORMAL

TABLES: list[tuple[list[float], int]] = [
    ([9, 7, 4, 2, 1], 3),
    ([9, 7, 7, 2, 1], 3),
    ([9, 7, 7, 7, 1], 3),
    ([9, 9, 9, 7, 7, 1], 3),
    ([9, 9, 7, 7, 1], 4),
    ([5, 5, 5, 5], 2),
    ([9, 7, 4], 3),
    ([4, 9, 1, 1, 1, 1], 1),
    ([1e6, 5, 4, 3.5, 0], 3),
]


def gaussian(k: int, epsilon: float) -> dps.Gaussian:
    return dps.Gaussian(k=k, epsilon=epsilon, delta=1e-3, max_items_per_person=2)


def chance(scores: Any, mechanism: dps.Gaussian) -> float:
    found = exact_chance(dps.Scores.of(scores), mechanism)
    assert isinstance(found, float)
    return found


@pytest.mark.parametrize(("scores", "k"), TABLES)
@pytest.mark.parametrize("epsilon", [0.05, 1.0, 4.0])
def test_it_is_the_one_of_the_law(scores: list[float], k: int, epsilon: float) -> None:
    mechanism, best = gaussian(k, epsilon), sorted(scores, reverse=True)[:k]
    wanted = sum(p for answer, p in mechanism.law(scores).items() if [scores[i] for i in answer] == best)
    assert chance(scores, mechanism) == pytest.approx(wanted, rel=1e-9)


@pytest.mark.parametrize("size", [2, 9, 300, 10**4, 10**6, 10**9])
@pytest.mark.parametrize("k", [1, 8, 9, 100, 300, 10**4, 10**8])
def test_ties_at_the_top_are_in_order_anyway(size: int, k: int) -> None:
    """With all items tied any answer is right; and any choice of leaders far ahead of others is."""
    if k <= size:
        assert chance(dps.Scores.from_histogram([3], [size]), gaussian(k, 0.2)) == pytest.approx(1.0, abs=1e-10)
        far_ahead = dps.Scores.from_histogram([10**7, 3, 2], [size, 10**4, 10])
        assert chance(far_ahead, gaussian(k, 0.2)) == pytest.approx(1.0, abs=1e-10)
    far_behind = dps.Scores.from_histogram([3 * 10**7, 2 * 10**7, 0], [1, 2, size])
    if 3 < k <= size + 3:
        assert chance(far_behind, gaussian(k, 0.2)) == pytest.approx(1.0, abs=1e-10)


@pytest.mark.parametrize(("size", "k"), [(30, 12), (30, 30), (12, 9), (3000, 12), (50, 40)])
@pytest.mark.parametrize("gap", [0.5, 2.0, 5.0])
def test_tied_items_taken_at_once_are_those_taken_one_by_one(
    size: int, k: int, gap: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    mechanism = gaussian(k + 2, 0.2)
    unit = gap * mechanism.sigma
    table = dps.Scores.from_histogram([9 * unit, 4 * unit, 0.0, -unit, -2 * unit], [1, 1, size, 40, 400])
    at_once = chance(table, mechanism)
    monkeypatch.setattr(in_order, "_ONE_BY_ONE", 100)
    assert at_once == pytest.approx(chance(table, mechanism), rel=1e-9, abs=1e-13)


@pytest.mark.parametrize("k", [1, 4, 25, 100])
@pytest.mark.parametrize("gap", [6.0, 7.0, 8.0])
def test_far_apart_each_pair_of_neighbours_decides_for_itself(k: int, gap: float) -> None:
    """P[some pair is wrong] is the sum over neighbours, up to two at a time; gaps are in deviations."""
    mechanism = gaussian(k, 1.0)
    scores = gap * mechanism.sigma * np.arange(k + 1)
    wrong = float(NORMAL.survival(np.array(gap / np.sqrt(2))))
    assert 1 - chance(scores, mechanism) == pytest.approx(k * wrong, rel=1e-3, abs=2e-13)


def test_a_finer_grid_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = np.random.default_rng(5)
    tables = [
        (np.append(np.round(generator.random(400) * 30), np.arange(30.0, 400.0, 25.0)), 12),
        (np.round(generator.pareto(1.0, 3000) * 50), 10),
        (np.repeat([90.0, 80.0, 70.0, 10.0], [3, 20, 900, 40]), 60),
    ]
    cases = [(scores, gaussian(k, epsilon)) for scores, k in tables for epsilon in (0.05, 0.4, 3.0)]
    found = [chance(*case) for case in cases]
    assert sum(1e-9 < each < 1 - 1e-6 for each in found) > 3
    monkeypatch.setattr(in_order, "_STEP", 0.02)
    assert [chance(*case) for case in cases] == pytest.approx(found, rel=1e-9, abs=1e-12)
    # A coarser one does.
    monkeypatch.setattr(in_order, "_STEP", 0.3)
    assert [chance(*case) for case in cases] != pytest.approx(found, rel=1e-9, abs=1e-12)


def test_what_next_to_never_happens_is_0_and_what_is_too_much_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    assert chance(np.arange(1_000.0), gaussian(200, 0.01)) == 0
    assert chance(np.arange(12_000.0), gaussian(6_000, 1e-3)) == 0
    assert dps.forecast.smallest_epsilon(np.arange(12_000.0), gaussian(200, 1.0), 0.4) > 0.1
    counts = np.arange(60.0) ** 2
    monkeypatch.setattr(in_order, "MOST", 40)
    assert chance_in_order(noisy_groups(dps.Scores.of(counts), 50, 1 / exact(gaussian(50, 1.0).sigma), NORMAL)) is None
    assert dps.forecast.forecast(counts, gaussian(50, 1.0), draws=0).exact is None
    assert dps.forecast.forecast(counts, gaussian(40, 1.0), draws=0).exact is not None
    with pytest.raises(dps.InvalidInput, match="k: 50 was given; less is needed"):
        dps.forecast.smallest_epsilon(counts, gaussian(50, 1.0), 0.9)


def test_the_curve_grows_and_is_solved_for() -> None:
    counts, template = [round(900 / rank) for rank in range(1, 200)], gaussian(5, 1.0)
    curve = dps.forecast.success(counts, template)
    chances = curve.chances(np.geomspace(0.01, 5, 25).tolist())
    assert all(low < high + 1e-12 for low, high in pairwise(chances))
    needed = dps.forecast.smallest_epsilon(counts, template, 0.95)
    assert chance(counts, gaussian(5, needed)) == pytest.approx(0.95, abs=1e-8)
    assert needed == pytest.approx(curve.smallest_epsilon(0.95), rel=1e-8)
    assert dps.forecast.smallest_epsilon([3, 3, 3], gaussian(2, 1.0), 0.9) == 0


def test_it_stands_beside_others_where_it_is_known_how_many_items_one_person_has() -> None:
    counts = [round(9000 / rank) for rank in range(1, 200)]
    compared = dps.forecast.compare(counts, 5, delta=1e-6, ordered=True, max_items_per_person=3, draws=0)
    [need] = [need for need in compared.needs if need.label == "gaussian"]
    assert need.epsilon == dps.forecast.smallest_epsilon(
        counts, dps.Gaussian(k=5, epsilon=1.0, delta=1e-6, max_items_per_person=3), 0.99
    )
    planned = dps.forecast.plan(5, gap=60, delta=1e-6, ordered=True, max_items_per_person=3)
    assert "gaussian" in [need.label for need in planned.comparison.needs]
    for wrong in ({"ordered": True}, {"delta": 1e-6}):
        with pytest.raises(dps.InvalidInput, match="max_items_per_person"):
            dps.forecast.compare(counts, 5, max_items_per_person=3, **wrong)


@pytest.mark.parametrize("gap", [0.0, 0.02, 0.1, 0.5, 2.0])
@pytest.mark.parametrize("k", [2, 3, 6, 12])
def test_no_order_is_likelier_than_its_bound(gap: float, k: int) -> None:
    """And of tied items, whose order has a chance of 1/k!, the bound tells all."""
    locations = gap * np.arange(k, 0.0, -1.0) ** 1.5
    found = chance_in_order(NoisyGroups(locations - locations[-1], np.ones(k), k, NORMAL)) if gap else None
    bound = in_order._log_most(locations)
    assert bound <= 0
    if found is None:
        assert bound == pytest.approx(-math.lgamma(k + 1))
    elif found:
        assert math.log(found) <= bound + 1e-9
        # Without the spread of locations it would be none.
        if gap * k > 1:
            assert math.log(found) > -math.lgamma(k + 1)


def test_an_order_that_is_next_to_impossible_is_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred close items: no integral is computed; with items farther apart one is."""
    monkeypatch.setattr(in_order.Chain, "last", lambda *_: 0.25)
    for gap, wanted in ((0.05, 0.0), (1.0, 0.25)):
        locations = gap * np.arange(99.0, -1.0, -1.0)
        assert chance_in_order(NoisyGroups(locations, np.ones(100), 100, NORMAL)) == wanted
