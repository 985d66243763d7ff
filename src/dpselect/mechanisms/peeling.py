"""Peeling: k rounds; each chooses one of the items that are left."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from dpselect._numbers import exact_fraction
from dpselect.mechanisms.base import Law, Mechanism, check_noise, scaled_locations, spread_over_members
from dpselect.privacy.calibration import guarantee_of_rounds, pure_per_round, range_per_round
from dpselect.privacy.guarantee import Guarantee, probability_of_failure
from dpselect.sampling import NOISES, BitSource, Field, top_k, uniform_integer
from dpselect.sampling.bounds import SLACK, location_bounds, scaled
from dpselect.sampling.laws import single_law
from dpselect.sampling.race import races
from dpselect.sampling.sequences import whole_numbers
from dpselect.scores import Members, Ranking, Scores

_ROUNDS = 32
"""Rounds drawn together; then the items that were taken are removed from their bins."""

_BINS = 4
"""Bins per unit of location."""

_WINDOW = 256
"""Bins that are blocks of their own; all items behind them are one more block."""

_DEPTH = 1024.0
"""Locations that the window spans at most, so that a leader far ahead does not make the others' locations imprecise."""


@dataclass(frozen=True, kw_only=True)
class Peeling(Mechanism):
    """Peeling: k rounds, each choosing one item at a cost of ε₀, without replacement; the order is private too.

    ε₀ = ε/k, or more if `delta` allows it. Mathematics, sections 2, 5 and 6; proof in peeling.md.

    Parameters
    ----------
    k, epsilon, sensitivity
        As in `Mechanism`.
    noise
        "exponential" makes each round permute-and-flip (PNF-PEEL of the joint paper). "gumbel" makes it the exponential
        mechanism; all rounds together are then the k largest of one noisy vector, in order. "laplace" makes it report
        noisy max, with noise of scale w/ε₀ (the baseline of the one-shot paper).
    delta
        The δ of the guarantee. With gumbel noise and δ > 0 this is CDP-PEEL.

    Raises
    ------
    InvalidInput
        If an argument is out of range.

    Examples
    --------
    >>> import dpselect as dps
    >>> dps.Peeling(k=2, epsilon=1.0).select([900, 5, 700, 30], seed=1).tolist()
    [0, 2]
    >>> float(dps.Peeling(k=100, epsilon=1.0).per_round())
    0.01
    >>> float(dps.Peeling(k=100, epsilon=1.0, noise="gumbel", delta=1e-6).per_round()) > 0.04
    True
    """

    name: ClassVar[str] = "peeling"

    noise: str = "exponential"
    delta: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_noise(self.noise, ("exponential", "gumbel", "laplace"))
        object.__setattr__(self, "delta", probability_of_failure(self.delta))

    @property
    def guarantee(self) -> Guarantee:
        """(ε, δ), or pure ε if the rounds add up to at most ε without δ."""
        if not self.delta:
            return super().guarantee
        share = self.per_round()
        # Only the exponential mechanism has a range as small as its ε; others have up to twice that.
        width = share if self.noise == "gumbel" else 2 * share
        return guarantee_of_rounds(self.epsilon, self.delta, self.k, share, width)

    def per_round(self) -> Fraction:
        """Return ε₀, the cost of one round."""
        share = range_per_round if self.noise == "gumbel" else pure_per_round
        return share(self.epsilon, self.delta, self.k)

    def rate(self) -> Fraction:
        """Return ε₀/w, by which scores are multiplied before standard noise is added."""
        return self._rate

    @cached_property
    def _rate(self) -> Fraction:
        """The rate, cached for repeated draws."""
        return self.per_round() / Fraction(self.sensitivity.spread)

    @property
    def ordered(self) -> bool:
        """True: the answer is the sequence of rounds."""
        return True

    def draw(self, scores: Scores, bits: BitSource) -> Members:
        """Return the chosen sequence."""
        self.check_size(scores.size)
        rate = self.rate()
        if self.noise == "gumbel":
            grouping = scores.entries
            field = Field(grouping.values, rate, grouping.multiplicities, winners=self.k)
            return spread_over_members(grouping, top_k(field, NOISES["gumbel"], bits, ordered=True), bits)
        ranking = Ranking.of(scores.distinct)
        left = ItemsLeft(ranking, self.k, rate)
        ranks: list[Any] = []
        while len(ranks) < self.k:
            count = min(left.rounds, self.k - len(ranks))
            chosen: list[Any] = list(races(left, NOISES[self.noise], bits, count))
            left.take(chosen)
            ranks += chosen
        return ranking.members(whole_numbers(ranks))

    def law(self, scores: Any) -> Law:
        """Return the probability of every k-sequence, as a product of rounds."""
        scores = self.small_domain(scores)
        locations = scaled_locations(scores, self.rate())
        law: Law = {(): 1.0}
        for _ in range(self.k):
            law = {
                (*sequence, item): probability * conditional
                for sequence, probability in law.items()
                for item, conditional in self._round_law(locations, sequence)
            }
        return law

    def _round_law(self, locations: list[float], taken: Any) -> list[tuple[int, float]]:
        """Return the items that are left and their probabilities in the next round."""
        left = [item for item in range(len(locations)) if item not in taken]
        probabilities = single_law([locations[item] for item in left], NOISES[self.noise])
        return list(zip(left, map(float, probabilities), strict=True))


