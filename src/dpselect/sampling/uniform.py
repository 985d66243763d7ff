"""Exactly uniform integers, sequences, subsets and permutations, for ranges of any size."""

from __future__ import annotations

import numpy as np

from dpselect._arrays import IntArray
from dpselect.sampling.bits import BitSource

WORD = 64
"""Bits drawn at a time; a wider integer is put together from several words."""


def uniform_integer(high: int, bits: BitSource) -> int:
    """Return a uniform integer in 0..high−1, by rejection.

    Parameters
    ----------
    high
        A whole number of at least 1, of any size.
    bits
        The source of randomness.

    Examples
    --------
    >>> from dpselect.sampling import SeededBits
    >>> 0 <= uniform_integer(10**30, SeededBits(1)) < 10**30
    True
    """
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
    """Return a uniformly random sequence of `count` distinct integers in 0..high−1.

    If `count` is more than half of `high`, the whole range is shuffled. Otherwise the first `count` distinct values of
    independent uniform draws are kept, which is the same law: given the values so far, the next new one is uniform
    over the rest.

    Parameters
    ----------
    high
        Size of the range.
    count
        Length of the sequence, at most `high`.
    bits
        The source of randomness.

    Examples
    --------
    >>> from dpselect.sampling import SeededBits
    >>> len(set(uniform_sequence(10**18, 5, SeededBits(1))))
    5
    """
    if 2 * count > high:
        return shuffled(high, bits)[:count].tolist()  # type: ignore[no-any-return]
    chosen: dict[int, None] = {}
    while len(chosen) < count:
        for value in _uniform_integers(high, count - len(chosen), bits):
            chosen.setdefault(value)
    return list(chosen)


def _uniform_integers(high: int, count: int, bits: BitSource) -> list[int]:
    """Return up to `count` independent uniform integers in 0..high−1; rejected draws are left out."""
    width = (high - 1).bit_length()
    if width > WORD:
        return [uniform_integer(high, bits) for _ in range(count)]
    if width == 0:
        return [0] * count
    values = bits.integers(count, width)
    accepted: list[int] = values[values <= high - 1].tolist()
    return accepted


def uniform_subset(high: int, count: int, bits: BitSource) -> list[int]:
    """Return a uniformly random subset of 0..high−1 with `count` members, in ascending order.

    Parameters
    ----------
    high
        Size of the range.
    count
        Size of the subset, at most `high`.
    bits
        The source of randomness.

    Examples
    --------
    >>> from dpselect.sampling import SeededBits
    >>> uniform_subset(4, 4, SeededBits(1))
    [0, 1, 2, 3]
    """
    if count == high:
        return list(range(high))
    if 2 * count > high:
        left_out = set(uniform_sequence(high, high - count, bits))
        return [value for value in range(high) if value not in left_out]
    return sorted(uniform_sequence(high, count, bits))


def shuffled(length: int, bits: BitSource) -> IntArray:
    """Return a uniformly random permutation of 0..length−1.

    It sorts random keys. If all keys differ, every order is equally likely; if two are equal, all are drawn again.

    Parameters
    ----------
    length
        Length of the permutation.
    bits
        The source of randomness.

    Examples
    --------
    >>> from dpselect.sampling import SeededBits
    >>> sorted(shuffled(3, SeededBits(1)).tolist())
    [0, 1, 2]
    """
    while True:
        keys = bits.integers(length, WORD)
        order = np.argsort(keys)
        ranked = keys[order]
        if not (ranked[1:] == ranked[:-1]).any():
            return order.astype(np.int64, copy=False)
