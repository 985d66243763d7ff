"""Sensitivity turns what one person can do to a score into a spread that is never too small."""

from __future__ import annotations

import json
from dataclasses import FrozenInstanceError, asdict
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpselect import COUNTS, InvalidInput, Sensitivity


def test_counts_have_spread_one_and_two_sided_scores_twice_their_bound() -> None:
    assert COUNTS.spread == 1.0
    assert Sensitivity(-3, 3).spread == 6.0
    assert Sensitivity(-2, 0).spread == 2.0
    assert Sensitivity(0, 1) == COUNTS


@given(st.floats(-1e300, 1e300), st.floats(-1e300, 1e300))
def test_the_spread_is_never_rounded_down_and_by_at_most_one_place(low: float, high: float) -> None:
    if not low < high:
        return
    exact = Fraction(high) - Fraction(low)
    spread = Sensitivity(low, high).spread
    assert Fraction(spread) >= exact
    assert Fraction(float(np.nextafter(spread, 0))) < exact


@given(st.fractions(), st.fractions())
def test_bounds_that_no_float_holds_move_outwards(low: Fraction, high: Fraction) -> None:
    if not low < high:
        return
    sensitivity = Sensitivity(low, high)
    assert Fraction(sensitivity.low) <= low
    assert Fraction(sensitivity.high) >= high
    assert json.loads(json.dumps(asdict(sensitivity))) == {"low": sensitivity.low, "high": sensitivity.high}


def test_numbers_of_any_library_are_accepted() -> None:
    for number in (np.float32(0.5), np.float64(0.5), Decimal("0.5"), Fraction(1, 2), np.float16(0.5)):
        assert Sensitivity(0, number) == Sensitivity(0, 0.5)
    assert Sensitivity(0, np.int64(2)) == Sensitivity(0, 2)


BAD: list[tuple[object, object]] = [
    (0, 0),
    (1, 0),
    (0.0, -0.0),
    ("0", 1),
    (0, None),
    (0, float("inf")),
    (float("nan"), 1),
    (0, True),
    (False, 1),
    (0, 1j),
    (0, [1]),
    (0, 10**400),
    (-1e308, 1e308),
    (0, Decimal("NaN")),
    (0, Decimal("sNaN")),
    (0, np.array([1.0])),
]


def test_bounds_must_be_finite_numbers_in_order() -> None:
    for low, high in BAD:
        with pytest.raises(InvalidInput) as caught:
            Sensitivity(low, high)
        assert caught.value.argument.startswith("sensitivity")


def test_a_sensitivity_is_a_frozen_value() -> None:
    with pytest.raises(FrozenInstanceError):
        COUNTS.high = 2  # type: ignore[misc]
    assert len({Sensitivity(0, 1), Sensitivity(0, 1), Sensitivity(-1, 1)}) == 2
    assert str(Sensitivity(-1, 1)) == "adding a person moves each score by -1 to 1"
