"""Items so far below z that normal noise puts each above it with a small chance, taken together.

Notation as in tails.py: `o = S/F` are the odds of an item, r those of the circle, and `o r <= q`. Powers of x have sums
`Σ m o^i` and `Σ m (f/F) o^i` as coefficients, which come from few points (close_items.py). What remains is

`passed = Σ_g step_g R_g E_g`, `R_g = Σ_{behind g} f/F`, `E_g = Π_{behind g} 1/(1 + o x)`.

It is taken by segments of neighbouring groups. With g' the first group of a segment, `E_g = E_g' Π (1 + o x)`, over the
items behind g' up to g, is a short polynomial in x, whose coefficients follow from the sums of powers (Newton's
identities). If these items have `Σ o r <= M`, terms from the order n on are at most `M^n / n!`.

Error: series in `o r` leave out `q^9 / 9` of an item, 1e-11, and polynomials 2e-10 of what the last group of a segment
adds, much less of the others.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpselect.forecast.chances import FloatArray
from dpselect.forecast.close_items import CloseItems
from dpselect.forecast.contour import Array, ComplexArray, powers_of, real_times
from dpselect.forecast.noise_values import values_at
from dpselect.forecast.tail_segments import SIZE, UNSEEN
from dpselect.forecast.tails import Tail
from dpselect.sampling.normal import NORMAL

_EACH, _POWERS = 0.08, 8
_LIGHT, _FEWER, _MORE = 1.0, (4, 0.03), (6, 0.12)
"""How many terms polynomials have, and M, where less than `_LIGHT` is expected above z, and where more is."""
_CHUNK = 400_000
_DISTANCES = np.linspace(-8.0, 37.0, 1_801)


def first_rare(locations: FloatArray, z: FloatArray, log_radius: FloatArray) -> Array:
    """Return for each z, and r if it is more than 1, the first group from which on all are rare."""
    distances = np.interp(np.maximum(log_radius, 0.0) - np.log(_EACH), *_falling_odds())
    result: Array = np.searchsorted(-locations, distances - z)
    return result


def _falling_odds() -> tuple[FloatArray, FloatArray]:
    """Return −log o, in ascending order, and how far below z items with such odds are."""
    cdf, survival, _ = values_at(NORMAL, _DISTANCES, np.zeros(1))
    return np.log(cdf[0] / survival[0]), _DISTANCES


def log_law(items: CloseItems, z: FloatArray, log_radius: FloatArray) -> FloatArray:
    """Return the coefficients [z, power] of the logarithm of `Π (F + S x)` over rare items."""
    weights = items.weights(items.sizes)
    cdf, survival, _ = values_at(NORMAL, z, items.points)
    return _log_law(weights, survival, survival / cdf * np.exp(log_radius))


def _log_law(weights: FloatArray, survival: FloatArray, raised: FloatArray) -> FloatArray:
    result = np.zeros((survival.shape[1], SIZE))
    result[:, 0] = weights @ np.log1p(-survival)
    powers = np.ones_like(raised)
    for power in range(1, SIZE):
        powers *= raised
        result[:, power] = weights @ powers * ((-1) ** (power + 1) / power)
    return result


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
        whole = NormalTail(self.items.upto(end), self.costs[:end], self.steps[:end])
        return [whole.since(start) for start in starts.tolist()]


@dataclass(frozen=True, repr=False)
class NormalTail:
    """Rare items from a group on: what each group costs, and how much more the next one does."""

    items: CloseItems
    costs: FloatArray
    steps: FloatArray

    @cached_property
    def _weights(self) -> FloatArray:
        """The weights of points, plain and by costs."""
        sizes = self.items.sizes
        return np.stack([self.items.weights(sizes), self.items.weights(sizes * self.costs)])

    def at(self, z: FloatArray, log_radius: FloatArray) -> FloatArray:
        """Return coefficients [kind, z, power] of powers of e^{iθ} on the circles of these radii."""
        cdf, survival, density = values_at(NORMAL, z, self.items.points)
        raised, terms = survival / cdf * np.exp(log_radius), density / cdf
        result = np.empty((3, len(z), SIZE))
        result[0] = _log_law(self._weights[0], survival, raised)
        for power in range(SIZE):
            result[1:, :, power] = self._weights @ terms
            terms *= -raised
        return result

    def passed(self, z: FloatArray, log_radius: FloatArray, turns: ComplexArray) -> ComplexArray:
        """Return `passed` as [z, angle]."""
        step = max(1, _CHUNK // (_POWERS * (len(self.steps) + 1)))
        parts = [slice(start, start + step) for start in range(0, len(z), step)]
        found = [self._passed(z[part], log_radius[part], turns) for part in parts]
        return np.concatenate([np.zeros((0, len(turns)), dtype=np.complex128), *found])

    def _passed(self, z: FloatArray, log_radius: FloatArray, turns: ComplexArray) -> ComplexArray:
        seen = self._seen(z, log_radius)
        if not len(seen.steps):
            return np.zeros((len(z), len(turns)), dtype=np.complex128)
        cdf, survival, density = values_at(NORMAL, z, seen.items.points)
        values = np.empty((_POWERS + 1, *cdf.shape))
        values[1:] = survival / cdf * np.exp(log_radius)
        np.multiply.accumulate(values[1:], axis=0, out=values[1:])
        values[0] = density / cdf
        sums = seen.items.behind(values)
        orders, most = _FEWER if float(sums[1, 0].max()) < _LIGHT else _MORE
        starts = _segments(sums[1], most)
        firsts = sums[1:, starts]
        within = np.repeat(firsts[:orders], np.diff(np.append(starts, len(seen.steps))), axis=1) - sums[1 : orders + 1]
        added = np.add.reduceat(_products(within, seen.steps[:, None] * sums[0]), starts, axis=1)
        turned, powers = powers_of(turns, _POWERS + 1), np.arange(1.0, _POWERS + 1)
        log_none = real_times((firsts.T * ((-1) ** powers / powers)).swapaxes(0, 1), turned[1:])
        result: ComplexArray = (np.exp(log_none) * real_times(added.T.swapaxes(0, 1), turned[: orders + 1])).sum(axis=0)
        return result

    def _seen(self, z: FloatArray, log_radius: FloatArray) -> NormalTail:
        """Return the groups without the first, behind which too much follows for an answer to end there."""
        cdf, survival, _ = values_at(NORMAL, z, self.items.points)
        (behind,) = self.items.behind((survival / cdf * np.exp(log_radius))[None])
        return self.since(int((behind.min(axis=1) > UNSEEN).sum()))

    def since(self, first: int) -> NormalTail:
        """Return the groups from one on."""
        return NormalTail(self.items.since(first), self.costs[first:], self.steps[first:]) if first else self

    def plainly_passed(self, z: FloatArray) -> FloatArray:
        """Return `passed` for x = 1."""
        step = max(1, _CHUNK // (len(self.steps) + 1))
        parts = [slice(start, start + step) for start in range(0, len(z), step)]
        return np.concatenate([np.empty(0), *(self._plainly_passed(z[part]) for part in parts)])

    def _plainly_passed(self, z: FloatArray) -> FloatArray:
        cdf, survival, density = values_at(NORMAL, z, self.items.points)
        log_none, rates = self.items.behind(np.stack([np.log1p(-survival), density / cdf]))
        return self.steps @ (np.exp(log_none) * rates)


AnyTail = Tail | NormalTail
"""Rare items, whatever their noise is."""


def _segments(behind: FloatArray, most: float) -> Array:
    """Return where segments begin that hold at most so much, from `Σ o r` over the items behind each group, [group, z].

    The first group of a segment does not count.
    """
    masses = np.append(0.0, np.cumsum((behind[:-1] - behind[1:]).max(axis=1))).tolist()
    found, place = [], 0
    while place < len(masses):
        found.append(place)
        place = bisect_right(masses, masses[place] + most, place + 1)
    return np.array(found)


def _products(sums: FloatArray, scale: FloatArray) -> FloatArray:
    """Return the coefficients [power, group, z] of `scale · Π (1 + o x)` from `Σ o^i`, [i, group, z]."""
    found = np.empty((len(sums) + 1, *scale.shape))
    found[0], further = scale, np.empty_like(scale)
    for order in range(1, len(found)):
        np.multiply(sums[0], found[order - 1], out=found[order])
        for power in range(2, order + 1):
            np.multiply(sums[power - 1], found[order - power], out=further)
            (np.add if power % 2 else np.subtract)(found[order], further, out=found[order])
        found[order] *= 1 / order
    return found
