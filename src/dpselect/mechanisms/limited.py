"""The limited-domain mechanism: noisy scores of the pool, down to a dummy that hides items only one person has."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil
from typing import Any, ClassVar

import numpy as np

from dpselect._arrays import Array
from dpselect._numbers import exact_fraction, float_below, positive_integer, positive_number
from dpselect.errors import InvalidInput
from dpselect.mechanisms.base import FARTHEST, Law, check_noise
from dpselect.mechanisms.oneshot import OneShot
from dpselect.mechanisms.unknown import Pool, PooledDomain, positive_delta
from dpselect.privacy.calibration import gumbel_threshold, laplace_threshold, range_per_round
from dpselect.privacy.guarantee import Guarantee
from dpselect.sampling import NOISES, BitSource, Field, top_k
from dpselect.sampling.laws import sequence_law
from dpselect.scores import Members, Ranking, Scores

WHOLE = 2**53
"""float64 holds all integers below this exactly."""

DIGITS = 20
"""Binary digits of the dummy's lead over the next score; rounding it up to these costs a millionth."""


@dataclass(frozen=True, kw_only=True)
class LimitedDomain(PooledDomain):
    """A mechanism for unknown domains: the k largest of `x_i + Z_i` over the pool and a dummy, down to the dummy.

    The answer is a sequence. The dummy is at `x_[pool+1] + w + u`, w being the spread of the sensitivity. Durfee and
    Rogers 2019; mathematics, section 7; proof in limited.md.

    Parameters
    ----------
    k, epsilon, sensitivity, pool
        As in `PooledDomain`.
    delta
        The δ of the guarantee, above 0.
    max_items_per_person
        m, how many items of the pool one person can have brought in; the whole pool if left out. The caller must
        enforce it; it cannot be checked here.
    noise
        "gumbel" has scale `w/ε₀`, where ε₀ is the cost of each of k rounds, and `u = (w/ε₀) log(m/δ_T)`. "laplace" has
        scale `w m/ε` and `u = (w m/ε) q` with `m · ¼ (2 + q) e^{−q} <= δ`; it needs max_items_per_person.
    pool_epsilon
        If above 0, this part of epsilon chooses the size of the pool privately, from k to `pool`: the one with the
        lowest dummy, by permute-and-flip. 0 takes `pool` as it is, which returns more items on most data
        (docs/unknown.md).

    Raises
    ------
    InvalidInput
        If an argument is out of range.

    Examples
    --------
    >>> import dpselect as dps
    >>> mechanism = dps.LimitedDomain(k=3, epsilon=1.0, delta=1e-6)
    >>> mechanism.select({"tea": 900, "coffee": 700, "milk": 1}, seed=1).tolist()
    [0, 1]
    """

    name: ClassVar[str] = "limited"

    delta: float = 0.0
    max_items_per_person: int | None = None
    noise: str = "gumbel"
    pool_epsilon: float = 0.0

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
                "max_items_per_person", None, "must be a whole number; the scale of laplace noise depends on it"
            )
        if self.noise == "laplace" and self.sensitivity.low:
            raise InvalidInput("sensitivity", self.sensitivity, "must have low = 0 for laplace noise; use gumbel noise")
        if self.pool_epsilon:
            self._check_choice()

    def _check_choice(self) -> None:
        """Check the part of ε that chooses the pool."""
        part = positive_number("pool_epsilon", self.pool_epsilon)
        object.__setattr__(self, "pool_epsilon", part)
        if part >= self.epsilon:
            raise InvalidInput(
                "pool_epsilon", part, f"must be below epsilon = {self.epsilon:g}, of which it is a part; 0 for none"
            )
        if self.pool_size == self.k:
            raise InvalidInput("pool", self.pool, f"must be above k = {self.k}, or there is no pool to choose")
        self.with_pool(self.k)
        self.choice_of_pool()

    @property
    def ordered(self) -> bool:
        """True: the answer is in the order of the noisy scores."""
        return True

    @property
    def guarantee(self) -> Guarantee:
        """(ε, δ)."""
        return Guarantee(self.epsilon, self.delta)

    def with_pool(self, size: int) -> LimitedDomain:
        """Return the mechanism with a fixed pool, and the part of ε that the choice of the pool leaves."""
        left = float_below(Fraction(self.epsilon) - Fraction(self.pool_epsilon))
        return replace(self, epsilon=left, pool=size, pool_epsilon=0.0)

    def choice_of_pool(self) -> OneShot:
        """Return the mechanism that chooses among the sizes k … pool."""
        return OneShot(k=1, epsilon=self.pool_epsilon, sensitivity=self.sensitivity)

    def choice_law(self, heights: list[Fraction]) -> Law:
        """Return the law of the chosen size, as an index of k … pool."""
        return self.choice_of_pool().law(heights)

    def leads(self) -> list[Fraction]:
        """Return the lead of the dummy over x_[size+1] for each size of the pool, k … pool."""
        last = max(self.k, min(self.max_items_per_person or self.pool_size, self.pool_size))
        different = [self.with_pool(size).lead() for size in range(self.k, last + 1)]
        return different + different[-1:] * (self.pool_size - last)

    def share(self) -> Fraction:
        """Return ε₀: the cost of one round, using half of δ if that helps; for laplace noise the cost of one item."""
        if self.noise == "laplace":
            return Fraction(self.epsilon) / (self.max_items_per_person or 1)
        return range_per_round(self.epsilon, float_below(Fraction(self.delta) / 2), self.k)

    def rate(self) -> Fraction:
        """Return ε₀/w, the inverse of the noise scale."""
        return self.share() / Fraction(self.sensitivity.spread)

    def lead(self) -> Fraction:
        """Return w + u, the lead of the dummy over x_[pool+1], rounded up to few digits."""
        composed = self.noise == "gumbel" and self.k * self.share() > Fraction(self.epsilon)
        allowed = Fraction(self.delta) / (2 if composed else 1)
        brought = min(self.max_items_per_person or self.pool_size, self.pool_size)
        threshold = gumbel_threshold if self.noise == "gumbel" else laplace_threshold
        return _of_few_digits(Fraction(self.sensitivity.spread) + threshold(allowed / brought) / self.rate())

    def dummy(self, following: Any) -> Fraction:
        """Return the exact location of the dummy: if it were rounded, one person could move it by more than w."""
        return exact_fraction(following) + self.lead()

    def draw_from(self, pool: Pool, bits: BitSource) -> Members:
        """Return the items above the dummy, after the choice of the pool if there is one."""
        if self.pool_epsilon:
            following = [*Ranking.of(pool.scores.distinct).scores(np.arange(self.k, self.pool_size)), pool.following]
            heights = self._heights(following)
            size = self.k + int(self.choice_of_pool().draw(Scores.of(heights), bits).positions()[0])
            return self.with_pool(size).draw_from(pool if size == self.pool_size else pool.smaller(size), bits)
        groups, sizes = pool.entrants()
        values = with_dummy(pool.scores.values[groups], self.dummy(pool.following))
        # Groups must be in descending order of score; single entrants may be in any order.
        order = np.arange(len(values)) if sizes is None else np.argsort(-values, kind="stable")
        field = Field(values[order], self.rate(), None if sizes is None else np.append(sizes, 1)[order], self.k)
        winners = order[top_k(field, NOISES[self.noise], bits, ordered=True)]
        stop = np.flatnonzero(winners == len(groups))
        chosen = groups[winners[: stop[0] if len(stop) else len(winners)]]
        return pool.members(chosen[chosen < pool.named], bits)

    def ranked_law(self, scores: tuple[Fraction, ...], named: int, following: Fraction) -> Law:
        """Return the law of the ranks above the dummy; after the choice of the pool its average over all sizes."""
        if self.pool_epsilon:
            return self._chosen_law(scores, named, following)
        values = [*scores, self.dummy(following)]
        locations = [float(max(self.rate() * (value - max(values)), -FARTHEST)) for value in values]
        law: Law = {}
        for ranks, probability in sequence_law(locations, self.k, NOISES[self.noise]).items():
            above = ranks[: ranks.index(len(scores))] if len(scores) in ranks else ranks
            answer = tuple(rank for rank in above if rank < named)
            law[answer] = law.get(answer, 0.0) + probability
        return law

    def _heights(self, following: Iterable[Any]) -> list[Fraction]:
        """Return minus the dummy for each size of the pool, given x_[size+1] for each: the scores of the sizes."""
        return [-exact_fraction(score) - lead for score, lead in zip(following, self.leads(), strict=True)]

    def _chosen_law(self, scores: tuple[Fraction, ...], named: int, following: Fraction) -> Law:
        """Return the law of the ranks if the pool is chosen; ties at the edge of a smaller one are broken uniformly."""
        law: Law = {}
        heights = self._heights([*scores[self.k :], following])
        for chosen, probability in self.choice_law(heights).items():
            size = self.k + min(chosen)
            fixed = self.with_pool(size)
            whole = size == self.pool_size
            given = fixed.ranked_law(scores, named, following) if whole else fixed.law(list(scores))
            for answer, conditional in given.items():
                law[answer] = law.get(answer, 0.0) + probability * conditional
        return law


def with_dummy(values: Array, dummy: Fraction) -> Array:
    """Return the scores and then the dummy as an exact array."""
    in_floats = values.dtype == np.float64 or (values.dtype == np.int64 and int(np.abs(values).max()) < WHOLE)
    if in_floats and dummy < WHOLE and Fraction(float(dummy)) == dummy:
        return np.append(values.astype(np.float64), float(dummy))
    return np.array([*map(Fraction, values.tolist()), dummy], dtype=object)


def _of_few_digits(number: Fraction) -> Fraction:
    """Return a positive number rounded up to about 20 binary digits, so that its sum with a count is a float."""
    step = Fraction(2) ** (number.numerator.bit_length() - number.denominator.bit_length() - DIGITS)
    return ceil(number / step) * step
