"""Every figure of a forecast by listing all outcomes of a small domain, and the figures computed without draws."""

from __future__ import annotations

from typing import Any

import numpy as np

import dpselect as dps
from dpselect.forecast import metrics

DATA: list[list[float]] = [
    [9, 7, 4, 4, 1, 0],
    [6, 6, 5, 5, 5, 0],
    [3, 3, 3, 3, 1, 1],
    [1.5, 0.2, 0.7, -1.0, 3.0],
    [100, 50, 0, -50, -200],
]
"""With ties above, at and below rank k, without any, and with wide gaps."""


def expected(mechanism: dps.Mechanism, scores: list[float]) -> dict[str, float]:
    """Return each figure as a sum over the law of the mechanism."""
    data = np.array(scores)
    descending = np.sort(data)[::-1]
    k, size = mechanism.k, len(scores)
    top = descending[:k]
    judges: dict[str, Any] = {
        "exact": metrics.is_exact,
        "correct": metrics.number_correct,
        "f1": metrics.f1_score,
        "score_ratio": metrics.score_ratio,
        "largest_error": metrics.largest_error,
        "total_error": metrics.total_error,
        "relative_error": metrics.relative_error,
    }
    judges["inexact"] = lambda top, chosen: not metrics.is_exact(top, chosen)
    for name, ranks in (("great", metrics.great_ranks), ("good", metrics.good_ranks)):
        held, last = ranks(k, size)
        judges[name] = within(held, descending[last - 1])
    figures = dict.fromkeys(judges, 0.0)
    for outcome, probability in mechanism.law(data).items():
        chosen = data[list(outcome)]
        if not mechanism.ordered:
            chosen = np.sort(chosen)[::-1]
        for name, judge in judges.items():
            figures[name] += probability * judge(top, chosen)
    return figures


def found(mechanism: dps.Mechanism, scores: Any, **options: Any) -> dict[str, float]:
    """Return each figure that has an exact form, and the complement of P[exact]."""
    outlook = dps.forecast.forecast(scores, mechanism, draws=0, **options)
    figures = {"inexact": outlook.inexact, **outlook.figures()}
    return {name: figure.value for name, figure in figures.items() if figure is not None}


def within(held: int, lowest: float) -> Any:
    return lambda top, chosen: metrics.is_within(top, chosen, held=held, lowest=lowest)
