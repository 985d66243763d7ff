"""Logarithms of huge counts in float64, with error bounds.

Notation: `n^(r) = n (n−1) … (n−r+1)`, the number of sequences of r distinct members out of n.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from dpselect._arrays import FloatArray

PRECISION = 2.0**-44
"""Bound on the error of a log-count relative to 1 + Σ |terms|; the arithmetic below stays a factor of 10 under it."""

_BORDER = 32
_SMALL_LOG_GAMMA = np.array([0.0, *(math.lgamma(x) for x in range(1, _BORDER + 1))])


def log_falling(n: npt.ArrayLike, r: npt.ArrayLike) -> FloatArray:
    """Return log n^(r), −∞ where r > n; error at most PRECISION · (1 + r log(n + 1)).

    `log Γ(x) − log Γ(y)` for `x = n + 1`, `y = n − r + 1` by Stirling's series, arranged so that the terms of size
    n log n cancel on paper and not in float64: `r log x + (y − ½) log1p(r/y) − r + s(x) − s(y)`.
    Below 32, where the series is too short, a table takes over.
    """
    n, r = np.broadcast_arrays(np.asarray(n, dtype=np.float64), np.asarray(r, dtype=np.float64))
    x, y = n + 1.0, n - r + 1.0
    top, bottom = np.maximum(x, _BORDER), np.maximum(y, _BORDER)
    # Beyond 2^53 the two ends are rounded, and their difference is not r.
    steps = np.where(y >= _BORDER, r, top - bottom)
    by_series = steps * np.log(top) + (bottom - 0.5) * np.log1p(steps / bottom) - steps + _series(top) - _series(bottom)
    return np.where(y >= 1.0, by_series + _small_log_gamma(x) - _small_log_gamma(y), -np.inf)


def _small_log_gamma(x: FloatArray) -> FloatArray:
    """Log Γ(min(x, 32)) for whole numbers."""
    result: FloatArray = _SMALL_LOG_GAMMA[np.clip(x, 1, _BORDER).astype(np.intp)]
    return result


def _series(x: FloatArray) -> FloatArray:
    """The tail of Stirling's series; the first term left out is below 1e-17 for x >= 32."""
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
