"""The limited-domain mechanism: a dummy that stands above whatever one person could have brought into the pool."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import ceil
from typing import Any, ClassVar

import numpy as np

from dpselect._arrays import Array
from dpselect._numbers import float_below, positive_integer
from dpselect.errors import InvalidInput, plain
from dpselect.mechanisms.base import FARTHEST, Law, check_noise
from dpselect.mechanisms.pool import Pool
from dpselect.mechanisms.ranking import exact
from dpselect.mechanisms.unknown import UnknownDomain, positive_delta
from dpselect.privacy.calibration import gumbel_threshold, laplace_threshold, range_per_round
from dpselect.privacy.guarantee import Guarantee
from dpselect.sampling import NOISES, BitSource, Field, top_k
from dpselect.sampling.laws import sequence_law
from dpselect.scores import Members

WHOLE = 2**53
"""Integers below this are floats."""

DIGITS = 20
"""Binary digits of where the dummy stands above the next score; more would gain a millionth."""


@dataclass(frozen=True, kw_only=True)
class LimitedDomain(UnknownDomain):
    """The k largest of `x_i + Z_i` over the pool and a dummy at `x_[pool+1] + w + u`, in order, up to the dummy.

    Gumbel noise of scale `w/ε₀`: ε₀ is what each of k rounds may cost, `u = (w/ε₀) log(m/δ_T)`. Laplace noise of scale
    `w m/ε`: `u = (w m/ε) q` with `m · ¼ (2 + q) e^{−q} <= δ`. m is how many items of the pool one person can have
    brought in: max_items_per_person, or all. As with Gaussian noise, nothing here can check max_items_per_person.
    Durfee and Rogers 2019; mathematics, section 7; proof in limited.md.
    """

    name: ClassVar[str] = "limited"

    delta: float = 0.0
    max_items_per_person: int | None = None
    noise: str = "gumbel"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_pool()
        check_noise(self.noise, ("gumbel", "laplace"))
        object.__setattr__(self, "delta", positive_delta("delta", self.delta))
        if self.max_items_per_person is not None:
            most = positive_integer("max_items_per_person", self.max_items_per_person)
            object.__setattr__(self, "max_items_per_person", most)
        if self.noise == "laplace" and self.max_items_per_person is None:
            raise InvalidInput(
                "max_items_per_person",
                plain("nothing"),
                "a whole number is needed: the scale of laplace noise follows it",
            )
        if self.noise == "laplace" and self.sensitivity.low:
            raise InvalidInput("sensitivity", self.sensitivity, "laplace noise needs scores that a person only raises")

    @property
    def ordered(self) -> bool:
        """A sequence: the order of the noisy scores."""
        return True

    @property
    def guarantee(self) -> Guarantee:
        """(ε, δ)."""
        return Guarantee(self.epsilon, self.delta)

    def share(self) -> Fraction:
        """ε₀: what one round may cost, with half of δ if that helps; with Laplace noise what one item costs."""
        if self.noise == "laplace":
            return Fraction(self.epsilon) / (self.max_items_per_person or 1)
        return range_per_round(self.epsilon, float_below(Fraction(self.delta) / 2), self.k)

    def rate(self) -> Fraction:
        """ε₀/w, the inverse of the noise scale."""
        return self.share() / Fraction(self.sensitivity.spread)

    def lead(self) -> Fraction:
        """Return w + u, by which the dummy stands above x_[pool+1]: of few digits, rounded up."""
        composed = self.noise == "gumbel" and self.k * self.share() > Fraction(self.epsilon)
        allowed = Fraction(self.delta) / (2 if composed else 1)
        brought = min(self.max_items_per_person or self.pool_size, self.pool_size)
        threshold = gumbel_threshold if self.noise == "gumbel" else laplace_threshold
        return _of_few_digits(Fraction(self.sensitivity.spread) + threshold(allowed / brought) / self.rate())

    def dummy(self, following: Any) -> Fraction:
        """Return where the dummy stands, without error: if it were rounded, one person could move it by more than w."""
        return exact(following) + self.lead()

    def draw_from(self, pool: Pool, bits: BitSource) -> Members:
        """Return what comes before the dummy."""
        groups, sizes = pool.entrants()
        values = with_dummy(pool.scores.values[groups], self.dummy(pool.following))
        # Groups must come by descending score, single entrants in any order.
        order = np.arange(len(values)) if sizes is None else np.argsort(-values, kind="stable")
        field = Field(values[order], self.rate(), None if sizes is None else np.append(sizes, 1)[order], self.k)
        winners = order[top_k(field, NOISES[self.noise], bits, ordered=True)]
        stop = np.flatnonzero(winners == len(groups))
        chosen = groups[winners[: stop[0] if len(stop) else len(winners)]]
        return pool.members(chosen[chosen < pool.named], bits)

    def ranked_law(self, scores: tuple[Fraction, ...], named: int, following: Fraction) -> Law:
        """Return the law of the ranks before the dummy."""
        return _ranked_law(self, scores, named, following)


@lru_cache(maxsize=4096)
def _ranked_law(mechanism: LimitedDomain, scores: tuple[Fraction, ...], named: int, following: Fraction) -> Law:
    values = [*scores, mechanism.dummy(following)]
    locations = [float(max(mechanism.rate() * (value - max(values)), -FARTHEST)) for value in values]
    law: Law = {}
    for ranks, probability in sequence_law(locations, mechanism.k, NOISES[mechanism.noise]).items():
        before = ranks[: ranks.index(len(scores))] if len(scores) in ranks else ranks
        answer = tuple(rank for rank in before if rank < named)
        law[answer] = law.get(answer, 0.0) + probability
    return law


def with_dummy(values: Array, dummy: Fraction) -> Array:
    """Return the scores with the dummy behind them, without error."""
    in_floats = values.dtype == np.float64 or (values.dtype == np.int64 and int(np.abs(values).max()) < WHOLE)
    if in_floats and dummy < WHOLE and Fraction(float(dummy)) == dummy:
        return np.append(values.astype(np.float64), float(dummy))
    return np.array([*map(Fraction, values.tolist()), dummy], dtype=object)


def _of_few_digits(number: Fraction) -> Fraction:
    """Return a positive number rounded up to about 20 binary digits, so that sums with counts are floats."""
    step = Fraction(2) ** (number.numerator.bit_length() - number.denominator.bit_length() - DIGITS)
    return ceil(number / step) * step
