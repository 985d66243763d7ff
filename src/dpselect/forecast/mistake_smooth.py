"""Mistakes where much is undecided: what concerns the items from rank k on is computed at few z, and interpolated.

Where a range of z holds no kink of theirs, and log r is a polynomial in z, everything about these items is analytic in
z. Poles lie where some `F + S x` vanishes, which is far from the range unless θ is near π. There the law of all items
is small, `exp(−v (1 − cos θ))` or less with v its variance. Noise that is never negative has poles near z = 0 too, and
is interpolated in log z. For x = 1 all of it is interpolated in `e^{−z/2}`. Other noise with kinks has one at every
item: of the items below rank k those that some z of the range is below, if they are few, are computed at each z, like
those above rank k.

Error: it falls by a constant factor with each further look. What each of the last four terms of the polynomials
contributes to a result is computed beside it, and tells how much the further ones would. Where that is more than 5e-10
of the result, more looks are taken, and at last nodes one by one. That is an estimate, which errors may exceed some
times over.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.polynomial import chebyshev

from dpselect._arrays import BoolArray, FloatArray
from dpselect.forecast.mistake_below import Below
from dpselect.forecast.mistake_looks import Looks, Sums, enough, surely_chosen
from dpselect.forecast.mistake_nodes import Groups, Nodes, densest
from dpselect.forecast.mistake_reach import Reach
from dpselect.forecast.mistake_upper import Upper
from dpselect.forecast.normal_tails import AnyTail

SMOOTH, NORMAL, KINKED, ONE_SIDED = (5.0, 11.5, 22.0), (5.0, 11.5, 19.0), (3.0, 16.4, 2.4), (2.0, 13.0, 4.6)
"""For which noise from which variance v on looks are hardly ever too few, and how many are tried first.

