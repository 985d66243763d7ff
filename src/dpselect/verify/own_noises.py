"""Noises as users of `Lipschitz` may bring them: one with an inverse in ball arithmetic, one without."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dpselect._arrays import FloatArray
from dpselect.sampling.noise import Noise

_HALF_PI = math.pi / 2


def _secant_quantile(exponent: FloatArray) -> FloatArray:
    """Return log tan(π/2 · p), p = exp(−E), or −log tan(π/2 · (1 − p)) in the upper half."""
    upper = -np.log(np.tan(-_HALF_PI * np.expm1(-np.minimum(exponent, 0.5))))
    return np.where(exponent > 0.5, np.log(np.tan(_HALF_PI * np.exp(-np.maximum(exponent, 0.5)))), upper)


def _secant_ball_quantile(exponent: Any) -> Any:
    """Return the same as a ball; −log tan(π/2 · (1 − p)) holds for every E > 0."""
    import flint

    return -(-(-exponent).expm1() * flint.arb.pi() / 2).tan().log()


SECANT = Noise(
    "hyperbolic secant",
    quantile=_secant_quantile,
    ball_quantile=_secant_ball_quantile,
    cdf=lambda z: np.arctan(np.exp(z)) / _HALF_PI,
    survival=lambda z: np.arctan(np.exp(-z)) / _HALF_PI,
    density=lambda z: 2 * np.exp(-np.abs(z)) / (1 + np.exp(-2 * np.abs(z))) / math.pi,
    tail=2 / math.pi,
)
"""F = (2/π) arctan e^z. Its hazard `1 / (2 cosh z · arctan e^{−z})` is below 1 (lipschitz.md)."""


class Steps:
    """Noise of hazard 1, but 0.01 between 1 and 3: fit for sets, though its density falls by a factor of 100."""

    name = "steps"
    kinks = (0.0, 1.0, 3.0)

    def support(self) -> tuple[float, float]:
        """Return the ends of the support."""
        return 0.0, math.inf

    def total_hazard(self, z: FloatArray) -> FloatArray:
        """Return −log(1 − F)."""
        total: FloatArray = np.maximum(z, 0.0) - 0.99 * (np.clip(z, 1.0, 3.0) - 1.0)
        return total

    def cdf(self, z: FloatArray) -> FloatArray:
        """Return F."""
        below: FloatArray = -np.expm1(-self.total_hazard(z))
        return below

    def sf(self, z: FloatArray) -> FloatArray:
        """Return 1 − F."""
        above: FloatArray = np.exp(-self.total_hazard(z))
        return above

    def pdf(self, z: FloatArray) -> FloatArray:
        """Return the density: the hazard times 1 − F."""
        hazard = np.where(z < 0, 0.0, np.where((z < 1) | (z >= 3), 1.0, 0.01))
        return hazard * self.sf(z)

    def isf(self, tail: FloatArray) -> FloatArray:
        """Return the inverse of 1 − F."""
        return self._at(-np.log(tail))

    def ppf(self, probability: FloatArray) -> FloatArray:
        """Return the inverse of F."""
        return self._at(-np.log1p(-probability))

    def _at(self, hazard: FloatArray) -> FloatArray:
        return np.where(hazard < 1, hazard, np.where(hazard < 1.02, 1 + 100 * (hazard - 1), hazard + 1.98))


STEPS = Steps()
