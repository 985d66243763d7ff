"""The figures of a forecast that have an exact form."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from dpselect.forecast import metrics
from dpselect.forecast.curves import noisy_groups, success
from dpselect.forecast.misplaced import Order
from dpselect.forecast.noisy import NoisyGroups
from dpselect.forecast.noisy_expectations import Split
from dpselect.forecast.sequence_figures import SequenceFigures
from dpselect.forecast.sequences import Sequences
from dpselect.forecast.subsets import Subsets
from dpselect.mechanisms import Canonical, Gaussian, Joint, Mechanism, OneShot, Peeling
from dpselect.mechanisms.ranking import Ranking, exact, scaled
from dpselect.sampling import NOISES
from dpselect.sampling.normal import NORMAL
from dpselect.scores import Scores

_ROUNDING = 1e-9


def exact_figures(table: Scores, mechanism: Mechanism) -> dict[str, float]:
    """Return every figure that has an exact form."""
    return quick_figures(table, mechanism) | further_figures(table, mechanism)


def quick_figures(table: Scores, mechanism: Mechanism) -> dict[str, float]:
    """Return the figures that take no longer than a few draws."""
    epsilon = mechanism.epsilon
    if isinstance(mechanism, Canonical):
        return Subsets.of(mechanism, table, epsilon).figures(epsilon, mechanism.noise, _best_sum(table, mechanism.k))
    if isinstance(mechanism, Joint):
        return _sequence_figures(table, mechanism)
    figures = {}
    if isinstance(mechanism, Peeling):
        figures["exact"] = success(table, mechanism, smallest=epsilon).chance(epsilon)
    noisy = _noisy(table, mechanism)
    if noisy is None:
        return figures
    ranks = {"great": metrics.great_ranks(mechanism.k, table.size), "good": metrics.good_ranks(mechanism.k, table.size)}
    if isinstance(mechanism, OneShot):
        ranks = {"exact": (mechanism.k, mechanism.k)} | ranks
    return _in_order(figures | dict(zip(ranks, noisy.within_each(list(ranks.values())), strict=True)))


def further_figures(table: Scores, mechanism: Mechanism) -> dict[str, float]:
    """Return the expectations for noisy scores, which take longer."""
    noisy = _noisy(table, mechanism)
    if noisy is None:
        return {}
    border = Ranking.of(table.distinct).scores(np.array([mechanism.k - 1]))
    split = Split.of(noisy, np.abs(scaled(table.values - border, Fraction(1))))
    mistakes = split.mistakes()
    if mistakes is None:
        return {}
    misplaced: float | None = 0.0
    if mechanism.ordered:
        misplaced = Order(split.noisy, split.costs, split.border).misplaced()
        misplaced = None if misplaced is None else max(misplaced - mistakes.missing, 0.0)
    total = _best_sum(table, mechanism.k)
    figures = {
        "correct": mechanism.k - mistakes.wrong,
        "f1": 1 - mistakes.wrong / mechanism.k,
        "score_ratio": 1 - mistakes.lost / total if total else 1.0,
        "relative_error": mistakes.depth,
        "total_error": np.nan if misplaced is None else mistakes.lost + 2 * misplaced,
    }
    return {name: value for name, value in figures.items() if np.isfinite(value)}


def _best_sum(table: Scores, k: int) -> float:
    """Return the sum of the k highest scores."""
    top = Ranking.of(table.distinct).scores(np.arange(k))
    return float(sum(map(exact, top)) if top.dtype == object else top.sum(dtype=np.float64))


def _sequence_figures(table: Scores, mechanism: Joint) -> dict[str, float]:
    k, epsilon, noise = mechanism.k, mechanism.epsilon, mechanism.noise
    levels = Sequences.of(k, mechanism.sensitivity.spread, table, epsilon, epsilon)
    figures = {"exact": levels.chance(epsilon, noise)}
    rows = SequenceFigures.of(levels, Ranking.of(table.distinct), k, epsilon, noise)
    return figures if rows is None else _in_order(figures | rows.figures(_best_sum(table, k)))


def _noisy(table: Scores, mechanism: Any) -> NoisyGroups | None:
    """Return the groups of which a mechanism takes the k largest noisy scores, None for other mechanisms."""
    k = mechanism.k
    if isinstance(mechanism, Gaussian):
        return noisy_groups(table, k, 1 / exact(mechanism.sigma), NORMAL)
    if isinstance(mechanism, OneShot):
        return noisy_groups(table, k, mechanism.rate(table.size), NOISES[mechanism.noise])
    if isinstance(mechanism, Peeling) and mechanism.noise == "gumbel":
        return noisy_groups(table, k, mechanism.rate(), NOISES["gumbel"])
    return None


def _in_order(figures: dict[str, float]) -> dict[str, float]:
    """Return figures in which rounding does not make what asks for less the less likely."""
    result, least = dict(figures), 0.0
    for name in ("exact", "great", "good"):
        if name in result:
            value = min(result[name], 1.0)
            result[name] = least = least if least - _ROUNDING < value < least else value
    return result
