"""The segment of all items so far below z that each is above it with a small chance, by power sums.

Notation: `t = e^{a − z}` of an item at a. Far out `log F = −Σ c_j t^j`, hence `f/F = Σ j c_j t^j` and the odds
`o = S/F = exp(Σ c_j t^j) − 1` are series in t, and everything about the segment is a polynomial in x and `τ = e^{−z}`
whose coefficients come from the power sums `P_j(g) = Σ m e^{j a}` over its groups up to g:

* `law = Π F · exp(Σ_{i>=1} x^i Σ_j G_ij τ^j P_j)`, `G_i = (−1)^{i+1} o^i / i`;
* `marked = law · Σ_i x^i Σ_j H_ij τ^j P_j`, `H_i = (−1)^i o^i f/F`;
* `passed = Π F · Σ_g step_g exp(Σ_{i>=1} x^i Σ_j G_ij τ^j P_j(g)) · Σ_j j c_j τ^j (P_j − P_j(g))`.

Error: the series end at τ^6. With t <= 0.01 and `Σ m t <= 0.05` what is left out is below 1e-12 of the whole.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpselect.forecast.chances import FloatArray
from dpselect.forecast.segments import COSTLY, MARKED, PASSED, Segments

_TERMS = 6
MOST_EACH = 0.01
MOST_TOGETHER = 0.05


@dataclass(frozen=True, repr=False)
class Tail:
    """Coefficients [power of x, power of τ] relative to the first location."""

    base: float
    law: FloatArray
    rate: FloatArray
    marked: FloatArray
    costly: FloatArray
    passed: FloatArray

    @classmethod
    def of(cls, series: FloatArray, locations: FloatArray, sizes: FloatArray, costs: FloatArray) -> Tail:
        """Return the tail of the groups given, highest first; `series` holds c_1, c_2 …"""
        logs = np.append(0.0, series[:_TERMS])
        powers = np.arange(_TERMS + 1.0)
        rates = powers * logs
        odds = _exponential(logs) - np.eye(1, _TERMS + 1)[0]
        odds_powers = [np.eye(1, _TERMS + 1)[0]]
        for _ in range(_TERMS):
            odds_powers.append(np.convolve(odds_powers[-1], odds)[: _TERMS + 1])
        law = np.stack([-logs, *((-1) ** (i + 1) * odds_powers[i] / i for i in range(1, _TERMS + 1))])
        marks = np.stack([(-1) ** i * np.convolve(part, rates)[: _TERMS + 1] for i, part in enumerate(odds_powers)])
        weights = sizes * np.exp(powers[:, None] * (locations - locations[0]))
        sums = np.cumsum(weights, axis=1)
        total = sums[:, -1]
        steps = np.append(np.diff(costs), 0.0)
        passed = _passed(law, sums, rates[:, None] * (total[:, None] - sums) * steps)
        return cls(float(locations[0]), law * total, rates * total, marks * total, marks * (weights @ costs), passed)

    def segment(self, z: FloatArray, last: int) -> Segments:
        """Return the segment at each z."""
        powers = np.exp(np.arange(_TERMS + 1.0)[:, None] * (self.base - z))
        logs = self.law @ powers
        law = np.zeros((_TERMS + 1, len(z)))
        law[0] = np.exp(logs[0])
        for power in range(1, _TERMS + 1):
            law[power] = sum(i * logs[i] * law[power - i] for i in range(1, power + 1)) / power
        law = np.maximum(law, 0.0)
        parts = np.zeros((1, 4, _TERMS + 1, len(z)))
        for kind, coefficients in ((MARKED, self.marked), (COSTLY, self.costly)):
            factor = coefficients @ powers
            for power in range(_TERMS + 1):
                parts[0, kind, power] = (factor[: power + 1] * law[power::-1]).sum(axis=0)
        parts[0, PASSED] = law[0] * (self.passed @ powers)
        parts = np.maximum(parts, 0.0)
        one = law[0] * (self.rate @ powers)
        if last < _TERMS:
            law[last] = law[last:].sum(axis=0)
        return Segments(law[None, : last + 1], parts[:, :, : last + 1], np.exp(logs[:1]), one[None])


def _exponential(series: FloatArray) -> FloatArray:
    """Return the series of exp of a series without a constant."""
    result = np.zeros_like(series)
    result[0] = 1.0
    for power in range(1, len(series)):
        result[power] = sum(i * series[i] * result[power - i] for i in range(1, power + 1)) / power
    return result


def _passed(law: FloatArray, sums: FloatArray, behind: FloatArray) -> FloatArray:
    """Return the coefficients of `Σ_g exp(Σ_{i>=1} x^i Σ_j law_ij τ^j sums_j(g)) · Σ_j behind_j(g) τ^j`."""
    size = len(law)
    # reached[i][j] holds the coefficient of x^i τ^j for each group; none has j < i.
    reached: list[dict[int, FloatArray]] = [{0: np.ones_like(sums[0])}]
    for power in range(1, size):
        row: dict[int, FloatArray] = {}
        for i in range(1, power + 1):
            for order, before in reached[power - i].items():
                for j in range(i, size - order):
                    term = (i / power * law[i, j]) * sums[j] * before
                    row[order + j] = row[order + j] + term if order + j in row else term
        reached.append(row)
    result = np.zeros((size, size))
    for power, row in enumerate(reached):
        for order, coefficients in row.items():
            result[power, order + 1 :] += behind[1 : size - order] @ coefficients
    return result
