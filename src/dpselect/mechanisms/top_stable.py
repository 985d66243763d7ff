"""The top-stable mechanism: look for a gap that no one person can close, and answer what lies above it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import combinations, pairwise
from math import comb
from typing import ClassVar

import numpy as np

from dpselect._arrays import Array
from dpselect._numbers import float_below
from dpselect.errors import InvalidInput
from dpselect.mechanisms.base import FARTHEST, SCALE_RANGE, Law, in_random_order
from dpselect.mechanisms.oneshot import OneShot
from dpselect.mechanisms.pool import Pool
from dpselect.mechanisms.ranking import exact
from dpselect.mechanisms.unknown import UnknownDomain, positive_delta
from dpselect.privacy.calibration import laplace_threshold
from dpselect.privacy.guarantee import Guarantee
from dpselect.sampling import BitSource
from dpselect.sampling.threshold import MeasuredField, first_exceeding
from dpselect.sampling.threshold_law import chance_of
from dpselect.scores import Members, Scores


@dataclass(frozen=True, kw_only=True)
class TopStable(UnknownDomain):
    """The first i, of k … pool and then k−1 … 1, with `max(x_[i] − x_[i+1] − w, 0) + Lap(b) > T + Lap(b)` is taken, the
    second noise drawn once; the answer is the top i for i <= k, and otherwise k of the top i, by gumbel noise.

    `b = 3w/ε_T`, `T = b q` with `pool · ¼ (2 + q) e^{−q} <= δ_T`. For pool = k there is no choice to make and ε_T = ε;
    else half of ε goes to the choice, and half of δ if it helps. No gap, no answer. Carvalho, Wang, Gondara and Miao
    2020; proof in top_stable.md.
    """

    name: ClassVar[str] = "top-stable"

    delta: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_pool()
        object.__setattr__(self, "delta", positive_delta("delta", self.delta))
        if Fraction(self.epsilon) / (2 * self.k * Fraction(self.sensitivity.spread)) < 1 / Fraction(SCALE_RANGE):
            raise InvalidInput("epsilon", self.epsilon, "half of epsilon / (k * spread) must be at least 1e-250")

    @property
    def ordered(self) -> bool:
        """A set: its order is random."""
        return False

    @property
    def guarantee(self) -> Guarantee:
        """(ε, δ)."""
        return Guarantee(self.epsilon, self.delta)

    @property
    def choice(self) -> OneShot | None:
        """How k items are chosen when more than k are stable."""
        if self.pool_size == self.k:
            return None
        halves = float_below(Fraction(self.epsilon) / 2), float_below(Fraction(self.delta) / 2)
        return OneShot(k=self.k, epsilon=halves[0], delta=halves[1], sensitivity=self.sensitivity, noise="gumbel")

    def rate(self) -> Fraction:
        """ε_T/(3w) = 1/b, which turns gaps into units of the noise of the tests."""
        spent = Fraction(self.choice.epsilon) if self.choice else 0
        return (Fraction(self.epsilon) - spent) / (3 * Fraction(self.sensitivity.spread))

    def height(self) -> Fraction:
        """(T + w)/b, how large a gap must be, in units of the noise, to pass an even test."""
        spent = Fraction(self.choice.guarantee.delta) if self.choice else 0
        allowed = (Fraction(self.delta) - spent) / self.pool_size
        return laplace_threshold(allowed) + self.rate() * Fraction(self.sensitivity.spread)

    def order(self) -> list[int]:
        """Return the numbers of items in the order in which their gap is tested."""
        return [*range(self.k, self.pool_size + 1), *range(self.k - 1, 0, -1)]

    def draw_from(self, pool: Pool, bits: BitSource) -> Members:
        """Return the stable top, or k of it."""
        fields = [MeasuredField(gaps, self.rate(), None, 1, origin=0) for gaps in self._gaps_in_order(pool)]
        passed = first_exceeding(fields, self.height(), bits)
        upwards = self.pool_size - self.k + 1
        size = 0 if passed is None else self.k + passed if passed < upwards else self.k - 1 - (passed - upwards)
        if size > self.k and self.choice:
            groups = self.choice.draw(_top(pool.scores, size), bits).groups
        else:
            held = np.minimum(pool.scores.multiplicities, self.k).astype(np.int64)
            groups = in_random_order(np.repeat(np.arange(len(held)), held)[:size], bits)
        return pool.members(groups[groups < pool.named], bits)

    def _gaps_in_order(self, pool: Pool) -> list[Array]:
        """Return the gaps in the order of their tests, in parts; nameless items, of which there may be millions, in one
        part that takes no memory.
        """
        gaps, spread = self._gaps(pool), Fraction(self.sensitivity.spread)
        plain = (
            int(spread) if spread.denominator == 1 else float(spread) if Fraction(float(spread)) == spread else spread
        )
        flat = np.array(plain, dtype=object if isinstance(plain, Fraction) else None)
        nameless = self.pool_size - max(len(gaps), self.k - 1)
        missing = np.broadcast_to(flat, max(self.k - 1 - len(gaps), 0))
        return [gaps[self.k - 1 :], np.broadcast_to(flat, nameless), missing, gaps[: self.k - 1][::-1]]

    def _gaps(self, pool: Pool) -> Array:
        """Return `max(x_[i] − x_[i+1], w)` for the items that exist, without error."""
        spread = Fraction(self.sensitivity.spread)
        ranked = np.repeat(pool.scores.values[: pool.named], pool.scores.multiplicities[: pool.named].astype(np.int64))
        if ranked.dtype == np.int64 and spread.denominator == 1:
            gaps: Array = np.maximum(ranked - np.append(ranked[1:], pool.following), int(spread))
            return gaps
        numbers = [exact(score) for score in [*ranked, pool.following]]
        return np.array([max(here - below, spread) for here, below in pairwise(numbers)], dtype=object)

    def ranked_law(self, scores: tuple[Fraction, ...], named: int, following: Fraction) -> Law:
        """Return the law of the ranks that are answered."""
        return _ranked_law(self, scores, named, following)


@lru_cache(maxsize=4096)
def _ranked_law(mechanism: TopStable, scores: tuple[Fraction, ...], named: int, following: Fraction) -> Law:
    spread, rate, height = Fraction(mechanism.sensitivity.spread), mechanism.rate(), mechanism.height()
    gaps = [max(here - below, spread) for here, below in zip(scores, [*scores[1:], following], strict=True)]
    law: Law = {}
    failed: list[float] = []
    for size in mechanism.order():
        margin = float(max(rate * gaps[size - 1] - height, -FARTHEST))
        accepted = chance_of([margin], failed)
        failed.append(margin)
        for answer, chance in _answers(mechanism, scores, size):
            kept = frozenset(rank for rank in answer if rank < named)
            law[kept] = law.get(kept, 0.0) + accepted * chance
    law[frozenset()] = law.get(frozenset(), 0.0) + chance_of([], failed)
    return law


def _answers(
    mechanism: TopStable, scores: tuple[Fraction, ...], size: int
) -> Iterator[tuple[tuple[int, ...] | frozenset[int], float]]:
    """Yield the answers when the top `size` are taken, each way to break a tie at its edge being as likely."""
    edge = scores[size - 1]
    inside = tuple(rank for rank, score in enumerate(scores) if score > edge)
    tied = [rank for rank, score in enumerate(scores) if score == edge]
    ways = comb(len(tied), size - len(inside))
    for held in combinations(tied, size - len(inside)):
        ranks = (*inside, *held)
        if size <= mechanism.k or mechanism.choice is None:
            yield ranks, 1 / ways
        else:
            for chosen, probability in mechanism.choice.law([scores[rank] for rank in ranks]).items():
                yield frozenset(ranks[place] for place in chosen), probability / ways


def _top(scores: Scores, size: int) -> Scores:
    """Return the scores of the highest `size` items of a pool."""
    reached = np.cumsum(scores.multiplicities)
    groups = int(np.searchsorted(reached, size)) + 1
    sizes = scores.multiplicities[:groups].copy()
    sizes[-1] -= int(reached[groups - 1]) - size
    return Scores(None, (scores.values[:groups], sizes), int)
