"""Checks of arguments that several rooms share; each raises InvalidInput or returns the value."""

from __future__ import annotations

import math
import operator
from typing import Any

from dpselect.errors import InvalidInput


def finite_number(argument: str, value: Any) -> float:
    """Return `value` if it is a finite real number."""
    try:
        if not isinstance(value, bool | str | bytes) and math.isfinite(value):
            return value  # type: ignore[no-any-return]
    except (TypeError, OverflowError):
        pass
    raise InvalidInput(argument, value, "a finite number is needed")


def positive_number(argument: str, value: Any) -> float:
    """Return `value` if it is a positive, finite real number."""
    try:
        if not isinstance(value, bool | str | bytes) and math.isfinite(value) and value > 0:
            return value  # type: ignore[no-any-return]
    except (TypeError, OverflowError):
        pass
    raise InvalidInput(argument, value, "a positive, finite number is needed")


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
