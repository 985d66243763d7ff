"""All k-subsets but the top one, as blocks for a race (canonical, Definition 3.4; mathematics, section 3).

A subset lacks some of the top k. Its *head* h is the number of leading ranks it holds before the first it lacks, its
*tail* the last rank it holds; both decide its loss. Row h of the blocks has subsets of head h: ranks 0..h−1, not rank
h, and `k − h` of the ranks behind it, the last beyond rank k − 1. A block is a row cut down to tails among
consecutive runs of equal scores.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import comb

import numpy as np

from dpselect._arrays import Array, FloatArray
from dpselect.mechanisms.ranking import Ranking, location_bounds, scaled
from dpselect.sampling import BitSource
from dpselect.sampling.logcount import log_difference, log_falling, log_falling_error
from dpselect.sampling.race import Alternative
from dpselect.sampling.sequences import bounded_sequence, whole_numbers


@dataclass(frozen=True)
class Rows:
    """The rows: how many leading ranks each holds, the first rank it may pick from, how many it picks, and its penalty.

    With gamma = 1 the head does not matter, and one row picks all k ranks freely.
    """

    held: Array
    start: Array
    picks: Array
    penalty: FloatArray


@dataclass(frozen=True)
class Tails:
    """The runs of equal scores beyond rank k − 1: where each ends, and its penalty, which grows along the runs."""

    ends: Array
    penalty: FloatArray


@dataclass(frozen=True)
class Geometry:
    """Locations of all subsets relative to the top set, which stands at 0: minus a head penalty and a tail penalty.

    With rate = ε/w: `(1 − γ) · rate · (x_[h+1] − x_[s])` and `γ · rate · (x_[k] − x_[t])`, both at least 0. The rank
    s, `stand_in`, is the one whose score counts as the best that the top set lacks: k + 1 with the margin, k as
    published.
    """

    ranking: Ranking
    k: int
    head_rate: Fraction
    tail_rate: Fraction
    stand_in: int

    @cached_property
    def rows(self) -> Rows:
        if self.head_rate == 0:
            return Rows(np.array([0]), np.array([0]), np.array([self.k]), np.zeros(1))
        heads = np.arange(self.k)
        missing = self.ranking.scores(heads) - self.ranking.scores(np.array([self.stand_in]))
        return Rows(heads, heads + 1, self.k - heads, scaled(missing, self.head_rate))

    @cached_property
    def tails(self) -> Tails:
        first = int(self.ranking.groups(self.k))
        values = self.ranking.grouping.values[first:]
        gaps = self.ranking.scores(np.array([self.k - 1])) - values
        return Tails(self.ranking.ends[first:], scaled(gaps, self.tail_rate))

    def exact_penalty(self, row: int, tail: int) -> Fraction:
        """Return the penalty of a subset in a row whose last rank is `tail`."""
        score = self.ranking.exact_score
        head = self.head_rate * (score(row) - score(self.stand_in)) if self.head_rate else Fraction(0)
        return head + self.tail_rate * (score(self.k - 1) - score(tail))


class SubsetBlocks:
    """The top set as block 0, then blocks (row, first run, last run), cut finely where the weight lies.

    A block is cut while its locations differ by more than 1 and even its best location would give it a noticeable share
    of the total weight; the race is exact for any cut.
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
        while blocks.shape[1]:
            measured = self._measure(blocks)
            floor, ceiling, log_size = measured[0], measured[1], measured[2]
            heaviest = max(heaviest, float((floor + log_size).max()))
            wide = (ceiling - floor > widest) & (ceiling + log_size > heaviest - np.log(total) - 2.0)
            wide &= blocks[2] - blocks[1] > 1
            finished.append(blocks[:, ~wide])
            measures.append(measured[:, ~wide])
            blocks = self._halved(blocks[:, wide])
            total += blocks.shape[1]
        self._blocks = np.concatenate(finished, axis=1)
        top = np.zeros((4, 1))
        self.floor, self.ceiling, self.log_size, self.log_size_error = np.concatenate([top, *measures], axis=1)

    def _halved(self, blocks: Array) -> Array:
        """Cut each block in the middle of its range of tail penalties."""
        row, first, last = blocks
        penalty = self._geometry.tails.penalty
        middle = np.searchsorted(penalty, penalty[first] / 2 + penalty[last - 1] / 2, side="right")
        middle = np.clip(middle, first + 1, last - 1)
        return np.concatenate([np.stack([row, first, middle]), np.stack([row, middle, last])], axis=1)

    def _measure(self, blocks: Array) -> Array:
        """Return floor, ceiling, log-size and its error for each block."""
        rows, tails = self._geometry.rows, self._geometry.tails
        row, first, last = blocks
        near = rows.penalty[row] + tails.penalty[first]
        far = rows.penalty[row] + tails.penalty[last - 1]
        picks, inner, outer = self._picks(blocks)
        log_size, error = log_subsets(inner, outer, picks)
        return np.stack([*location_bounds(near, far), log_size, error])

    def _picks(self, blocks: Array) -> tuple[Array, Array, Array]:
        """Return how many ranks each block picks, out of how many, and how many of those lie before its tails."""
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

    def draw(self, block: int, bits: BitSource) -> Alternative:
        """Return a uniformly random subset: its key is (held, sorted further ranks), None for the top set."""
        if block == 0:
            return Alternative(None, Fraction(0))
        picks, inner, outer = (int(part[0]) for part in self._picks(self._blocks[:, block - 1 : block]))
        row = int(self._blocks[0, block - 1])
        rows = self._geometry.rows
        start = int(rows.start[row])
        chosen = bounded_sequence(whole_numbers([inner] * picks), whole_numbers([outer] * picks), bits)
        ranks = tuple(sorted(start + pick for pick in chosen))
        return Alternative((int(rows.held[row]), ranks), -self._geometry.exact_penalty(row, ranks[-1]))


def log_subsets(inner: Array, outer: Array, picks: Array) -> tuple[FloatArray, FloatArray]:
    """Return log(C(outer, picks) − C(inner, picks)) and a bound on its error.

    Two ways, whichever has the smaller bound: the difference of the two logarithms, precise when they are well apart;
    or, for a thin slice, `outer − inner` times a term between C(inner, picks − 1) and C(outer − 1, picks − 1).
    """
    orderings = log_falling(picks, picks)
    whole, whole_error = log_falling(outer, picks), log_falling_error(outer, picks)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        ratio = np.minimum(log_falling(inner, picks) - whole, 0.0)
        share = -np.expm1(ratio)
        by_difference = log_difference(whole - orderings, ratio)
        difference_error = 2 * whole_error + np.where(share > 0, 4 * whole_error / share, np.inf)
        low = log_falling(inner, picks - 1)
        high = log_falling(outer - 1, picks - 1)
        slice_low = np.log((outer - inner).astype(np.float64)) + low - (orderings - np.log(picks.astype(np.float64)))
        by_slice = slice_low + (high - low) / 2
        slice_error = (high - low) / 2 + 4 * whole_error
    thin = slice_error < difference_error
    return np.where(thin, by_slice, by_difference), np.where(thin, slice_error, difference_error)
