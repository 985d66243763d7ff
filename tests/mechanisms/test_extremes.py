"""Canonical and Joint at the edges: no overflow, no NaN, no warning, and always k distinct items.

Warnings are errors in every test. Counts of draws and seeds are fixed.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

import dpselect as dps
from dpselect.errors import InvalidInput
from dpselect.mechanisms import Canonical, Joint, Mechanism
from dpselect.scores import Scores

EPSILONS = (1e-6, 1e-2, 1.0, 1e3)


def variants(k: int, epsilon: float) -> list[Mechanism]:
    subsets = [
        Canonical(k=k, epsilon=epsilon, gamma=gamma, noise=noise, margin=margin)
        for gamma in (0, 0.25, 0.5, 1)
        for noise in ("exponential", "gumbel")
        for margin in (True, False)
    ]
    sequences = [
        Joint(k=k, epsilon=epsilon, noise=noise, margin=margin)
        for noise in ("exponential", "gumbel")
        for margin in (True, False)
    ]
    return [*subsets, *sequences]


def default_variants(k: int, epsilon: float) -> list[Mechanism]:
    noises = ("exponential", "gumbel")
    return [kind(k=k, epsilon=epsilon, noise=noise) for kind in (Canonical, Joint) for noise in noises]


def assert_k_distinct_items(mechanism: Mechanism, scores: Scores) -> None:
    positions = mechanism.select(scores, seed=1).tolist()
    assert len(positions) == len(set(positions)) == mechanism.k
    assert all(0 <= position < scores.size for position in positions)


def uniform(high: int, size: int) -> Any:
    return np.random.default_rng(0).integers(0, high, size)


SMALL: dict[str, Callable[[], Any]] = {
    "equal": lambda: [5] * 12,
    "distinct": lambda: list(range(12)),
    "negative": lambda: [-3, -1, -1, -20, 0, -7, -7, -7, -100, -2, -4, -5],
    "magnitudes": lambda: [1e-300, 1e300, -1e300, 1.0, 0.0, 1e-9, 1e9, 5e-324, 1e15, -1e-300, 1e300, 1.0],
    "largest floats": lambda: [1.7e308, -1.7e308, 1.6e308, 0.0, 1.0, -1.0, 1e308, -1e308, 2.0, 3.0, 4.0, 5.0],
    "last places": lambda: [1.0 + place * 2.0**-52 for place in range(12)],
    "subnormal": lambda: [place * 5e-324 for place in range(12)],
    "huge integers": lambda: [10**400, 10**399, -(10**400), 3, 2, 1, 0, 10**400, 10**20, 2**63, -(2**63), 7],
    "integers beyond 64 bits": lambda: [10**30 * place for place in range(12)],
    "fractions": lambda: [Fraction(place, 7) for place in range(12)],
    "tied but for one": lambda: [1] + [0] * 11,
    "far ahead": lambda: [10**18] + [0] * 11,
    "far behind": lambda: [0] * 11 + [-(10**18)],
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SMALL)
def test_few_items_with_awkward_scores(name: str) -> None:
    scores = Scores.of(SMALL[name]())
    for k, epsilon in product((1, 6, 12), (1e-6, 1e3)):
        for mechanism in variants(k, epsilon):
            assert_k_distinct_items(mechanism, scores)


@pytest.mark.parametrize("kind", [Canonical, Joint])
def test_extreme_sensitivities(kind: Any) -> None:
    for sensitivity in (dps.Sensitivity(0, 1e-200), dps.Sensitivity(-1e200, 1e200)):
        mechanism = kind(k=2, epsilon=1.0, sensitivity=sensitivity)
        for scores in ([3, 2, 1, 0], [1e300, -1e300, 0.0, 1.0]):
            assert_k_distinct_items(mechanism, Scores.of(scores))


HISTOGRAMS: dict[str, tuple[list[Any], list[int]]] = {
    "equal, 10^8": ([5], [10**8]),
    "equal, 10^18": ([5], [10**18]),
    "two groups, 10^18": ([7, 5], [10**18, 10**18]),
    "two groups, 10^25": ([7, 5], [10**25, 10**25]),
    "leaders and 10^18 zeros": ([*range(1, 60), 0], [1] * 59 + [10**18]),
    "counts of 10^12": ([10**12, 10**12 - 1, 10**11, 5, 0], [3, 10, 1000, 10**6, 10**8]),
}


@pytest.mark.parametrize("name", HISTOGRAMS)
def test_histograms_of_huge_domains(name: str) -> None:
    scores = Scores.from_histogram(*HISTOGRAMS[name])
    for k, epsilon in product((1, 30, 300), EPSILONS):
        for mechanism in default_variants(k, epsilon):
            assert_k_distinct_items(mechanism, scores)


@pytest.mark.long
@pytest.mark.parametrize("name", HISTOGRAMS)
def test_histograms_of_huge_domains_with_every_variant(name: str) -> None:
    scores = Scores.from_histogram(*HISTOGRAMS[name])
    for k, epsilon in product((1, 100, 1000), EPSILONS):
        for mechanism in variants(k, epsilon):
            assert_k_distinct_items(mechanism, scores)


LARGE: dict[str, Callable[[], Scores]] = {
    "equal": lambda: Scores.of(np.full(20_000, 3)),
    "distinct integers": lambda: Scores.of(np.arange(20_000)),
    "distinct floats": lambda: Scores.of(np.random.default_rng(0).random(20_000)),
    "long tail": lambda: Scores.of(np.round(150_000 / np.arange(1, 10**6 + 1) ** 0.7).astype(np.int64)),
    "counts up to 10^12": lambda: Scores.of(uniform(10**12, 100_000)),
    "10^8 items": lambda: Scores.from_histogram(range(10_000), [10**8, *range(1, 10_000)]),
    "10^18 items": lambda: Scores.from_histogram([*range(1, 10_000), 0], [1] * 9_999 + [10**18]),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", LARGE)
def test_ten_thousand_items_out_of_many(name: str) -> None:
    scores = LARGE[name]()
    for mechanism in default_variants(10_000, 1.0):
        assert_k_distinct_items(mechanism, scores)


@pytest.mark.long
@pytest.mark.parametrize("name", LARGE)
def test_ten_thousand_items_out_of_many_with_every_variant(name: str) -> None:
    scores = LARGE[name]()
    for epsilon in EPSILONS:
        for mechanism in variants(10_000, epsilon):
            assert_k_distinct_items(mechanism, scores)


@pytest.mark.slow
@pytest.mark.parametrize("spare", [0, 1], ids=["k=d", "k=d-1"])
@pytest.mark.parametrize(
    "epsilon", [1.0, *(pytest.param(other, marks=pytest.mark.long) for other in (1e-6, 1e-2, 1e3))]
)
def test_all_of_ten_thousand_items(spare: int, epsilon: float) -> None:
    for data in (np.arange(10_000), np.full(10_000, 7), uniform(100, 10_000)):
        scores = Scores.of(data)
        for mechanism in default_variants(10_000 - spare, epsilon):
            assert_k_distinct_items(mechanism, scores)


def test_a_whole_domain_costs_canonical_nothing_but_its_order() -> None:
    """For k = d there is one subset, so only the shuffle reads bits."""

    class Counted:
        secure = False

        def __init__(self) -> None:
            self.drawn = 0
            self._bits = dps.sampling.bit_source(1)

        def integers(self, count: int, width: int) -> Any:
            self.drawn += count
            return self._bits.integers(count, width)

    bits = Counted()
    chosen = Canonical(k=4, epsilon=1.0).draw(Scores.of([4, 0, 2, 2]), bits)
    assert sorted(chosen.positions().tolist()) == [0, 1, 2, 3]
    assert bits.drawn == 4


def test_gamma_must_be_a_number_from_0_to_1() -> None:
    for gamma in (-0.1, 1.1, float("nan"), float("inf"), -float("inf"), "half", None, 1j, [0.5]):
        with pytest.raises(InvalidInput, match="gamma must be"):
            Canonical(k=1, epsilon=1.0, gamma=gamma)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", [Canonical, Joint])
def test_margin_must_be_true_or_false(kind: Any) -> None:
    for margin in (0, 1, None, "yes", 1.0):
        with pytest.raises(InvalidInput, match="margin must be True or False"):
            kind(k=1, epsilon=1.0, margin=margin)
