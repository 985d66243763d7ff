"""Discrete Laplace and discrete Gaussian noise on the integers, exactly, from fair bits and rational arithmetic.

Every decision is a comparison of a uniform number with a rational one, made bit by bit, so that no float enters. The
algorithms are those of Canonne, Kamath and Steinke, "The Discrete Gaussian for Differential Privacy" (2020),
algorithms 1 to 3; proof in discrete.md.
"""

from __future__ import annotations

from fractions import Fraction
from math import isqrt

from dpselect.sampling.bits import BitSource
from dpselect.sampling.uniform import uniform_integer

WORD = 64
"""Bits of a uniform number that are drawn at a time; one word nearly always decides a comparison."""


def bernoulli(probability: Fraction, bits: BitSource) -> bool:
    """Return True with a probability in [0, 1] that is any rational number."""
    return _less_than(probability.numerator, probability.denominator, bits)


def _less_than(numerator: int, denominator: int, bits: BitSource) -> bool:
    """Return whether `U < numerator/denominator` for a uniform U in [0, 1), word by word of their binary expansions.

    Plain integers, not brought to lowest terms, make the many comparisons of one draw several times faster.
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

    Exp(−γ) is a product of ⌊γ⌋ factors exp(−1) and one exp(−fraction), each a Bernoulli of its own.
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

    With scale = t/s: X with `P[X = x] ∝ exp(−x/t)` is put together from its remainder and quotient by t,
    `⌊X/s⌋` is then geometric with ratio r, and a fair sign completes it, −0 being drawn again.
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

    A discrete Laplace y of scale `t = ⌊σ⌋ + 1` is kept with probability `exp(−(|y| − σ²/t)² / (2σ²))`; the product is
    `exp(−y²/(2σ²))` up to a constant.
    """
    scale = isqrt(variance.numerator // variance.denominator) + 1
    while True:
        proposal = discrete_laplace(Fraction(scale), bits)
        if bernoulli_exp((abs(proposal) - variance / scale) ** 2 / (2 * variance), bits):
            return proposal
