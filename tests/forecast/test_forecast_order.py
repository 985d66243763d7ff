"""The error of an ordered answer against the law of every item's rank, one by one."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import dpselect as dps
from dpselect.forecast import misplaced
from dpselect.forecast.figures import exact_figures
from dpselect.sampling import NOISES
from dpselect.sampling.noise import NORMAL

CLOSE = np.round(50 * np.log(np.arange(1, 29) / 29.0))
"""Twenty-eight items, the lowest ones closest to each other."""


def error_by_ranks(noise: Any, scores: Any, rate: float, k: int) -> float:
    """Every item by itself: P[it has rank r], by adding up all others at each z."""
    ranked = np.sort(np.asarray(scores, dtype=np.float64))[::-1]
    values, sizes = np.unique(-ranked, return_counts=True)
    locations = -(values + ranked[k - 1]) * rate
    z = np.arange(locations[-1] - 12, locations[0] + 45, 0.05)
    above, below = noise.survival(z - locations[:, None]), noise.cdf(z - locations[:, None])
    wanted = 0.0
    for group, size in enumerate(sizes):
        counts = np.zeros((k, len(z)))
        counts[0] = 1.0
        for other, number in enumerate(sizes):
            for _ in range(number - (other == group)):
                counts[1:] = counts[1:] * below[other] + counts[:-1] * above[other]
                counts[0] *= below[other]
        ranks = counts @ noise.density(z - locations[group]) * 0.05
        wanted += float(size * ranks @ np.abs(ranked[:k] + values[group]))
    return wanted


@pytest.mark.parametrize("epsilon", [0.005, 0.05, 0.16, 0.5, 4.0])
@pytest.mark.parametrize(
    ("noise", "scores", "k"),
    [
        (NOISES["gumbel"], np.round(300 / np.arange(1, 121) ** 0.6), 30),
        (NOISES["gumbel"], np.append([90, 77, 70, 61, 60], np.repeat([30, 20, 3, 1], [40, 90, 120, 50])), 12),
        (NOISES["gumbel"], np.append(np.arange(560, 900, 30), np.repeat([30, 20, 3, 1], 150)), 38),
        (NOISES["gumbel"], -CLOSE[::-1], 28),
        (NORMAL, CLOSE, 28),
        (NORMAL, CLOSE, 20),
    ],
    ids=["gumbel", "tied", "many", "close", "normal", "part"],
)
def test_the_error_of_an_order_is_that_of_the_law_of_ranks(noise: Any, scores: Any, k: int, epsilon: float) -> None:
    mechanism: Any = (
        dps.Gaussian(k=k, epsilon=epsilon, delta=1e-6, max_items_per_person=1)
        if noise is NORMAL
        else dps.Peeling(k=k, epsilon=epsilon, noise="gumbel")
    )
    rate = 1 / float(mechanism.sigma) if noise is NORMAL else float(mechanism.rate())
    assert exact_figures(dps.Scores.of(scores), mechanism)["total_error"] == pytest.approx(
        error_by_ranks(noise, scores, rate, k), rel=2e-9
    )


@pytest.mark.parametrize("epsilon", [0.02, 0.3, 4.0, 40.0])
@pytest.mark.parametrize("noise", ["gumbel", "normal"])
def test_one_circle_for_neighbouring_nodes_gives_what_one_for_each_does(
    noise: str, epsilon: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = dps.Scores.of(np.append(np.round(900 / np.arange(1, 301) ** 0.7), [4.0] * 40))
    mechanism: Any = (
        dps.Gaussian(k=25, epsilon=epsilon, delta=1e-6, max_items_per_person=1)
        if noise == "normal"
        else dps.Peeling(k=25, epsilon=epsilon, noise="gumbel")
    )
    found = exact_figures(table, mechanism)["total_error"]
    monkeypatch.setattr(misplaced, "_FAINT", -np.inf)
    assert exact_figures(table, mechanism)["total_error"] == pytest.approx(found, rel=1e-9)


LONG_TAIL = np.round(150_000 / np.arange(1, 4001) ** 0.7)


def order_error(epsilon: float) -> float:
    """Of a hundred items of a long tail, of which the first ones are far apart and the last ones close."""
    return exact_figures(dps.Scores.of(LONG_TAIL), dps.Peeling(k=100, epsilon=epsilon, noise="gumbel"))["total_error"]


@pytest.mark.parametrize("epsilon", [0.02, 0.1, 0.8, 6.0])
def test_finer_nodes_and_wider_windows_change_nothing(epsilon: float, monkeypatch: pytest.MonkeyPatch) -> None:
    found, windows = order_error(epsilon), misplaced.Order._windows
    monkeypatch.setattr(misplaced, "_STEP", misplaced._STEP / 2)
    monkeypatch.setattr(misplaced, "_STEP_NORMAL", misplaced._STEP_NORMAL / 2)
    monkeypatch.setattr(misplaced, "_DENSE", misplaced._DENSE / 2)
    monkeypatch.setattr(misplaced, "_SURE", 60.0)
    monkeypatch.setattr(misplaced.Order, "_windows", lambda order, z, log_radius, _=None: windows(order, z, log_radius))
    assert found == pytest.approx(order_error(epsilon), rel=2e-9)


@pytest.mark.parametrize("broken", [{"_DENSE": 12.0}, {"_SURE": 0.5}])
def test_nodes_that_are_too_coarse_or_settled_too_soon_show(
    broken: dict[str, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = order_error(0.1)
    for name, value in broken.items():
        monkeypatch.setattr(misplaced, name, value)
    assert abs(order_error(0.1) / found - 1) > 1e-8


def test_where_much_might_be_lost_and_little_is_circles_are_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    scores = np.append(1e9 + np.arange(4.0) * 12, np.arange(6.0) * 12)
    mechanism = dps.Peeling(k=8, epsilon=16.0, noise="gumbel")
    wanted = error_by_ranks_of_parts(scores, float(mechanism.rate()))
    assert exact_figures(dps.Scores.of(scores), mechanism)["total_error"] == pytest.approx(wanted, rel=1e-8, abs=0)
    monkeypatch.setattr(misplaced, "_FAINT", np.inf)
    assert exact_figures(dps.Scores.of(scores), mechanism)["total_error"] != pytest.approx(wanted, rel=1e-8, abs=0)


@pytest.mark.parametrize(
    ("scores", "sizes", "k"), [([142.0, 0.3, 0.0], [4, 23, 1], 24), ([154.7, 0.1, 0.0], [2, 31, 1], 16)]
)
def test_leaders_far_ahead_of_a_tie(scores: list[float], sizes: list[int], k: int) -> None:
    table, mechanism = np.repeat(scores, sizes), dps.Peeling(k=k, epsilon=float(k), noise="gumbel")
    wanted = error_by_ranks(NOISES["gumbel"], table, float(mechanism.rate()), k)
    assert exact_figures(dps.Scores.of(table), mechanism)["total_error"] == pytest.approx(wanted, rel=1e-9)


def error_by_ranks_of_parts(scores: Any, rate: float) -> float:
    """The error of two parts that are too far from each other to mix, of which four and four are taken."""
    high, low = np.sort(scores)[:-5:-1], np.sort(scores)[-5::-1]
    gumbel = NOISES["gumbel"]
    return error_by_ranks(gumbel, high, rate, 4) + error_by_ranks(gumbel, low, rate, 4)


def test_a_huge_gap_takes_no_digits_from_small_ones() -> None:
    scores = np.append(1e12 + np.arange(20.0), np.arange(40.0))
    mechanism = dps.Peeling(k=31, epsilon=1.86e-9, noise="gumbel")
    rate, gumbel = float(mechanism.rate()), NOISES["gumbel"]
    parts = error_by_ranks(gumbel, np.arange(20.0), rate, 20) + error_by_ranks(gumbel, np.arange(40.0), rate, 11)
    assert exact_figures(dps.Scores.of(scores), mechanism)["total_error"] == pytest.approx(parts, rel=1e-9)


@pytest.mark.parametrize(
    ("epsilon", "k", "counts"), [(2919.0, 97, [10, 8, 14, 13, 11, 13, 13, 16]), (2300.0, 66, [1, 0, 30, 36])]
)
def test_rare_swaps_of_large_ties(epsilon: float, k: int, counts: list[int]) -> None:
    scores = np.repeat(np.arange(float(len(counts)))[::-1], counts)
    mechanism = dps.Peeling(k=k, epsilon=epsilon, noise="gumbel")
    wanted = error_by_ranks(NOISES["gumbel"], scores, float(mechanism.rate()), k)
    assert 0 < wanted < 1e-9
    assert exact_figures(dps.Scores.of(scores), mechanism)["total_error"] == pytest.approx(wanted, rel=1e-5, abs=0)


def test_large_ties_take_little_memory() -> None:
    table = dps.Scores.of(np.repeat([3.0, 2.0, 1.0, 0.0], [1, 10_000, 5, 100]))
    tracemalloc.start()
    exact_figures(table, dps.Peeling(k=10_004, epsilon=20_008.0, noise="gumbel"))
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 150e6


def test_an_order_that_is_all_but_never_wrong() -> None:
    """Where groups swap once in a billion times, what happens as rarely counts."""
    scores = np.repeat([3.0, 2.0, 1.0, 0.0], [1, 7, 10, 11])
    mechanism = dps.Gaussian(k=28, epsilon=90.0, delta=1e-6, max_items_per_person=1)
    wanted = error_by_ranks(NORMAL, scores, 1 / float(mechanism.sigma), 28)
    assert 0 < wanted < 1e-8
    assert exact_figures(dps.Scores.of(scores), mechanism)["total_error"] == pytest.approx(wanted, rel=1e-5, abs=0)


def test_nodes_are_close_enough_for_tied_groups_under_normal_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """A table of few groups, of which tied ones swap seldom, at twice as many nodes."""
    mechanism = dps.Gaussian(k=15, epsilon=1.0, delta=1e-6, max_items_per_person=1)
    places = np.repeat([20.0, 12.0, 8.0, 5.0, 1.5, 0.0], [3, 2, 1, 1, 4, 5])
    table = dps.Scores.of(places * mechanism.sigma)
    found = exact_figures(table, mechanism)["total_error"]
    monkeypatch.setattr(misplaced, "_STEP_NORMAL", 0.08)
    assert found == pytest.approx(exact_figures(table, mechanism)["total_error"], rel=1e-9)
    monkeypatch.setattr(misplaced, "_STEP_NORMAL", 0.25)
    assert found != pytest.approx(exact_figures(table, mechanism)["total_error"], rel=1e-9)


@pytest.mark.parametrize("highest", [1e3, 1e20, 1e200, 1e298])
def test_scores_so_far_apart_that_floats_have_no_room_between_them(highest: float) -> None:
    scores = [highest, highest / 10, 5.0, 4.0, 3.0, 2.0, 1.0, 0.0]
    for mechanism in (
        dps.Gaussian(k=3, epsilon=1000.0, delta=1e-6, max_items_per_person=1),
        dps.Peeling(k=3, epsilon=1000.0, noise="gumbel"),
        dps.Peeling(k=3, epsilon=9.0),
    ):
        figures = exact_figures(dps.Scores.of(scores), mechanism)
        last = exact_figures(
            dps.Scores.of([100.0, *scores[2:]]), replace(mechanism, k=2, epsilon=2 / 3 * mechanism.epsilon)
        )
        expected = last["exact"] if isinstance(mechanism, dps.Peeling) else 1.0
        assert figures["exact"] == pytest.approx(expected, rel=1e-9)
        assert figures.get("total_error", 0.0) == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize(
    ("kind", "gap", "size"), [("normal", 11.0, 5000), ("normal", 11.0, 500), ("gumbel", 32.0, 30_000)]
)
def test_large_ties_far_apart_swap_as_often_as_their_pairs_do(kind, gap, size, monkeypatch) -> None:
    """Two close items at the top lose most of it; of the ties below them each pair swaps far more seldom."""
    places = np.repeat([1.0, 0.0, -gap, -2 * gap, -4 * gap], [1, 1, size, size, 5]) + 5 * gap
    k = 2 + 2 * size
    mechanism: Any = dps.Gaussian(k=k, epsilon=1.0, delta=1e-6, max_items_per_person=1)
    scores = places * mechanism.sigma
    if kind == "gumbel":
        mechanism, scores = dps.Peeling(k=k, epsilon=1.0, noise="gumbel"), places * k
    table = dps.Scores.of(scores)
    found = exact_figures(table, mechanism)["total_error"]
    monkeypatch.setattr(misplaced, "_DEPTH", 45.0)
    assert found == pytest.approx(exact_figures(table, mechanism)["total_error"], rel=3e-9)
    monkeypatch.undo()
    monkeypatch.setattr(misplaced.Order, "_lost", property(lambda order: order._swaps + np.log(order._ranked.gaps)))
    assert found != pytest.approx(exact_figures(table, mechanism)["total_error"], rel=1e-8)
