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
from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from fractions import Fraction
from functools import cached_property
from heapq import heappop, heappush
from typing import Any, Protocol

import numpy as np

from dpselect._arrays import BitArray, FloatArray
from dpselect.sampling.balls import Draw, Entrant, rational, sort_exactly
from dpselect.sampling.bits import BitSource
from dpselect.sampling.bounds import (
    SATURATED,
    SLACK,
    exponential_bounds,
    exponential_ends,
    known_exponential,
    within_margin,
)
from dpselect.sampling.noise import NOISES, Noise

WORD = 64
"""Bits drawn at a time for each noise."""

_SMALL = 2.0**40
"""The size of smaller blocks is computed exactly, since they may run out of alternatives."""

_LOG_SMALL = math.log(_SMALL)


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

    def draw(self, block: int, bits: BitSource) -> Hashable:
        """Return a uniformly random alternative of a block."""

    def location(self, alternative: Any) -> Fraction:
        """Return the exact location of an alternative."""


def race(blocks: Blocks, noise: Noise, bits: BitSource, *, width: int = WORD) -> Hashable:
    """Return the alternative with the largest location + noise; any noise of NOISES but logistic."""
    return next(races(blocks, noise, bits, 1, width=width))


def races(blocks: Blocks, noise: Noise, bits: BitSource, count: int, *, width: int = WORD) -> Iterator[Hashable]:
    """Yield the winners of several races over the same alternatives, each without the winners before it.

    In each race every alternative has a fresh noise. Those of earlier winners are drawn too and passed over, so that
    the blocks stay as they are and their largest noises can be drawn for all races at once.
    """
    known = bits.integers(count * len(blocks.log_size), width).reshape(count, -1)
    low, high = _largest_noises(known, width, blocks.log_size, blocks.log_size_error, noise)
    upper = blocks.ceiling + high
    won: set[Hashable] = set()
    wins: Counter[int] = Counter()
    emptied: set[int] = set()
    for turn, order in enumerate(np.argsort(upper, axis=1).tolist()):

        def start(block: int, turn: int = turn) -> _Descent:
            bounds = float(low[turn, block]), float(high[turn, block])
            return _Descent(blocks, block, noise, bits, Draw(int(known[turn, block]), width), bounds)

        left = _contenders(order, upper[turn].tolist(), start, won, emptied)
        winner = left[0] if len(left) == 1 else sort_exactly([each.entrant() for each in left], bits, width)[0].key
        yield winner.alternative
        won.add(winner.alternative)
        wins[winner.block] += 1
        if wins[winner.block] == blocks.size(winner.block):
            emptied.add(winner.block)


def _contenders(
    waiting: list[int],
    upper: list[float],
    start: Callable[[int], _Descent],
    won: set[Hashable],
    emptied: set[int],
) -> list[_Entered]:
    """Return the alternatives that may win a race, of blocks `waiting` by ascending upper bound of their best value.

    The block with the highest bound is always next, and comes back with its next noise. So no alternative is drawn that
    could not win against all that were drawn before, however loose the bounds are.
    """
    best = -math.inf
    entered: list[_Entered] = []
    running: list[tuple[float, int, _Descent]] = []
    while waiting or running:
        if waiting and (not running or upper[waiting[-1]] > -running[0][0]):
            block = waiting.pop()
            if upper[block] < best:
                break
            if block in emptied:
                continue
            descent = start(block)
        else:
            bound, _, descent = heappop(running)
            if -bound < best:
                break
        alternative = descent.next_alternative()
        if alternative not in won:
            entered.append(_Entered(alternative, descent))
            best = max(best, entered[-1].low)
        if not descent.exhausted:
            descent.advance()
            heappush(running, (-descent.upper, descent.block, descent))
    return [each for each in entered if each.high >= best]


