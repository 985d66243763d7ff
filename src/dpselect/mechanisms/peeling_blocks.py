"""The items that are left in a round of peeling, as blocks for a race."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from dpselect.mechanisms.ranking import Ranking, exact, location_bounds, scaled
from dpselect.sampling import BitSource, uniform_integer
from dpselect.sampling.race import SLACK, Alternative

_WINDOW = 64
"""Bins looked at one by one in a round; all items behind them are one more block."""


class ItemsLeft:
    """Items by rank in bins of nearly equal location, of which those taken are left out.

    Measured from the k-th score, bins are one unit of location wide down to where an item could reasonably win, and
    double in width from there. Bins only save work: the race is exact for any of them.
    """

    def __init__(self, ranking: Ranking, k: int, rate: Fraction) -> None:
        self._ranking = ranking
        self._rate = rate
        self._taken: set[int] = set()
        values = ranking.grouping.values
        depth = scaled(values[int(ranking.groups(k - 1))] - values, rate)
        reach = float(np.log(float(ranking.ends[-1]))) + 20.0
        near = depth <= reach
        bins = np.where(near, np.floor(depth), np.floor(np.log2(2 + np.maximum(depth - reach, 0.0))))
        self._first = np.flatnonzero(np.append(True, (bins[1:] != bins[:-1]) | (near[1:] != near[:-1])))
        self._last = np.append(self._first[1:], len(values)) - 1
        self._ends = ranking.ends[self._last]
        self._starts = np.concatenate([self._ends[:0], [0], self._ends[:-1]])
        self._left = self._ends - self._starts
        self._front = 0
        self._look()

    def _look(self) -> None:
        """Measure the blocks of the coming round, relative to the highest score that may be left."""
        while self._front < len(self._left) - 1 and not self._left[self._front]:
            self._front += 1
        window = slice(self._front, self._front + _WINDOW)
        held = np.flatnonzero(self._left[window]) + self._front
        first, last, left = self._first[held], self._last[held], self._left[held]
        self._low, self._high = self._starts[held], self._ends[held]
        behind = self._left[self._front + _WINDOW :].sum()
        if behind:
            bin_behind = self._front + _WINDOW
            first, last = np.append(first, self._first[bin_behind]), np.append(last, self._last[-1])
            left = np.append(left, behind)
            self._low = np.append(self._low, self._starts[bin_behind])
            self._high = np.append(self._high, self._ends[-1])
        values = self._ranking.grouping.values
        near = scaled(values[first[0]] - values[first], self._rate)
        far = scaled(values[first[0]] - values[last], self._rate)
        self._reference = exact(values[first[0]])
        self._sizes = left
        self.floor, self.ceiling = location_bounds(near, far)
        self.log_size = np.log(left.astype(np.float64))
        self.log_size_error = np.full(len(left), SLACK)

    def size(self, block: int) -> int:
        """Return how many items of a block are left."""
        return int(self._sizes[block])

    def draw(self, block: int, bits: BitSource) -> Alternative:
        """Return a uniformly random item of those left in a block; its key is its rank."""
        low, high = int(self._low[block]), int(self._high[block])
        while True:
            rank = low + uniform_integer(high - low, bits)
            if rank not in self._taken:
                break
        return Alternative(rank, self._rate * (self._ranking.exact_score(rank) - self._reference))

    def take(self, rank: int) -> None:
        """Leave an item out from now on."""
        self._taken.add(rank)
        self._left[int(np.searchsorted(self._ends, rank, side="right"))] -= 1
        if len(self._taken) < self._ends[-1]:
            self._look()
