"""All items so far below z that each is above it with a small chance, taken together by power sums.

Notation: `t = e^{a − z}` of an item at a. Far out `log F = −Σ c_j t^j`, hence `f/F = Σ j c_j t^j` and the odds
`o = S/F = exp(Σ c_j t^j) − 1` are series in t. So everything about these items is a polynomial in x and `τ = e^{−z}`,
whose coefficients come from the power sums `P_j(g) = Σ m e^{j a}` over some groups:

* `law = log Π (F + S x) = Σ_i x^i Σ_j G_ij τ^j P_j`, `G_i = (−1)^{i+1} o^i / i`, and `G_0 = log F`;
* `marked = Σ f / (F + S x) = Σ_i x^i Σ_j H_ij τ^j P_j`, `H_i = (−1)^i o^i f/F`, and `costly`, weighted by costs;
* `passed = Σ_g step_g Σ_{behind g} f/F / Π_{behind g} (1 + o x)`, step_g being what the next group costs more than g.

The last needs the products behind every group, and is taken by segments of neighbouring groups. With E and R the
product `Π 1/(1 + o x)` and the sum of f/F behind a segment's end, E' the product behind its start, and P(g) the product
of `1 + o x` over its groups up to g, the segment's last group adds `step E R` and the others

`E' (A + B R)`, `A = Σ_g step_g P(g) Σ_{behind g, in the segment} f/F`, `B = Σ_g step_g P(g)`.

Error: below 4e-10 of each of them. With `τ_i = c_1 e^{a_i − z}`, all these noises have `|c_j t^j| <= τ^j / j`, so that
no coefficient exceeds that of `−log F = −log(1 − τ)`, where `o = f/F = τ/(1 − τ)`. There the powers of x of P(g) add up
to `Π 1/(1 − τ_i)`. If no τ_i exceeds q and those up to g add up to M or less, the terms of order n in τ of that product
are at most those of `(1 − qs)^{−M/q}`, and with f/F, whose first order is 1, those of `(1 − qs)^{−M/q − 1}`. These are
`(M + q) (M + 2q) … (M + nq) / n!`, and from n = 10 on they are left out. With `M = 0.487 − 5.4 q` they add up to less
than 2.2e-10 for any q up to 0.04. E' is divided by the product over all of a segment; a group with more than that is a
segment by itself, whose factor is computed directly; one behind which many items are expected above z does not count
there, and may hold more. What `law` and `marked` leave out is of the order `q^10` for each item. No power of x exceeds
that of τ, so that the same holds for |x| = r > 1 if `r τ` is as small; and for r < 1 it is enough that `r τ_i` add up
to M, as no term of `log(1 + o x)` has less than one power of x.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass

import numpy as np

from dpselect._arrays import Array, ComplexArray, FloatArray
from dpselect.forecast.tail_segments import SIZE, TERMS, UNSEEN, Segments, Series, by_excess

MASS, SLOPE, EACH = 0.487, 5.4, 0.04
LAW, MARKED, COSTLY = range(3)


@dataclass(frozen=True, repr=False)
class Tail:
    """Items from a group on: coefficients [kind, i, d] of `(τ x)^i τ^d`, τ relative to a location; and segments."""

    base: float
    coefficients: FloatArray
    segments: Segments | None

    @classmethod
    def none(cls) -> Tail:
        """Return no items."""
        return cls(0.0, np.zeros((3, SIZE, SIZE)), None)

    def at(self, z: FloatArray, log_radius: FloatArray) -> FloatArray:
        """Return the coefficients [kind, z, power] of powers of e^{iθ} on the circles of these radii."""
        if self.segments is None:
            return np.zeros((len(self.coefficients), len(z), SIZE))
        powers = np.arange(SIZE)
        reach = np.exp(np.multiply.outer(powers, self.base - z))
        found = (self.coefficients @ reach) * np.exp(np.multiply.outer(powers, self.base - z + log_radius))
        return np.swapaxes(found, 1, 2)

    def for_one(self) -> tuple[int, Tail]:
        """Return how many further groups before these may be part of a tail for x = 1, and that tail."""
        return 0, self

    def plainly(self, z: FloatArray) -> FloatArray:
        """Return `Σ log F`, `Σ f/F`, and how many stand at z, plain and by costs."""
        found = self.at(z, np.zeros_like(z))
        return np.stack([found[LAW, :, 0], found[MARKED, :, 0], *found[MARKED:].sum(axis=2)])

    def passed(self, z: FloatArray, log_radius: FloatArray, turns: ComplexArray) -> ComplexArray:
        """Return `passed` as [z, angle]."""
        if self.segments is None:
            return np.zeros((len(z), len(turns)), dtype=np.complex128)
        return self.segments.passed(self.base - z, log_radius, turns)

    def plainly_passed(self, z: FloatArray) -> FloatArray:
        """Return `passed` for x = 1."""
        return np.zeros(len(z)) if self.segments is None else self.segments.plainly_passed(self.base - z)


@dataclass(frozen=True, repr=False)
class RareItems:
    """Groups below rank k, highest first: what each costs, and how much more the next one does."""

    series: FloatArray
    locations: FloatArray
    sizes: FloatArray
    costs: FloatArray
    steps: FloatArray

    def start(self, z: FloatArray, log_radius: FloatArray) -> int:
        """Return the first group from which on all are rare, on all circles."""
        return int(first_rare(self.series, self.locations, (z - np.maximum(log_radius, 0.0)).min()))

    def tails(self, starts: Array, densest: float) -> list[Tail]:
        """Return the items from each of the starts on, for `z − log r` from the densest on.

        Starts ascend, and the last may be the number of groups.
        """
        if starts[0] == len(self.sizes):
            return [Tail.none()] * len(starts)
        part = slice(starts[0], None)
        locations, sizes, costs, steps = (
            values[part] for values in (self.locations, self.sizes, self.costs, self.steps)
        )
        base = float(locations[0])
        weights = np.empty((SIZE, len(sizes)))
        weights[0], reach = sizes, np.exp(locations - base)
        for power in range(1, SIZE):
            np.multiply(weights[power - 1], reach, out=weights[power])
        series = Series.of(tuple(self.series[:TERMS]))
        law, marks = series.law, series.marks
        filled = starts[starts < len(self.sizes)] - starts[0]
        cuts, heavy = self._cuts(self.series[0] * np.exp(base - densest) * weights[1], reach, filled)
        segments = Segments.of(series, weights, steps, cuts, heavy)
        number, cost = (_sums_from(each, filled) for each in (weights, weights * costs))
        found = [
            Tail(
                base,
                by_excess(np.stack([law * number[:, i], marks * number[:, i], marks * cost[:, i]])),
                segments.since(start),
            )
            for i, start in enumerate(filled)
        ]
        return found + [Tail.none()] * (len(starts) - len(filled))

    @staticmethod
    def _cuts(masses: FloatArray, reach: FloatArray, starts: Array) -> tuple[Array, Array]:
        """Return where segments begin: at each of the starts, and often enough; and which hold too much by themselves.

        Of the groups from a start on none has more than EACH for an item.
        """
        before = np.append(0.0, np.cumsum(masses)).tolist()
        found, heavy = [], []
        for start, end in zip(starts.tolist(), [*starts[1:].tolist(), len(masses)], strict=True):
            most = (MASS - SLOPE * EACH * reach[start:end] / reach[start]).tolist()
            place = start
            while place < end:
                limit = _limit(before[place], most[place - start], before[-1])
                following = max(bisect_right(before, limit, place + 1, end + 1) - 1, place + 1)
                found.append(place)
                heavy.append(before[following] > limit)
                place = following
        return np.array(found), np.array(heavy)


def _limit(before: float, most: float, total: float) -> float:
    """Return up to which sum of masses a segment may reach if it begins at one and may hold so much.

    If more than UNSEEN is behind it, it does not count before z is so much larger that this much is, and by then it
    holds as much less.
    """
    return max(before + most, (before + most * total / UNSEEN) / (1 + most / UNSEEN))


def first_rare(series: FloatArray, locations: FloatArray, lowest: FloatArray) -> Array:
    """Return for each lowest `z − max(log r, 0)` the first group from which on all are rare."""
    result: Array = np.searchsorted(-locations, np.log(series[0] / EACH) - lowest)
    return result


def _sums_from(values: FloatArray, starts: Array) -> FloatArray:
    """Return the sums of values [power, group] from each start to the end."""
    parts = np.add.reduceat(values, starts, axis=1)
    result: FloatArray = np.cumsum(parts[:, ::-1], axis=1)[:, ::-1]
    return result
