"""Discrete Laplace and discrete Gaussian noise on the integers: exact draws, and intervals that contain the noise.

Every random decision compares a uniform number with a rational one, bit by bit, so no float is involved. The
algorithms are those of Canonne, Kamath and Steinke, "The Discrete Gaussian for Differential Privacy" (2020),
algorithms 1 to 3. Half-widths of intervals are computed in ball arithmetic and rounded up. Proofs in discrete.md.
"""

from __future__ import annotations

from fractions import Fraction
from math import isqrt
from typing import Any

from dpselect.sampling.balls import ball, working_precision
from dpselect.sampling.bits import BitSource
from dpselect.sampling.uniform import uniform_integer

WORD = 64
"""Bits of a uniform number drawn at a time; one word nearly always decides a comparison."""

ADDED_UP_TO = 64**2
"""Largest variance for which the terms of a discrete Gaussian are added up one by one."""


def _less_than(numerator: int, denominator: int, bits: BitSource) -> bool:
    """Return whether `U < numerator/denominator` for a uniform U in [0, 1), comparing binary expansions word by word.

    Plain integers, not reduced to lowest terms, are several times faster here than Fractions.
    """
    remainder = numerator
    if remainder >= denominator:
        return True
    while remainder:
        wanted, remainder = divmod(remainder << WORD, denominator)
        drawn = int(bits.integers(1, WORD)[0])
        if drawn != wanted:
            return drawn < wanted
    return False


def bernoulli_exp(exponent: Fraction, bits: BitSource) -> bool:
    """Return True with probability exp(−γ), for any rational exponent γ >= 0.

    exp(−γ) is a product of ⌊γ⌋ factors exp(−1) and one factor exp(−fraction); each is an independent Bernoulli draw.
    """
    whole, rest = divmod(exponent.numerator, exponent.denominator)
    for _ in range(whole):
        if not _survives(1, 1, bits):
            return False
    return _survives(rest, exponent.denominator, bits)


def _survives(numerator: int, denominator: int, bits: BitSource) -> bool:
    """Return True with probability exp(−γ) for γ = numerator/denominator in [0, 1], by von Neumann's series.

    The first K with Bernoulli(γ/K) False has `P[K > n] = γ^n / n!`, hence `P[K odd] = Σ (−γ)^n / n! = exp(−γ)`.
    """
    count = 1
    while _less_than(numerator, denominator * count, bits):
        count += 1
    return count % 2 == 1


def discrete_laplace(scale: Fraction, bits: BitSource) -> int:
    """Return an integer y with probability `(1 − r)/(1 + r) · r^|y|`, `r = exp(−1/scale)`, for a rational scale > 0.

    With scale = t/s, X with `P[X = x] ∝ exp(−x/t)` is put together from its remainder and quotient modulo t. Then
    `⌊X/s⌋` is geometric with ratio r. It gets a fair sign; −0 is drawn again.
    """
    numerator, denominator = scale.numerator, scale.denominator
    while True:
        remainder = uniform_integer(numerator, bits)
        if not _survives(remainder, numerator, bits):
            continue
        quotient = 0
        while _survives(1, 1, bits):
            quotient += 1
        magnitude = (remainder + numerator * quotient) // denominator
        negative = _less_than(1, 2, bits)
        if magnitude or not negative:
            return -magnitude if negative else magnitude


def discrete_gaussian(variance: Fraction, bits: BitSource) -> int:
    """Return an integer y with probability proportional to `exp(−y² / (2σ²))`, for a rational σ² > 0.

    A discrete Laplace draw y of scale `t = ⌊σ⌋ + 1` is accepted with probability `exp(−(|y| − σ²/t)² / (2σ²))`; the
    product of the two probabilities is `exp(−y²/(2σ²))` up to a constant.
    """
    scale = isqrt(variance.numerator // variance.denominator) + 1
    while True:
        proposal = discrete_laplace(Fraction(scale), bits)
        if bernoulli_exp((abs(proposal) - variance / scale) ** 2 / (2 * variance), bits):
            return proposal


def laplace_half_width(scale: Fraction, failure: Fraction) -> int:
    """Return the smallest h with `P[|y| > h] = 2 r^{h+1} / (1 + r) <= failure`, `r = exp(−1/scale)`."""
    with working_precision(_precision(scale, failure)):
        ratio = (-1 / ball(scale)).exp()
        return max(_ceiling(ball(scale) * (2 / ((1 + ratio) * ball(failure))).log()) - 1, 0)


def gaussian_half_width(variance: Fraction, failure: Fraction) -> int:
    """Return an h with `P[|y| > h] <= failure` for `P[y] ∝ exp(−y² / (2σ²))`.

    It is the smallest one for σ <= 64. For larger σ, where `erfc((h + ½) / (σ√2))` bounds the tail, it may be one more.
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
    """Return the smallest h, by adding up the terms from far out inwards while their share is at most `failure`.

    The terms beyond 40σ + 1 add up to less than `σ √(π/2) erfc(40/√2)`, about 1e-348.
    """
    deviation = ball(variance).sqrt()
    furthest = _ceiling(40 * deviation) + 1
    terms = [(-ball(Fraction(number * number) / (2 * variance))).exp() for number in range(furthest + 1)]
    beyond = deviation * (ball(Fraction(2)).sqrt() * 20).erfc() * 2
    total = 1 + 2 * sum(terms[1:], start=beyond)
    tail = beyond
    for number in range(furthest, 0, -1):
        tail += terms[number]
        # The far tail is included in the numerator and not in the denominator.
        if not 2 * tail <= failure * (total - 2 * beyond):
            return number
    return 0


def _precision(size: Fraction, failure: Fraction) -> int:
    """Return a precision that leaves 128 bits after the point in a result of order `size · log(1/failure)`."""
    return 192 + size.numerator.bit_length() + failure.denominator.bit_length()


def _ceiling(ball: Any) -> int:
    """Return the smallest whole number that is at least the upper end of a ball."""
    return int(ball.upper().ceil().unique_fmpz())
