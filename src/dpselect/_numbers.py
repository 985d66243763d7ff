"""Exact numbers: checks of numeric arguments, exact arrays, and histograms of scores."""

from __future__ import annotations

import math
import operator
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from dpselect._arrays import Array
from dpselect.errors import InvalidInput, plain

Number = int | float | Fraction | Decimal

NORMAL_95 = 1.959963984540054
"""A standard normal variable lies within ± this with probability 0.95."""

INTEGER_LIMIT = 2**62
"""Magnitude below which differences of int64 values cannot overflow."""

FLOAT_INTEGERS = 2.0**53
"""float64 holds all integers below this exactly."""

MOST_ITEMS = 10**305
"""Maximum number of items; more would leave the range of float64."""

FLOAT_LIMIT = 2.0**1021
"""Magnitude below which differences of float64 values cannot overflow."""


def exact_array(argument: str, data: Any) -> Array:
    """Return numbers as an array that holds them exactly and subtracts without overflow.

    It is int64 or float64, or, for huge integers, fractions and mixtures, an object array of Python numbers.
    """
    if hasattr(data, "mask") and np.ma.is_masked(data):
        raise InvalidInput(argument, plain("a masked array"), "must have no missing values; fill the gaps first")
    try:
        array = np.asarray(data)
    except (ValueError, OverflowError):
        raise InvalidInput(argument, plain("a ragged sequence"), "must have one number per item") from None
    if array.ndim != 1:
        raise InvalidInput(argument, plain(f"an array of {array.ndim} dimensions"), "must have one dimension")
    if not array.size:
        return np.zeros(0, dtype=np.int64)
    if array.dtype.kind in "bui":
        return _exact_integers(array)
    if array.dtype.kind == "f":
        floats = _exact_floats(argument, array)
        # A list may hold integers beside floats. NumPy rounds those beyond 2^53, and only those.
        if isinstance(data, np.ndarray) or (floats.dtype == np.float64 and np.abs(floats).max() < FLOAT_INTEGERS):
            return floats
    if array.dtype.kind not in "fO":
        raise InvalidInput(argument, plain("something that is not a number"), "must be numbers")
    return _exact_objects(argument, array.tolist() if isinstance(data, np.ndarray) else list(data))


def _exact_integers(array: Array) -> Array:
    """Return integers as int64 if they are small enough, else as Python integers."""
    if int(array.min()) > -INTEGER_LIMIT and int(array.max()) < INTEGER_LIMIT:
        return array.astype(np.int64, copy=False)
    return np.array(array.tolist(), dtype=object)


def _exact_floats(argument: str, array: Array) -> Array:
    """Return finite floats as float64 if they are small enough, else as Fractions."""
    if array.dtype.itemsize <= 8:
        array = array.astype(np.float64, copy=False)
    low, high = array.min(), array.max()
    if not (np.isfinite(low) and np.isfinite(high)):
        raise InvalidInput(argument, plain("NaN or infinity"), "must be finite numbers")
    if array.dtype == np.float64 and low > -FLOAT_LIMIT and high < FLOAT_LIMIT:
        return array
    return _object_array([Fraction(*value.as_integer_ratio()) for value in array])


def _exact_objects(argument: str, values: list[Any]) -> Array:
    """Return numbers of mixed types as the fastest exact array."""
    exact = [_exact(argument, value) for value in values]
    if all(isinstance(value, int) for value in exact):
        fits = min(exact) > -INTEGER_LIMIT and max(exact) < INTEGER_LIMIT
        return np.array(exact, dtype=np.int64) if fits else _object_array(exact)
    if all(_is_float(value) for value in exact):
        return np.array([float(value) for value in exact])
    return _object_array([Fraction(value) for value in exact])


def _is_float(value: int | Fraction) -> bool:
    """Whether float64 holds the number exactly, well inside its range."""
    return abs(Fraction(value)) < FLOAT_LIMIT and Fraction(float(value)) == value


def _exact(argument: str, value: Any) -> int | Fraction:
    """Return one number as an int or Fraction of the same value."""
    try:
        return operator.index(value)
    except TypeError:
        pass
    if isinstance(value, Decimal) and not value.is_finite():
        raise InvalidInput(argument, plain("NaN or infinity"), "must be finite numbers")
    if isinstance(value, float | np.floating) and not math.isfinite(value):
        raise InvalidInput(argument, plain("NaN or infinity"), "must be finite numbers")
    if isinstance(value, float | Decimal | Fraction | np.floating):
        return Fraction(*value.as_integer_ratio())
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        raise InvalidInput(argument, plain("a missing value"), "must have no missing values; fill the gaps first")
    raise InvalidInput(argument, plain("something that is not a number"), "must be numbers")


def exact_fraction(value: Any) -> Fraction:
    """Return a Python or NumPy number as the equal Fraction."""
    return Fraction(value.item()) if isinstance(value, np.generic) else Fraction(value)


def _object_array(values: list[Any]) -> Array:
    """Return an object array of one dimension, whatever the values are."""
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


STRIDES = 64
"""Integers of which `Extent` keeps one maximum."""

SMALL_TABLE = 1 << 18
"""Entries of a table that takes little memory however few items there are."""


