"""The canonical mechanism: a k-subset in one draw (canonical, section 3; mathematics, section 3).

All k-subsets but the top one are divided into blocks for a race. A subset lacks some of the top k. Its *head* h is the
number of leading ranks it contains before the first one it lacks, its *tail* the last rank it contains; the two
determine its loss. Row h of the blocks contains the subsets of head h: ranks 0..h−1, not rank h, and `k − h` of the
ranks after it, the last of them beyond rank k − 1. A block is a row restricted to tails in consecutive runs of equal
scores.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from math import ceil, comb
from typing import Any, ClassVar

import numpy as np

from dpselect._arrays import Array, FloatArray
from dpselect._numbers import finite_number
from dpselect.errors import InvalidInput
from dpselect.mechanisms.base import FARTHEST, Law, Mechanism, check_margin, check_noise, in_random_order
from dpselect.mechanisms.classes import Classes, classes_of, winner_law
from dpselect.sampling import NOISES, BitSource
from dpselect.sampling.bounds import SATURATED, SLACK, location_bounds, scaled
from dpselect.sampling.race import race
from dpselect.sampling.sequences import bounded_sequence, log_subsets, whole_numbers
from dpselect.scores import Members, Ranking, Scores


@dataclass(frozen=True, kw_only=True)
class Canonical(Mechanism):
    """The canonical mechanism: the k-subset y with the largest `−ε · loss(y) / w + noise`, as a set.

    `loss(y) = (1 − γ) · max_{j ∉ y} x_j − γ · min_{j ∈ y} x_j`. Adding a person changes the losses of all subsets by
    amounts in one window of width w, the spread of the sensitivity; so the noise does not grow with k. Canonical,
    section 3; mathematics, section 3; proof in canonical.md.

    Parameters
    ----------
    k, epsilon, sensitivity
        As in `Mechanism`.
    gamma
        γ in [0, 1], the weight of the worst score in the set against the best score outside.
    noise
        "exponential" gives permute-and-flip over subsets, "gumbel" the exponential mechanism, which is never better.
    margin
        Whether the loss of the top set uses x_[k+1], as the definition says. False uses x_[k], as published, and makes
        no use of the gap after rank k.
    rounded
        Whether losses are rounded up to whole multiples of w/2, the most that one person moves a loss (canonical,
        lemma 3.1). Needs γ = ½. Losses of whole counts are such multiples already.

    Raises
    ------
    InvalidInput
        If an argument is out of range, or losses are to be rounded with another γ than ½.

    Examples
    --------
    >>> import dpselect as dps
    >>> mechanism = dps.Canonical(k=2, epsilon=1.0)
    >>> sorted(mechanism.select([900, 5, 700, 30], seed=1).tolist())
    [0, 2]
    >>> round(mechanism.law([9, 0, 5])[frozenset({0, 2})], 4)
    0.9962
    """

    name: ClassVar[str] = "canonical"

    gamma: float = 0.5
    noise: str = "exponential"
    margin: bool = True
    rounded: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_noise(self.noise, ("exponential", "gumbel"))
        object.__setattr__(self, "gamma", float(finite_number("gamma", self.gamma)))
        if not 0 <= self.gamma <= 1:
            raise InvalidInput("gamma", self.gamma, "must be between 0 and 1")
        check_margin(self.margin)
        if not isinstance(self.rounded, bool):
            raise InvalidInput("rounded", self.rounded, "must be True or False")
        if self.rounded and self.gamma != 0.5:
            raise InvalidInput("gamma", self.gamma, "must be 0.5 if losses are rounded, as the lemma needs it")

    @property
    def ordered(self) -> bool:
        """False: the answer is a set in random order."""
        return False

    def draw(self, scores: Scores, bits: BitSource) -> Members:
        """Return the chosen set, in uniformly random order."""
        self.check_size(scores.size)
        ranking = Ranking.of(scores.distinct)
        ranks = np.arange(self.k)
        if scores.size > self.k:
            winner: Any = race(SubsetBlocks(self.geometry(ranking)), NOISES[self.noise], bits)
            if winner is not None:
                held, further = winner
                ranks = whole_numbers([*range(held), *further])
        return ranking.members(in_random_order(ranks, bits))

    def geometry(self, ranking: Ranking) -> Geometry:
        """Return the locations of all subsets."""
        rate, gamma = self.exact_rate(), Fraction(self.gamma)
        stand_in = self.k if self.margin else self.k - 1
        step = rate * self.loss_step if self.rounded else None
        return Geometry(ranking, self.k, (1 - gamma) * rate, gamma * rate, stand_in, step)

    @property
    def loss_step(self) -> Fraction:
        """w/2, of which rounded losses are multiples."""
        return Fraction(self.sensitivity.spread) / 2

    def classes(self, scores: Any) -> Classes:
        """Return every (head, tail) class with its size and probability, computed from the scores: not private."""
        return classes_of(self, scores)

    def law(self, scores: Any) -> Law:
        """Return the probability of every k-subset."""
        table = self.small_domain(scores)
        values = table.exact()
        subsets = [frozenset(subset) for subset in combinations(range(table.size), self.k)]
        losses = [self._loss(values, subset) for subset in subsets]
        locations = [float(max(self.exact_rate() * (min(losses) - loss), -FARTHEST)) for loss in losses]
        return dict(zip(subsets, winner_law(locations, self.noise).tolist(), strict=True))

    def _loss(self, values: list[Fraction], subset: frozenset[int]) -> Fraction:
        """Return the loss of one subset by its definition."""
        inside = min(values[item] for item in subset)
        outside = [values[item] for item in range(len(values)) if item not in subset]
        if not outside:
            return Fraction(0)
        gamma = Fraction(self.gamma)
        missing = max(outside)
        if not self.margin and missing <= inside:
            missing = inside
        loss = (1 - gamma) * missing - gamma * inside
        return ceil(loss / self.loss_step) * self.loss_step if self.rounded else loss


@dataclass(frozen=True)
class Rows:
    """The rows of blocks: leading ranks contained, first rank to pick from, number of picks, and head penalty.

    For γ = 1 the head does not matter, and a single row picks all k ranks freely.
    """

    held: Array
    start: Array
    picks: Array
    penalty: FloatArray


@dataclass(frozen=True)
class Tails:
    """The runs of equal scores beyond rank k − 1: the end of each and its tail penalty, in ascending order."""

    ends: Array
    penalty: FloatArray


@dataclass(frozen=True)
class Geometry:
    """Locations of all subsets relative to the top set, which is at 0: minus a head penalty, minus a tail penalty.

    With rate = ε/w these are `(1 − γ) · rate · (x_[h+1] − x_[s])` and `γ · rate · (x_[k] − x_[t])`, both at least 0.
    The rank s, `stand_in` (from 0), is the one whose score counts as the best that the top set lacks: k + 1 with the
    margin, k as published.

    With a `step`, the rate times w/2, losses are rounded up to multiples of w/2 (canonical, lemma 3.1): the penalty p
    becomes `step · (⌈(p + o)/step⌉ − ⌈o/step⌉)`, where o is the rate times the loss of the top set.
    """

    ranking: Ranking
    k: int
    head_rate: Fraction
    tail_rate: Fraction
    stand_in: int
    step: Fraction | None = None

    @cached_property
    def rows(self) -> Rows:
        """The rows of blocks."""
        if self.head_rate == 0:
            return Rows(np.array([0]), np.array([0]), np.array([self.k]), np.zeros(1))
        heads = np.arange(self.k)
        missing = self.ranking.scores(heads) - self.ranking.scores(np.array([self.stand_in]))
        return Rows(heads, heads + 1, self.k - heads, scaled(missing, self.head_rate))

    @cached_property
    def tails(self) -> Tails:
        """The runs of tails."""
        first = int(self.ranking.groups(self.k))
        values = self.ranking.grouping.values[first:]
        gaps = self.ranking.scores(np.array([self.k - 1])) - values
        return Tails(self.ranking.ends[first:], scaled(gaps, self.tail_rate))

    def exact_penalty(self, row: int, tail: int) -> Fraction:
        """Return the penalty of a subset in a row whose last rank is `tail`."""
        score = self.ranking.exact_score
        head = self.head_rate * (score(row) - score(self.stand_in)) if self.head_rate else Fraction(0)
        penalty = head + self.tail_rate * (score(self.k - 1) - score(tail))
        if self.step is None:
            return penalty
        return self.step * (ceil((penalty + self.top_loss) / self.step) - ceil(self.top_loss / self.step))

    @cached_property
    def top_loss(self) -> Fraction:
        """The rate times the loss of the top set."""
        score = self.ranking.exact_score
        return self.head_rate * score(self.stand_in) - self.tail_rate * score(self.k - 1)

    def locations(self, near: FloatArray, far: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return lower and upper bounds on locations whose penalties before rounding lie between `near` and `far`."""
        if self.step is None:
            return location_bounds(near, far)
        step = float(self.step)
        # A penalty in float64 may lie on the wrong side of a multiple of the step, so it is widened before rounding.
        least, most = self._rounded_up(near - SLACK * (1 + near)), self._rounded_up(far + SLACK * (1 + far))
        # Rounding moves a penalty by less than a step: this is used where the number of steps is not known.
        known = np.isfinite(most) & (far < SATURATED)
        with np.errstate(over="ignore"):
            return location_bounds(
                np.where(known, least, np.maximum(near - step, 0.0)), np.where(known, most, far + step)
            )

    def _rounded_up(self, penalties: FloatArray) -> FloatArray:
        """Return rounded penalties in float64, infinite or NaN where the number of steps overflows."""
        assert self.step is not None
        step, top = float(self.step), float(max(self.top_loss, -Fraction(SATURATED)))
        whole = ceil(self.top_loss / self.step)
        before = float(whole) if whole > -SATURATED else -np.inf
        with np.errstate(over="ignore", invalid="ignore"):
            rounded: FloatArray = np.maximum(np.ceil((penalties + top) / step) - before, 0.0) * step
        return rounded


