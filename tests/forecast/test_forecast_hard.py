"""Exact figures where radii change fast, ties are many, or next to nothing is undecided."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from forecast_brute import expected
from scipy.integrate import quad

import dpselect as dps
from dpselect.forecast import mistake_looks, mistake_reach, mistake_smooth, noise_values, noisy_expectations, radii
from dpselect.forecast.figures import exact_figures
from dpselect.forecast.noisy import NoisyGroups
from dpselect.forecast.noisy_expectations import Split
from dpselect.sampling import NOISES
from dpselect.sampling.noise import NORMAL


def gaussian(k: int, epsilon: float) -> dps.Gaussian:
    return dps.Gaussian(k=k, epsilon=epsilon, delta=1e-6, max_items_per_person=1)


@pytest.mark.parametrize(
    ("scores", "mechanism"),
    [
        ([0, 3e-6, 2e-6, 1e-6, 1e-6], dps.OneShot(k=4, epsilon=0.002379476872353782)),
        ([0, 3e-6, 2e-6, 1e-6, 1e-6], dps.OneShot(k=4, epsilon=0.0024, noise="half-logistic")),
        ([31, 30, 30, 2, 2, 0, 0], dps.OneShot(k=3, epsilon=0.7459519073795201, noise="gumbel")),
        ([0, 101, 100], gaussian(3, 0.9697037412009056)),
        ([100, 1, 1], gaussian(2, 1.4559399476790023)),
    ],
    ids=["near-one-end", "near-one-end-too", "wide-gap", "all-chosen", "far-ahead"],
)
def test_cases_that_were_wrong(scores: list[float], mechanism: dps.Mechanism) -> None:
    found, law = exact_figures(dps.Scores.of(np.array(scores)), mechanism), expected(mechanism, scores)
    for name, value in found.items():
        assert value == pytest.approx(law[name], rel=1e-8, abs=1e-12), name


@pytest.mark.parametrize("noise", list(NOISES))
@pytest.mark.parametrize(
    ("leaders", "ties", "k", "leads"),
    [(3, 50, 8, (1, 2)), (3, 10**5, 100, (4, 6)), (3, 10**9, 1000, (10, 13)), (21, 2979, 84, (0.05, 1))],
)
def test_a_missing_item_is_replaced_by_a_tied_one(
    noise: str, leaders: int, ties: int, k: int, leads: tuple[float, float]
) -> None:
    """A few items lead a large group that fills the answer: what is missing of them, and chosen too much of the group.

    The first is a sum over the leaders, the second one over the group; they have to agree.
    """
    table = dps.Scores.from_histogram([9, 5], [leaders, ties])
    unit = float(dps.OneShot(k=k, epsilon=1.0, noise=noise).rate(ties + leaders))
    for lead in leads:
        found = exact_figures(table, dps.OneShot(k=k, epsilon=lead / 4 / unit, noise=noise))
        wrong = k - found["correct"]
        assert 1e-3 < wrong < leaders
        assert found["total_error"] == pytest.approx(4 * wrong, rel=1e-8)


@pytest.mark.parametrize("kind", ["gaussian", "gumbel"])
def test_the_error_of_an_order_changes_little_with_epsilon(kind: str) -> None:
    """No radius, window or cell makes it jump: a thousandth more of epsilon changes it by less than a tenth."""
    generator = np.random.default_rng(3)
    scores = dps.Scores.of(generator.integers(0, 99, 22))
    epsilons = np.geomspace(0.05, 8.0, 40)

    def error(epsilon: float) -> float:
        mechanism: Any = (
            gaussian(20, epsilon) if kind == "gaussian" else dps.Peeling(k=20, epsilon=epsilon, noise="gumbel")
        )
        return exact_figures(scores, mechanism)["total_error"]

    for epsilon in epsilons:
        assert error(float(epsilon) * 1.001) == pytest.approx(error(float(epsilon)), rel=0.1)


@pytest.mark.parametrize("size", [5, 50, 205, 655, 5000])
def test_of_many_tied_items_the_lowest_falls_below_at_once(size: int) -> None:
    """Two items compete with a tie for the last place: it loses one if its lowest is below both."""
    mechanism = dps.OneShot(k=size + 1, epsilon=0.9 * (size + 1), noise="exponential")
    ahead = float(mechanism.rate(size + 2))
    wanted = np.exp(-2 * ahead) * size / (size + 2)
    figures = exact_figures(dps.Scores.of(np.repeat([1.0, 0.0], [size, 2])), mechanism)
    assert 0.05 < wanted < 0.3
    assert size + 1 - figures["correct"] == pytest.approx(wanted, rel=1e-9)
    assert figures["total_error"] == pytest.approx(wanted, rel=1e-9)
    assert figures["exact"] == pytest.approx(1 - wanted, rel=1e-9)
    assert figures["good"] == pytest.approx(1.0, rel=1e-9)


@pytest.mark.parametrize("lead", [0.5, 1.0, 2.5])
def test_kinks_are_seen_however_rare_mistakes_are(lead: float) -> None:
    """All but the lowest of 23 values are chosen; ten items lead twelve, by so many e-folds."""
    unit = float(dps.OneShot(k=22, epsilon=1.0).rate(23))
    scores = np.repeat([1e3, lead, 0.0], [1, 10, 12])
    found = exact_figures(dps.Scores.of(scores), dps.OneShot(k=22, epsilon=1 / unit))
    assert found["total_error"] == pytest.approx(lead * 10 / 22 * np.exp(-12 * lead), rel=1e-9, abs=0)


@pytest.mark.parametrize(
    ("sizes", "mechanism"),
    [
        ([149, 245, 3000], dps.Peeling(k=100, epsilon=100.0, noise="gumbel")),
        ([1000, 10, 3000], dps.Peeling(k=900, epsilon=900.0, noise="gumbel")),
        ([1000, 10, 3000], dps.OneShot(k=900, epsilon=900.0, noise="laplace")),
        ([1000, 10, 3000], dps.OneShot(k=900, epsilon=900.0, noise="half-logistic")),
        ([1000, 10, 3000], gaussian(900, 30.0)),
    ],
)
def test_any_part_of_a_large_tie_at_the_top_is_right(sizes: list[int], mechanism: Any) -> None:
    figures = exact_figures(dps.Scores.of(np.repeat([100.0, 50.0, 0.0], sizes)), mechanism)
    assert [figures[name] for name in ("great", "good")] == pytest.approx([1.0, 1.0], rel=1e-9)


@pytest.mark.parametrize(("epsilon", "correct"), [(4000.0, 980.78721), (7000.0, 1177.16788)])
def test_many_items_tied_with_rank_k(epsilon: float, correct: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """The number of them above z changes fast where as many are as have room."""
    table = dps.Scores.of(np.repeat([2.15, 1.758, 0.13], [1482, 9663, 2903]))
    mechanism = dps.Peeling(k=2000, epsilon=epsilon, noise="gumbel")
    found = exact_figures(table, mechanism)["correct"]
    assert found == pytest.approx(correct, abs=1e-5)
    monkeypatch.setattr(mistake_reach, "_PANEL", 0.4)
    assert exact_figures(table, mechanism)["correct"] == pytest.approx(found, rel=1e-10)


def test_the_largest_of_many_normal_values() -> None:
    mechanism, scores = gaussian(1, 1e-3), -np.arange(1000.0)
    z = np.linspace(-12, 12, 4001)
    log_others = np.log(NORMAL.cdf(z - scores[1:, None] / float(mechanism.sigma))).sum(axis=0)
    wanted = float((NORMAL.density(z) * np.exp(log_others)).sum() * (z[1] - z[0]))
    assert exact_figures(dps.Scores.of(scores), mechanism)["great"] == pytest.approx(wanted, rel=1e-9)


def test_deep_mistakes_may_be_far_rarer_than_others() -> None:
    """Which of three items is missing is a close call; that one far below is chosen is all but impossible."""
    mechanism, others, low = (
        gaussian(3, 5 / 3),
        np.array([906.16, 26.296, 24.211, 24.211]),
        np.array([-4.17, -8.34, -10.425]),
    )
    sigma = float(mechanism.sigma)
    z = np.arange(-60.0, 60.0, 1e-3)
    counts = np.zeros((5, len(z)))
    counts[0] = 1.0
    for location in others / sigma:
        counts[1:] = counts[1:] * NORMAL.cdf(z - location) + counts[:-1] * NORMAL.survival(z - location)
        counts[0] *= NORMAL.cdf(z - location)
    chosen = NORMAL.density(z - low[:, None] / sigma) @ counts[:3].sum(axis=0) * 1e-3
    assert 1e-30 < chosen.sum() < 1e-15
    found = exact_figures(dps.Scores.of(np.append(others, low)), mechanism)
    assert found["relative_error"] == pytest.approx(float((24.211 - low) @ chosen), rel=1e-9, abs=0)


def test_without_a_doubt_nothing_is_wrong() -> None:
    """Of a tie that is all that is near, no more can be chosen than there is room for."""
    scores = np.repeat([2000.0, 1000.0, 0.0], [10, 100, 10])
    found = exact_figures(dps.Scores.of(scores), dps.OneShot(k=60, epsilon=60.0, noise="gumbel"))
    assert (found["correct"], found["f1"]) == (60, 1)


@pytest.mark.parametrize("noise", [*NOISES])
@pytest.mark.parametrize("scores", [[3, 3, 3, 3, 1, 1], [9, 5, 5, 2], [4, 4, 4, 4], [70, 60, 50, 40, 30, 20]], ids=str)
def test_figures_do_not_depend_on_what_memory_held(scores: list[int], noise: str) -> None:
    table, generator = dps.Scores.of(scores), np.random.default_rng(0)
    mechanism = dps.OneShot(k=len(scores) - 1, epsilon=2.0, noise=noise)
    found = exact_figures(table, mechanism)
    for _ in range(10):
        held = [np.full(size, np.nan) for size in generator.integers(1, 3000, 25)]
        del held
        assert exact_figures(table, mechanism) == found


@pytest.mark.parametrize("seed", range(60))
def test_no_figure_is_out_of_its_range(seed: int) -> None:
    """Clusters, outliers, ties and any epsilon: chances are chances, counts are counts, and nothing is missing."""
    generator = np.random.default_rng(seed)
    size = int(generator.integers(2, 60))
    scores = [
        generator.integers(0, 4, size),
        np.where(generator.random(size) < 0.5, 0, 30) + generator.integers(0, 3, size),
        np.append(np.zeros(size - 1), 50.0) + generator.integers(0, 2, size),
        generator.normal(0, 1e-6, size),
    ][seed % 4]
    k, epsilon = int(generator.integers(1, size + 1)), float(10.0 ** generator.uniform(-5, 4))
    mechanisms: list[dps.Mechanism] = [dps.OneShot(k=k, epsilon=epsilon, noise=noise) for noise in NOISES]
    mechanisms += [
        dps.Peeling(k=k, epsilon=epsilon, noise="gumbel"),
        gaussian(k, min(epsilon, 50.0)),
        dps.Joint(k=k, epsilon=epsilon),
    ]
    for mechanism in mechanisms:
        found = exact_figures(dps.Scores.of(scores), mechanism)
        assert {"great", "good", "correct", "f1", "total_error", "relative_error"} <= set(found), mechanism
        exact = found.get("exact", 0.0)
        assert 0 <= exact <= found["great"] + 1e-9 <= found["good"] + 2e-9 <= 1 + 2e-9, mechanism
        assert -1e-9 <= found["correct"] <= k + 1e-9, mechanism
        assert -1e-9 <= found["relative_error"] <= found["total_error"] * (1 + 1e-8) + 1e-9 * np.ptp(scores), mechanism


def test_what_is_missing_beside_a_tie_far_below(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 59 items the best nine lead a tie of 50,000 by more than ten deviations."""
    values = [181.4, 161, 155, 142, 130, 117, 115, 110, 107, 0, -162]
    table = dps.Scores.from_histogram(values, [1] * 9 + [49_776, 51_333])
    mechanism = dps.Gaussian(k=59, epsilon=0.27581269120678237, delta=1e-6, max_items_per_person=3)
    found = exact_figures(table, mechanism)
    wrong = 59 - found["correct"]
    lost = (1 - found["score_ratio"]) * sum(values[:9])
    assert 107 * wrong <= lost <= 181.4 * wrong

    def halved(below: Any, above: Any, sizes: Any, wanted: float) -> Any:
        return radii._halved(below, above, sizes, wanted, *radii._between(below, above, np.cumsum(sizes), wanted))

    monkeypatch.setattr(radii, "_tilted_alone", halved)
    assert found == pytest.approx(exact_figures(table, mechanism), rel=1e-9)


