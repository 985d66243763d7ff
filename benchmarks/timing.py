"""Measurement: alternately with a baseline in the same run, and the best of several rounds."""

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
        """Whether the measurement is within its limit; True without a limit."""
        return self.limit is None or self.measured <= self.limit

    @property
    def verdict(self) -> str:
        """Return "met", "missed", or "-" without a limit."""
        if self.limit is None:
            return "-"
        return "met" if self.met else "missed"

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain data."""
        return {**asdict(self), "verdict": self.verdict}


def best_times(baseline: Callable[[], object], ours: Callable[[], object], rounds: int) -> tuple[float, float]:
    """Return the shortest time of each, run alternately.

    Other load on the machine can only add time, so the shortest of several rounds is the most accurate.
    """
    ours()
    baseline()
    pairs = [(_seconds(baseline), _seconds(ours)) for _ in range(rounds)]
    return min(first for first, _ in pairs), min(second for _, second in pairs)


def typical_times(
    baseline: Callable[[], object], works: Sequence[Callable[[], object]], rounds: int
) -> list[tuple[float, float]]:
    """Return the median times of the baseline and of each work.

    All are run alternately, the baseline before each work, so that other load on the machine affects all of them. Use
    medians if the slowest of many cases counts.
    """
    for work in (baseline, *works):
        work()
    pairs = [[(_seconds(baseline), _seconds(work)) for work in works] for _ in range(rounds)]
    return [(median(base for base, _ in own), median(ours for _, ours in own)) for own in zip(*pairs, strict=True)]


def best_time(work: Callable[[], object], rounds: int) -> float:
    """Return the shortest time of several rounds, after a warm-up round."""
    work()
    return min(_seconds(work) for _ in range(rounds))


def _seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def peak_bytes(work: Callable[[], object]) -> int:
    """Return the peak memory of `work` beyond what was in use before, including NumPy arrays."""
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
