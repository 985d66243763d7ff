"""Mechanisms for an unknown domain: they see only a pool of the highest scores, and may answer fewer than k items."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sized
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import combinations
from math import comb, perm
from typing import Any, ClassVar

import numpy as np

from dpselect._arrays import Array
from dpselect._numbers import exact_array, positive_integer
from dpselect.errors import InvalidInput, plain
from dpselect.mechanisms.base import LARGEST_LAW, Law, Mechanism, spread_over_members
from dpselect.privacy.conversion import float_above
from dpselect.privacy.guarantee import probability_of_failure
from dpselect.sampling import BitSource
from dpselect.scores import Grouping, Members, Ranking, Scores

POOL_FOR_EACH = 10
"""Default size of the pool, as a multiple of k (docs/unknown.md)."""

LARGEST_POOL = 10**7
"""Maximum size of the pool, which is read into memory."""

FEW = 1 << 12
"""Maximum number of nameless items that are listed one by one; more of them form a group."""

NOTHING = Scores(None, (np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)), int)
"""The scores of no item."""


@dataclass(frozen=True, repr=False)
class Pool:
    """The `size` highest scores and the next one, x_[size+1].

    Only items with scores above 0 exist. If there are fewer than `size`, nameless items of score 0 fill the pool and
    the next score is 0, so a mechanism sees the same number of items whatever the data. Among items tied at the edge
    of the pool, those inside are drawn uniformly (restricted.md explains why any rule is fine that does not depend on
    the data).
    """

    scores: Scores
    """The scores of the pool, including nameless items."""
    following: Any
    """x_[size+1], or 0 if there is none."""
    everybody: Grouping | None = None
    """All items, if ties at the edge of the pool are still to be broken; otherwise None."""

    @classmethod
    def of(cls, scores: Scores, size: int) -> Pool:
        """Return the pool of the scores of all items."""
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
        """Return the pool of rows read from an engine: at most `size` scores, and the next one, 0 if there is none.

        Positions count down the scores, 0 for the highest; equal scores keep the order of the rows.
        """
        # One array, so that all numbers are of one kind: Python turns a float minus a Fraction into a float.
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
        """The number of distinct scores of items that exist."""
        return int(np.count_nonzero(self.scores.values > 0))

    def top(self, size: int) -> Scores:
        """Return the scores of the `size` highest items."""
        reached = np.cumsum(self.scores.multiplicities)
        groups = int(np.searchsorted(reached, size)) + 1
        sizes = self.scores.multiplicities[:groups].copy()
        sizes[-1] -= int(reached[groups - 1]) - size
        return Scores(None, (self.scores.values[:groups], sizes), int)

    def smaller(self, size: int) -> Pool:
        """Return the pool of the `size` highest scores, which must be fewer than in this one."""
        following = Ranking.of(self.scores.distinct).scores(np.array([size]))[0]
        return Pool(self.top(size), following, self.everybody)

    def entrants(self) -> tuple[Array, Array | None]:
        """Return the index of the distinct score of each entrant, and None; or each index once, and its entrants.

        The second form is used if there are many nameless items.
        """
        scores, groups = self.scores, np.arange(len(self.scores.values))
        if int(scores.multiplicities[self.named :].sum()) > FEW:
            return groups, scores.multiplicities
        return np.repeat(groups, scores.multiplicities), None

    def first(self, chosen: Members, number: int, bits: BitSource) -> Members:
        """Return the first `number` of the items that a mechanism chose from `scores`."""
        if self.everybody is not None:
            return self.members(chosen.groups[:number], bits)
        return Members(chosen.grouping, chosen.groups[:number], chosen.indexes[:number])

    def members(self, groups: Array, bits: BitSource) -> Members:
        """Return an item for each win of a distinct score: a uniform sequence of the items with that score.

        Items with equal scores are exchangeable, and so are the draws of who is inside the pool; so this completes a
        draw that only decided how often each score wins.
        """
        return spread_over_members(self.everybody or self.scores.distinct, groups, bits)


def _histogram(values: Array, sizes: Array, size: int) -> Scores:
    """Return the scores, filled up to `size` items with nameless ones."""
    missing = size - int(sizes.sum())
    if missing:
        values, sizes = np.append(values, 0), np.append(sizes, missing)
    return Scores(None, (values, sizes), int)


@dataclass(frozen=True)
class RankedPool:
    """The pool of a small domain by rank: exact scores, nameless items last, and the positions that may have each."""

    scores: tuple[Any, ...]
    named: int
    following: Any
    inside: tuple[int, ...]
    """Positions that are certainly in the pool, by rank."""
    edge: tuple[int, ...]
    """Positions tied at the edge; a uniform subset of them has the ranks after `inside`."""

    @classmethod
    def of(cls, scores: Scores, size: int) -> RankedPool:
        """Return the pool of a small domain."""
        values = scores.exact()
        ranked = sorted((place for place in range(len(values)) if values[place] > 0), key=lambda place: -values[place])
        named = min(size, len(ranked))
        following = values[ranked[size]] if len(ranked) > size else Fraction(0)
        held = tuple(values[place] for place in ranked[:named])
        lowest = held[-1] if named < len(ranked) else None
        inside = tuple(place for place in ranked[:named] if values[place] != lowest)
        edge = tuple(place for place in ranked if values[place] == lowest)
        return cls((*held, *[Fraction(0)] * (size - named)), named, following, inside, edge)

    @property
    def choices(self) -> int:
        """The number of ways to break the ties at the edge."""
        return comb(len(self.edge), self.named - len(self.inside))

    def holders(self) -> Iterator[tuple[int, ...]]:
        """Yield the positions with the named ranks, for each way to break the ties."""
        for held in combinations(self.edge, self.named - len(self.inside)):
            yield (*self.inside, *held)


@dataclass(frozen=True, kw_only=True)
class UnknownDomain(Mechanism):
    """A private choice of at most k items that also hides which items exist: the base class for unknown domains.

    The guarantee covers the length of the answer, too. Most of these mechanisms are a `PooledDomain`.

    Examples
    --------
    >>> import dpselect as dps
    >>> mechanism = dps.LimitedDomain(k=2, epsilon=1.0, delta=1e-6)
    >>> isinstance(mechanism, UnknownDomain)
    True
    >>> mechanism.select({"tea": 900, "coffee": 700, "milk": 1}, seed=1).tolist()
    [0, 1]
    """

    may_stop: ClassVar[bool] = True

    def check_size(self, size: int) -> None:
        """Accept any number of items, which is private."""

    def table(self, scores: Any) -> Scores:
        """Return `Scores`; an empty table is accepted, since it must not be revealed that there is no item."""
        if isinstance(scores, Scores):
            return scores
        nothing = isinstance(scores, Sized) and not isinstance(scores, str | bytes | bytearray) and not len(scores)
        return NOTHING if nothing else Scores.of(scores)


@dataclass(frozen=True, kw_only=True)
class PooledDomain(UnknownDomain):
    """A mechanism for unknown domains that sees the `pool` highest scores and the next one.

    Parameters
    ----------
    k, epsilon, sensitivity
        As in `Mechanism`; the sensitivity must allow a score to stay unchanged.
    pool
        How many of the highest scores it sees, at least k; 10 k if left out.

    Raises
    ------
    InvalidInput
        If an argument is out of range.

    Examples
    --------
    >>> import dpselect as dps
    >>> mechanism = dps.LimitedDomain(k=2, epsilon=1.0, delta=1e-6)
    >>> isinstance(mechanism, PooledDomain), mechanism.pool
    (True, 20)
    """

    pool: int | None = None

    def check_pool(self) -> None:
        """Set the default pool; raise InvalidInput for a pool below k or a sensitivity that does not contain 0."""
        pool = POOL_FOR_EACH * self.k if self.pool is None else positive_integer("pool", self.pool)
        object.__setattr__(self, "pool", pool)
        if pool < self.k:
            raise InvalidInput("pool", pool, f"must be at least k = {self.k}; the answer is chosen from the pool")
        if pool > LARGEST_POOL:
            raise InvalidInput("pool", pool, f"must be at most {LARGEST_POOL}; the pool is read into memory")
        if not self.sensitivity.low <= 0 <= self.sensitivity.high:
            raise InvalidInput(
                "sensitivity", self.sensitivity, "must contain 0 in [low, high]; a person does not touch most items"
            )

    @property
    def pool_size(self) -> int:
        """The number of items in the pool."""
        assert self.pool is not None
        return self.pool

    def draw(self, scores: Scores, bits: BitSource) -> Members:
        """Return the answer for all scores, of which only the pool is used."""
        return self.draw_from(Pool.of(scores, self.pool_size), bits)

    @abstractmethod
    def draw_from(self, pool: Pool, bits: BitSource) -> Members:
        """Return the answer for a pool: a sequence in its private order, a set in uniformly random order."""

    @abstractmethod
    def ranked_law(self, scores: tuple[Fraction, ...], named: int, following: Fraction) -> Law:
        """Return the law of the answer as ranks of a pool, given its scores, the number named, and the next score."""

    def law(self, scores: Any) -> Law:
        """Return the probability of every outcome; ties at the edge of the pool are broken uniformly."""
        table = self.table(scores)
        outcomes = (perm if self.ordered else comb)(self.pool_size, min(self.k, 20))
        if table.size > LARGEST_LAW or outcomes > LARGEST_LAW:
            raise InvalidInput(
                "pool",
                plain(f"k = {self.k} of a pool of {self.pool_size}"),
                f"must allow at most {LARGEST_LAW} outcomes for law; use a smaller pool or k",
            )
        pool = RankedPool.of(table, self.pool_size)
        by_rank = _cached_ranked_law(self, pool.scores, pool.named, pool.following)
        law: Law = {}
        for holders in pool.holders():
            for ranks, probability in by_rank.items():
                outcome = type(ranks)(holders[rank] for rank in ranks)
                law[outcome] = law.get(outcome, 0.0) + probability / pool.choices
        return law


@lru_cache(maxsize=4096)
def _cached_ranked_law(mechanism: PooledDomain, scores: tuple[Fraction, ...], named: int, following: Fraction) -> Law:
    """Return the ranked law of a mechanism; neighbouring tables often share it."""
    return mechanism.ranked_law(scores, named, following)


def total(*parts: float) -> float:
    """Return the sum of several costs as a float, rounded up."""
    return float_above(sum((Fraction(part) for part in parts), Fraction()))


def positive_delta(argument: str, delta: Any) -> float:
    """Return a probability above 0 and below 1, rounded down."""
    given = delta
    try:
        number = probability_of_failure(delta)
        given = plain("none or 0")
    except InvalidInput:
        number = 0.0
    if not number:
        raise InvalidInput(
            argument,
            given,
            "must be above 0 and below 1 for an unknown domain; try 1e-6: which items exist can only be hidden up to "
            "a delta",
        )
    return number
