"""The noise distributions, each through a form of its quantile function that does not lose precision by cancellation.

Every draw starts from an *exponent* `E > 0`: `U = exp(−E)` is the uniform argument of the quantile function F⁻¹. The
largest of m uniforms has exponent e/m for a standard exponential e. So large noises, the only ones that matter in a
top-k, come from small exponents, where floating point is most precise (mathematics, section 2).

To add a noise with `f(z + s) >= e^{−s} f(z)` for s >= 0, define it here and add it to `NOISES`.
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
"""Below this log-exponent the asymptotic quantile is used; its error is less than 2⁻⁵⁷."""


@dataclass(frozen=True)
class Noise:
    """A noise distribution with distribution function F.

    The members of `NOISES` have a density with `f(z + s) >= e^{−s} f(z)` for s >= 0, so that log(1 − F) is 1-Lipschitz.
    Privacy proofs need the first for sequences and the second for sets.

    Parameters
    ----------
    name
        The name by which mechanisms know it.
    quantile
        Function from an array of exponents E to `F⁻¹(exp(−E))` in float64; decreasing.
    ball_quantile
        The same function in ball arithmetic.
    cdf, survival, density
        F, 1 − F (accurate where it is small) and the derivative of F.
    tail
        The limit of `exp(z) (1 − F(z))` for large z.
    infimum
        The lower end of the support.
    kinks
        Points where the density is not smooth.

    Examples
    --------
    >>> import numpy as np
    >>> NOISES["gumbel"].quantile(np.array([1.0])).tolist() == [0.0]
    True
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
        """Return `F⁻¹(exp(−E))` from log E, for E of any size.

        All members of NOISES have `1 − F(z) = tail · exp(−z) (1 + O(exp(−z)))`, so `z = log(tail) − log E + O(E)`.
        """
        with np.errstate(divide="ignore", over="ignore"):
            moderate = self.quantile(np.exp(np.maximum(log_exponent, _TINY_LOG)))
        return np.where(log_exponent < _TINY_LOG, math.log(self.tail) - log_exponent, moderate)

    def log_quantile_at(self, log_exponent: float) -> float:
        """Return `log_quantile` of one number, without the overhead of arrays."""
        if log_exponent < _TINY_LOG:
            return math.log(self.tail) - log_exponent
        exponent: Any = np.float64(math.exp(log_exponent))
        return float(self.quantile(exponent))

    def __repr__(self) -> str:
        """Show the name only."""
        return f"Noise({self.name!r})"


def _log_complement(exponent: FloatArray) -> FloatArray:
    """Return log(1 − exp(−E))."""
    result: FloatArray = np.log(-np.expm1(-exponent))
    return result


def _ball_log_complement(exponent: Any) -> Any:
    """Return log(1 − exp(−E)) as a ball."""
    return (-(-exponent).expm1()).log()


def _laplace_quantile(exponent: FloatArray) -> FloatArray:
    """Return log 2 − E in the lower half, and −log(2 (1 − exp(−E))) in the upper half."""
    return np.where(exponent > LOG_2, LOG_2 - exponent, -LOG_2 - _log_complement(exponent))


def _laplace_ball_quantile(exponent: Any) -> Any:
    """Return the same as a ball, the union of both halves if E may be log 2."""
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
"""The noises of the pure mechanisms, by name."""

UNIFORM = Noise(
    "uniform",
    quantile=lambda exponent: 1.0 + 2.0 * np.expm1(-exponent),
    ball_quantile=lambda exponent: 1 + 2 * (-exponent).expm1(),
    cdf=lambda z: np.clip((z + 1.0) / 2.0, 0.0, 1.0),
    survival=lambda z: np.clip((1.0 - z) / 2.0, 0.0, 1.0),
    density=lambda z: np.where(np.abs(z) <= 1.0, 0.5, 0.0),
    infimum=-1.0,
    kinks=(-1.0, 1.0),
)
"""Uniform on [−1, 1]. Not Lipschitz: the gamma mechanism multiplies it by a gamma variable."""


_DENSITY_AT_ZERO = 1.0 / math.sqrt(2.0 * math.pi)


def _normal_quantile(exponent: FloatArray) -> FloatArray:
    """Φ⁻¹(exp(−E)): in the upper half from 1 − exp(−E), in the lower half from −E, so that neither tail cancels."""
    from scipy.special import ndtri, ndtri_exp

    upper = -ndtri(-np.expm1(-np.minimum(exponent, LOG_2)))
    result: FloatArray = np.where(exponent > LOG_2, ndtri_exp(-np.maximum(exponent, LOG_2)), upper)
    return result


def _normal_ball_quantile(exponent: Any) -> Any:
    """Φ⁻¹(exp(−E)) from the inverse of the complementary error function; both forms hold for every E > 0.

    `exp(−E) = Φ(z) = ½ erfc(−z/√2)` and `1 − exp(−E) = ½ erfc(z/√2)`.
    """
    import flint

    root = flint.arb(2).sqrt()
    if exponent > 1:
        return -root * (2 * (-exponent).exp()).erfcinv()
    return root * (-2 * (-exponent).expm1()).erfcinv()


def _normal_cdf(z: FloatArray) -> FloatArray:
    """Return Φ(z); SciPy is imported on first use."""
    from scipy.special import ndtr

    result: FloatArray = ndtr(z)
    return result


NORMAL = Noise(
    "normal",
    quantile=_normal_quantile,
    ball_quantile=_normal_ball_quantile,
    cdf=_normal_cdf,
    survival=lambda z: _normal_cdf(-z),
    density=lambda z: _DENSITY_AT_ZERO * np.exp(-0.5 * z * z),
)
"""Standard normal. `|E · dz/dE| <= 2 (1 + |z|)`, which the float64 bounds need, is proven in mechanisms/gaussian.md."""
