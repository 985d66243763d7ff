"""Segments of the rare items of tails.py, where the notation and the formula are: what they add to `passed`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import pairwise

import numpy as np

from dpselect._arrays import Array, ComplexArray, FloatArray
from dpselect.forecast.contour import powers_of, upto, weighted

TERMS = 10
SIZE = TERMS + 1
UNSEEN = 28.0
"""How many items that are expected above z behind a group leave no chance that none is."""
_CHUNK, _APART = 20_000, 1.4
_ORDERS, _POWERS = np.tril_indices(TERMS)
"""The order in τ and the power of x of each term that products have."""
_UPPER, _LOWER = np.triu_indices(SIZE), np.tril_indices(SIZE)
_BY_ORDER = np.add.outer(np.arange(SIZE), np.arange(SIZE))[..., None] == np.arange(SIZE)
"""Which orders [i, d, order] the powers i + d of τ are."""


@dataclass(frozen=True, repr=False)
class Series:
    """The coefficients `G_ij`, with −c_j at i = 0, `H_ij` and `j c_j` of tails.py.

    The derivative by τ of `exp(Σ_j τ^j P_j Σ_i G_ij x^i)`, i > 0, says `n c_n = Σ_j j P_j G_j c_{n − j}`. For each
    order n a matrix of `mixings` leads from all terms `P_j c_{n − j}` to `c_n`.
    """

    law: FloatArray
    marks: FloatArray
    rates: FloatArray
    mixings: list[FloatArray]

    @staticmethod
    @cache
    def of(series: tuple[float, ...]) -> Series:
        """Return them for c_1, c_2 …"""
        logs = np.append(0.0, series)
        rates = np.arange(float(SIZE)) * logs
        odds = _exponential(logs) - np.eye(1, SIZE)[0]
        powers = [np.eye(1, SIZE)[0]]
        for _ in range(TERMS):
            powers.append(np.convolve(powers[-1], odds)[:SIZE])
        law = np.stack([-logs, *((-1) ** (i + 1) * powers[i] / i for i in range(1, SIZE))])
        marks = np.stack([(-1) ** i * np.convolve(power, rates)[:SIZE] for i, power in enumerate(powers)])
        mixings = []
        for order in range(1, TERMS):
            j = order - _ORDERS[order > _ORDERS]
            i = np.arange(order + 1)[:, None] - _POWERS[order > _ORDERS]
            mixings.append(np.where((i > 0) & (i <= j), j / order * law[np.clip(i, 0, TERMS), j], 0.0))
        return Series(law, marks, rates, mixings)


def _exponential(series: FloatArray) -> FloatArray:
    """Return the series of exp of a series without a constant."""
    result = np.zeros_like(series)
    result[0] = 1.0
    for power in range(1, len(series)):
        result[power] = sum(i * series[i] * result[power - i] for i in range(1, power + 1)) / power
    return result


@dataclass(frozen=True, repr=False)
class Segments:
    """Neighbouring segments; their polynomials are [segment, power of x, power of τ].

    `log_odds` are the coefficients of `Σ log(1 + o x)` over each segment, `odds` those of `Π (1 + o x)`, where the
    segment is not `heavy`, and `rates` those of `Σ f/F` over all that is behind its start, and at last behind the end
    of all. For any r the others are [segment, i, d] for `(τ x)^i τ^d`.
    """

    starts: Array
    steps: FloatArray
    within: FloatArray
    reached: FloatArray
    log_odds: FloatArray
    odds: FloatArray
    heavy: Array
    rates: FloatArray

    @classmethod
    def of(cls, series: Series, weights: FloatArray, steps: FloatArray, starts: Array, heavy: Array) -> Segments:
        """Return the segments that begin at these groups, from weights `m e^{j a}` [j, group]."""
        counts = np.diff(np.append(starts, weights.shape[1]))
        lasts = starts + counts - 1
        totals = np.add.reduceat(weights, starts, axis=1)
        sums = np.cumsum(weights, axis=1)
        sums -= np.repeat(sums[:, starts] - weights[:, starts], counts, axis=1)
        # Steps within segments, and all items of each segment, at once.
        inner = np.append(steps, np.ones(len(starts)))
        inner[lasts] = 0.0
        terms = _products(series.mixings, np.concatenate([sums, totals], axis=1), inner)
        products, odds = terms[:, : len(steps)], terms[:, len(steps) :]
        behind = series.rates[:, None] * np.maximum(np.repeat(totals, counts, axis=1) - sums, 0.0)
        reached, within = _sums_by_segment(products, behind, np.flatnonzero(series.rates), starts)
        since = np.append(np.cumsum(totals[:, ::-1], axis=1)[:, ::-1], np.zeros((SIZE, 1)), axis=1).T
        log_odds = by_excess(series.law * totals.T[:, None])
        log_odds[:, 0] = 0.0
        return cls(
            starts,
            steps[lasts],
            _by_segment(within),
            _by_segment(reached),
            log_odds,
            _by_segment(odds.T),
            heavy,
            series.rates * since,
        )

    def since(self, start: int) -> Segments:
        """Return the segments from a start on."""
        return self._from(int(np.searchsorted(self.starts, start)))

    def _from(self, first: int) -> Segments:
        return Segments(*(part[first:] for part in vars(self).values()))

    def passed(self, log_reach: FloatArray, log_radius: FloatArray, turns: ComplexArray) -> ComplexArray:
        """Return `passed` as [z, angle] for the logarithms of τ and r."""
        # A few z at a time, which stay in the processor's memory; not too far apart, as segments that do not count at
        # one z may hold too much there.
        step, place, parts = max(1, _CHUNK // (len(self.steps) * len(turns))), 0, []
        reached = log_reach + log_radius
        while place < len(reached):
            near = np.abs(reached[place : place + step] - reached[place]) <= _APART
            count = len(near) if near.all() else int(np.argmin(near))
            parts.append(slice(place, place + count))
            place += count
        return np.concatenate([self._passed(log_reach[part], log_radius[part], turns) for part in parts])

    def _passed(self, log_reach: FloatArray, log_radius: FloatArray, turns: ComplexArray) -> ComplexArray:
        seen = self._seen(float((log_reach + log_radius).min()))
        powers = np.arange(SIZE)
        reach = np.exp(np.multiply.outer(powers, log_reach))
        radii = np.exp(np.multiply.outer(log_reach + log_radius, powers))
        turned = powers_of(turns, SIZE).view(np.float64)

        def on_circles(coefficients: FloatArray) -> ComplexArray:
            found = np.matmul(coefficients.reshape(-1, SIZE), reach).reshape(-1, SIZE, len(log_reach))
            values = (found.swapaxes(1, 2) * radii).reshape(-1, SIZE) @ turned
            turned_values: ComplexArray = values.view(np.complex128)
            return turned_values.reshape(len(coefficients), len(log_reach), -1)

        # Products up to each segment; what is behind it is the last of them divided by it.
        products = on_circles(seen.odds)
        if seen.heavy.any():
            products[seen.heavy] = np.exp(on_circles(seen.log_odds[seen.heavy]))
        if seen.heavy[0]:
            # Only the first may hold very much; nothing is before it, so that it does not matter.
            products[0] = 1.0
        upto(np.multiply, products)
        rates = seen.rates[1:] @ reach
        inner = on_circles(seen.reached)
        inner *= rates[..., None]
        inner += on_circles(seen.within)
        inner[1:] *= products[:-1]
        found = weighted(seen.steps[:, None] * rates, products) + inner.sum(axis=0)
        result: ComplexArray = found / products[-1]
        return result

    def plainly_passed(self, log_reach: FloatArray) -> FloatArray:
        """Return `passed` for x = 1."""
        seen = self._seen(float(log_reach.min()))
        reach = np.exp(np.multiply.outer(np.arange(SIZE), log_reach))
        polynomials, by_order = np.stack([seen.log_odds, seen.within, seen.reached]), _BY_ORDER.reshape(-1, SIZE)
        each, within, reached = polynomials.reshape(3, -1, SIZE * SIZE) @ (by_order @ reach)
        behind = np.cumsum(np.concatenate([each, np.zeros_like(each[:1])])[::-1], axis=0)[::-1]
        products, rates = np.exp(-behind), seen.rates[1:] @ reach
        terms = seen.steps[:, None] * rates * products[1:] + products[:-1] * (within + reached * rates)
        result: FloatArray = terms.sum(axis=0)
        return result

    def _seen(self, log_reach: float) -> Segments:
        """Return the segments without the first, behind which too much follows for an answer to end there."""
        return self._from(int((self.rates[1:-1, 1] * np.exp(log_reach) > UNSEEN).sum()))


def by_excess(coefficients: FloatArray) -> FloatArray:
    """Return coefficients [i, j] of `x^i τ^j` as [i, d] of `(τ x)^i τ^d`; none has i > j."""
    result = np.zeros_like(coefficients)
    result[..., _UPPER[0], _UPPER[1] - _UPPER[0]] = coefficients[..., _UPPER[0], _UPPER[1]]
    return result


def _rows(order: int) -> slice:
    """Return where the terms of an order in τ are among those of products, one for each power of x up to it."""
    return slice(order * (order + 1) // 2, (order + 1) * (order + 2) // 2)


def _products(mixings: list[FloatArray], sums: FloatArray, scale: FloatArray) -> FloatArray:
    """Return the terms of `scale · exp(Σ_j τ^j P_j Σ_i G_ij x^i)`, i > 0, by order and power, for P_j [j, group]."""
    found, raised = np.empty((2, len(_ORDERS), scale.size))
    found[0] = scale
    for order, mixing in enumerate(mixings, start=1):
        for lower in range(order):
            np.multiply(found[_rows(lower)], sums[order - lower], out=raised[_rows(lower)])
        np.matmul(mixing, raised[: _rows(order).start], out=found[_rows(order)])
    return found


def _sums_by_segment(
    products: FloatArray, series: FloatArray, orders: Array, starts: Array
) -> tuple[FloatArray, FloatArray]:
    """Return sums of products over the groups of each segment, as [segment, term], and times a series, one order more.

    The series [j, group] in τ has terms of some orders, from 1 on.
    """
    both = np.concatenate([np.ones((1, products.shape[1])), series[orders]]).T
    found = np.empty((len(starts), len(products), both.shape[1]))
    for place, (start, end) in enumerate(pairwise([*starts.tolist(), len(both)])):
        np.matmul(products[:, start:end], both[start:end], out=found[place])
    places, targets, firsts = _places(tuple(orders.tolist()))
    times = np.zeros((len(starts), _rows(TERMS).stop))
    times[:, targets] = np.add.reduceat(found[:, :, 1:].reshape(len(starts), -1)[:, places], firsts, axis=1)
    return found[:, :, 0], times


@cache
def _places(orders: tuple[int, ...]) -> tuple[Array, Array, Array]:
    """Return pairs of a product's term and an order of a series, those that make up the same term one after the other.

    Then which terms these are, and where the pairs of each begin.
    """
    totals = _ORDERS[:, None] + np.array(orders)
    rows = np.where(totals <= TERMS, totals * (totals + 1) // 2 + _POWERS[:, None], -1).ravel()
    places = np.argsort(rows, kind="stable")[int((rows < 0).sum()) :]
    targets, firsts = np.unique(rows[places], return_index=True)
    return places, targets, firsts


def _by_segment(terms: FloatArray) -> FloatArray:
    """Return terms [segment, order and power] as [segment, i, d] for `(τ x)^i τ^d`."""
    result = np.zeros((len(terms), SIZE, SIZE))
    orders, powers = (part[: terms.shape[1]] for part in _LOWER)
    result[:, powers, orders - powers] = terms
    return result
