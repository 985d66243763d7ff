"""How high a threshold must be so that what lies below it passes by noise alone with a given probability at most."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import Any

from dpselect.sampling.balls import ball, working_precision

STEP = Fraction(1, 1 << 32)
"""Thresholds are multiples of this, so that exact arithmetic with them stays fast."""


@lru_cache(maxsize=1024)
def laplace_threshold(probability: Fraction) -> Fraction:
    """Return the least q >= 0, up to 2 STEP, with `P[ν − ρ > q] <= probability` for two standard Laplace variables.

    That probability is `¼ (2 + q) e^{−q}` for q >= 0, exactly: the tail of the density `¼ (1 + |t|) e^{−|t|}`.
    Mathematics, section 7.
    """
    return _least(lambda q: (2 + q) * (-q).exp() / 4, probability)


@lru_cache(maxsize=1024)
def gumbel_threshold(probability: Fraction) -> Fraction:
    """Return the least u >= 0, up to 2 STEP, with `e^{−u} <= probability`.

    A standard Gumbel variable exceeds another one that stands u higher with probability `1/(1 + e^u) < e^{−u}`.
    """
    return _least(lambda u: (-u).exp(), probability)


def _least(tail: Callable[[Any], Any], probability: Fraction) -> Fraction:
    """Return the least multiple of STEP, up to one more, for which balls prove that a falling tail is low enough."""
    precision = 128 + 2 * max(probability.denominator.bit_length(), probability.numerator.bit_length())
    with working_precision(precision):
        limit = ball(probability)

        def proven(steps: int) -> bool:
            return bool(tail(ball(steps * STEP)) <= limit)

        if proven(0):
            return Fraction(0)
        high = 1
        while not proven(high):
            high *= 2
        low = high // 2
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if proven(middle) else (middle, high)
    return high * STEP
