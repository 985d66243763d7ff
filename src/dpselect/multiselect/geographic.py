"""Privacy that may fade with distance in any convex way: the loss between u and u' is at most g(|u − u'|)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from dpselect._numbers import positive_number
from dpselect.errors import InvalidInput, plain

_ACCEPTED = "an increasing convex function of distances with g(0) = 0 and a positive slope there is needed"
_SAMPLES = [2.0**power for power in range(-10, 11)]
_ROUNDING = 1e-12
"""What a function may have lost to rounding, and so what is taken off its slope."""


@dataclass(frozen=True)
class Geographic:
    """g-geographic privacy: `P[S | u] <= exp(g(|u − u'|)) P[S | u']` for every set of signals S.

    `function` is g, increasing and convex with g(0) = 0. Beyond `threshold` nothing is asked (g = ∞). `slope` is
    g'(0), which no number of values of g can prove, so it is stated rather than guessed; on a grid it is not needed.
    Source: multi-selection, appendix A.1, assumption 20 and definition 21.
    """

    function: Callable[[float], float] = field(repr=False)
    threshold: float = math.inf
    slope: float | None = None

    def __post_init__(self) -> None:
        """Refuse what is not increasing and convex from g(0) = 0, as far as samples show."""
        if not (isinstance(self.threshold, int | float) and self.threshold > 0):
            raise InvalidInput("threshold", self.threshold, "a positive number is needed, infinite for none")
        if self.slope is not None:
            positive_number("slope", self.slope)
        reach = self.threshold if math.isfinite(self.threshold) else _SAMPLES[-1]
        self._check([0.0, *(reach * sample / _SAMPLES[-1] for sample in _SAMPLES)])

    def loss(self, distance: float) -> float:
        """Return the most that a signal may tell between two positions so far apart: g, and ∞ beyond the threshold."""
        return self._value(distance) if distance <= self.threshold else math.inf

    def rate(self, grid: float | None = None) -> float:
        """Return the largest ε of the noise whose loss ε·d is at most g(d) at all distances d that occur.

        On a grid of step r these are r, 2r, 3r, …; as g is convex, `g(d)/d` rises, so `ε = g(r)/r`. Without a grid
        they come as near to 0 as one likes, and `ε = g'(0)`, the slope. Rounded down. Source: multi-selection,
        theorem 22; multiselect.md.
        """
        if grid is None:
            if self.slope is None:
                raise InvalidInput("slope", None, "state g'(0), or the grid that signals lie on")
            return positive_number("slope", self.slope)
        step = positive_number("grid", grid)
        if step > self.threshold:
            raise InvalidInput("grid", grid, f"a step of at most the threshold {self.threshold:g} is needed")
        self._check([0.0, *(step * count for count in (1, 2, 3, 5, 10, 100)), *self._seen(step)])
        return self.loss(step) / step * (1 - _ROUNDING)

    def _seen(self, step: float) -> list[float]:
        return [self.threshold] if step < self.threshold < math.inf else []

    def _value(self, distance: float) -> float:
        """Return g, infinite where it is too large for a float."""
        try:
            return float(self.function(distance))
        except OverflowError:
            return math.inf

    def _check(self, distances: list[float]) -> None:
        """Refuse g where its values at these distances contradict what is asked of it."""
        places = np.unique([distance for distance in distances if distance <= self.threshold])
        try:
            values = np.array([self._value(float(place)) for place in places])
        except Exception as error:
            raise InvalidInput("function", plain(f"one that fails ({type(error).__name__})"), _ACCEPTED) from None
        finite = values < math.inf
        places, values = places[finite], values[finite]
        if np.isnan(values).any() or values.size < 2 or values[0] != 0:
            raise InvalidInput("function", plain("one that is not a finite number, or not 0 at 0"), _ACCEPTED)
        secants = values[1:] / places[1:]
        slopes = np.diff(values) / np.diff(places)
        if (secants <= 0).any() or (np.diff(slopes) < -1e-9 * np.abs(slopes[1:])).any():
            raise InvalidInput("function", plain("one that is not increasing and convex"), _ACCEPTED)
        if self.slope is not None and self.slope > secants.min() * (1 + _ROUNDING):
            raise InvalidInput("slope", self.slope, "g lies below slope · distance, so its slope at 0 is smaller")
