"""Figures of the joint mechanism, from its levels of loss.

All sequences of loss s are equally likely, with a probability `p_s` each that falls with s; the margin raises that of
the best alone. Hence a draw from Joint is a draw of a bound s, with probability `(p_s − p_{s+}) N(s)`, s+ the next
loss, and then of any of the N(s) sequences of loss at most s. Those are drawn row by row: row r takes any of the ranks
`1..t_r` that are left, of which there are `n_r = t_r − r + 1` (mathematics, section 4). A rank that row r may take is
left by it with probability `q_r = 1 − 1/n_r`, whatever else was taken.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from dpselect._arrays import Array, FloatArray
from dpselect.forecast.metrics import good_ranks, great_ranks
from dpselect.mechanisms import Joint
from dpselect.mechanisms.classes import LevelSteps, class_probabilities, penalties
from dpselect.mechanisms.joint import Thresholds
from dpselect.sampling.bounds import scaled
from dpselect.sampling.sequences import log_difference
from dpselect.scores import Ranking, Scores

_NEGLIGIBLE = 30.0
"""Losses are left out if their total weight is below e^-30 times that of all positive losses."""

_GRID, _ROUNDS = 40, 3
"""Grid points, and refinements of the grid, in the search for the losses that matter."""

_WORK = 20_000_000
_FEWEST = 500
"""LossBounds are merged if bounds times work per bound exceed _WORK; below _FEWEST bounds, figures are simulated."""


@dataclass(frozen=True, repr=False)
class JointLevels:
    """The levels of loss of k-sequences that matter; `losses` are for a rate of ε = 1 and relative to the first."""

    k: int
    ranking: Ranking
    steps: LevelSteps
    losses: FloatArray

    @classmethod
    def of(cls, mechanism: Joint, scores: Scores, epsilon: float, *, larger: bool = False) -> JointLevels:
        """Return the levels that matter at an ε, or, with `larger`, at that and every larger one."""
        ranking, unit = Ranking.of(scores.distinct), 1 / (2 * Fraction(mechanism.sensitivity.spread))
        lead = mechanism.smallest_gap(ranking)
        nearest, farthest = _window(mechanism.k, ranking, epsilon * float(unit), lead)
        # A few items beside 10^18 vanish in float64: such a level has no sequences, and is left out.
        with np.errstate(divide="ignore"):
            steps = LevelSteps.of(mechanism.k, ranking, None if larger else nearest, farthest)
        return cls(mechanism.k, ranking, steps, np.append(0.0, penalties(steps.losses[1:], lead, unit)))

    def exact(self, epsilon: float, noise: str) -> tuple[float, float]:
        """P[the top k in order], up to ties, and its complement."""
        probabilities = class_probabilities(-epsilon * self.losses, self.steps.log_sizes, noise)
        return float(probabilities[0]), float(probabilities[1:].sum())

    def figures(self, epsilon: float, noise: str) -> dict[str, float]:
        """Return P[great], P[good], the expected number of wrong items and the score lost, as far as feasible."""
        return self.bounds(epsilon, noise).figures()

    def bounds(self, epsilon: float, noise: str) -> LossBounds:
        """Return the bounds on the loss with their probabilities."""
        numbers = np.flatnonzero(np.isfinite(self.steps.log_sizes))
        log_sizes, log_within = self.steps.log_sizes[numbers], self.steps.log_within[numbers]
        probabilities = class_probabilities(-epsilon * self.losses[numbers], log_sizes, noise)
        weights: FloatArray = np.exp(log_within - log_sizes) * probabilities
        following = np.exp(np.minimum(log_within[:-1] - log_sizes[1:], 700.0)) * probabilities[1:]
        weights[:-1] = np.maximum(weights[:-1] - following, 0.0)
        return LossBounds(self, numbers, weights)


@dataclass(frozen=True, repr=False)
class LossBounds:
    """LossBounds on the loss: the numbers of their levels, ascending, and their probabilities."""

    levels: JointLevels
    numbers: Array
    weights: FloatArray

    @property
    def k(self) -> int:
        """The number of rows."""
        return self.levels.k

    @cached_property
    def ends(self) -> FloatArray:
        """The number of items of each distinct score and all higher ones."""
        return self.levels.ranking.ends.astype(np.float64)

    @cached_property
    def values(self) -> FloatArray:
        """The distinct scores, less that of rank k."""
        ranking = self.levels.ranking
        values = ranking.grouping.values
        return scaled(values - values[self.border], Fraction(1))

    @cached_property
    def border(self) -> int:
        """The group of rank k."""
        return int(self.levels.ranking.groups(self.k - 1))

    def groups(self, row: int) -> Array:
        """Return the lowest group that a row may hold within each bound."""
        steps = self.levels.steps
        own = steps.levels[steps.offsets[row] : steps.offsets[row + 1]]
        taken: Array = np.searchsorted(own, self.numbers, side="right")
        groups: Array = steps.first[row] + taken
        return groups

    def merged(self, work_per_bound: float) -> LossBounds | None:
        """Return at most _WORK / work_per_bound bounds; None if that is fewer than _FEWEST.

        Neighbours are merged where they have little weight and little part in the loss.
        """
        kept = self.weights > 0
        kept[0] = True
        numbers, weights = self.numbers[kept], self.weights[kept]
        most = int(_WORK / work_per_bound)
        if len(numbers) > most:
            if most < _FEWEST:
                return None
            lossy = np.append(0.0, weights[1:])
            losses = lossy * self.levels.losses[numbers]
            shares = np.cumsum(lossy / (lossy.sum() or 1.0) + losses / (losses.sum() or 1.0)) / 2
            cells = np.append(-1, np.floor(shares[1:] * (most - 2)))
            first = np.flatnonzero(np.append(True, cells[1:] != cells[:-1]))
            last = np.append(first[1:], len(numbers)) - 1
            numbers, weights = numbers[(first + last) // 2], np.add.reduceat(weights, first)
        return LossBounds(self.levels, numbers, weights)

    def figures(self) -> dict[str, float]:
        """Return P[great], P[good], the expected number of wrong items and the score lost, as far as feasible."""
        size, figures = int(self.levels.ranking.ends[-1]), {}
        for name, ranks in (("great", great_ranks), ("good", good_ranks)):
            probability = self._within(*ranks(self.k, size))
            if probability is not None:
                figures[name] = probability
        bounds = self.merged(self.k)
        if bounds is None:
            return figures
        figures["lost"], wrong = bounds._mistakes()
        crowded = self._crowded()
        if crowded is not None:
            figures["wrong"] = wrong + crowded
        return figures

    def _mistakes(self) -> tuple[float, float]:
        """Return the expected score lost, and the expected number of chosen items with scores below rank k's.

        A weight c_j on each rank adds up to C(t) over ranks up to t. The chosen ranks hold
        `Σ_r C(t_r)/n_r Π_{i>r} q_i` of it on average, and what they lack of C(k) is
        `C(k) Π_i q_i + Σ_r (C(k) − C(t_r))/n_r Π_{i>r} q_i`: sums of positive terms.
        """
        sizes = np.diff(self.ends, prepend=0.0)
        above = np.cumsum(np.maximum(self.values, 0.0) * sizes)
        short = np.cumsum(np.maximum(-self.values, 0.0) * sizes)
        beyond = np.maximum(self.ends - self.ends[self.border], 0.0)
        left, lost, wrong = self.weights.copy(), 0.0, 0.0
        for row in range(self.k - 1, -1, -1):
            groups = self.groups(row)
            choices = self.ends[groups] - row
            taken = left / choices
            lost += float(taken @ (np.maximum(above[-1] - above[groups], 0.0) + short[groups]))
            wrong += float(taken @ beyond[groups])
            left *= 1 - 1 / choices
        return lost + float(above[-1] * left.sum()), wrong

    def _crowded(self) -> float | None:
        """Return the expected number of surplus items: chosen, tied with rank k, beyond their number in the top k."""
        end = float(self.ends[self.border])
        start = float(self.ends[self.border - 1]) if self.border else 0.0
        if end == self.k:
            return 0.0
        most = int(min(end - start, self.k))
        bounds = self.merged(self.k * (most + 1))
        if bounds is None:
            return None
        counts = np.arange(most + 1.0)[:, None]
        law = np.zeros((most + 1, len(bounds.weights)))
        law[0] = 1.0
        for row in range(self.k):
            reach = self.ends[bounds.groups(row)]
            moved = law * np.clip((np.clip(reach, start, end) - start - counts) / (reach - row), 0.0, 1.0)
            law -= moved
            law[1:] += moved[:-1]
        return float(np.maximum(counts[:, 0] - (self.k - start), 0.0) @ (law @ bounds.weights))

    def _within(self, held: int, last: int) -> float | None:
        """P[the `held` highest scores are there, and none below that of rank `last`], row by row.

        The state is how many items above rank `held` and how many tied with it are taken.
        """
        lowest, edge = int(np.searchsorted(self.ends, last)), int(np.searchsorted(self.ends, held))
        above = int(self.ends[edge - 1]) if edge else 0
        tied, least = float(self.ends[edge]) - above, held - above
        if least == tied:
            above, tied, least = held, 0.0, 0
        most = int(min(tied, self.k - above))
        bounds = self._reaching(lowest).merged(self.k * (above + 1) * (most + 1) / 4)
        if bounds is None:
            return None
        required, ties = np.arange(above + 1.0)[:, None, None], np.arange(most + 1.0)[:, None]
        law = np.zeros((above + 1, most + 1, len(bounds.weights)))
        law[0, 0] = bounds.weights
        for row in range(self.k):
            groups = bounds.groups(row)
            choices, reach = self.ends[groups] - row, self.ends[np.minimum(groups, lowest)]
            # Negative numbers belong to impossible states, whose probability is 0.
            wanted = np.minimum(reach, above) - required
            free = np.clip(reach - above, 0.0, tied) - ties
            moved, moved_tied = law * (wanted / choices), law * (free / choices)
            law *= np.maximum(reach - row - wanted - free, 0.0) / choices
            law[1:] += moved[:-1]
            law[:, 1:] += moved_tied[:, :-1]
        return min(float(law[-1, least:].sum()), 1.0)

    def _reaching(self, lowest: int) -> LossBounds:
        """Return the bounds for which P[no item below group `lowest` is chosen] is not negligible."""
        most = float(np.log(self.ends[lowest] - np.arange(self.k)).sum())
        likely = self.levels.steps.log_within[self.numbers] <= most + 1.5 * _NEGLIGIBLE
        likely[0] = True
        return LossBounds(self.levels, self.numbers[likely], self.weights[likely])


def _window(k: int, ranking: Ranking, rate: float, lead: Fraction) -> tuple[Any, Any]:
    """Return the range (nearest, farthest) of the positive losses that matter at a rate; None for an open end.

    `N(s') − N(s)` sequences lose more than s and no more than s'; each weighs between `exp(−rate s')` and
    `exp(−rate s)`. A grid of losses gives both bounds, and finer grids narrow the window.
    """
    thresholds = Thresholds(ranking, k)
    nearest, farthest = thresholds.zero, ranking.grouping.values[0] - ranking.grouping.values[-1]
    # Denormal losses cannot be put on a grid.
    if thresholds.ascending.dtype == object or float(farthest) * 1e-9 <= 0:
        return None, None
    integral = thresholds.ascending.dtype == np.int64
    # Rounding must not leave the largest loss beyond the grid.
    farthest = farthest if integral else farthest * (1 + 1e-12)
    losses = np.append(0.0, np.geomspace(1.0 if integral else float(farthest) * 1e-9, float(farthest), _GRID))
    near_cut, far_cut = None, None
    best = float(np.log((thresholds.bounds(thresholds.zero) - np.arange(k)).astype(np.float64)).sum())
    best += rate * float(lead)
    for _ in range(_ROUNDS):
        grid = np.unique(np.ceil(losses).astype(np.int64) if integral else losses)
        choices = (thresholds.counts[thresholds.places(grid)] - np.arange(k)).astype(np.float64)
        with np.errstate(divide="ignore"):
            ratios = np.log1p((choices[:-1] - choices[1:]) / choices[1:]).sum(axis=1)
        sizes = log_difference(np.log(choices[1:]).sum(axis=1), ratios)
        least = float((sizes - rate * grid[1:]).max()) - _NEGLIGIBLE
        heavy = sizes - rate * grid[:-1] >= least - np.log(_GRID)
        heavy[0] |= best >= least
        places = np.flatnonzero(heavy)
        if places[0] > 0:
            near_cut = nearest = grid[places[0]]
        if places[-1] + 2 < len(grid):
            far_cut = farthest = grid[places[-1] + 1]
        losses = np.linspace(float(nearest), float(farthest), _GRID)
    return near_cut, far_cut
