"""Exact forecasts against "add NumPy Gumbel noise to every score and argpartition", and curves against one value."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

import dpselect as dps
from benchmarks.selection import Array, long_tail, noisy_argpartition
from benchmarks.timing import Result, best_time, best_times, typical_times

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

MORE: list[tuple[str, dps.Mechanism]] = [
    ("oneshot half-logistic", dps.OneShot(k=K, epsilon=1.0, noise="half-logistic")),
    ("oneshot logistic", dps.OneShot(k=K, epsilon=1.0, noise="logistic")),
    ("gaussian", dps.Gaussian(k=K, epsilon=1.0, delta=1e-6, max_items_per_person=3)),
]
"""Timed at many ε only."""

LARGEST, SMALLEST, SMALLEST_GAUSSIAN = 13.0, 0.005, 1e-4
"""From where noise drowns nearly all of the answer to where it is small; Gaussian's does not grow with k."""
GRID, SLOWEST = 60, 5
"""At how many ε each mechanism is timed, and how many of these again, for longer."""
ROUNDS, MORE_ROUNDS = 7, 60


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
        yield _slowest(name, template, scores, quick)
    yield _curve(scores, quick)


def _both(case: str, mechanism: dps.Mechanism, scores: Array, quick: bool) -> Iterator[Result]:
    """Time the chances, and all exact figures together."""
    works = [
        lambda: dps.forecast.forecast(scores, mechanism, draws=0).exact,
        lambda: dps.forecast.forecast(scores, mechanism, draws=0).figures(),
    ]
    cases = [f"chances, {case}", f"all exact, {case}"]
    yield from _timed(cases, works, scores, MORE_ROUNDS, quick)


def _timed(
    cases: list[str], works: Sequence[Callable[[], object]], scores: Array, rounds: int, quick: bool
) -> list[Result]:
    """Time forecasts without draws beside the baseline; some figures are computed when they are asked for."""
    times = typical_times(lambda: noisy_argpartition(scores, K), works, rounds=1 if quick else rounds)
    return [
        Result(
            suite="forecast",
            case=case,
            measured=our_seconds / baseline_seconds,
            unit="x",
            limit=None if quick else LIMIT,
            size=SIZE,
            k=K,
            baseline_seconds=baseline_seconds,
            our_seconds=our_seconds,
        )
        for case, (baseline_seconds, our_seconds) in zip(cases, times, strict=True)
    ]


def _slowest(name: str, template: Any, scores: Array, quick: bool) -> Result:
    """Time all exact figures at many ε, the slowest again, for longer, and return the slowest of these.

    The largest of many short times is large by chance, which is why these only tell where to look.
    """

    def timed(epsilons: list[float], rounds: int) -> dict[float, Result]:
        mechanisms = [replace(template, epsilon=epsilon) for epsilon in epsilons]
        works = [partial(_all_figures, scores, mechanism) for mechanism in mechanisms]
        case = f"all exact, {name}, the slowest ε"
        return dict(zip(epsilons, _timed([case] * len(works), works, scores, rounds, quick), strict=True))

    smallest = SMALLEST_GAUSSIAN if name == "gaussian" else SMALLEST
    epsilons = np.geomspace(smallest, LARGEST, GRID).tolist()[-1 if quick else 0 :]
    first = timed(epsilons, ROUNDS)
    again = timed(sorted(first, key=lambda epsilon: first[epsilon].measured)[-SLOWEST:], MORE_ROUNDS)
    slowest = max(again, key=lambda epsilon: again[epsilon].measured)
    note = f"at ε = {slowest:.4g}, of {len(epsilons)} from {smallest:g} to {LARGEST:g}"
    return replace(again[slowest], note=note)


def _all_figures(scores: Array, mechanism: dps.Mechanism) -> object:
    return dps.forecast.forecast(scores, mechanism, draws=0).figures()


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
