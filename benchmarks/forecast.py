"""Exact forecasts against "add NumPy Gumbel noise to every score and argpartition", and curves against one value."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

import dpselect as dps
from benchmarks.selection import Array, against_baseline, long_tail
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
    ("oneshot laplace", dps.OneShot(k=K, epsilon=1.0, noise="laplace")),
    ("peeling gumbel", dps.Peeling(k=K, epsilon=1.0, noise="gumbel")),
    ("peeling", dps.Peeling(k=K, epsilon=1.0)),
]

DROWNED: list[tuple[str, dps.Mechanism]] = [
    ("canonical", dps.Canonical(k=K, epsilon=0.0735)),
    ("joint", dps.Joint(k=K, epsilon=0.128)),
    ("oneshot", dps.OneShot(k=K, epsilon=0.0956)),
    ("oneshot gumbel", dps.OneShot(k=K, epsilon=0.1046, noise="gumbel")),
    ("oneshot laplace", dps.OneShot(k=K, epsilon=0.1, noise="laplace")),
    ("peeling gumbel", dps.Peeling(k=K, epsilon=0.1046, noise="gumbel")),
    ("peeling", dps.Peeling(k=K, epsilon=0.1)),
]
"""Where noise drowns thousands of distinct counts, and about 80 of 100 items are right."""

EPSILONS = (0.02, 0.05, 0.07, 0.1, 0.13, 0.15, 0.2, 0.25, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8)
"""From where noise drowns most of the answer to where it is small."""

MORE: list[tuple[str, dps.Mechanism]] = [
    ("oneshot half-logistic", dps.OneShot(k=K, epsilon=1.0, noise="half-logistic")),
    ("oneshot logistic", dps.OneShot(k=K, epsilon=1.0, noise="logistic")),
]
"""Timed at these epsilons only."""

GAUSSIAN = dps.Gaussian(k=K, epsilon=1.0, delta=1e-6, max_items_per_person=3)
SMALLER = (0.0001, 0.001, 0.002, 0.003, 0.004, 0.005, 0.01)
"""Where Gaussian's noise, which does not grow with k, drowns as much."""


def measurements(quick: bool) -> Iterator[Result]:
    """Yield the time of one exact forecast of each mechanism, then that of a curve of 100 values."""
    scores = long_tail(SIZE)
    for name, template in MECHANISMS:
        for accuracy in ACCURACIES[-1:] if quick else ACCURACIES:
            epsilon = dps.forecast.smallest_epsilon(scores, template, accuracy)
            mechanism = replace(template, epsilon=epsilon)
            yield from _both(f"{name}, P = {accuracy:g}", mechanism, scores, quick)
    for name, mechanism in DROWNED:
        yield from _both(f"{name}, a fifth wrong", mechanism, scores, quick)
    for name, template in [*MECHANISMS, *MORE]:
        yield _slowest(name, template, scores, EPSILONS, quick)
    yield _slowest("gaussian", GAUSSIAN, scores, SMALLER + EPSILONS, quick)
    yield _curve(scores, quick)


def _both(case: str, mechanism: dps.Mechanism, scores: Array, quick: bool) -> Iterator[Result]:
    """Time the chances, and all exact figures together."""
    yield _one(f"chances, {case}", mechanism, scores, lambda outlook: outlook.exact, quick)
    yield _one(f"all exact, {case}", mechanism, scores, lambda outlook: outlook.figures(), quick)


def _one(case: str, mechanism: dps.Mechanism, scores: Array, figures: Callable[[Any], object], quick: bool) -> Result:
    """Time a forecast and what is asked of it, without draws: some figures are computed when they are asked for.

    Other work on the machine only ever adds time, and often for seconds: what misses its limit is timed again, longer.
    """

    def timed(rounds: int) -> Result:
        return against_baseline(
            "forecast",
            case,
            scores,
            K,
            lambda: figures(dps.forecast.forecast(scores, mechanism, draws=0)),
            limit=LIMIT,
            rounds=rounds,
            quick=quick,
        )

    first = timed(30)
    return first if first.met else min(first, timed(120), key=lambda result: result.measured)


def _slowest(name: str, template: Any, scores: Array, epsilons: tuple[float, ...], quick: bool) -> Result:
    """Time all exact figures at several ε, and return the one at which they take longest."""
    results = {
        epsilon: _one(name, replace(template, epsilon=epsilon), scores, lambda outlook: outlook.figures(), quick)
        for epsilon in (epsilons[-1:] if quick else epsilons)
    }
    slowest = max(results, key=lambda epsilon: results[epsilon].measured)
    return replace(
        results[slowest],
        case=f"all exact, {name}, the slowest ε",
        note=f"at ε = {slowest:g}, of {len(results)} from {min(results):g} to {max(results):g}",
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
