"""The integrands of noisy_expectations.py at some neighbouring values z; notation and formulas are told there."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpselect.forecast.binomials import binomial, log_binomial, logarithms
from dpselect.forecast.chances import FloatArray
from dpselect.forecast.contour import Circle, ComplexArray, log_scales
from dpselect.forecast.mistake_below import Below
from dpselect.forecast.mistake_nodes import Groups
from dpselect.forecast.tails import Tail
from dpselect.forecast.tilted import Tilted

_SURE = -34.0
_FARTHEST = 1e6
_DEVIATIONS = 26.0


@dataclass(frozen=True, repr=False)
class Above:
    """The groups above rank k's from the first on that matters at some z; those before it are surely above z."""

    groups: Groups
    first: int
    near: Tilted

    @classmethod
    def of(cls, groups: Groups, z: FloatArray, log_radius: FloatArray) -> Above:
        """Return the groups at each z."""
        first = groups.first_seen(z)
        return cls(groups, first, groups.tilted(slice(first, groups.border), z, log_radius))

    @property
    def certain(self) -> float:
        """How many items are surely above z."""
        return float(self.groups.noisy.ends[self.first - 1]) if self.first else 0.0

    @property
    def log_scale(self) -> FloatArray:
        """The logarithm of `Π (F + S r)`."""
        return self.near.log_scale + self.certain * self.near.log_radius

    @property
    def variance(self) -> FloatArray:
        """The tilted variance."""
        result: FloatArray = self.near.variances.sum(axis=0)
        return result

    def law(self, circle: Circle) -> ComplexArray:
        """Return `Π (1 + p y)`."""
        result: ComplexArray = np.exp(1j * self.certain * circle.angles) * self.near.law(circle)
        return result

    def marked(self, circle: Circle) -> tuple[ComplexArray, FloatArray]:
        """Return `Σ f / (F + S x)`, weighted by costs, and the same for x = 1."""
        weights = self.near.sizes * self.groups.costs[self.first : self.groups.border]
        (near,) = self.near.marked([weights], circle)
        return near, weights @ self.near.density


@dataclass(frozen=True, repr=False)
class Chunk:
    """All groups at neighbouring values z, those from `last` on in a tail."""

    above: Above
    below: Below

    @classmethod
    def of(cls, groups: Groups, z: FloatArray, log_radius: FloatArray, last: int, tail: Tail) -> Chunk:
        """Return what is known at each z before any circle is drawn."""
        return cls(Above.of(groups, z, log_radius), Below.of(groups, last, tail, z, log_radius))

    @cached_property
    def log_scale(self) -> FloatArray:
        """The logarithm of `Π (F + S r)`."""
        return self.above.log_scale + self.below.log_scale

    @cached_property
    def circle(self) -> Circle:
        """The points x."""
        return Circle.of(self.below.near.log_radius, self.above.variance + self.below.variance)

    @cached_property
    def law(self) -> ComplexArray:
        """`Π (1 + p y)` over all groups."""
        return self.above.law(self.circle) * self.below.law(self.circle)

    def both(self) -> FloatArray:
        """Return what is lost of `above`, and then what `chosen` does."""
        return np.concatenate([self.missing(), self.chosen()])

    def missing(self) -> FloatArray:
        """Return what is lost of `above`."""
        near, whole = self.above.marked(self.circle)
        return self.circle.more_than(self.above.groups.noisy.k - 1, self.law * near, self.log_scale, whole)[None]

    def chosen(self) -> FloatArray:
        """Return how many of `below` are chosen, what that costs, and how much the lowest of all does."""
        k, log_radius, whole = self.above.groups.noisy.k, self.circle.log_radius, self.below.surely()
        # A bound on the logarithm of P[N >= k] for r > 1.
        if ((log_radius > 0) & (self.log_scale - k * log_radius < _SURE)).all():
            return whole
        return self.circle.at_most(k - 1, self.law * self.below.chosen(self.circle), self.log_scale, whole)

    def crowded(self) -> FloatArray:
        """Return how many tied items are chosen beyond `room`.

        Such an item has `room` or more of the others above it; of all but the tied ones enough are not.
        """
        near, fewer, room = self.below.near, self.above.groups.noisy.k - 1, self.above.groups.room
        size = float(near.sizes[0])
        at_z = size * near.density[0]
        plain = binomial(size - 1, *logarithms(near.cdf[0], near.survival[0]), room, fewer)
        log_counts = log_binomial(size - 1, *logarithms(near.others[0], near.shares[0]), room, fewer)
        # Where none can be above z all counts vanish.
        most = log_counts.max(axis=0, initial=-_FARTHEST)
        counts, numbers = np.exp(log_counts - most), np.arange(len(log_counts))
        total = np.maximum(counts.sum(axis=0), np.finfo(np.float64).tiny)
        mean, square = (numbers**power @ counts / total for power in (1, 2))
        spread = float(np.sqrt(np.maximum(square - mean**2, 0.0).max()))
        # Cut off at `room`, their number is log-concave, with tails like e^{1−t} at t deviations; and bounded.
        circle = Circle.of(
            near.log_radius,
            self.above.variance + self.below.untied_variance,
            off=min(float(len(numbers)), _DEVIATIONS * spread),
        )
        turns = np.exp(1j * np.multiply.outer(numbers, circle.angles))
        terms = at_z[:, None] * self.above.law(circle) * self.below.law(circle, tied=False) * (counts.T @ turns)
        log_scale = self.above.log_scale + self.below.log_scale + most
        log_scale -= log_scales(near.cdf[0], near.survival[0], near.log_radius, size)
        return circle.at_most(fewer, terms, log_scale, at_z * plain.sum(axis=0))[None]
