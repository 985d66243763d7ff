"""Conversions are bounds: never on the wrong side of the exact value, and close to it."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpselect.privacy.conversion import epsilon_of_ranges, epsilon_of_zcdp, mean_of_range, rho_of_range, upper_bound
from dpselect.sampling.balls import ball
from dpselect.verify.calibration import composed_delta


@given(st.fractions(Fraction(1, 10**6), 10**6))
def test_an_upper_bound_is_never_below_the_number_and_at_most_two_floats_above(number: Fraction) -> None:
    """Half of all fractions lie above the nearest float, which is no bound."""
    bound = upper_bound(lambda: ball(number), number)
    assert Fraction(bound) >= number
    assert Fraction(math.nextafter(math.nextafter(bound, 0), 0)) < number


def test_the_nearest_float_would_be_no_upper_bound() -> None:
    assert (
        Fraction(float(Fraction(1, 3)))
        < Fraction(1, 3)
        < Fraction(upper_bound(lambda: ball(Fraction(1, 3)), Fraction(1)))
    )


@pytest.mark.parametrize(("width", "rounds", "delta"), [(0.1, 100, 1e-6), (0.02, 1000, 1e-9), (0.5, 20, 1e-6)])
def test_rounds_of_bounded_range_need_no_more_than_the_delta_stated(width: float, rounds: int, delta: float) -> None:
    exact = Fraction(width)
    mean, squares = rounds * mean_of_range(exact), rounds * exact * exact
    assert composed_delta(epsilon_of_ranges(mean, squares, Fraction(delta)), width, rounds) <= delta
    assert composed_delta(epsilon_of_ranges(mean, squares / 2, Fraction(delta)), width, rounds) > delta


@pytest.mark.parametrize(("rho", "delta"), [(1e-4, 1e-3), (0.01, 1e-9), (10.0, 1e-9)])
def test_the_epsilon_of_zcdp_is_the_least_over_all_orders(rho: float, delta: float) -> None:
    """Without its term in log α the formula would hold as well, and give several per cent more."""
    orders = [1 + math.exp(step / 200) for step in range(-2000, 2000)]
    least = min(a * rho + math.log1p(-1 / a) - math.log(a * delta) / (a - 1) for a in orders)
    weaker = min(a * rho - math.log(delta) / (a - 1) for a in orders)
    assert epsilon_of_zcdp(Fraction(rho), Fraction(delta)) == pytest.approx(least, rel=1e-4)
    assert weaker > least * 1.005


def test_the_rho_of_a_range_is_that_of_hoeffdings_lemma() -> None:
    assert rho_of_range(Fraction(1, 2)) == Fraction(1, 32)
    assert rho_of_range(Fraction(16)) == 16
