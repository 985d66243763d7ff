"""What mechanisms for an unknown domain share: they look at the top of the list only, and may answer fewer than k."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sized
from dataclasses import dataclass
from fractions import Fraction
from math import comb, perm
from typing import Any, ClassVar

import numpy as np

from dpselect._numbers import positive_integer
from dpselect.errors import InvalidInput, plain
from dpselect.mechanisms.base import LARGEST_LAW, Law, Mechanism
from dpselect.mechanisms.pool import Pool, RankedPool
from dpselect.privacy.conversion import float_above
from dpselect.privacy.guarantee import probability_of_failure
from dpselect.sampling import BitSource
from dpselect.scores import Members, Scores

POOL_FOR_EACH = 10
"""Items looked at for each item that is asked for, unless `pool` says otherwise (docs/unknown.md)."""

LARGEST_POOL = 10**7
"""Rows of a pool that are read into memory at most."""

NOTHING = Scores(None, (np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)), int)
"""The scores of no item."""


@dataclass(frozen=True, kw_only=True)
class UnknownDomain(Mechanism):
    """A private choice of at most k items, private even about which items exist.

    It sees the `pool` highest scores and the next one. An answer with fewer than k items was stopped for the sake of
    privacy; that it was, and after how many, is part of what the guarantee covers.
    """

    may_stop: ClassVar[bool] = True

    pool: int | None = None

    def check_pool(self) -> None:
        """Fill in the default pool, and refuse one that is smaller than k or a sensitivity that leaves out 0."""
        pool = POOL_FOR_EACH * self.k if self.pool is None else positive_integer("pool", self.pool)
        object.__setattr__(self, "pool", pool)
        if pool < self.k:
            raise InvalidInput("pool", pool, f"at least k = {self.k} is needed: the answer is chosen from the pool")
        if pool > LARGEST_POOL:
            raise InvalidInput("pool", pool, f"at most {LARGEST_POOL} is accepted, the pool being read into memory")
        if not self.sensitivity.low <= 0 <= self.sensitivity.high:
            raise InvalidInput(
                "sensitivity", self.sensitivity, "0 must lie within it: a person leaves most items of the world alone"
            )

    @property
    def pool_size(self) -> int:
        """The number of items that are looked at."""
        assert self.pool is not None
        return self.pool

    def check_size(self, size: int) -> None:
        """Accept any number of items: it is private."""

    def draw(self, scores: Scores, bits: BitSource) -> Members:
        """Return the answer for all scores, of which only the top is used."""
        return self.draw_from(Pool.of(scores, self.pool_size), bits)

    @abstractmethod
    def draw_from(self, pool: Pool, bits: BitSource) -> Members:
        """Return the answer for a pool: a sequence in its private order, a set in uniformly random order."""

    @abstractmethod
    def ranked_law(self, scores: tuple[Fraction, ...], named: int, following: Fraction) -> Law:
        """Return the law of the answer as ranks of a pool, given its scores and how many of them have a name."""

    def table(self, scores: Any) -> Scores:
        """Return what was given as scores; that there is no item at all must not show, so it is accepted."""
        nothing = isinstance(scores, Sized) and not isinstance(scores, str | bytes | bytearray) and not len(scores)
        return NOTHING if nothing else Scores.of(scores)

    def law(self, scores: Any) -> Law:
        """Return the probability of every outcome, ties at the edge of the pool broken uniformly."""
        table = self.table(scores)
        outcomes = (perm if self.ordered else comb)(self.pool_size, min(self.k, 20))
        if table.size > LARGEST_LAW or outcomes > LARGEST_LAW:
            raise InvalidInput(
                "pool",
                plain(f"k = {self.k} of a pool of {self.pool_size}"),
                f"law lists every outcome, at most {LARGEST_LAW}: a smaller pool or k is needed",
            )
        pool = RankedPool.of(table, self.pool_size)
        by_rank = self.ranked_law(pool.scores, pool.named, pool.following)
        law: Law = {}
        for holders in pool.holders():
            for ranks, probability in by_rank.items():
                outcome = type(ranks)(holders[rank] for rank in ranks)
                law[outcome] = law.get(outcome, 0.0) + probability / pool.choices
        return law


def total(*parts: float) -> float:
    """Return the sum of several costs as a float, rounded up."""
    return float_above(sum((Fraction(part) for part in parts), Fraction()))


def positive_delta(argument: str, delta: Any) -> float:
    """Return a probability above 0 and below 1, rounded down."""
    given = delta
    try:
        number = probability_of_failure(delta)
        given = plain("none, or 0,")
    except InvalidInput:
        number = 0.0
    if not number:
        raise InvalidInput(
            argument,
            given,
            "on an unknown domain a number above 0 and below 1 is needed, such as 1e-6: which items exist can only be "
            "hidden up to a delta",
        )
    return number
