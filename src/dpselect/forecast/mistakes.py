"""Expected number of wrong items, and the score they cost, when the k largest of `a_i + Z_i` are chosen.

Notation as in noisy.py. With N the number of other items above z, an item at z

* of lower score than rank k is chosen, and wrong, if `N < k`: `∫ f P[N < k] dz`;
* of higher score is missing if `N >= k`: `∫ f P[N >= k] dz`;
* tied with rank k is surplus if it is chosen and r other tied items, as many as the top k has, are above it.

With A items above missing and B below chosen, `max(A, B)` are wrong: B, and the tied ones that are too many. The law of
N is a product of `1 − p + p e^{iθ}` over items with `p = S(z − a)`, summed over points of the unit circle.

The error is about `tolerance` times the result, or 1e-12 of k items, or of their cost.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpselect._arrays import Array, ComplexArray, FloatArray
from dpselect.forecast.noisy import Circle, NoisyItems, binomial_law, more_than
from dpselect.forecast.quadrature import PANEL, Gridded, integrate, panel_edges, support
from dpselect.sampling.noise import Noise

_LIGHT, _ORDERS = 0.05, 10
"""Items with p below 1/20 enter through the first 10 powers of p: a relative error of 0.1^10."""

_ROUNDING = 1e-13
"""Absolute error allowed in each panel of an integral."""

_WIDEST, _FEW = 3.0, 100
"""Nodes z that are evaluated together span at most _WIDEST, unless there are at most _FEW groups."""


@dataclass(frozen=True)
class Mistakes:
    """Expected number of wrong items, and by how much their scores fall short of the top k's."""

    wrong: float
    lost: float


def expected_mistakes(items: NoisyItems, costs: FloatArray, inexact: float, tolerance: float) -> Mistakes:
    """Return the expected mistakes.

    `costs` holds how far each group's score is from that of rank k, `inexact` the probability of any mistake, which
    bounds the result where mistakes are too rare for the integrals.
    """
    if not inexact:
        return Mistakes(0.0, 0.0)
    costs = costs[: len(items.sizes)]
    scale = float(costs.max()) or 1.0
    counted = _Counted.of(items, costs / scale)
    low, high = items.range

    def logs(z: FloatArray) -> FloatArray:
        result: FloatArray = np.log(np.maximum(counted.at(z).max(axis=0), 0.0))[None]
        return result

    with np.errstate(all="ignore"):
        ranges = [*support(logs, low, high, depth=35.0), items.exact_ranges[1]]
        edges = panel_edges(ranges, items.kinks)
        chosen, cost_below, cost_above, crowded = integrate(counted.at, edges, tolerance, absolute=_ROUNDING).tolist()
    wrong = min(max(chosen + crowded, inexact), items.k * inexact)
    least = float(costs[costs > 0].min(initial=scale))
    return Mistakes(wrong, min(max((cost_below + cost_above) * scale, least * inexact), 2 * scale * wrong))


