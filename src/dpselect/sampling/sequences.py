"""Uniformly random sequences within bounds, and how many there are, as logarithms with error bounds.

Notation: the members of a sequence are ranks 0, 1, …; row r (from 0) may hold ranks below `outer[r]`, all different.
Bounds never decrease from one row to the next, so the number of sequences is `Π (outer[r] − r)`.
`n^(r) = n (n−1) … (n−r+1)` is the number of sequences of r distinct members out of n.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from math import prod

import numpy as np
import numpy.typing as npt

from dpselect._arrays import Array, FloatArray
from dpselect.sampling.bits import BitSource
from dpselect.sampling.race import by_size
from dpselect.sampling.uniform import uniform_integer

PRECISION = 2.0**-44
"""Bound on the error of a log-count relative to 1 + Σ |terms|; the arithmetic below stays a factor of 10 under it."""

_STIRLING_FROM = 32
_SMALL_LOG_GAMMA = np.array([0.0, *(math.lgamma(x) for x in range(1, _STIRLING_FROM + 1))])

_LARGEST_WORD = 2**62
"""Whole numbers from here on are kept as Python integers; NumPy would turn some of them into floats."""


def whole_numbers(numbers: Sequence[int]) -> Array:
    """Return whole numbers of any size as an exact array."""
    return np.array(numbers, dtype=np.int64 if max(numbers, default=0) < _LARGEST_WORD else object)


def bounded_sequence(inner: Array, outer: Array, bits: BitSource) -> list[int]:
    """Return a uniformly random sequence within the `outer` bounds and not within the `inner` bounds.

    The first row beyond its inner bound is r with weight
    `Π_{q<r} (inner[q] − q) · (outer[r] − inner[r]) · Π_{q>r} (outer[q] − q)`;
    the weights add up to the number of such sequences (joint, section 4). Earlier rows draw below their inner bounds,
    later rows below their outer bounds, each from the ranks that are left.
    """
    first = _first_beyond(inner, outer, bits)
    upper = np.concatenate([inner[:first], outer[first:]])
    lower = list(range(len(upper)))
    lower[first] = int(inner[first])
    return _picks(lower, upper.tolist(), bits)


def _first_beyond(inner: Array, outer: Array, bits: BitSource) -> int:
    """Return the first row beyond its inner bound, drawn with the weights of `bounded_sequence`."""
    rows = np.arange(len(outer))
    gained = (outer - inner).astype(np.float64)
    choices = [(bound - rows).astype(np.float64) for bound in (inner, outer)]
    with np.errstate(divide="ignore"):
        within = np.concatenate([[0.0], np.cumsum(np.log(np.maximum(choices[0], 0.0)))[:-1]])
        behind = np.concatenate([np.cumsum(np.log(choices[1])[::-1])[::-1][1:], [0.0]])
        log_sizes = within + np.log(gained) + behind
    possible = np.flatnonzero(np.isfinite(log_sizes))
    if len(possible) == 1:
        return int(possible[0])
    total = np.log(outer.astype(np.float64) + 1.0).sum()
    errors = np.full(len(possible), PRECISION * (1.0 + total) * max(4.0, len(outer) / 512.0))
    exact = partial(_exact_weight, inner.tolist(), outer.tolist())
    chosen = by_size(log_sizes[possible], errors, lambda option: exact(int(possible[option])), bits)
    return int(possible[chosen])


def _exact_weight(inner: list[int], outer: list[int], row: int) -> int:
    """Return the weight of a row as an exact integer."""
    before = prod(inner[other] - other for other in range(row))
    behind = prod(outer[other] - other for other in range(row + 1, len(outer)))
    return before * (outer[row] - inner[row]) * behind


def _picks(lower: list[int], upper: list[int], bits: BitSource) -> list[int]:
    """Shuffle a virtual array 0, 1, … : row r swaps place r with a uniform one of places lower[r] … upper[r] − 1.

    Places before r hold the ranks taken so far. Bounds never decrease, so places r … upper[r] − 1 hold exactly the
    ranks below upper[r] that are left. Only moved places are stored.
    """
    moved: dict[int, int] = {}
    picks = []
    for row, offset in enumerate(_uniform_offsets(lower, upper, bits)):
        place = lower[row] + offset
        picks.append(moved.get(place, place))
        moved[place] = moved.get(row, row)
    return picks


def _uniform_offsets(lower: list[int], upper: list[int], bits: BitSource) -> list[int]:
    """Return a uniform integer in 0..upper−lower−1 for each row; most need only one word of a common batch."""
    ranges = [high - low for low, high in zip(lower, upper, strict=True)]
    words = bits.integers(len(ranges), 64).tolist()
    offsets = []
    for word, size in zip(words, ranges, strict=True):
        fair = (1 << 64) // size * size if size >> 64 == 0 else 0
        offsets.append(word % size if word < fair else uniform_integer(size, bits))
    return offsets


def log_falling(n: npt.ArrayLike, r: npt.ArrayLike) -> FloatArray:
    """Return log n^(r), −∞ where r > n; the error is at most PRECISION · (1 + r log(n + 1)).

    It is `log Γ(x) − log Γ(y)` for `x = n + 1`, `y = n − r + 1` by Stirling's series. The terms of size n log n are
    cancelled algebraically, not in float64: `r log x + (y − ½) log1p(r/y) − r + s(x) − s(y)`.
    Arguments below 32, where the series is not accurate enough, are looked up in a table.
    """
    n, r = np.asarray(n, dtype=np.float64), np.asarray(r, dtype=np.float64)
    x, y = n + 1.0, n - r + 1.0
    top, bottom = np.maximum(x, _STIRLING_FROM), np.maximum(y, _STIRLING_FROM)
    # Beyond 2^53 the two ends are rounded, so their difference is not r.
    steps = np.where(y >= _STIRLING_FROM, r, top - bottom)
    by_series = steps * np.log(top) + (bottom - 0.5) * np.log1p(steps / bottom) - steps + _series(top) - _series(bottom)
    return np.where(y >= 1.0, by_series + _small_log_gamma(x) - _small_log_gamma(y), -np.inf)


def _small_log_gamma(x: FloatArray) -> FloatArray:
    """Return log Γ(min(x, 32)) for whole numbers."""
    result: FloatArray = _SMALL_LOG_GAMMA.take(np.minimum(np.maximum(x, 1), _STIRLING_FROM).astype(np.intp))
    return result


def _series(x: FloatArray) -> FloatArray:
    """Return the tail of Stirling's series; the first omitted term is below 1e-17 for x >= 32."""
    inverse = 1.0 / x
    square = inverse * inverse
    tail: FloatArray = (1 / 12 - square * (1 / 360 - square * (1 / 1260 - square / 1680))) * inverse
    return tail


