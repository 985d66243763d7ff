"""The figures of a forecast that have an exact form."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from dpselect._numbers import exact_fraction as exact
from dpselect.forecast import metrics
from dpselect.forecast.curves import exact_chance, noisy_groups
from dpselect.forecast.in_order import chance_in_order
from dpselect.forecast.misplaced import Order
from dpselect.forecast.noisy import NoisyGroups
from dpselect.forecast.noisy_expectations import Split
from dpselect.forecast.one_thread import one_thread
from dpselect.forecast.sequence_figures import SequenceFigures
from dpselect.forecast.sequences import Sequences
from dpselect.forecast.subsets import Subsets
from dpselect.mechanisms import Canonical, Gaussian, Joint, Mechanism, OneShot, Peeling
from dpselect.sampling import NOISES
from dpselect.sampling.bounds import scaled
from dpselect.sampling.noise import NORMAL
from dpselect.scores import Ranking, Scores

_ROUNDING = 1e-9


def exact_figures(table: Scores, mechanism: Mechanism) -> dict[str, float]:
    """Return every figure that has an exact form."""
    figures = ExactFigures(table, mechanism)
    return figures.chances | figures.expectations


@dataclass(frozen=True, repr=False)
class ExactFigures:
    """The figures that have an exact form: chances first, and expectations, which take longer."""

    table: Scores
    mechanism: Any

    @cached_property
    @one_thread()
    def chances(self) -> dict[str, float]:
        """P[exact], P[great] and P[good]; for Canonical all figures, which come together."""
        table, mechanism = self.table, self.mechanism
        epsilon, k = mechanism.epsilon, mechanism.k
        if isinstance(mechanism, Canonical):
            subsets = Subsets.of(mechanism, table, epsilon, alone=True)
            return _in_order(subsets.figures(epsilon, mechanism.noise, _best_sum(table, k)))
        figures: dict[str, float] = {}
        if isinstance(mechanism, Joint):
            figures["exact"] = self._levels.chance(epsilon, mechanism.noise)
            return _in_order(figures | (self._sequences.chances() if self._sequences else {}))
        if isinstance(mechanism, Peeling):
            figures["exact"] = exact_chance(table, mechanism)
        if self._noisy is None:
            return figures
        ranks = {"great": metrics.great_ranks(k, table.size), "good": metrics.good_ranks(k, table.size)}
        in_order = chance_in_order(self._noisy) if isinstance(mechanism, Gaussian) else None
        if in_order is not None:
            figures["exact"] = in_order
        if isinstance(mechanism, OneShot):
            ranks = {"exact": (k, k)} | ranks
        return _in_order(figures | dict(zip(ranks, self._noisy.within_each(list(ranks.values())), strict=True)))

    @cached_property
    @one_thread()
    def expectations(self) -> dict[str, float]:
        """The other figures."""
        table, k = self.table, self.mechanism.k
        if isinstance(self.mechanism, Joint):
            return self._sequences.expectations(_best_sum(table, k)) if self._sequences else {}
        if self._noisy is None:
            return {}
        border = Ranking.of(table.distinct).scores(np.array([k - 1]))
        split = Split.of(self._noisy, np.abs(scaled(table.values - border, Fraction(1))))
        mistakes = split.mistakes()
        if mistakes is None:
            return {}
        misplaced: float | None = 0.0
        if self.mechanism.ordered:
            misplaced = Order(split.noisy, split.costs, split.border).misplaced()
            misplaced = None if misplaced is None else max(misplaced - mistakes.missing, 0.0)
        total = _best_sum(table, k)
        figures = {
            "correct": k - mistakes.wrong,
            "f1": 1 - mistakes.wrong / k,
            "score_ratio": 1 - mistakes.lost / total if total else 1.0,
            "relative_error": mistakes.depth,
            "total_error": np.nan if misplaced is None else mistakes.lost + 2 * misplaced,
        }
        return {name: value for name, value in figures.items() if np.isfinite(value)}

    @cached_property
    def _levels(self) -> Sequences:
        """The levels of loss of Joint's sequences."""
        mechanism = self.mechanism
        epsilon = mechanism.epsilon
        return Sequences.of(mechanism.k, mechanism.sensitivity.spread, self.table, epsilon, epsilon)

    @cached_property
    def _sequences(self) -> SequenceFigures | None:
        """Joint's rows."""
        k, epsilon, noise = self.mechanism.k, self.mechanism.epsilon, self.mechanism.noise
        return SequenceFigures.of(self._levels, Ranking.of(self.table.distinct), k, epsilon, noise)

    @cached_property
    def _noisy(self) -> NoisyGroups | None:
        """The groups of which the mechanism takes the k largest noisy scores, None for other mechanisms."""
        table, mechanism = self.table, self.mechanism
        if isinstance(mechanism, Gaussian):
            return noisy_groups(table, mechanism.k, 1 / exact(mechanism.sigma), NORMAL)
        if isinstance(mechanism, OneShot):
            return noisy_groups(table, mechanism.k, mechanism.rate(table.size), NOISES[mechanism.noise])
        if isinstance(mechanism, Peeling) and mechanism.noise == "gumbel":
            return noisy_groups(table, mechanism.k, mechanism.rate(), NOISES["gumbel"])
        return None


def _best_sum(table: Scores, k: int) -> float:
    """Return the sum of the k highest scores."""
    top = Ranking.of(table.distinct).scores(np.arange(k))
    return float(sum(map(exact, top)) if top.dtype == object else top.sum(dtype=np.float64))


def _in_order(figures: dict[str, float]) -> dict[str, float]:
    """Return figures in which rounding does not make what asks for less the less likely."""
    result, least = dict(figures), 0.0
    for name in ("exact", "great", "good"):
        if name in result:
            value = min(result[name], 1.0)
            result[name] = least = least if least - _ROUNDING < value < least else value
    return result
