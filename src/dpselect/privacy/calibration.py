"""How much each of k rounds may cost, for a total that is given."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

from dpselect.privacy.composition import least_epsilon
from dpselect.privacy.conversion import float_above, rho_of_range
from dpselect.privacy.guarantee import Guarantee

_STEPS = 48
"""Bisections: the answer is within a relative 2^−48 of the best."""


@lru_cache(maxsize=1024)
def range_per_round(epsilon: float, delta: float, k: int) -> Fraction:
    """Return the largest r for which k rounds of bounded range r are (ε, δ)-DP by any route of composition.

    It is at least ε/k, which plain addition allows, and is rounded down. Mathematics, section 6.
    """
    plainly = Fraction(epsilon) / k
    if delta <= 0:
        return plainly

    def allowed(width: float) -> bool:
        return least_epsilon(((width, k),), Fraction(delta)) <= epsilon

    low = float(plainly)
    if not allowed(math.nextafter(low, math.inf) * (1 + 2.0**-_STEPS)):
        return plainly
    high = 2 * low
    while allowed(high):
        low, high = high, 2 * high
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if allowed(middle) else (low, middle)
    return max(Fraction(low) if allowed(low) else plainly, plainly)


def pure_per_round(epsilon: float, delta: float, k: int) -> Fraction:
    """Return the largest ε₀ for which k rounds, each ε₀-DP and nothing more, are (ε, δ)-DP.

    A loss between −ε₀ and ε₀ has range 2ε₀, so half of `range_per_round` will do, and ε/k always does.
    """
    return max(Fraction(epsilon) / k, range_per_round(epsilon, delta, k) / 2)


def guarantee_of_rounds(epsilon: float, delta: float, k: int, share: Fraction, width: Fraction) -> Guarantee:
    """Return the guarantee of k rounds that were calibrated for (ε, δ), each `share`-DP and of bounded range `width`.

    Where plain addition stays within ε, the guarantee is pure and δ is not spent. `ρ = k · width²/8` is carried.
    """
    spent = 0.0 if k * share <= Fraction(epsilon) else delta
    rho = float_above(k * rho_of_range(width))
    return Guarantee(epsilon, spent, rho=rho, ranges=((float_above(width), k),))
