"""Scores: how many items have which score, and which items these are.

A mechanism needs only the distinct scores and how many items have each. It answers with members of these groups, and
`Scores` turns them into items. So the cost of a draw depends on the number of distinct scores instead of items, a group
may be far larger than memory, and a database only has to send its histogram.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from dpselect._arrays import Array
from dpselect._numbers import (
    INTEGER_LIMIT,
    Extent,
    counted,
    counted_if_few,
    exact_array,
    exact_fraction,
    histogram_of,
)
from dpselect.errors import InvalidInput, plain

_SEARCHED = 1 << 16
"""Items searched at a time, so that memory stays small however large the tied groups are."""


@dataclass(frozen=True, repr=False)
class Grouping:
    """Groups of items with equal scores, and a function that finds their members.

    With `multiplicities` the values are distinct and descending. None means that every item is a group of its own, in
    the order of the input, even if scores are equal: this is cheaper, and makes no difference to a mechanism that
    treats items alike.
    """

    values: Array
    multiplicities: Array | None
    locate: Callable[[Array, Array], Array]

    def members(self, groups: Array, indexes: Array) -> Members:
        """Return the indexes[i]-th member of each groups[i]."""
        return Members(self, groups, indexes)


@dataclass(frozen=True, repr=False)
class Members:
    """Chosen items: item i is member `indexes[i]` of group `groups[i]` of a grouping."""

    grouping: Grouping
    groups: Array
    indexes: Array

    @property
    def values(self) -> Array:
        """The scores of the chosen items. They are private: never release them."""
        chosen: Array = self.grouping.values[self.groups]
        return chosen

    def positions(self) -> Array:
        """Return the positions of the chosen items in the input."""
        return self.grouping.locate(self.groups, self.indexes) if len(self.groups) else self.groups


@dataclass(frozen=True)
class Ranking:
    """Scores in descending order. Ranks count from 0; equal scores have consecutive ranks in a fixed order.

    `ends[g]` is the number of items in groups 0..g. The members of a group are exchangeable, so it does not matter to a
    law that depends on scores alone which of them has which rank.
    """

    grouping: Grouping
    ends: Array

    @classmethod
    def of(cls, grouping: Grouping) -> Ranking:
        """Return the ranking of items that are grouped by score."""
        assert grouping.multiplicities is not None
        return cls(grouping, np.cumsum(grouping.multiplicities))

    def groups(self, ranks: Any) -> Array:
        """Return the group of each rank."""
        found: Array = np.searchsorted(self.ends, ranks, side="right")
        return found

    def scores(self, ranks: Any) -> Array:
        """Return the score of each rank."""
        found: Array = self.grouping.values[self.groups(ranks)]
        return found

    def exact_score(self, rank: int) -> Fraction:
        """Return the score of one rank without error."""
        return exact_fraction(self.grouping.values[int(self.groups(rank))])

    def members(self, ranks: Array) -> Members:
        """Return the items with the given ranks."""
        groups = self.groups(ranks)
        starts = np.where(groups > 0, self.ends[groups - 1], 0)
        return self.grouping.members(groups, ranks - starts)


class Scores:
    """The scores of all items of a public domain.

    Use `Scores.of` for a mapping, Series, array or list, and `Scores.from_histogram` for (score, multiplicity) pairs.
    Scores are integers of any size, floats or fractions; they are taken as the exact numbers given.

    Examples
    --------
    >>> scores = Scores.of({"tea": 90, "coffee": 80, "milk": 80})
    >>> scores
    <Scores of 3 items>
    >>> scores.values.tolist(), scores.multiplicities.tolist()
    ([90, 80], [1, 2])
    """

    def __init__(
        self,
        data: Array | None,
        groups: tuple[Array, Array] | None,
        label: Callable[[int], Any],
        extent: Extent | None = None,
    ) -> None:
        self._data = data
        self._groups = groups
        self._label = label
        if extent is not None:
            self._extent = extent

    @classmethod
    def of(cls, data: Any) -> Scores:
        """Return scores given in any of the accepted forms.

        Parameters
        ----------
        data
            A mapping item → score, a pandas or polars Series, a one-dimensional array or list (items are then
            0..d−1), or `Scores`, which are returned as they are.

        Raises
        ------
        InvalidInput
            If there is no item, an item has no score or more than one, or a score is not a finite number.

        Examples
        --------
        >>> len(Scores.of([3, 1, 4, 1]))
        4
        """
        if isinstance(data, Scores):
            return data
        library = type(data).__module__.partition(".")[0]
        if isinstance(data, Mapping):
            items = list(data.keys())
            return cls._of_items(list(data.values()), items.__getitem__)
        if library == "pandas" and hasattr(data, "index") and getattr(data, "ndim", 0) == 1:
            if not data.index.is_unique:
                raise InvalidInput("scores", plain("a Series with repeated labels"), "must have one score per item")
            return cls._of_items(data.to_numpy(), data.index.__getitem__)
        if library == "polars" and type(data).__name__ == "Series":
            is_plain = data.dtype.is_float() or (data.dtype.is_integer() and "128" not in str(data.dtype))
            return cls._of_items(data.to_numpy() if is_plain and not data.null_count() else data.to_list(), _position)
        if isinstance(data, np.ndarray) or (
            isinstance(data, Sequence) and not isinstance(data, str | bytes | bytearray)
        ):
            return cls._of_items(data, _position)
        raise InvalidInput(
            "scores",
            plain(f"an object of type {type(data).__name__}"),
            "must be a mapping from item to score, a pandas or polars Series, a one-dimensional array or list, "
            "or dpselect.Scores",
        )

    @classmethod
    def _of_items(cls, data: Any, label: Callable[[int], Any]) -> Scores:
        """Return scores with one number for each item; raise InvalidInput if there is none."""
        if isinstance(data, np.ndarray) and data.dtype == np.int64 and data.ndim == 1 and len(data):
            extent = Extent.of(np.asarray(data))
            if extent.low > -INTEGER_LIMIT and extent.high < INTEGER_LIMIT and not np.ma.is_masked(data):
                return cls(np.asarray(data), None, label, extent)
        array = exact_array("scores", data)
        if not len(array):
            raise InvalidInput("scores", plain("none"), "must have at least one item")
        return cls(array, None, label)

    @classmethod
    def from_histogram(
        cls,
        values: Iterable[Any],
        multiplicities: Iterable[Any] | None = None,
        *,
        item: Callable[[Any, int], Any] | None = None,
    ) -> Scores:
        """Return scores of which only the histogram is known.

        Position 0 is the item with the highest score, and so on in descending order.

        Parameters
        ----------
        values
            The scores, or pairs (score, multiplicity) if `multiplicities` is left out. Equal scores are merged.
        multiplicities
            How many items have each score.
        item
            A function (score, index) → item that names a chosen item. Without it, items are their ranks.

        Raises
        ------
        InvalidInput
            If there is no item, a multiplicity is not a whole number, or the lengths differ.

        Examples
        --------
        >>> scores = Scores.from_histogram([(9, 1), (4, 10**18)], item=lambda score, index: f"{score}/{index}")
        >>> scores.size == 10**18 + 1
        True
        >>> scores.item(7)
        '4/6'
        """
        if multiplicities is None:
            pairs = _listed("values", values)
            if not all(isinstance(pair, Sequence | np.ndarray) and len(pair) == 2 for pair in pairs):
                raise InvalidInput(
                    "values", plain("an entry that is not a pair"), "must be pairs (score, multiplicity)"
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
        """How many items have each of `values`."""
        multiplicities = self.distinct.multiplicities
        assert multiplicities is not None
        return multiplicities

    @cached_property
    def distinct(self) -> Grouping:
        """The items grouped by score, highest first."""
        if self._groups is not None:
            values, multiplicities = self._groups
            return Grouping(values, multiplicities, _RankedPositions(multiplicities))
        assert self._data is not None
        return self._grouped(*counted(self._data, self._extent))

    @cached_property
    def entries(self) -> Grouping:
        """The items in groups that make a draw cheap: by score if there are few distinct ones, else one by one."""
        if self._data is None:
            return self.distinct
        groups = counted_if_few(self._data, self._extent)
        return Grouping(self._data, None, _group_itself) if groups is None else self._grouped(*groups)

    def _grouped(self, values: Array, multiplicities: Array) -> Grouping:
        assert self._data is not None
        return Grouping(values, multiplicities, _SearchedPositions(self._data, values, self._extent))

    @cached_property
    def _extent(self) -> Extent | None:
        """The extent of integer scores."""
        return Extent.of(self._data) if self._data is not None and self._data.dtype == np.int64 else None

    def exact(self) -> list[Fraction]:
        """Return the score of each position as a Fraction; for small domains."""
        if self._data is not None:
            return [Fraction(value) for value in self._data.tolist()]
        groups = zip(self.values.tolist(), self.multiplicities.tolist(), strict=True)
        return [Fraction(value) for value, size in groups for _ in range(size)]

    def negated(self) -> Scores:
        """Return the same items with negated scores: the k highest of those are the k lowest of these."""
        if self._data is not None:
            return Scores(-self._data, None, self._label)
        last = self.size - 1
        groups = -self.values[::-1], self.multiplicities[::-1]
        return Scores(None, groups, lambda position: self._label(last - position))

    def item(self, position: int) -> Any:
        """Return the item at a position."""
        return self._label(int(position))

    def items(self, positions: Iterable[Any]) -> list[Any]:
        """Return the items at several positions."""
        return [self.item(position) for position in positions]

    def listed(self) -> list[Any]:
        """Return all items, which are public; an empty list if they are just numbered, or named after their scores."""
        if self._data is None or self._label is _position:
            return []
        return self.items(range(self.size))

    def __len__(self) -> int:
        """Return the number of items."""
        return self.size

    def __repr__(self) -> str:
        """Show the size only, which is public."""
        return f"<Scores of {self.size} items>"


def _position(position: int) -> int:
    return position


def _listed(argument: str, data: Any) -> Any:
    """Return an array unchanged, and any other iterable as a list."""
    if isinstance(data, np.ndarray):
        return data
    if not isinstance(data, Iterable):
        raise InvalidInput(argument, plain(f"an object of type {type(data).__name__}"), "must be a sequence")
    return list(data)


def _group_itself(groups: Array, indexes: Array) -> Array:
    return groups


@dataclass(frozen=True, repr=False)
class _SearchedPositions:
    """Positions of items that are grouped by score, found by searching the data."""

    data: Array
    values: Array
    extent: Extent | None

    def __call__(self, groups: Array, indexes: Array) -> Array:
        wanted = self.values[groups]
        places = None if self.extent is None else self.extent.places_from(wanted.min(), len(self.data))
        if places is None:
            return positions_of_members(self.data, wanted, indexes)
        found: Array = places[positions_of_members(self.data[places], wanted, indexes)]
        return found


@dataclass(frozen=True, repr=False)
class _RankedPositions:
    """Positions of the items of a histogram: 0 is the highest score."""

    multiplicities: Array

    @cached_property
    def _starts(self) -> Array:
        return np.concatenate([self.multiplicities[:0], [0], np.cumsum(self.multiplicities)[:-1]])

    def __call__(self, groups: Array, indexes: Array) -> Array:
        positions: Array = self._starts[groups] + indexes
        return positions


@dataclass(frozen=True, repr=False)
class _Labels:
    """Items of a histogram, named on demand from their score and their index among equal scores."""

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


def positions_of_members(data: Array, values: Array, indexes: Array) -> Array:
    """Return, for each i, the position in `data` of the indexes[i]-th item with score values[i].

    One pass over the data in blocks: a running count of each wanted score tells which block holds a member.
    """
    wanted, groups = np.unique(values, return_inverse=True)
    lowest, highest = wanted[0], wanted[-1]
    code_of = _coder(wanted, len(data))
    positions = np.full(len(values), -1, dtype=np.int64)
    seen = np.zeros(len(wanted), dtype=np.int64)
    for start in range(0, len(data), _SEARCHED):
        block = data[start : start + _SEARCHED]
        near = np.flatnonzero((block >= lowest) & (block <= highest))
        if not len(near):
            continue
        code = code_of(block[near])
        hit = code >= 0
        near, code = near[hit], code[hit]
        here = np.bincount(code, minlength=len(wanted))
        offset = indexes - seen[groups]
        found = np.flatnonzero((offset >= 0) & (offset < here[groups]))
        seen += here
        if len(found):
            asked = np.zeros(len(wanted), dtype=bool)
            asked[groups[found]] = True
            kept = np.flatnonzero(asked[code])
            order = kept[np.argsort(code[kept], kind="stable")]
            starts = np.cumsum(np.where(asked, here, 0)) - here
            positions[found] = near[order[starts[groups[found]] + offset[found]]] + start
    return positions


def _coder(wanted: Array, size: int) -> Callable[[Array], Array]:
    """Return a function from scores in the range of `wanted` to their index in it, −1 for scores not wanted."""
    lowest = wanted[0]
    if wanted.dtype == np.int64 and int(wanted[-1]) - int(lowest) <= size:
        codes = np.full(int(wanted[-1]) - int(lowest) + 1, -1, dtype=np.int32)
        codes[wanted - lowest] = np.arange(len(wanted))
        return lambda scores: codes[scores - lowest]

    def search(scores: Array) -> Array:
        code = np.searchsorted(wanted, scores)
        return np.where(wanted[code] == scores, code, -1)

    return search
