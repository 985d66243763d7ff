"""The results that a server can answer with, at positions on a line, and the cost if only these exist."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dpselect._arrays import FloatArray
from dpselect._numbers import finite_number
from dpselect.errors import InvalidInput, plain
from dpselect.multiselect.disutility import as_disutility, checked_rate
from dpselect.multiselect.offsets import checked_answers, checked_offsets, optimal_offsets

BestResult = Callable[[float], Any]
"""The paper's OPT: the best result for a user at a position."""

_REQUIREMENT = "must hold positions of at least one result: finite numbers, or a mapping item → position"


class Result(NamedTuple):
    """A result and the position that it is best for.

    Attributes
    ----------
    item
        What the result is: a name, or a number if the catalogue has no items.
    position
        The position it is best for.

    Examples
    --------
    >>> from dpselect.multiselect import Result
    >>> Result("harbour", 0.4).to_dict()
    {'item': 'harbour', 'position': 0.4}
    """

    item: Any
    position: float

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain data."""
        return {"item": self.item, "position": self.position}


class Catalogue:
    """Results sorted by position.

    Parameters
    ----------
    positions
        A number for each result, in any order.
    items
        What is at each position: any sequence, also one that makes its members on request, so that a million results
        need eight megabytes. Without items the results are numbered in the given order.

    Raises
    ------
    InvalidInput
        If a position is not a finite number, or the number of items differs from that of positions.

    Examples
    --------
    >>> from dpselect.multiselect import Catalogue
    >>> catalogue = Catalogue([5.0, 0.4, 3.1], ["station", "harbour", "market"])
    >>> catalogue[0]
    Result(item='harbour', position=0.4)
    """

    def __init__(self, positions: Any, items: Sequence[Any] | None = None) -> None:
        given = _checked_positions(positions)
        if items is not None and len(items) != len(given):
            raise InvalidInput("items", len(items), f"must be as many as positions ({len(given)})")
        ascending = bool((given[1:] >= given[:-1]).all())
        self._order = None if ascending else np.argsort(given, kind="stable")
        self._positions = given if self._order is None else given[self._order]
        self._positions.setflags(write=False)
        self._view = self._positions.data
        self._items = items

    @classmethod
    def of(cls, catalogue: Any) -> Catalogue:
        """Return a catalogue from positions, from a mapping item → position, or unchanged."""
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
        """The items in the order given; None if the results are numbered."""
        return self._items

    def __len__(self) -> int:
        """Return the number of results."""
        return len(self._positions)

    def __getitem__(self, place: int) -> Result:
        """Return the result at an index of the sorted list."""
        number = place if self._order is None else int(self._order[place])
        return Result(number if self._items is None else self._items[number], self._view[place])

    def check_answers(self, k: int) -> None:
        """Refuse more answers than there are results."""
        if k > len(self):
            raise InvalidInput("k", k, f"must be at most {len(self)} (the number of results)")

    def nearest(self, targets: FloatArray) -> list[int]:
        """Return a different index for each target: the nearest result not taken earlier, the lower of equals.

        One binary search a target. Taken indices point to the free ones beside their run, so that no run is walked
        repeatedly.
        """
        self.check_answers(len(targets))
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
    """Follow pointers from a taken index to the first free one, and shorten the path."""
    free = place
    while free in taken:
        free = taken[free]
    while place != free:
        taken[place], place = free, taken[place]
    return free


def _checked_positions(positions: Any) -> FloatArray:
    try:
        if hasattr(positions, "to_numpy"):
            positions = positions.to_numpy()
        elif isinstance(positions, Iterable) and not isinstance(positions, np.ndarray | Sequence):
            positions = list(positions)
        numbers = np.array(positions, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InvalidInput("catalogue", plain("something else"), _REQUIREMENT) from None
    if numbers.ndim != 1 or not len(numbers):
        raise InvalidInput("catalogue", plain("something else" if numbers.ndim != 1 else "no result"), _REQUIREMENT)
    if not np.isfinite(numbers).all():
        first = int(np.argmin(np.isfinite(numbers)))
        given = plain(f"NaN or infinity at index {first} (counted from 0)")
        raise InvalidInput("catalogue", given, "must have finite positions")
    return numbers


def shift_needed(user: float, results: npt.ArrayLike) -> FloatArray:
    """Return how far the user would have to move for each result to become their best.

    A result m is best for users who are nearest to it: `inf {|u − u'| : OPT(u') = m}`. Source: multi-selection,
    definition 3.

    Parameters
    ----------
    user, results
        Position of the user, and positions of the results.

    Returns
    -------
    FloatArray
        A distance for each result, by ascending position.

    Raises
    ------
    InvalidInput
        If a position is not a finite number.

    Examples
    --------
    >>> from dpselect.multiselect import shift_needed
    >>> shift_needed(1.0, [0.0, 4.0, 6.0]).tolist()
    [0.0, 1.0, 4.0]
    """
    borders = _borders(results)
    low, high = np.concatenate([[-np.inf], borders]), np.concatenate([borders, [np.inf]])
    place = float(finite_number("user", user))
    return np.maximum(np.maximum(low - place, place - high), 0.0)


def catalogue_cost(
    user: float,
    results: npt.ArrayLike,
    answers: int | npt.ArrayLike,
    epsilon: float,
    disutility: object = "linear",
) -> float:
    """Return the exact expected cost for one user if the answers to s are the results nearest to `s + a_i`.

    This is `E min_i h(inf {|u − u'| : OPT(u') = OPT(s + a_i)})` with s ~ Laplace(1/ε) about u. The answers change with
    s at finitely many points, so it is a finite sum. It is at most `expected_cost(answers, …)` for every user and all
    results. Source: multi-selection, theorem 25; multiselect.md.

    Parameters
    ----------
    user, results
        Position of the user, and positions of the results.
    answers, epsilon, disutility
        As in `expected_cost`.

    Returns
    -------
    float

    Raises
    ------
    InvalidInput
        If an argument is out of range.

    Examples
    --------
    >>> from dpselect.multiselect import catalogue_cost, expected_cost
    >>> catalogue_cost(1.0, [0.0, 4.0, 6.0], 2, epsilon=1.0) <= expected_cost(2, epsilon=1.0)
    True
    """
    epsilon, h = checked_rate(epsilon), as_disutility(disutility)
    if np.ndim(answers) == 0:
        offsets = optimal_offsets(checked_answers(answers), epsilon, h)
    else:
        offsets = checked_offsets(answers)
    borders = _borders(results)
    moves = h(shift_needed(user, results))
    place = float(finite_number("user", user))
    changes = np.unique(np.subtract.outer(borders, offsets)) - place
    if not len(changes):
        return float(moves.min())
    ends = np.concatenate([[-np.inf], changes, [np.inf]])
    middles = np.concatenate([changes[:1] - 1, (changes[1:] + changes[:-1]) / 2, changes[-1:] + 1])
    chosen = np.searchsorted(borders, np.add.outer(middles + place, offsets))
    return float(_masses(ends, epsilon) @ moves[chosen].min(axis=1))


def _borders(results: npt.ArrayLike) -> FloatArray:
    """Return the midpoints between neighbouring results."""
    try:
        positions = np.unique(np.asarray(results, dtype=np.float64))
    except (TypeError, ValueError):
        positions = np.array([])
    if not positions.size or not np.isfinite(positions).all():
        raise InvalidInput("results", plain("something else"), "must be a list of at least one finite position")
    return np.asarray((positions[1:] + positions[:-1]) / 2)


def _masses(ends: FloatArray, epsilon: float) -> FloatArray:
    """Return the probability of each interval under Laplace(1/ε), each side of 0 by itself to avoid cancellation."""
    scaled = epsilon * ends
    below = np.exp(np.minimum(scaled, 0)) / 2
    above = np.exp(-np.maximum(scaled, 0)) / 2
    return np.asarray(np.diff(below) - np.diff(above))
