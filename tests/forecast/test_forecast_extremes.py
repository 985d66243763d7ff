"""Extreme inputs: huge ties, huge and tiny rates, tiny scores, and what must hold for any input."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from forecast_brute import found

import dpselect as dps
from dpselect.forecast import quadrature
from dpselect.sampling import NOISES

MECHANISMS: dict[str, Any] = {
    **{noise: lambda k, epsilon, noise=noise: dps.OneShot(k=k, epsilon=epsilon, noise=noise) for noise in NOISES},
    "canonical": lambda k, epsilon: dps.Canonical(k=k, epsilon=epsilon),
    "joint": lambda k, epsilon: dps.Joint(k=k, epsilon=epsilon),
    "peeling": lambda k, epsilon: dps.Peeling(k=k, epsilon=epsilon),
    "peeling-gumbel": lambda k, epsilon: dps.Peeling(k=k, epsilon=epsilon, noise="gumbel"),
    "gaussian": lambda k, epsilon: dps.Gaussian(k=k, epsilon=epsilon, delta=1e-6, max_items_per_person=1),
    "laplace-vector": lambda k, epsilon: dps.Laplace(k=k, epsilon=epsilon, max_items_per_person=1),
}


def checked(mechanism: dps.Mechanism, scores: Any, rounding: float = 1e-8) -> dict[str, float]:
    """Return the exact figures after checking all that holds for any input."""
    figures, k = found(mechanism, scores), mechanism.k
    assert all(math.isfinite(value) for value in figures.values()), figures
    assert figures["exact"] + figures["inexact"] == pytest.approx(1.0, abs=1e-6)
    assert 0 <= figures["exact"] <= figures.get("great", 1.0) <= figures.get("good", 1.0) <= 1
    if "correct" in figures:
        assert -rounding <= figures["correct"] <= k
        assert k * figures["f1"] == pytest.approx(figures["correct"], abs=1e-6 * k)
        if not mechanism.ordered:
            wrong = k - figures["correct"]
            assert figures["inexact"] * (1 - 1e-6) <= wrong + 1e-9 * k
            assert wrong <= k * figures["inexact"] * (1 + 1e-6) + 1e-9 * k
            assert figures["total_error"] >= 0
    return figures


@pytest.mark.slow
@pytest.mark.parametrize("name", MECHANISMS)
@pytest.mark.parametrize("number", [10**9, 10**304], ids=["1e9", "1e304"])
def test_ties_of_any_size(name: str, number: int) -> None:
    for sizes, k in (([2, number], 2), ([2, number], 5), ([number, 3], 4), ([1, number, number // 7], 3)):
        table = dps.Scores.from_histogram([60, 50, 0][: len(sizes)], sizes)
        for epsilon in (1e-3, 50.0):
            checked(MECHANISMS[name](k, epsilon), table)


@pytest.mark.parametrize("noise", NOISES)
def test_a_large_enough_gap_beats_any_number_of_items(noise: str) -> None:
    """10^304 items are e^700 items: a lead of 760 e-folds beats them, one of 640 does not."""
    table = dps.Scores.from_histogram([1, 0], [1, 10**304])
    right, wrong = (found(dps.OneShot(k=1, epsilon=lead, noise=noise), table) for lead in (760.0, 640.0))
    assert right["inexact"] < 1e-20
    assert right["exact"] == 1.0
    assert wrong["exact"] < 1e-20


@pytest.mark.slow
@pytest.mark.parametrize(
    "scores",
    [
        [5],
        [5, 5, 5],
        [1e-310, 5e-311, 0.0],
        [9 * 10**18, 10**15, 3],
        [1e300, 1.0, 0.5, -1e300],
        [Fraction(1, 3), Fraction(2, 7), 0],
        [-1, -5, -5, -9],
        [0, 0, 0, 0],
    ],
    ids=["one", "tied", "denormal", "integers", "floats", "fractions", "negative", "zeros"],
)
def test_scores_of_any_kind(scores: list[Any]) -> None:
    for name, make in MECHANISMS.items():
        for k, epsilon in product({1, len(scores)}, (1e-6, 30.0)):
            figures = checked(make(k, epsilon), scores)
            if k == len(scores) and name in ("canonical", *NOISES):
                assert figures["exact"] == figures["good"] == 1.0
                assert figures["inexact"] == 0.0


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(16))
def test_no_figure_is_out_of_its_range(seed: int) -> None:
    """Clusters, outliers, ties and any ε."""
    generator = np.random.default_rng(seed)
    size = int(generator.integers(2, 60))
    scores = [
        generator.integers(0, 4, size),
        np.where(generator.random(size) < 0.5, 0, 30) + generator.integers(0, 3, size),
        np.append(np.zeros(size - 1), 50.0) + generator.integers(0, 2, size),
        generator.normal(0, 1e-6, size),
    ][seed % 4]
    k, epsilon = int(generator.integers(1, size + 1)), float(10.0 ** generator.uniform(-5, 1.5))
    for name in generator.choice([*MECHANISMS], 4, replace=False):
        checked(MECHANISMS[name](k, epsilon), scores)


@pytest.mark.slow
@pytest.mark.parametrize("name", MECHANISMS)
def test_every_figure_improves_with_epsilon(name: str) -> None:
    scores = [round(500 / rank**0.7) for rank in range(1, 61)]
    before: dict[str, float] = {}
    for epsilon in (0.01, 0.1, 0.5, 2.0, 10.0):
        figures = checked(MECHANISMS[name](8, epsilon), scores)
        for figure in ("exact", "great", "good", "correct", "score_ratio"):
            assert figures.get(figure, 1.0) >= before.get(figure, 0.0) - 1e-9, (figure, epsilon)
        before = figures


@pytest.mark.parametrize("noise", NOISES)
def test_without_a_budget_items_are_chosen_at_random(noise: str) -> None:
    """The number of right items is that of a random set, and the sum of its scores k times the mean score."""
    scores, k = np.arange(1, 81) ** 2, 12
    figures = found(dps.OneShot(k=k, epsilon=1e-12, noise=noise), scores)
    assert figures["correct"] == pytest.approx(k * k / 80, rel=1e-6)
    assert figures["score_ratio"] == pytest.approx(k * scores.mean() / scores[-k:].sum(), rel=1e-6)
    assert figures["exact"] == pytest.approx(1 / math.comb(80, k), rel=1e-6)


def test_with_a_large_budget_every_answer_is_exact() -> None:
    for make in MECHANISMS.values():
        figures = found(make(3, 45.0), [1000, 800, 600, 300, 100])
        assert figures["exact"] == pytest.approx(1.0, abs=1e-12)


@pytest.mark.long
def test_a_million_distinct_scores() -> None:
    """Far items enter through a grid; what they add is that of a continuous distribution of scores."""
    scores = np.append([20.0, 19.0], np.linspace(0, 10, 1_000_000))
    figures = found(dps.OneShot(k=2, epsilon=2.0, noise="gumbel"), scores)
    weight = np.exp(scores[2:]).sum()
    first, second = math.exp(20), math.exp(19)
    whole = weight + first + second
    wanted = first / whole * second / (whole - first) + second / whole * first / (whole - second)
    assert figures["exact"] == pytest.approx(wanted, rel=1e-7)


def test_panels_are_halved_where_an_integrand_is_not_smooth() -> None:
    """∫ |x| and ∫ √x, and a spike far narrower than the first panels."""
    found_ones = quadrature.integrate(
        lambda x: np.stack([np.abs(x - 0.3), np.sqrt(x)]), np.linspace(0.0, 1.0, 4), tolerance=1e-10
    )
    assert found_ones == pytest.approx([0.29, 2 / 3], rel=1e-8)

    def spike(z: np.ndarray) -> np.ndarray:
        return (-(((z - 0.123) / 1e-7) ** 2))[None]

    ranges = quadrature.support(spike, -500.0, 500.0)
    (area,) = quadrature.integrate_exp(spike, ranges, np.empty(0), 1e-9)
    assert area == pytest.approx(1e-7 * math.sqrt(math.pi), rel=1e-8)


def test_a_grid_stands_for_many_locations() -> None:
    locations = -np.sort(np.random.default_rng(0).uniform(0, 9, 5000))
    points, (weights,) = quadrature.on_grid(locations, np.ones((1, 5000)))
    assert len(points) < 120
    for function in (np.exp, lambda a: 1 / (1 + np.exp(-a)), lambda a: np.exp(-a * a / 2)):
        assert weights @ function(points) == pytest.approx(function(locations).sum(), rel=1e-9)
    assert quadrature.on_grid(locations[:5], np.ones((1, 5)))[0] is not points