@pytest.mark.parametrize("noise", ["exponential", "gumbel", "laplace"])
def test_a_million_items_tied_at_the_top(noise: str) -> None:
    """All of them are chosen if the least of their values exceeds that of five others."""
    size, lead, law = 1_000_000, 20.0, NOISES[noise]
    groups = NoisyGroups(np.array([0.0, -lead]), np.array([size, 5.0]), size, law)

    def density(z: float) -> float:
        place = np.array([z])
        low, high = law.cdf(place), law.survival(place - lead)
        others = np.exp(size * np.log1p(-law.cdf(place - lead))) if high[0] > 0.5 else 0.0
        return float((5 * law.density(place) * low**4 * others)[0])

    low = 0.0 if noise == "exponential" else -60.0
    wanted = quad(density, low, lead + 5, points=[0.0, 5.0, lead], epsabs=1e-15, limit=400)[0]
    assert groups.within(size, size) == pytest.approx(wanted, rel=1e-9)


@pytest.mark.parametrize("gap", [12.0, 20.0, 33.0])
@pytest.mark.parametrize("k", [100, 400])
def test_the_least_of_many_close_leaders_changes_faster_than_each(k: int, gap: float) -> None:
    """With normal noise: across so many deviations the answer is right, which takes fine nodes to tell."""
    noisy = NoisyGroups(np.append(np.linspace(0.1, 0.0, k), -gap - np.arange(3.0)), np.ones(k + 3), k, NORMAL)
    assert noisy.within_each([(k - 5, k + 1), (k - 20, k + 2)]) == pytest.approx([1.0, 1.0], abs=1e-11)


