"""The winner among alternatives that are too many to list.

Each alternative has a location and independent noise; the largest sum wins. Alternatives come in blocks. For each
block are known: the number of alternatives, bounds on their locations, and how to draw a uniformly random one.
The noises of a block of M alternatives are drawn in descending order (exponents e_1/M, + e_2/(M − 1), …). Each is given
to a uniformly random alternative that has none yet, as long as the block's highest location plus that noise can still
win. So a block that cannot win costs one draw, whatever its size. The law is exactly that of independent noise on
every alternative for any bounds; tight bounds only save work (exactness.md, section 6).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from dpselect._arrays import FloatArray
from dpselect.sampling.balls import Draw, Entrant, rational, sort_exactly
from dpselect.sampling.bits import BitSource
from dpselect.sampling.bounds import SATURATED, SLACK, exponential_bounds
from dpselect.sampling.noise import NOISES, Noise

WORD = 64
"""Bits drawn at a time for each noise."""

_SMALL = 2.0**40
"""The size of smaller blocks is computed exactly, since they may run out of alternatives."""


@dataclass(frozen=True)
class Alternative:
    """One alternative and its exact location."""

    key: Hashable
    location: Fraction


class Blocks(Protocol):
    """Blocks of alternatives with locations in [floor, ceiling]; `log_size` is off by at most `log_size_error`."""

    @property
    def floor(self) -> FloatArray: ...

    @property
    def ceiling(self) -> FloatArray: ...

    @property
    def log_size(self) -> FloatArray: ...

    @property
    def log_size_error(self) -> FloatArray: ...

    def size(self, block: int) -> int:
        """Return the exact number of alternatives in a block."""

    def draw(self, block: int, bits: BitSource) -> Alternative:
        """Return a uniformly random alternative of a block."""


def race(blocks: Blocks, noise: Noise, bits: BitSource, *, width: int = WORD) -> Alternative:
    """Return the alternative with the largest location + noise; any noise of NOISES but logistic."""
    known = bits.integers(len(blocks.log_size), width)
    smallest, largest = exponential_bounds(known, width)
    with np.errstate(divide="ignore"):
        low, high = _noise_bounds(
            np.log(smallest) - blocks.log_size, np.log(largest) - blocks.log_size, blocks.log_size_error, noise
        )
    lower, upper = blocks.floor + low, blocks.ceiling + high
    best = float(lower.max())
    contenders = np.flatnonzero(upper >= best)
    entrants: list[Entrant] = []
    bounds: list[tuple[float, float]] = []
    for block in contenders[np.argsort(-lower[contenders])].tolist():
        descent = _Descent(blocks, block, noise, bits, Draw(int(known[block]), width))
        while blocks.ceiling[block] + descent.high >= best:
            entrant, (least, most) = descent.next_alternative()
            entrants.append(entrant)
            bounds.append((least + descent.low, most + descent.high))
            best = max(best, bounds[-1][0])
            if descent.exhausted:
                break
            descent.advance()
    left = [entrant for entrant, bound in zip(entrants, bounds, strict=True) if bound[1] >= best]
    winner: Alternative = sort_exactly(left, bits, width)[0].key
    return winner


def by_size(
    log_sizes: FloatArray, errors: FloatArray, exact_size: Callable[[int], int], bits: BitSource, *, width: int = WORD
) -> int:
    """Return an index with probability proportional to its size: the winner of a race with equal locations."""
    known = bits.integers(len(log_sizes), width)
    smallest, largest = exponential_bounds(known, width)
    with np.errstate(divide="ignore"):
        low, high = _noise_bounds(np.log(smallest) - log_sizes, np.log(largest) - log_sizes, errors, NOISES["gumbel"])
    left = np.flatnonzero(high >= low.max()).tolist()
    if len(left) == 1:
        return int(left[0])
    entrants = [
        Entrant(
            option,
            rational(0),
            [Draw(int(known[option]), width)],
            [rational(exact_size(option))],
            NOISES["gumbel"],
        )
        for option in left
    ]
    return int(sort_exactly(entrants, bits, width)[0].key)


class _Descent:
    """The noises of one block in descending order, each with the alternative that has it."""

    def __init__(self, blocks: Blocks, block: int, noise: Noise, bits: BitSource, first: Draw) -> None:
        self._blocks = blocks
        self._block = block
        self._noise = noise
        self._bits = bits
        self._draws: list[Draw] = []
        self._met: set[Hashable] = set()
        self._log_size = float(blocks.log_size[block])
        self._error = float(blocks.log_size_error[block])
        self._size = float(self._exact_size) if self._log_size < math.log(_SMALL) else math.inf
        self._sums = (0.0, 0.0)
        self.low = self.high = 0.0
        self._add(first)

    def _add(self, draw: Draw) -> None:
        """Add the next exponential: E · M grows by e · M/(M − j), which is e for large M."""
        factor = 1.0 if math.isinf(self._size) else self._size / (self._size - len(self._draws))
        self._draws.append(draw)
        ends = exponential_bounds(np.array([draw.known], dtype=np.uint64), draw.width)
        self._sums = (self._sums[0] + float(ends[0][0]) * factor, self._sums[1] + float(ends[1][0]) * factor)
        log_size = math.log(self._size) if math.isfinite(self._size) else self._log_size
        # For M >= 2⁴⁰, replacing M/(M − j) by 1 changes log E by less than 2j/M.
        error = 0.0 if math.isfinite(self._size) else self._error + len(self._draws) * 2.0 / _SMALL
        with np.errstate(divide="ignore"):
            logs = np.log(np.array(self._sums)) - log_size
            low, high = _noise_bounds(logs[:1], logs[1:], np.array([error]), self._noise)
        self.low, self.high = float(low[0]), float(high[0])

    def next_alternative(self) -> tuple[Entrant, tuple[float, float]]:
        """Return a uniformly random alternative not met yet, with the current noise, and bounds on its location."""
        while True:
            alternative = self._blocks.draw(self._block, self._bits)
            if alternative.key not in self._met:
                self._met.add(alternative.key)
                break
        divisors = [self._divisor(earlier) for earlier in range(len(self._draws))]
        magnitude = int(alternative.location).bit_length()
        entrant = Entrant(
            alternative, rational(alternative.location), list(self._draws), divisors, self._noise, magnitude
        )
        return entrant, _bounds(alternative.location)

    @cached_property
    def _exact_size(self) -> int:
        """The exact number of alternatives, computed on first use."""
        return self._blocks.size(self._block)

    def _divisor(self, earlier: int) -> Callable[[int], Any]:
        """Return M − j as a function; the exact M is computed only for contested comparisons."""
        return lambda width: rational(self._exact_size - earlier)(width)

    @property
    def exhausted(self) -> bool:
        """Whether every alternative of the block has been met."""
        return len(self._met) >= self._size

    def advance(self) -> None:
        """Draw the next smaller noise."""
        width = self._draws[0].width
        self._add(Draw(int(self._bits.integers(1, width)[0]), width))


def _bounds(location: Fraction) -> tuple[float, float]:
    """Return float bounds on a location; one below −SATURATED has no lower bound."""
    if location <= -SATURATED:
        return -math.inf, -SATURATED
    at = float(location)
    return at - SLACK * (1 + abs(at)), at + SLACK * (1 + abs(at))


def _noise_bounds(
    log_smallest: FloatArray, log_largest: FloatArray, error: FloatArray, noise: Noise
) -> tuple[FloatArray, FloatArray]:
    """Return bounds on a noise whose log-exponent lies between two values, each off by at most `error`.

    |dz / d log E| <= 1 where z >= 0, and <= 1 + |z| below (exactness.md, section 6).
    """

    def widening(z: FloatArray) -> FloatArray:
        widened: FloatArray = (error + SLACK) * (1.0 + np.maximum(-z, 0.0)) + SLACK * np.maximum(z, 0.0)
        return widened

    low, high = noise.log_quantile(log_largest), noise.log_quantile(log_smallest)
    return low - widening(low), high + widening(high)
