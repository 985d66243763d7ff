"""Mistakes where much is undecided: what concerns the items from rank k on is computed at few z, and interpolated.

Where a range of z holds no kink of theirs, and log r is a polynomial in z, everything about these items is analytic in
z. Poles lie where some `F + S x` vanishes, which is far from the range unless θ is near π. There the law of all items
is small, `exp(−v (1 − cos θ))` or less with v its variance. Noise that is never negative has poles near z = 0 too, and
is interpolated in log z. For x = 1 all of it is interpolated in `e^{−z/2}`.

Error: it falls by a constant factor with each further look. What each of the last four terms of the polynomials
contributes to a result is computed beside it; tests find that the error is a tenth of their sum or less. Where that is
more than 1e-8 of the result, more looks are taken, and at last nodes one by one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cache, cached_property

import numpy as np
from numpy.polynomial import chebyshev

from dpselect.forecast.chances import FloatArray
from dpselect.forecast.contour import Circle, real_times
from dpselect.forecast.mistake_below import Below
from dpselect.forecast.mistake_nodes import Groups, Nodes, densest
from dpselect.forecast.mistake_reach import Reach
from dpselect.forecast.mistake_upper import Upper
from dpselect.forecast.noisy import log_series
from dpselect.forecast.panels import BoolArray
from dpselect.forecast.tails import Tail

SMOOTH, KINKED, ONE_SIDED = (8.0, 13.0, 20.0), (3.0, 14.0, 2.4), (2.0, 12.0, 4.6)
"""For which noise from which variance v on looks are all but never too few, and how many are tried first.

