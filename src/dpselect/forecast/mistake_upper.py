"""The items above rank k at some values z, and maybe the next few, as noisy_expectations.py needs them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpselect._arrays import ComplexArray, FloatArray
from dpselect.forecast.contour import Circle, factors, upto, weighted
from dpselect.forecast.mistake_below import depths_by_group
from dpselect.forecast.mistake_nodes import Groups
from dpselect.forecast.tilted import Tilted


@dataclass(frozen=True, repr=False)
class Upper:
    """The groups up to some one, from the first on that matters at some z; those before it are surely above z.

    The last of them are the `nearest`, from rank k's group on, if there are any.
    """

    groups: Groups
    first: int
    near: Tilted

    @classmethod
    def of(cls, groups: Groups, z: FloatArray, log_radius: FloatArray, end: int | None = None) -> Upper:
        """Return the groups before `end` at each z, by default those above rank k's."""
        first = groups.first_seen(z)
        end = groups.border if end is None else end
        return cls(groups, first, groups.tilted(slice(first, end), z, log_radius))

    @property
    def _place(self) -> int:
        """Where rank k's group is, or would be."""
        return self.groups.border - self.first

    @property
    def certain(self) -> float:
        """How many items are surely above z."""
        return float(self.groups.noisy.ends[self.first - 1]) if self.first else 0.0

    @property
    def mean(self) -> FloatArray:
        """How many are above z on average, tilted."""
        return self.certain + self.near.mean

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
        """Return `Π (1 + p y)` of the items above rank k."""
        result: ComplexArray = np.exp(1j * self.certain * circle.angles) * self._above.law(circle)
        return result

    @property
    def has_nearest(self) -> bool:
        """Whether there are any groups from rank k's on."""
        return len(self.near.sizes) > self._place

    def marked(self, circle: Circle) -> list[ComplexArray]:
        """Return `Σ f / (F + S x)` of the items above rank k, weighted by costs; of those below it, plain and so."""
        found = self._above.marked([self._lost], circle)
        if self.has_nearest:
            lower, start = self._lower, self.groups.border + 1
            costs = self.groups.costs[start : start + len(lower.sizes)]
            found += lower.marked([lower.sizes, lower.sizes * costs], circle)
        return found

    def standing(self) -> FloatArray:
        """Return how much of what is above rank k stands at z, weighted by costs."""
        result: FloatArray = self._lost @ self._above.density
        return result

    @cached_property
    def _above(self) -> Tilted:
        return self.near.part(slice(self._place))

    @cached_property
    def _lost(self) -> FloatArray:
        """What is lost if all of each group above rank k is missing."""
        return self._above.sizes * self.groups.costs[self.first : self.groups.border]

    @cached_property
    def _nearest(self) -> Tilted:
        return self.near.part(slice(self._place, None))

    @cached_property
    def _lower(self) -> Tilted:
        """The nearest groups below rank k's."""
        return self._nearest.part(slice(1, None))

    def nearest_laws(self, circle: Circle) -> ComplexArray:
        """Return `Π (1 + p y)` of the nearest groups up to each, as [group, z, angle]."""
        nearest = self._nearest
        return upto(np.multiply, factors(nearest.shares, nearest.sizes, circle.turns))

    def depths(self, laws: ComplexArray, log_none: FloatArray, rate: FloatArray) -> ComplexArray:
        """Return what the nearest groups but the last add to W, times the law of all from rank k's on.

        `laws` are theirs. All further groups count by the logarithm of `Π F / (F + S r)` and the rate `Σ f/F`.
        """
        lower, border = self._lower, self.groups.border
        steps = self.groups.steps[border : border + len(lower.sizes) + 1]
        # Divided by what is behind a group, the law is that of the groups up to it.
        own = depths_by_group(lower, steps, lower.others, lower.shares, log_none, rate)[:-1]
        last = len(laws) - 1
        return weighted(own, laws[last - len(own) : last])
