"""Discovery: its threshold covers every mix of own and shared items, and its draws follow its law exactly."""

from __future__ import annotations

import json
from collections import Counter
from fractions import Fraction
from math import isqrt
from typing import Any

import numpy as np
import pytest
from scipy.special import ndtr, ndtri
from scipy.stats import binom, chisquare

import dpselect as dps
from dpselect.mechanisms.discovery import LARGEST_THRESHOLD, RARELY, Discovery
from dpselect.sampling import SeededBits
from dpselect.scores import Scores
from dpselect.verify import check_privacy, check_sampler
from dpselect.verify.broken.discovery import TWINS
from dpselect.verify.discovery import LISTINGS, SAMPLES
from dpselect.verify.registry import reject


def discovery(**changes: Any) -> Discovery:
    return Discovery(**{"epsilon": 1.0, "delta": 1e-7, "max_items_per_person": 20, **changes})


@pytest.mark.parametrize(("mechanism", "people"), LISTINGS, ids=lambda each: str(each))
def test_the_guarantee_holds_over_all_neighbours_with_any_mix_of_own_and_shared_items(
    mechanism: Any, people: Any
) -> None:
    check = check_privacy(mechanism, people)
    assert check.passed
    assert check.divergence > 0.49 * mechanism.delta, "own items alone use half of delta"


@pytest.mark.parametrize("twin", TWINS, ids=lambda twin: twin.name)
def test_broken_twins_are_rejected(twin: Any) -> None:
    assert reject(twin).passed


@pytest.mark.parametrize(("mechanism", "weights"), SAMPLES)
def test_draws_follow_the_law(mechanism: Any, weights: Any) -> None:
    assert check_sampler(mechanism, weights, draws=1500).passed


@pytest.mark.parametrize("epsilon", [0.05, 0.5, 1.0, 5.0, 40.0])
@pytest.mark.parametrize("delta", [0.9, 0.05, 1e-6, 1e-12])
@pytest.mark.parametrize("most", [1, 2, 7, 60])
def test_the_threshold_is_the_largest_over_all_numbers_of_own_items(epsilon: float, delta: float, most: int) -> None:
    """The proof says that t = 1 or t = m is the worst; here every t is computed."""
    mechanism = Discovery(epsilon=epsilon, delta=delta, max_items_per_person=most)
    tails = [-np.expm1(np.log1p(-delta / 2) / t) for t in range(1, most + 1)]
    needed = max(1 / np.sqrt(t) - mechanism.sigma * ndtri(tail) for t, tail in enumerate(tails, start=1))
    assert needed - 1e-9 <= mechanism.threshold / mechanism.units <= needed + 1 / mechanism.units + 1e-9


