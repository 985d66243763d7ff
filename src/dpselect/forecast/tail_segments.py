"""Segments of the rare items of tails.py, where the notation and the formula are: what they add to `passed`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dpselect.forecast.chances import FloatArray
from dpselect.forecast.contour import ComplexArray, upto, weighted

Array = npt.NDArray[Any]

TERMS = 10
SIZE = TERMS + 1
_UNSEEN = 28.0
_CHUNK = 20_000
_SMALL, _EXPANSION = 0.35, 11


@dataclass(frozen=True, repr=False)
class Segments:
    """Neighbouring segments; their polynomials are [segment, power of x, power of τ].

    `log_odds` are the coefficients of `Σ log(1 + o x)` over each segment, and `rates` those of `Σ f/F` over all that is
    behind its start, and at last behind the end of all. For any r the others are [segment, i, d] for `(τ x)^i τ^d`.
    """

    starts: Array
    steps: FloatArray
    within: FloatArray
    reached: FloatArray
    log_odds: FloatArray
    rates: FloatArray

    @classmethod
    def of(cls, law: FloatArray, rates: FloatArray, weights: FloatArray, steps: FloatArray, starts: Array) -> Segments:
        """Return the segments that begin at these groups, from weights `m e^{j a}` [j, group]."""
        counts = np.diff(np.append(starts, weights.shape[1]))
        lasts = starts + counts - 1
        totals = np.add.reduceat(weights, starts, axis=1)
        sums = np.cumsum(weights, axis=1)
        sums -= np.repeat(sums[:, starts] - weights[:, starts], counts, axis=1)
        behind = rates[:, None] * np.maximum(np.repeat(totals, counts, axis=1) - sums, 0.0)
        inner = steps.copy()
        inner[lasts] = 0.0
        within, reached = (np.zeros((len(starts), SIZE, SIZE)) for _ in range(2))
        for order, product in enumerate(_products(law, sums, inner)):
            reached[:, : order + 1, order] = np.add.reduceat(product, starts, axis=1).T
            for more in range(1, SIZE - order):
                within[:, : order + 1, order + more] += np.add.reduceat(product * behind[more], starts, axis=1).T
        since = np.append(np.cumsum(totals[:, ::-1], axis=1)[:, ::-1], np.zeros((SIZE, 1)), axis=1).T
        odds = law.copy()
        odds[0] = 0.0
        within, reached, log_odds = (by_excess(part) for part in (within, reached, odds * totals.T[:, None]))
        return cls(starts, steps[lasts], within, reached, log_odds, rates * since)

    def since(self, start: int) -> Segments:
        """Return the segments from a start on."""
        return self._from(int(np.searchsorted(self.starts, start)))

    def _from(self, first: int) -> Segments:
        return Segments(*(part[first:] for part in vars(self).values()))

    def passed(self, log_reach: FloatArray, log_radius: FloatArray, turns: ComplexArray) -> ComplexArray:
        """Return `passed` as [z, angle] for the logarithms of τ and r."""
        # A few z at a time, which stay in the processor's memory.
        step = max(1, _CHUNK // (len(self.steps) * len(turns)))
        parts = (slice(start, start + step) for start in range(0, len(log_reach), step))
        return np.concatenate([self._passed(log_reach[part], log_radius[part], turns) for part in parts])

    def _passed(self, log_reach: FloatArray, log_radius: FloatArray, turns: ComplexArray) -> ComplexArray:
        seen = self._seen(float((log_reach + log_radius).min()))
        powers = np.arange(SIZE)
        reach = np.exp(np.multiply.outer(powers, log_reach))
        radii = np.exp(np.multiply.outer(log_reach + log_radius, powers))
        turned = np.ascontiguousarray(turns ** powers[:, None]).view(np.float64)

        def on_circles(coefficients: FloatArray) -> ComplexArray:
            found = np.matmul(coefficients.reshape(-1, SIZE), reach).reshape(-1, SIZE, len(log_reach))
            values = (found.swapaxes(1, 2) * radii).reshape(-1, SIZE) @ turned
            turned_values: ComplexArray = values.view(np.complex128)
            return turned_values.reshape(len(coefficients), len(log_reach), -1)

        products = _passed_by(on_circles(seen.log_odds))
        rates = seen.rates[1:] @ reach
        inner = on_circles(seen.reached)
        inner *= rates[..., None]
        inner += on_circles(seen.within)
        inner *= products[:-1]
        result: ComplexArray = weighted(seen.steps[:, None] * rates, products[1:]) + inner.sum(axis=0)
        return result

    def plainly_passed(self, log_reach: FloatArray) -> FloatArray:
        """Return `passed` for x = 1."""
        seen = self._seen(float(log_reach.min()))
        reach = np.exp(np.multiply.outer(np.arange(SIZE), log_reach))
        polynomials = np.stack([seen.log_odds, seen.within, seen.reached])
        orders = np.zeros((*polynomials.shape[:2], SIZE))
        for power in range(SIZE):
            orders[..., power:] += polynomials[..., power, : SIZE - power]
        each, within, reached = orders @ reach
        behind = np.cumsum(np.concatenate([each, np.zeros_like(each[:1])])[::-1], axis=0)[::-1]
        products, rates = np.exp(-behind), seen.rates[1:] @ reach
        terms = seen.steps[:, None] * rates * products[1:] + products[:-1] * (within + reached * rates)
        result: FloatArray = terms.sum(axis=0)
        return result

    def _seen(self, log_reach: float) -> Segments:
        """Return the segments without the first, behind which too much follows for an answer to end there."""
        return self._from(int((self.rates[1:-1, 1] * np.exp(log_reach) > _UNSEEN).sum()))


def _passed_by(logs: ComplexArray) -> ComplexArray:
    """Return exp(−log) of all that is behind each segment's start, and 1 behind the end, from logarithms of each."""
    result = np.ones((len(logs) + 1, *logs.shape[1:]), dtype=np.complex128)
    each = result[:-1]
    parts = each.view(np.float64)
    # Most are small, where a few terms take a fraction of the time.
    for term in range(_EXPANSION, 0, -1):
        each *= logs
        parts *= -1.0 / term
        each += 1.0
    heavy = (np.abs(logs.view(np.float64)) > _SMALL).any(axis=(1, 2))
    each[heavy] = np.exp(-logs[heavy])
    upto(np.multiply, result[::-1])
    return result


def by_excess(coefficients: FloatArray) -> FloatArray:
    """Return coefficients [i, j] of `x^i τ^j` as [i, d] of `(τ x)^i τ^d`; none has i > j."""
    result = np.zeros_like(coefficients)
    for power in range(SIZE):
        result[..., power, : SIZE - power] = coefficients[..., power, power:]
    return result


def _products(law: FloatArray, sums: FloatArray, scale: FloatArray) -> list[FloatArray]:
    """Return the terms [power of x, group] of each order in τ of `scale · exp(Σ_j τ^j P_j Σ_i G_ij x^i)`, i > 0.

    The derivative by τ says `n c_n = Σ_j j P_j G_j c_{n − j}`.
    """
    found = [scale[None]]
    for order in range(1, SIZE - 1):
        mixed = np.zeros((order + 1, scale.size))
        for j in range(1, order + 1):
            before = found[order - j]
            mixing = np.zeros((order + 1, len(before)))
            for i in range(1, j + 1):
                mixing[np.arange(len(before)) + i, np.arange(len(before))] = j / order * law[i, j]
            mixed += mixing @ (before * sums[j])
        found.append(mixed)
    return found