That is a + b/√v, and for noise with kinks a + b times how far the variable spans, or 1. For other noise there are more
if the mean cost of what is above z falls along it: then few items take over from many farther below. A few looks more
than are needed take less time than a second try.
"""
_MORE, _MOST = 6, 38
_MIXED, _FALLEN = 2.2, 0.7
"""How many looks more, times √v, for each e-fold by which that falls, and from how many on."""
_INSET = 0.08
"""How far from the ends looks begin, for noise without kinks."""
_SPAN_ABOVE = 3.2
"""How long a span counts at most above all kinks, where poles are farther away."""
_FEWEST, _PAYS, _PAYS_NORMAL = 36, 2.1, 1.4
"""From how many nodes on looks pay, and how many for each look; with normal noise each node takes longer."""
_NEAREST = 48
"""How many groups with kinks are computed at each node."""
_SPOTS = chebyshev.chebpts2(10).astype(np.float64)
_TO_FIT = np.linalg.pinv(chebyshev.chebvander(_SPOTS, 5))
_WIDEST = 30.0
_CHUNK = 512
_UNSEEN = 28.0


@dataclass(frozen=True, repr=False)
class Fit:
    """A polynomial between two values of a variable, by its Chebyshev coefficients."""

    low: float
    high: float
    coefficients: FloatArray

    def __call__(self, values: FloatArray) -> FloatArray:
        """Return the polynomial at some values."""
        places = (2 * values - (self.low + self.high)) / (self.high - self.low)
        return chebyshev.chebval(places, self.coefficients).astype(np.float64, copy=False)


@dataclass(frozen=True, repr=False)
class Smooth:
    """Nodes `where` all groups from the first on are smooth in the variable of `places`, if log r is a polynomial."""

    nodes: Nodes
    where: BoolArray
    first: int
    places: FloatArray
    fit: Fit
    one_sided: bool
    looks: tuple[int, ...]
    inset: float

    @classmethod
    def of(cls, reach: Reach, nodes: Nodes) -> Smooth | None:
        """Return the nodes with some mistake undecided for which looks suffice; None if these are few."""
        noise, k, locations = reach.noisy.noise, reach.noisy.k, reach.noisy.locations[reach.border :]
        where = (nodes.missing & ~nodes.settled) | (nodes.chosen & ~nodes.empty)
        one_sided = bool(noise.cdf(np.zeros(1))[0] == 0)
        least_variance, few, more = NORMAL if noise.name == "normal" else SMOOTH
        if one_sided:
            where = where & (nodes.z > nodes.z[where].max(initial=0.0) / _WIDEST)
            least_variance, few, more = ONE_SIDED
        elif noise.kinks:
            where = where & (nodes.z > locations[min(_NEAREST, len(locations) - 1)])
            least_variance, few, more = KINKED
        # Where little is undecided nodes are left out, once.
        for least in (least_variance, 0.0):
            if where.sum() < _FEWEST:
                return None
            places = np.log(nodes.z[where]) if one_sided else nodes.z[where]
            low, high = float(places.min()), float(places.max())
            spots = (high + low) / 2 + (high - low) / 2 * _SPOTS
            z = np.exp(spots) if one_sided else spots
            log_radius = reach.tilted_at(z, k)
            _, variance = reach.moments(z, log_radius)
            narrow = variance < least
            if not narrow.any():
                break
            where = where & (nodes.z > z[narrow].max())
        fit = Fit(low, high, _TO_FIT @ log_radius)
        mean, variance = reach.moments(z, fit(spots))
        if not (np.abs(mean - k) < np.sqrt(variance)).all():
            return None
        first = reach.border + (int((locations >= low).sum()) if noise.kinks and not one_sided else 0)
        span = min(max(high - low, 1.0), np.inf if one_sided or low < 0 else _SPAN_ABOVE)
        deviation = math.sqrt(float(variance.min()))
        wanted = few + more * (span if noise.kinks else 1 / deviation)
        if not noise.kinks:
            wanted += _MIXED * deviation * max(reach.falling_cost(low, high) - _FALLEN, 0.0)
        looks = math.ceil(wanted)
        if where.sum() < looks * (_PAYS_NORMAL if noise.name == "normal" else _PAYS):
            return None
        tries = looks, looks + _MORE, max(looks + 2 * _MORE, _MOST)
        return cls(nodes.only(where), where, first, places, fit, one_sided, tries, 0.0 if noise.kinks else _INSET)

    @cached_property
    def log_radius(self) -> FloatArray:
        """The logarithm of r at each node."""
        return self.fit(self.places)

    @property
    def densest(self) -> float:
        """The least `z − log r`, or z where x = 1 counts."""
        return densest(self.nodes.z, self.log_radius)

    def integrals(self, groups: Groups, last: int, tail: AnyTail, sure: Nodes) -> tuple[float, FloatArray] | None:
        """Return what is lost of `above`; and how many of `below` are chosen, their cost, and the lowest one's.

        The latter include what is surely chosen at further nodes. None if looks turn out to be too few.
        """
        tried = (
            self._by_looks(Looks.between(self.places, number, self.inset), groups, last, tail, sure)
            for number in self.looks
        )
        return next((found for found in tried if found is not None), None)

    def _by_looks(
        self, looks: Looks, groups: Groups, last: int, tail: AnyTail, sure: Nodes
    ) -> tuple[float, FloatArray] | None:
        at, log_radius = np.exp(looks.values) if self.one_sided else looks.values, self.fit(looks.values)
        upper = Upper.of(groups, at, log_radius, self.first)
        sums = Sums.of(looks, upper, Below.of(groups, last, tail, at, log_radius, self.first))
        for start in range(0, len(self.nodes.z), _CHUNK):
            part = slice(start, start + _CHUNK)
            upper = Upper.of(groups, self.nodes.z[part], self.log_radius[part], self.first)
            sums.add(part, upper, self.nodes.weights[part])
        lost, chosen, doubt = sums.result()
        plain, points = replace(sums.circle, log_radius=self.log_radius).counted, sums.circle.number
        # For x = 1 all of it may change faster, and counts where r^M does.
        seen = self.log_radius * points > -_UNSEEN
        z, weights = np.append(self.nodes.z[seen], sure.z), np.append((self.nodes.weights * plain)[seen], sure.weights)
        chosen = chosen + surely_chosen(groups, last, tail, z, weights, points)
        return (lost, chosen) if enough(doubt, np.append(lost, chosen)) else None
