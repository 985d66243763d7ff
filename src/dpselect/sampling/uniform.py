"""Exactly uniform integers, sequences and subsets of ranges of any size."""

from __future__ import annotations

import numpy as np

from dpselect._arrays import IntArray
from dpselect.sampling.bits import BitSource

WORD = 64
"""Bits asked for at a time; a range wider than this is put together from several words."""


def uniform_integer(high: int, bits: BitSource) -> int:
    """Return a uniform integer in 0..high−1, by rejection, for `high` of any size."""
    width = (high - 1).bit_length()
    while True:
        value = wide_integer(width, bits)
        if value < high:
            return value


def wide_integer(width: int, bits: BitSource) -> int:
    """Return a uniform integer of `width` bits, for any width."""
    value = 0
    while width > 0:
        part = min(width, WORD)
        value = value << part | int(bits.integers(1, part)[0])
        width -= part
    return value


def uniform_sequence(high: int, count: int, bits: BitSource) -> list[int]:
    """Return `count` distinct integers of 0..high−1 as a uniformly random sequence.

    Dense requests shuffle the range; sparse ones keep the first `count` distinct values of independent
    uniform draws, which is the same law: given what was drawn before, the next new value is uniform over the rest.
    """
    if 2 * count > high:
        return shuffled(high, bits)[:count].tolist()  # type: ignore[no-any-return]
    chosen: dict[int, None] = {}
    while len(chosen) < count:
        for value in _uniform_integers(high, count - len(chosen), bits):
            chosen.setdefault(value)
    return list(chosen)


def _uniform_integers(high: int, count: int, bits: BitSource) -> list[int]:
    """Return at most `count` independent uniform integers in 0..high−1: rejected ones are left out."""
    width = (high - 1).bit_length()
    if width > WORD:
        return [uniform_integer(high, bits) for _ in range(count)]
    if width == 0:
        return [0] * count
    values = bits.integers(count, width)
    accepted: list[int] = values[values <= high - 1].tolist()
    return accepted


def uniform_subset(high: int, count: int, bits: BitSource) -> list[int]:
    """Return a uniformly random subset of 0..high−1 with `count` members, in ascending order."""
    if count == high:
        return list(range(high))
    if 2 * count > high:
        left_out = set(uniform_sequence(high, high - count, bits))
        return [value for value in range(high) if value not in left_out]
    return sorted(uniform_sequence(high, count, bits))


def shuffled(length: int, bits: BitSource) -> IntArray:
    """Return a uniformly random permutation of 0..length−1.

    It sorts random keys; given that no two are equal every order is equally likely, and equal ones are drawn again.
    """
    while True:
        keys = bits.integers(length, WORD)
        order = np.argsort(keys)
        ranked = keys[order]
        if not (ranked[1:] == ranked[:-1]).any():
            return order.astype(np.int64, copy=False)
