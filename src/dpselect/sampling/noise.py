"""The noise distributions, each through its quantile function in a form that never cancels.

Every draw is made from an *exponent* `E > 0` with `U = exp(−E)` the uniform that the quantile function F⁻¹
would take. The largest of m uniforms has exponent e/m for a standard exponential e, so large noises, the
only ones that matter in a top-k, come from small exponents, where floating point is at its most precise
(mathematics, section 2).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpselect._arrays import FloatArray

LOG_2 = math.log(2.0)

_TINY_LOG = -40.0
"""Log-exponents below this leave terms of less than 2⁻⁵⁷ out of the asymptotic quantile."""


@dataclass(frozen=True)
class Noise:
    """A distribution whose log(1 − F) is 1-Lipschitz, which is what the privacy proofs need.

    `quantile` maps an exponent to `F⁻¹(exp(−E))` in float64, `ball_quantile` does the same in ball arithmetic;
    both decrease in E. `tail` is the limit of exp(z) (1 − F(z)), `infimum` the lower end of the support; at `kinks` the
    density is not smooth.
    """

    name: str
    quantile: Callable[[FloatArray], FloatArray]
    ball_quantile: Callable[[Any], Any]
    cdf: Callable[[FloatArray], FloatArray]
    survival: Callable[[FloatArray], FloatArray]
    density: Callable[[FloatArray], FloatArray]
    tail: float = 1.0
    infimum: float = -math.inf
    kinks: tuple[float, ...] = ()

    def log_quantile(self, log_exponent: FloatArray) -> FloatArray:
        """`F⁻¹(exp(−E))` from log E, however small E is.

        For all noises here 1 − F(z) = tail · exp(−z) (1 + O(exp(−z))), so that z = log(tail) − log E up to O(E).
        """
        with np.errstate(divide="ignore", over="ignore"):
            moderate = self.quantile(np.exp(np.maximum(log_exponent, _TINY_LOG)))
        return np.where(log_exponent < _TINY_LOG, math.log(self.tail) - log_exponent, moderate)

    def __repr__(self) -> str:
        """Show the name only."""
        return f"Noise({self.name!r})"


def _log_complement(exponent: FloatArray) -> FloatArray:
    """log(1 − exp(−E))."""
    result: FloatArray = np.log(-np.expm1(-exponent))
    return result


def _ball_log_complement(exponent: Any) -> Any:
    return (-(-exponent).expm1()).log()


def _laplace_quantile(exponent: FloatArray) -> FloatArray:
    return np.where(exponent > LOG_2, LOG_2 - exponent, -LOG_2 - _log_complement(exponent))


def _laplace_ball_quantile(exponent: Any) -> Any:
    import flint

    log_2 = flint.arb.const_log2()
    lower_half = log_2 - exponent
    if exponent > log_2:
        return lower_half
    upper_half = -log_2 - _ball_log_complement(exponent)
    return upper_half if exponent < log_2 else lower_half.union(upper_half)


EXPONENTIAL = Noise(
    "exponential",
    quantile=lambda exponent: -_log_complement(exponent),
    ball_quantile=lambda exponent: -_ball_log_complement(exponent),
    cdf=lambda z: -np.expm1(-np.maximum(z, 0.0)),
    survival=lambda z: np.exp(-np.maximum(z, 0.0)),
    density=lambda z: np.where(z < 0, 0.0, np.exp(-np.maximum(z, 0.0))),
    infimum=0.0,
    kinks=(0.0,),
)

GUMBEL = Noise(
    "gumbel",
    quantile=lambda exponent: -np.log(exponent),
    ball_quantile=lambda exponent: -exponent.log(),
    cdf=lambda z: np.exp(-np.exp(-z)),
    survival=lambda z: -np.expm1(-np.exp(-z)),
    density=lambda z: np.exp(-z - np.exp(-z)),
)

LAPLACE = Noise(
    "laplace",
    quantile=_laplace_quantile,
    ball_quantile=_laplace_ball_quantile,
    cdf=lambda z: np.where(z < 0, 0.5 * np.exp(np.minimum(z, 0.0)), 1.0 - 0.5 * np.exp(-np.maximum(z, 0.0))),
    survival=lambda z: np.where(z > 0, 0.5 * np.exp(-np.maximum(z, 0.0)), 1.0 - 0.5 * np.exp(np.minimum(z, 0.0))),
    density=lambda z: 0.5 * np.exp(-np.abs(z)),
    tail=0.5,
    kinks=(0.0,),
)

LOGISTIC = Noise(
    "logistic",
    quantile=lambda exponent: -exponent - _log_complement(exponent),
    ball_quantile=lambda exponent: -exponent - _ball_log_complement(exponent),
    cdf=lambda z: 1.0 / (1.0 + np.exp(-z)),
    survival=lambda z: 1.0 / (1.0 + np.exp(z)),
    density=lambda z: np.exp(-np.abs(z)) / (1.0 + np.exp(-np.abs(z))) ** 2,
)

HALF_LOGISTIC = Noise(
    "half-logistic",
    quantile=lambda exponent: np.log1p(np.exp(-exponent)) - _log_complement(exponent),
    ball_quantile=lambda exponent: (-exponent).exp().log1p() - _ball_log_complement(exponent),
    cdf=lambda z: np.tanh(np.maximum(z, 0.0) / 2),
    survival=lambda z: 2.0 / (1.0 + np.exp(np.maximum(z, 0.0))),
    density=lambda z: np.where(z < 0, 0.0, 0.5 / np.cosh(np.maximum(z, 0.0) / 2) ** 2),
    tail=2.0,
    infimum=0.0,
    kinks=(0.0,),
)

NOISES: dict[str, Noise] = {noise.name: noise for noise in (EXPONENTIAL, GUMBEL, LAPLACE, LOGISTIC, HALF_LOGISTIC)}
