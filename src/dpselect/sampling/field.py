"""Where the entrants of a noisy comparison stand, in float64 with error bounds and exactly."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from dpselect._arrays import Array, FloatArray
from dpselect.sampling.balls import rational

SATURATED = 1e300
"""Locations beyond this are known only to be at least as far out."""


@dataclass(frozen=True)
class Field:
    """Groups of entrants: `multiplicities[g]` of them stand at `scale · values[g]`.

    `multiplicities` is None when every group is a single entrant; then values may repeat and come in any order.
    Otherwise values are distinct and descending. Values are int64 below 2⁶² in magnitude, float64 below 2¹⁰²¹, or
    Python ints and Fractions in an object array; `scale` is an exact rational between 1e-250 and 1e250.

    Only differences matter to a comparison, so locations are taken relative to `reference`, a value near the
    boundary between winners and losers, which keeps float64 precise exactly where comparisons are close.
    """

    values: Array
    scale: Fraction
    multiplicities: Array | None
    winners: int

    @cached_property
    def reference(self) -> Any:
        """The score of the last entrant that would win without noise."""
        if self.multiplicities is not None:
            counted = np.cumsum(self.multiplicities)
            return self.values[int(np.searchsorted(counted, self.winners))]
        if self.values.dtype == object:
            return sorted(self.values, reverse=True)[self.winners - 1]
        return np.partition(self.values, -self.winners)[-self.winners]

    @cached_property
    def slack(self) -> float:
        """Bound on the relative error of float64 quantities, derived in exactness.md with a factor of 1000 to spare."""
        return max(2.0**-32, self.winners * 2.0**-42)

    @cached_property
    def _float_scale(self) -> float:
        return float(self.scale)

    def locations(self, groups: Any) -> FloatArray:
        """Return scale · (value − reference) for the groups of an index array or slice.

        Relative error at most slack/4; values beyond ±SATURATED are cut there.
        """
        differences = self.values[groups] - self.reference
        if differences.dtype == object:
            return np.array([self._rounded(difference) for difference in differences], dtype=np.float64)
        located: FloatArray = differences * self._float_scale
        np.minimum(located, SATURATED, out=located)
        return np.maximum(located, -SATURATED, out=located)

    def _rounded(self, difference: Any) -> float:
        exact = self.scale * Fraction(difference)
        if abs(exact) >= SATURATED:
            return SATURATED if exact > 0 else -SATURATED
        return float(exact)

    def widen(self, locations: FloatArray, low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Bound location + noise when the noise lies in [low, high] up to the error of float64.

        A noise z computed from float64 is off by at most slack/2 · (1 + |z|) (exactness.md).
        """
        distances = np.abs(locations)
        if high is low:
            centre, error = locations + low, self.slack * (np.abs(low) + distances + 1.0)
            lower, upper = centre - error, centre + error
        else:
            outer = self.slack * (1.0 + distances)
            lower = locations + low - (outer + self.slack * np.abs(low))
            upper = locations + high + (outer + self.slack * np.abs(high))
        if len(distances) and distances.max() >= SATURATED:
            lower[locations <= -SATURATED] = -np.inf
            upper[locations >= SATURATED] = np.inf
        return lower, upper

    def location_ball(self, group: int) -> Callable[[int], Any]:
        """Return scale · (value − reference) for balls of any precision."""
        return rational(self.exact_location(group))

    def exact_location(self, group: int) -> Fraction:
        """Return scale · (value − reference) without error."""
        return self.scale * (_fraction(self.values[group]) - _fraction(self.reference))


def _fraction(value: Any) -> Fraction:
    return Fraction(value.item()) if isinstance(value, np.generic) else Fraction(value)
