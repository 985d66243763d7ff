"""The contested comparisons: more bits and ball arithmetic until the order is certain."""

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
"""python-flint keeps the working precision in one place for the whole process."""


def _renew_lock() -> None:
    global _precision_lock
    _precision_lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock)


@contextmanager
def working_precision(bits: int) -> Iterator[None]:
    """Work in balls of that precision, alone in this process."""
    import flint

    with _precision_lock, flint.ctx.workprec(bits):
        yield


@dataclass
class Draw:
    """A uniform W in [0, 1) of which the first `width` bits are known."""

    known: int
    width: int

    def extend(self, width: int, bits: BitSource) -> None:
        """Draw further bits until `width` are known."""
        missing = width - self.width
        if missing > 0:
            self.known = self.known << missing | wide_integer(missing, bits)
            self.width = width

    def exponential(self, upper: bool) -> Any:
        """Return −log(1 − W) at the upper or lower end of what is known, as a ball."""
        import flint

        whole = 1 << self.width
        complement = whole - self.known - upper
        if complement == 0:
            return flint.arb.pos_inf()
        return -flint.arb(flint.fmpq(complement, whole)).log()


@dataclass
class Entrant:
    """One noisy value: a location plus the noise of exponent Σ e_j / divisor_j."""

    key: Any
    location: Callable[[int], Any]
    draws: Sequence[Draw]
    divisors: Sequence[Callable[[int], Any]]
    noise: Noise
    magnitude: int = 0
    """Bits in the whole part of the location."""
    low: Any = field(default=None, compare=False)
    high: Any = field(default=None, compare=False)

    def sharpen(self, width: int, bits: BitSource) -> None:
        """Bring every draw to `width` bits and bound the noisy value by two exact numbers."""
        for draw in self.draws:
            draw.extend(width, bits)
        location = self.location(width)
        self.low = _lowest(location + self._noise_at(upper=True))
        self.high = _highest(location + self._noise_at(upper=False))

    def _noise_at(self, upper: bool) -> Any:
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
    """Return a number as a ball at the precision of the moment."""
    import flint

    exact = Fraction(value)
    return flint.arb(flint.fmpq(exact.numerator, exact.denominator))


def rational(value: Fraction | int) -> Callable[[int], Any]:
    """Return a function that gives `value` as a ball at the precision of the moment."""
    return lambda width: ball(value)


def sort_exactly(entrants: list[Entrant], bits: BitSource, step: int) -> list[Entrant]:
    """Return the entrants by descending noisy value, drawing further bits until the order is certain.

    Clusters whose order is open wait in a stack, highest on top; the precision leaves room for the size of locations.
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


def _by_high(left: Entrant, right: Entrant) -> int:
    """Order by descending upper end; both are exact numbers, so the comparison is certain."""
    return -1 if left.high > right.high else 1 if left.high < right.high else 0


def _overlapping(ranked: list[Entrant]) -> list[list[Entrant]]:
    """Split a list sorted by upper end wherever everything before lies above everything after."""
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
    import flint

    return flint.arb.neg_inf() if ball.is_nan() else ball.lower()


def _highest(ball: Any) -> Any:
    import flint

    return flint.arb.pos_inf() if ball.is_nan() else ball.upper()
