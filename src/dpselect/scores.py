"""Scores: how many items hold which score, and which items those are.

A mechanism needs only the distinct scores and how many items hold each; it answers with members of those groups, and
`Scores` turns them into items. So the cost of a draw follows distinct scores instead of items, a group may be
far larger than memory, and a database need only send its histogram.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from dpselect._arrays import Array
from dpselect._numbers import exact_array, histogram_of, short_histogram_of
from dpselect.errors import InvalidInput, plain
from dpselect.lookup import positions_of_members


@dataclass(frozen=True, repr=False)
class Grouping:
    """Groups of items with equal scores, and how to find their members.

    With `multiplicities` the values are distinct and descending. None means that every item is a group of its own, in
    the order of the input, equal scores or not: cheaper to make, and the same to a mechanism that treats items alike.
    """

    values: Array
    multiplicities: Array | None
    locate: Callable[[Array, Array], Array]

    def members(self, groups: Array, indexes: Array) -> Members:
        """Return the indexes[i]-th member of each groups[i]."""
        return Members(self, groups, indexes)


@dataclass(frozen=True, repr=False)
class Members:
    """Chosen items, as the `indexes[i]`-th member of group `groups[i]` of a grouping."""

    grouping: Grouping
    groups: Array
    indexes: Array

    @property
    def values(self) -> Array:
        """The scores of the chosen items. Private: for finding the items, never for showing."""
        chosen: Array = self.grouping.values[self.groups]
        return chosen

    def positions(self) -> Array:
        """Return the positions of the chosen items in the input."""
        return self.grouping.locate(self.groups, self.indexes) if len(self.groups) else self.groups


class Scores:
    """The scores of all items of a public domain.

    Build it with `Scores.of` from a mapping, Series, array or list, or with `Scores.from_histogram` from
    (score, multiplicity) pairs. Scores are integers of any size, floats or fractions, taken as the exact numbers given.
    """

    def __init__(self, data: Array | None, groups: tuple[Array, Array] | None, label: Callable[[int], Any]) -> None:
        self._data = data
        self._groups = groups
        self._label = label

    @classmethod
    def of(cls, data: Any) -> Scores:
        """Return the scores of a mapping item → score, a Series, a one-dimensional array or list, or Scores."""
        if isinstance(data, Scores):
            return data
        library = type(data).__module__.partition(".")[0]
        if isinstance(data, Mapping):
            items = list(data.keys())
            return cls(_checked(list(data.values())), None, items.__getitem__)
        if library == "pandas" and hasattr(data, "index") and getattr(data, "ndim", 0) == 1:
            if not data.index.is_unique:
                raise InvalidInput("scores", plain("a Series with repeated labels"), "each item must have one score")
            return cls(_checked(data.to_numpy()), None, data.index.__getitem__)
        if library == "polars" and type(data).__name__ == "Series":
            is_plain = data.dtype.is_float() or (data.dtype.is_integer() and "128" not in str(data.dtype))
            return cls(
                _checked(data.to_numpy() if is_plain and not data.null_count() else data.to_list()), None, _position
            )
        if isinstance(data, np.ndarray) or (
            isinstance(data, Sequence) and not isinstance(data, str | bytes | bytearray)
        ):
            return cls(_checked(data), None, _position)
        raise InvalidInput(
            "scores",
            plain(f"an object of type {type(data).__name__}"),
            "a mapping from item to score, a pandas or polars Series, a one-dimensional array or list, "
            "or dpselect.Scores is needed",
        )

    @classmethod
    def from_histogram(
        cls,
        values: Iterable[Any],
        multiplicities: Iterable[Any] | None = None,
        *,
        item: Callable[[Any, int], Any] | None = None,
    ) -> Scores:
        """Return scores of which only is known how many items hold each: pairs, or two sequences of the same length.

        Repeated values are merged. Positions count down the ranks, 0 for the highest score. `item(score, index)`
        produces the label of a chosen item on demand; without it items are their ranks.
        """
        if multiplicities is None:
            pairs = _listed("values", values)
            if not all(isinstance(pair, Sequence | np.ndarray) and len(pair) == 2 for pair in pairs):
                raise InvalidInput(
                    "values", plain("an entry that is not a pair"), "pairs (score, multiplicity) are needed"
                )
            values, multiplicities = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
        groups = histogram_of(_listed("values", values), _listed("multiplicities", multiplicities))
        scores = cls(None, groups, _position)
        if item is not None:
            scores._label = _Labels(*groups, item)
        return scores

    @cached_property
    def size(self) -> int:
        """The number of items, d."""
        return len(self._data) if self._data is not None else int(self.multiplicities.sum())

    @property
    def values(self) -> Array:
        """The distinct scores, descending."""
        return self.distinct.values

    @property
    def multiplicities(self) -> Array:
        """How many items hold each of `values`."""
        multiplicities = self.distinct.multiplicities
        assert multiplicities is not None
        return multiplicities

    @cached_property
    def distinct(self) -> Grouping:
        """The items grouped by score, highest first."""
        if self._groups is not None:
            values, multiplicities = self._groups
            return Grouping(values, multiplicities, _Ranks(multiplicities))
        assert self._data is not None
        return _grouped(self._data, *histogram_of(self._data, None))

    @cached_property
    def entries(self) -> Grouping:
        """The items in whichever groups make a draw cheapest: by score when few distinct scores are held by many."""
        if self._data is None:
            return self.distinct
        groups = short_histogram_of(self._data)
        return _grouped(self._data, *groups) if groups else Grouping(self._data, None, _group_itself)

    def exact(self) -> list[Fraction]:
        """Return the score of each position without error; for small domains."""
        if self._data is not None:
            return [Fraction(value) for value in self._data.tolist()]
        groups = zip(self.values.tolist(), self.multiplicities.tolist(), strict=True)
        return [Fraction(value) for value, size in groups for _ in range(size)]

    def item(self, position: int) -> Any:
        """Return the item at a position of the input."""
        return self._label(int(position))

    def items(self, positions: Iterable[Any]) -> list[Any]:
        """Return the items at several positions of the input."""
        return [self.item(position) for position in positions]

    def __len__(self) -> int:
        """Return the number of items."""
        return self.size

    def __repr__(self) -> str:
        """Show the public size only."""
        return f"<Scores of {self.size} items>"


def _position(position: int) -> int:
    return position


def _checked(data: Any) -> Array:
    array = exact_array("scores", data)
    if not len(array):
        raise InvalidInput("scores", plain("no item"), "at least one item is needed")
    return array


def _listed(argument: str, data: Any) -> Any:
    """Return an array as it is and anything else that can be gone through once as a list."""
    if isinstance(data, np.ndarray):
        return data
    if not isinstance(data, Iterable):
        raise InvalidInput(argument, plain(f"an object of type {type(data).__name__}"), "a sequence is needed")
    return list(data)


def _grouped(data: Array, values: Array, multiplicities: Array) -> Grouping:
    """Return items grouped by score, found again by going through the data."""
    return Grouping(values, multiplicities, _Found(data, values))


def _group_itself(groups: Array, indexes: Array) -> Array:
    return groups


@dataclass(frozen=True, repr=False)
class _Found:
    """Positions of items that are grouped by score, found by going through the data."""

    data: Array
    values: Array

    def __call__(self, groups: Array, indexes: Array) -> Array:
        return positions_of_members(self.data, self.values[groups], indexes)


@dataclass(frozen=True, repr=False)
class _Ranks:
    """Positions of a histogram: members are numbered down the ranks."""

    multiplicities: Array

    @cached_property
    def _starts(self) -> Array:
        return np.concatenate([self.multiplicities[:0], [0], np.cumsum(self.multiplicities)[:-1]])

    def __call__(self, groups: Array, indexes: Array) -> Array:
        positions: Array = self._starts[groups] + indexes
        return positions


@dataclass(frozen=True, repr=False)
class _Labels:
    """Items of a histogram, produced on demand from their score and index within its group."""

    values: Array
    multiplicities: Array
    item: Callable[[Any, int], Any]

    @cached_property
    def _ends(self) -> Array:
        return np.cumsum(self.multiplicities)

    def __call__(self, position: int) -> Any:
        group = int(np.searchsorted(self._ends, position, side="right"))
        index = position - int(self._ends[group]) + int(self.multiplicities[group])
        value = self.values[group]
        return self.item(value.item() if isinstance(value, np.generic) else value, index)
