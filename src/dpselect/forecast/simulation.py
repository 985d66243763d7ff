"""Figures from draws, with intervals that say how far they can be off by chance."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpselect._arrays import Array
from dpselect.forecast import metrics
from dpselect.forecast.chances import CERTAIN
from dpselect.mechanisms import Mechanism
from dpselect.sampling import bit_source
from dpselect.scores import Ranking, Scores

CONFIDENCE = 0.95
PROBABILITIES = ("exact", "great", "good")
_NORMAL = 1.959963984540054
"""The standard normal lies between minus and plus this with probability 0.95."""


@dataclass(frozen=True)
class Figure:
    """A number, exact or simulated; of a simulated one, (low, high) holds the truth with probability about 0.95."""

    value: float
    exact: bool
    low: float
    high: float

    @classmethod
    def known(cls, value: float) -> Figure:
        """Return an exact figure."""
        return cls(float(value), True, float(value), float(value))

    def to_dict(self) -> dict[str, Any]:
        """Return the figure as plain data."""
        return {"value": self.value, "exact": self.exact, "low": self.low, "high": self.high}

    def __str__(self) -> str:
        """Show three digits, and what is simulated with its interval."""
        text = shown(self.value)
        return text if self.exact else f"≈{text} ({shown(self.low)} to {shown(self.high)})"


def shown(value: float) -> str:
    """Return a number to three digits; a probability as 1 only if it differs from that by no more than rounding."""
    if 0.9995 <= value < CERTAIN:
        return ">0.999"
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"


def simulated(
    table: Scores, mechanism: Mechanism, draws: int, seed: int, names: Collection[str]
) -> dict[str, Figure | None]:
    """Return the named figures from seeded draws of the mechanism itself, which return scores and look up no item."""
    ranking = Ranking.of(table.distinct)
    k, size = mechanism.k, table.size
    top = ranking.scores(np.arange(k))
    within = {
        name: {"held": held, "lowest": ranking.scores(np.array([last - 1]))[0]}
        for name, (held, last) in (("great", metrics.great_ranks(k, size)), ("good", metrics.good_ranks(k, size)))
    }
    judges: dict[str, Callable[[Array, Array], float]] = {
        "exact": metrics.is_exact,
        "great": lambda top, chosen: metrics.is_within(top, chosen, **within["great"]),
        "good": lambda top, chosen: metrics.is_within(top, chosen, **within["good"]),
        "correct": metrics.number_correct,
        "f1": metrics.f1_score,
        "score_ratio": metrics.score_ratio,
        "largest_error": _if_complete(metrics.largest_error),
        "total_error": _if_complete(metrics.total_error),
        "relative_error": _if_complete(metrics.relative_error),
    }
    bits = bit_source(seed)
    found: dict[str, list[float]] = {name: [] for name in names}
    for _ in range(draws):
        chosen = mechanism.draw(table, bits).values
        if not mechanism.ordered:
            chosen = np.sort(chosen)[::-1]
        for name, values in found.items():
            values.append(float(judges[name](top, chosen)))
    return {
        name: _proportion(values) if name in PROBABILITIES else _mean(values, signed=name == "score_ratio")
        for name, values in found.items()
    }


def _if_complete(judge: Callable[[Array, Array], float]) -> Callable[[Array, Array], float]:
    """Return a measure that compares rank by rank, undefined for answers shorter than k."""
    return lambda top, chosen: judge(top, chosen) if len(chosen) == len(top) else math.nan


def _proportion(values: list[float]) -> Figure:
    """Return the share of successes with the interval of Clopper and Pearson."""
    from scipy.special import betaincinv

    number, successes = len(values), sum(values)
    tail = (1 - CONFIDENCE) / 2
    low = float(betaincinv(successes, number - successes + 1, tail)) if successes else 0.0
    high = float(betaincinv(successes + 1, number - successes, 1 - tail)) if successes < number else 1.0
    return Figure(successes / number, False, low, high)


def _mean(values: list[float], *, signed: bool) -> Figure | None:
    """Return the mean with the interval of the normal approximation; None if it is not always defined."""
    mean = float(np.mean(values))
    if math.isnan(mean):
        return None
    error = _NORMAL * float(np.std(values, ddof=1)) / math.sqrt(len(values))
    return Figure(mean, False, mean - error if signed else max(mean - error, 0.0), mean + error)
