"""How likely the best outcome is when outcomes come in classes of like loss, exactly and in logarithms.

Notation: the best class has N outcomes, another class M outcomes that stand `a >= 0` below it, `p = e^{−a}`. Then
`W = Σ M p / N`. Class sizes may be far beyond the range of float64, so all sizes are logarithms.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]

NEGLIGIBLE = 45.0
"""Weights that many e-folds below the total are left out: together they are below 1e-13 of it."""

CERTAIN = 1 - 1e-13
"""Chances above this differ from 1 by no more than rounding."""

_NEAR = 0.1
"""Products p u above this are taken one by one, the others through power sums."""

_TERMS = 14
_FEW = 1000
_REACH = 50.0
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)


def log_sum(logarithms: FloatArray) -> float:
    """Return log Σ exp, −∞ of nothing."""
    highest = float(logarithms.max()) if len(logarithms) else -np.inf
    return highest if np.isinf(highest) else highest + float(np.log(np.exp(logarithms - highest).sum()))


def chance_of_best(log_best: float, log_sizes: FloatArray, below: FloatArray, noise: str) -> float:
    """Return the probability that the best class wins; relative error about 1e-10.

    Gumbel: `1 / (1 + W)`. Exponential: `∫_0^∞ e^{−v} Π (1 − p u)^M dv` with `u = 1 − e^{−v/N}`, where v/N is the
    exponent of the best class's largest noise: permute-and-flip over all outcomes (mathematics, section 3).
    """
    log_ratio = log_sum(log_sizes - below) - log_best
    # Beyond e^600 both noises give 1/W to all digits, and float64 cannot hold the nodes.
    if noise == "gumbel" or log_ratio > 600.0:
        return float(np.exp(-np.logaddexp(0.0, log_ratio)))
    exponents, weights = _quadrature(log_ratio, log_best)
    scaled = exponents * np.exp(-log_best)
    shrink = np.where(scaled > 0, -np.expm1(-scaled) / np.maximum(scaled, 1e-300), 1.0)
    log_u = np.log(exponents) - log_best + np.log(shrink)
    return float(weights @ np.exp(-exponents - _beaten(log_u, log_sizes, below)))


def _quadrature(log_ratio: float, log_best: float) -> tuple[FloatArray, FloatArray]:
    """Return nodes and weights from 0 to where the integrand ends: panels that double in length from below 1/(1 + W).

    The integrand is at most `exp(−v − W N u)`, which is below e^{−50} from the end on.
    """
    count, log_scale = math.exp(min(log_best, 600.0)), float(np.logaddexp(0.0, log_ratio))
    low, high = -log_scale - 3.0, math.log(_REACH)
    for _ in range(12):
        middle = (low + high) / 2
        place = math.exp(middle)
        log_beaten = log_ratio + math.log(-math.expm1(-place / count) * count or place)
        reached = place + math.exp(min(log_beaten, 700.0)) >= _REACH
        low, high = (low, middle) if reached else (middle, high)
    end, first = math.exp(high), math.exp(-log_scale) / 64.0
    doublings = math.ceil(math.log2(max(end / first, 2.0)))
    ends = np.concatenate([[0.0], end * 2.0 ** np.arange(-doublings, 1)])
    half = np.diff(ends)[:, None] / 2
    return (ends[:-1, None] + half * (1 + _NODES)).ravel(), (half * _WEIGHTS).ravel()


def _beaten(log_u: FloatArray, log_sizes: FloatArray, below: FloatArray) -> FloatArray:
    """Return `−Σ M log(1 − p u)` for each u.

    Where p u is small, by the series `Σ_j S_j u^j / j` with `S_j = Σ M p^j`. Few classes have it large: their p add up
    to no more than N W, and u ends at about 50/(N W).
    """
    largest = float(log_u.max())
    near = below < largest - np.log(_NEAR)
    log_share = log_u - below[near][:, None]
    with np.errstate(divide="ignore"):
        log_loss = np.log(-np.log1p(-np.minimum(np.exp(log_share), 1.0)))
    total: FloatArray = np.exp(np.minimum(log_sizes[near][:, None] + log_loss, 700.0)).sum(axis=0)
    sizes, depths = log_sizes[~near], below[~near]
    if len(sizes) <= _FEW:
        return total + _by_powers(log_u, sizes, depths)
    for power in range(1, _TERMS + 1):
        if not len(sizes):
            break
        total += np.exp(np.minimum(log_sum(sizes - power * depths) + power * log_u, 700.0)) / power
        # Classes whose next term cannot show in the sum of their own terms are done.
        kept = power * (depths - largest) < 40.0
        sizes, depths = sizes[kept], depths[kept]
    return total


def _by_powers(log_u: FloatArray, sizes: FloatArray, depths: FloatArray) -> FloatArray:
    """Return `Σ_j S_j u^j / j` with all terms at once, which is faster for few classes."""
    if not len(sizes):
        return np.zeros_like(log_u)
    powers = np.arange(1.0, _TERMS + 1)[:, None]
    exponents = sizes - powers * depths
    highest = exponents.max(axis=1, keepdims=True)
    log_sums = highest + np.log(np.exp(exponents - highest).sum(axis=1, keepdims=True))
    terms: FloatArray = np.exp(np.minimum(log_sums + powers * log_u, 700.0)) / powers
    result: FloatArray = terms.sum(axis=0)
    return result


def least_epsilon(chance: Callable[[float], float], wanted: float, near: float) -> float:
    """Return the ε at which a chance that grows with ε reaches the one wanted, to ten digits; it looks `near` first.

    The chance must be above the one wanted for large ε. 0 where it still is at ε = e^−25 `near`: any ε will do.
    """
    from scipy.optimize import brentq

    def excess(log_epsilon: Any) -> float:
        return chance(float(np.exp(log_epsilon))) - wanted

    low = high = float(np.log(near))
    while excess(high) < 0:
        low, high = high, high + 0.5
    while excess(low) > 0:
        if low < math.log(near) - 25.0:
            return 0.0
        low, high = low - 0.5, low
    return float(np.exp(brentq(excess, low, high, xtol=1e-11))) if low < high else near
