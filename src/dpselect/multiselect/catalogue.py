"""What a server can answer with: results at positions on a line, sorted once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from dpselect._arrays import FloatArray
from dpselect.errors import InvalidInput, plain

Best = Callable[[float], Any]
"""The papers' OPT: the best result for a user at a position."""


class Result(NamedTuple):
    """One result: what it is, and for which position it is best."""

    item: Any
    position: float

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain data."""
        return {"item": self.item, "position": self.position}


class Catalogue:
    """Results sorted by position.

    `positions` are numbers, `items` what is there; without items they are numbered as given. Items may be any
    sequence, also one that makes its members when asked, so that a million results need eight megabytes.
    """

    def __init__(self, positions: Any, items: Sequence[Any] | None = None) -> None:
        given = _numbers(positions)
        if items is not None and len(items) != len(given):
            raise InvalidInput(
                "items", plain(f"{len(items)} of them"), f"one for each of the {len(given)} positions is needed"
            )
        ascending = bool((given[1:] >= given[:-1]).all())
        self._order = None if ascending else np.argsort(given, kind="stable")
        self._positions = given if self._order is None else given[self._order]
        self._positions.setflags(write=False)
        self._view = self._positions.data
        self._items = items

    @classmethod
    def of(cls, catalogue: Any) -> Catalogue:
        """Return a catalogue of what was given: positions, or a mapping item → position."""
        if isinstance(catalogue, Catalogue):
            return catalogue
        if isinstance(catalogue, Mapping):
            return cls(list(catalogue.values()), list(catalogue))
        return cls(catalogue)

    @property
    def positions(self) -> FloatArray:
        """All positions, ascending."""
        return self._positions

    @property
    def items(self) -> Sequence[Any] | None:
        """What is there, in the order in which it was given; None if the results are numbered."""
        return self._items

    def __len__(self) -> int:
        """How many results there are."""
        return len(self._positions)

    def __getitem__(self, place: int) -> Result:
        """Return the result at a place of the sorted list."""
        number = place if self._order is None else int(self._order[place])
        return Result(number if self._items is None else self._items[number], self._view[place])

    def nearest(self, targets: FloatArray) -> list[int]:
        """Return a place for each target, all different: the nearest that no earlier target has, the lower of equals.

        One binary search a target; the places taken point to the free ones beside their run, so that none is walked
        again and again.
        """
        if len(targets) > len(self):
            raise InvalidInput("k", len(targets), f"at most {len(self)} are needed, the number of results")
        view, last = self._view, len(self)
        lower: dict[int, int] = {}
        upper: dict[int, int] = {}
        chosen = []
        for target, start in zip(targets.tolist(), np.searchsorted(self._positions, targets).tolist(), strict=True):
            below = _free(lower, start - 1) if start - 1 in lower else start - 1
            above = _free(upper, start) if start in upper else start
            left = below >= 0 and (above == last or target - view[below] <= view[above] - target)
            place = below if left else above
            lower[place], upper[place] = (below - 1, above) if left else (below, above + 1)
            chosen.append(place)
        return chosen


def _free(taken: dict[int, int], place: int) -> int:
    """Return the first free place that a taken one leads to, and make all on the way lead there at once."""
    free = place
    while free in taken:
        free = taken[free]
    while place != free:
        taken[place], place = free, taken[place]
    return free


def _numbers(positions: Any) -> FloatArray:
    try:
        listed = positions if isinstance(positions, np.ndarray | Sequence) else _listed(positions)
        numbers = np.array(listed, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InvalidInput("catalogue", plain("something that is no list of numbers"), _ACCEPTED) from None
    if numbers.ndim != 1 or not len(numbers):
        raise InvalidInput("catalogue", plain("no list of results" if numbers.ndim != 1 else "no result"), _ACCEPTED)
    if not np.isfinite(numbers).all():
        first = int(np.argmin(np.isfinite(numbers)))
        raise InvalidInput("catalogue", plain(f"NaN or infinity at index {first} (counted from 0)"), _ACCEPTED)
    return numbers


def _listed(positions: Any) -> Any:
    to_numpy = getattr(positions, "to_numpy", None)
    if to_numpy is not None:
        return to_numpy()
    return list(positions) if isinstance(positions, Iterable) else positions


_ACCEPTED = "positions of at least one result are needed: finite numbers, or a mapping item → position"
