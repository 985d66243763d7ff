"""Success against ε, and the ε that is needed."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from forecast_brute import DATA, expected

import dpselect as dps
from dpselect.forecast import gap_limit, smallest_epsilon, success, swap_limit
from dpselect.forecast.chances import chance_of_best
from dpselect.forecast.subsets import Subsets

MECHANISMS: list[dps.Mechanism] = [
    dps.Canonical(k=2, epsilon=1.0),
    dps.Canonical(k=2, epsilon=1.0, noise="gumbel", margin=False),
    dps.Joint(k=2, epsilon=1.0),
    dps.OneShot(k=2, epsilon=1.0, noise="logistic"),
    dps.OneShot(k=2, epsilon=1.0, noise="gumbel", delta=0.01),
    dps.Peeling(k=2, epsilon=1.0),
    dps.Peeling(k=2, epsilon=1.0, delta=0.01),
    dps.Peeling(k=2, epsilon=1.0, noise="gumbel"),
]
names = [f"{mechanism.name}-{number}" for number, mechanism in enumerate(MECHANISMS)]
COUNTS = [round(4000 / rank**0.6) for rank in range(1, 301)]


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=names)
@pytest.mark.parametrize("scores", DATA)
def test_a_curve_is_the_law_at_every_epsilon_and_rises(mechanism: dps.Mechanism, scores: list[float]) -> None:
    curve = success(np.array(scores), mechanism)
    epsilons = [0.1, 0.7, 3.0, 20.0]
    chances = curve.chances(epsilons)
    assert chances == sorted(chances)
    assert chances[-1] <= curve.limit + 1e-12
    for epsilon, chance in zip(epsilons, chances, strict=True):
        law = expected(replace(mechanism, epsilon=epsilon), scores)
        assert chance == pytest.approx(law["exact"], rel=1e-8)
        assert curve.chance(epsilon) == pytest.approx(chance, rel=1e-10)


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=names)
@pytest.mark.parametrize("accuracy", [0.3, 0.9, 0.999])
def test_the_smallest_epsilon_gives_that_accuracy_and_less_does_not(mechanism: dps.Mechanism, accuracy: float) -> None:
    scores = [9.0, 7.0, 4.0, 4.0, 1.0, 0.0]
    epsilon = smallest_epsilon(scores, mechanism, accuracy)
    at, below = (
        expected(replace(mechanism, epsilon=value), scores)["exact"] for value in (epsilon * (1 + 1e-9), 0.99 * epsilon)
    )
    assert below < accuracy <= at
    assert at == pytest.approx(accuracy, abs=1e-6)


@pytest.mark.parametrize("noise", ["gumbel", "exponential"])
def test_chances_stay_right_where_sizes_leave_the_range_of_floats(noise: str) -> None:
    """A class of e^2000 outcomes at weight e^-2000 is like one outcome beside another, up to half the failures."""
    found = chance_of_best(0.0, np.array([2000.0]), np.array([2000.0]), noise)
    assert found == pytest.approx(0.5 if noise == "gumbel" else 1 - np.exp(-1.0), rel=1e-9)
    assert chance_of_best(5000.0, np.array([2000.0]), np.array([1.0]), noise) == pytest.approx(1.0, rel=1e-12)
    assert chance_of_best(0.0, np.array([690.0]), np.array([0.5]), noise) == pytest.approx(np.exp(-689.5), rel=1e-9)
    assert chance_of_best(0.0, np.array([]), np.array([]), noise) == pytest.approx(1.0, rel=1e-12)


def test_the_table_of_the_manual() -> None:
    """Mathematics, section 3, on data that anyone can generate: Zipf's law with s = 0.04."""
    shares = np.arange(1, 10_001) ** -0.04
    counts = np.round(1.5e8 * shares / shares.sum()).astype(np.int64)
    published = dps.Canonical(k=1000, epsilon=1.0, margin=False, noise="gumbel")
    assert smallest_epsilon(counts, replace(published, margin=True), 0.99) == pytest.approx(5.55, abs=0.005)
    assert smallest_epsilon(counts, published, 0.99) == pytest.approx(10.6, abs=0.05)


