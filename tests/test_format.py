"""Numbers are shown with few figures, rounded towards privacy."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpselect._format import difference_above, factor_above, shown_above, shown_below

finite = st.floats(min_value=5e-324, allow_infinity=False)


@given(finite, st.integers(1, 12))
def test_shown_numbers_are_rounded_towards_privacy_in_the_last_figure(number: float, figures: int) -> None:
    written = Decimal(repr(number))
    above, below = Decimal(shown_above(number, figures)), Decimal(shown_below(number, figures))
    assert below <= written <= above
    unit = Decimal((0, (1,), written.adjusted() - figures + 1))
    assert above - written < unit
    assert written - below < unit


@given(st.integers(1, 999_999), st.integers(-30, 30))
def test_a_number_of_six_figures_is_shown_as_it_is(digits: int, exponent: int) -> None:
    number = float(f"{digits}e{exponent}")
    assert float(shown_above(number)) == float(shown_below(number)) == number


@pytest.mark.parametrize(
    ("number", "above", "below"),
    [
        (0.0, "0", "0"),
        (1.0, "1", "1"),
        (0.1, "0.1", "0.1"),
        (100000.0, "100000", "100000"),
        (1e-6, "1e-06", "1e-06"),
        (0.6499999999999999, "0.65", "0.649999"),
        (0.30000000000000004, "0.300001", "0.3"),
        (math.nextafter(math.inf, 0), "1.7977e+308", "1.79769e+308"),
    ],
)
def test_trailing_zeros_are_left_out(number: float, above: str, below: str) -> None:
    assert (shown_above(number), shown_below(number)) == (above, below)


def test_a_difference_is_that_of_the_numbers_as_they_are_written() -> None:
    assert difference_above(0.4, 0.1) == "0.3"
    assert difference_above(0.1, 0.09999999999999998) == "2e-17"
    assert difference_above(1e300, 1e-300) == "1e+300"


@given(st.floats(0.1, 13.8))
def test_a_factor_is_never_understated(epsilon: float) -> None:
    stated = float(factor_above(epsilon).removeprefix("a factor of at most "))
    assert math.exp(epsilon) * (1 - 1e-14) <= stated <= math.exp(epsilon) * 1.0101


@given(st.floats(5e-324, 0.1, exclude_max=True))
def test_a_factor_near_one_is_a_percentage_that_is_never_understated(epsilon: float) -> None:
    stated = Fraction(factor_above(epsilon).removeprefix("at most ").removesuffix(" percent")) / 100
    exact = Fraction(epsilon)
    assert exact + exact**2 / 2 <= stated <= (exact + exact**2) * Fraction(102, 100)


@given(st.floats(13.9, 1e300))
def test_a_huge_factor_is_a_power_that_is_never_understated(epsilon: float) -> None:
    power = float(factor_above(epsilon).removeprefix("a factor of at most 10^"))
    assert epsilon / math.log(10) * (1 - 1e-14) <= power <= epsilon / math.log(10) * 1.01 + 1
