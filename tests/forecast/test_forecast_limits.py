"""Exact figures where they are known: noise that drowns everything draws items at random, and near ties are ties."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from forecast_brute import expected

import dpselect as dps
from dpselect.forecast import mistake_reach
from dpselect.forecast.figures import exact_figures
from dpselect.sampling import NOISES

SIZE, K = 20_000, 50
SCORES = np.round(3e5 / np.arange(1, SIZE + 1) ** 0.6, 3)


def lowest_at_random() -> float:
    """How far the lowest of K random items is below rank K: all are among the first j with `Π (j − i)/(n − i)`."""
    drawn = np.arange(K)
    ranks = np.arange(K, SIZE)
    within = np.exp(np.log((ranks[:, None] - drawn) / (SIZE - drawn)).sum(axis=1))
    return float(-np.diff(SCORES[K - 1 :]) @ (1 - within))


@pytest.mark.parametrize("noise", [*NOISES])
def test_without_a_budget_items_are_chosen_at_random(noise: str) -> None:
    found = exact_figures(dps.Scores.of(SCORES), dps.OneShot(k=K, epsilon=1e-10, noise=noise))
    assert found["correct"] == pytest.approx(K * K / SIZE, rel=1e-6)
    assert found["score_ratio"] == pytest.approx(K * SCORES.mean() / SCORES[:K].sum(), rel=1e-6)
    assert found["relative_error"] == pytest.approx(lowest_at_random(), rel=1e-6)


def test_without_a_budget_ranks_are_drawn_at_random() -> None:
    found = exact_figures(dps.Scores.of(SCORES), dps.Peeling(k=K, epsilon=1e-10, noise="gumbel"))
    distances = sum(float(np.abs(SCORES - score).mean()) for score in SCORES[:K])
    assert found["total_error"] == pytest.approx(distances, rel=1e-6)
    assert found["relative_error"] == pytest.approx(lowest_at_random(), rel=1e-6)


@pytest.mark.parametrize("noise", [*NOISES])
@pytest.mark.parametrize(("k", "lead"), [(61, 8), (100, 8), (300, 8), (1000, 4)])
def test_items_that_are_all_but_tied_are_as_good_as_tied(noise: str, k: int, lead: float) -> None:
    """The lowest of many items changes much faster than any of them; and laplace noise has a kink at each."""
    unit = float(dps.OneShot(k=k, epsilon=1.0, noise=noise).rate(k + 1))
    mechanism = dps.OneShot(k=k, epsilon=1 / unit, noise=noise)
    near, tied = (
        exact_figures(dps.Scores.of(np.append(top, 0.0)), mechanism)
        for top in (lead + np.arange(k) * 1e-12, np.full(k, float(lead)))
    )
    assert k - near["correct"] == pytest.approx(k - tied["correct"], rel=5e-9)
    assert near["exact"] == pytest.approx(tied["exact"], rel=5e-9)


@pytest.mark.parametrize(
    ("scores", "k"),
    [(np.zeros(5), 1), (np.full(50, 3.0), 2), (-(np.arange(30.0) ** 2), 15), (np.full(100_000, 3.0), 50_000)],
)
def test_no_chance_exceeds_one(scores: np.ndarray, k: int) -> None:
    found = exact_figures(dps.Scores.of(scores), dps.Canonical(k=k, epsilon=1.0))
    assert max(found[name] for name in ("exact", "great", "good")) <= 1


@pytest.mark.parametrize("noise", ["exponential", "gumbel"])
@pytest.mark.parametrize("epsilon", [20.0, 60.0])
@pytest.mark.parametrize(
    ("scores", "gamma", "names"),
    [
        ([9.0, 7.0, 4.0, 3.5, 1.0, 0.0], 0.5, ("total_error", "relative_error")),
        ([5.0, 5.0, 5.0, 0.0, 0.0], 0.5, ("total_error", "relative_error")),
        ([9.0, 5.0, 5.0, 0.0, 0.0], 1.0, ("relative_error",)),
    ],
    ids=["apart", "tied", "lossless"],
)
def test_errors_that_are_all_but_impossible_are_as_exact_as_others(
    noise: str, epsilon: float, scores: list[float], gamma: float, names: tuple[str, ...]
) -> None:
    mechanism = dps.Canonical(k=2, epsilon=epsilon, noise=noise, gamma=gamma)
    found, law = exact_figures(dps.Scores.of(np.array(scores)), mechanism), expected(mechanism, scores)
    for name in names:
        assert 0 < law[name] < 1e-20
        assert found[name] == pytest.approx(law[name], rel=1e-8, abs=0)


@pytest.mark.parametrize("noise", ["exponential", "gumbel"])
def test_a_success_that_is_all_but_impossible_counts_every_tied_answer(noise: str) -> None:
    scores = np.append(np.full(40, SCORES[30]), SCORES)
    mechanism = dps.Canonical(k=K, epsilon=1e-4, noise=noise)
    found = exact_figures(dps.Scores.of(scores), mechanism)["exact"]
    curve = dps.forecast.success(scores, mechanism).chance(mechanism.epsilon)
    assert 0 < found < 1e-80
    assert found == pytest.approx(curve, rel=1e-8, abs=0)


@pytest.mark.parametrize("size", [300, 800])
def test_every_jump_of_one_sided_noise_counts(size: int) -> None:
    """All but one item: with exponential noise each of the m lowest is the one left out with 1/m, once all m may be."""
    scores = np.arange(float(size))
    mechanism = dps.OneShot(k=size - 1, epsilon=(size - 1) / 80, noise="exponential")
    places = scores * float(mechanism.rate(size))
    number = np.arange(1, size + 1)
    none_yet = np.exp(-(number * places - np.cumsum(places)))
    leaving = none_yet - np.append(np.exp(-(number * np.append(places[1:], np.inf) - np.cumsum(places)))[:-1], 0.0)
    lowest = np.cumsum((leaving / number)[::-1])[::-1]
    found = exact_figures(dps.Scores.of(scores), mechanism)["total_error"]
    assert found == pytest.approx(float(lowest @ scores), rel=1e-8)


CLUSTERS = np.concatenate([np.full(240, 10.0), np.full(240, 5.0), np.linspace(-2.5, 2.5, 240)])
GAUSSIAN = {"delta": 1e-6, "max_items_per_person": 1}


@pytest.mark.parametrize(
    ("scores", "mechanism"),
    [
        (CLUSTERS, dps.Gaussian(k=360, epsilon=0.12, **GAUSSIAN)),
        (CLUSTERS, dps.Gaussian(k=360, epsilon=1.0, **GAUSSIAN)),
        (
            np.append(np.linspace(20, 11, 333), np.full(334, 10.0)),
            dps.OneShot(k=347, epsilon=0.73, noise="half-logistic"),
        ),
        (np.tan(np.pi * (np.arange(1, 801) / 801 - 0.5)), dps.OneShot(k=799, epsilon=14.0, noise="gumbel")),
        (np.append([1.0, 3.6, 0.0], np.linspace(4.7, 5.0, 900)), dps.Peeling(k=902, epsilon=1050.0, noise="gumbel")),
    ],
    ids=["clusters", "clusters apart", "crowded", "last", "few undecided"],
)
def test_finer_panels_change_nothing(scores: np.ndarray, mechanism: dps.Mechanism, monkeypatch: Any) -> None:
    """Where the number of items above a value, the largest of many, or ties change faster than any item does."""
    found = exact_figures(dps.Scores.of(scores), mechanism)
    monkeypatch.setattr(mistake_reach, "_PANEL", mistake_reach._PANEL / 3)
    monkeypatch.setattr(mistake_reach, "_STEPS", mistake_reach._STEPS / 3)
    finer = exact_figures(dps.Scores.of(scores), mechanism)
    k = mechanism.k
    assert k - found["correct"] == pytest.approx(k - finer["correct"], rel=1e-8)
    for name in {"total_error", "relative_error"} & set(found):
        assert found[name] == pytest.approx(finer[name], rel=1e-8)
