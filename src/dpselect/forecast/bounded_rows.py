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
from typing import Any

import numpy as np
import numpy.typing as npt

from dpselect.forecast.chances import FloatArray
from dpselect.forecast.sequences import Sequences
from dpselect.mechanisms.level_steps import LevelSteps
from dpselect.mechanisms.ranking import Ranking

Array = npt.NDArray[Any]

_NEGLIGIBLE = 2e-14
"""What the first bounds, and the last ones, may weigh together to be left out."""

_TOGETHER = 1e-11
"""Which share of the loss bounds may have to be counted with one before them."""


@dataclass(frozen=True, repr=False)
class BoundedRows:
    """The rows for each bound that matters; a bound has a weight, and N sequences within it.

    Runs follow each other by row and then by bound: a run of `row` lets it hold groups up to `group`, from the bound
    numbered `start` up to `stop`. Row r may hold the group of rank j >= r from the bound numbered `entries[r, j]` on.
    `values` and `ends` are the distinct scores relative to that of rank k, and how many items have at least each. All
    are counted from 0.
    """

    weights: FloatArray
    log_within: FloatArray
    row: Array
    group: Array
    start: Array
    stop: Array
    entries: Array
    values: FloatArray
    ends: FloatArray

    @classmethod
    def of(cls, levels: Sequences, ranking: Ranking, k: int, epsilon: float, noise: str) -> BoundedRows:
        """Return the rows between the first bound that matters and the last."""
        weights, steps = levels.mixture(epsilon, noise), levels.steps
        # Where hardly anything is lost, what can be lost counts all the same.
        light = _NEGLIGIBLE * min(float(weights[1:].sum()) or 1.0, 1.0)
        begin, beyond = (int((np.cumsum(some) <= light).sum()) for some in (weights, weights[::-1]))
        begin, end = max(begin, 0 if steps.whole else 1), len(weights) - beyond
        own, values = ranking.groups(np.arange(k)), ranking.grouping.values
        # Nothing below rank k is chosen unless the loss is that of the next score.
        losses, next_one = weights[begin:end] * levels.losses[begin:end], values[min(own[-1] + 1, len(values) - 1)]
        kept, numbers = _apart(losses, np.where(steps.losses[begin:end] < values[own[-1]] - next_one, 0.0, losses))
        places, offsets, count = steps.levels - begin, steps.offsets, len(kept)
        places = numbers[np.clip(places, 0, end - begin, out=places)]
        # A row begins with what it has taken in by the first bound, and each later step begins another run; of several
        # at one bound the last one counts.
        last = np.append(places[1:] > places[:-1], True)
        last[offsets[1:] - 1] = True
        taken = np.diff(np.append(0, np.cumsum(places == 0))[offsets])
        later = np.flatnonzero(last & (places > 0) & (places < count))
        counts = np.diff(np.searchsorted(later, offsets)) + 1
        begins = np.cumsum(counts) - counts
        row, stepped = np.repeat(np.arange(k), counts), np.ones(int(counts.sum()), dtype=bool)
        stepped[begins] = False
        group, start = (steps.first + taken)[row], np.zeros(len(row), dtype=np.intp)
        group[stepped] = (steps.first - offsets[:-1] + 1)[row[stepped]] + later
        start[stepped] = places[later]
        stop = np.append(start[1:], count)
        stop[begins[1:] - 1] = count
        return cls(
            np.add.reduceat(weights[begin:end], kept),
            steps.log_within[begin:end][kept],
            row,
            group,
            start,
            stop,
            numbers[_entries(steps, own, begin, end)],
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
        borders = np.searchsorted(self.row, np.arange(self.k + 1)).tolist()
        return [slice(start, stop) for start, stop in pairwise(borders)]

    @cached_property
    def choices(self) -> FloatArray:
        """How many ranks are left for the row of each run: n."""
        return self.ends[self.group] - self.row

    @cached_property
    def lengths(self) -> Array:
        """How many bounds each run has."""
        return self.stop - self.start

    def part(self, begin: int, end: int) -> BoundedRows:
        """Return some of the bounds."""
        if end - begin == len(self):
            return self
        kept = np.flatnonzero((self.stop > begin) & (self.start < end))
        return BoundedRows(
            self.weights[begin:end],
            self.log_within[begin:end],
            self.row[kept],
            self.group[kept],
            np.maximum(self.start[kept], begin) - begin,
            np.minimum(self.stop[kept], end) - begin,
            np.clip(self.entries, begin, end) - begin,
            self.values,
            self.ends,
        )


def _apart(*losses: FloatArray) -> tuple[Array, Array]:
    """Return the bounds to keep, and for each bound, and the end, the number of the first one kept from there on.

    Behind the middle of each of the losses, weights times bounds, those that make up next to no share of any of them
    are counted with a bound before them. What sequences lose is about as much as the bound, so that less than that
    share changes by the ratio of one bound to the other.
    """
    apart = np.zeros(len(losses[0]), dtype=bool)
    for each in losses:
        before = np.cumsum(each)
        cells = np.floor(before / max(_TOGETHER * before[-1], np.finfo(np.float64).tiny))
        apart |= (np.diff(cells, prepend=-1.0) > 0) | (before < before[-1] / 2)
    numbers: Array = np.append(np.cumsum(apart) - apart, int(apart.sum()))
    return np.flatnonzero(apart), numbers


def _entries(steps: LevelSteps, own: Array, begin: int, end: int) -> Array:
    """Return the number of the bound, between two, from which on each row may hold the group of each rank."""
    counts = np.diff(steps.offsets)[:, None]
    ahead = own - steps.first[:, None]
    levels = np.append(steps.levels, 0)[np.clip(ahead - 1, 0, np.maximum(counts - 1, 0)) + steps.offsets[:-1, None]]
    entries: Array = np.clip(np.where(ahead <= 0, begin, np.where(ahead > counts, end, levels)), begin, end) - begin
    return entries
