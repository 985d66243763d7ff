"""Exact comparisons of noisy values with a threshold: one that is noisy itself, or a fixed one.

In the tests of the sparse vector technique a test passes if `location + ν > height + ρ`: ν is standard Laplace noise of
its own, ρ standard Laplace noise that all tests share. The bits of ρ are kept between tests, and more are appended if a
comparison is too close to decide, so all answers refer to the same real number. `passing` compares with a fixed
threshold, and counts how many of each group of tied entrants are above it (exactness.md, section 9).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from dpselect._arrays import BitArray, BoolArray, FloatArray, IntArray
from dpselect.sampling.balls import Draw, Entrant, is_positive, rational, sort_exactly
from dpselect.sampling.bits import BitSource
from dpselect.sampling.bounds import Field, exponential_bounds, known_exponential, within_margin
from dpselect.sampling.noise import NOISES, Noise

WORD = 64
"""Bits drawn at a time for each noise."""

BLOCK = 1 << 16
"""Entrants whose noises are drawn at a time."""

_LAPLACE = NOISES["laplace"]


@dataclass(frozen=True)
class MeasuredField(Field):
    """A field whose locations are `scale · (value − origin)` for a given origin."""

    origin: Any = field(kw_only=True)

    @cached_property
    def reference(self) -> Any:
        """The origin."""
        return self.origin


def passing_at_first(entrants: MeasuredField, height: Fraction, bits: BitSource, *, width: int = WORD) -> int:
    """Return how many entrants pass their test before the first one fails."""
    known = bits.integers(len(entrants.values) + 1, width)
    passed, failed = _decided(entrants, height, known, width)
    shared = Draw(int(known[0]), width)
    for place in np.flatnonzero(~passed).tolist():
        own = Draw(int(known[place + 1]), width)
        if failed[place] or not _above(entrants, place, own, height, shared, bits, width):
            return int(place)
    return len(passed)


def first_exceeding(
    fields: Iterable[MeasuredField], height: Fraction, bits: BitSource, *, width: int = WORD, block: int = BLOCK
) -> int | None:
    """Return the index, counted through all fields, of the first entrant that passes its test, or None.

    The noises of one block of entrants are drawn at a time, so millions of entrants take little memory.
    """
    word = bits.integers(1, width)
    shared = Draw(int(word[0]), width)
    before = 0
    for entrants in fields:
        for start in range(0, len(entrants.values), block):
            here = replace(entrants, values=entrants.values[start : start + block])
            known = np.concatenate([word, bits.integers(len(here.values), width)])
            passed, failed = _decided(here, height, known, width)
            for place in np.flatnonzero(~failed).tolist():
                own = Draw(int(known[place + 1]), width)
                if passed[place] or _above(here, place, own, height, shared, bits, width):
                    return before + int(place)
            before += len(here.values)
    return None


def passing(
    entrants: MeasuredField, noise: Noise, bits: BitSource, *, width: int = WORD, block: int = BLOCK
) -> IntArray:
    """Return how many entrants of each group have `scale · (value − origin) + Z > 0`, each with a noise Z of its own.

    The noises of one block of entrants are drawn at a time, so millions of entrants take little memory.
    """
    assert entrants.multiplicities is not None
    passed = np.zeros(len(entrants.values), dtype=np.int64)
    ends = np.cumsum(entrants.multiplicities)
    locations = entrants.locations(slice(None))
    for start in range(0, int(ends[-1]) if len(ends) else 0, block):
        members = np.arange(start, min(start + block, int(ends[-1])))
        groups = np.searchsorted(ends, members, side="right")
        known = bits.integers(len(groups), width)
        with np.errstate(divide="ignore", over="ignore"):
            low, high = _noises(known, width, noise)
        lower, upper = entrants.widen(locations[groups], low, high)
        above = lower > 0
        for place in np.flatnonzero(~above & (upper >= 0)).tolist():
            group = int(groups[place])
            magnitude = abs(int(entrants.exact_location(group))).bit_length()
            own = [Draw(int(known[place]), width)]
            entrant = Entrant(None, entrants.location_ball(group), own, [rational(1)], noise, magnitude)
            above[place] = is_positive(entrant, bits, width)
        passed += np.bincount(groups[above], minlength=len(passed))
    return passed


def _decided(entrants: MeasuredField, height: Fraction, known: BitArray, width: int) -> tuple[BoolArray, BoolArray]:
    """Return which entrants pass, and which fail, whatever the unknown bits are."""
    with np.errstate(divide="ignore", over="ignore"):
        low, high = _noises(known, width, _LAPLACE)
        locations = np.concatenate([[float(height)], entrants.locations(slice(None))])
    lower, upper = entrants.widen(locations, low, high)
    return lower[1:] > upper[0], upper[1:] < lower[0]


def _noises(known: BitArray, width: int, noise: Noise) -> tuple[FloatArray, FloatArray]:
    """Return bounds on noises of which `width` bits are known."""
    if within_margin(known, width):
        noises = noise.quantile(known_exponential(known))
        return noises, noises
    smallest, largest = exponential_bounds(known, width)
    return noise.quantile(largest), noise.quantile(smallest)


def _above(
    entrants: MeasuredField, place: int, own: Draw, height: Fraction, shared: Draw, bits: BitSource, step: int
) -> bool:
    """Decide one test in ball arithmetic; bits added to the threshold are kept in `shared`."""
    magnitude = max(abs(int(entrants.exact_location(place))), int(height)).bit_length()
    pair = [
        Entrant(True, entrants.location_ball(place), [own], [rational(1)], _LAPLACE, magnitude),
        Entrant(False, rational(height), [shared], [rational(1)], _LAPLACE, magnitude),
    ]
    return bool(sort_exactly(pair, bits, step)[0].key)