@pytest.mark.parametrize("most", [1, 2, 3, 20, 1000, 123_457])
def test_weights_are_rounded_down_and_lose_less_than_a_percent(most: int) -> None:
    mechanism = discovery(max_items_per_person=most)
    for items in {1, 2, 3, most // 2 or 1, most} & set(range(1, most + 1)):
        weight = mechanism.weight(items)
        assert weight**2 * items <= mechanism.units**2 < (weight + 1) ** 2 * items
        assert weight >= (1 - 1 / 100) * mechanism.units / items**0.5
    assert mechanism.units & (mechanism.units - 1) == 0
    assert mechanism.units >= isqrt(128**2 * most)


def test_few_people_are_listed_as_rarely_as_stated() -> None:
    mechanism = discovery(at_least=100)
    assert mechanism.threshold > discovery().threshold
    chance = ndtr((99 * mechanism.units - mechanism.threshold) / (mechanism.sigma * mechanism.units))
    assert 0.99 * RARELY < chance <= RARELY
    assert discovery(at_least=2).threshold == discovery().threshold, "the threshold is higher than that anyway"


def test_the_number_of_people_is_not_looked_at() -> None:
    """Equal weights are listed equally often, whoever they are from."""
    mechanism = discovery(at_least=50)
    assert mechanism.probabilities(np.array([mechanism.threshold]))[0] == 0.5


def counts(mechanism: Discovery, values: list[int], sizes: list[int], draws: int) -> Counter[tuple[int, ...]]:
    weights, bits = Scores.from_histogram(values, sizes), SeededBits(7)
    drawn = (np.bincount(mechanism.draw(weights, bits).groups, minlength=len(values)) for _ in range(draws))
    return Counter(tuple(each.tolist()) for each in drawn)


@pytest.mark.slow
@pytest.mark.parametrize(("shift", "agrees"), [(0.0, True), (0.05, False)])
def test_how_many_of_a_large_group_are_listed_is_binomial(shift: float, agrees: bool) -> None:
    """200 draws of 100,000 ties, in 8 equally likely cells: p below 1e-6 by chance for one seed in a million.

    A threshold that is off by a twentieth of a standard deviation is told apart.
    """
    mechanism, size = discovery(max_items_per_person=1), 100_000
    weight = mechanism.threshold - round(1.5 * mechanism.sigma * mechanism.units)
    chance = float(ndtr((weight - mechanism.threshold) / (mechanism.sigma * mechanism.units) + shift))
    drawn = [count for (count,), times in counts(mechanism, [weight], [size], 200).items() for _ in range(times)]
    edges = binom(size, chance).ppf(np.arange(1, 8) / 8)
    cells = np.bincount(np.searchsorted(edges, drawn), minlength=8)
    expected = np.diff(np.concatenate([[0], binom(size, chance).cdf(edges - 1), [1]]))
    assert (chisquare(cells, 200 * expected).pvalue > 1e-6) == agrees


def test_members_of_a_group_are_listed_equally_often() -> None:
    """8 cells of 4000 items at probability ½: each deviates by 5 standard deviations with probability 6e-7."""
    mechanism = discovery()
    weights = Scores.from_histogram([mechanism.threshold], [4000])
    listed = mechanism.draw(weights, SeededBits(3)).indexes
    assert len(set(listed.tolist())) == len(listed)
    cells = np.bincount(listed // 500, minlength=8)
    assert (abs(cells - len(listed) / 8) < 5 * np.sqrt(500 / 4)).all()


def test_the_order_of_the_draw_says_nothing_about_weights() -> None:
    """The heaviest of 20 certain items comes first in 1 of 20 draws; 300 draws: 40 or more with probability 7e-8."""
    mechanism = discovery()
    weights = [mechanism.threshold * (20 + place) for place in range(20)]
    first = [int(mechanism.select(weights, seed=seed)[0]) for seed in range(300)]
    assert max(Counter(first).values()) < 40


def test_absent_items_are_never_listed_and_nothing_is_listed_of_nothing() -> None:
    mechanism = Discovery(epsilon=1.0, delta=0.99, max_items_per_person=1)
    listed = [mechanism.select([0, 5 * mechanism.units, 0], seed=seed).tolist() for seed in range(50)]
    assert sorted({place for each in listed for place in each}) == [1]
    assert mechanism.select([], seed=1).tolist() == []
    assert mechanism.law([]) == {frozenset(): 1.0}


def test_all_is_stated_before_any_data() -> None:
    mechanism = discovery(at_least=5)
    assert mechanism.guarantee == dps.Guarantee(1.0, 1e-7)
    described = json.loads(json.dumps(mechanism.describe()))
    assert described["name"] == "discovery"
    assert described["threshold"] == mechanism.threshold / mechanism.units
    assert {"epsilon", "delta", "max_items_per_person", "at_least", "sigma"} < described.keys()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"epsilon": 0}, "epsilon must be a positive"),
        ({"epsilon": 1e-30, "delta": 1e-30}, "epsilon must be larger"),
        ({"delta": 0.0}, "delta must be above 0"),
        ({"delta": 1.0}, "delta must be above 0 and below 1"),
        ({"delta": 5e-324}, "delta must be larger"),
        ({"max_items_per_person": 0}, "max_items_per_person must be a whole number"),
        ({"max_items_per_person": 10**30}, "max_items_per_person must be smaller"),
        ({"at_least": 0}, "at_least must be a whole number"),
        ({"at_least": LARGEST_THRESHOLD}, "at_least must be smaller"),
    ],
)
def test_bad_arguments_are_refused_by_name(changes: Any, said: str) -> None:
    with pytest.raises(dps.InvalidInput, match=said):
        discovery(**changes)


def test_extreme_arguments_have_a_finite_threshold() -> None:
    for changes in ({"epsilon": 1e-9}, {"epsilon": 1e9}, {"delta": 1e-300}, {"max_items_per_person": 10**9}):
        mechanism = discovery(**changes)
        assert Fraction(mechanism.sigma) > 0
        assert mechanism.units < mechanism.threshold < LARGEST_THRESHOLD
