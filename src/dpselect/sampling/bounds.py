"""Bounds in float64 on noises and locations; the proofs are in exactness.md, section 4.

A draw is an unknown real W in [0, 1) of which `width` bits are known: W ∈ [q, q+1] / 2^width. Its standard exponential
is `e = −log(1 − W)`, which increases in W and is precise for small W, where the large noises are.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from dpselect._arrays import Array, BitArray, FloatArray
from dpselect._numbers import exact_fraction
from dpselect.sampling.balls import rational

SLACK = 2.0**-32
"""Bound on the relative error of locations and noises."""

SATURATED = 1e300
"""Locations beyond ±SATURATED are cut there: they are only known to be at least that far out."""

LEAST, MOST = 1 << 36, (1 << 64) - (1 << 46)
"""64-bit words in this range determine e to a relative 2⁻³⁵, so one logarithm is enough (exactness.md, section 4)."""


def exponential_bounds(known: BitArray, width: int) -> tuple[FloatArray, FloatArray]:
    """Return the smallest and largest e that `width` known bits allow; the largest is infinite if all bits are one.

    The relative error of each is a few units in the last place.
    """
    bits = known.astype(np.uint64, copy=False)
    shift = np.uint64(64 - width)
    below = (bits + np.uint64(1)) << shift
    whole = bits == np.uint64((1 << width) - 1)
    with np.errstate(divide="ignore"):
        lowest = _minus_log_complement(bits << shift)
        highest = np.where(whole, np.inf, _minus_log_complement(below))
    return lowest, highest


def exponential_ends(known: int, width: int) -> tuple[float, float]:
    """Return the same bounds for a single draw, without the overhead of arrays."""
    whole = 1 << width
    ends = [
        -math.log1p(-numerator / whole) if 2 * numerator < whole else -math.log((whole - numerator) / whole)
        for numerator in (known, min(known + 1, whole - 1))
    ]
    return ends[0], ends[1] if known + 1 < whole else math.inf


def within_margin(known: BitArray, width: int) -> bool:
    """Whether these are 64-bit words of which none is near 0 or 2⁶⁴: then 2⁻²⁸ <= e <= 18 log 2 for all."""
    return width == 64 and known.size > 0 and bool(known.min() >= LEAST and known.max() <= MOST)


def known_exponential(known: BitArray) -> FloatArray:
    """Return e for words within the margin, with a relative error of at most 2⁻³⁴.

    The error is so small that one number serves as both bounds, at a quarter of the cost.
    """
    exponential: FloatArray = -np.log1p(known * -(2.0**-64))
    return exponential


def _minus_log_complement(numerator: BitArray) -> FloatArray:
    """Return −log(1 − n/2⁶⁴). 2⁶⁴ − n is an exact integer, so neither end of [0, 1) loses precision."""
    near_zero = numerator < np.uint64(1 << 63)
    portion = numerator * 2.0**-64
    complement = (np.uint64(0) - numerator) * 2.0**-64
    return np.where(near_zero, -np.log1p(-np.where(near_zero, portion, 0.0)), -np.log(complement))


def scaled(differences: Array, rate: Fraction) -> FloatArray:
    """Return rate · difference in float64, cut at ±SATURATED; relative error: a few units in the last place."""
    if differences.dtype == object:
        return np.array(
            [rounded_location(rate * exact_fraction(difference)) for difference in differences], dtype=np.float64
        )
    with np.errstate(over="ignore"):
        products: FloatArray = differences * float(rate)
    return np.clip(products, -SATURATED, SATURATED, out=products)


def rounded_location(number: Fraction) -> float:
    """Return a number as a float, cut at ±SATURATED."""
    if abs(number) >= SATURATED:
        return SATURATED if number > 0 else -SATURATED
    return float(number)


def location_bounds(near: FloatArray, far: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return lower and upper bounds on locations whose penalties, computed by `scaled`, lie between `near` and `far`.

    A penalty that was cut at SATURATED gives no lower bound.
    """
    floor = np.where(far >= SATURATED, -np.inf, -far - SLACK * (1 + far))
    return floor, -near + SLACK * (1 + near)


@dataclass(frozen=True)
class Field:
    """Locations of the entrants of a noisy comparison, in float64 with error bounds and exactly.

    Only differences matter to a comparison. Locations are relative to `reference`, a value near the boundary between
    winners and losers, which keeps float64 precise where comparisons are close.

    Parameters
    ----------
    values
        The scores: int64 below 2⁶² in magnitude, float64 below 2¹⁰²¹, or Python ints and Fractions in an object array.
        With `multiplicities` they are distinct and descending, otherwise in any order.
    scale
        `scale · value` is the location; an exact rational between 1e-250 and 1e250.
    multiplicities
        How many entrants each value stands for; None if every value is a single entrant.
    winners
        How many of the largest noisy values win.

    Examples
    --------
    >>> import numpy as np
    >>> field = Field(np.array([7, 5, 1]), Fraction(1, 2), None, winners=2)
    >>> field.locations(slice(None)).tolist()
    [1.0, 0.0, -2.0]
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
        """Bound on the relative error of float64 quantities: 1000 times the error derived in exactness.md."""
        return max(SLACK, self.winners * 2.0**-42)

    @cached_property
    def rounded_scale(self) -> Fraction:
        """The scale that float64 locations use."""
        return self.scale

    def locations(self, groups: Any) -> FloatArray:
        """Return scale · (value − reference) for an index array or slice of groups, cut at ±SATURATED.

        The relative error is at most slack/4.
        """
        return scaled(self.values[groups] - self.reference, self.rounded_scale)

    def widen(self, locations: FloatArray, low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return bounds on location + noise for a noise in [low, high], including the error of float64.

        A noise z computed in float64 is off by at most slack/2 · (1 + |z|) (exactness.md, section 4).
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
        """Return a function that gives scale · (value − reference) as a ball for a number of bits."""
        return rational(self.exact_location(group))

    def exact_location(self, group: int) -> Fraction:
        """Return scale · (value − reference) without error."""
        return self.scale * (exact_fraction(self.values[group]) - exact_fraction(self.reference))
