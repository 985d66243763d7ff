"""Noisy values against one noisy threshold, exactly: the tests of the sparse vector technique.

The threshold's noise is drawn once and shared by all tests, so the answers must agree with one and the same number: its
bits are kept, and further ones are appended when a test is too close to call (exactness.md, section 9).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from dpselect.sampling.balls import Draw, Entrant, rational, sort_exactly
from dpselect.sampling.bits import BitSource
from dpselect.sampling.exponent import exponential_bounds
from dpselect.sampling.field import Field
from dpselect.sampling.noise import NOISES

WORD = 64
"""Bits drawn at a time for each noise."""

_LAPLACE = NOISES["laplace"]


@dataclass(frozen=True)
class MeasuredField(Field):
    """A field whose locations are `scale · (value − origin)`, for an origin that is given."""

    origin: Any = field(kw_only=True)

    @cached_property
    def reference(self) -> Any:
        """The origin."""
        return self.origin


def exceeds(entrants: MeasuredField, height: Fraction, bits: BitSource, *, width: int = WORD) -> Iterator[bool]:
    """Yield for one entrant after the other whether `location + ν > height + ρ`.

    ν is standard Laplace noise of each entrant's own, ρ the same standard Laplace noise for all of them.
    """
    known = bits.integers(len(entrants.values) + 1, width)
    smallest, largest = exponential_bounds(known, width)
    with np.errstate(divide="ignore", over="ignore"):
        low, high = _LAPLACE.quantile(largest), _LAPLACE.quantile(smallest)
        locations = entrants.locations(slice(None))
    lower, upper = entrants.widen(locations, low[1:], high[1:])
    least, most = entrants.widen(np.array([float(height)]), low[:1], high[:1])
    shared = Draw(int(known[0]), width)
    for place in range(len(entrants.values)):
        if lower[place] > most[0]:
            yield True
        elif upper[place] < least[0]:
            yield False
        else:
            own = Draw(int(known[place + 1]), width)
            yield _above(entrants, place, own, height, shared, bits, width)


def _above(
    entrants: MeasuredField, place: int, own: Draw, height: Fraction, shared: Draw, bits: BitSource, step: int
) -> bool:
    """Decide one test in balls; the threshold keeps the bits that this takes."""
    magnitude = max(abs(int(entrants.exact_location(place))), int(height)).bit_length()
    pair = [
        Entrant(True, entrants.location_ball(place), [own], [rational(1)], _LAPLACE, magnitude),
        Entrant(False, rational(height), [shared], [rational(1)], _LAPLACE, magnitude),
    ]
    return bool(sort_exactly(pair, bits, step)[0].key)
