"""select() against reading the scores once, and against what people write by hand.

Three baselines in the same run: `numpy.bincount`, one pass over the counts and so the physical limit; NumPy exponential
noise and `argpartition`; NumPy Gumbel noise and `argpartition`. The last two draw one float64 noise for each item,
neither exact nor from a secure generator. Ours draws secure bits and decides every comparison exactly. All times are
processor times: everything here runs on one thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import dpselect as dps
from benchmarks.baseline import EPSILON, K, distinct_floats, long_tail, noisy_argpartition
from benchmarks.growth import FORMS, KINDS, along_lengths, along_sizes
from benchmarks.timing import Result, best_cpu_times, peak_bytes

DELTA = 1e-6

MECHANISMS: dict[str, dps.Mechanism] = {
    "canonical": dps.Canonical(k=K, epsilon=EPSILON),
    "one-shot": dps.OneShot(k=K, epsilon=EPSILON),
    "one-shot, ordered": dps.OneShot(k=K, epsilon=EPSILON, ordered=True),
    "Gumbel peeling": dps.Peeling(k=K, epsilon=EPSILON, noise="gumbel", delta=DELTA),
    "laplace": dps.Laplace(k=K, epsilon=EPSILON, max_items_per_person=5),
    "gaussian": dps.Gaussian(k=K, epsilon=EPSILON, delta=DELTA, max_items_per_person=5),
    "restricted": dps.RestrictedGumbel(k=K, epsilon=EPSILON, delta=DELTA),
    "joint": dps.Joint(k=K, epsilon=EPSILON),
    "peeling": dps.Peeling(k=K, epsilon=EPSILON),
}

RATIOS = {166_000: 12.0, 10**6: 4.0, 10**7: 2.5}
RATIOS_OF_JOINT = {166_000: 20.0, 10**6: 6.0, 10**7: 3.0}
"""Largest accepted multiples of bincount, by the number of items; peeling has none."""

SMALL = 10**4
MILLISECONDS = {"canonical": 1.0, "one-shot": 1.0, "joint": 4.0, "peeling": 10.0}
"""Largest accepted times with `SMALL` items, where fixed costs count more than the items."""

CONVERSION = 2.0
"""Largest accepted multiple of NumPy's own conversion for scores in a list or dictionary of floats."""

MEMORY_LIMIT = 16.0
"""Bytes per item that a release may use beyond the scores."""


def measurements(quick: bool) -> Iterator[Result]:
    """Yield the ratios to the three baselines, the fixed costs, the conversions, the memory and the growth."""
    for size, rounds in ((166_000, 40), (10**6, 15), (10**7, 5)):
        yield from _against_baselines(size, rounds, quick)
    yield from _fixed_costs(quick)
    yield from _conversions(quick)
    yield from _memory(quick)
    yield from _growth(quick)


def _against_baselines(size: int, rounds: int, quick: bool) -> Iterator[Result]:
    counts = long_tail(20_000 if quick else size)
    baselines: list[Callable[[], object]] = [
        lambda: np.bincount(counts),
        lambda: noisy_argpartition(counts, K, "exponential"),
        lambda: noisy_argpartition(counts, K, "gumbel"),
    ]
    works = [lambda mechanism=mechanism: dps.select(counts, mechanism=mechanism) for mechanism in MECHANISMS.values()]
    bincount, exponential, gumbel, *ours = best_cpu_times(*baselines, *works, rounds=1 if quick else rounds)
    for name, seconds in zip(MECHANISMS, ours, strict=True):
        limits = {} if quick or name == "peeling" else RATIOS_OF_JOINT if name == "joint" else RATIOS
        yield Result(
            suite="selection",
            case=f"{name}, counts",
            measured=seconds / bincount,
            unit="x",
            limit=limits.get(size),
            size=len(counts),
            k=K,
            baseline_seconds=bincount,
            our_seconds=seconds,
            to_exponential=seconds / exponential,
            to_gumbel=seconds / gumbel,
        )


def _fixed_costs(quick: bool) -> Iterator[Result]:
    counts = long_tail(SMALL)
    works = [lambda name=name: dps.select(counts, mechanism=MECHANISMS[name]) for name in MILLISECONDS]
    for name, seconds in zip(MILLISECONDS, best_cpu_times(*works, rounds=1 if quick else 40), strict=True):
        limit = None if quick else MILLISECONDS[name]
        yield Result("selection", f"{name}, few counts", 1000 * seconds, " ms", limit=limit, size=SMALL, k=K)


def _conversions(quick: bool) -> Iterator[Result]:
    """Yield how much longer a list and a dictionary of floats take than an array, in conversions by NumPy."""
    scores = distinct_floats(20_000 if quick else 10**6)
    mechanism = dps.OneShot(k=K, epsilon=EPSILON)
    listed = scores.tolist()
    named = dict(enumerate(listed))
    given: dict[str, tuple[Any, Callable[[], object]]] = {
        "list": (listed, lambda: np.array(listed)),
        "dict": (named, lambda: (list(named), np.array(list(named.values())))),
    }
    for name, (form, convert) in given.items():
        seconds = best_cpu_times(
            convert,
            lambda form=form: dps.select(form, mechanism=mechanism),
            lambda: dps.select(scores, mechanism=mechanism),
            rounds=1 if quick else 9,
        )
        yield Result(
            "selection",
            f"{name} of floats, beyond an array",
            (seconds[1] - seconds[2]) / seconds[0],
            "x",
            limit=None if quick else CONVERSION,
            size=len(scores),
            k=K,
            baseline_seconds=seconds[0],
            our_seconds=seconds[1],
        )


def _memory(quick: bool) -> Iterator[Result]:
    size = 20_000 if quick else 10**6
    for name, data in (("counts", long_tail), ("floats", distinct_floats)):
        scores = data(size)
        for kind in ("canonical", "one-shot", "joint"):
            peak = peak_bytes(lambda: dps.select(scores, mechanism=MECHANISMS[kind]))  # noqa: B023
            limit = None if quick or (kind != "one-shot" and name == "floats") else MEMORY_LIMIT
            yield Result("selection", f"{kind}, bytes an item, {name}", peak / size, " B", limit, size=size, k=K)


def _growth(quick: bool) -> Iterator[Result]:
    for kind in KINDS:
        for form in FORMS:
            for growth in (along_sizes(kind, form, quick), along_lengths(kind, form, quick)):
                first, last = (f"{place:.3g}".replace("e+0", "e") for place in (growth.places[0], growth.places[-1]))
                fastest, slowest = (1000 * growth.seconds[place] for place in (0, -1))
                yield Result(
                    suite="selection",
                    case=f"{kind.name}, {form}, {growth.along} slope",
                    measured=growth.slope,
                    unit="",
                    note=f"{first} to {last}: {fastest:.1f} to {slowest:.0f} ms",
                )
