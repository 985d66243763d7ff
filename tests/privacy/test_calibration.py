"""A calibrated round costs what it may and no more."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpselect import Guarantee
from dpselect.privacy import compose
from dpselect.privacy.calibration import pure_per_round, range_per_round

totals = st.floats(1e-4, 50.0)
deltas = st.floats(1e-15, 0.3)
numbers = st.integers(1, 200) | st.integers(2000, 5000)


@settings(max_examples=25, deadline=None)
@given(totals, deltas, numbers)
def test_k_rounds_never_cost_more_than_the_total(epsilon: float, delta: float, k: int) -> None:
    width = range_per_round(epsilon, delta, k)
    assert width >= Fraction(epsilon) / k
    if width > Fraction(epsilon) / k:
        assert compose([Guarantee.bounded_range(float(width), rounds=k)], delta=delta).epsilon <= epsilon


@settings(max_examples=25, deadline=None)
@given(totals, deltas, numbers)
def test_a_little_more_a_round_would_cost_too_much(epsilon: float, delta: float, k: int) -> None:
    more = float(range_per_round(epsilon, delta, k)) * (1 + 1e-6)
    assert compose([Guarantee.bounded_range(more, rounds=k)], delta=delta).epsilon > epsilon


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(totals, deltas, numbers)
def test_pure_rounds_never_cost_more_than_the_total_either(epsilon: float, delta: float, k: int) -> None:
    each = pure_per_round(epsilon, delta, k)
    assert each >= Fraction(epsilon) / k
    if each > Fraction(epsilon) / k:
        assert compose([Guarantee(float(each))] * k, delta=delta).epsilon <= epsilon


def test_without_delta_a_round_gets_an_equal_share_exactly() -> None:
    for epsilon, k in ((0.1, 3), (1.0, 7), (3.0, 1)):
        assert range_per_round(epsilon, 0.0, k) == Fraction(epsilon) / k == pure_per_round(epsilon, 0.0, k)


def test_many_rounds_gain_with_the_root_of_their_number() -> None:
    """The share of a round falls as 1/√k where plain addition falls as 1/k."""
    for number in (50, 2500):
        few, many = (float(range_per_round(1.0, 1e-6, k)) for k in (number, 4 * number))
        assert few / many == pytest.approx(2, rel=5e-3)
        assert many > math.sqrt(number) / (5 * number)


def test_more_delta_or_epsilon_never_means_less_a_round() -> None:
    by_delta = [range_per_round(1.0, delta, 20) for delta in (0.0, 1e-12, 1e-9, 1e-6, 1e-3, 0.1)]
    assert by_delta == sorted(by_delta)
    by_epsilon = [range_per_round(epsilon, 1e-6, 20) for epsilon in (0.01, 0.1, 1.0, 10.0)]
    assert by_epsilon == sorted(by_epsilon)


@pytest.mark.slow
@pytest.mark.parametrize(("epsilon", "k"), [(1e-240, 1000), (1e240, 1)])
def test_extreme_totals_stay_finite(epsilon: float, k: int) -> None:
    width = range_per_round(epsilon, 1e-6, k)
    assert math.isfinite(float(width))
    assert width >= Fraction(epsilon) / k
