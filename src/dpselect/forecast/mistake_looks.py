"""Integrals of mistakes by looks at what concerns the further items; mistake_smooth.py tells where, and what errs."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.polynomial import chebyshev

from dpselect._arrays import ComplexArray, FloatArray
from dpselect.forecast.contour import Circle, real_times
from dpselect.forecast.mistake_below import Below
from dpselect.forecast.mistake_nodes import Groups
from dpselect.forecast.mistake_upper import Upper
from dpselect.forecast.noisy import log_series
from dpselect.forecast.normal_tails import AnyTail
from dpselect.forecast.panels import chebyshev_points

_PLAIN, _MORE_PLAIN, _FEW_POINTS = 10, 12, 28
_PLAIN_CHUNK = 96
_LAST = 4
_DOUBT, _FASTEST, _SLOWEST = 5e-10, 0.1, 0.9
_LOST, _CHOSEN, _DEPTH = 0, slice(1, None), 3
"""Where `Sums` have what is lost, what is chosen, and of that how far the lowest lies below rank k."""


@dataclass(frozen=True, repr=False)
class Looks:
    """Chebyshev points of some variable, and the matrix from functions there to those at given places.

    Then the last few terms of their polynomials at these places, [place, term], and what leads to their coefficients,
    [term, look]: what these contribute tells how much those left out would (`left_out`).
    """

    values: FloatArray
    matrix: FloatArray
    last: FloatArray
    to_last: FloatArray

    @classmethod
    def between(cls, places: FloatArray, number: int, inset: float = 0.0) -> Looks:
        """Return looks between the least and the largest of some values of the variable, or so far from both ends.

        That is a share of their distance. Where next to nothing happens at both ends, polynomials may be less exact
        there; what their last terms contribute tells whether they are.
        """
        low, high = float(places.min()), float(places.max())
        middle, half = (low + high) / 2, (0.5 - inset) * (high - low)
        points, transform = chebyshev_points(number)
        terms = chebyshev.chebvander((places - middle) / half, number - 1)
        last = terms[:, -_LAST:].astype(np.float64)
        return cls(middle + half * points, terms @ transform, last, transform[-_LAST:])


def plain_looks(points: int) -> tuple[int, ...]:
    """Return how many looks are tried for x = 1, one after the other, where circles have so many points."""
    return _PLAIN + points // 2, _PLAIN + points // 2 + _MORE_PLAIN


def surely_chosen(
    groups: Groups, last: int, tail: AnyTail, z: FloatArray, weights: FloatArray, points: int = _FEW_POINTS
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
    result, (more, rare) = np.zeros(3) if found is None else found, tail.for_one()
    for part in (slice(start, start + _PLAIN_CHUNK) for start in range(0, len(z), _PLAIN_CHUNK)):
        below = Below.of(groups, last - more, rare, z[part], np.zeros_like(z[part]))
        result = result + below.surely() @ weights[part]
    return result


def _surely_by_looks(
    groups: Groups, last: int, tail: AnyTail, z: FloatArray, weights: FloatArray, points: int
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
        terms = (found @ looks.to_last.T) * (factors @ looks.last)
        if enough(left_out(terms.T), result):
            return result
    return None


def left_out(last: FloatArray) -> FloatArray:
    """Return how much is left out behind the last four terms, from what these contribute, [term, result].

    Terms fall like a geometric sequence or faster, so that the last two are to the two before them as all further ones
    are to the last two; what is left out counts twice, for it also falls on terms before it. A very fast fall is not
    trusted; where there is none, all of them are rounding errors, or too few.
    """
    earlier, latest = np.abs(last).reshape(2, -1, last.shape[1]).sum(axis=1)
    ratio = np.clip(np.divide(latest, earlier, out=np.ones_like(latest), where=earlier > 0), _FASTEST, _SLOWEST)
    result: FloatArray = 2 * latest * ratio / (1 - ratio)
    return result


def enough(doubt: FloatArray, results: FloatArray) -> bool:
    """Return whether next to nothing of results is left out."""
    return bool((doubt <= _DOUBT * np.abs(results)).all())


@dataclass(repr=False)
class Sums:
    """Sums over nodes of what is lost above rank k; of how many are chosen below it, their cost, and the lowest one's.

    Of the groups from some one on, `logs` are the logarithms of their law at looks, [look, angle], `chosen` what is
    chosen of them, and `none` the logarithms of the chance that none is above z and of `Σ f/F`. All groups before them
    count at each node: what they add to the sums, and what each of the last terms contributes to that, is `direct`.
    What the further ones add is `chosen` times the shares of looks, which `by_look` collects.
    """

    looks: Looks
    circle: Circle
    logs: ComplexArray
    log_scale: FloatArray
    chosen: ComplexArray
    none: FloatArray
    direct: FloatArray
    by_look: ComplexArray
    by_last: ComplexArray
    whole: float = 0.0

    @classmethod
    def of(cls, looks: Looks, upper: Upper, below: Below) -> Sums:
        """Return empty sums, from all groups at looks."""
        off = np.abs(upper.mean + below.mean - upper.groups.noisy.k).max()
        circle = Circle.of(below.near.log_radius, upper.variance + below.variance, off=2 * float(off))
        logs, number = below.log_law(circle), len(looks.values)
        return cls(
            looks,
            circle,
            logs,
            below.log_scale,
            below.chosen(circle),
            np.stack(below.none_above()) if upper.has_nearest else np.zeros((2, number)),
            np.zeros((1 + _LAST, 4)),
            np.zeros(((1 + _LAST) * number, len(circle.angles)), dtype=np.complex128),
            np.zeros((_LAST, len(circle.angles)), dtype=np.complex128),
        )

    def add(self, part: slice, upper: Upper, weights: FloatArray) -> None:
        """Add some nodes, for which the groups before the further ones are given."""
        matrix, ending, circle = self.looks.matrix[part], self.looks.last[part], self.circle
        circle = replace(circle, log_radius=upper.near.log_radius)
        log_scale, fewer = upper.log_scale + matrix @ self.log_scale, upper.groups.noisy.k - 1
        kernel, law = circle.kernel(fewer, log_scale) * weights[:, None], upper.law(circle)
        if upper.has_nearest:
            laws, (log_none, log_rate) = upper.nearest_laws(circle), self.none @ matrix.T
            depths = (kernel * law * upper.depths(laws, log_none, np.exp(log_rate))).real.sum(axis=1)
            self.direct[0, _DEPTH] += depths.sum()
            self.direct[1:, _DEPTH] += (
                ending.T @ depths * (self.looks.to_last @ (self.log_scale + self.none.sum(axis=0)))
            )
            law *= laws[-1]
        law *= np.exp(real_times(matrix, self.logs))
        kernel *= law
        log_last = real_times(self.looks.to_last, self.logs + self.log_scale[:, None])
        for place, near in enumerate(upper.marked(circle.beside(law))):
            marked = kernel * near
            self.direct[0, place] += marked.real.sum()
            self.direct[1:, place] += (real_times(ending.T, marked) * log_last).real.sum(axis=1)
        self.whole += float(upper.standing() @ (weights / (1 + np.exp(circle.number * circle.log_radius))))
        each = np.concatenate([np.ones((len(ending), 1)), ending], axis=1)
        self.by_look += real_times((each[:, :, None] * matrix[:, None]).reshape(len(ending), -1).T, kernel)
        self.by_last += real_times(ending.T, kernel)

    def result(self) -> tuple[float, FloatArray, FloatArray]:
        """Return what is lost, then what is chosen; and how much is left out of each of the four."""
        shares = self.by_look.reshape(1 + _LAST, *self.logs.shape).copy()
        shares[1:] *= real_times(self.looks.to_last, self.logs + self.log_scale[:, None])[:, None]
        shares[1:] += self.looks.to_last[..., None] * self.by_last[:, None]
        found = self.direct.copy()
        found[:, _CHOSEN] += (self.chosen * shares[:, None]).real.sum(axis=(2, 3))
        return self.whole - float(found[0, _LOST]), found[0, _CHOSEN], left_out(found[1:])
