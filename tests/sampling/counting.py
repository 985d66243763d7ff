"""Exact counting: run a sampler on every string of bits up to a length, and add up dyadic probabilities."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping
from fractions import Fraction
from itertools import product

import numpy as np

from dpselect.sampling.bits import BitArray, BitSource


class OutOfBits(Exception):
    """The sampler asked for more bits than the script holds."""

    def __init__(self, missing: int) -> None:
        self.missing = missing


class ScriptedBits:
    """Bits read from a given string."""

    secure = False

    def __init__(self, script: tuple[int, ...]) -> None:
        self._script = script
        self._read = 0

    def integers(self, count: int, width: int) -> BitArray:
        end = self._read + count * width
        if end > len(self._script):
            raise OutOfBits(end - len(self._script))
        values = []
        for start in range(self._read, end, width):
            value = 0
            for bit in self._script[start : start + width]:
                value = value << 1 | bit
            values.append(value)
        self._read = end
        return np.array(values, dtype=np.uint64)


def count_exactly(sampler: Callable[[BitSource], Hashable], depth: int) -> tuple[dict[Hashable, Fraction], Fraction]:
    """Return the probability that the sampler has decided for each outcome within `depth` bits, and the undecided rest.

    A string of n bits that decides has probability 2^−n, so the sums are exact.
    """
    decided: defaultdict[Hashable, Fraction] = defaultdict(Fraction)
    undecided = Fraction(0)
    scripts: list[tuple[int, ...]] = [()]
    while scripts:
        script = scripts.pop()
        try:
            decided[sampler(ScriptedBits(script))] += Fraction(1, 1 << len(script))
        except OutOfBits as need:
            if len(script) + need.missing > depth:
                undecided += Fraction(1, 1 << len(script))
            else:
                scripts.extend((*script, *more) for more in product((0, 1), repeat=need.missing))
    return dict(decided), undecided


def contradictions(
    law: Mapping[Hashable, float], decided: Mapping[Hashable, Fraction], undecided: Fraction
) -> list[Hashable]:
    """Return the outcomes whose probability cannot be what the law says.

    The truth lies between what was decided and that plus the rest; 1e-9 allows for the numerical law.
    """
    return [
        outcome
        for outcome in law.keys() | decided.keys()
        if not float(decided.get(outcome, Fraction(0))) - 1e-9
        <= law.get(outcome, 0.0)
        <= float(decided.get(outcome, Fraction(0)) + undecided) + 1e-9
    ]