That is a + b/√v, and for noise with kinks a + b times how far the variable spans, or 1.
"""
_MORE, _MOST, _FARTHEST = 6, 38, 3.2
_PLAIN, _MORE_PLAIN, _FEW_POINTS = 10, 12, 28
_FEWEST, _NEAREST = 36, 48
_SPOTS = chebyshev.chebpts2(10).astype(np.float64)
_TO_FIT = np.linalg.pinv(chebyshev.chebvander(_SPOTS, 5))
_WIDEST = 30.0
_CHUNK, _PLAIN_CHUNK = 512, 52
_LAST, _DOUBT = 4, 1e-8
_UNSEEN = 28.0


@dataclass(frozen=True, repr=False)
class Looks:
    """Chebyshev points of some variable, and the matrix from functions there to those at given places.

    Then the last few terms of their polynomials at these places, [place, term], and what leads to their coefficients,
    [term, look]: they contribute more than those left out would.
    """

    values: FloatArray
    matrix: FloatArray
    last: FloatArray
    to_last: FloatArray

    @classmethod
    def between(cls, places: FloatArray, number: int) -> Looks:
        """Return looks between the least and the largest of some values of the variable."""
        low, high = float(places.min()), float(places.max())
        middle, half = (low + high) / 2, (high - low) / 2
        points, transform = _chebyshev(number)
        terms = chebyshev.chebvander((places - middle) / half, number - 1)
        last = terms[:, -_LAST:].astype(np.float64)
        return cls(middle + half * points, terms @ transform, last, transform[-_LAST:])


@cache
def _chebyshev(number: int) -> tuple[FloatArray, FloatArray]:
    """Return so many Chebyshev points, and the matrix from values there to the coefficients of their polynomial."""
    points = chebyshev.chebpts1(number).astype(np.float64)
    transform = chebyshev.chebvander(points, number - 1).T.astype(np.float64) * (2 / number)
    transform[0] /= 2
    return points, transform


def plain_looks(points: int) -> tuple[int, ...]:
    """Return how many looks are tried for x = 1, one after the other, where circles have so many points."""
    return _PLAIN + points // 2, _PLAIN + points // 2 + _MORE_PLAIN


def surely_chosen(
    groups: Groups, last: int, tail: Tail, z: FloatArray, weights: FloatArray, points: int = _FEW_POINTS
) -> FloatArray:
    """Return the integrals of `Below.surely`, where circles have so many points, or none are needed.

    For noise with a series all of it is `e^{−z}` times a function that is smooth in `e^{−z/2}`.
    """
    noise = groups.noisy.noise
    # Below rank k there may be kinks.
    smooth = (z > 0) | (not noise.kinks) if log_series(noise.name) is not None else np.zeros(len(z), dtype=bool)
    found = _surely_by_looks(groups, last, tail, z[smooth], weights[smooth], points)
    if found is not None:
        z, weights = z[~smooth], weights[~smooth]
    return sum(
        (
            Below.of(groups, last, tail, z[part], np.zeros_like(z[part])).surely() @ weights[part]
            for part in (slice(start, start + _PLAIN_CHUNK) for start in range(0, len(z), _PLAIN_CHUNK))
        ),
        start=np.zeros(3) if found is None else found,
    )


def _surely_by_looks(
    groups: Groups, last: int, tail: Tail, z: FloatArray, weights: FloatArray, points: int
) -> FloatArray | None:
    """Return the same where all is smooth, None if that takes more looks than there are z."""
    for number in plain_looks(points):
        if len(z) <= number:
            break
        base = float(z.min())
        looks = Looks.between(np.exp((base - z) / 2), number)
        at = base - 2 * np.log(looks.values)
        found = Below.of(groups, last, tail, at, np.zeros_like(at)).surely() / looks.values**2
        factors = np.exp(base - z) * weights
        result = found @ (factors @ looks.matrix)
        doubt = np.abs((found @ looks.to_last.T) * (factors @ looks.last)).sum(axis=1)
        if (doubt <= _DOUBT * np.abs(result)).all():
            return result
    return None


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

    @classmethod
    def of(cls, reach: Reach, nodes: Nodes) -> Smooth | None:
        """Return the nodes with some mistake undecided for which looks suffice; None if these are few."""
        noise, k, locations = reach.noisy.noise, reach.noisy.k, reach.noisy.locations[reach.border :]
        where = (nodes.missing & ~nodes.settled) | (nodes.chosen & ~nodes.empty)
        one_sided = bool(noise.cdf(np.zeros(1))[0] == 0)
        least_variance, few, more = SMOOTH
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
        span = max(high - low, 1.0) if one_sided or low < 0 else min(max(high - low, 1.0), _FARTHEST)
        looks = math.ceil(few + more * (span if noise.kinks else float(variance.min()) ** -0.5))
        return cls(nodes.only(where), where, first, places, fit, one_sided, (looks, looks + _MORE, _MOST))

    @cached_property
    def log_radius(self) -> FloatArray:
        """The logarithm of r at each node."""
        return self.fit(self.places)

    @property
    def lowest(self) -> float:
        """The least `z − max(log r, 0)`."""
        return float((self.nodes.z - np.maximum(self.log_radius, 0.0)).min())

    @property
    def densest(self) -> float:
        """The least `z − log r`, or z where x = 1 counts."""
        return densest(self.nodes.z, self.log_radius)

    def integrals(self, groups: Groups, last: int, tail: Tail, sure: Nodes) -> tuple[float, FloatArray] | None:
        """Return what is lost of `above`; and how many of `below` are chosen, their cost, and the lowest one's.

        The latter include what is surely chosen at further nodes. None if looks turn out to be too few.
        """
        tried = (self._by_looks(Looks.between(self.places, number), groups, last, tail, sure) for number in self.looks)
        return next((found for found in tried if found is not None), None)

    def _by_looks(
        self, looks: Looks, groups: Groups, last: int, tail: Tail, sure: Nodes
    ) -> tuple[float, FloatArray] | None:
        at, log_radius = np.exp(looks.values) if self.one_sided else looks.values, self.fit(looks.values)
        below = Below.of(groups, last, tail, at, log_radius, self.first)
        circle = self._circle(Upper.of(groups, at, log_radius, self.first), below)
        logs, chosen = below.log_law(circle), below.chosen(circle)
        log_scale, law = looks.matrix @ below.log_scale, np.exp(real_times(looks.matrix, logs))
        log_last = real_times(looks.to_last, logs + below.log_scale[:, None])
        nearest = self.first > groups.border
        if nearest:
            none = np.stack(below.none_above())
            log_none, log_rate = none @ looks.matrix.T
            none_last = looks.to_last @ (below.log_scale + none.sum(axis=0))
        # First the sums, then what each of the last terms contributes to them. Of what is lost above rank k, what is
        # chosen, its cost and how far the lowest lies below: as far as the groups before the first are concerned.
        direct, whole = np.zeros((1 + _LAST, 4)), 0.0
        sums = np.zeros(((1 + _LAST) * len(logs), logs.shape[1]), dtype=np.complex128)
        last_sums = np.zeros((_LAST, logs.shape[1]), dtype=np.complex128)
        for start in range(0, len(self.nodes.z), _CHUNK):
            part = slice(start, start + _CHUNK)
            weights, matrix, ending = self.nodes.weights[part], looks.matrix[part], looks.last[part]
            upper = Upper.of(groups, self.nodes.z[part], self.log_radius[part], self.first)
            own = replace(circle, log_radius=self.log_radius[part])
            kernel = own.kernel(groups.noisy.k - 1, upper.log_scale + log_scale[part]) * weights[:, None]
            whole_law = upper.law(own)
            if nearest:
                laws = upper.nearest_laws(own)
                depths = kernel * whole_law * upper.depths(laws, log_none[part], np.exp(log_rate[part]))
                direct[0, 3] += depths.real.sum()
                direct[1:, 3] += ending.T @ depths.real.sum(axis=1) * none_last
                whole_law *= laws[-1]
            whole_law *= law[part]
            kernel, own = kernel * whole_law, own.beside(whole_law)
            for place, near in enumerate([upper.marked(own), *(upper.nearest_marked(own) if nearest else [])]):
                marked = kernel * near
                direct[0, place] += marked.real.sum()
                direct[1:, place] += (real_times(ending.T, marked) * log_last).real.sum(axis=1)
            whole += upper.missing() @ (weights / (1 + np.exp(own.number * own.log_radius)))
            each = np.concatenate([np.ones((len(ending), 1)), ending], axis=1)
            sums += real_times((each[:, :, None] * matrix[:, None]).reshape(len(ending), -1).T, kernel)
            last_sums += real_times(ending.T, kernel)
        shares = sums.reshape(1 + _LAST, *logs.shape)
        shares[1:] *= log_last[:, None]
        shares[1:] += looks.to_last[..., None] * last_sums[:, None]
        direct[:, 1:] += (chosen * shares[:, None]).real.sum(axis=(2, 3))
        doubt = np.abs(direct[1:]).sum(axis=0)
        plain = replace(circle, log_radius=self.log_radius).counted
        # For x = 1 all of it may change faster, and counts where r^M does.
        seen = self.log_radius * circle.number > -_UNSEEN
        z, weights = np.append(self.nodes.z[seen], sure.z), np.append((self.nodes.weights * plain)[seen], sure.weights)
        lost_above, found = whole - direct[0, 0], direct[0, 1:] + surely_chosen(groups, last, tail, z, weights, circle.number)
        if not (doubt <= _DOUBT * np.abs(np.append(lost_above, found))).all():
            return None
        return float(lost_above), found

    @staticmethod
    def _circle(upper: Upper, below: Below) -> Circle:
        """Return angles that are enough for all z."""
        off = np.abs(upper.mean + below.mean - upper.groups.noisy.k).max()
        return Circle.of(below.near.log_radius, upper.variance + below.variance, off=2 * float(off))
