"""The segment of all items so far below z that each is above it with a small chance, by power sums.

Notation: `t = e^{a − z}` of an item at a. Far out `log F = −Σ c_j t^j`, hence `f/F = Σ j c_j t^j` and the odds
`o = S/F = exp(Σ c_j t^j) − 1` are series in t, and everything about the segment is a polynomial in x and `τ = e^{−z}`
whose coefficients come from the power sums `P_j(g) = Σ m e^{j a}` over its groups up to g:

* `law = Π F · exp(Σ_{i>=1} x^i Σ_j G_ij τ^j P_j)`, `G_i = (−1)^{i+1} o^i / i`;
* `marked = law · Σ_i x^i Σ_j H_ij τ^j P_j`, `H_i = (−1)^i o^i f/F`;
* `passed = Π F · Σ_g step_g exp(Σ_{i>=1} x^i Σ_j G_ij τ^j P_j(g)) · Σ_j j c_j τ^j (P_j − P_j(g))`.

Error: below 1e-10 of each of them. With `τ_i = c_1 e^{a_i − z}`, all these noises have `|c_j t^j| <= τ^j / j`, so that
no coefficient exceeds that of `−log F = −log(1 − τ)`, where `o = f/F = τ/(1 − τ)`. There the powers of x of `law / Π F`
add up to `Π 1/(1 − τ_i)`, and what group g adds to `passed` to at most that times `step_g Σ_{behind g} τ_i/(1 − τ_i)`.
Let `τ_i <= q` and `Σ τ_i <= M`. With all τ multiplied by `s > 1` the product is at most `H(s) = exp(−M log(1 − sq)/q)`,
and the sum at most `s/(1 − sq) · Σ_{behind g} τ_i`. By Cauchy's estimate the terms beyond the order R add up to at most
`H(s) s^{−R} / (s − 1)`, for `passed` to `s/(1 − sq)` times that beside the first term of each group. At (M, q, R) =
(0.05, 0.01, 7) with s = 50 that is below 1e-10, as it is at (0.5, 0.05, 14) with s = 11. What `law` and `marked` lose
is less: only logarithms and powers of x end at R there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dpselect.forecast.chances import FloatArray
from dpselect.forecast.segments import COSTLY, MARKED, PASSED, REACHED, Segments

Array = npt.NDArray[Any]

LIGHT, LIGHT_EACH, LIGHT_TERMS = 0.05, 0.01, 7
HEAVY, HEAVY_EACH, HEAVY_TERMS = 0.5, 0.05, 14


@dataclass(frozen=True, repr=False)
class Tails:
    """Neighbouring segments: coefficients [segment, power of x, power of τ] relative to each one's first location."""

    bases: FloatArray
    law: FloatArray
    rate: FloatArray
    marked: FloatArray
    costly: FloatArray
    reached: FloatArray
    passed: FloatArray

    @classmethod
    def of(
        cls,
        series: FloatArray,
        terms: int,
        starts: Array,
        locations: FloatArray,
        sizes: FloatArray,
        costs: FloatArray,
        steps: FloatArray,
    ) -> Tails:
        """Return the segments that start at `starts` of the groups given, highest first; `series` holds c_1, c_2 …"""
        logs = np.append(0.0, series[:terms])
        powers = np.arange(terms + 1.0)
        rates = powers * logs
        odds = _exponential(logs) - np.eye(1, terms + 1)[0]
        odds_powers = [np.eye(1, terms + 1)[0]]
        for _ in range(terms):
            odds_powers.append(np.convolve(odds_powers[-1], odds)[: terms + 1])
        law = np.stack([-logs, *((-1) ** (i + 1) * odds_powers[i] / i for i in range(1, terms + 1))])
        marks = np.stack([(-1) ** i * np.convolve(part, rates)[: terms + 1] for i, part in enumerate(odds_powers)])
        counts = np.diff(np.append(starts, len(sizes)))
        bases = locations[starts]
        weights = sizes * np.exp(powers[:, None] * (locations - np.repeat(bases, counts)))
        total, total_cost = (np.add.reduceat(part, starts, axis=1).T[:, None] for part in (weights, weights * costs))
        sums = np.cumsum(weights, axis=1)
        sums -= np.repeat(sums[:, starts] - weights[:, starts], counts, axis=1)
        behind = rates[:, None] * np.maximum(np.repeat(total[:, 0].T, counts, axis=1) - sums, 0.0)
        reached, passed = _reached(law, sums, behind, steps, starts)
        return cls(bases, law * total, rates * total, marks * total, marks * total_cost, reached, passed)

    def behind(self, place: int) -> Tails:
        """Return the segments from one on."""
        parts = (self.bases, self.law, self.rate, self.marked, self.costly, self.reached, self.passed)
        return Tails(*(part[place:] for part in parts))

    def segments(self, z: FloatArray, last: int) -> Segments:
        """Return the segments at each z."""
        size = self.law.shape[1]
        powers = np.exp(np.arange(float(size))[:, None] * (self.bases[:, None, None] - z))
        logs = self.law @ powers
        law = np.zeros_like(logs)
        law[:, 0] = np.exp(logs[:, 0])
        for power in range(1, size):
            law[:, power] = sum(i * logs[:, i] * law[:, power - i] for i in range(1, power + 1)) / power
        law = np.maximum(law, 0.0)
        parts = np.zeros((len(law), 4, size, len(z)))
        for kind, coefficients in ((MARKED, self.marked), (COSTLY, self.costly)):
            factor = coefficients @ powers
            for power in range(size):
                parts[:, kind, power] = (factor[:, : power + 1] * law[:, power::-1]).sum(axis=1)
        for kind, coefficients in ((REACHED, self.reached), (PASSED, self.passed)):
            parts[:, kind] = law[:, :1] * (coefficients @ powers)
        parts = np.maximum(parts, 0.0)
        none = law[:, 0].copy()
        one = none * (self.rate @ powers)[:, 0]
        if last < size - 1:
            law[:, last] = law[:, last:].sum(axis=1)
        return Segments(law[:, : last + 1], parts[:, :, : last + 1], none, one)


