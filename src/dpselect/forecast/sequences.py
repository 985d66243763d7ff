"""How likely Joint is to return the top k in order, up to ties, from its law."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from dpselect._arrays import Array, FloatArray
from dpselect.forecast.chances import NEGLIGIBLE, chance_of_best
from dpselect.mechanisms.classes import LevelSteps, class_probabilities
from dpselect.mechanisms.joint import Thresholds
from dpselect.sampling.bounds import scaled
from dpselect.sampling.sequences import log_difference
from dpselect.scores import Ranking, Scores

_GRID = 40
_ROUNDS = 3
_LEFT_OUT = 30.0
"""All losses that are left out weigh less than e to minus this, beside the others but 0."""


@dataclass(frozen=True, repr=False)
class Sequences:
    """The levels of loss of k-sequences (mathematics, section 4), as they are and for a spread of 1; the first is 0."""

    steps: LevelSteps
    losses: FloatArray

    @classmethod
    def of(
        cls, k: int, spread: float, scores: Scores, smallest_epsilon: float = 0.0, largest_epsilon: float | None = None
    ) -> Sequences:
        """Return the levels, without those that cannot matter between the smallest ε and the largest."""
        ranking = Ranking.of(scores.distinct)
        unit = 1 / Fraction(spread)
        rates = [epsilon / 2 * float(unit) if epsilon else None for epsilon in (largest_epsilon, smallest_epsilon)]
        steps = LevelSteps.of(k, ranking, *_window(k, ranking, *rates))
        return cls(steps, scaled(steps.losses, unit))

    def chance(self, epsilon: float, noise: str) -> float:
        """P[the top k in order], up to ties."""
        log_sizes = self.steps.log_sizes
        below, log_best = epsilon / 2 * self.losses[1:], float(log_sizes[0])
        weights = log_sizes[1:] - below
        kept = weights > max(float(weights.max(initial=-np.inf)), log_best) - NEGLIGIBLE - np.log(1 + len(weights))
        return chance_of_best(log_best, log_sizes[1:][kept], below[kept], noise)

    def mixture(self, epsilon: float, noise: str) -> FloatArray:
        """Return `(p_s − p_{s+}) N(s)` for each loss s: p_s is the chance of one sequence of that loss, s+ the next."""
        log_sizes, log_within = self.steps.log_sizes, self.steps.log_within
        probabilities = class_probabilities(-epsilon / 2 * self.losses, log_sizes, noise)
        weights: FloatArray = np.exp(log_within - log_sizes) * probabilities
        following = np.exp(np.minimum(log_within[:-1] - log_sizes[1:], 700.0)) * probabilities[1:]
        weights[:-1] = np.maximum(weights[:-1] - following, 0.0)
        return weights


def _window(k: int, ranking: Ranking, near_rate: float | None, far_rate: float | None) -> tuple[Any, Any]:
    """Return two losses: sequences that lose no more than the one, or more than the other, weigh next to nothing.

    `N(s') − N(s)` sequences lose more than s and no more than s'; each weighs `exp(−rate s)` at most and
    `exp(−rate s')` at least. A grid of losses gives both bounds, and a finer one between what is left. What is next to
    nothing above the window remains so for larger rates, what is below it for smaller ones. None where all losses may
    matter.
    """
    thresholds = Thresholds(ranking, k)
    nearest, farthest = thresholds.zero, ranking.grouping.values[0] - ranking.grouping.values[-1]
    # Of denormal numbers there is no grid.
    if thresholds.ascending.dtype == object or float(farthest) * 1e-9 <= 0:
        return None, None
    integral = thresholds.ascending.dtype == np.int64
    # Rounding must not leave the last loss of all beyond the grid.
    farthest = farthest if integral else farthest * (1 + 1e-12)
    spots = np.append(0.0, np.geomspace(1.0 if integral else float(farthest) * 1e-9, float(farthest), _GRID))
    near_cut, far_cut = None, None
    best = float(np.log((thresholds.bounds(thresholds.zero) - np.arange(k)).astype(np.float64)).sum())
    for _ in range(_ROUNDS):
        grid = np.unique(np.ceil(spots).astype(np.int64) if integral else spots)
        choices = (thresholds.counts[thresholds.places(grid)] - np.arange(k)).astype(np.float64)
        ratios = np.log1p((choices[:-1] - choices[1:]) / choices[1:]).sum(axis=1)
        sizes = log_difference(np.log(choices[1:]).sum(axis=1), ratios)
        if near_rate is not None and (start := _heavy(best, sizes, near_rate * grid)[0]) > 0:
            near_cut = nearest = grid[start]
        if far_rate is not None and (stop := _heavy(best, sizes, far_rate * grid)[-1] + 1) + 1 < len(grid):
            far_cut = farthest = grid[stop]
        spots = np.linspace(float(nearest), float(farthest), _GRID)
    return near_cut, far_cut


def _heavy(best: float, sizes: FloatArray, penalties: Array) -> Array:
    """Return the cells of a grid that may weigh something beside the others; the first if what loses nothing does."""
    least = float((sizes - penalties[1:]).max()) - _LEFT_OUT
    heavy = sizes - penalties[:-1] >= least - np.log(_GRID)
    heavy[0] |= best >= least
    return np.flatnonzero(heavy)
