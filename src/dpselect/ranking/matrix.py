"""From how often each pair of items was compared to the random walk from losers to winners."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from dpselect._arrays import Array
from dpselect.ranking.caps import thinned
from dpselect.ranking.sensitivity import Bounds
from dpselect.sampling import BitSource


@dataclass(frozen=True, repr=False)
class Pairs:
    """Comparisons by pair of items, low < high: how often either one won, and how often neither did. Private.

    `size` is the number of items d; each pair is listed once, and items are 0..d−1.
    """

    size: int
    low: Array
    high: Array
    low_won: Array
    high_won: Array
    tied: Array

    def capped(self, most: int, bits: BitSource) -> Pairs:
        """Return the pairs with at most so many comparisons each, a uniformly random choice."""
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

    From item `losers[e]` to `winners[e]` lead `units[e]` of `denominator = 2 D L`: two for each comparison lost, one
    for each tie. The denominator is public, and no item has more units.
    """

    size: int
    denominator: int
    losers: Array
    winners: Array
    units: Array

    @classmethod
    def of(cls, pairs: Pairs, bounds: Bounds, bits: BitSource) -> Walk:
        """Return the walk of the comparisons that the caps leave: L of each pair, then D·L lost by each item."""
        pairs = pairs.capped(bounds.comparisons_per_pair, bits)
        upwards, downwards = 2 * pairs.high_won + pairs.tied, 2 * pairs.low_won + pairs.tied
        up, down = np.flatnonzero(upwards), np.flatnonzero(downwards)
        # Most pairs of a sparse graph lead one way only, and half as wide numbers are half as much to move.
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
        over = self.lost > self.denominator
        if not over.any():
            return self
        cells = np.flatnonzero(over[self.losers])
        cells = cells[np.argsort(self.losers[cells], kind="stable")]
        groups = np.unique(self.losers[cells], return_inverse=True)[1]
        units = self.units.copy()
        units[cells] = thinned(units[cells], groups, self.denominator, bits)
        return Walk(self.size, self.denominator, self.losers, self.winners, units)