def test_no_mechanism_undercuts_the_limit() -> None:
    """The limit is a theorem for pure mechanisms; the swap limit lies above it."""
    for k, accuracy in itertools.product((1, 5, 20), (0.6, 0.99)):
        for kind in (dps.Canonical, dps.OneShot, dps.Joint, dps.Peeling):
            mechanism = kind(k=k, epsilon=1.0)
            limit = gap_limit(COUNTS, mechanism, accuracy)
            assert 0 < limit <= smallest_epsilon(COUNTS, mechanism, accuracy) * (1 + 1e-9)
        assert gap_limit(COUNTS, dps.Canonical(k=k, epsilon=1.0), accuracy) <= swap_limit(
            COUNTS, dps.Canonical(k=k, epsilon=1.0), accuracy
        )


def test_two_items_reach_the_limit_exactly() -> None:
    """Permute-and-flip on two items fails with ½ e^{−ε g}, which is the limit itself."""
    mechanism = dps.Canonical(k=1, epsilon=1.0, gamma=1.0)
    wanted = gap_limit([50, 0], mechanism, 0.99)
    assert wanted == pytest.approx(math.log(50) / 50)
    assert smallest_epsilon([50, 0], mechanism, 0.99) == pytest.approx(wanted, rel=1e-9)
    assert swap_limit([50, 0], mechanism, 0.99) == pytest.approx(wanted, rel=1e-9)


def test_where_any_epsilon_or_none_will_do() -> None:
    assert smallest_epsilon([3, 2, 1], dps.Canonical(k=3, epsilon=1.0), 0.99) == 0
    assert smallest_epsilon([2, 2, 2], dps.OneShot(k=1, epsilon=1.0), 0.99) == 0
    assert smallest_epsilon([5, 0], dps.Canonical(k=1, epsilon=1.0), 0.4) == 0
    # γ = 1 sees nothing but the worst item held, so that {3, 3} is as good to it as {5, 3}.
    assert smallest_epsilon([5, 3, 3], dps.Canonical(k=2, epsilon=1.0, gamma=1.0), 0.7) == math.inf
    assert smallest_epsilon([5, 3, 3], dps.Canonical(k=2, epsilon=1.0), 0.7) < 2


def test_the_curve_of_many_epsilons_is_that_of_each() -> None:
    curve = success(COUNTS, dps.Canonical(k=20, epsilon=1.0))
    epsilons = np.geomspace(0.003, 3.0, 30).tolist()
    together = curve.chances(epsilons[::-1])[::-1]
    assert together == pytest.approx([curve.chance(epsilon) for epsilon in epsilons], rel=1e-9)


@pytest.mark.parametrize("accuracy", [0.0, 1.0, -0.5, 1.5, math.nan, math.inf, "much"])
def test_an_accuracy_that_is_no_probability_is_refused(accuracy: Any) -> None:
    for call in (smallest_epsilon, gap_limit, swap_limit):
        with pytest.raises(dps.InvalidInput, match="accuracy"):
            call([3, 2, 1], dps.Canonical(k=1, epsilon=1.0), accuracy)


def test_a_mechanism_without_an_exact_curve_is_refused() -> None:
    with pytest.raises(dps.InvalidInput, match="no exact curve"):
        success([3, 2, 1], dps.Gamma(k=1, epsilon=1.0))
    with pytest.raises(dps.InvalidInput, match="k: 4"):
        success([3, 2, 1], dps.Canonical(k=4, epsilon=1.0))


@pytest.mark.parametrize(("accuracy", "needed"), [(0.2, 0.0), (0.5, 0.0), (0.75, math.log(2) / 7)])
def test_the_swap_limit_is_0_where_any_epsilon_will_do(accuracy: float, needed: float) -> None:
    found = swap_limit([10, 3], dps.Canonical(k=1, epsilon=1.0), accuracy)
    assert found == pytest.approx(needed, abs=1e-9)


@pytest.mark.parametrize("gamma", [0.5, 1.0])
@pytest.mark.parametrize("noise", ["exponential", "gumbel"])
@pytest.mark.parametrize("margin", [False, True])
def test_one_epsilon_alone_has_the_chance_that_it_has_among_several(gamma: float, noise: str, margin: bool) -> None:
    mechanism = dps.Canonical(k=3, epsilon=1.0, gamma=gamma, noise=noise, margin=margin)
    epsilons = [0.03, 0.4, 7.0]
    for scores in ([9, 8, 7, 7, 4, 4, 1], [90, 80, 70, 40, 40, 10], [5, 5, 5, 5, 5]):
        subsets = Subsets.of(mechanism, dps.Scores.of(scores))
        together = subsets.chances(epsilons, noise)
        assert [subsets.chance(epsilon, noise) for epsilon in epsilons] == pytest.approx(together, rel=1e-12)
