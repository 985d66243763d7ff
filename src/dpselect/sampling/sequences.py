"""Uniformly random sequences whose members obey bounds.

Notation: the members of a sequence are ranks 0, 1, …; row r (from 0) may hold ranks below `outer[r]`, all different.
Array never fall from one row to the next, so the number of sequences is `Π (outer[r] − r)`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import prod

import numpy as np

from dpselect._arrays import Array
from dpselect.sampling.bits import BitSource
from dpselect.sampling.logcount import PRECISION
from dpselect.sampling.race import by_size
from dpselect.sampling.uniform import uniform_integer

_LARGEST_WORD = 2**62
"""Whole numbers from here on are kept as Python integers: NumPy would turn some of them into floats."""


def whole_numbers(numbers: Sequence[int]) -> Array:
    """Return whole numbers of any size as an array that holds them without error."""
    return np.array(numbers, dtype=np.int64 if max(numbers, default=0) < _LARGEST_WORD else object)


def bounded_sequence(inner: Array, outer: Array, bits: BitSource) -> list[int]:
    """Return a uniformly random sequence within `outer` that is not within `inner`.

    The first row to exceed its inner bound is r with weight
    `Π_{q<r} (inner[q] − q) · (outer[r] − inner[r]) · Π_{q>r} (outer[q] − q)`;
    these add up to the number of such sequences (joint, section 4). Rows before it draw below their inner bounds, rows
    behind it below their outer bounds, each from what is left.
    """
    first = _first_beyond(inner, outer, bits)
    upper = np.concatenate([inner[:first], outer[first:]])
    lower = list(range(len(upper)))
    lower[first] = int(inner[first])
    return _picks(lower, upper.tolist(), bits)


def _first_beyond(inner: Array, outer: Array, bits: BitSource) -> int:
    """Return the first row beyond its inner bound, with the weights above."""
    rows = np.arange(len(outer))
    gained = (outer - inner).astype(np.float64)
    choices = [(bound - rows).astype(np.float64) for bound in (inner, outer)]
    with np.errstate(divide="ignore"):
        within = np.concatenate([[0.0], np.cumsum(np.log(np.maximum(choices[0], 0.0)))[:-1]])
        behind = np.concatenate([np.cumsum(np.log(choices[1])[::-1])[::-1][1:], [0.0]])
        log_sizes = within + np.log(gained) + behind
    possible = np.flatnonzero(np.isfinite(log_sizes))
    if len(possible) == 1:
        return int(possible[0])
    total = np.log(outer.astype(np.float64) + 1.0).sum()
    errors = np.full(len(possible), PRECISION * (1.0 + total) * max(4.0, len(outer) / 512.0))
    exact = partial(_exact_weight, inner.tolist(), outer.tolist())
    chosen = by_size(log_sizes[possible], errors, lambda option: exact(int(possible[option])), bits)
    return int(possible[chosen])


def _exact_weight(inner: list[int], outer: list[int], row: int) -> int:
    before = prod(inner[other] - other for other in range(row))
    behind = prod(outer[other] - other for other in range(row + 1, len(outer)))
    return before * (outer[row] - inner[row]) * behind


def _picks(lower: list[int], upper: list[int], bits: BitSource) -> list[int]:
    """Shuffle a virtual array 0, 1, … : row r swaps place r with a uniform one of places lower[r] … upper[r] − 1.

    Places before r hold what was taken; as bounds never fall, places r … upper[r] − 1 hold exactly the ranks
    below upper[r] that are left. Only places that moved are stored.
    """
    moved: dict[int, int] = {}
    picks = []
    for row, offset in enumerate(_uniform_offsets(lower, upper, bits)):
        place = lower[row] + offset
        picks.append(moved.get(place, place))
        moved[place] = moved.get(row, row)
    return picks


def _uniform_offsets(lower: list[int], upper: list[int], bits: BitSource) -> list[int]:
    """Return a uniform integer in 0..upper−lower−1 for each row, most of them from one batch of words."""
    ranges = [high - low for low, high in zip(lower, upper, strict=True)]
    words = bits.integers(len(ranges), 64).tolist()
    offsets = []
    for word, size in zip(words, ranges, strict=True):
        fair = (1 << 64) // size * size if size >> 64 == 0 else 0
        offsets.append(word % size if word < fair else uniform_integer(size, bits))
    return offsets