class SubsetBlocks:
    """The top set as block 0, then blocks (row, first run, last run), finer where the probability is.

    A block is split while its locations differ by more than 1 and its highest location would give it a noticeable share
    of the total weight. The race is exact for any division into blocks.
    """

    def __init__(self, geometry: Geometry, *, widest: float = 1.0) -> None:
        self._geometry = geometry
        rows, tails = geometry.rows, geometry.tails
        count = len(rows.held)
        blocks = np.stack([np.arange(count), np.zeros(count, np.intp), np.full(count, len(tails.ends))])
        finished: list[Array] = []
        measures: list[Array] = []
        heaviest = 0.0
        total = count
        while True:
            measured = self._measure(blocks)
            floor, ceiling, log_size = measured[:3]
            heaviest = max(heaviest, float((floor + log_size).max()))
            wide = (ceiling - floor > widest) & (ceiling + log_size > heaviest - np.log(total) - 2.0)
            wide &= blocks[2] - blocks[1] > 1
            finished.append(blocks[:, ~wide])
            measures.append(measured[:, ~wide])
            if not wide.any():
                break
            blocks = self._halved(blocks[:, wide])
            total += blocks.shape[1]
        self._blocks = np.concatenate(finished, axis=1)
        top = np.zeros((4, 1))
        self.floor, self.ceiling, self.log_size, self.log_size_error = np.concatenate([top, *measures], axis=1)

    def _halved(self, blocks: Array) -> Array:
        """Split each block in the middle of its range of tail penalties."""
        row, first, last = blocks
        penalty = self._geometry.tails.penalty
        middle = np.searchsorted(penalty, penalty[first] / 2 + penalty[last - 1] / 2, side="right")
        middle = np.minimum(np.maximum(middle, first + 1), last - 1)
        return np.concatenate([np.stack([row, first, middle]), np.stack([row, middle, last])], axis=1)

    def _measure(self, blocks: Array) -> Array:
        """Return floor, ceiling, log-size and the error of the log-size for each block."""
        rows, tails = self._geometry.rows, self._geometry.tails
        row, first, last = blocks
        near = rows.penalty[row] + tails.penalty[first]
        far = rows.penalty[row] + tails.penalty[last - 1]
        picks, inner, outer = self._picks(blocks)
        log_size, error = log_subsets(inner, outer, picks)
        return np.stack([*self._geometry.locations(near, far), log_size, error])

    def _picks(self, blocks: Array) -> tuple[Array, Array, Array]:
        """Return, for each block, the number of picks, of ranks before its tails, and of ranks up to their end."""
        rows, tails = self._geometry.rows, self._geometry.tails
        row, first, last = blocks
        before = np.where(first > 0, tails.ends[first - 1], self._geometry.k)
        return rows.picks[row], before - rows.start[row], tails.ends[last - 1] - rows.start[row]

    def size(self, block: int) -> int:
        """Return the exact number of subsets of a block."""
        if block == 0:
            return 1
        picks, inner, outer = (int(part[0]) for part in self._picks(self._blocks[:, block - 1 : block]))
        return comb(outer, picks) - comb(inner, picks)

    def draw(self, block: int, bits: BitSource) -> tuple[int, tuple[int, ...]] | None:
        """Return a uniformly random subset as (held, sorted further ranks), or None for the top set."""
        if block == 0:
            return None
        picks, inner, outer = (int(part[0]) for part in self._picks(self._blocks[:, block - 1 : block]))
        row = int(self._blocks[0, block - 1])
        rows = self._geometry.rows
        start = int(rows.start[row])
        chosen = bounded_sequence(whole_numbers([inner] * picks), whole_numbers([outer] * picks), bits)
        return int(rows.held[row]), tuple(sorted(start + pick for pick in chosen))

    def location(self, subset: Any) -> Fraction:
        """Return the location of a subset, which holds as many leading ranks as the number of its row."""
        if subset is None:
            return Fraction(0)
        held, further = subset
        return -self._geometry.exact_penalty(held, further[-1])
