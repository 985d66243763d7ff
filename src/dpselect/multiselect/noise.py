"""The exact noise that a client adds to a private position before anything leaves the device.

Positions are rounded to a public grid as exact numbers, and the noise is made of fair bits and rational comparisons: no
float enters its law. The proof is in noise.md. `Geographic` finds the rate of this noise for privacy that is stated as
another function of distance.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from dpselect._format import shown_above
from dpselect._numbers import finite_number, positive_number
from dpselect.errors import InvalidInput, plain
from dpselect.privacy.conversion import float_above
from dpselect.sampling import BitSource
from dpselect.sampling.discrete import discrete_laplace

FINENESS = 2**7
"""A default grid has more than this many steps in 1/ε, the scale of the noise."""

PRIVATE_VALUE = plain("another value (private, so not shown)")
"""What an error shows in place of a private value."""

_CONVEX = "must be an increasing convex function of distances with g(0) = 0 and a positive slope there"
_NAMED: dict[str, tuple[str, Callable[[float], float]]] = {
    "linear": ("{0:g} t", lambda scaled: scaled),
    "quadratic": ("{0:g} t + ({0:g} t)^2", lambda scaled: scaled + scaled * scaled),
    "exponential": ("exp({0:g} t) - 1", math.expm1),
}
"""Named functions g: the formula, and g in units of 1/slope."""
_SAMPLES = [2.0**power for power in range(-10, 11)]
_ROUNDING = 1e-12
"""Relative rounding error allowed in values of g; the rate is lowered by as much."""


@dataclass(frozen=True)
class DistanceGuarantee:
    """ε-geographic differential privacy on a grid: ε per unit of distance.

    For positions u and u' with grid step r, and for every set of signals S,
    `P[S | u] <= exp(ε r ⌈|u − u'| / r⌉) · P[S | u']`: ε times the distance, rounded up to whole steps. `premise` is
    what must be true of the user for the guarantee to hold; usually nothing.
    """

    epsilon: float
    step: float
    premise: str = ""

    delta = 0.0
    protects = "one position"
    neighbours = "per unit of distance"

    def loss(self, distance: float) -> float:
        """Return the largest privacy loss between positions at this distance: `ε r ⌈distance/r⌉`, rounded up."""
        exact = Fraction(finite_number("distance", distance))
        if exact < 0:
            raise InvalidInput("distance", distance, "must be at least 0")
        step = Fraction(self.step)
        return float_above(Fraction(self.epsilon) * step * math.ceil(exact / step))

    def to_dict(self) -> dict[str, Any]:
        """Return the guarantee as plain data."""
        return {
            "epsilon": self.epsilon,
            "delta": self.delta,
            "protects": self.protects,
            "neighbours": self.neighbours,
            "step": self.step,
            "premise": self.premise,
        }

    def __str__(self) -> str:
        """Return the guarantee in words."""
        epsilon = shown_above(self.epsilon)
        return (
            f"epsilon = {epsilon} per unit of distance: protects {self.protects}; another at distance t changes the "
            f"probability of any signal by a factor of at most exp({epsilon} t), t rounded up to whole steps of "
            f"{self.step:g}" + (f"; provided that {self.premise}" if self.premise else "")
        )


class Grid:
    """The multiples of a public step r, each given by its number n."""

    step: float

    def nearest(self, value: Any) -> int:
        """Return the number of the grid point nearest to a position, `⌊u/r + ½⌋`.

        Every finite number has one: refusing some positions would reveal that the user is at one of them.
        """
        try:
            exact = Fraction(finite_number("value", value)) / Fraction(self.step)
        except InvalidInput:
            raise InvalidInput("value", PRIVATE_VALUE, "must be a finite number") from None
        return math.floor(exact + Fraction(1, 2))

    def position(self, place: int) -> float:
        """Return the position of a grid point: the float nearest to `r n`, limited to the range of floats."""
        try:
            return float(Fraction(self.step) * place)
        except OverflowError:
            return math.copysign(sys.float_info.max, place)


@dataclass(frozen=True)
class GridNoise(Grid):
    """Two-sided geometric noise on the multiples of a public step r.

    A position u is rounded to `n = ⌊u/r + ½⌋`, and the signal is `r (n + y)` with `P[y] = (1 − q)/(1 + q) · q^|y|`,
    `q = exp(−ε r)` (mathematics, section 9). Grid points are given by their number n.

    Parameters
    ----------
    epsilon
        Privacy loss per unit of distance.
    step
        Step of the grid; by default the largest power of two below 1/(128 ε).

    Raises
    ------
    InvalidInput
        If a parameter is not a positive, finite number.

    Examples
    --------
    >>> from dpselect.multiselect import GridNoise
    >>> noise = GridNoise(epsilon=1.0, step=0.5)
    >>> noise.nearest(1.3), noise.position(3)
    (3, 1.5)
    >>> round(noise.law(0.0, low=-9, high=9)[0], 4)
    0.2449
    """

    epsilon: float
    step: float

    def __init__(self, epsilon: float, step: float | None = None) -> None:
        rate = positive_number("epsilon", epsilon)
        object.__setattr__(self, "epsilon", rate)
        object.__setattr__(self, "step", default_step(rate) if step is None else positive_number("grid", step))

    @property
    def guarantee(self) -> DistanceGuarantee:
        """The guarantee of one signal; it depends on no position."""
        return DistanceGuarantee(self.epsilon, self.step)

    @property
    def scale(self) -> Fraction:
        """The scale of the noise in steps, 1/(ε r)."""
        return 1 / (Fraction(self.epsilon) * Fraction(self.step))

    def draw(self, place: int, bits: BitSource) -> int:
        """Return a grid point drawn from the law around another."""
        return place + discrete_laplace(self.scale, bits)

    def law(self, value: Any, low: int, high: int) -> dict[int, float]:
        """Return the probability of each grid point from low to high, low < high, for a position.

        Points beyond an end are counted at that end. If all positions in question lie between the ends, this hides no
        loss: beyond the ends all grid points have the same ratio of probabilities.
        """
        rate, centre = float(1 / self.scale), self.nearest(value)
        ratio = math.exp(-rate)
        # 1 − q and 1 + q without cancellation, for steps much finer than the noise.
        middle = -math.expm1(-rate) / (1 + ratio)
        law = {place: middle * math.exp(-rate * abs(place - centre)) for place in range(low + 1, high)}
        return {low: _tail(rate, centre - low), **law, high: _tail(rate, high - centre)}


def _tail(rate: float, distance: int) -> float:
    """Return `P[y >= distance]`, which is `q^distance / (1 + q)` if the distance is not negative."""
    if distance >= 0:
        return math.exp(-rate * distance) / (1 + math.exp(-rate))
    return 1 - _tail(rate, 1 - distance)


def default_step(epsilon: float) -> float:
    """Return the largest power of two r with `ε r FINENESS < 1`, kept well inside the range of floats."""
    _, exponent = math.frexp(epsilon)
    return math.ldexp(1.0, max(-900, min(900, 1 - exponent - FINENESS.bit_length())))


@dataclass(frozen=True)
class Geographic:
    """g-geographic privacy: `P[S | u] <= exp(g(|u − u'|)) P[S | u']` for every set of signals S.

    Source: multi-selection, appendix A.1, assumption 20 and definition 21.

    Parameters
    ----------
    function
        g: an increasing convex function of distances with g(0) = 0.
    threshold
        Distance beyond which nothing is required (g = ∞).
    slope
        g'(0). It is needed only without a grid, and has to be stated, because no number of values of g determines it.
    formula
        g as text, for display.

    Raises
    ------
    InvalidInput
        If values of g show that it is not such a function, or that its slope at 0 is smaller than stated.

    Examples
    --------
    >>> import math
    >>> from dpselect.multiselect import Geographic
    >>> wanted = Geographic(lambda distance: math.expm1(0.5 * distance), threshold=10.0)
    >>> round(wanted.rate(grid=0.25), 4)
    0.5326
    """

    function: Callable[[float], float] = field(repr=False)
    threshold: float = math.inf
    slope: float | None = None
    formula: str = "a function of its own"

    def __post_init__(self) -> None:
        """Refuse what is not increasing and convex from g(0) = 0, as far as samples show."""
        if not (isinstance(self.threshold, int | float) and self.threshold > 0):
            raise InvalidInput("threshold", self.threshold, "must be a positive number; leave it out for no threshold")
        if self.slope is not None:
            positive_number("slope", self.slope)
        reach = self.threshold if math.isfinite(self.threshold) else _SAMPLES[-1]
        self._check([0.0, *(reach * sample / _SAMPLES[-1] for sample in _SAMPLES)])

    @classmethod
    def named(cls, name: str, epsilon: float, threshold: float = math.inf) -> Geographic:
        """Return a promise of a named function with the slope ε at 0.

        "linear" is `ε t`, "quadratic" is `ε t + (ε t)²`, "exponential" is `exp(ε t) − 1`: nearby positions are
        protected as with ε per unit of distance, and the protection fades faster with the distance.

        Parameters
        ----------
        name
            "linear", "quadratic" or "exponential".
        epsilon
            The slope at 0.
        threshold
            Distance beyond which nothing is required.

        Returns
        -------
        Geographic

        Raises
        ------
        InvalidInput
            If an argument is out of range.

        Examples
        --------
        >>> from dpselect.multiselect import Geographic
        >>> wanted = Geographic.named("exponential", 0.5, threshold=10.0)
        >>> wanted.formula, round(wanted.rate(grid=0.25), 4), wanted.rate()
        ('exp(0.5 t) - 1', 0.5326, 0.5)
        """
        if name not in _NAMED:
            raise InvalidInput("privacy", name, f"must be one of {', '.join(_NAMED)}")
        slope = positive_number("epsilon", epsilon)
        formula, unit = _NAMED[name]
        return cls(lambda distance: unit(slope * distance), threshold, slope, formula.format(slope))

    def loss(self, distance: float) -> float:
        """Return the largest privacy loss allowed at a distance: g, and ∞ beyond the threshold."""
        return self._value(distance) if distance <= self.threshold else math.inf

    def rate(self, grid: float | None = None) -> float:
        """Return the largest ε for which noise of rate ε loses at most g(d) at every distance d.

        On a grid of step r the distances are r, 2r, 3r, …; g is convex, so `g(d)/d` increases, and `ε = g(r)/r`.
        Without a grid they can be arbitrarily small, and `ε = g'(0)`, the slope. Rounded down. Source:
        multi-selection, theorem 22; multiselect.md.
        """
        if grid is None:
            if self.slope is None:
                raise InvalidInput("slope", None, "must be g'(0); or pass the grid of the signals")
            return positive_number("slope", self.slope)
        step = positive_number("grid", grid)
        if step > self.threshold:
            raise InvalidInput("grid", grid, f"must be at most {self.threshold:g} (the threshold)")
        ends = [self.threshold] if step < self.threshold < math.inf else []
        self._check([0.0, *(step * count for count in (1, 2, 3, 5, 10, 100)), *ends])
        return self.loss(step) / step * (1 - _ROUNDING)

    def largest(self, epsilons: Iterable[float], grid: float | None = None) -> float:
        """Return the largest of some epsilons whose noise loses at most g(d) at every distance d.

        Parameters
        ----------
        epsilons
            The values to choose from, such as those that a service offers.
        grid
            Step of the grid of the signals, as in `rate`.

        Returns
        -------
        float

        Raises
        ------
        InvalidInput
            If all are too large.

        Examples
        --------
        >>> from dpselect.multiselect import Geographic
        >>> Geographic.named("exponential", 0.5).largest([0.1, 0.2, 0.5, 1.0], grid=0.25)
        0.5
        """
        rate, offered = self.rate(grid), sorted(epsilons)
        if not offered or offered[0] > rate:
            given = plain(", ".join(f"{each:g}" for each in offered) or "none")
            raise InvalidInput("epsilons", given, f"must include one of at most {rate:g} to keep this promise")
        return max(each for each in offered if each <= rate)

    def _value(self, distance: float) -> float:
        """Return g, infinite where it is too large for a float."""
        try:
            return float(self.function(distance))
        except OverflowError:
            return math.inf

    def _check(self, distances: list[float]) -> None:
        """Refuse g if its values at these distances contradict the requirements."""
        places = np.unique([distance for distance in distances if distance <= self.threshold])
        try:
            values = np.array([self._value(float(place)) for place in places])
        except Exception as error:
            raise InvalidInput("function", plain(f"one that fails ({type(error).__name__})"), _CONVEX) from None
        finite = values < math.inf
        places, values = places[finite], values[finite]
        if np.isnan(values).any() or values.size < 2 or values[0] != 0:
            raise InvalidInput("function", plain("one that is not a finite number, or not 0 at 0"), _CONVEX)
        secants = values[1:] / places[1:]
        slopes = np.diff(values) / np.diff(places)
        if (secants <= 0).any() or (np.diff(slopes) < -1e-9 * np.abs(slopes[1:])).any():
            raise InvalidInput("function", plain("one that is not increasing and convex"), _CONVEX)
        if self.slope is not None and self.slope > secants.min() * (1 + _ROUNDING):
            limit = f"must be at most {secants.min():g} (the least g(t)/t of the distances checked)"
            raise InvalidInput("slope", self.slope, limit)
