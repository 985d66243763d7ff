"""The losses that k-sequences can have, and which scores each row may hold up to each of them.

Row r may hold scores from `x_[r] − s` on where the loss is at most s (mathematics, section 4). So as s grows a row
takes in one group of tied items after another, the group of score v at the loss `x_[r] − v`: a step.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dpselect._arrays import Array, FloatArray
from dpselect.errors import InvalidInput, plain
from dpselect.mechanisms.joint_blocks import Thresholds
from dpselect.mechanisms.ranking import Ranking

MOST_STEPS = 30_000_000
"""Steps that are listed; more would not fit in memory."""

_MOST_EMPTY = 8
"""Whole-numbered losses are looked up in a table if it has at most this many places for each of them."""


@dataclass(frozen=True, repr=False)
class LevelSteps:
    """Every loss between two bounds, 0 before them, and the steps of each row; rows and groups count from 0.

    `log_within` and `log_sizes` are the logarithms of how many sequences have at most, and just, each loss. Row r holds
    groups up to `first[r]` before its first step; its steps, one group each, are those from `offsets[r]` on, taken at
    the losses numbered `levels`. `whole` tells that there is no loss between 0 and the first of the others.
    """

    whole: bool
    losses: Array
    log_within: FloatArray
    log_sizes: FloatArray
    first: Array
    offsets: Array
    levels: Array

    @classmethod
    def of(cls, k: int, ranking: Ranking, nearest: Any = None, farthest: Any = None) -> LevelSteps:
        """Return all losses, or those above `nearest` and up to `farthest`.

        Row r gains the m items of a group at a step, which multiplies the number of sequences by `(t + m − r)/(t − r)`;
        the logarithms of these factors, added up in order, give `log N(s)` at every level.
        """
        thresholds = Thresholds(ranking, k)
        values, ends = ranking.grouping.values, ranking.ends.astype(np.float64)
        own, top = ranking.groups(np.arange(k)), thresholds.top
        first = own if nearest is None else _lowest(thresholds, nearest)
        last = np.full(k, len(values) - 1) if farthest is None else _lowest(thresholds, farthest)
        offsets = np.append(0, np.cumsum(last - first))
        _check_count(int(offsets[-1]))
        losses, gains, sizes = np.empty(offsets[-1], dtype=values.dtype), np.empty(offsets[-1]), np.diff(ends)
        for row, (start, stop, offset) in enumerate(zip(first.tolist(), last.tolist(), offsets.tolist(), strict=False)):
            steps = slice(offset, offset + stop - start)
            np.subtract(top[row], values[start + 1 : stop + 1], out=losses[steps])
            np.divide(sizes[start:stop], ends[start:stop] - row, out=gains[steps])
        raw, levels = _numbered(losses)
        grown = np.bincount(levels, np.log1p(gains, out=gains), minlength=len(raw) + 1)[1:]
        best, inner = (float(np.log(ends[groups] - np.arange(k)).sum()) for groups in (own, first))
        log_within = inner + np.append(0.0, np.cumsum(grown))
        # log(N − N⁻) from log N⁻ and log N − log N⁻; what is beyond e^700 is all of N.
        log_sizes = log_within[:-1] + np.where(grown > 700.0, grown, np.log(np.expm1(np.minimum(grown, 700.0))))
        return cls(
            nearest is None,
            np.concatenate([top[:1] - top[:1], raw]),
            np.append(best, log_within[1:]),
            np.append(best, log_sizes),
            first,
            offsets,
            levels,
        )

    def up_to(self, lowest: int) -> LevelSteps:
        """Return the steps to groups up to one; the losses remain as they are."""
        counts = np.clip(lowest - self.first, 0, np.diff(self.offsets))
        offsets = np.append(0, np.cumsum(counts))
        kept = np.arange(offsets[-1]) + np.repeat(self.offsets[:-1] - offsets[:-1], counts)
        return replace(self, first=np.minimum(self.first, lowest), offsets=offsets, levels=self.levels[kept])


def _lowest(thresholds: Thresholds, threshold: Any) -> Array:
    """Return the lowest group that each row may hold."""
    places: Array = np.searchsorted(thresholds.ascending, thresholds.top - threshold, side="left")
    return len(thresholds.ascending) - 1 - places


def _numbered(losses: Array) -> tuple[Array, Array]:
    """Return the distinct losses in order, and the number of each one given, from 1 on; the array given is used up."""
    if losses.dtype == np.int64 and len(losses):
        low, high = int(losses.min()), int(losses.max())
        if high - low < _MOST_EMPTY * len(losses):
            seen = np.zeros(high - low + 1, dtype=bool)
            losses -= low
            seen[losses] = True
            return np.flatnonzero(seen) + low, np.cumsum(seen)[losses]
    distinct, places = np.unique(losses, return_inverse=True)
    return distinct, places + 1


def _check_count(count: int) -> None:
    if count > MOST_STEPS:
        raise InvalidInput(
            "scores",
            plain("too many of them"),
            f"at most {MOST_STEPS} levels are listed: k times the number of distinct scores",
        )
