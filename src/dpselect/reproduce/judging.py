"""Comparisons of drawn figures that say true, false or undecided, with a stated probability of error.

Every comparison is two-sided, and the level is divided by the number of comparisons of a study (Bonferroni), so that
all its decided comparisons are right together with probability at least 1 − ERROR.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

ERROR = 0.01
"""The probability that any decided comparison of a study is wrong, at most."""


class Mean(NamedTuple):
    """A mean of independent draws: its value, its standard error, and the number of draws. Error 0: exact."""

    value: float
    error: float = 0.0
    draws: int = 2

    @classmethod
    def of(cls, value: float, deviation: float, draws: int) -> Mean:
        """Return the mean of draws with a standard deviation."""
        return cls(value, deviation / math.sqrt(draws), draws)


def is_more(first: Mean, second: Mean, comparisons: int, times: float = 1.0) -> bool | None:
    """Return whether the first mean exceeds `times` the second, None if the draws cannot tell (Welch's t-test)."""
    from scipy.stats import t

    difference = float(first.value - times * second.value)
    parts = first.error**2, (times * second.error) ** 2
    if not any(parts):
        return None if difference == 0 else difference > 0
    freedom = sum(parts) ** 2 / sum(
        part**2 / (mean.draws - 1) for part, mean in zip(parts, (first, second), strict=True)
    )
    reach = float(t.isf(ERROR / (2 * comparisons), freedom)) * math.sqrt(sum(parts))
    return difference > 0 if abs(difference) > reach else None


class Variance(NamedTuple):
    """A variance of independent draws, their fourth central moment, and their number."""

    value: float
    fourth: float
    draws: int


def is_more_variable(first: Variance, second: Variance, comparisons: int) -> bool | None:
    """Return whether the first variance is larger, None if the draws cannot tell.

    The variance s² of n draws has the squared standard error `(m₄ − m₂²)/n + 2 s⁴/(n (n − 1))` with the central moments
    m₂ and m₄, whatever the distribution; the second part matters if draws have only two values, equally often. The
    difference of two is compared with the quantile of Student's t of the smaller number of draws.
    """
    from scipy.stats import t

    difference = float(first.value - second.value)
    error = math.sqrt(sum(_squared_error(one) for one in (first, second)))
    reach = float(t.isf(ERROR / (2 * comparisons), min(first.draws, second.draws) - 1)) * error
    return difference > 0 if abs(difference) > reach else None


def _squared_error(variance: Variance) -> float:
    """Return the squared standard error of a variance."""
    draws, square = variance.draws, variance.value**2
    moments = variance.fourth - square * ((draws - 1) / draws) ** 2
    return max(moments, 0.0) / draws + 2 * square / (draws * (draws - 1))


def median_interval(values: Sequence[float], error: float) -> tuple[float, float]:
    """Return order statistics between which the median lies, but for a probability of at most `error`.

    Each draw is below the median with probability at most ½, so the bound is a binomial tail and holds for every
    distribution. Infinite ends if there are too few draws.
    """
    from scipy.stats import binom

    ordered = np.sort(np.asarray(values, dtype=np.float64))
    # The first order statistic that P[Binomial(n, ½) <= place] allows to leave out, on each side.
    left_out = int(np.sum(binom.cdf(np.arange(len(ordered)), len(ordered), 0.5) <= error / 2))
    if left_out == 0:
        return -math.inf, math.inf
    return float(ordered[left_out - 1]), float(ordered[len(ordered) - left_out])


def is_at_most(first: tuple[float, float], second: tuple[float, float]) -> bool | None:
    """Return whether a median is at most another, from an interval for each; None if the intervals overlap."""
    if first[1] <= second[0]:
        return True
    return False if first[0] > second[1] else None
