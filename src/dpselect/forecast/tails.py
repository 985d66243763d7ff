"""All items so far below z that each is above it with a small chance, taken together by power sums.

Notation: `t = e^{a − z}` of an item at a. Far out `log F = −Σ c_j t^j`, hence `f/F = Σ j c_j t^j` and the odds
`o = S/F = exp(Σ c_j t^j) − 1` are series in t. So everything about these items is a polynomial in x and `τ = e^{−z}`,
whose coefficients come from the power sums `P_j(g) = Σ m e^{j a}` over the groups up to g:

* `law = Π (F + S x) = Π F · exp(Σ_{i>=1} x^i Σ_j G_ij τ^j P_j)`, `G_i = (−1)^{i+1} o^i / i`;
* `marked = Σ f / (F + S x) = Σ_i x^i Σ_j H_ij τ^j P_j`, `H_i = (−1)^i o^i f/F`, and `costly`, weighted by costs;
* `passed = Σ_g step_g Π_{up to g} (1 + o x) · Σ_{behind g} f/F`, where step_g is what the next group costs more than g.

Error: below 1e-10 of each of them. With `τ_i = c_1 e^{a_i − z}`, all these noises have `|c_j t^j| <= τ^j / j`, so that
no coefficient exceeds that of `−log F = −log(1 − τ)`, where `o = f/F = τ/(1 − τ)`. There the powers of x of `law / Π F`
add up to `Π 1/(1 − τ_i)`, and what group g adds to `passed` to at most that times `step_g Σ_{behind g} τ_i/(1 − τ_i)`.
Let `τ_i <= q` and `Σ τ_i <= M`. With all τ multiplied by `s > 1` the product is at most `H(s) = exp(−M log(1 − sq)/q)`,
and the sum at most `s/(1 − sq) · Σ_{behind g} τ_i`. By Cauchy's estimate the terms beyond the order R add up to at most
`H(s) s^{−R} / (s − 1)`, for `passed` to `s/(1 − sq)` times that beside the first term of each group. At (M, q, R) =
(0.05, 0.01, 7) with s = 50 that is below 1e-10. What `law` and `marked` lose is less. No power of x exceeds that of τ,
so that the same holds for |x| = r > 1 if `r τ` is as small.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from dpselect.forecast.chances import FloatArray

Array = npt.NDArray[Any]

MASS, EACH, TERMS = 0.05, 0.01, 7
_SIZE = TERMS + 1
_ROWS, _COLUMNS = np.triu_indices(_SIZE)
LAW, MARKED, COSTLY, PASSED = range(4)


@dataclass(frozen=True, repr=False)
class Tail:
    """Coefficients [kind, power of x, power of τ], τ relative to a location."""

    base: float
    coefficients: FloatArray

    @classmethod
    def none(cls) -> Tail:
        """Return no items."""
        return cls(0.0, np.zeros((4, _SIZE, _SIZE)))

    def at(self, z: FloatArray, log_radius: FloatArray) -> FloatArray:
        """Return the coefficients [kind, z, power] of powers of e^{iθ} on the circles of these radii."""
        if not self.coefficients.any():
            return np.zeros((len(self.coefficients), len(z), _SIZE))
        exponents = np.multiply.outer(self.base - z, _COLUMNS) + np.multiply.outer(log_radius, _ROWS)
        terms = np.exp(exponents)
        result: FloatArray = terms @ self._by_term
        return result

    @cached_property
    def _by_term(self) -> FloatArray:
        """The coefficients as [kind, term, power of x]."""
        result = np.zeros((len(self.coefficients), len(_ROWS), _SIZE))
        result[:, np.arange(len(_ROWS)), _ROWS] = self.coefficients[:, _ROWS, _COLUMNS]
        return result


@dataclass(frozen=True, repr=False)
class RareItems:
    """Groups below rank k, highest first: what each costs, and how much more the next one does."""

    series: FloatArray
    locations: FloatArray
    sizes: FloatArray
    costs: FloatArray
    steps: FloatArray

    def start(self, lowest: float) -> int:
        """Return the first group from which on all are rare, for `z − max(log r, 0)` from the lowest on."""
        each = self.series[0] * np.exp(np.minimum(self.locations - lowest, 0.0))
        together = np.cumsum((self.sizes * each)[::-1])[::-1]
        return int(((together > MASS) | (each > EACH)).sum())

    def tails(self, starts: Array) -> list[Tail]:
        """Return the items from each of the starts on; these ascend, and the last may be the number of groups."""
        part = slice(starts[0], None)
        locations, sizes, costs, steps = (
            values[part] for values in (self.locations, self.sizes, self.costs, self.steps)
        )
        base = float(locations[0]) if len(locations) else 0.0
        empty = Tail(base, np.zeros((4, _SIZE, _SIZE)))
        filled = starts[starts < len(self.sizes)] - starts[0]
        if not len(filled):
            return [empty] * len(starts)
        law, marks, rates = _coefficients(tuple(self.series[:TERMS]))
        weights = np.empty((_SIZE, len(sizes)))
        weights[0], reach = sizes, np.exp(locations - base)
        for power in range(1, _SIZE):
            weights[power] = weights[power - 1] * reach
        segments = _Segments.of(law, rates, weights, steps, filled)
        found, behind, number, cost = [], np.zeros((_SIZE, _SIZE)), np.zeros(_SIZE), np.zeros(_SIZE)
        costly = np.add.reduceat(weights * costs, filled, axis=1)
        for place in reversed(range(len(filled))):
            behind = segments.before(place, behind, rates * number)
            number, cost = number + segments.totals[:, place], cost + costly[:, place]
            found.append(Tail(base, np.stack([law * number, marks * number, marks * cost, behind])))
        return [*found[::-1], *[empty] * (len(starts) - len(filled))]


@dataclass(frozen=True, repr=False)
class _Segments:
    """Neighbouring segments: power sums, and [segment, power of x, power of τ] of `Π (1 + o x)` and its sums."""

    totals: FloatArray
    whole: FloatArray
    reached: FloatArray
    passed: FloatArray

    @classmethod
    def of(cls, law: FloatArray, rates: FloatArray, weights: FloatArray, steps: FloatArray, starts: Array) -> _Segments:
        counts = np.diff(np.append(starts, weights.shape[1]))
        totals = np.add.reduceat(weights, starts, axis=1)
        sums = np.cumsum(weights, axis=1)
        sums -= np.repeat(sums[:, starts] - weights[:, starts], counts, axis=1)
        behind = rates[:, None] * np.maximum(np.repeat(totals, counts, axis=1) - sums, 0.0)
        # products[i][j] holds the coefficient of x^i τ^j for each group; none has j < i.
        products: list[dict[int, FloatArray]] = [{0: np.ones_like(sums[0])}]
        for power in range(1, _SIZE):
            row: dict[int, FloatArray] = {}
            for i in range(1, power + 1):
                for order, before in products[power - i].items():
                    for j in range(i, _SIZE - order):
                        if law[i, j]:
                            term = (i / power * law[i, j]) * sums[j] * before
                            row[order + j] = row[order + j] + term if order + j in row else term
            products.append(row)
        whole, reached, passed = (np.zeros((len(starts), _SIZE, _SIZE)) for _ in range(3))
        for power, row in enumerate(products):
            for order, coefficients in row.items():
                whole[:, power, order] = coefficients[starts + counts - 1]
                weighted = steps * coefficients
                reached[:, power, order] = np.add.reduceat(weighted, starts)
                passed[:, power, order + 1 :] += np.add.reduceat(behind[1 : _SIZE - order] * weighted, starts, axis=1).T
        return cls(totals, whole, reached, passed)

    def before(self, place: int, behind: FloatArray, rate: FloatArray) -> FloatArray:
        """Return `passed` of a segment and all behind it, of which that and the rate f/F are given."""
        result: FloatArray = self.passed[place].copy()
        for power in range(_SIZE):
            for order in range(power, _SIZE):
                # No power of x exceeds that of τ.
                size = _SIZE - order
                result[power : power + size, order:] += self.whole[place, power, order] * behind[:size, :size]
                result[power, order:] += self.reached[place, power, order] * rate[:size]
        return result


@cache
def _coefficients(series: tuple[float, ...]) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return `G_ij`, with −c_j at i = 0, `H_ij` and `j c_j`."""
    logs = np.append(0.0, series)
    rates = np.arange(float(_SIZE)) * logs
    odds = _exponential(logs) - np.eye(1, _SIZE)[0]
    powers = [np.eye(1, _SIZE)[0]]
    for _ in range(TERMS):
        powers.append(np.convolve(powers[-1], odds)[:_SIZE])
    law = np.stack([-logs, *((-1) ** (i + 1) * powers[i] / i for i in range(1, _SIZE))])
    marks = np.stack([(-1) ** i * np.convolve(power, rates)[:_SIZE] for i, power in enumerate(powers)])
    return law, marks, rates


def _exponential(series: FloatArray) -> FloatArray:
    """Return the series of exp of a series without a constant."""
    result = np.zeros_like(series)
    result[0] = 1.0
    for power in range(1, len(series)):
        result[power] = sum(i * series[i] * result[power - i] for i in range(1, power + 1)) / power
    return result
