"""How likely the best outcome is when outcomes come in classes of like loss, exactly and in logarithms.

Notation: the best class has N outcomes, another class M outcomes that stand `a >= 0` below it. Then
`W = Σ M e^{−a} / N`, and class sizes may be far beyond the range of float64, so all sizes are logarithms.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq
from scipy.special import logsumexp

FloatArray = npt.NDArray[np.float64]

_NEAR = 0.1
"""Relative weights e^{−a} above this are taken one by one, the others through their power sums."""

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)


def chance_of_best(log_best: float, log_sizes: FloatArray, below: FloatArray, noise: str) -> float:
    """Return the probability that the best class wins.

    Gumbel: `1 / (1 + W)`. Exponential: `∫_0^∞ e^{−v} Π (1 − e^{−a} u)^M dv` with `u = 1 − e^{−v/N}`, where v/N is the
    exponent of the best class's largest noise: permute-and-flip over all outcomes (mathematics, section 3).
    """
    log_total = float(logsumexp(log_sizes - below))
    if noise == "gumbel":
        return float(np.exp(-np.logaddexp(0.0, log_total - log_best)))
    exponents, weights = _quadrature(log_total - log_best)
    scaled = exponents * np.exp(-log_best)
    with np.errstate(invalid="ignore", divide="ignore"):
        shrink = np.where(scaled > 0, -np.expm1(-scaled) / scaled, 1.0)
    log_u = np.log(exponents) - log_best + np.log(shrink)
    return float(weights @ np.exp(-exponents - _beaten(log_u, log_sizes, below)))


def _quadrature(log_ratio: float) -> tuple[FloatArray, FloatArray]:
    """Return nodes and weights on [0, 60]: panels that double in length from well below 1/(1 + W)."""
    first = np.exp(-np.logaddexp(0.0, log_ratio)) / 64.0
    ends = np.concatenate([[0.0], first * 2.0 ** np.arange(np.ceil(np.log2(60.0 / first)) + 1)])
    half = np.diff(ends)[:, None] / 2
    return (ends[:-1, None] + half * (1 + _NODES)).ravel(), (half * _WEIGHTS).ravel()


def _beaten(log_u: FloatArray, log_sizes: FloatArray, below: FloatArray) -> FloatArray:
    """Return `−Σ M log(1 − p u)` with `p = e^{−a}` for each u.

    For small p by the series `Σ_j S_j u^j / j` with `S_j = Σ M p^j`, whose terms fall by a factor p at least.
    """
    near = below < -np.log(_NEAR)
    total = np.zeros_like(log_u)
    for size, gap in zip(log_sizes[near], below[near], strict=True):
        log_share = log_u - gap
        share = np.exp(np.maximum(log_share, -40.0))
        log_loss = np.where(log_share < -40.0, log_share, np.log(-np.log1p(-share)))
        total += np.exp(np.minimum(size + log_loss, 700.0))
    if near.all():
        return total
    far_sizes, far_below = log_sizes[~near], below[~near]
    for power in range(1, 17):
        log_sum = float(logsumexp(far_sizes - power * far_below))
        term = np.exp(np.minimum(log_sum + power * log_u, 700.0)) / power
        total += term
        if (term <= 1e-16 * total).all():
            break
    return total


def least_epsilon(chance: Callable[[float], float], wanted: float, near: float) -> float:
    """Return the ε at which a chance that grows with ε reaches the one wanted, to ten digits; it looks `near` first."""

    def excess(log_epsilon: float) -> float:
        return chance(float(np.exp(log_epsilon))) - wanted

    low = high = float(np.log(near))
    while excess(high) < 0:
        low, high = high, high + 0.5
    while excess(low) > 0:
        low, high = low - 0.5, low
    return float(np.exp(brentq(excess, low, high, xtol=1e-11))) if low < high else near
