"""The integrands of noisy_expectations.py at some neighbouring values z; notation and formulas are told there."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpselect._arrays import ComplexArray, FloatArray
from dpselect.forecast.binomials import binomial, log_binomial, logarithms
from dpselect.forecast.contour import Circle, log_scales
from dpselect.forecast.mistake_below import Below
from dpselect.forecast.mistake_nodes import Groups
from dpselect.forecast.mistake_upper import Upper
from dpselect.forecast.normal_tails import AnyTail

_SURE = -34.0
_FARTHEST = 1e6
_DEVIATIONS = 26.0


@dataclass(frozen=True, repr=False)
class Chunk:
    """All groups at neighbouring values z, those from `last` on in a tail."""

    above: Upper
    below: Below

    @classmethod
    def of(cls, groups: Groups, z: FloatArray, log_radius: FloatArray, last: int, tail: AnyTail) -> Chunk:
        """Return what is known at each z before any circle is drawn."""
        return cls(Upper.of(groups, z, log_radius), Below.of(groups, last, tail, z, log_radius))

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

    @cached_property
    def _beside_law(self) -> Circle:
        """The same points for what is multiplied by the law."""
        return self.circle.beside(self.law)

    def both(self) -> FloatArray:
        """Return what is lost of `above`, and then what `chosen` does."""
        return np.concatenate([self.missing(), self.chosen()])

    def missing(self) -> FloatArray:
        """Return what is lost of `above`."""
        fewer, (near,) = self.above.groups.noisy.k - 1, self.above.marked(self._beside_law)
        return self.circle.more_than(fewer, self.law * near, self.log_scale, self.above.standing())[None]

    def chosen(self) -> FloatArray:
        """Return how many of `below` are chosen, what that costs, and how much the lowest of all does."""
        k, log_radius, whole = self.above.groups.noisy.k, self.circle.log_radius, self.below.surely()
        # A bound on the logarithm of P[N >= k] for r > 1.
        if ((log_radius > 0) & (self.log_scale - k * log_radius < _SURE)).all():
            return whole
        return self.circle.at_most(k - 1, self.law * self.below.chosen(self._beside_law), self.log_scale, whole)

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
