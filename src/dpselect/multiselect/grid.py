"""Exact noise on a public grid: what a client adds to a private position before anything leaves the device.

No float enters the law: positions are rounded as exact numbers, and the noise is made of fair bits and rational
comparisons. Proof in grid.md.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dpselect._format import shown_above
from dpselect._numbers import finite_number, positive_number
from dpselect.errors import InvalidInput, plain
from dpselect.privacy.conversion import float_above
from dpselect.sampling import BitSource
from dpselect.sampling.discrete import discrete_laplace

FINENESS = 2**7
"""The grid that is chosen when none is given has more than this many steps in 1/ε, the scale of the noise."""


@dataclass(frozen=True)
class DistanceGuarantee:
    """ε-geographic differential privacy on a grid: ε per unit of distance.

    For positions u and u' with grid step r, and for every set of signals S,
    `P[S | u] <= exp(ε r ⌈|u − u'| / r⌉) · P[S | u']`: ε times the distance, rounded up to whole steps.
    `premise` says what must be true of the user for the guarantee to hold; usually nothing.
    """

    epsilon: float
    step: float
    premise: str = ""

    delta = 0.0
    protects = "one position"
    neighbours = "per unit of distance"

    def loss(self, distance: float) -> float:
        """Return the most that a signal can tell between two positions so far apart: `ε r ⌈distance/r⌉`, rounded up."""
        exact = Fraction(finite_number("distance", distance))
        if exact < 0:
            raise InvalidInput("distance", distance, "a number of at least 0 is needed")
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
        """Say the guarantee in words."""
        epsilon = shown_above(self.epsilon)
        return (
            f"epsilon = {epsilon} per unit of distance: protects {self.protects}; another at distance t "
            f"changes the chance of any signal by a factor of at most exp({epsilon} t), t rounded up to whole steps of "
            f"{self.step:g}" + (f"; provided that {self.premise}" if self.premise else "")
        )


@dataclass(frozen=True)
class GridNoise:
    """Two-sided geometric noise on the multiples of a public step r.

    A position u becomes `n = ⌊u/r + ½⌋`, and the signal is `r (n + y)` with `P[y] = (1 − q)/(1 + q) · q^|y|`,
    `q = exp(−ε r)` (mathematics, section 9). Without a step the largest power of two is taken of which 1/ε holds
    more than FINENESS.
    """

    epsilon: float
    step: float

    def __init__(self, epsilon: float, step: float | None = None) -> None:
        rate = positive_number("epsilon", epsilon)
        object.__setattr__(self, "epsilon", rate)
        object.__setattr__(self, "step", _fitting_step(rate) if step is None else positive_number("grid", step))

    @property
    def guarantee(self) -> DistanceGuarantee:
        """What a signal promises, before any position is seen."""
        return DistanceGuarantee(self.epsilon, self.step)

    @property
    def scale(self) -> Fraction:
        """The scale of the noise in steps, 1/(ε r)."""
        return 1 / (Fraction(self.epsilon) * Fraction(self.step))

    def nearest(self, value: Any) -> int:
        """Return the number of the grid point nearest to a position, `⌊u/r + ½⌋`.

        Every finite number has one: a refusal of some positions would tell them from the others.
        """
        try:
            exact = Fraction(finite_number("value", value)) / Fraction(self.step)
        except InvalidInput:
            given = plain("something else (it is private, so not shown)")
            raise InvalidInput("value", given, "a position is needed: a finite number") from None
        return math.floor(exact + Fraction(1, 2))

    def draw(self, place: int, bits: BitSource) -> int:
        """Return a grid point drawn from the law around another."""
        return place + discrete_laplace(self.scale, bits)

    def position(self, place: int) -> float:
        """Return where a grid point is: the float nearest to `r n`, or the last one for those beyond all."""
        try:
            return float(Fraction(self.step) * place)
        except OverflowError:
            return math.copysign(sys.float_info.max, place)

    def law(self, value: Any, low: int, high: int) -> dict[int, float]:
        """Return the probability of every grid point from low to high, low < high, for a position.

        Those beyond are counted as the nearest end; with both ends outside all positions in question this hides
        nothing, since beyond them every grid point has the same ratio of probabilities.
        """
        rate, centre = float(1 / self.scale), self.nearest(value)
        ratio = math.exp(-rate)
        # 1 − q and 1 + q without cancellation, for steps much finer than the noise.
        middle = -math.expm1(-rate) / (1 + ratio)
        law = {place: middle * math.exp(-rate * abs(place - centre)) for place in range(low + 1, high)}
        return {low: _tail(rate, centre - low), **law, high: _tail(rate, high - centre)}


def _tail(rate: float, distance: int) -> float:
    """Return `P[y >= distance]`, which is `q^distance / (1 + q)` from 0 on."""
    if distance >= 0:
        return math.exp(-rate * distance) / (1 + math.exp(-rate))
    return 1 - _tail(rate, 1 - distance)


def _fitting_step(epsilon: float) -> float:
    """Return the largest power of two r with `ε r FINENESS < 1`, within what floats hold with ease."""
    _, exponent = math.frexp(epsilon)
    return math.ldexp(1.0, max(-900, min(900, 1 - exponent - FINENESS.bit_length())))
