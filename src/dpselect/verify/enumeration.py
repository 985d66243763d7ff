"""Enumeration of random bits: run a sampler on every bit string up to a length, and sum the exact probabilities."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Mapping
from fractions import Fraction
from functools import partial
from itertools import combinations, permutations, product
from typing import Any

import numpy as np

from dpselect._arrays import BitArray
from dpselect.mechanisms import Canonical, Mechanism, OneShot, Peeling, TopStable
from dpselect.ranking.bounds import Bounds
from dpselect.ranking.walk import Pairs, Walk, thinned
from dpselect.sampling import uniform_integer, uniform_sequence, uniform_subset
from dpselect.sampling.bits import BitSource
from dpselect.sampling.sequences import bounded_sequence, whole_numbers
from dpselect.scores import Scores
from dpselect.verify.exact import WIDTH, WORDS, ExactCheck, GivenWords

TOLERANCE = 1e-9
"""Error allowed for a law that was computed by numerical integration."""


class OutOfBits(Exception):
    """The sampler asked for more bits than it was given."""

    def __init__(self, missing: int) -> None:
        self.missing = missing


class ScriptedBits:
    """A bit source that reads a given bit string."""

    secure = False

    def __init__(self, script: tuple[int, ...]) -> None:
        self._script = script
        self._read = 0

    def integers(self, count: int, width: int) -> BitArray:
        """Return the next numbers of the bit string."""
        end = self._read + count * width
        if end > len(self._script):
            raise OutOfBits(end - len(self._script))
        parts = [self._script[start : start + width] for start in range(self._read, end, width)]
        self._read = end
        return np.array([int("".join(map(str, part)), 2) for part in parts], dtype=np.uint64)


def count_exactly(sampler: Callable[[BitSource], Hashable], depth: int) -> tuple[dict[Hashable, Fraction], Fraction]:
    """Return the probability of each outcome decided within `depth` bits, and the undecided probability.

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
    """Return the outcomes whose probability contradicts the law.

    The true probability lies between the decided one and that plus the undecided rest.
    """
    return [outcome for outcome in law.keys() | decided.keys() if contradiction(law, decided, undecided, outcome)]


def contradiction(
    law: Mapping[Hashable, float], decided: Mapping[Hashable, Fraction], undecided: Fraction, outcome: Hashable
) -> float:
    """Return by how much the probability of an outcome contradicts the law, 0 within TOLERANCE."""
    found, stated = decided.get(outcome, Fraction(0)), law.get(outcome, 0.0)
    excess = max(float(found) - stated, stated - float(found + undecided))
    return excess if excess > TOLERANCE else 0.0


class NarrowScript(GivenWords):
    """Given 64-bit words; narrower numbers come from another bit source."""

    def __init__(self, words: list[int], narrow: BitSource) -> None:
        super().__init__(words)
        self._narrow_source = narrow

    def integers(self, count: int, width: int) -> BitArray:
        """Return the next numbers of this width."""
        return super().integers(count, width) if width == WIDTH else self._narrow_source.integers(count, width)


DEPTH = 12


SINGLES = [OneShot(k=1, epsilon=1.0), *(Peeling(k=1, epsilon=1.0, noise=noise) for noise in ("exponential", "gumbel"))]
SETS = [OneShot(k=3, epsilon=1.0), Canonical(k=3, epsilon=1.0), TopStable(k=3, epsilon=100.0, delta=0.1, pool=3)]
"""Mechanisms whose groups of ties and whose sets are enumerated; the first of each has broken twins."""


def uniform_outcomes(
    name: str, compared: str, sampler: Callable[[BitSource], Hashable], outcomes: list[Hashable]
) -> ExactCheck:
    """Enumerate a sampler whose outcomes must all be equally likely."""
    decided, undecided = count_exactly(sampler, DEPTH)
    law: dict[Hashable, float] = dict.fromkeys(outcomes, 1 / len(outcomes))
    excess = tuple(contradiction(law, decided, undecided, outcome) for outcome in law.keys() | decided.keys())
    # A sampler that decides nothing would contradict no law.
    return ExactCheck(name, compared, (*excess, float(undecided > Fraction(1, 4))), 0.0, 0.0)


def uniform_draws(name: str, integer: Callable[[int, BitSource], int] = uniform_integer) -> ExactCheck:
    """Enumerate uniform integers, sequences and subsets of small ranges."""
    checks = [
        *[uniform_outcomes(name, "", partial(integer, high), list(range(high))) for high in (2, 3, 5, 7)],
        uniform_outcomes(name, "", lambda bits: tuple(uniform_sequence(5, 2, bits)), list(permutations(range(5), 2))),
        uniform_outcomes(name, "", lambda bits: tuple(uniform_subset(5, 2, bits)), list(combinations(range(5), 2))),
    ]
    values = tuple(value for check in checks for value in check.values)
    return ExactCheck(name, "uniform draws, by counting bits", values, 0.0, 0.0)


