"""How things are measured: interleaved, best of several, against a baseline in the same run."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any


@dataclass(frozen=True)
class Result:
    """One measured case; `measured` and `limit` are in `unit`, times in seconds."""

    suite: str
    case: str
    measured: float
    unit: str
    limit: float | None = None
    size: int | None = None
    k: int | None = None
    baseline_seconds: float | None = None
    our_seconds: float | None = None
    note: str = ""

    @property
    def met(self) -> bool:
        """Whether the measurement keeps its limit; without a limit it is for information."""
        return self.limit is None or self.measured <= self.limit

    @property
    def verdict(self) -> str:
        """Say in one word how the measurement compares with its limit."""
        if self.limit is None:
            return "-"
        return "met" if self.met else "missed"

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain data."""
        return {**asdict(self), "verdict": self.verdict}


def best_times(baseline: Callable[[], object], ours: Callable[[], object], rounds: int) -> tuple[float, float]:
    """Return the shortest time of each, run in turns so that both meet the same machine.

    Other work on the machine only ever adds time, so that the shortest of several is the fairest.
    """
    ours()
    baseline()
    pairs = [(_seconds(baseline), _seconds(ours)) for _ in range(rounds)]
    return min(first for first, _ in pairs), min(second for _, second in pairs)


def typical_times(
    baseline: Callable[[], object], works: Sequence[Callable[[], object]], rounds: int
) -> list[tuple[float, float]]:
    """Return the median times of the baseline and of each of several works.

    All are run in turns, the baseline before each work, so that what else is done on the machine for some seconds
    meets all of them. For many cases of which the slowest counts: the shortest times would be the luck of the most.
    """
    for work in (baseline, *works):
        work()
    pairs = [[(_seconds(baseline), _seconds(work)) for work in works] for _ in range(rounds)]
    return [(median(base for base, _ in own), median(ours for _, ours in own)) for own in zip(*pairs, strict=True)]


def best_time(work: Callable[[], object], rounds: int) -> float:
    """Return the shortest time of several, after one that warms up."""
    work()
    return min(_seconds(work) for _ in range(rounds))


def _seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def peak_bytes(work: Callable[[], object]) -> int:
    """Return the most memory that `work` holds at a time beyond what was held before; NumPy's arrays are counted."""
    work()
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        work()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    return peak - before
