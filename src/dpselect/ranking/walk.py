"""From counts of comparisons to scores: caps, the random walk from losers to winners, its stationary distribution.

The caps keep uniformly random subsets, drawn exactly. Power iteration computes the stationary distribution with an
error that is bounded before any data is seen. The proofs are in ranking.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from dpselect._arrays import Array, FloatArray
from dpselect.ranking.bounds import Bounds
from dpselect.sampling import BitSource, uniform_sequence

_BLOCK = 1 << 22
"""Comparisons that are ranked at a time; a larger group is drawn by itself."""


@dataclass(frozen=True, repr=False)
class Pairs:
    """Comparisons by pair of items, low < high: how often each one won, and how often neither did. Private.

    `size` is the number of items d; items are 0..d−1, and each pair is listed once.
    """

    size: int
    low: Array
    high: Array
    low_won: Array
    high_won: Array
    tied: Array

    def capped(self, most: int, bits: BitSource) -> Pairs:
        """Return the pairs with a uniformly random subset of at most `most` comparisons each."""
        over = np.flatnonzero(self.low_won + self.high_won + self.tied > most)
        if not len(over):
            return self
        results = np.stack([self.low_won[over], self.high_won[over], self.tied[over]], axis=1)
        groups = np.repeat(np.arange(len(over)), 3)
        kept = thinned(results.ravel(), groups, most, bits).reshape(-1, 3)
        changed = [column.copy() for column in (self.low_won, self.high_won, self.tied)]
        for column, new in zip(changed, kept.T, strict=True):
            column[over] = new
        return Pairs(self.size, self.low, self.high, *changed)


@dataclass(frozen=True, repr=False)
class Walk:
    """The walk with `P_ij = units[i → j] / denominator` for i ≠ j, and the rest of each row on the diagonal.

    `units[e]` lead from item `losers[e]` to item `winners[e]`: two for each comparison lost, one for each tie. The
    denominator is public, `2 D L`, and no item has more units than that.
    """

    size: int
    denominator: int
    losers: Array
    winners: Array
    units: Array

    @classmethod
    def of(cls, pairs: Pairs, bounds: Bounds, bits: BitSource) -> Walk:
        """Return the walk of the comparisons after both caps: L for each pair, then D·L lost by each item."""
        pairs = pairs.capped(bounds.comparisons_per_pair, bits)
        upwards, downwards = 2 * pairs.high_won + pairs.tied, 2 * pairs.low_won + pairs.tied
        up, down = np.flatnonzero(upwards), np.flatnonzero(downwards)
        # Most pairs of a sparse graph lead one way only; narrower integers take half the time to copy.
        low, high = (place.astype(np.int32 if pairs.size < 2**31 else np.int64) for place in (pairs.low, pairs.high))
        walk = cls(
            pairs.size,
            bounds.units(pairs.size),
            losers=np.concatenate([low[up], high[down]]),
            winners=np.concatenate([high[up], low[down]]),
            units=np.concatenate([upwards[up], downwards[down]]),
        )
        return walk._with_capped_rows(bits)

    @cached_property
    def lost(self) -> Array:
        """The units of each item, a whole number."""
        # Whole numbers below 2^53 add up exactly as floats; no table has more rows.
        return np.bincount(self.losers, weights=self.units, minlength=self.size).astype(np.int64)

    @cached_property
    def into_winners(self) -> Any:
        """The sparse matrix whose row j holds the units that lead to item j."""
        from scipy.sparse import csr_array

        entries = (self.units.astype(np.float64), (self.winners, self.losers))
        return csr_array(entries, shape=(self.size, self.size))

    def _with_capped_rows(self, bits: BitSource) -> Walk:
        """Return the walk with a uniformly random subset of at most `denominator` units for each item."""
        over = self.lost > self.denominator
        if not over.any():
            return self
        cells = np.flatnonzero(over[self.losers])
        cells = cells[np.argsort(self.losers[cells], kind="stable")]
        groups = np.unique(self.losers[cells], return_inverse=True)[1]
        units = self.units.copy()
        units[cells] = thinned(units[cells], groups, self.denominator, bits)
        return Walk(self.size, self.denominator, self.losers, self.winners, units)


def stationary(walk: Walk, bounds: Bounds, progress: Callable[[float | None], Any] | None = None) -> FloatArray:
    """Return π with `π = (1 − α) π P + α/d`, or `π = π P` with a promise, up to τ = bounds.tolerance(d) in L1.

    Power iteration from the uniform distribution. It ends when the last step certifies the error, or after a fixed
    number of steps that is enough for all data; so it never fails, and no failure can reveal data (ranking.md).
    """
    size, damped = walk.size, bounds.promised_rho is None
    matrix, stays = walk.into_winners, (walk.denominator - walk.lost).astype(np.float64)
    restarts, kept = (bounds.damping / size, 1 - bounds.damping) if damped else (0.0, 1.0)
    current, enough = np.full(size, 1 / size), bounds.largest_residual(size)
    for _ in range(bounds.steps(size)):
        moved = matrix @ current
        moved += current * stays
        moved /= walk.denominator
        moved *= kept
        moved += restarts
        residual = float(np.abs(moved - current).sum())
        current = moved
        if residual <= enough:
            break
        if progress is not None:
            progress(None)
    return current


def thinned(counts: Array, groups: Array, capacity: int, bits: BitSource) -> Array:
    """Return the counts that remain when each group keeps a uniformly random subset of `capacity` members.

    Cell c stands for counts[c] identical members of group groups[c]; groups are numbered from 0 in the order of the
    cells. The remaining counts of a group follow the multivariate hypergeometric distribution.
    """
    if not len(counts):
        return counts
    starts = np.flatnonzero(np.diff(groups, prepend=-1))
    totals = np.add.reduceat(counts, starts)
    ends = np.append(starts[1:], len(counts))
    kept = counts.copy()
    for first, last in _blocks(totals):
        cells = slice(starts[first], ends[last - 1])
        if last - first == 1 and totals[first] > _BLOCK:
            kept[cells] = _thinned_alone(counts[cells], int(totals[first]), capacity, bits)
        else:
            kept[cells] = _thinned_by_rank(counts[cells], groups[cells], capacity, bits)
    return kept


def _blocks(totals: Array) -> Iterator[tuple[int, int]]:
    """Yield ranges of groups with at most _BLOCK members together; a larger group is a range of its own."""
    until = np.cumsum(totals)
    first = 0
    while first < len(totals):
        before = int(until[first - 1]) if first else 0
        last = max(int(np.searchsorted(until, before + _BLOCK, side="right")), first + 1)
        yield first, last
        first = last


def _thinned_by_rank(counts: Array, groups: Array, capacity: int, bits: BitSource) -> Array:
    """Give each member a random key and keep the smallest keys of each group; equal keys are all drawn again."""
    cells = np.repeat(np.arange(len(counts)), counts)
    of = groups[cells]
    while True:
        keys = bits.integers(len(cells), 64)
        order = np.lexsort((keys, of))
        ranked, ranked_of = keys[order], of[order]
        if not ((ranked[1:] == ranked[:-1]) & (ranked_of[1:] == ranked_of[:-1])).any():
            break
    starts = np.flatnonzero(np.diff(ranked_of, prepend=-1))
    sizes = np.diff(np.append(starts, len(order)))
    rank = np.arange(len(order)) - np.repeat(starts, sizes)
    return np.bincount(cells[order[rank < capacity]], minlength=len(counts))


def _thinned_alone(counts: Array, total: int, capacity: int, bits: BitSource) -> Array:
    """Draw the members of one large group that stay, or those that go, whichever are fewer."""
    if capacity >= total:
        return counts
    goes = 2 * capacity > total
    drawn = uniform_sequence(total, total - capacity if goes else capacity, bits)
    cells = np.searchsorted(np.cumsum(counts), np.array(drawn, dtype=np.int64), side="right")
    found = np.bincount(cells, minlength=len(counts))
    return counts - found if goes else found
