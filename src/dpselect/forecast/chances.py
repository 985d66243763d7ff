"""How likely the best outcome is when outcomes come in classes of like loss, exactly and in logarithms.

Notation: the best class has N outcomes, another class M outcomes that stand `a >= 0` below it, `p = e^{−a}`. Then
`W = Σ M p / N`. Class sizes may be far beyond the range of float64, so all sizes are logarithms.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from dpselect._arrays import FloatArray
from dpselect.errors import InvalidInput

NEGLIGIBLE = 45.0
"""Weights that many e-folds below the total are left out: together they are below 1e-13 of it."""

CERTAIN = 1 - 1e-13
"""Chances above this differ from 1 by no more than rounding."""

NEAR = 0.1
"""Products p u above this are taken one by one, the others through power sums."""

TERMS = 16
_LOST = 1e-17
_LIGHT = 600.0
_REACH, _NEWTONS = 50.0, 6
_HOPELESS = 60.0
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
    log_weights = log_sizes - below
    highest = max(float(log_weights.max(initial=-np.inf)), log_best - _LIGHT)
    weights = np.exp(log_weights - highest)
    total = float(weights.sum())
    log_ratio = highest - log_best + math.log(total) if total else -math.inf
    # Beyond e^600 both noises give 1/W to all digits, and float64 cannot hold the nodes.
    if noise == "gumbel" or log_ratio > 600.0:
        return float(np.exp(-np.logaddexp(0.0, log_ratio)))
    (exponents,), (masses,) = quadrature(np.array([log_ratio]), np.array([log_best]))
    scaled = exponents * math.exp(-log_best)
    shrink = np.divide(-np.expm1(-scaled), scaled, out=np.ones_like(scaled), where=scaled > 0)
    # The largest p u counts in full, and M p u adds up to no more than the reach.
    share = exponents * shrink
    most = float(share[-1])
    heavy = weights * math.exp(highest - log_best + math.log(most))
    return float(masses @ np.exp(-exponents - _beaten(share / most, most, log_best, heavy, below)))


def quadrature(log_ratios: FloatArray, log_best: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return nodes and weights from 0 to where integrands end: panels that double in length from 1/(2 + 2W) on.

    The integrand is at most `exp(−v − W N u)`, which is below e^{−50} from the end on. Both are [integral, node].
    """
    ends = np.array([_end(*pair) for pair in zip(log_ratios.tolist(), log_best.tolist(), strict=True)])
    firsts = 0.5 / (1 + np.exp(log_ratios))
    doublings = math.ceil(math.log2(max(float((ends / firsts).max()), 2.0)))
    edges = ends[:, None] * np.append(0.0, np.exp2(np.arange(-doublings, 1)))
    halves = np.diff(edges, axis=1)[..., None] / 2
    nodes, weights = edges[:, :-1, None] + halves * (1 + _NODES), halves * _WEIGHTS
    return nodes.reshape(len(ends), -1), weights.reshape(len(ends), -1)


def _end(log_ratio: float, log_best: float) -> float:
    """Return where `v + W N u` is about 50: it is concave in v, and reaches that no earlier than its tangents do."""
    ratio, count = math.exp(log_ratio), math.exp(min(log_best, 600.0))
    end = _REACH / (1 + ratio)
    for _ in range(_NEWTONS):
        fall = math.exp(-end / count)
        lacking = _REACH - end - ratio * (-math.expm1(-end / count) * count or end)
        end = min(end + lacking / (1 + ratio * fall), _REACH)
    return end


def _beaten(share: FloatArray, most: float, log_best: float, heavy: FloatArray, below: FloatArray) -> FloatArray:
    """Return `−Σ M log(1 − p u)` for each u = share · u', u' the largest; `heavy` holds M p u', `most` N u'.

    Where p u' is small, by the series `Σ_j share^j Σ M (p u')^j / j`. Few classes have it large.
    """
    depths = below + (log_best - math.log(most))
    near = depths < -math.log(NEAR)
    chances = np.exp(-np.maximum(depths[near], 0.0))
    with np.errstate(divide="ignore"):
        total: FloatArray = (heavy[near] / chances) @ -np.log1p(-np.outer(chances, share))
    weights, ratios = heavy[~near], np.exp(-depths[~near])
    powers, sums = ratios, [float(weights.sum())]
    for power in range(2, TERMS + 1):
        sums.append(float(weights @ powers) / power)
        if sums[-1] <= _LOST * sums[0]:
            break
        powers = powers * ratios
    series = np.zeros_like(share)
    for term in reversed(sums):
        series += term
        series *= share
    return total + series


def least_epsilon(chance: Callable[[float], float], wanted: float, near: float) -> float:
    """Return the ε at which a chance that grows with ε reaches the one wanted, to ten digits; it looks `near` first.

    The chance must be above the one wanted for large ε. 0 where it still is at ε = e^−25 `near`: any ε will do.
    """
    from scipy.optimize import brentq

    def excess(log_epsilon: Any) -> float:
        return chance(float(np.exp(log_epsilon))) - wanted

    low = high = float(np.log(near))
    while excess(high) < 0:
        if high > math.log(near) + _HOPELESS:
            accepted = "a little less is needed: so close to 1 chances cannot be told apart here"
            raise InvalidInput("accuracy", wanted, accepted)
        low, high = high, high + 0.5
    while excess(low) > 0:
        if low < math.log(near) - 25.0:
            return 0.0
        low, high = low - 0.5, low
    return float(np.exp(brentq(excess, low, high, xtol=1e-11))) if low < high else near
