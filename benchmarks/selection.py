"""select() against "add NumPy Gumbel noise to every score and argpartition".

The baseline is what people write by hand: one float64 noise for each item, neither exact nor from a secure generator.
Ours draws secure bits and decides every comparison exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

import dpselect as dps
from benchmarks.timing import Result, best_times, peak_bytes
from dpselect._arrays import Array

EPSILON = 1.0


def long_tail(size: int) -> Array:
    """Counts with a long tail and many ties, `round(150000 / i**0.7)`, in random order."""
    return np.round(distinct_floats(size)).astype(np.int64)


def distinct_floats(size: int) -> Array:
    """Scores with a long tail of which no two are equal, in random order."""
    scores = 150_000 / np.arange(1, size + 1) ** 0.7
    np.random.default_rng(1).shuffle(scores)
    return scores


def distinct_integers(size: int) -> Array:
    """The integers below `size` in random order: a narrow range without ties."""
    return np.random.default_rng(1).permutation(size)


def noisy_argpartition(scores: Array, k: int) -> Array:
    """The baseline: the positions of the k largest of score + Gumbel noise of scale k/ε."""
    noisy = scores + np.random.default_rng().gumbel(scale=k / EPSILON, size=len(scores))
    return np.argpartition(noisy, -k)[-k:]


def against_baseline(
    suite: str,
    case: str,
    scores: Array,
    k: int,
    ours: Callable[[], object],
    *,
    limit: float | None,
    rounds: int,
    quick: bool,
) -> Result:
    """Return the time of `ours` as a multiple of that of the baseline."""
    baseline_seconds, our_seconds = best_times(
        lambda: noisy_argpartition(scores, k), ours, rounds=1 if quick else rounds
    )
    return Result(
        suite=suite,
        case=case,
        measured=our_seconds / baseline_seconds,
        unit="x",
        limit=None if quick else limit,
        size=len(scores),
        k=k,
        baseline_seconds=baseline_seconds,
        our_seconds=our_seconds,
    )


@dataclass(frozen=True)
class Case:
    """One data set and mechanism; `limit` is the largest ratio to the baseline that is accepted."""

    name: str
    data: Callable[[int], Array]
    size: int
    rounds: int
    limit: float | None = None
    k: int = 100
    kind: type[dps.Mechanism] = dps.OneShot
    noise: str = "exponential"
    suite: str = "selection"

    def measure(self, quick: bool) -> Result:
        """Time the baseline and dpselect alternately."""
        size = min(self.size, 20_000) if quick else self.size
        scores = self.data(size)
        mechanism = self.kind(k=self.k, epsilon=EPSILON, noise=self.noise)  # type: ignore[call-arg]
        return against_baseline(
            self.suite,
            self.name,
            scores,
            self.k,
            lambda: dps.select(scores, mechanism=mechanism),
            limit=self.limit,
            rounds=self.rounds,
            quick=quick,
        )


CASES = [
    Case("counts", long_tail, 10**4, rounds=200, limit=5.0),
    Case("counts", long_tail, 10**6, rounds=15, limit=0.7),
    Case("counts", long_tail, 10**7, rounds=5, limit=0.4),
    Case("floats", distinct_floats, 10**6, rounds=15, limit=2.5),
    Case("distinct integers", distinct_integers, 10**6, rounds=15, limit=2.5),
    Case("counts, gumbel", long_tail, 10**6, rounds=15, noise="gumbel"),
    Case("counts, laplace", long_tail, 10**6, rounds=15, noise="laplace"),
    Case("floats, gumbel", distinct_floats, 10**6, rounds=15, noise="gumbel"),
    Case("counts, peeling", long_tail, 10**6, rounds=3, kind=dps.Peeling),
    Case("counts, peeling gumbel", long_tail, 10**6, rounds=15, kind=dps.Peeling, noise="gumbel"),
]

MEMORY_LIMIT = 16.0
"""Bytes per item that a release may use beyond the scores."""


def measurements(quick: bool) -> Iterator[Result]:
    """Yield the times, then the memory for each item."""
    for case in CASES:
        yield case.measure(quick)
    size = 20_000 if quick else 10**6
    mechanism = dps.OneShot(k=100, epsilon=EPSILON)
    for name, data in (("counts", long_tail), ("floats", distinct_floats), ("integers", distinct_integers)):
        scores = data(size)
        peak = peak_bytes(lambda scores=scores: dps.select(scores, mechanism=mechanism))  # type: ignore[misc]
        yield Result(
            suite="selection",
            case=f"bytes an item, {name}",
            measured=peak / size,
            unit=" B",
            limit=None if quick else MEMORY_LIMIT,
            size=size,
            k=100,
        )
