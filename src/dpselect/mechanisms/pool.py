"""The top of a list of items that nobody can name in advance: what a mechanism for an unknown domain may look at."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import Any

import numpy as np

from dpselect._arrays import Array
from dpselect._numbers import exact_array
from dpselect.mechanisms.base import spread_over_members
from dpselect.mechanisms.ranking import exact
from dpselect.sampling import BitSource
from dpselect.scores import Grouping, Members, Scores

FEW = 1 << 12
"""Nameless items that are listed one by one; more of them are a group."""


@dataclass(frozen=True, repr=False)
class Pool:
    """The `size` highest scores and the next one, x_[size+1].

    Only scores above 0 belong to items that exist. Where there are fewer than `size`, nameless items of score 0 fill
    the pool, and the next score is 0: a mechanism sees the same number of items whatever the data. Among items that
    are tied at the edge of the pool, who is inside is drawn uniformly (restricted.md says why any rule will do that
    does not look at the data).
    """

    scores: Scores
    """The scores of the pool, nameless ones included."""
    following: Any
    """x_[size+1], 0 if there is none."""
    everybody: Grouping | None = None
    """All items, if ties at the edge of the pool are still to be broken; None if the pool holds all there are."""

    @classmethod
    def of(cls, scores: Scores, size: int) -> Pool:
        """Return the pool of all scores, whoever has computed them."""
        grouping = scores.distinct
        assert grouping.multiplicities is not None
        existing = int(np.count_nonzero(grouping.values > 0))
        sizes = grouping.multiplicities[:existing]
        reached = np.cumsum(sizes)
        named = min(int(np.searchsorted(reached, size)) + 1, existing)
        within = sizes[:named].astype(object)
        following: Any = 0
        if existing and reached[-1] > size:
            surplus = int(reached[named - 1]) - size
            within[-1] = int(within[-1]) - surplus
            following = grouping.values[named - 1 if surplus else named]
        return cls(_histogram(grouping.values[:named], within.astype(np.int64), size), following, grouping)

    @classmethod
    def of_rows(cls, scores: Any, size: int, following: Any) -> Pool:
        """Return the pool of the rows that an engine answers: at most `size` scores, and the one after them.

        `following` is 0 when there are no further items. Positions count down the scores, 0 for the highest; equal ones
        keep the order of the rows.
        """
        # Together, so that what is subtracted later is of one kind: of a float and a fraction Python makes a float.
        numbers = exact_array("scores", [*scores, following])
        values, following = numbers[:-1], max(numbers[-1], 0)
        if (values[1:] > values[:-1]).any():
            values = -np.sort(-values, kind="stable")
        if len(values) and values[-1] <= 0:
            values = values[values > 0]
        missing = size - len(values)
        if missing <= FEW:
            filled = np.concatenate([values, np.zeros(missing, dtype=values.dtype)]) if missing else values
            return cls(Scores(filled, None, int), following)
        starts = np.flatnonzero(np.concatenate([np.ones(min(len(values), 1), bool), values[1:] != values[:-1]]))
        return cls(_histogram(values[starts], np.diff(np.append(starts, len(values))), size), following)

    @property
    def named(self) -> int:
        """How many of the distinct scores belong to items that exist."""
        return int(np.count_nonzero(self.scores.values > 0))

    def entrants(self) -> tuple[Array, Array | None]:
        """Return the distinct score of each entrant, one by one; where nameless items are many, each score once, and
        how many entrants it has.
        """
        scores, groups = self.scores, np.arange(len(self.scores.values))
        if int(scores.multiplicities[self.named :].sum()) > FEW:
            return groups, scores.multiplicities
        return np.repeat(groups, scores.multiplicities), None

    def first(self, chosen: Members, number: int, bits: BitSource) -> Members:
        """Return the first few of what a mechanism chose of `scores`."""
        if self.everybody is not None:
            return self.members(chosen.groups[:number], bits)
        return Members(chosen.grouping, chosen.groups[:number], chosen.indexes[:number])

    def members(self, groups: Array, bits: BitSource) -> Members:
        """Return an item for each win of a distinct score: those of one score are a uniform sequence of all its items.

        Equal scores make items exchangeable to a mechanism that treats labels alike, and so does the draw of who is
        inside the pool; so this completes the law of a draw that only decided how often each score wins.
        """
        return spread_over_members(self.everybody or self.scores.distinct, groups, bits)


def _histogram(values: Array, sizes: Array, size: int) -> Scores:
    """Return the scores with as many nameless items as are missing."""
    missing = size - int(sizes.sum())
    if missing:
        values, sizes = np.append(values, 0), np.append(sizes, missing)
    return Scores(None, (values, sizes), int)


@dataclass(frozen=True)
class RankedPool:
    """A pool of a small domain by rank: its exact scores, nameless ones last, and the positions that may hold them."""

    scores: tuple[Any, ...]
    named: int
    following: Any
    inside: tuple[int, ...]
    """Positions that are in the pool for certain, by rank."""
    edge: tuple[int, ...]
    """Positions tied at the edge, of which the ranks behind `inside` hold a uniform subset."""

    @classmethod
    def of(cls, scores: Scores, size: int) -> RankedPool:
        """Return the pool of a small domain."""
        values = scores.exact()
        ranked = sorted((place for place in range(len(values)) if values[place] > 0), key=lambda place: -values[place])
        named = min(size, len(ranked))
        following = values[ranked[size]] if len(ranked) > size else exact(0)
        held = tuple(values[place] for place in ranked[:named])
        lowest = held[-1] if named < len(ranked) else None
        inside = tuple(place for place in ranked[:named] if values[place] != lowest)
        edge = tuple(place for place in ranked if values[place] == lowest)
        return cls((*held, *[exact(0)] * (size - named)), named, following, inside, edge)

    @property
    def choices(self) -> int:
        """How many ways there are to break the ties at the edge."""
        return comb(len(self.edge), self.named - len(self.inside))

    def holders(self) -> Iterator[tuple[int, ...]]:
        """Yield the positions that hold the named ranks, for each way to break the ties."""
        for held in combinations(self.edge, self.named - len(self.inside)):
            yield (*self.inside, *held)
