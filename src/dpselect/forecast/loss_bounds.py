"""Which bounds on the loss of Joint's sequences matter, and how much each weighs; see `bounded_rows`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dpselect._arrays import Array, FloatArray
from dpselect.forecast.sequences import Sequences

_NEGLIGIBLE = 2e-14
"""What the first bounds, and the last ones, may weigh together to be left out."""

_TOGETHER = 1e-11
"""Which share of the whole bounds may have to be counted with one before them."""


@dataclass(frozen=True, repr=False)
class LossBounds:
    """Bounds on the loss: the numbers of their levels in ascending order, and their weights."""

    numbers: Array
    weights: FloatArray

    @classmethod
    def of(cls, levels: Sequences, epsilon: float, noise: str) -> LossBounds:
        """Return all bounds between the first that matters and the last."""
        weights = levels.mixture(epsilon, noise)
        # Where hardly anything is lost, what can be lost counts all the same.
        light = _NEGLIGIBLE * min(float(weights[1:].sum()) or 1.0, 1.0)
        begin, beyond = (int((np.cumsum(some) <= light).sum()) for some in (weights, weights[::-1]))
        begin, end = max(begin, 0 if levels.steps.whole else 1), len(weights) - beyond
        return cls(np.arange(begin, end), weights[begin:end])

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self.numbers)

    def first(self, count: int) -> LossBounds:
        """Return those at the first so many levels."""
        stop = int(np.searchsorted(self.numbers, count))
        return LossBounds(self.numbers[:stop], self.weights[:stop])

    def coarser(self, levels: Sequences, reaching: Any) -> LossBounds:
        """Return fewer bounds for what is lost on average; no item below rank k is chosen at losses below `reaching`.

        Some bounds are counted with one before them. Behind the middle of the losses, weights times bounds, those that
        make up next to no share of them: what sequences lose is about as much as the bound, so that less than that
        share changes by the ratio of one bound to the other. Before it, those that weigh next to nothing beside all
        that follow, which lose more.
        """
        losses = self.weights * levels.losses[self.numbers]
        below = np.where(levels.steps.losses[self.numbers] < reaching, 0.0, losses)
        following = np.append(np.cumsum(self.weights[:0:-1])[::-1], np.finfo(np.float64).tiny)
        heavy = _apart(-np.log(following))
        apart = np.zeros(len(self), dtype=bool)
        apart[0] = True
        for sums in (np.cumsum(losses), np.cumsum(below)):
            if sums[-1] > 0:
                apart |= np.where(sums < sums[-1] / 2, heavy, _apart(sums / sums[-1]))
        kept = np.flatnonzero(apart)
        return LossBounds(self.numbers[kept], np.add.reduceat(self.weights, kept))

    def places(self, count: int) -> Array:
        """Return for each of `count` levels, and the end, which bound is the first from there on."""
        marked = np.zeros(count + 1, dtype=np.intp)
        marked[self.numbers] = 1
        places: Array = np.cumsum(marked) - marked
        return places


def _apart(sums: FloatArray) -> Array:
    """Return where ascending sums have grown noticeably since the last such place."""
    apart: Array = np.diff(np.floor(sums / _TOGETHER), prepend=-np.inf) > 0
    return apart