class ItemsLeft:
    """The items that are left, as blocks for the next `rounds` races: bins of nearly equal location.

    Starting from the k-th score, bins are a quarter of a unit of location wide as far down as an item could reasonably
    win, and double in width below that. The races are exact for any bins.
    """

    def __init__(self, ranking: Ranking, k: int, rate: Fraction) -> None:
        self._ranking = ranking
        self._rate = rate
        self._taken: set[int] = set()
        values = ranking.grouping.values
        depth = scaled(values[int(ranking.groups(k - 1))] - values, rate)
        reach = float(np.log(float(ranking.ends[-1]))) + 20.0
        near = depth <= reach
        bins = np.where(near, np.floor(depth * _BINS), np.floor(np.log2(2 + np.maximum(depth - reach, 0.0))))
        self._first = np.flatnonzero(np.append(True, (bins[1:] != bins[:-1]) | (near[1:] != near[:-1])))
        self._last = np.append(self._first[1:], len(values)) - 1
        self._depth = depth[self._first]
        self._ends = ranking.ends[self._last]
        self._starts = np.concatenate([self._ends[:0], [0], self._ends[:-1]])
        self._left = self._ends - self._starts
        self._update()

    def _update(self) -> None:
        """Compute the blocks, relative to the highest score that is left: the bins near it, and all others as one."""
        front = int(np.flatnonzero(self._left)[0])
        behind = min(front + _WINDOW, int(np.searchsorted(self._depth, self._depth[front] + _DEPTH, side="right")))
        held = np.flatnonzero(self._left[front:behind]) + front
        left, others = self._left[held], self._left[behind:].sum()
        self.rounds = int(min(_ROUNDS, left.sum()))
        first, last = self._first[held], self._last[held]
        self._low, self._high = self._starts[held], self._ends[held]
        if others:
            first, last = np.append(first, self._first[behind]), np.append(last, self._last[-1])
            left = np.append(left, others)
            self._low = np.append(self._low, self._starts[behind])
            self._high = np.append(self._high, self._ends[-1])
        values = self._ranking.grouping.values
        near = scaled(values[first[0]] - values[first], self._rate)
        far = scaled(values[first[0]] - values[last], self._rate)
        self._reference = exact_fraction(values[first[0]])
        self._sizes = left
        self.floor, self.ceiling = location_bounds(near, far)
        self.log_size = np.log(left.astype(np.float64))
        self.log_size_error = np.full(len(left), SLACK)

    def size(self, block: int) -> int:
        """Return the number of items left in a block."""
        return int(self._sizes[block])

    def draw(self, block: int, bits: BitSource) -> int:
        """Return the rank of a uniformly random item that is left in a block."""
        low, high = int(self._low[block]), int(self._high[block])
        while True:
            rank = low + uniform_integer(high - low, bits)
            if rank not in self._taken:
                return rank

    def location(self, rank: Any) -> Fraction:
        """Return the location of an item."""
        return self._rate * (self._ranking.exact_score(rank) - self._reference)

    def take(self, ranks: list[int]) -> None:
        """Remove items."""
        self._taken.update(ranks)
        for rank in ranks:
            self._left[int(np.searchsorted(self._ends, rank, side="right"))] -= 1
        if len(self._taken) < self._ends[-1]:
            self._update()