@pytest.mark.parametrize("depth", [2.0, 4.0, 6.0])
def test_normal_noise_is_followed_far_enough(depth: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """To look four times as far changes nothing; to look less far would."""
    locations = np.append([2.0, 1.0, 0.0, -1.0, -1.5], -depth - np.linspace(0, 8, 4000))
    noisy, costs = NoisyGroups(locations, np.ones(4005), 3, NORMAL), np.abs(locations)

    def figures() -> list[float]:
        mistakes = Split.of(noisy, costs).mistakes()
        assert mistakes is not None
        return [*noisy.within_each([(3, 3), (2, 4)]), mistakes.wrong, mistakes.lost, mistakes.depth]

    found = figures()
    monkeypatch.setattr(noise_values, "_FARTHEST_NORMAL", 40.0)
    monkeypatch.setattr(noisy_expectations, "_NEGLIGIBLE", 1e-40)
    assert figures() == pytest.approx(found, rel=1e-10)
    monkeypatch.setattr(noise_values, "_FARTHEST_NORMAL", 3.0)
    monkeypatch.setattr(noisy_expectations, "_NEGLIGIBLE", 1e-3)
    assert figures() != pytest.approx(found, rel=1e-8)


def test_looks_are_doubted_soon_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """Exponential noise, all but a few chosen: looks were half as wrong as their doubt said they could be."""
    rng = np.random.default_rng(29)
    items = int(rng.integers(60, 300))
    table = dps.Scores.of(rng.uniform(0, rng.uniform(3, 30), items))
    mechanism = dps.OneShot(k=items - 3, epsilon=float(items - 3))
    found = exact_figures(table, mechanism)["relative_error"]
    monkeypatch.setattr(mistake_looks, "_DOUBT", 3e-7)
    doubted = exact_figures(table, mechanism)["relative_error"]
    monkeypatch.setattr(mistake_smooth.Smooth, "of", lambda *_: None)
    exact = exact_figures(table, mechanism)["relative_error"]
    assert found == pytest.approx(exact, rel=1e-9)
    assert doubted != pytest.approx(exact, rel=3e-9)


GUMBEL = NOISES["gumbel"]


@pytest.mark.parametrize("spacing", [0.05, 1.0])
@pytest.mark.parametrize("gap", [10.0, 14.0])
def test_the_least_of_a_large_tie_that_fills_the_top(gap: float, spacing: float, monkeypatch: Any) -> None:
    """Gumbel noise: it changes faster than each item, in a range of z that is short beside an e-fold."""
    size = 30_000
    noisy = NoisyGroups(np.append(0.0, -gap - spacing * np.arange(100.0)), np.append(size, np.ones(100)), size, GUMBEL)
    costs = np.abs(noisy.locations)

    def figures() -> list[float]:
        mistakes = Split.of(noisy, costs).mistakes()
        assert mistakes is not None
        return [mistakes.wrong, mistakes.depth]

    found = figures()
    with monkeypatch.context() as finer:
        finer.setattr(mistake_reach, "_PANEL", 0.6)
        assert figures() == pytest.approx(found, rel=1e-9, abs=0)
    monkeypatch.setattr(mistake_reach.Reach, "_where_the_least_is", lambda *_: np.empty(0))
    # Where others are near, z is finely cut around the turn, which is there too.
    if gap > 10:
        assert figures() != pytest.approx(found, rel=1e-8, abs=0)


@pytest.mark.parametrize(("gap", "error"), [(0.02, 1e-9), (0.04, 1e-9), (0.06, 1e-4)])
def test_one_item_too_few_in_a_large_tie(gap: float, error: float) -> None:
    """All but one of 1,003 items: a leader is missing only if all 1,000 others pass the gap; then any item may be."""
    mechanism = dps.OneShot(k=1002, epsilon=1.0)
    cost = gap / float(mechanism.rate(1003))
    found = exact_figures(dps.Scores.from_histogram([cost, 0.0], [3, 1000]), mechanism)["total_error"]
    assert found == pytest.approx(cost * math.exp(-1000 * gap) * 3 / 1003, rel=error, abs=0)
