"""Random words that are given in place of drawn, so that the answer of a sampler is a function of them."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from dpselect._arrays import BitArray
from dpselect.sampling.bits import SeededBits

WIDTH = 64
WORDS = 1 << WIDTH
"""How many words there are: word n stands for the uniform numbers from n/WORDS to (n + 1)/WORDS."""


class GivenWords(SeededBits):
    """Words of 64 bits as given, one after the other, and narrower numbers likewise; beyond them, seeded bits."""

    def __init__(self, words: Iterable[int], narrow: Iterable[int] = ()) -> None:
        super().__init__(0)
        self._words = list(words)
        self._narrow = list(narrow)

    def integers(self, count: int, width: int) -> BitArray:
        """Return the next of what was given."""
        left = self._words if width == WIDTH else self._narrow
        given, left[:count] = left[:count], []
        further = super().integers(count - len(given), width)
        return np.concatenate([np.array(given, dtype=further.dtype), further])
