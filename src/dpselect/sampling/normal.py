"""The standard normal distribution as a noise. Its log(1 − F) is not Lipschitz, so it stands apart from NOISES."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dpselect._arrays import FloatArray
from dpselect.sampling.noise import LOG_2, Noise

_DENSITY_AT_ZERO = 1.0 / math.sqrt(2.0 * math.pi)


def _quantile(exponent: FloatArray) -> FloatArray:
    """Φ⁻¹(exp(−E)): in the upper half from 1 − exp(−E), in the lower half from −E, so that neither tail cancels."""
    from scipy.special import ndtri, ndtri_exp

    upper = -ndtri(-np.expm1(-np.minimum(exponent, LOG_2)))
    result: FloatArray = np.where(exponent > LOG_2, ndtri_exp(-np.maximum(exponent, LOG_2)), upper)
    return result


def _ball_quantile(exponent: Any) -> Any:
    """Φ⁻¹(exp(−E)) from the inverse of the complementary error function; both forms hold for every E > 0.

    `exp(−E) = Φ(z) = ½ erfc(−z/√2)` and `1 − exp(−E) = ½ erfc(z/√2)`.
    """
    import flint

    root = flint.arb(2).sqrt()
    if exponent > 1:
        return -root * (2 * (-exponent).exp()).erfcinv()
    return root * (-2 * (-exponent).expm1()).erfcinv()


def _cdf(z: FloatArray) -> FloatArray:
    from scipy.special import ndtr

    result: FloatArray = ndtr(z)
    return result


NORMAL = Noise(
    "normal",
    quantile=_quantile,
    ball_quantile=_ball_quantile,
    cdf=_cdf,
    survival=lambda z: _cdf(-z),
    density=lambda z: _DENSITY_AT_ZERO * np.exp(-0.5 * z * z),
)
"""Standard normal. `|E · dz/dE| <= 2 (1 + |z|)`, which the float64 bounds need, is proven in mechanisms/gaussian.md."""
