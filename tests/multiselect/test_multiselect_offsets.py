"""The best answers to a signal, compared with closed forms and with direct numerical optimisation."""

from __future__ import annotations

import math
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.optimize import minimize

import dpselect as dps
from dpselect.multiselect import Disutility, as_disutility, expected_cost, optimal_offsets

SHAPES: dict[str, Any] = {
    "linear": "linear",
    "square": "square",
    "root": "root",
    "capped": "capped:1.5",
    "dead zone": lambda distance: np.maximum(distance - 1, 0),
    "step": lambda distance: distance + 5 * np.clip(distance - 1, 0, 0.1),
    "exponential": lambda distance: np.expm1(distance / 2),
}


def test_offsets_for_odd_k_are_those_of_the_paper() -> None:
    np.testing.assert_allclose(optimal_offsets(3, 1.0), [-math.log(4), 0, math.log(4)], rtol=1e-14)
    first = 2 * math.log(1.5)
    second = first + 2 * math.log(2)
    np.testing.assert_allclose(optimal_offsets(5, 0.5), [-2 * second, -2 * first, 0, 2 * first, 2 * second], rtol=1e-14)


def test_offsets_for_even_k_are_those_of_the_mathematics() -> None:
    b, epsilon = 4, 0.3
    half = [math.log((b + 1) / b) + 2 * math.log(b / (b - i)) for i in range(b)]
    expected = [*(-place / epsilon for place in reversed(half)), *(place / epsilon for place in half)]
    np.testing.assert_allclose(optimal_offsets(2 * b, epsilon), expected, rtol=1e-14)


def test_linear_costs_have_their_closed_form() -> None:
    for k in (1, 2, 3, 4, 5, 8, 51, 100):
        b = (k + 1) // 2
        closed = 1 / b if k % 2 else math.log(1 + 1 / b)
        assert expected_cost(k, 0.25) == pytest.approx(4 * closed, rel=1e-14)
        assert expected_cost(optimal_offsets(k, 0.25), 0.25) == pytest.approx(4 * closed, rel=1e-12)


def test_the_recursion_finds_the_closed_form() -> None:
    same = Disutility("identity", lambda distance: distance)
    for k in (1, 2, 3, 6, 7):
        np.testing.assert_allclose(optimal_offsets(k, 0.7, same), optimal_offsets(k, 0.7), rtol=1e-9)
        assert expected_cost(k, 0.7, same) == pytest.approx(expected_cost(k, 0.7), rel=1e-9)


def test_a_function_with_the_name_linear_is_not_taken_for_the_distance() -> None:
    def linear(distance: np.ndarray) -> np.ndarray:
        return 3 * distance

    for k in (1, 2, 3):
        assert expected_cost(k, 1.0, linear) == pytest.approx(3 * expected_cost(k, 1.0), rel=1e-9)
        assert expected_cost(optimal_offsets(k, 1.0, linear), 1.0, linear) == pytest.approx(
            3 * expected_cost(k, 1.0), rel=1e-9
        )


def test_squares_and_roots_have_the_known_costs() -> None:
    np.testing.assert_allclose(optimal_offsets(2, 0.5, "square"), [-2, 2], rtol=1e-9)
    assert expected_cost(1, 0.5, "square") == pytest.approx(8, rel=1e-9)
    assert expected_cost(2, 0.5, "square") == pytest.approx(4, rel=1e-9)
    assert expected_cost(1, 1.0, "root") == pytest.approx(math.sqrt(math.pi) / 2, rel=1e-9)


def test_a_cap_far_away_changes_nothing_and_a_cap_nearby_bounds_the_cost() -> None:
    np.testing.assert_allclose(optimal_offsets(5, 1.0, "capped:600"), optimal_offsets(5, 1.0), rtol=1e-9)
    assert expected_cost(3, 1.0, "capped:0.01") < 0.01


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
def test_costs_are_the_integrals(shape: str) -> None:
    """The cost of the best offsets, the sum over cells, and plain quadrature over the line agree."""
    h = as_disutility(SHAPES[shape])
    for k in (1, 2, 3):
        offsets = optimal_offsets(k, 1.0, h)
        stated = expected_cost(k, 1.0, h)
        assert np.all(np.diff(offsets) > 0)
        np.testing.assert_array_equal(offsets, -offsets[::-1])
        assert expected_cost(offsets, 1.0, h) == pytest.approx(stated, rel=1e-8)
        assert _by_quadrature(offsets, h) == pytest.approx(stated, rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["root", "capped", "dead zone", "exponential"])