def _exponential(series: FloatArray) -> FloatArray:
    """Return the series of exp of a series without a constant."""
    result = np.zeros_like(series)
    result[0] = 1.0
    for power in range(1, len(series)):
        result[power] = sum(i * series[i] * result[power - i] for i in range(1, power + 1)) / power
    return result


def _reached(
    law: FloatArray, sums: FloatArray, behind: FloatArray, steps: FloatArray, starts: Array
) -> tuple[FloatArray, FloatArray]:
    """Return the coefficients of `Σ_g step_g exp(Σ_{i>=1} x^i Σ_j law_ij τ^j sums_j(g))`.

    Then those of the same sum with the factor `Σ_j behind_j(g) τ^j` for each group.
    """
    size = len(law)
    # products[i][j] holds the coefficient of x^i τ^j for each group; none has j < i.
    products: list[dict[int, FloatArray]] = [{0: np.ones_like(sums[0])}]
    for power in range(1, size):
        row: dict[int, FloatArray] = {}
        for i in range(1, power + 1):
            for order, before in products[power - i].items():
                for j in range(i, size - order):
                    if law[i, j]:
                        term = (i / power * law[i, j]) * sums[j] * before
                        row[order + j] = row[order + j] + term if order + j in row else term
        products.append(row)
    reached, passed = np.zeros((len(starts), size, size)), np.zeros((len(starts), size, size))
    for power, row in enumerate(products):
        for order, coefficients in row.items():
            weighted = steps * coefficients
            reached[:, power, order] = np.add.reduceat(weighted, starts)
            passed[:, power, order + 1 :] += np.add.reduceat(behind[1 : size - order] * weighted, starts, axis=1).T
    return reached, passed
