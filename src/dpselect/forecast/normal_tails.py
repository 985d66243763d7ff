"""Items so far below z that normal noise puts each above it with a small chance, taken together.

Notation as in tails.py: `o = S/F` are the odds of an item, r those of the circle, and `o r <= q`. Powers of x have sums
`Σ m o^i` and `Σ m (f/F) o^i` as coefficients, which come from few points (close_items.py). What remains is

`passed = Σ_g step_g R_g E_g`, `R_g = Σ_{behind g} f/F`, `E_g = Π_{behind g} 1/(1 + o x)`.

It is taken by segments of neighbouring groups. With `O_i(g)` the sum of `o^i` over all items behind g, and `Ō_i` half
way between its values at the first and the last group of a segment,

`E_g = exp(−Σ_i (−1)^{i+1} Ō_i x^i / i) · exp(Σ_i (−1)^{i+1} (Ō_i − O_i(g)) x^i / i)`,

where the last factor is a short polynomial in x, whose coefficients follow from each other (Newton's identities). If no
`o r` in a segment exceeds q and they add up to 2 M, the coefficients are at most those of `(1 − q x)^{−M/q}`, which are
`M (M + q) … (M + (n − 1) q) / n!`.

Error: series in `o r` leave out `0.08^11 / 11` of an item, 1e-13. Polynomials up to the order n leave out at most
`(M + n q / 2)^{n+1} / (n + 1)!`, which is 2e-10 of what the first and the last group of a segment add, and much less of
the others.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import pairwise

import numpy as np

from dpselect._arrays import Array, ComplexArray, FloatArray
from dpselect.forecast.close_items import CloseItems
from dpselect.forecast.contour import powers_of, real_times, upto
from dpselect.forecast.noise_values import farthest, log_normal, values_at
from dpselect.forecast.tail_segments import SIZE
from dpselect.forecast.tails import Tail
from dpselect.sampling.noise import NORMAL

_EACH = 0.08
_HEAVY, _CHAINED = 0.25, 11
_ORDERS, _FEW = ((2, 0.0021), (3, 0.0166), (4, 0.06), (5, 0.144), (6, 0.278)), 8
"""The orders n of polynomials, and 2 M for small q; few segments of a cell with a lower order take less time."""
_MOST_ORDERS = _ORDERS[-1][0]
_NOTHING, _UNSEEN, _VANISHING = 1e-11, 33.0, 1e-19
_CHUNK, _CACHED = 100_000, 8_000
_LOG_SIGNS = np.append(1.0, (-1.0) ** np.arange(SIZE - 1) / np.arange(1, SIZE))
"""The coefficients of powers of o in log(1 + o), behind 1."""
_DISTANCES = np.linspace(-8.0, 37.0, 1_801)


def first_rare(locations: FloatArray, z: FloatArray, log_radius: FloatArray) -> Array:
    """Return for each z and r the first group from which on all are rare."""
    distances = np.interp(log_radius - np.log(_EACH), *_falling_odds())
    result: Array = np.searchsorted(-locations, distances - z)
    return result


@cache
def _falling_odds() -> tuple[FloatArray, FloatArray]:
    """Return −log o, in ascending order, and how far below z items with such odds are."""
    cdf, survival, _ = values_at(NORMAL, _DISTANCES, np.zeros(1))
    return np.log(cdf[0] / survival[0]), _DISTANCES


def log_law(items: CloseItems, z: FloatArray, log_radius: FloatArray) -> FloatArray:
    """Return the coefficients [z, power] of the logarithm of `Π (F + S x)` over rare items."""
    items = items.down_to(float(z.min()) - farthest(NORMAL, math.exp(max(float(log_radius.max()), 0.0))))
    survival = NORMAL.survival(z - items.points[:, None])
    raised = survival / (1 - survival) * np.exp(log_radius)
    return _log_law(items.weights_of_items, np.log1p(-survival), raised)


def _log_law(weights: FloatArray, log_cdf: FloatArray, raised: FloatArray) -> FloatArray:
    terms = np.empty((SIZE, *raised.shape))
    terms[0] = log_cdf
    _powers(raised, terms[1:])
    result: FloatArray = (weights @ terms).T * _LOG_SIGNS
    return result


def _powers(values: FloatArray, result: FloatArray) -> None:
    """Find powers of values [point, z], from the first on; those of the last points soon are next to nothing."""
    largest = np.maximum.accumulate(np.abs(values).max(axis=1, initial=0.0)[::-1])
    ends = len(values) - np.searchsorted(largest, _VANISHING ** (1 / np.arange(2.0, len(result) + 1)))
    result[0] = values
    for end, (before, each) in zip(ends.tolist(), pairwise(result), strict=True):
        np.multiply(before[:end], values[:end], out=each[:end])
        each[end:] = 0.0


@dataclass(frozen=True, repr=False)
class NormalItems:
    """Groups below rank k, highest first: what each costs, and how much more the next one does."""

    items: CloseItems
    costs: FloatArray
    steps: FloatArray

    def start(self, z: FloatArray, log_radius: FloatArray) -> int:
        """Return the first group from which on all are rare, on all circles."""
        return int(first_rare(self.items.locations, z, log_radius).max())

    def tails(self, starts: Array, end: int) -> list[NormalTail]:
        """Return the items from each of the starts on, up to an end."""
        ending = NormalItems(self.items.upto(end), self.costs[:end], self.steps[:end])
        return [NormalTail(ending, start) for start in starts.tolist()]


@dataclass(frozen=True, repr=False)
class NormalTail:
    """The items from a group on, which are rare."""

    among: NormalItems
    first: int

    @cached_property
    def items(self) -> CloseItems:
        """The items themselves."""
        return self.among.items.since(self.first)

    @property
    def costs(self) -> FloatArray:
        """What each group costs."""
        return self.among.costs[self.first :]

    @property
    def steps(self) -> FloatArray:
        """How much more the next group costs."""
        return self.among.steps[self.first :]

    def for_one(self) -> tuple[int, NormalTail]:
        """Return how many more groups before these may be part of a tail for x = 1, which needs no series; and that."""
        return self.first, NormalTail(self.among, 0)

    @cached_property
    def _weights(self) -> FloatArray:
        """The weights of points, plain and by costs."""
        return np.stack([self.items.weights_of_items, self.items.weights(self.items.sizes * self.costs)])

    @cached_property
    def _latest(self) -> list[tuple[FloatArray, ...]]:
        return []

    def _values(self, z: FloatArray) -> tuple[FloatArray, ...]:
        """Return F, S, f and log F at all points; for the same z as before they are known."""
        if not self._latest or self._latest[0][0] is not z:
            points = self.items.points
            values = values_at(NORMAL, z, points)
            rare = bool((values[1] < 0.5).all())
            self._latest[:] = [(z, *values, np.log1p(-values[1]) if rare else log_normal(z - points[:, None]))]
        return self._latest[0][1:]

    def at(self, z: FloatArray, log_radius: FloatArray) -> FloatArray:
        """Return coefficients [kind, z, power] of powers of e^{iθ} on the circles of these radii."""
        cdf, survival, density, log_cdf = self._values(z)
        raised, terms = survival / cdf * np.exp(log_radius), np.empty((SIZE, *cdf.shape))
        law = _log_law(self._weights[0], log_cdf, raised)
        terms[0] = 1.0
        _powers(-raised, terms[1:])
        terms *= density / cdf
        return np.concatenate([law[None], (self._weights @ terms).T.swapaxes(0, 1)])

    def plainly(self, z: FloatArray) -> FloatArray:
        """Return `Σ log F`, `Σ f/F`, and how many stand at z, plain and by costs."""
        cdf, _, density, log_cdf = self._values(z)
        known = self._weights[0] @ np.stack([log_cdf, density / cdf])
        return np.concatenate([known, self._weights @ density])

    def passed(self, z: FloatArray, log_radius: FloatArray, turns: ComplexArray) -> ComplexArray:
        """Return `passed` as [z, angle]."""
        if not len(self.steps):
            return np.zeros((len(z), len(turns)), dtype=np.complex128)
        parts = self._parts(len(z))
        if len(parts) == 1:
            return self._passed(z, log_radius, turns)
        return np.concatenate([self._passed(z[part], log_radius[part], turns) for part in parts])

    def _parts(self, count: int) -> list[slice]:
        """Return which z to take at a time, so that what is computed for a cell stays small."""
        step = max(1, _CHUNK // max(len(cell.sizes) for cell in self.items.cells))
        return [slice(start, start + step) for start in range(0, count, step)]

    def _passed(self, z: FloatArray, log_radius: FloatArray, turns: ComplexArray) -> ComplexArray:
        cdf, survival, density, _ = self._values(z)
        values = np.empty((SIZE, *cdf.shape))
        np.divide(density, cdf, out=values[0])
        _powers(survival / cdf * np.exp(log_radius), values[1:])
        # As many powers as make a difference.
        values = values[: 2 + int(((self._weights[0] @ values[2:]).max(axis=1) > _NOTHING).sum())]
        further, middles, added = np.zeros((len(values), 1, len(z))), [], []
        for groups, points, cell in self.items.from_last():
            known = values[:, points]
            rates, behind = cell.behind(known[:2], further[:2])
            # Behind the first groups too much follows for an answer to end there.
            unseen = int((behind.min(axis=1) > _UNSEEN).sum())
            if unseen == len(behind):
                break
            whole = float((behind[unseen] - behind[-1]).max())
            orders, most = next((pair for pair in _ORDERS if whole <= _FEW * pair[1]), _ORDERS[-1])
            masses = (behind[unseen:-1] - behind[unseen + 1 :]).max(axis=1)
            odds = masses / cell.sizes[unseen + 1 :]
            starts = unseen + _segments(masses, odds, orders, most)
            ends = np.append(starts[1:], len(behind))
            # All powers are needed at the borders of segments only.
            border = cell.behind(known, further, np.concatenate([starts, ends - 1]))
            middle = (border[1:, : len(starts)] + border[1:, len(starts) :]) / 2
            powers = 2 + int((most * odds.max(initial=0.0) ** np.arange(1, orders) > _NOTHING).sum())
            added.append(np.zeros((_MOST_ORDERS + 1, len(starts), len(z))))
            for part in _together(ends, _CACHED // len(z)):
                own = slice(int(starts[part.start]), int(ends[part.stop - 1]))
                sums = np.repeat(middle[: powers - 1, part], (ends - starts)[part], axis=1)
                sums[0] -= behind[own]
                if powers > 2:
                    sums[1:] -= cell.behind(known[2:powers], further[2:powers], own)
                products = _products(sums, self.steps[groups][own, None] * rates[own], orders)
                np.add.reduceat(products, starts[part] - own.start, axis=1, out=added[-1][: orders + 1, part])
            middles.append(middle)
            further = further + cell.whole(known)
        terms = _none_above(np.concatenate(middles[::-1], axis=1), turns)
        terms *= _on_circles(np.concatenate(added[::-1], axis=1), turns)
        result: ComplexArray = terms.sum(axis=0)
        return result

    def plainly_passed(self, z: FloatArray) -> FloatArray:
        """Return `passed` for x = 1."""
        if not len(self.steps):
            return np.zeros(len(z))
        cdf, survival, density, log_cdf = self._values(z)
        rates = density / cdf
        # Where next to nothing is above z each item adds its rate times all steps before it.
        result: FloatArray = (self._weights[1] - self.costs[0] * self._weights[0]) @ rates
        dense = self._weights[0] @ survival > _NOTHING
        values = np.stack([log_cdf[:, dense], rates[:, dense]])
        parts = [self._plainly_passed(values[..., part]) for part in self._parts(values.shape[2])]
        result[dense] = np.concatenate([np.empty(0), *parts])
        return result

    def _plainly_passed(self, values: FloatArray) -> FloatArray:
        """Return the same from log F and f/F at all points, [2, point, z]."""
        further, result = np.zeros((2, 1, values.shape[2])), np.zeros(values.shape[2])
        for groups, points, cell in self.items.from_last():
            known = values[:, points]
            log_none, rate = cell.behind(known, further)
            result += self.steps[groups] @ (np.exp(log_none) * rate)
            further = further + cell.whole(known)
        return result


AnyTail = Tail | NormalTail
"""Rare items, whatever their noise is."""


def _segments(masses: FloatArray, odds: FloatArray, orders: int, most: float) -> Array:
    """Return where segments begin, from the largest `Σ o r` of each group but the first, and `o r` of its items.

    A segment holds at most `most − n q`, with q the largest `o r` of an item; its first group does not count.
    """
    sums = np.append(0.0, np.cumsum(masses)).tolist()
    limits = np.append(np.maximum(most - orders * odds, 0.0), 0.0).tolist()
    found, place = [], 0
    while place < len(sums):
        found.append(place)
        # Of those that count the next group has the largest odds.
        place = bisect_right(sums, sums[place] + limits[place], place + 1)
    return np.array(found)


def _together(ends: Array, most: int) -> Iterator[slice]:
    """Yield which neighbouring segments to take at a time: with so many groups, unless one has more."""
    place, before = 0, 0
    while place < len(ends):
        stop = max(int(np.searchsorted(ends, before + most, side="right")), place + 1)
        yield slice(place, stop)
        place, before = stop, int(ends[stop - 1])


def _on_circles(coefficients: FloatArray, turns: ComplexArray) -> ComplexArray:
    """Return polynomials [power, segment, z] as [segment, z, angle]."""
    return real_times(coefficients.T.swapaxes(0, 1), powers_of(turns, len(coefficients)))


def _none_above(sums: FloatArray, turns: ComplexArray) -> ComplexArray:
    """Return `Π 1/(1 + o x)` [segment, z, angle] from `Σ o^i`, [i, segment, z], which fall from segment to segment.

    Complex exponentials take long, and polynomials do for what is between two segments, if that is not too much: as few
    orders leave out 1e-11 of it.
    """
    differences = np.append(sums[:, :-1] - sums[:, 1:], sums[:, -1:], axis=1)
    result = _on_circles(_products(-differences, np.ones(differences.shape[1:]), _CHAINED), turns)
    heavy = differences[0].max(axis=1) > _HEAVY
    logs = differences[:, heavy] * -_LOG_SIGNS[1 : len(sums) + 1, None, None]
    result[heavy] = np.exp(_on_circles(np.append(np.zeros((1, *logs.shape[1:])), logs, axis=0), turns))
    return upto(np.multiply, result[::-1])[::-1]


def _products(sums: FloatArray, scale: FloatArray, orders: int) -> FloatArray:
    """Return coefficients [power, group, z] of `scale · Π (1 + o x)` from `Σ o^i`, [i, group, z].

    Powers of o that are not given are next to nothing.
    """
    found = np.empty((orders + 1, *scale.shape))
    found[0], further = scale, np.empty_like(scale)
    for order in range(1, len(found)):
        np.multiply(sums[0], found[order - 1], out=found[order])
        for power in range(2, min(order, len(sums)) + 1):
            np.multiply(sums[power - 1], found[order - power], out=further)
            (np.add if power % 2 else np.subtract)(found[order], further, out=found[order])
        found[order] *= 1 / order
    return found
