"""Items so far below z that normal noise puts each above it with a small chance, taken together.

Notation as in tails.py: `o = S/F` are the odds of an item, r those of the circle, and `o r <= q`. Powers of x have sums
`Σ m o^i` and `Σ m (f/F) o^i` as coefficients, which come from few points (close_items.py). What remains is

`passed = Σ_g step_g R_g E_g`, `R_g = Σ_{behind g} f/F`, `E_g = Π_{behind g} 1/(1 + o x)`.

It is taken by segments of neighbouring groups. With `O_i(g)` the sum of `o^i` over all items behind g, and `Ō_i` halfway
between its values at the first and the last group of a segment,

`E_g = exp(−Σ_i (−1)^{i+1} Ō_i x^i / i) · exp(Σ_i (−1)^{i+1} (Ō_i − O_i(g)) x^i / i)`,

where the last factor is a short polynomial in x, whose coefficients follow from each other (Newton's identities). If no
`o r` in a segment exceeds q and they add up to 2 M, the coefficients are at most those of `(1 − q x)^{−M/q}`, which are
`M (M + q) … (M + (n − 1) q) / n!`.

Error: series in `o r` leave out `0.08^11 / 11` of an item, 1e-13. Polynomials up to the order n have `M + n q / 2` of at
most 0.03 for n = 4 and 0.072 for n = 5, and leave out 2e-10 of what the first and the last group of a segment add, much
less of the others.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import pairwise

import numpy as np

from dpselect.forecast.chances import FloatArray
from dpselect.forecast.close_items import CloseItems
from dpselect.forecast.contour import Array, ComplexArray, powers_of, real_times
from dpselect.forecast.noise_values import values_at
from dpselect.forecast.tail_segments import SIZE
from dpselect.forecast.tails import Tail
from dpselect.sampling.normal import NORMAL

_EACH = 0.08
_LIGHT, _FEWER, _MORE = 1.0, (4, 0.06), (5, 0.144)
"""How many terms polynomials have, and M for small q, where less than `_LIGHT` is expected above z; where more is."""
_CHUNK, _NOTHING, _UNSEEN = 800_000, 1e-11, 33.0
_LOG_SIGNS = np.append(1.0, (-1.0) ** np.arange(SIZE - 1) / np.arange(1, SIZE))
"""The coefficients of powers of o in log(1 + o), behind 1."""
_DISTANCES = np.linspace(-8.0, 37.0, 1_801)


def first_rare(locations: FloatArray, z: FloatArray, log_radius: FloatArray) -> Array:
    """Return for each z, and r if it is more than 1, the first group from which on all are rare."""
    distances = np.interp(np.maximum(log_radius, 0.0) - np.log(_EACH), *_falling_odds())
    result: Array = np.searchsorted(-locations, distances - z)
    return result


@cache
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
    terms = np.empty((SIZE, *survival.shape))
    np.log1p(-survival, out=terms[0])
    _powers(raised, terms[1:])
    result: FloatArray = (weights @ terms).T * _LOG_SIGNS
    return result


def _powers(values: FloatArray, result: FloatArray) -> None:
    """Find powers from the first on."""
    result[0] = values
    for before, each in pairwise(result):
        np.multiply(before, values, out=each)


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

    def reaching(self, z: FloatArray) -> tuple[int, NormalTail]:
        """Return as many further groups before these as are rare for r = 1, and all of them."""
        first = min(self.among.start(z, np.zeros_like(z)), self.first)
        return self.first - first, NormalTail(self.among, first)

    @cached_property
    def _weights(self) -> FloatArray:
        """The weights of points, plain and by costs."""
        sizes = self.items.sizes
        return np.stack([self.items.weights(sizes), self.items.weights(sizes * self.costs)])

    def at(self, z: FloatArray, log_radius: FloatArray) -> FloatArray:
        """Return coefficients [kind, z, power] of powers of e^{iθ} on the circles of these radii."""
        cdf, survival, density = values_at(NORMAL, z, self.items.points)
        raised, terms = survival / cdf * np.exp(log_radius), np.empty((SIZE, *cdf.shape))
        law = _log_law(self._weights[0], survival, raised)
        terms[0] = 1.0
        _powers(-raised, terms[1:])
        terms *= density / cdf
        return np.concatenate([law[None], (self._weights @ terms).T.swapaxes(0, 1)])

    def plainly(self, z: FloatArray) -> FloatArray:
        """Return `Σ log F`, `Σ f/F`, and how many stand at z, plain and by costs."""
        cdf, survival, density = values_at(NORMAL, z, self.items.points)
        known = self._weights[0] @ np.stack([np.log1p(-survival), density / cdf])
        return np.concatenate([known, self._weights @ density])

    def passed(self, z: FloatArray, log_radius: FloatArray, turns: ComplexArray) -> ComplexArray:
        """Return `passed` as [z, angle]."""
        step = max(1, _CHUNK // (SIZE * (len(self.steps) + 1)))
        parts = [slice(start, start + step) for start in range(0, len(z), step)]
        found = [self._passed(z[part], log_radius[part], turns) for part in parts]
        return np.concatenate([np.zeros((0, len(turns)), dtype=np.complex128), *found])

    def _passed(self, z: FloatArray, log_radius: FloatArray, turns: ComplexArray) -> ComplexArray:
        seen = self._seen(z, log_radius)
        if not len(seen.steps):
            return np.zeros((len(z), len(turns)), dtype=np.complex128)
        cdf, survival, density = values_at(NORMAL, z, seen.items.points)
        values = np.empty((SIZE, *cdf.shape))
        np.divide(density, cdf, out=values[0])
        _powers(survival / cdf * np.exp(log_radius), values[1:])
        # As many powers as make a difference.
        powers = int(((seen._weights[0] @ values[1:]).max(axis=1) > _NOTHING).sum())
        powers = max(powers, _MORE[0])
        sums = seen.items.behind(values[: powers + 1])
        orders, most = _FEWER if float(sums[1, 0].max()) < _LIGHT else _MORE
        starts = _segments(sums[1], seen.items.sizes, orders, most)
        counts = np.diff(np.append(starts, len(seen.steps)))
        middles = (sums[1:, starts] + sums[1:, starts + counts - 1]) / 2
        within = np.repeat(middles[:orders], counts, axis=1)
        within -= sums[1 : orders + 1]
        added = np.add.reduceat(_products(within, seen.steps[:, None] * sums[0]), starts, axis=1)
        turned = powers_of(turns, powers + 1)
        log_none = real_times((middles.T * -_LOG_SIGNS[1 : powers + 1]).swapaxes(0, 1), turned[1:])
        result: ComplexArray = (np.exp(log_none) * real_times(added.T.swapaxes(0, 1), turned[: orders + 1])).sum(axis=0)
        return result

    def _seen(self, z: FloatArray, log_radius: FloatArray) -> NormalTail:
        """Return the groups without the first, behind which too much follows for an answer to end there."""
        cdf, survival, _ = values_at(NORMAL, z, self.items.points)
        (behind,) = self.items.behind((survival / cdf * np.exp(log_radius))[None])
        unseen = int((behind.min(axis=1) > _UNSEEN).sum())
        return NormalTail(self.among, self.first + unseen) if unseen else self

    def plainly_passed(self, z: FloatArray) -> FloatArray:
        """Return `passed` for x = 1."""
        if not len(self.steps):
            return np.zeros(len(z))
        cdf, survival, density = values_at(NORMAL, z, self.items.points)
        rates = density / cdf
        # Where next to nothing is above z each item adds its rate times all steps before it.
        result: FloatArray = (self._weights[1] - self.costs[0] * self._weights[0]) @ rates
        dense = np.flatnonzero(self._weights[0] @ survival > _NOTHING)
        step = max(1, _CHUNK // len(self.steps))
        for part in (dense[start : start + step] for start in range(0, len(dense), step)):
            log_none, rate = self.items.behind(np.stack([np.log1p(-survival[:, part]), rates[:, part]]))
            result[part] = self.steps @ (np.exp(log_none) * rate)
        return result


AnyTail = Tail | NormalTail
"""Rare items, whatever their noise is."""


def _segments(behind: FloatArray, sizes: FloatArray, orders: int, most: float) -> Array:
    """Return where segments begin, from `Σ o r` over the items behind each group, [group, z].

    A segment holds at most `most − n q`, with q the largest `o r` of an item; its first group does not count.
    """
    each = (behind[:-1] - behind[1:]).max(axis=1)
    masses = np.append(0.0, np.cumsum(each)).tolist()
    limits = np.append(np.maximum(most - orders * each / sizes[1:], 0.0), 0.0).tolist()
    found, place = [], 0
    while place < len(masses):
        found.append(place)
        # Of those that count the next group has the largest odds.
        place = bisect_right(masses, masses[place] + limits[place], place + 1)
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
