"""How the time of a release grows with the number of items and with k."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import dpselect as dps
from benchmarks.baseline import EPSILON, K, long_tail
from benchmarks.timing import best_cpu_times

KINDS: list[type[dps.Mechanism]] = [dps.Joint, dps.Canonical]
SIZE = 10**6
SIZES = {"array": [10**4, 10**5, 166_000, 10**6, 10**7], "histogram": [10**4, 10**5, 10**6, 10**7, 10**8]}
FORMS = tuple(SIZES)
LENGTHS = [50, 100, 200, 400, 800, 1600, 3200]


@dataclass(frozen=True)
class Growth:
    """Times in seconds of one mechanism along sizes or lengths."""

    kind: type[dps.Mechanism]
    form: str
    along: str
    places: Sequence[int]
    seconds: Sequence[float]

    @property
    def slope(self) -> float:
        """The slope of log time against log place, by least squares: 1 when time is proportional to it."""
        return float(np.polyfit(np.log(self.places), np.log(self.seconds), 1)[0])


def histogram(size: int) -> tuple[Any, Any]:
    """The counts `round(150000 / i**0.7)`, i = 1..size, as distinct counts and how many items hold each.

    A count of at least v is held by the items up to `(150000 / (v − ½))**(1/0.7)`.
    """
    values = np.arange(150_000, -1, -1)
    with np.errstate(divide="ignore"):
        up_to = np.floor((150_000 / np.maximum(values - 0.5, 1e-9)) ** (1 / 0.7))
    ends = np.minimum(up_to, size).astype(np.int64)
    held = np.diff(ends, prepend=0)
    return values[held > 0], held[held > 0]


def along_sizes(kind: type[dps.Mechanism], form: str, quick: bool) -> Growth:
    """Time releases of k = 200 items out of more and more."""
    sizes = SIZES[form][:2] if quick else SIZES[form]
    return Growth(kind, form, "d", sizes, [_seconds(kind, form, size, K, quick) for size in sizes])


def along_lengths(kind: type[dps.Mechanism], form: str, quick: bool) -> Growth:
    """Time releases of more and more of a million items."""
    size, lengths = (20_000, LENGTHS[:2]) if quick else (SIZE, LENGTHS)
    return Growth(kind, form, "k", lengths, [_seconds(kind, form, size, length, quick) for length in lengths])


def _seconds(kind: type[dps.Mechanism], form: str, size: int, k: int, quick: bool) -> float:
    mechanism = kind(k=k, epsilon=EPSILON)
    rounds = 1 if quick else 3 if size * k > 10**9 else 7
    if form == "array":
        counts = long_tail(size)
        return best_cpu_times(lambda: dps.select(counts, mechanism=mechanism), rounds=rounds)[0]
    pairs = histogram(size)
    scores = dps.Scores.from_histogram(*pairs)
    return best_cpu_times(lambda: dps.select(scores, mechanism=mechanism), rounds=rounds)[0]
