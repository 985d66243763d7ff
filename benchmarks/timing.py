"""Measurement: alternately with a baseline in the same run, and the best of several rounds."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable
from dataclasses import asdict, dataclass
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
    to_exponential: float | None = None
    to_gumbel: float | None = None
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


def best_cpu_times(*works: Callable[[], object], rounds: int) -> list[float]:
    """Return the smallest processor time of each work, all run in turns; for work on one thread."""
    for work in works:
        work()
    timed = [[_seconds(work, time.process_time) for work in works] for _ in range(rounds)]
    return [min(own) for own in zip(*timed, strict=True)]


def _seconds(work: Callable[[], object], clock: Callable[[], float] = time.perf_counter) -> float:
    start = clock()
    work()
    return clock() - start


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
