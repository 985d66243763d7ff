"""A gamma variable of any precision, and noisy comparisons whose locations are divided by it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from statistics import NormalDist
from typing import Any

from dpselect.sampling.balls import Draw, working_precision
from dpselect.sampling.bits import BitSource
from dpselect.sampling.bounds import Field

ACCURACY = 48
"""Minimum accuracy in bits of a gamma variable used in float64; in the tails of its law this takes more random bits."""


class GammaDraw:
    """A variable g with density `g^{n−1} e^{−g} / Γ(n)`: the quantile of a uniform V that is read bit by bit.

    With `Q(n, g)` the regularised upper incomplete gamma function, g solves Q(n, g) = V. V ∈ [q, q+1]/2^width encloses
    g between two numbers, found by Newton's method and accepted only if ball arithmetic proves
    `Q(low) > (q+1)/2^width` and `Q(high) < q/2^width`.
    """

    def __init__(self, shape: int, bits: BitSource, width: int = 64) -> None:
        self.shape = shape
        self._bits = bits
        self._draw = Draw(0, 0)
        self._enclosure: Any = None
        while True:
            self._widen_to(width)
            with working_precision(2 * self._draw.width + 64):
                enclosure = self.ball(width)
            if enclosure.rel_accuracy_bits() >= ACCURACY:
                break
            width += 64
        self.approximate = float(enclosure.mid())

    def _widen_to(self, width: int) -> None:
        """Draw bits of V until at least `width` are known and they are neither all zeros nor all ones."""
        while self._draw.width < width or self._draw.known in (0, (1 << self._draw.width) - 1):
            self._draw.extend(self._draw.width + width, self._bits)
            self._enclosure = None

    def ball(self, width: int) -> Any:
        """Return a ball that contains g, from at least `width` bits; call it at a precision of 2 · width or more."""
        self._widen_to(width)
        if self._enclosure is None:
            import flint

            # The terms of log Γ(n) are about n log n and their leading bits cancel, so the precision is raised.
            with flint.ctx.workprec(flint.ctx.prec + 3 * self.shape.bit_length()):
                self._enclosure = self._enclosed()
        return self._enclosure

    def _enclosed(self) -> Any:
        """Return a ball around g, doubling its radius until the enclosure is proven."""
        import flint

        whole = 1 << self._draw.width
        below, above = (flint.arb(flint.fmpq(self._draw.known + end, whole)) for end in (0, 1))
        middle = ((below + above) / 2).mid()
        centre = self._solved(middle)
        radius = (above - below) / self._density(centre) + centre * flint.arb(2) ** -self._draw.width
        while True:
            radius = (2 * radius).mid()
            low, high = (centre - radius).mid(), (centre + radius).mid()
            if low > 0 and self._upper(low) > above and self._upper(high) < below:
                return low.union(high)

    def _solved(self, probability: Any) -> Any:
        """Return an approximate solution of Q(n, g) = probability: Newton's method from the Wilson–Hilferty guess."""
        import flint

        deviation = -NormalDist().inv_cdf(min(max(float(probability), 1e-300), 1 - 2.0**-53))
        spread = 9.0 * self.shape
        guess = flint.arb(self.shape) * max(1 - 1 / spread + deviation / spread**0.5, 1e-3) ** 3
        for _ in range(200):
            step = ((self._upper(guess) - probability) / self._density(guess)).mid()
            moved = (guess + step).mid()
            guess = moved if moved > 0 else (guess / 2).mid()
            if abs(step) < guess * flint.arb(2) ** -self._draw.width:
                break
        return guess

    def _upper(self, value: Any) -> Any:
        """Return Q(n, g)."""
        return value.gamma_upper(self.shape, regularized=1)

    def _density(self, value: Any) -> Any:
        """Return the density at g."""
        import flint

        return ((self.shape - 1) * value.log() - value - flint.arb(self.shape).lgamma()).exp()


@dataclass(frozen=True)
class RandomlyScaledField(Field):
    """A field whose locations are all divided by the same gamma variable."""

    divisor: GammaDraw = field(kw_only=True)

    @cached_property
    def slack(self) -> float:
        """As in Field; the error of the gamma variable, 2⁻⁴⁸, is far smaller."""
        return max(2.0**-30, self.winners * 2.0**-42)

    @cached_property
    def rounded_scale(self) -> Fraction:
        """The scale divided by the float approximation of the gamma variable."""
        return self.scale / Fraction(self.divisor.approximate)

    def location_ball(self, group: int) -> Callable[[int], Any]:
        """Return a function that gives the location as a ball for a number of bits, also of the gamma variable."""
        numerator = super().location_ball(group)
        return lambda width: numerator(width) / self.divisor.ball(width)
