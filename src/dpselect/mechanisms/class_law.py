"""Probabilities of classes of alternatives that stand at the same location, without sampling.

Notation: class c has `M_c` alternatives at location `ℓ_c <= 0`, the best at 0; `p_c = exp(ℓ_c)`, `W_c = M_c p_c`,
`W = Σ W_c`.

- Gumbel noise: `P(c) = W_c / W`.
- Exponential noise (permute-and-flip): `P(c) = W_c ∫_0^1 exp(Λ(u)) / (1 − p_c u) du` with
  `Λ(u) = Σ_c M_c log(1 − p_c u)`. With `u = v/W` and `ω_c = W_c/W`, `Λ = −v Σ_c ω_c φ(p_c v/W)`,
  `φ(y) = −log(1 − y)/y`, so that nothing overflows however large M is; beyond v = 60 the integrand is below e^{−60}.
"""

from __future__ import annotations

import numpy as np

from dpselect._arrays import FloatArray
from dpselect.sampling.laws import single_law
from dpselect.sampling.noise import NOISES

_REACH = 60.0
_SERIES_BELOW = 1e-3
"""Arguments of φ below this go through four terms of its series: an error of less than 1e-12."""
_CHUNK = 1 << 22
_FEW = 200
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(24)


def class_probabilities(locations: FloatArray, log_sizes: FloatArray, noise: str) -> FloatArray:
    """Return the probability that the winner belongs to each class; relative error about 1e-11."""
    log_weights = locations + log_sizes
    highest = float(log_weights.max())
    shares = np.exp(log_weights - highest)
    total = float(shares.sum())
    if noise == "gumbel":
        return shares / total
    shares /= total
    log_total = highest + np.log(total)
    return shares * _integrals(np.exp(locations), shares, log_total)


def winner_law(locations: list[float], noise: str) -> FloatArray:
    """Return the probability of each single alternative to win, by `class_probabilities` where they are many."""
    if len(locations) <= _FEW:
        return single_law(locations, NOISES[noise])
    relative = np.array(locations) - max(locations)
    return class_probabilities(relative, np.zeros(len(relative)), noise)


def _integrals(chances: FloatArray, shares: FloatArray, log_total: float) -> FloatArray:
    """Return `∫_0^min(W, 60) exp(Λ) / (1 − p_c v/W) dv` for each class."""
    per_unit = float(np.exp(-log_total)) if log_total < 700 else 0.0
    reach = min(_REACH, float(np.exp(min(log_total, 10.0))))
    nodes, weights = _panels(reach)
    heights = nodes * per_unit
    direct = np.flatnonzero(chances * per_unit * reach >= _SERIES_BELOW)
    rest = np.ones(len(chances), dtype=bool)
    rest[direct] = False
    power_sums = [float((shares[rest] * powers).sum()) for powers in _powers(chances[rest])]
    slope = sum(power_sum * heights**power / (power + 1) for power, power_sum in enumerate(power_sums))
    exponent = -nodes * slope
    with np.errstate(divide="ignore"):
        for start, stop in _pieces(len(direct), len(nodes)):
            part = direct[start:stop]
            products = np.outer(chances[part], heights)
            exponent += (shares[part] / (chances[part] * per_unit)) @ np.log1p(-np.minimum(products, 1.0))
    mass = weights * np.exp(exponent)
    moments = [float((mass * heights**power).sum()) for power in range(4)]
    result: FloatArray = np.polynomial.polynomial.polyval(chances, moments).astype(np.float64, copy=False)
    for start, stop in _pieces(len(direct), len(nodes)):
        part = direct[start:stop]
        result[part] = (1.0 / (1.0 - np.outer(chances[part], heights))) @ mass
    return result


def _powers(numbers: FloatArray) -> list[FloatArray]:
    """Return the powers 0 to 3, without the general power function, which takes ten times as long."""
    square = numbers * numbers
    return [np.ones_like(numbers), numbers, square, square * numbers]


def _panels(reach: float) -> tuple[FloatArray, FloatArray]:
    """Gauss–Legendre nodes and weights on panels of [0, reach]."""
    count = max(4, int(np.ceil(reach)))
    edges = np.linspace(0.0, reach, count + 1)
    half = (edges[1:] - edges[:-1]) / 2
    middle = (edges[1:] + edges[:-1]) / 2
    return (middle[:, None] + half[:, None] * _NODES).ravel(), (half[:, None] * _WEIGHTS).ravel()


def _pieces(length: int, width: int) -> list[tuple[int, int]]:
    """Cut a table of `length` rows into pieces of a few megabytes."""
    step = max(1, _CHUNK // width)
    return [(start, min(start + step, length)) for start in range(0, length, step)]
