"""Conversions between ways to state a privacy loss, every number rounded towards privacy.

Formulas are evaluated in ball arithmetic; the end of the ball that is more private is returned.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from dpselect._numbers import Number
from dpselect.sampling.balls import ball, working_precision

SMALLEST_EPSILON = sys.float_info.min
"""The ε that is stated if a formula gives 0 or less, because a claim must be positive."""

_PRECISION = 128


def float_above(number: Number) -> float:
    """Return the smallest float that is not below a number, infinite beyond the range of floats."""
    if isinstance(number, float):
        return float(number)
    exact = Fraction(number)
    try:
        nearest = float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -sys.float_info.max
    return nearest if not math.isfinite(nearest) or Fraction(nearest) >= exact else math.nextafter(nearest, math.inf)


def rho_of_pure(epsilon: Fraction) -> Fraction:
    """Return the zCDP parameter of a pure guarantee, `ρ = min(ε²/2, ε)`.

    ε²/2: Bun and Steinke, proposition 1.4. ε: every Rényi divergence is at most ε, which is at most ε α.
    """
    return min(epsilon * epsilon / 2, epsilon)


def rho_of_range(width: Fraction) -> Fraction:
    """Return the zCDP parameter of a mechanism of bounded range r, `ρ = min(r²/8, r)`.

    Bounded range: log P(y)/P'(y) lies in an interval of length r, for each pair of neighbours. r²/8 is
    Hoeffding's lemma (Rogers and Steinke); r as for a pure guarantee, since the interval holds 0.
    """
    return min(width * width / 8, width)


@lru_cache(maxsize=4096)
def epsilon_of_zcdp(rho: Fraction, delta: Fraction) -> float:
    """Return an ε for which ρ-zCDP implies (ε, δ)-DP.

    `ε = min over α > 1 of α ρ + log(1 − 1/α) + log(1/(α δ)) / (α − 1)`, Canonne, Kamath and Steinke, proposition 12.
    Every α gives a valid ε, so floating point may choose α as long as the formula is then evaluated with care.
    """
    if delta <= 0 or rho > Fraction(sys.float_info.max):
        return math.inf
    order = Fraction(_best_order(float(rho), float(delta))) + 1

    def formula() -> Any:
        alpha = ball(order)
        return alpha * ball(rho) + (1 - 1 / alpha).log() - (alpha * ball(delta)).log() / (alpha - 1)

    return max(upper_bound(formula, order), SMALLEST_EPSILON)


@lru_cache(maxsize=1024)
def largest_rho(epsilon: float, delta: float) -> float:
    """Return the largest ρ, up to a relative 1e-9, for which ρ-zCDP implies (ε, δ)-DP by `epsilon_of_zcdp`; 0 if none.

    The inverse of that conversion, found by bisection from `ρ = (√(ε + log(1/δ)) − √(log(1/δ)))²`, which always
    implies it (Bun and Steinke, proposition 1.3). What is returned has passed the comparison itself.
    """

    def allowed(rho: float) -> bool:
        return epsilon_of_zcdp(Fraction(rho), Fraction(delta)) <= epsilon

    log = -math.log(delta)
    simple = (epsilon / (math.sqrt(epsilon + log) + math.sqrt(log))) ** 2
    low = min(max(simple, sys.float_info.min), sys.float_info.max / 4)
    while low and not allowed(low):
        low /= 2
    if not low:
        return 0.0
    high = 2 * low
    while math.isfinite(high) and allowed(high):
        low, high = high, 2 * high
    while low < (middle := low + (high - low) / 2) < high and high - low > low * 2.0**-52:
        low, high = (middle, high) if allowed(middle) else (low, middle)
    return low


def _best_order(rho: float, delta: float) -> float:
    """Return α − 1 with nearly the least ε, by refining a grid of its logarithm around the best point."""
    rho = max(rho, sys.float_info.min)
    centre = (math.log(max(-math.log(delta), 1e-9)) - math.log(rho)) / 2
    step, best = 0.25, centre
    with np.errstate(over="ignore"):
        for points in (range(-160, 81), *[range(-16, 17)] * 5):
            logs = best + step * np.array(points)
            above = np.exp(np.clip(logs, -300, 600))
            values = (1 + above) * rho - np.log1p(1 / above) - (np.log1p(above) + math.log(delta)) / above
            best = float(logs[int(np.argmin(values))])
            step /= 8
    return math.exp(min(max(best, -300.0), 600.0))


@lru_cache(maxsize=4096)
def mean_of_range(width: Fraction) -> Fraction:
    """Return the largest expected privacy loss of a mechanism of bounded range r, rounded up.

    `x − 1 − log x` with `x = r / (1 − e^{−r})`; Dong, Durfee and Rogers; mathematics, section 6.
    """

    def formula() -> Any:
        ratio = ball(width) / -(-ball(width)).expm1()
        return ratio - 1 - ratio.log()

    return Fraction(upper_bound(formula, width))


def epsilon_of_ranges(mean: Fraction, squares: Fraction, delta: Fraction) -> float:
    """Return the ε of rounds of bounded range r_i whose expected losses add up to `mean`.

    `ε = mean + √(½ Σ r_i² · log(1/δ))`: the total loss exceeds its mean by more than the root with probability at most
    δ, by Hoeffding's and Azuma's inequality. Mathematics, section 6.
    """
    if delta <= 0:
        return math.inf
    return upper_bound(lambda: ball(mean) + (-ball(squares) / 2 * ball(delta).log()).sqrt(), squares)


def rate_of_oneshot_laplace(epsilon: Fraction, delta: Fraction, k: int, size: int) -> Fraction:
    """Return the inverse of the noise scale for a spread of 1, `ε / (4 √(k log(d/δ)))`, rounded down.

    One-shot paper, theorem 2.2, whose sensitivity is half a spread; mathematics, section 6.
    """
    above = upper_bound(lambda: 4 * (k * (size / ball(delta)).log()).sqrt(), delta)
    return epsilon / Fraction(above)


def upper_bound(formula: Callable[[], Any], smallest: Fraction) -> float:
    """Return a float that is not below the value of a formula.

    Formulas cancel to about the square of their smallest argument, so the precision grows when that is tiny.
    """
    bits = max(smallest.denominator.bit_length(), smallest.numerator.bit_length(), 1)
    with working_precision(_PRECISION + 4 * bits):
        value = formula()
        if not value.is_finite():
            return math.inf
        nearest = float(value.upper())
    return math.nextafter(nearest, math.inf)
