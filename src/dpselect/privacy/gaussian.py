"""How much Gaussian noise an (ε, δ) needs, in ball arithmetic and rounded towards more noise.

Nothing here is trusted to floats: a search proposes a number, and a ball that holds all rounding errors proves it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from dpselect._numbers import positive_number
from dpselect.errors import InvalidInput
from dpselect.privacy.guarantee import probability_of_failure
from dpselect.sampling.balls import ball, working_precision

PRECISION = 320
"""Bits of the balls, beyond those that cancel where δ is small; too few would only add noise."""


@lru_cache(maxsize=1024)
def unit_sigma(epsilon: float, delta: float) -> float:
    """Return the least σ, up to a relative 1e-12, for which Gaussian noise at L2 sensitivity 1 is (ε, δ)-DP.

    It is if and only if `Φ(1/(2σ) − εσ) − exp(ε) Φ(−1/(2σ) − εσ) <= δ`, which decreases in σ (Balle and Wang 2018,
    "Improving the Gaussian Mechanism", Theorem 8). Unlike the classical `√(2 ln(1.25/δ))/ε` it holds for every ε.
    """
    epsilon, delta = _checked(epsilon, delta)
    with working_precision(PRECISION + 2 * max(-math.frexp(delta)[1], 0)):
        sigma = _least(lambda sigma: bool(gaussian_delta(sigma, epsilon) <= ball(delta)))
    if sigma is None:
        raise InvalidInput("delta", delta, "no float holds the noise that this epsilon and delta need; allow more")
    return sigma


def gaussian_delta(sigma: float, epsilon: float) -> Any:
    """Return the least δ of Gaussian noise σ at L2 sensitivity 1 for a given ε, as a ball of the current precision."""
    half, loss = 1 / (2 * ball(sigma)), ball(epsilon) * ball(sigma)
    return _normal_cdf(half - loss) - ball(epsilon).exp() * _normal_cdf(-half - loss)


def _least(holds: Callable[[float], bool]) -> float | None:
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


def _normal_cdf(value: Any) -> Any:
    return (-value * ball(0.5).sqrt()).erfc() / 2


def _checked(epsilon: float, delta: float) -> tuple[float, float]:
    """Return a target (ε, δ), rounded down."""
    target = positive_number("epsilon", epsilon), probability_of_failure(delta)
    if not target[1]:
        raise InvalidInput("delta", delta, "a positive number below 1 is needed: Gaussian noise has no pure guarantee")
    return target
