"""How far discrete noise strays: half-widths that hold it with a stated probability, rounded outwards.

Bounds and their proof: discrete.md.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from dpselect.sampling.balls import ball, working_precision

ADDED_UP_TO = 64**2
"""Variance up to which the terms of a discrete Gaussian are added up one by one."""


def laplace_half_width(scale: Fraction, failure: Fraction) -> int:
    """Return the smallest h with `P[|y| > h] = 2 r^{h+1} / (1 + r) <= failure`, `r = exp(−1/scale)`."""
    with working_precision(_precision(scale, failure)):
        ratio = (-1 / ball(scale)).exp()
        return max(_ceiling(ball(scale) * (2 / ((1 + ratio) * ball(failure))).log()) - 1, 0)


def gaussian_half_width(variance: Fraction, failure: Fraction) -> int:
    """Return an h with `P[|y| > h] <= failure` for `P[y] ∝ exp(−y² / (2σ²))`.

    The smallest one up to σ = 64; beyond, where `erfc((h + ½) / (σ√2))` bounds the tail, at most one more.
    """
    with working_precision(_precision(variance, failure)):
        deviation = ball(variance).sqrt()
        reach = deviation * ball(Fraction(2)).sqrt() * ball(failure).erfcinv()
        bounded = max(_ceiling(reach - ball(Fraction(1, 2))), 0)
        if not bounded + ball(Fraction(1, 2)) >= deviation:
            bounded = _ceiling(reach)
        if variance > ADDED_UP_TO:
            return bounded
        return _smallest_by_adding(variance, ball(failure))


def _smallest_by_adding(variance: Fraction, failure: Any) -> int:
    """Add up the terms from far out inwards for as long as their share stays within `failure`.

    Beyond 40σ + 1 the terms add up to less than `σ √(π/2) erfc(40/√2)`, about 1e-348.
    """
    deviation = ball(variance).sqrt()
    furthest = _ceiling(40 * deviation) + 1
    terms = [(-ball(Fraction(number * number) / (2 * variance))).exp() for number in range(furthest + 1)]
    beyond = deviation * (ball(Fraction(2)).sqrt() * 20).erfc() * 2
    total = 1 + 2 * sum(terms[1:], start=beyond)
    tail = beyond
    for number in range(furthest, 0, -1):
        tail += terms[number]
        # The far tail is counted in the numerator and left out of the denominator.
        if not 2 * tail <= failure * (total - 2 * beyond):
            return number
    return 0


def _precision(size: Fraction, failure: Fraction) -> int:
    """Bits that leave 128 after the point for a result of the order of `size · log(1/failure)`."""
    return 192 + size.numerator.bit_length() + failure.denominator.bit_length()


def _ceiling(ball: Any) -> int:
    return int(ball.upper().ceil().unique_fmpz())