@dataclass(frozen=True, repr=False)
class _Counted:
    """The groups with three weights each: wrong items chosen, their cost, and the cost of missing items."""

    items: NoisyItems
    weights: FloatArray
    crowded: bool
    gridded: Gridded

    @classmethod
    def of(cls, items: NoisyItems, costs: FloatArray) -> _Counted:
        below = np.arange(len(items.sizes)) > items.border
        rows = [below * items.sizes, below * items.sizes * costs, ~below * items.sizes * costs]
        crowded = float(items.sizes[items.border]) > items.room
        sizes = items.sizes.copy()
        if crowded:
            # The border group stands apart where some of its items may be too many.
            sizes[items.border] = 0.0
        return cls(items, np.array(rows), crowded, Gridded(items.locations, np.vstack([sizes, rows])))

    def at(self, z: FloatArray) -> FloatArray:
        """Return the integrands: wrong items chosen, their cost, cost of missing items, tied items too many."""
        result = np.zeros((4, len(z)))
        start, few = 0, len(self.items.sizes) <= _FEW
        while start < len(z):
            near = z[start : start + PANEL]
            stop = start + (len(near) if few else int((np.abs(near - near[0]) <= _WIDEST).sum()))
            result[:, start:stop] = self._together(z[start:stop])
            start = stop
        return np.where(np.isfinite(result), result, 0.0)

    def _together(self, z: FloatArray) -> FloatArray:
        """Return the integrands at values of z that are close to each other."""
        items, border = self.items, self.items.border
        noise, k = items.noise, items.k
        least = noise.survival(float(z.max()) - items.locations)
        most = noise.survival(float(z.min()) - items.locations)
        certain = int((least == 1.0).sum())
        light = max(int((most > _LIGHT).sum()), certain)
        apart = self.crowded and certain <= border
        heavy = np.arange(certain, light)
        heavy = heavy[heavy != border] if apart else heavy
        x = z - items.locations[heavy, None]
        others, shares, density = noise.cdf(x), noise.survival(x), noise.density(x)
        series = _Light.of(items.noise, *self.gridded.since(light), z)
        tied = z - items.locations[border]
        tied_share, tied_other, tied_density = noise.survival(tied), noise.cdf(tied), noise.density(tied)
        size = float(items.sizes[border]) if apart else 0.0
        sure = float(items.ends[certain - 1]) if certain else 0.0
        sizes = items.sizes[heavy]
        mean = sure + sizes @ shares + series.powers[0] + size * tied_share
        variance = sizes @ (shares * others) + series.powers[0] + size * tied_share * tied_other
        whole = self.weights[:, heavy] @ density + series.marks[:, 0]
        if certain:
            whole += self.weights[:, :certain] @ noise.density(z - items.locations[:certain, None])
        result = np.zeros((4, len(z)))
        tail = 10.0 + np.sqrt(100.0 + 70.0 * variance)
        few, many = mean + tail < k, mean - tail > k
        result[:2] = np.where(few, whole[:2], 0.0)
        result[2] = np.where(many, whole[2], 0.0)
        if apart:
            at_least = more_than(items.room - 1, size - 1, np.log(tied_share))
            result[3] = np.where(few, size * tied_density * at_least, 0.0)
        undecided = np.flatnonzero(~(few | many))
        if not len(undecided):
            return result
        circle = Circle.of(float(variance[undecided].max()), float(np.abs(mean - k)[undecided].max()))
        shares, others, density = shares[:, undecided], others[:, undecided], density[:, undecided]
        law = circle.law(shares, others, sizes)
        law *= series.law(undecided, circle) * np.exp(1j * sure * circle.angles)
        if apart:
            own, other, at_z = tied_share[undecided], tied_other[undecided], tied_density[undecided]
            logs = np.log1p(-own) if own.max() < 0.5 else np.log(other), np.log(own)
            counts, above = binomial_law(size - 1, items.room, k - 1, *logs)
            surplus = circle.sum_below(k, law * circle.transform(counts, above)) + above.sum(axis=0) / 2
            result[3, undecided] = size * at_z * surplus
            law *= circle.law(own[None], other[None], np.array([size]))
        for row in range(3):
            part = self.weights[row, heavy]
            used = np.flatnonzero(part)
            marked = circle.marked(shares[used], part[used, None] * density[used])
            marked += series.marked(row, undecided, circle)
            fewer = circle.sum_below(k, law * marked)
            half = whole[row, undecided] / 2
            # Certain items are above z; the density of one at z is too small to change the sum.
            result[row, undecided] = half - fewer if row == 2 else half + fewer
        return result


@dataclass(frozen=True, repr=False)
class _Light:
    """Items with small p, by the sums of `m p^j` [j, z] and of `w f (−p)^j` [row of weights, j, z]."""

    powers: FloatArray
    marks: FloatArray

    @classmethod
    def of(cls, noise: Noise, locations: FloatArray, rows: FloatArray, z: FloatArray) -> _Light:
        """Return the sums for items at some locations; the rows are their sizes, and weights of mistakes."""
        x = z - locations[:, None]
        share, term = noise.survival(x), noise.density(x)
        power = np.ones_like(share)
        powers, marks = np.zeros((_ORDERS, len(z))), np.zeros((len(rows) - 1, _ORDERS, len(z)))
        for order in range(_ORDERS):
            marks[:, order] = rows[1:] @ term
            term = term * -share
            power = power * share
            powers[order] = rows[0] @ power
        return cls(powers, marks)

    def law(self, nodes: Array, circle: Circle) -> ComplexArray:
        """Return `exp(Σ m log(1 + p y))`, `y = e^{iθ} − 1`, as [z, angle]."""
        orders = np.arange(1, _ORDERS + 1)
        series = -((1 - circle.turns) ** orders[:, None]) / orders[:, None]
        result: ComplexArray = np.exp(self.powers[:, nodes].T @ series)
        return result

    def marked(self, row: int, nodes: Array, circle: Circle) -> ComplexArray:
        """Return `Σ w f / (1 + p y)` as [z, angle]."""
        series = (circle.turns - 1) ** np.arange(_ORDERS)[:, None]
        result: ComplexArray = self.marks[row][:, nodes].T @ series
        return result
