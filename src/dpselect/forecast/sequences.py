"""How likely Joint and Peeling are to return the top k in order, up to ties, from their laws."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from dpselect.forecast.chances import NEGLIGIBLE, FloatArray, chance_of_best
from dpselect.mechanisms.classes import level_sizes
from dpselect.mechanisms.joint_blocks import Thresholds
from dpselect.mechanisms.ranking import Ranking, scaled
from dpselect.scores import Scores

Array = npt.NDArray[Any]

_GRID = 64


@dataclass(frozen=True, repr=False)
class Sequences:
    """The levels of loss of k-sequences (mathematics, section 4), as they are and for a spread of 1; the first is 0."""

    raw: Array
    losses: FloatArray
    log_sizes: FloatArray

    @classmethod
    def of(cls, k: int, spread: float, scores: Scores, smallest_epsilon: float = 0.0) -> Sequences:
        """Return the levels, without those that cannot matter from the smallest ε on."""
        ranking = Ranking.of(scores.distinct)
        unit = 1 / Fraction(spread)
        farthest = _farthest(k, ranking, smallest_epsilon / 2 * float(unit)) if smallest_epsilon else None
        losses, log_sizes = level_sizes(k, ranking, farthest)
        return cls(losses, scaled(losses, unit), log_sizes)

    def chance(self, epsilon: float, noise: str) -> float:
        """P[the top k in order], up to ties."""
        below, log_best = epsilon / 2 * self.losses[1:], float(self.log_sizes[0])
        weights = self.log_sizes[1:] - below
        kept = weights > max(float(weights.max(initial=-np.inf)), log_best) - NEGLIGIBLE - np.log(1 + len(weights))
        return chance_of_best(log_best, self.log_sizes[1:][kept], below[kept], noise)


def _farthest(k: int, ranking: Ranking, rate: float) -> float | None:
    """Return a loss beyond which all sequences together weigh next to nothing beside the best ones; None if unknown.

    Between two thresholds s < s' there are at most N(s') sequences, of weight at most `exp(−rate s)` each.
    """
    thresholds = Thresholds(ranking, k)
    widest = float(ranking.grouping.values[0] - ranking.grouping.values[-1])
    if thresholds.ascending.dtype == object or widest <= 0:
        return None
    spots = np.append(0.0, np.geomspace(min(1.0, widest), widest, _GRID))
    integral = thresholds.ascending.dtype == np.int64
    grid = np.unique(np.ceil(spots)).astype(np.int64) if integral else spots
    counts = thresholds.counts[thresholds.places(grid)] - np.arange(k)
    within = np.log(counts.astype(np.float64)).sum(axis=1)
    weights = within[1:] - rate * grid[:-1].astype(np.float64)
    heavy = np.flatnonzero(weights > within[0] - NEGLIGIBLE - np.log(_GRID))
    last = int(heavy[-1]) + 1 if len(heavy) else 1
    # Rounding must not cut off a level at the border, nor the last one of all.
    return None if last + 1 >= len(grid) else float(grid[last]) * (1 + 1e-12)


def peeling_chance(k: int, rate: float, scores: Scores, noise: str) -> float:
    """P[the top k in order], up to ties: a product of k rounds at a rate ε₀/w each (mathematics, section 2)."""
    if noise == "gumbel":
        return _gumbel_peeling(k, rate, scores)
    left = scores.multiplicities.astype(np.float64)
    log_sizes = np.log(left)
    reach = NEGLIGIBLE + float(np.log(left.sum()))
    chance, group = 1.0, 0
    below = scaled(scores.values[0] - scores.values, Fraction(rate))
    for _ in range(k):
        near = slice(group + 1, int(np.searchsorted(below, below[group] + reach)))
        if near.stop > near.start:
            best = float(np.log(left[group]))
            chance *= chance_of_best(best, log_sizes[near], below[near] - below[group], noise)
        left[group] -= 1
        group += int(left[group] == 0)
        if group == len(left):
            break
    return chance


def _gumbel_peeling(k: int, rate: float, scores: Scores) -> float:
    """Return `Π 1 / (1 + V_r / n_r)`: n_r items are left of the best group, and V_r weighs all lower ones beside it."""
    sizes = scores.multiplicities.astype(np.float64)
    below = scaled(scores.values[0] - scores.values, Fraction(rate))
    # The weight of all lower groups relative to each, from the bottom up, so that nothing underflows.
    last = min(int(np.searchsorted(np.cumsum(sizes), k)), len(sizes) - 1)
    rest = float((sizes[last + 1 :] * np.exp(below[last] - below[last + 1 :])).sum())
    lower = np.empty(last + 1)
    for group in range(last, -1, -1):
        lower[group] = rest
        if group:
            rest = (rest + sizes[group]) * float(np.exp(below[group - 1] - below[group]))
    log_chance, taken = 0.0, 0
    for group in range(last + 1):
        number = int(min(sizes[group], k - taken))
        left = sizes[group] - np.arange(number)
        log_chance -= float(np.log1p(lower[group] / left).sum())
        taken += number
    return float(np.exp(log_chance))
