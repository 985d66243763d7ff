"""The joint mechanism: a k-sequence in one draw (joint, section 3; mathematics, section 4).

A sequence of ranks (s_0 … s_{k−1}) has loss `max_r (x_[r] − x_{s_r})`. A threshold s restricts row r to the ranks of
scores of at least `x_[r] − s`; the sequences within these bounds are those of loss at most s. For the race, a block
contains the sequences within the bounds of one threshold and not within those of a lower one. With the margin, a top
sequence without ties has loss `−g`, g its lead; locations are relative to it.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import permutations
from math import ceil, prod
from typing import Any, ClassVar

import numpy as np

from dpselect._arrays import Array
from dpselect.mechanisms.base import FARTHEST, Law, Mechanism, check_margin, check_noise
from dpselect.mechanisms.classes import Levels, levels_of, penalties, winner_law
from dpselect.sampling import NOISES, BitSource
from dpselect.sampling.bounds import SLACK, location_bounds
from dpselect.sampling.race import race
from dpselect.sampling.sequences import PRECISION, bounded_sequence, log_difference, whole_numbers
from dpselect.scores import Members, Ranking, Scores

_ENTRIES = 1 << 18
"""Bounds of thresholds held in memory at a time: a few megabytes, however large k is."""


@dataclass(frozen=True, kw_only=True)
class Joint(Mechanism):
    """The joint mechanism: the k-sequence S with the largest `−ε · loss(S) / (2w) + noise`; its order is private too.

    `loss(S) = max_i (x_[i] − x_{s_i})`, and for the top sequence `−min_i (x_[i] − x_[i+1])`, i up to k. Adding a person
    changes the losses of all sequences by amounts in one window of width 2w, w being the spread of the sensitivity; so
    the noise does not grow with k. Joint, section 3; mathematics, section 4; proof in joint.md.

    Parameters
    ----------
    k, epsilon, sensitivity
        As in `Mechanism`.
    noise
        "exponential" gives permute-and-flip over sequences, "gumbel" the joint exponential mechanism as published,
        which is never better.
    margin
        Whether the loss of the top sequence is minus its smallest gap. False makes it 0, as published, and makes no use
        of the gaps.

    Raises
    ------
    InvalidInput
        If an argument is out of range.

    Examples
    --------
    >>> import dpselect as dps
    >>> mechanism = dps.Joint(k=2, epsilon=1.0)
    >>> mechanism.select([900, 5, 700, 30], seed=1).tolist()
    [0, 2]
    >>> mechanism.ordered
    True
    """

    name: ClassVar[str] = "joint"

    noise: str = "exponential"
    margin: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_noise(self.noise, ("exponential", "gumbel"))
        check_margin(self.margin)

    @property
    def ordered(self) -> bool:
        """True: the answer is a sequence."""
        return True

    @property
    def rate(self) -> Fraction:
        """ε/(2w), by which losses are multiplied before standard noise is added."""
        return self.exact_rate() / 2

    def draw(self, scores: Scores, bits: BitSource) -> Members:
        """Return the chosen sequence."""
        self.check_size(scores.size)
        ranking = Ranking.of(scores.distinct)
        blocks = SequenceBlocks(ranking, self.k, self.rate, self.smallest_gap(ranking))
        winner: Any = race(blocks, NOISES[self.noise], bits)
        return ranking.members(whole_numbers(winner))

    def smallest_gap(self, ranking: Ranking) -> Fraction:
        """Return the smallest gap between consecutive ranks up to k + 1; 0 without the margin or with one item."""
        ranks = np.arange(min(self.k + 1, int(ranking.ends[-1])))
        if not self.margin or len(ranks) == 1:
            return Fraction(0)
        return -_largest_difference(ranking, ranks[1:], ranks[:-1])

    def levels(self, scores: Any) -> Levels:
        """Return every level of loss with its size and probability, computed from the scores: not private."""
        return levels_of(self, scores)

    def law(self, scores: Any) -> Law:
        """Return the probability of every k-sequence."""
        table = self.small_domain(scores)
        values = table.exact()
        top = sorted(values, reverse=True)
        sequences = list(permutations(range(table.size), self.k))
        losses = [self._loss(values, top, sequence) for sequence in sequences]
        least = min(losses)
        locations = [float(max(self.rate * (least - loss), -FARTHEST)) for loss in losses]
        return dict(zip(sequences, winner_law(locations, self.noise).tolist(), strict=True))

    def _loss(self, values: list[Fraction], top: list[Fraction], sequence: tuple[int, ...]) -> Fraction:
        """Return the loss of one sequence; with the margin, 0 becomes minus the least lead over what follows."""
        loss = max(top[row] - values[item] for row, item in enumerate(sequence))
        if loss or not self.margin:
            return loss
        left = [(row, other) for row in range(self.k) for other in set(range(len(values))) - {*sequence[: row + 1]}]
        return max((values[other] - values[sequence[row]] for row, other in left), default=Fraction(0))


LARGEST_TABLE = 1 << 20
"""Largest difference of integer scores for which rows are looked up in a table instead of searched."""


MOST_DOUBLINGS = 64
"""Number of thresholds to start from; blocks beyond them hardly ever matter, and are split if they do."""


@dataclass(frozen=True)
class Thresholds:
    """The bounds that thresholds set for the rows.

    Rounding in `x_[r] − s` may shift a bound, but bounds stay monotone in thresholds and rows, and a block's range of
    losses is computed from the bounds. So rounding only moves sequences between blocks and does not change the law.
    """

    ranking: Ranking
    k: int

    @cached_property
    def top(self) -> Array:
        """The k highest scores."""
        return self.ranking.scores(np.arange(self.k))

    @cached_property
    def ascending(self) -> Array:
        """The distinct scores, lowest first."""
        return np.ascontiguousarray(self.ranking.grouping.values[::-1])

    @cached_property
    def counts(self) -> Array:
        """How many items have at least each score of `ascending`."""
        return np.ascontiguousarray(self.ranking.ends[::-1])

    def places(self, thresholds: Array) -> Array:
        """Return, for each threshold and row, the index in `ascending` of the lowest score allowed.

        Integer thresholds that reach below the lowest score are cut there, so that they cannot overflow.
        """
        reach = thresholds[:, None]
        if self.ascending.dtype == np.int64:
            reach = np.minimum(reach, self.top[None, :] - self.ascending[0])
        if self._table is not None:
            found: Array = self._table.take(self.top - self.ascending[0] - reach)
            return found
        return np.searchsorted(self.ascending, self.top[None, :] - reach, side="left")

    @cached_property
    def _table(self) -> Array | None:
        """For integers that are not far apart: the index in `ascending` of the lowest score from each integer on."""
        if self.ascending.dtype != np.int64 or self.top[0] - self.ascending[0] > LARGEST_TABLE:
            return None
        marks = np.zeros(int(self.top[0] - self.ascending[0]) + 1, dtype=np.int32)
        marks[self.ascending - self.ascending[0]] = 1
        table: Array = np.cumsum(marks, dtype=np.int32)
        return table - marks

    def bounds(self, threshold: Any) -> Array:
        """Return for each row how many ranks a threshold allows."""
        allowed: Array = self.counts[self.places(np.array([threshold], dtype=self.ascending.dtype))[0]]
        return allowed

    @property
    def zero(self) -> Any:
        """The threshold of the sequences without loss."""
        return self.top[0] - self.top[0]

    @property
    def widest(self) -> Any:
        """A threshold that allows every sequence."""
        return np.inf if self.ascending.dtype == np.float64 else self.top[0] - self.ascending[0]

    def doubling(self, step: Fraction) -> Array:
        """Return ascending thresholds from `zero` to `widest`; those between double, from about `step` on,
        which is rounded up to a power of two for whole numbers.
        """
        whole = self.ascending.dtype != np.float64 and not isinstance(self.zero, Fraction)
        threshold: Any = float(step) if self.ascending.dtype == np.float64 else step
        if whole:
            threshold = 1 << (ceil(step) - 1).bit_length()
        between: list[Any] = []
        while threshold < self.top[0] - self.ascending[0] and len(between) < MOST_DOUBLINGS:
            between.append(threshold)
            threshold *= 2
        edges = np.empty(len(between) + 2, dtype=self.ascending.dtype)
        edges[:] = [self.zero, *between, self.widest]
        return edges


class SequenceBlocks:
    """The sequences without loss as block 0, then blocks between thresholds, finer where the probability is.

    A block is split while its locations differ by more than 1 and its highest location would give it a noticeable share
    of the total weight. The race is exact for any division into blocks. Locations are relative to block 0, which leads
    the other sequences by `lead` beyond their losses.
    """

    def __init__(
        self, ranking: Ranking, k: int, rate: Fraction, lead: Fraction = Fraction(0), *, widest: float = 1.0
    ) -> None:
        self._thresholds = thresholds = Thresholds(ranking, k)
        self._rate, self._lead = rate, lead
        choices = thresholds.bounds(thresholds.zero) - np.arange(k)
        best_size = float(np.log(choices.astype(np.float64)).sum())
        best_error = PRECISION * (1 + best_size)
        finished: list[Array] = []
        measures = [np.array([[-SLACK], [SLACK], [best_size], [best_error]])]
        heaviest, total = best_size, 1
        edges = thresholds.doubling(1 / rate)
        lower, upper = edges[:-1], edges[1:]
        while len(lower):
            measured, middle = self._measured(lower, upper)
            floor, ceiling, log_size = measured[:3]
            heaviest = max(heaviest, float((floor + log_size).max()))
            wide = (ceiling - floor > widest) & (ceiling + log_size > heaviest - np.log(total) - 2.0)
            wide &= (middle > lower) & (middle < upper)
            done = ~wide & np.isfinite(log_size)
            finished.append(np.stack([lower[done], upper[done]]))
            measures.append(measured[:, done])
            total += int(wide.sum())
            lower, upper = (
                np.concatenate([lower[wide], middle[wide]]),
                np.concatenate([middle[wide], upper[wide]]),
            )
        self._between = np.concatenate(finished, axis=1)
        self.floor, self.ceiling, self.log_size, self.log_size_error = np.concatenate(measures, axis=1)

    def _measured(self, lower: Array, upper: Array) -> tuple[Array, Array]:
        """Return floor, ceiling, log-size and its error for each block, and the threshold at which to split it."""
        step = max(1, _ENTRIES // self._thresholds.k)
        parts = [
            self._measured_some(lower[start : start + step], upper[start : start + step])
            for start in range(0, len(lower), step)
        ]
        return np.concatenate([part[0] for part in parts], axis=1), np.concatenate([part[1] for part in parts])

    def _measured_some(self, lower: Array, upper: Array) -> tuple[Array, Array]:
        """Return the same for as many blocks as fit in memory."""
        thresholds = self._thresholds
        inner, outer = thresholds.places(lower), thresholds.places(upper)
        allowed = thresholds.counts.take(outer)
        choices = (allowed - np.arange(thresholds.k)).astype(np.float64)
        gained = (allowed - thresholds.counts.take(inner)).astype(np.float64)
        total = np.log(choices).sum(axis=1)
        with np.errstate(divide="ignore"):
            log_size = log_difference(total, np.log1p(-gained / choices).sum(axis=1))
        largest = (thresholds.top - thresholds.ascending.take(outer)).max(axis=1)
        beyond = thresholds.top - thresholds.ascending.take(np.maximum(inner - 1, 0))
        smallest = np.where(outer < inner, beyond, largest[:, None]).min(axis=1)
        near, far = (penalties(losses, self._lead, self._rate) for losses in (smallest, largest))
        measured = np.stack([*location_bounds(near, far), log_size, PRECISION * (1.0 + total)])
        return measured, _middle(smallest, largest)

    def _bounds(self, block: int) -> tuple[Array, Array]:
        """Return the inner and outer bounds of a block; no sequence is within the inner bounds of block 0."""
        if block == 0:
            outer = self._thresholds.bounds(self._thresholds.zero)
            return np.zeros_like(outer), outer
        lower, upper = self._between[:, block - 1]
        return self._thresholds.bounds(lower), self._thresholds.bounds(upper)

    def size(self, block: int) -> int:
        """Return the exact number of sequences of a block."""
        inner, outer = (bounds.tolist() for bounds in self._bounds(block))
        within = prod(bound - row for row, bound in enumerate(inner)) if block else 0
        return int(prod(bound - row for row, bound in enumerate(outer)) - within)

    def draw(self, block: int, bits: BitSource) -> tuple[int, ...]:
        """Return the ranks of a uniformly random sequence of a block."""
        return tuple(bounded_sequence(*self._bounds(block), bits))

    def location(self, ranks: Any) -> Fraction:
        """Return the location of a sequence: 0 without loss."""
        loss = _largest_difference(self._thresholds.ranking, np.arange(len(ranks)), whole_numbers(ranks))
        return -self._rate * (loss + self._lead) if loss else loss


def _largest_difference(ranking: Ranking, first: Array, second: Array) -> Fraction:
    """Return `max_i (x_[first_i] − x_[second_i])` without error; rounded differences tell which may be the largest."""
    differences = ranking.scores(first) - ranking.scores(second)
    largest = max(differences.tolist())
    if differences.dtype != np.float64 or not largest:
        return Fraction(largest)
    near = np.flatnonzero(differences >= largest - abs(largest) * 2.0**-40).tolist()
    return max(ranking.exact_score(first[place]) - ranking.exact_score(second[place]) for place in near)


def _middle(low: Array, high: Array) -> Array:
    """Return thresholds halfway between losses; whole numbers for whole numbers."""
    if low.dtype == np.float64:
        return low + (high - low) / 2
    if low.dtype == object:
        middle = np.empty(len(low), dtype=object)
        middle[:] = [(a + b) / 2 if isinstance(a, Fraction) else (a + b) // 2 for a, b in zip(low, high, strict=True)]
        return middle
    whole: Array = low + (high - low) // 2
    return whole
