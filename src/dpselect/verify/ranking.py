"""Rankings as mechanisms under test: all comparisons of a few items, with the law of what the caps keep.

A score vector holds how often each result of each pair was seen, so that neighbours differ by one comparison.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import combinations, product
from math import comb, prod
from typing import Any, ClassVar

import numpy as np

from dpselect._arrays import Array
from dpselect._rank import scores_of
from dpselect.mechanisms import Mechanism, mechanism_for
from dpselect.privacy import COUNTS, Guarantee, Sensitivity
from dpselect.ranking.bounds import Bounds
from dpselect.ranking.walk import Pairs, Walk, stationary
from dpselect.sampling import bit_source
from dpselect.scores import Scores
from dpselect.verify.domain import Domain

NAME = "ranking"

Units = tuple[int, ...]
"""Units from loser to winner: for each pair of items those from low to high, then those from high to low."""


@dataclass(frozen=True, kw_only=True)
class Ranked:
    """A ranking as one mechanism, whose scores are the wins of low, those of high and the ties of each pair low < high.

    There are two numbers per pair, or three with ties, so the length of the scores tells the number of items.
    """

    name: ClassVar[str] = NAME
    ordered: ClassVar[bool] = False
    places_are_items: ClassVar[bool] = False
    sensitivity: ClassVar[Sensitivity] = COUNTS

    k: int
    epsilon: float
    comparisons_per_pair: int
    max_degree: int
    damping: float = 0.5
    votes: int = 1

    @property
    def bounds(self) -> Bounds:
        """The public bounds on the comparisons."""
        return Bounds(self.comparisons_per_pair, self.max_degree, self.damping, votes=self.votes)

    @property
    def guarantee(self) -> Guarantee:
        """The claim."""
        return Guarantee(epsilon=self.epsilon)

    @lru_cache(maxsize=64)  # noqa: B019, frozen values
    def mechanism(self, size: int) -> Mechanism:
        """Return the mechanism that selects among `size` items."""
        return mechanism_for("auto", k=self.k, epsilon=self.epsilon, sensitivity=self.bounds.sensitivity(size))

    def law(self, scores: Any) -> dict[Any, float]:
        """Return `Σ P(kept) · P(y | kept)` over everything that the caps may keep."""
        size, results = results_of(scores)
        law: dict[Any, float] = {}
        for units, share in self.kept(size, results).items():
            for outcome, probability in self.law_of(size, units).items():
                law[outcome] = law.get(outcome, 0.0) + float(share) * probability
        return law

    def kept(self, size: int, results: Sequence[Units]) -> dict[Units, Fraction]:
        """Return the law of the units kept: at most L comparisons of each pair, then at most D·L lost by each item."""
        law: dict[Units, Fraction] = {}
        for pairs in _independent([_choices(result, self.comparisons_per_pair) for result in results]):
            for units, share in _capped_rows(size, pairs[0], self.bounds.units(size)):
                law[units] = law.get(units, Fraction(0)) + pairs[1] * share
        return law

    def law_of(self, size: int, units: Units) -> dict[Any, float]:
        """Return the law of the answer for the walk of these units."""
        return _law(self, size, units)

    def scores(self, size: int, units: Units) -> list[float]:
        """Return the computed scores for the walk of these units."""
        return stationary(walk_of(size, units, self.bounds.units(size)), self.bounds).tolist()  # type: ignore[no-any-return]

    def select(self, scores: Any, *, seed: int | None = None) -> Array:
        """Draw an answer: apply the caps, compute the scores, select."""
        size, results = results_of(scores)
        pairs = np.array(list(combinations(range(size), 2)), dtype=np.int64).T
        seen = [np.array(column) for column in zip(*results, strict=True)]
        bits = bit_source(seed)
        found = scores_of(Pairs(size, *pairs, *seen), self.bounds, bits)
        return self.mechanism(size).draw(found, bits).positions()


@lru_cache(maxsize=1 << 16)
def _law(ranked: Ranked, size: int, units: Units) -> dict[Any, float]:
    return dict(ranked.mechanism(size).law(ranked.scores(size, units)))


def results_of(scores: Any) -> tuple[int, list[Units]]:
    """Return the number of items, and for each pair how often low won, high won, and neither won."""
    counts = [int(count) for count in Scores.of(scores).exact()]
    for width, size in product((2, 3), range(2, 7)):
        if width * comb(size, 2) == len(counts):
            parts = [counts[start : start + width] for start in range(0, len(counts), width)]
            return size, [(*part, 0)[:3] for part in parts]
    raise AssertionError("results of all pairs are needed")


def walk_of(size: int, units: Units, denominator: int) -> Walk:
    """Return the walk of these units."""
    pairs = np.array(list(combinations(range(size), 2)), dtype=np.int64)
    losers, winners = pairs.ravel(), pairs[:, ::-1].ravel()
    return Walk(size, denominator, losers, winners, np.array(units))


@lru_cache(maxsize=1 << 14)
def _choices(counts: Units, capacity: int) -> list[tuple[Units, Fraction]]:
    """Return the law of what is kept when `capacity` members are chosen at random, given the counts of each kind."""
    total = sum(counts)
    if total <= capacity:
        return [(counts, Fraction(1))]
    return [
        (kept, Fraction(prod(map(comb, counts, kept)), comb(total, capacity)))
        for kept in product(*(range(count + 1) for count in counts))
        if sum(kept) == capacity
    ]


def _independent(choices: Sequence[list[tuple[Units, Fraction]]]) -> Iterator[tuple[Units, Fraction]]:
    """Yield all combinations of independent choices of pairs, as units, with their probabilities."""
    for combination in product(*choices):
        units = [unit for (low, high, tied), _ in combination for unit in (2 * high + tied, 2 * low + tied)]
        yield tuple(units), prod((share for _, share in combination), start=Fraction(1))


def _capped_rows(size: int, units: Units, capacity: int) -> Iterator[tuple[Units, Fraction]]:
    """Yield what is kept when each item keeps at most `capacity` lost units, with its probability."""
    losers = [loser for pair in combinations(range(size), 2) for loser in pair]
    cells = [[cell for cell, loser in enumerate(losers) if loser == item] for item in range(size)]
    for rows in product(*(_choices(tuple(units[cell] for cell in row), capacity) for row in cells)):
        kept = list(units)
        for row, (new, _) in zip(cells, rows, strict=True):
            for cell, unit in zip(row, new, strict=True):
                kept[cell] = unit
        yield tuple(kept), prod((share for _, share in rows), start=Fraction(1))


def comparisons_of(size: int, highest: int, *, ties: bool = False, votes: int = 1) -> Domain:
    """Return all comparisons of `size` items, each result seen up to `highest` times; a person adds up to `votes`."""
    return Domain((3 if ties else 2) * comb(size, 2), highest, COUNTS, items_per_person=votes)


RANKED: list[tuple[Ranked, Domain]] = [
    (Ranked(k=1, epsilon=1.0, comparisons_per_pair=1, max_degree=2), comparisons_of(3, 1)),
    (Ranked(k=1, epsilon=1.0, comparisons_per_pair=1, max_degree=1), comparisons_of(3, 1, ties=True)),
    (Ranked(k=1, epsilon=1.0, comparisons_per_pair=2, max_degree=1, damping=0.9), comparisons_of(3, 2)),
    (Ranked(k=2, epsilon=2.0, comparisons_per_pair=2, max_degree=2, damping=0.9), comparisons_of(3, 2)),
    (Ranked(k=1, epsilon=1.0, comparisons_per_pair=2, max_degree=2, votes=2), comparisons_of(3, 1, votes=2)),
    (Ranked(k=1, epsilon=4.0, comparisons_per_pair=3, max_degree=1, damping=0.2), comparisons_of(2, 4, ties=True)),
]
QUICK = 2
"""The number of rankings in the quick checks."""

SAMPLED = Ranked(k=1, epsilon=4.0, comparisons_per_pair=2, max_degree=1)
SAMPLES = [(SAMPLED, [2, 1, 0, 1, 2, 2]), (SAMPLED, [1, 0, 1, 0, 2, 0, 2, 1, 1])]
"""Rankings and the comparisons to draw for: with both caps in use, and with ties."""