def tied_members(name: str, mechanism: Mechanism = SINGLES[0]) -> ExactCheck:
    """Enumerate which member of five ties wins, with fixed words for the noise."""
    scores = Scores.from_histogram([3, 0], [5, 1])

    def sampler(bits: BitSource) -> Hashable:
        return int(mechanism.draw(scores, NarrowScript([1 << 60, 1 << 63], bits)).positions()[0])

    return uniform_outcomes(name, "members of a group of ties, by counting bits", sampler, list(range(5)))


class CountingWords(GivenWords):
    """Given words, with a count of the words requested."""

    asked = 0

    def integers(self, count: int, width: int) -> BitArray:
        """Return the next numbers and count the words among them."""
        self.asked += count if width == WIDTH else 0
        return super().integers(count, width)


def shuffled_sets(name: str, mechanism: Mechanism = SETS[0]) -> ExactCheck:
    """Draw one set with all orders of its shuffling keys, which are the last words: each order of the set comes once.

    The same must hold when the first keys are equal and drawn again.
    """
    scores = mechanism.table([3000, 2000, 1000, 0])
    bits = CountingWords([])
    mechanism.draw(scores, bits)
    noises = [1 << 62] * (bits.asked - mechanism.k)

    def missing(before: list[int]) -> float:
        found = {
            tuple(mechanism.draw(scores, GivenWords([*noises, *before, *keys])).positions().tolist())
            for keys in permutations(range(1, mechanism.k + 1))
        }
        return float(len(set(permutations(range(mechanism.k))) ^ found))

    values = missing([]), missing([9] * mechanism.k)
    return ExactCheck(name, "orders in which a set comes, over all keys", values, 0.0, 0.0)


def picks(name: str) -> ExactCheck:
    """Count the ranks of the first words; the last word, where the ranks do not divide evenly, must be drawn again."""
    bounds = whole_numbers([0]), whole_numbers([5])
    drawn = [bounded_sequence(*bounds, GivenWords([word]))[0] for word in range(20)]
    uneven = max(abs(drawn.count(rank) - 4) for rank in range(5))
    redrawn = {bounded_sequence(*bounds, GivenWords([WORDS - 1], [rank]))[0] for rank in range(5)}
    rows = whole_numbers([0, 0, 0]), whole_numbers([4, 4, 4])
    sequences = [tuple(bounded_sequence(*rows, GivenWords(words))) for words in product(range(4), range(3), range(2))]
    missing = len(set(range(5)) ^ redrawn), len(set(permutations(range(4), 3)) ^ set(sequences))
    return ExactCheck(name, "ranks drawn within bounds", (float(uneven), *map(float, missing)), 0.0, 0.0)


def thinned_comparisons(name: str, thin: Callable[..., Any] = thinned) -> ExactCheck:
    """Keep two of two comparisons of one kind and one of another, for all orders of keys: (2, 0) in a third of them."""
    kept = Counter(
        tuple(thin(np.array([2, 1]), np.array([0, 0]), 2, GivenWords(keys)).tolist()) for keys in permutations(range(3))
    )
    uneven = max(abs(kept[(2, 0)] - 2), abs(kept[(1, 1)] - 4))
    return ExactCheck(name, "comparisons that stay, over all keys", (float(uneven),), 0.0, 0.0)


def capped_rows(name: str, walk_of: Callable[..., Walk] = Walk.of) -> ExactCheck:
    """Count the units kept by an item that lost to two others, where D L = 1 allows two units."""
    ones, none = np.array([1, 1]), np.zeros(2, dtype=np.int64)
    lost = Pairs(3, np.array([0, 0]), np.array([1, 2]), none, ones, none)
    walk = walk_of(lost, Bounds(1, 1), GivenWords([]))
    return ExactCheck(name, "units that an item keeps", (float(walk.lost.max()),), 2.0, 2.0)


ENUMERATIONS: list[tuple[str, Callable[[str], ExactCheck]]] = [
    ("ranking", thinned_comparisons),
    ("ranking", capped_rows),
    *[(name, picks) for name in ("canonical", "joint")],
    *[(mechanism.name, partial(tied_members, mechanism=mechanism)) for mechanism in SINGLES],
    *[(mechanism.name, partial(shuffled_sets, mechanism=mechanism)) for mechanism in SETS],
]
"""Mechanism and check."""
