"""The ring without places: what the best noise saves is no artefact of a ring that is made of finitely many."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import minimize

from dpselect.multiselect.ring import laplace_ring, optimal_ring

HALF = math.pi


def two_peaks(epsilon: float, peak: float, answer: float) -> float:
    """Return what noise with peaks at ±c costs with answers at ±a, 0 <= c <= a, around the ring (ring.md)."""
    half, c, a = epsilon * HALF, epsilon * peak, epsilon * answer
    before = (a - c) * -math.expm1(-c) + 1 - (1 + c) * math.exp(-c)
    after = a - c - 1 + 2 * math.exp(c - a) - (half - a + 1) * math.exp(c - half)
    return (before + after) / (2 - math.exp(-c) - math.exp(c - half)) / epsilon


def laplace_answer(epsilon: float) -> float:
    """Return the median of Laplace noise on half of the ring."""
    return -math.log((1 + math.exp(-epsilon * HALF)) / 2) / epsilon


def least_laplace(epsilon: float, cells: int) -> tuple[float, float]:
    """Return the least cost of Laplace noise over where two answers cut the ring, and how far it may be below that.

    The cells of two answers are opposite halves, each of which is served best from its median. Turning the cut by t
    moves mass of at most t times the largest density at each end, by at most π.
    """
    width = 2 * HALF / cells
    places = (np.arange(2 * cells) + 0.5) * width
    weights = np.exp(-epsilon * np.minimum(places % (2 * HALF), -places % (2 * HALF)))
    weights /= weights[:cells].sum()
    mass, moment = (np.concatenate([[0.0], np.cumsum(part)]) for part in (weights, weights * places))
    starts = np.arange(cells)
    ends = starts + cells // 2
    middles = np.searchsorted(mass, (mass[starts] + mass[ends]) / 2)
    medians = middles * width
    above = moment[ends] - moment[middles] - medians * (mass[ends] - mass[middles])
    below = medians * (mass[middles] - mass[starts]) - (moment[middles] - moment[starts])
    halves = above + below
    density = float(weights.max()) / width
    return float((halves + np.roll(halves, cells // 2)).min()), width / 2 * 2 * density * HALF


@pytest.mark.parametrize(("peak", "answer"), [(0.0, 0.6), (0.25, 0.7), (1.5, 1.6)])
def test_the_closed_form_is_the_integral(peak: float, answer: float) -> None:
    def density(y: float) -> float:
        return math.exp(-1.3 * abs(y - peak))

    cuts = {"points": [peak, answer], "epsabs": 1e-13}
    cost = quad(lambda y: density(y) * abs(y - answer), 0, HALF, **cuts)[0] / quad(density, 0, HALF, **cuts)[0]
    assert two_peaks(1.3, peak, answer) == pytest.approx(cost, rel=1e-10)


def test_at_epsilon_1_two_peaks_cost_less_than_laplace_noise_with_any_answers() -> None:
    least, slack = least_laplace(1.0, 40_000)
    assert least == pytest.approx(two_peaks(1.0, 0.0, laplace_answer(1.0)), abs=1e-6)
    assert two_peaks(1.0, 0.26, 0.70) < 0.56646 < 0.567 < least - slack


@pytest.mark.parametrize("epsilon", [0.1, 3 / 8, 1.0, 2.0, 3.0])
def test_laplace_noise_is_best_at_no_epsilon(epsilon: float) -> None:
    """Peaks moved by any c <= a − cost help, as ring.md proves; a − cost = q (T − 2a)/(1 − q), q = e^{−T}."""
    answer = laplace_answer(epsilon)
    cost = two_peaks(epsilon, 0.0, answer)
    room = answer - cost
    assert room == pytest.approx((HALF - 2 * answer) / math.expm1(epsilon * HALF), rel=1e-6)
    assert room > 0
    for share in (0.3, 0.6, 1.0):
        assert two_peaks(epsilon, share * room, answer) < cost - 1e-15


@pytest.mark.parametrize("epsilon", [3 / 8, 1.0])
def test_more_places_come_nearer_to_the_ring_without_them(epsilon: float) -> None:
    starts = ([0.2, 0.7], [1.5, 1.6])
    limit = min(
        minimize(lambda at: two_peaks(epsilon, abs(at[0]), max(at[1], abs(at[0]))), start, method="Nelder-Mead").fun
        for start in starts
    )
    for make, there in ((optimal_ring, limit), (laplace_ring, two_peaks(epsilon, 0.0, laplace_answer(epsilon)))):
        errors = [abs(make(2, epsilon, places=places).cost - there) for places in (60, 240)]
        assert errors[1] < errors[0] / 4
        assert errors[1] < 1e-4
