"""Which scores each row of a sequence may hold, for each bound on the loss that matters.

Joint is a mixture. All sequences of loss s are equally likely, with a chance `p_s` each that falls with s; so drawing
from it is drawing a bound s with chance `(p_s − p_{s+}) N(s)`, s+ the next loss, and then any of the N(s) sequences of
loss at most s. Those are drawn row by row: row r takes one of the ranks `1..t_r` that are left, of which there are
`n_r = t_r − r + 1` (mathematics, section 4). Hence a rank that row r may take is still there after it with chance
`q_r = 1 − 1/n_r`, whatever else was taken.

There are many bounds s, and from one to the next few rows change. So a row is kept as its few runs of equal t_r, in
the order of s; what is added up over all s needs only the sums over runs.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from dpselect._arrays import Array, FloatArray
from dpselect.forecast.loss_bounds import LossBounds
from dpselect.mechanisms.classes import LevelSteps
from dpselect.scores import Ranking


@dataclass(frozen=True, repr=False)
class BoundedRows:
    """The rows for each bound that matters; a bound has a weight, and N sequences within it.

    Runs follow each other by row and then by bound, those of row r from `offsets[r]` on: a run lets its row hold groups
    up to `group`, for `lengths` bounds from the one numbered `start` on. Row r may hold the group of rank j >= r from
    the bound numbered `entries[r, j]` on. `values` and `ends` are the distinct scores relative to that of rank k, and
    how many items have at least each. All are counted from 0.
    """

    weights: FloatArray
    log_within: FloatArray
    offsets: Array
    group: Array
    start: Array
    lengths: Array
    entries: Array
    values: FloatArray
    ends: FloatArray

    @classmethod
    def of(cls, steps: LevelSteps, ranking: Ranking, k: int, bounds: LossBounds) -> BoundedRows:
        """Return the rows for some bounds."""
        numbers, offsets, count = bounds.places(len(steps.losses)), steps.offsets, len(bounds)
        own, values = ranking.groups(np.arange(k)), ranking.grouping.values
        places = numbers[steps.levels]
        # A row begins with what it has taken in by the first bound, and each later step begins another run; of several
        # at one bound the last one counts.
        last = np.append(places[1:] > places[:-1], True)
        last[offsets[1:] - 1] = True
        taken = np.diff(np.searchsorted(np.flatnonzero(places == 0), offsets))
        later = np.flatnonzero(last & (places > 0) & (places < count))
        counts = np.diff(np.searchsorted(later, offsets)) + 1
        borders = np.append(0, np.cumsum(counts))
        stepped = np.ones(borders[-1], dtype=bool)
        stepped[borders[:-1]] = False
        group, start = np.repeat(steps.first - offsets[:-1] + 1, counts), np.zeros(borders[-1], dtype=np.intp)
        group[stepped] += later
        group[borders[:-1]] = steps.first + taken
        start[stepped] = places[later]
        return cls(
            bounds.weights,
            steps.log_within[bounds.numbers],
            borders,
            group,
            start,
            run_lengths(start, borders, count),
            numbers[_entries(steps, own)],
            (values - values[own[-1]]).astype(np.float64),
            ranking.ends.astype(np.float64),
        )

    def __len__(self) -> int:
        """Return the number of bounds."""
        return len(self.weights)

    @property
    def k(self) -> int:
        """The number of rows."""
        return len(self.entries)

    @cached_property
    def border(self) -> int:
        """The group of rank k."""
        return int(np.searchsorted(self.ends, self.k))

    @cached_property
    def top(self) -> FloatArray:
        """The k highest scores, relative to the last of them."""
        return self.values[np.searchsorted(self.ends, np.arange(self.k), side="right")]

    @cached_property
    def runs(self) -> list[slice]:
        """The runs of each row."""
        return [slice(start, stop) for start, stop in pairwise(self.offsets.tolist())]

    @cached_property
    def choices(self) -> FloatArray:
        """How many ranks are left for the row of each run: n."""
        return self.ends[self.group] - np.repeat(np.arange(self.k), np.diff(self.offsets))

    def part(self, begin: int, end: int) -> BoundedRows:
        """Return some of the bounds."""
        if end - begin == len(self):
            return self
        start, stop = np.maximum(self.start, begin), np.minimum(self.start + self.lengths, end)
        kept = np.flatnonzero(start < stop)
        return BoundedRows(
            self.weights[begin:end],
            self.log_within[begin:end],
            np.searchsorted(kept, self.offsets),
            self.group[kept],
            start[kept] - begin,
            (stop - start)[kept],
            np.clip(self.entries, begin, end) - begin,
            self.values,
            self.ends,
        )


def run_lengths(start: Array, offsets: Array, count: int) -> Array:
    """Return how many bounds each run has: up to the next one of its row, or up to the end of all."""
    lengths = np.diff(start, append=0)
    lengths[offsets[1:] - 1] += count
    return lengths


def _entries(steps: LevelSteps, own: Array) -> Array:
    """Return the number of the level from which on each row may hold the group of each rank."""
    counts = np.diff(steps.offsets)[:, None]
    ahead = own - steps.first[:, None]
    levels = np.append(steps.levels, 0)[np.clip(ahead - 1, 0, np.maximum(counts - 1, 0)) + steps.offsets[:-1, None]]
    entries: Array = np.where(ahead <= 0, 0, np.where(ahead > counts, len(steps.losses), levels))
    return entries
