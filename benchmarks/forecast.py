"""Exact forecasts against "add NumPy Gumbel noise to every score and argpartition", and curves against one value."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

import dpselect as dps
from benchmarks.selection import Array, long_tail, noisy_argpartition
from benchmarks.timing import Result, best_time, best_times

SIZE, K = 17_770, 100
LIMIT, CURVE_LIMIT = 50.0, 20.0
ACCURACIES = (0.1, 0.99)
"""Forecasts are timed at the ε at which a mechanism is that likely to be exact: once where it fails, once where not."""

MECHANISMS: list[tuple[str, dps.Mechanism]] = [
    ("canonical", dps.Canonical(k=K, epsilon=1.0)),
    ("joint", dps.Joint(k=K, epsilon=1.0)),
    ("oneshot", dps.OneShot(k=K, epsilon=1.0)),
    ("oneshot gumbel", dps.OneShot(k=K, epsilon=1.0, noise="gumbel")),
    ("peeling gumbel", dps.Peeling(k=K, epsilon=1.0, noise="gumbel")),
    ("peeling", dps.Peeling(k=K, epsilon=1.0)),
]


def measurements(quick: bool) -> Iterator[Result]:
    """Yield the time of one exact forecast of each mechanism, then that of a curve of 100 values."""
    scores = long_tail(SIZE)
    for name, template in MECHANISMS:
        for accuracy in ACCURACIES[-1:] if quick else ACCURACIES:
            epsilon = dps.forecast.smallest_epsilon(scores, template, accuracy)
            yield _one(name, replace(template, epsilon=epsilon), scores, accuracy, quick)
    yield _curve(scores, quick)


def _one(name: str, mechanism: dps.Mechanism, scores: Array, accuracy: float, quick: bool) -> Result:
    baseline, ours = best_times(
        lambda: noisy_argpartition(scores, K),
        lambda: dps.forecast.forecast(scores, mechanism, draws=0),
        rounds=1 if quick else 30,
    )
    return Result(
        suite="forecast",
        case=f"forecast, {name}, P = {accuracy:g}",
        measured=ours / baseline,
        unit="x",
        limit=None if quick else LIMIT,
        size=SIZE,
        k=K,
        baseline_seconds=baseline,
        our_seconds=ours,
    )


def _curve(scores: Array, quick: bool) -> Result:
    """Time a curve from where the answer is all but never exact to where it all but always is."""
    mechanism = dps.Canonical(k=K, epsilon=1.0)
    low, high = (dps.forecast.smallest_epsilon(scores, mechanism, accuracy) for accuracy in (0.001, 0.999))
    epsilons = np.geomspace(low, high, 100).tolist()

    def single(epsilon: float) -> float:
        chance: float = dps.forecast.success(scores, mechanism, smallest=epsilon).chance(epsilon)
        return chance

    cheapest = min(epsilons[::9], key=lambda epsilon: best_time(lambda: single(epsilon), 1 if quick else 5))
    one, curve = best_times(
        lambda: single(cheapest),
        lambda: dps.forecast.success(scores, mechanism, smallest=low).chances(epsilons),
        rounds=1 if quick else 30,
    )
    return Result(
        suite="forecast",
        case="curve of 100, canonical",
        measured=curve / one,
        unit="x",
        limit=None if quick else CURVE_LIMIT,
        size=SIZE,
        k=K,
        baseline_seconds=one,
        our_seconds=curve,
        note="beside the cheapest single value along the curve",
    )
