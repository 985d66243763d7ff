"""Checks of arguments that several rooms share; each raises InvalidInput or returns the value."""

from __future__ import annotations

import math
import operator
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from dpselect.errors import InvalidInput

Number = int | float | Fraction | Decimal


def finite_number(argument: str, value: Any) -> Number:
    """Return `value` if it is real and finite; a NumPy scalar becomes the Python number of the same value."""
    number = value.item() if isinstance(value, np.number) else value
    try:
        if isinstance(number, Number) and not isinstance(number, bool) and math.isfinite(number):
            return number
    except (ValueError, OverflowError):  # a signaling NaN, or an integer that no float can hold
        pass
    raise InvalidInput(argument, value, "a finite number is needed")


def positive_number(argument: str, value: Any) -> float:
    """Return `value` as a float, rounded down, if it is a positive, finite real number."""
    try:
        number = float_below(finite_number(argument, value))
        if number > 0:
            return number
    except InvalidInput:
        pass
    raise InvalidInput(argument, value, "a positive, finite number is needed")


def float_below(number: Number) -> float:
    """Return the largest float that does not exceed a finite number."""
    nearest = float(number)
    return nearest if Fraction(nearest) <= Fraction(number) else math.nextafter(nearest, -math.inf)


def positive_integer(argument: str, value: Any) -> int:
    """Return `value` as an int if it is a whole number of at least 1."""
    try:
        if not isinstance(value, bool):
            number = operator.index(value)
            if number >= 1:
                return number
    except TypeError:
        pass
    raise InvalidInput(argument, value, "a whole number of at least 1 is needed")


def seed_or_none(value: Any) -> int | None:
    """Return `value` if it is None or a whole number of at least 0."""
    if value is None:
        return None
    try:
        if not isinstance(value, bool):
            number = operator.index(value)
            if number >= 0:
                return number
    except TypeError:
        pass
    raise InvalidInput("seed", value, "None or a whole number of at least 0 is needed")