@dataclass(frozen=True)
class Extent:
    """The lowest and the highest of some integers, and maxima that tell where the high ones are.

    The integers are cut into `STRIDES` runs of equal length; maximum j is over the j-th integer of each run. Up to
    `STRIDES − 1` integers after the runs have none.
    """

    low: int
    high: int
    maxima: Array

    @classmethod
    def of(cls, data: Array) -> Extent:
        """Return the extent of a nonempty array of integers."""
        length = len(data) // STRIDES
        maxima = data[: STRIDES * length].reshape(STRIDES, length).max(axis=0)
        high = max(maxima.max(initial=data[-1]), data[STRIDES * length :].max(initial=data[-1]))
        return cls(int(data.min()), int(high), maxima)

    def places_from(self, lowest: Any, size: int) -> Array | None:
        """Return, ascending, places among which are all integers of at least `lowest`; None if they are many."""
        columns = np.flatnonzero(self.maxima >= lowest)
        length = len(self.maxima)
        if 4 * len(columns) >= length:
            return None
        runs = length * np.arange(STRIDES)
        return np.append(runs[:, None] + columns, np.arange(STRIDES * length, size))

    @property
    def span(self) -> int:
        """How many integers there are from the lowest to the highest."""
        return self.high - self.low + 1

    @property
    def first(self) -> int:
        """The integer that a table starts with: 0 if that is not far below the lowest, so that nothing is shifted."""
        return 0 if 0 <= self.low <= self.span else self.low


def histogram_of(values: Any, multiplicities: Iterable[Any]) -> tuple[Array, Array]:
    """Return the distinct values, descending, and how many items have each."""
    return _merged(exact_array("values", values), multiplicities)


def counted(data: Array, extent: Extent | None) -> tuple[Array, Array]:
    """Return the distinct numbers of an exact array, descending, and how often each occurs.

    Sorting costs about as much as a table of 16 entries per item; large tables are kept to 2 to save memory.
    """
    if extent is not None and extent.span <= min(16 * len(data), max(2 * len(data), SMALL_TABLE)):
        table = _table(data, extent)
        return _groups_of(table, table != 0, extent)
    if data.dtype == object:
        return _merged(data, np.ones(len(data), dtype=np.int64))
    ranked = np.sort(data)[::-1]
    starts = np.flatnonzero(np.concatenate([[True], ranked[1:] != ranked[:-1]]))
    return ranked[starts], np.diff(np.append(starts, len(ranked)))


def counted_if_few(data: Array, extent: Extent | None) -> tuple[Array, Array] | None:
    """Return `counted` if there are few distinct integers, so that a draw by groups is faster than one by items.

    A group costs about as much as 32 items. At most 16 bytes per item are used: 8 for each entry of the table, and 8
    for each item if the data must be shifted.
    """
    if extent is None or len(data) < 1 << 15 or extent.span > len(data) // (2 if extent.first else 1):
        return None
    table = _table(data, extent)
    held = table != 0
    return _groups_of(table, held, extent) if 32 * np.count_nonzero(held) <= len(data) else None


def _table(data: Array, extent: Extent) -> Array:
    """Count how often each integer from `extent.first` to the highest occurs."""
    return np.bincount(data - extent.first if extent.first else data)


def _groups_of(table: Array, held: Array, extent: Extent) -> tuple[Array, Array]:
    """Return the integers of a table that occur, descending, and how often; `held` tells which occur."""
    places = np.flatnonzero(held)[::-1]  # much faster on booleans than on the table itself
    return places + extent.first, table[places]


def _merged(values: Array, multiplicities: Iterable[Any]) -> tuple[Array, Array]:
    """Return the distinct values, descending, with the sums of their multiplicities."""
    counted: defaultdict[Any, int] = defaultdict(int)
    try:
        sizes = [operator.index(multiplicity) for multiplicity in multiplicities]
    except TypeError:
        raise InvalidInput(
            "multiplicities", plain("an entry that is not a whole number"), "must be whole numbers"
        ) from None
    if len(sizes) != len(values):
        raise InvalidInput(
            "multiplicities", plain(f"{len(sizes)} of them"), f"must be as many as the {len(values)} values"
        )
    for value, size in zip(values.tolist(), sizes, strict=True):
        if size < 0:
            raise InvalidInput("multiplicities", plain("a negative number"), "must be whole numbers of at least 0")
        counted[value] += size
    ranked = sorted((value for value, size in counted.items() if size), reverse=True)
    if not ranked:
        raise InvalidInput("multiplicities", plain("none"), "must add up to at least one item")
    total = sum(counted.values())
    if total > MOST_ITEMS:
        raise InvalidInput("multiplicities", plain("more"), "must add up to at most 10^305 items")
    held = [counted[value] for value in ranked]
    distinct = _object_array(ranked) if values.dtype == object else np.array(ranked, dtype=values.dtype)
    return distinct, np.array(held, dtype=np.int64) if total < INTEGER_LIMIT else _object_array(held)


def finite_number(argument: str, value: Any) -> Number:
    """Return `value` if it is real and finite; a NumPy scalar becomes the equal Python number."""
    number = value.item() if isinstance(value, np.number) else value
    try:
        if isinstance(number, Number) and not isinstance(number, bool) and math.isfinite(number):
            return number
    except (ValueError, OverflowError):  # a signaling NaN, or an integer that no float can hold
        pass
    raise InvalidInput(argument, value, "must be a finite number")


def positive_number(argument: str, value: Any) -> float:
    """Return `value` as a float, rounded down, if it is a positive, finite real number."""
    try:
        number = float_below(finite_number(argument, value))
        if number > 0:
            return number
    except InvalidInput:
        pass
    raise InvalidInput(argument, value, "must be a positive, finite number")


def float_below(number: Number) -> float:
    """Return the largest float that is at most a finite number."""
    if isinstance(number, float):
        return float(number)
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
    raise InvalidInput(argument, value, "must be a whole number of at least 1")


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
    raise InvalidInput("seed", value, "must be None or a whole number of at least 0")
