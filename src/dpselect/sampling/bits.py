"""Random bits: from the operating system, or from a seed for tests and examples."""

from __future__ import annotations

import os
from typing import Protocol

import numpy as np

from dpselect._arrays import BitArray


class BitSource(Protocol):
    """Where every random decision comes from."""

    @property
    def secure(self) -> bool:
        """Whether the bits are unpredictable, so that a guarantee built on them holds."""

    def integers(self, count: int, width: int) -> BitArray:
        """Return `count` independent uniform integers of `width` bits, 1 <= width <= 64.

        They come in the smallest unsigned dtype that holds them.
        """


class SystemBits:
    """Bits from the operating system's generator.

    It keeps no state in this process: forked children and threads cannot repeat each other's bits.
    """

    secure = True

    def integers(self, count: int, width: int) -> BitArray:
        """Return `count` independent uniform integers of `width` bits."""
        return _unpack(os.urandom(count * _word(width)), width)


class SeededBits:
    """Reproducible bits for tests and examples; whoever knows the seed knows the noise."""

    secure = False

    def __init__(self, seed: int) -> None:
        self._generator = np.random.Generator(np.random.PCG64(seed))

    def integers(self, count: int, width: int) -> BitArray:
        """Return `count` reproducible uniform integers of `width` bits."""
        return _unpack(self._generator.bytes(count * _word(width)), width)


def bit_source(seed: int | None = None) -> BitSource:
    """Return the operating system's bits, or reproducible ones when a seed is given."""
    return SystemBits() if seed is None else SeededBits(seed)


def _word(width: int) -> int:
    """Bytes of the smallest machine word that holds `width` bits."""
    return 1 if width <= 8 else 2 if width <= 16 else 4 if width <= 32 else 8


def _unpack(data: bytes, width: int) -> BitArray:
    word = _word(width)
    words: BitArray = np.frombuffer(data, dtype=f"u{word}")
    surplus = 8 * word - width
    return words >> words.dtype.type(surplus) if surplus else words