def test_no_other_answers_cost_less(shape: str) -> None:
    """Direct optimisation from random starts never gets below the recursion, and one start reaches it."""
    h, k = as_disutility(SHAPES[shape]), 2
    stated = expected_cost(k, 1.0, h)
    generator = np.random.default_rng(k)
    found = []
    for _ in range(5):
        start = np.sort(generator.normal(0.5, 1.5, k))
        result = minimize(_cost, start, args=(h,), method="Nelder-Mead", options={"xatol": 1e-5, "fatol": 1e-9})
        found.append(expected_cost(result.x, 1.0, h))
    assert min(found) >= stated * (1 - 1e-8)
    assert min(found) <= stated * (1 + 1e-4)


def test_if_only_distances_above_1_cost_then_k_answers_cover_2k_units() -> None:
    """The cost is `P[|X| > k] = e^{−k}`."""
    jump = Disutility("jump", lambda distance: np.where(distance > 1, 1.0, 0.0))
    for k in (1, 2, 3, 4):
        np.testing.assert_allclose(optimal_offsets(k, 1.0, jump)[k // 2 :], np.arange(1 - k % 2, k, 2), atol=1e-9)
        assert expected_cost(k, 1.0, jump) == pytest.approx(math.exp(-k), rel=1e-8)


@pytest.mark.long
def test_answers_are_the_best_also_for_functions_with_jumps() -> None:
    jumps = Disutility("jumps", lambda distance: 0.1 * distance + (distance > 0.37) + 2 * (distance > 1.1))
    for k in (2, 3, 4, 7):
        offsets, stated = optimal_offsets(k, 1.0, jumps), expected_cost(k, 1.0, jumps)
        assert expected_cost(offsets, 1.0, jumps) == pytest.approx(stated, rel=1e-8)
        for place, shift in product(range(k), (-0.3, -0.02, 0.02, 0.3)):
            moved = offsets.copy()
            moved[place] += shift
            assert expected_cost(moved, 1.0, jumps) > stated


def test_a_shifted_answer_costs_more() -> None:
    for k in (1, 2, 5):
        offsets = optimal_offsets(k, 1.0, "root")
        for place in range(k):
            moved = offsets.copy()
            moved[place] += 0.05
            assert expected_cost(moved, 1.0, "root") > expected_cost(k, 1.0, "root") * (1 + 1e-6)


@pytest.mark.slow
@settings(max_examples=8)
@given(
    rises=st.lists(st.floats(0, 5), min_size=1, max_size=6).filter(lambda rises: sum(rises) > 0.01),
    k=st.integers(1, 5),
    shift=st.floats(-0.5, 0.5),
    place=st.integers(0, 4),
)
def test_for_any_increasing_broken_line_no_move_helps(rises: list[float], k: int, shift: float, place: int) -> None:
    """Broken lines rise by any amounts between distances 0, 0.4, 0.8, … and stay level after that."""
    heights = np.concatenate([[0.0], np.cumsum(rises)])
    places = 0.4 * np.arange(len(heights))
    h = Disutility("broken line", lambda distance: np.interp(distance, places, heights))
    offsets, stated = optimal_offsets(k, 1.0, h), expected_cost(k, 1.0, h)
    assert expected_cost(offsets, 1.0, h) == pytest.approx(stated, rel=1e-8)
    offsets[place % k] += shift
    assert expected_cost(offsets, 1.0, h) >= stated * (1 - 1e-8)


def test_only_distance_times_epsilon_counts() -> None:
    for shape in ("square", "step"):
        h = as_disutility(SHAPES[shape])
        stretched = Disutility("stretched", lambda distance, h=h: h(distance / 4))
        np.testing.assert_allclose(optimal_offsets(4, 0.25, stretched), 4 * optimal_offsets(4, 1.0, h), rtol=1e-8)
        assert expected_cost(4, 0.25, stretched) == pytest.approx(expected_cost(4, 1.0, h), rel=1e-8)


def test_more_answers_cost_less_and_k_times_cost_stays_bounded() -> None:
    costs = [expected_cost(k, 1.0) for k in range(1, 200)]
    assert all(later < earlier for earlier, later in pairwise(costs))
    assert all(1 <= (k + 1) * cost <= 2.1 for k, cost in enumerate(costs, start=1))


def test_far_offsets_do_not_overflow() -> None:
    assert expected_cost([1000.0], 1.0) == pytest.approx(1000, rel=1e-12)
    assert expected_cost([1000.0], 1.0, "square") == pytest.approx(1e6 + 2, rel=1e-8)
    assert expected_cost([-1e6, 0.0], 1.0, "root") == pytest.approx(math.sqrt(math.pi) / 2, rel=1e-8)
    assert expected_cost([1e17], 1.0) == pytest.approx(1e17)
    with pytest.raises(dps.InvalidInput, match="answers must be within ±2e\\+06, got one further away"):
        expected_cost([-1e18, 1e17], 0.5, "root")


BAD_DISUTILITIES: list[Any] = [
    lambda distance: -distance,
    lambda distance: distance + 1,
    lambda distance: np.sin(distance),
    lambda distance: 0 * distance,
    lambda distance: np.nan * distance,
    lambda distance: distance[:1],
    lambda distance: distance.unheard,
    "cubic",
    7,
]


def test_a_disutility_that_does_not_qualify_is_refused() -> None:
    for function in BAD_DISUTILITIES:
        with pytest.raises(dps.InvalidInput, match="disutility must be linear, square, root, capped:LIMIT, or"):
            optimal_offsets(3, 1.0, function)


def test_a_cap_needs_a_positive_limit() -> None:
    for name in ("capped", "capped:-1", "capped:nan"):
        with pytest.raises(dps.InvalidInput, match=r"disutility must have a positive limit, got .*; for example"):
            optimal_offsets(3, 1.0, name)


def test_a_disutility_whose_expectation_is_infinite_is_refused() -> None:
    for rate in (1.0, 2.0):
        with pytest.raises(dps.InvalidInput, match="disutility must"):
            expected_cost(3, 1.0, lambda distance, rate=rate: np.expm1(rate * distance))


def test_bad_numbers_are_refused() -> None:
    for k in (0, 2.5, True, "3", 10**9):
        with pytest.raises(dps.InvalidInput, match="k"):
            optimal_offsets(k, 1.0)
    for epsilon in (0.0, -1.0, math.nan, math.inf, 1e-310):
        with pytest.raises(dps.InvalidInput, match="epsilon"):
            optimal_offsets(3, epsilon)
    for answers in ([], [math.nan], [0, math.inf], [[0.0, 1.0]], ["a"]):
        with pytest.raises(dps.InvalidInput, match="answers must be k, or a list of at least one finite offset"):
            expected_cost(answers, 1.0)


def test_more_gaps_than_can_be_searched_in_seconds_are_refused() -> None:
    assert len(optimal_offsets(20_001, 1.0)) == 20_001
    for compute in (optimal_offsets, expected_cost):
        with pytest.raises(dps.InvalidInput, match="k must be at most 20,000, got 20001"):
            compute(20_001, 1.0, "square")


def test_every_claim_has_its_proof() -> None:
    proof = (Path(dps.multiselect.__file__).parent / "multiselect.md").read_text(encoding="utf-8")
    for part in ("Precondition", "Postcondition", "Proof"):
        assert proof.count(f"**{part}.**") == 4


def _by_quadrature(offsets: np.ndarray, h: Disutility) -> float:
    middles = (offsets[1:] + offsets[:-1]) / 2
    places = sorted({0.0, *offsets, *middles, *(offsets - 1), *(offsets + 1), *(offsets - 1.1), *(offsets + 1.1)})
    places = sorted({*places, *(offsets - 1.5), *(offsets + 1.5), -8.0, 8.0, -60.0, 60.0})

    def integrand(x: float) -> float:
        return float(h(np.abs(x - offsets).min()) * math.exp(-abs(x)) / 2)

    return math.fsum(
        quad(integrand, low, high, epsabs=1e-11, epsrel=1e-9, limit=200)[0] for low, high in pairwise(places)
    )


_PLACES = np.linspace(-14, 14, 2801)
_WEIGHTS = np.exp(-np.abs(_PLACES)) / np.exp(-np.abs(_PLACES)).sum()


def _cost(offsets: np.ndarray, h: Disutility) -> float:
    """A coarse sum in place of the integral, quick enough to be minimised."""
    return float(_WEIGHTS @ h(np.abs(_PLACES[:, None] - offsets).min(axis=1)))
