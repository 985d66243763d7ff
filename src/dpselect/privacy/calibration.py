"""How much noise a target (ε, δ) needs: per round, for Gaussian noise, and for thresholds; rounded towards privacy.

Floating point only proposes numbers. Ball arithmetic, which holds all rounding errors, proves them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import Any

from dpselect._numbers import float_below, positive_number
from dpselect.errors import InvalidInput
from dpselect.privacy.composition import epsilon_of_rounds, simple_epsilon_of_rounds
from dpselect.privacy.conversion import SMALLEST_EPSILON, float_above, rho_of_range
from dpselect.privacy.guarantee import Guarantee, probability_of_failure
from dpselect.sampling.balls import ball, working_precision

STEP = Fraction(1, 1 << 32)
"""Thresholds are multiples of this, so that exact arithmetic with them stays fast."""

_BISECTIONS = 48
"""Bisections of `range_per_round`: its result is within a relative 2^−48 of the best that simple routes allow."""

_TOLERANCE = 2.0**-40
"""How close the result of `range_per_round` is to the best by optimal composition, relatively."""

_TRIALS = 16
"""The search for that ends after this many trials; each is valid, and most searches need 5."""

_WIDENING = 1.125
"""How much wider rounds may be by optimal composition in most cases."""

_GAUSSIAN_PRECISION = 320
"""Bits of precision, in addition to those that cancel for small δ. Too few are safe: they only add noise."""


@lru_cache(maxsize=1024)
def range_per_round(epsilon: float, delta: float, k: int) -> Fraction:
    """Return the largest r for which k rounds of bounded range r are (ε, δ)-DP by any route of composition.

    It is rounded down, and at least ε/k, which plain addition allows. Mathematics, section 6.
    """
    plainly = Fraction(epsilon) / k
    if delta <= 0 or plainly < Fraction(SMALLEST_EPSILON):
        return plainly
    simple = _simple_range(epsilon, delta, k, plainly)

    def excess(width: float) -> float:
        return epsilon_of_rounds(((width, k),), Fraction(delta)) - epsilon

    return max(simple, Fraction(_last_allowed(excess, float_below(simple))))


def _simple_range(epsilon: float, delta: float, k: int, plainly: Fraction) -> Fraction:
    """Return the largest r by the routes other than optimal composition, found by bisection."""

    def excess(width: float) -> float:
        return simple_epsilon_of_rounds(((width, k),), Fraction(delta)) - epsilon

    low = float(plainly)
    if excess(math.nextafter(low, math.inf) * (1 + 2.0**-_BISECTIONS)) > 0:
        return plainly
    high = 2 * low
    while excess(high) <= 0:
        low, high = high, 2 * high
    # What false position finds first decides most of the bisections.
    near = _last_allowed(excess, low)
    far = near * (1 + 4 * _TOLERANCE)
    if excess(far) <= 0:
        far = high
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        fits = middle <= near or (middle < far and excess(middle) <= 0)
        low, high = (middle, high) if fits else (low, middle)
    return max(Fraction(low) if excess(low) <= 0 else plainly, plainly)


def _last_allowed(excess: Callable[[float], float], low: float) -> float:
    """Return nearly the largest width without an excess, from one that has none, by false position (Illinois)."""
    below = excess(low)
    if below >= 0:
        return low
    high = low * _WIDENING
    while (above := excess(high)) <= 0:
        low, below, high = high, above, high * _WIDENING
    last = 0.0
    for _ in range(_TRIALS):
        if high - low <= (close := low * _TOLERANCE):
            break
        middle = low + (high - low) * (below / (below - above))
        middle = min(max(middle, low + close / 2), high - close / 2)
        value = excess(middle)
        if value <= 0:
            low, below, above = middle, value, above / 2 if last < 0 else above
        else:
            high, above, below = middle, value, below / 2 if last > 0 else below
        last = value
    return low


def pure_per_round(epsilon: float, delta: float, k: int) -> Fraction:
    """Return the largest ε₀ for which k rounds, each ε₀-DP and nothing more, are (ε, δ)-DP.

    A loss between −ε₀ and ε₀ has range 2ε₀, so half of `range_per_round` is allowed, and so is ε/k.
    """
    return max(Fraction(epsilon) / k, range_per_round(epsilon, delta, k) / 2)


def guarantee_of_rounds(epsilon: float, delta: float, k: int, share: Fraction, width: Fraction) -> Guarantee:
    """Return the guarantee of k rounds calibrated for (ε, δ), each `share`-DP and of bounded range `width`.

    If plain addition stays within ε, the guarantee is pure and no δ is spent. It carries `ρ = k · width²/8`.
    """
    spent = 0.0 if k * share <= Fraction(epsilon) else delta
    rho = float_above(k * rho_of_range(width))
    return Guarantee(epsilon, spent, rho=rho, ranges=((float_above(width), k),))


@lru_cache(maxsize=1024)
def unit_sigma(epsilon: float, delta: float) -> float:
    """Return the least σ, up to a relative 1e-12, for which Gaussian noise at L2 sensitivity 1 is (ε, δ)-DP.

    It is if and only if `Φ(1/(2σ) − εσ) − exp(ε) Φ(−1/(2σ) − εσ) <= δ`, which decreases in σ (Balle and Wang 2018,
    "Improving the Gaussian Mechanism", Theorem 8). Unlike the classical `√(2 ln(1.25/δ))/ε` it holds for every ε.
    """
    epsilon, allowed = positive_number("epsilon", epsilon), probability_of_failure(delta)
    if not allowed:
        raise InvalidInput("delta", delta, "must be above 0; Gaussian noise has no pure guarantee")
    with working_precision(_GAUSSIAN_PRECISION + 2 * max(-math.frexp(allowed)[1], 0)):
        sigma = _least_float(lambda sigma: bool(gaussian_delta(sigma, epsilon) <= ball(allowed)))
    if sigma is None:
        raise InvalidInput("delta", delta, "must be larger; no float holds the noise for this epsilon and delta")
    return sigma


def gaussian_delta(sigma: float, epsilon: float) -> Any:
    """Return the least δ of Gaussian noise σ at L2 sensitivity 1 for a given ε, as a ball of the current precision."""
    half, loss = 1 / (2 * ball(sigma)), ball(epsilon) * ball(sigma)
    return _normal_cdf(half - loss) - ball(epsilon).exp() * _normal_cdf(-half - loss)


def _normal_cdf(value: Any) -> Any:
    return (-value * ball(0.5).sqrt()).erfc() / 2


def _least_float(holds: Callable[[float], bool]) -> float | None:
    """Return the least positive float for which a monotone condition is proven, up to a relative 1e-12, if any."""
    exponent = 0
    while holds(2.0**exponent):
        exponent -= 16
    while not holds(2.0**exponent):
        exponent += 1
        if exponent > 1000:
            return None
    low, high = 2.0 ** (exponent - 1), 2.0**exponent
    while high - low > high * 2.0**-40:
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


@lru_cache(maxsize=1024)
def laplace_threshold(probability: Fraction) -> Fraction:
    """Return the least q >= 0, up to 2 STEP, with `P[ν − ρ > q] <= probability` for two standard Laplace variables.

    That probability is `¼ (2 + q) e^{−q}` for q >= 0, exactly: the tail of the density `¼ (1 + |t|) e^{−|t|}`.
    Mathematics, section 7.
    """
    return _least_multiple(lambda q: (2 + q) * (-q).exp() / 4, probability)


@lru_cache(maxsize=1024)
def gumbel_threshold(probability: Fraction) -> Fraction:
    """Return the least u >= 0, up to 2 STEP, with `e^{−u} <= probability`.

    A standard Gumbel variable exceeds another one shifted up by u with probability `1/(1 + e^u) < e^{−u}`.
    """
    return _least_multiple(lambda u: (-u).exp(), probability)


def _least_multiple(tail: Callable[[Any], Any], probability: Fraction) -> Fraction:
    """Return the least multiple of STEP, up to one more, at which a decreasing tail is proven to be low enough."""
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
