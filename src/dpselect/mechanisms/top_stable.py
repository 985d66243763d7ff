"""The top-stable mechanism: find a gap between scores that no one person can close, and release the items above it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, pairwise
from math import comb
from typing import ClassVar

import numpy as np

from dpselect._arrays import Array
from dpselect._numbers import INTEGER_LIMIT, exact_fraction, float_below
from dpselect.errors import InvalidInput
from dpselect.mechanisms.base import FARTHEST, SCALE_RANGE, Law, in_random_order
from dpselect.mechanisms.oneshot import OneShot
from dpselect.mechanisms.unknown import Pool, PooledDomain, positive_delta
from dpselect.privacy.calibration import laplace_threshold
from dpselect.privacy.guarantee import Guarantee
from dpselect.sampling import BitSource
from dpselect.sampling.laws import threshold_probability
from dpselect.sampling.threshold import MeasuredField, first_exceeding
from dpselect.scores import Members


@dataclass(frozen=True, kw_only=True)
class TopStable(PooledDomain):
    """A mechanism for unknown domains: the top i for a noisily stable i, or k of them if i > k, as a set.

    i is the first of k … pool and then k−1 … 1 with `max(x_[i] − x_[i+1] − w, 0) + Lap(b) > T + Lap(b)`; the second
    noise is drawn once. `b = 3w/ε_T` and `T = b q` with `pool · ¼ (2 + q) e^{−q} <= δ_T`. If i > k, OneShot with gumbel
    noise chooses k of the top i: it gets half of ε, and half of δ if that helps. For pool = k no choice is needed and
    ε_T = ε. If no gap is accepted, the answer is empty. Carvalho, Wang, Gondara and Miao 2020; proof in top_stable.md.

    Parameters
    ----------
    k, epsilon, sensitivity, pool
        As in `PooledDomain`.
    delta
        The δ of the guarantee, above 0.

    Raises
    ------
    InvalidInput
        If an argument is out of range.

    Examples
    --------
    >>> import dpselect as dps
    >>> mechanism = dps.TopStable(k=2, epsilon=1.0, delta=1e-6)
    >>> sorted(mechanism.select({"tea": 900, "coffee": 700, "milk": 1}, seed=1).tolist())
    [0, 1]
    """

    name: ClassVar[str] = "top-stable"

    delta: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_pool()
        object.__setattr__(self, "delta", positive_delta("delta", self.delta))
        if Fraction(self.epsilon) / (2 * self.k * Fraction(self.sensitivity.spread)) < 1 / Fraction(SCALE_RANGE):
            raise InvalidInput(
                "epsilon", self.epsilon, "must be such that epsilon / (2 * k * spread) is at least 1e-250"
            )

    @property
    def ordered(self) -> bool:
        """False: the answer is a set in random order."""
        return False

    @property
    def guarantee(self) -> Guarantee:
        """(ε, δ)."""
        return Guarantee(self.epsilon, self.delta)

    @property
    def choice(self) -> OneShot | None:
        """The mechanism that chooses k items if the top i is stable for an i > k; None if pool = k."""
        if self.pool_size == self.k:
            return None
        halves = float_below(Fraction(self.epsilon) / 2), float_below(Fraction(self.delta) / 2)
        return OneShot(k=self.k, epsilon=halves[0], delta=halves[1], sensitivity=self.sensitivity, noise="gumbel")

    def rate(self) -> Fraction:
        """Return ε_T/(3w) = 1/b, which converts gaps to units of the noise of the tests."""
        spent = Fraction(self.choice.epsilon) if self.choice else 0
        return (Fraction(self.epsilon) - spent) / (3 * Fraction(self.sensitivity.spread))

    def height(self) -> Fraction:
        """Return (T + w)/b: a gap of this size, in units of the noise, passes with probability ½."""
        spent = Fraction(self.choice.guarantee.delta) if self.choice else 0
        allowed = (Fraction(self.delta) - spent) / self.pool_size
        return laplace_threshold(allowed) + self.rate() * Fraction(self.sensitivity.spread)

    def order(self) -> list[int]:
        """Return the values of i in the order in which they are tested."""
        return [*range(self.k, self.pool_size + 1), *range(self.k - 1, 0, -1)]

    def draw_from(self, pool: Pool, bits: BitSource) -> Members:
        """Return the stable top i, or k of them."""
        fields = [MeasuredField(gaps, self.rate(), None, 1, origin=0) for gaps in self._gaps_in_order(pool)]
        passed = first_exceeding(fields, self.height(), bits)
        upwards = self.pool_size - self.k + 1
        size = 0 if passed is None else self.k + passed if passed < upwards else self.k - 1 - (passed - upwards)
        if size > self.k and self.choice:
            groups = self.choice.draw(pool.top(size), bits).groups
        else:
            held = np.minimum(pool.scores.multiplicities, self.k).astype(np.int64)
            groups = in_random_order(np.repeat(np.arange(len(held)), held)[:size], bits)
        return pool.members(groups[groups < pool.named], bits)

    def _gaps_in_order(self, pool: Pool) -> list[Array]:
        """Return the gaps in the order of their tests, in parts.

        Nameless items, of which there may be millions, are one part that takes no memory.
        """
        gaps, spread = self._gaps(pool), Fraction(self.sensitivity.spread)
        plain = int(spread) if _fits(spread) else float(spread) if Fraction(float(spread)) == spread else spread
        flat = np.array(plain, dtype=object if isinstance(plain, Fraction) else None)
        nameless = self.pool_size - max(len(gaps), self.k - 1)
        missing = np.broadcast_to(flat, max(self.k - 1 - len(gaps), 0))
        return [gaps[self.k - 1 :], np.broadcast_to(flat, nameless), missing, gaps[: self.k - 1][::-1]]

    def _gaps(self, pool: Pool) -> Array:
        """Return `max(x_[i] − x_[i+1], w)` for the items that exist, as an exact array."""
        spread = Fraction(self.sensitivity.spread)
        ranked = np.repeat(pool.scores.values[: pool.named], pool.scores.multiplicities[: pool.named].astype(np.int64))
        if ranked.dtype == np.int64 and _fits(spread):
            gaps: Array = np.maximum(ranked - np.append(ranked[1:], pool.following), int(spread))
            return gaps
        numbers = [exact_fraction(score) for score in [*ranked, pool.following]]
        return np.array([max(here - below, spread) for here, below in pairwise(numbers)], dtype=object)

    def ranked_law(self, scores: tuple[Fraction, ...], named: int, following: Fraction) -> Law:
        """Return the law of the ranks that are released."""
        spread, rate, height = Fraction(self.sensitivity.spread), self.rate(), self.height()
        gaps = [max(here - below, spread) for here, below in zip(scores, [*scores[1:], following], strict=True)]
        law: Law = {}
        failed: list[float] = []
        for size in self.order():
            margin = float(max(rate * gaps[size - 1] - height, -FARTHEST))
            accepted = threshold_probability([margin], failed)
            failed.append(margin)
            for answer, conditional in _answers(self, scores, size):
                kept = frozenset(rank for rank in answer if rank < named)
                law[kept] = law.get(kept, 0.0) + accepted * conditional
        law[frozenset()] = law.get(frozenset(), 0.0) + threshold_probability([], failed)
        return law


def _fits(spread: Fraction) -> bool:
    """Whether gaps of whole scores can be held in int64."""
    return spread.denominator == 1 and spread < INTEGER_LIMIT


def _answers(
    mechanism: TopStable, scores: tuple[Fraction, ...], size: int
) -> Iterator[tuple[tuple[int, ...] | frozenset[int], float]]:
    """Yield the answers if the top `size` is stable; all ways to break a tie at its edge are equally likely."""
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