def log_falling_error(n: npt.ArrayLike, r: npt.ArrayLike) -> FloatArray:
    """Return the error bound of `log_falling`."""
    bound: FloatArray = PRECISION * (1.0 + np.asarray(r) * np.log(np.asarray(n, dtype=np.float64) + 2.0))
    return bound


def log_difference(larger: FloatArray, log_ratio: FloatArray) -> FloatArray:
    """Return log(A − B) from log A and log(B/A) <= 0."""
    with np.errstate(divide="ignore"):
        result: FloatArray = larger + np.log(-np.expm1(log_ratio))
    return result


THIN = 1 / 64
"""Slices that hold a smaller share of all subsets may be computed more precisely by their width."""


def log_subsets(inner: Array, outer: Array, picks: Array) -> tuple[FloatArray, FloatArray]:
    """Return log(C(outer, picks) − C(inner, picks)) and a bound on its error.

    It is the difference of the two logarithms, precise if they are well apart. For a thin slice it is, if that has the
    smaller error bound, `outer − inner` times a term between C(inner, picks − 1) and C(outer − 1, picks − 1).
    """
    inner, outer, picks = np.broadcast_arrays(inner, outer, picks)
    orderings, within, whole = log_falling(np.stack([picks, inner, outer]), picks)
    error = log_falling_error(outer, picks)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        ratio = np.minimum(within - whole, 0.0)
        share = -np.expm1(ratio)
        result = log_difference(whole - orderings, ratio)
        result_error = 2 * error + np.where(share > 0, 4 * error / share, np.inf)
    thin = share < THIN
    if thin.any():
        inner, outer, picks, orderings, error = (part[thin] for part in (inner, outer, picks, orderings, error))
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            low, high = log_falling(np.stack([inner, outer - 1]), picks - 1)
            first = np.log((outer - inner).astype(np.float64)) + low - (orderings - np.log(picks.astype(np.float64)))
            slice_error = (high - low) / 2 + 4 * error
            better = slice_error < result_error[thin]
        result[thin] = np.where(better, first + (high - low) / 2, result[thin])
        result_error[thin] = np.where(better, slice_error, result_error[thin])
    return result, result_error
