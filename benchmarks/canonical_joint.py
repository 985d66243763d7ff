"""Joint and Canonical against "add NumPy Gumbel noise to every score and argpartition", and how their time grows.

Both start from a shuffled array, so the time includes counting how many items have each score.
"""

from __future__ import annotations

from collections.abc import Iterator

import dpselect as dps
from benchmarks.growth import KINDS, SIZES, along_lengths, along_sizes
from benchmarks.selection import EPSILON, Case, distinct_floats, long_tail
from benchmarks.timing import Result, peak_bytes

MEMORY_LIMIT = 64.0
"""Megabytes that a release may use beyond the scores."""


def cases() -> Iterator[Case]:
    """Yield the cases that are timed against the baseline."""
    for kind in KINDS:
        for size, rounds, limit in ((166_000, 25, 5.0), (10**6, 10, 1.0), (10**7, 4, 0.5)):
            yield Case(f"{kind.name}, counts", long_tail, size, rounds, limit, k=200, kind=kind, suite="subsets")
        yield Case(f"{kind.name}, floats", distinct_floats, 10**6, 5, 30.0, k=100, kind=kind, suite="subsets")


def measurements(quick: bool) -> Iterator[Result]:
    """Yield the times, the memory, and the growth."""
    for case in cases():
        yield case.measure(quick)
    yield from _memory(quick)
    for kind in KINDS:
        for form in SIZES:
            for growth in (along_sizes(kind, form, quick), along_lengths(kind, form, quick)):
                first, last = (f"{place:.3g}".replace("e+0", "e") for place in (growth.places[0], growth.places[-1]))
                fastest, slowest = (1000 * growth.seconds[place] for place in (0, -1))
                yield Result(
                    suite="subsets",
                    case=f"{kind.name}, {form}, {growth.along} slope",
                    measured=growth.slope,
                    unit="",
                    note=f"{first} to {last}: {fastest:.0f} to {slowest:.0f} ms",
                )


def _memory(quick: bool) -> Iterator[Result]:
    for kind in KINDS:
        for name, data, size, k in (
            ("counts", long_tail, 10**6, 200),
            ("counts", long_tail, 10**7, 200),
            ("floats", distinct_floats, 10**6, 100),
        ):
            scores = data(20_000 if quick else size)
            mechanism = kind(k=k, epsilon=EPSILON)
            peak = peak_bytes(lambda: dps.select(scores, mechanism=mechanism))  # noqa: B023
            yield Result(
                suite="subsets",
                case=f"{kind.name}, memory, {name}",
                measured=peak / 1e6,
                unit=" MB",
                limit=None if quick else MEMORY_LIMIT,
                size=len(scores),
                k=k,
            )
