"""Exact comparison of noisy values: more bits, in ball arithmetic, until the order is certain."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cmp_to_key
from typing import Any

from dpselect.sampling.bits import BitSource
from dpselect.sampling.noise import Noise
from dpselect.sampling.uniform import wide_integer

_precision_lock = threading.Lock()
"""Guards the working precision of python-flint, which is global to the process."""


def _renew_lock() -> None:
    """Create a new lock in a forked child, whose copy of the lock may be held."""
    global _precision_lock
    _precision_lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock)


@contextmanager
def working_precision(bits: int) -> Iterator[None]:
    """Set the precision of ball arithmetic in bits; one thread at a time."""
    import flint

    with _precision_lock, flint.ctx.workprec(bits):
        yield


@dataclass
class Draw:
    """A uniform W in [0, 1) whose first `width` bits are known."""

    known: int
    width: int

    def extend(self, width: int, bits: BitSource) -> None:
        """Draw further bits until `width` are known."""
        missing = width - self.width
        if missing > 0:
            self.known = self.known << missing | wide_integer(missing, bits)
            self.width = width

    def exponential(self, upper: bool) -> Any:
        """Return −log(1 − W) as a ball, for the largest or smallest W that the known bits allow."""
        import flint

        whole = 1 << self.width
        complement = whole - self.known - upper
        if complement == 0:
            return flint.arb.pos_inf()
        return -flint.arb(flint.fmpq(complement, whole)).log()


@dataclass
class Entrant:
    """One noisy value: a location plus the noise with exponent Σ e_j / divisor_j."""

    key: Any
    location: Callable[[int], Any]
    draws: Sequence[Draw]
    divisors: Sequence[Callable[[int], Any]]
    noise: Noise
    magnitude: int = 0
    """Bits of the integer part of the location."""
    low: Any = field(default=None, compare=False)
    high: Any = field(default=None, compare=False)

    def sharpen(self, width: int, bits: BitSource) -> None:
        """Extend every draw to `width` bits and compute exact lower and upper bounds of the noisy value."""
        for draw in self.draws:
            draw.extend(width, bits)
        location = self.location(width)
        self.low = _lowest(location + self._noise_at(upper=True))
        self.high = _highest(location + self._noise_at(upper=False))

    def _noise_at(self, upper: bool) -> Any:
        """Return the noise as a ball, for the largest or smallest draws that the known bits allow."""
        import flint

        exponent = flint.arb(0)
        for draw, divisor in zip(self.draws, self.divisors, strict=True):
            exponent += draw.exponential(upper) / divisor(self.draws[0].width)
        if exponent.is_zero():
            return flint.arb.pos_inf()
        if not exponent.is_finite():
            return flint.arb(self.noise.infimum)
        return self.noise.ball_quantile(exponent)


def ball(value: Fraction | int | float) -> Any:
    """Return a number as a ball at the current precision."""
    import flint

    exact = Fraction(value)
    return flint.arb(flint.fmpq(exact.numerator, exact.denominator))


def rational(value: Fraction | int) -> Callable[[int], Any]:
    """Return a function that gives `value` as a ball at the current precision, whatever the number of bits."""
    return lambda width: ball(value)


def sort_exactly(entrants: list[Entrant], bits: BitSource, step: int) -> list[Entrant]:
    """Return the entrants by descending noisy value, drawing `step` more bits at a time until the order is certain.

    Clusters whose order is open are kept on a stack, highest on top. The precision includes the bits of the locations.
    """
    width = max((draw.width for entrant in entrants for draw in entrant.draws), default=0)
    ranked: list[Entrant] = []
    waiting = [(entrants, width + step)]
    while waiting:
        cluster, width = waiting.pop()
        if len(cluster) < 2:
            ranked.extend(cluster)
            continue
        with working_precision(2 * width + 64 + max(entrant.magnitude for entrant in cluster)):
            for entrant in cluster:
                entrant.sharpen(width, bits)
            pieces = _overlapping(sorted(cluster, key=cmp_to_key(_by_high)))
        waiting.extend((piece, width + step) for piece in reversed(pieces))
    return ranked


def floor_exactly(entrant: Entrant, unit: Fraction, bits: BitSource, step: int) -> int:
    """Return ⌊noisy value / unit⌋, drawing `step` more bits at a time until it is certain."""
    width = max(draw.width for draw in entrant.draws)
    while True:
        with working_precision(2 * width + 64 + entrant.magnitude):
            entrant.sharpen(width, bits)
            steps = (entrant.low.union(entrant.high) / ball(unit)).floor().unique_fmpz()
        if steps is not None:
            return int(steps)
        width += step


def is_positive(entrant: Entrant, bits: BitSource, step: int) -> bool:
    """Return whether the noisy value is above 0, drawing `step` more bits at a time until it is certain."""
    width = max(draw.width for draw in entrant.draws)
    while True:
        with working_precision(2 * width + 64 + entrant.magnitude):
            entrant.sharpen(width, bits)
            if entrant.low > 0 or entrant.high < 0:
                return bool(entrant.low > 0)
        width += step


def _by_high(left: Entrant, right: Entrant) -> int:
    """Compare by descending upper bound; the bounds are exact numbers, so the comparison is certain."""
    return -1 if left.high > right.high else 1 if left.high < right.high else 0


def _overlapping(ranked: list[Entrant]) -> list[list[Entrant]]:
    """Split entrants sorted by upper bound wherever all earlier ones lie above all later ones."""
    clusters: list[list[Entrant]] = [[ranked[0]]]
    lowest = ranked[0].low
    for entrant in ranked[1:]:
        if entrant.high < lowest:
            clusters.append([entrant])
            lowest = entrant.low
        else:
            clusters[-1].append(entrant)
            lowest = entrant.low if entrant.low < lowest else lowest
    return clusters


def _lowest(ball: Any) -> Any:
    """Return the lower end of a ball, −∞ for NaN."""
    import flint

    return flint.arb.neg_inf() if ball.is_nan() else ball.lower()


def _highest(ball: Any) -> Any:
    """Return the upper end of a ball, +∞ for NaN."""
    import flint

    return flint.arb.pos_inf() if ball.is_nan() else ball.upper()
