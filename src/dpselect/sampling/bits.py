"""Random bits: from the operating system, or from a seed for tests and examples."""

from __future__ import annotations

import os
from typing import Protocol

import numpy as np

from dpselect._arrays import BitArray


class BitSource(Protocol):
    """The source of all randomness: a protocol that `SystemBits` and `SeededBits` follow.

    Examples
    --------
    >>> def is_heads(bits: BitSource) -> bool:
    ...     return bool(bits.integers(1, 1)[0])
    >>> is_heads(SeededBits(1)) in (True, False)
    True
    """

    @property
    def secure(self) -> bool:
        """Whether the bits are unpredictable; a privacy guarantee holds only then."""

    def integers(self, count: int, width: int) -> BitArray:
        """Return independent uniform integers in the smallest unsigned dtype that holds them.

        Parameters
        ----------
        count
            How many integers.
        width
            Bits of each integer, from 1 to 64.
        """


class SystemBits:
    """Bits from the operating system's generator.

    It keeps no state in this process, so forked children and threads cannot repeat each other's bits.

    Examples
    --------
    >>> bits = SystemBits()
    >>> bits.secure, len(bits.integers(3, 8))
    (True, 3)
    """

    secure = True

    def integers(self, count: int, width: int) -> BitArray:
        """Return `count` independent uniform integers of `width` bits."""
        return _unpack(os.urandom(count * _word_bytes(width)), width)


class SeededBits:
    """Reproducible bits for tests and examples. Anyone who knows the seed can compute the noise.

    Parameters
    ----------
    seed
        A whole number of at least 0.

    Examples
    --------
    >>> SeededBits(1).secure
    False
    >>> bool((SeededBits(1).integers(5, 64) == SeededBits(1).integers(5, 64)).all())
    True
    """

    secure = False

    def __init__(self, seed: int) -> None:
        self._generator = np.random.Generator(np.random.PCG64(seed))

    def integers(self, count: int, width: int) -> BitArray:
        """Return `count` reproducible uniform integers of `width` bits."""
        return _unpack(self._generator.bytes(count * _word_bytes(width)), width)


def bit_source(seed: int | None = None) -> BitSource:
    """Return the operating system's bits, or reproducible ones if a seed is given.

    Parameters
    ----------
    seed
        None, or a whole number of at least 0.

    Returns
    -------
    BitSource
        `SystemBits` for None, otherwise `SeededBits`.

    Examples
    --------
    >>> bit_source().secure, bit_source(1).secure
    (True, False)
    """
    return SystemBits() if seed is None else SeededBits(seed)


def _word_bytes(width: int) -> int:
    """Return the bytes of the smallest machine word that holds `width` bits."""
    return 1 if width <= 8 else 2 if width <= 16 else 4 if width <= 32 else 8


def _unpack(data: bytes, width: int) -> BitArray:
    """Return the leading `width` bits of each word."""
    word = _word_bytes(width)
    words: BitArray = np.frombuffer(data, dtype=f"u{word}")
    surplus = 8 * word - width
    return words >> words.dtype.type(surplus) if surplus else words