def by_size(
    log_sizes: FloatArray, errors: FloatArray, exact_size: Callable[[int], int], bits: BitSource, *, width: int = WORD
) -> int:
    """Return an index with probability proportional to its size: the winner of a race with equal locations."""
    known = bits.integers(len(log_sizes), width)
    low, high = _largest_noises(known, width, log_sizes, errors, NOISES["gumbel"])
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

    def __init__(
        self, blocks: Blocks, block: int, noise: Noise, bits: BitSource, first: Draw, bounds: tuple[float, float]
    ) -> None:
        self.block = block
        self.noise = noise
        self.draws = [first]
        self.low, self.high = bounds
        self.blocks = blocks
        self._bits = bits
        self._met: set[Hashable] = set()
        self._sums = exponential_ends(first.known, first.width)
        self._log_size, self._error = float(blocks.log_size[block]), float(blocks.log_size_error[block])
        self._size = math.inf
        if self._log_size < _LOG_SMALL:
            self._size = float(self.exact_size)
            self._log_size, self._error = math.log(self._size), 0.0

    def next_alternative(self) -> Hashable:
        """Return a uniformly random alternative not met yet; it has the current noise."""
        while True:
            alternative = self.blocks.draw(self.block, self._bits)
            if alternative not in self._met:
                self._met.add(alternative)
                return alternative

    def advance(self) -> None:
        """Draw the next smaller noise: E · M grows by e · M/(M − j), which is e for large M."""
        width = self.draws[0].width
        draw = Draw(int(self._bits.integers(1, width)[0]), width)
        factor = 1.0 if math.isinf(self._size) else self._size / (self._size - len(self.draws))
        self.draws.append(draw)
        smallest, largest = exponential_ends(draw.known, draw.width)
        self._sums = self._sums[0] + smallest * factor, self._sums[1] + largest * factor
        # For M >= 2⁴⁰, replacing M/(M − j) by 1 changes log E by less than 2j/M.
        error = self._error + (len(self.draws) * 2.0 / _SMALL if math.isinf(self._size) else 0.0)
        high, low = (self.noise.log_quantile_at(_log(total) - self._log_size) for total in self._sums)
        self.low, self.high = low - _widening(low, error), high + _widening(high, error)

    @cached_property
    def exact_size(self) -> int:
        """The exact number of alternatives, computed on first use."""
        return self.blocks.size(self.block)

    @property
    def upper(self) -> float:
        """Bound on the current noise plus the highest location of the block."""
        return float(self.blocks.ceiling[self.block]) + self.high

    @property
    def exhausted(self) -> bool:
        """Whether every alternative of the block has been met."""
        return len(self._met) >= self._size


class _Entered:
    """An alternative with the j-th largest noise of its block, with bounds on their sum."""

    def __init__(self, alternative: Hashable, descent: _Descent) -> None:
        self.alternative = alternative
        self.block = descent.block
        self._descent = descent
        self._order = len(descent.draws)
        self._location = descent.blocks.location(alternative)
        least, most = _bounds(self._location)
        self.low, self.high = least + descent.low, most + descent.high

    def entrant(self) -> Entrant:
        """Return the noisy value for comparison in balls."""
        draws = self._descent.draws[: self._order]
        divisors = [self._divisor(earlier) for earlier in range(self._order)]
        magnitude = int(self._location).bit_length()
        return Entrant(self, rational(self._location), draws, divisors, self._descent.noise, magnitude)

    def _divisor(self, earlier: int) -> Callable[[int], Any]:
        """Return M − j as a function; the exact M is computed only for contested comparisons."""
        return lambda width: rational(self._descent.exact_size - earlier)(width)


def _bounds(location: Fraction) -> tuple[float, float]:
    """Return float bounds on a location; one below −SATURATED has no lower bound."""
    try:
        at = float(location)
    except OverflowError:
        at = -math.inf
    if at <= -SATURATED:
        return -math.inf, -SATURATED
    return at - SLACK * (1 + abs(at)), at + SLACK * (1 + abs(at))


def _largest_noises(
    known: BitArray, width: int, log_sizes: FloatArray, errors: FloatArray, noise: Noise
) -> tuple[FloatArray, FloatArray]:
    """Return bounds on the largest noise of each block, from the bits that are known of it.

    |dz / d log E| <= 1 where z >= 0, and <= 1 + |z| below (exactness.md, section 6).
    """
    with np.errstate(divide="ignore"):
        ends = [known_exponential(known)] if within_margin(known, width) else exponential_bounds(known, width)
        noises = [noise.log_quantile(np.log(end) - log_sizes) for end in ends]
    widenings = [(errors + SLACK) * (1.0 + np.maximum(-z, 0.0)) + SLACK * np.maximum(z, 0.0) for z in noises]
    return noises[-1] - widenings[-1], noises[0] + widenings[0]


def _widening(z: float, error: float) -> float:
    """Return how far one noise may be off; the formula of `_largest_noises`."""
    return (error + SLACK) * (1.0 + max(-z, 0.0)) + SLACK * max(z, 0.0)


def _log(number: float) -> float:
    return math.log(number) if number else -math.inf
