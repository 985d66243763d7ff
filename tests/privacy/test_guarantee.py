"""A guarantee states epsilon, delta and what is protected, in numbers and in words."""

from __future__ import annotations

import json
import math
from dataclasses import FrozenInstanceError
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpselect import Guarantee, InvalidInput


def test_the_unit_of_protection_is_one_person_added_or_removed() -> None:
    guarantee = Guarantee(epsilon=1.0)
    assert guarantee.to_dict() == {
        "epsilon": 1.0,
        "delta": 0.0,
        "protects": "one person",
        "neighbours": "add or remove",
    }


def test_the_words_state_the_factor_and_delta() -> None:
    assert "2.72 times" in str(Guarantee(epsilon=1.0))
    assert "added or removed" in str(Guarantee(epsilon=1.0))
    assert "probability" not in str(Guarantee(epsilon=1.0))
    assert "except with probability 1e-06" in str(Guarantee(epsilon=1.0, delta=1e-6))
    assert "inf times" in str(Guarantee(epsilon=1e6))


@pytest.mark.parametrize("epsilon", [0, -1, math.inf, math.nan, "1", None, True, 1j, 10**400, np.array([1.0])])
def test_epsilon_must_be_positive_and_finite(epsilon: object) -> None:
    with pytest.raises(InvalidInput, match="epsilon"):
        Guarantee(epsilon=epsilon)


@pytest.mark.parametrize("delta", [-1e-9, 1, 2, math.nan, math.inf, "0", None, True, 1j])
def test_delta_must_be_a_probability_below_one(delta: object) -> None:
    with pytest.raises(InvalidInput, match="delta"):
        Guarantee(epsilon=1.0, delta=delta)


@given(st.fractions(min_value=Fraction(1, 10**6)))
def test_a_fraction_is_never_rounded_up(epsilon: Fraction) -> None:
    stated = Guarantee(epsilon=epsilon).epsilon
    assert isinstance(stated, float)
    assert Fraction(stated) <= epsilon < Fraction(math.nextafter(stated, math.inf))


@pytest.mark.parametrize("number", [np.float32(0.5), np.float64(0.5), Fraction(1, 2), Decimal("0.5")])
def test_numbers_of_any_library_become_plain_data(number: object) -> None:
    guarantee = Guarantee(epsilon=number, delta=number)
    assert json.loads(json.dumps(guarantee.to_dict()))["epsilon"] == 0.5
    assert guarantee == Guarantee(epsilon=0.5, delta=0.5)


def test_a_guarantee_is_a_frozen_value() -> None:
    with pytest.raises(FrozenInstanceError):
        Guarantee(epsilon=1.0).epsilon = 2.0  # type: ignore[misc]
    assert len({Guarantee(epsilon=1), Guarantee(epsilon=1.0), Guarantee(epsilon=2)}) == 2
