"""Answers for each group as one mechanism under test: all small crowds of people who are in one or two of two groups.

A score vector holds how many people there are of each kind, so that neighbours differ by one person of any kind.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import combinations, product
from math import comb, prod
from typing import Any, ClassVar

from dpselect.mechanisms import Mechanism
from dpselect.privacy import COUNTS, Guarantee, Sensitivity
from dpselect.request import ReleasePlan, ReleaseRequest
from dpselect.sampling import BitSource, bit_source, uniform_sequence
from dpselect.scores import Scores
from dpselect.verify.domain import Chosen, Domain

NAME = "groups"

Kind = tuple[tuple[int, ...], ...]
"""For each group, by which numbers a person raises the scores of its items."""

KINDS: tuple[Kind, ...] = (
    ((1, 0), (0, 0)),
    ((0, 0), (1, 0)),
    ((1, 0), (1, 0)),
    ((1, 0), (0, 1)),
    ((1, 1), (0, 1)),
)
"""People in the first group, in the second, and in both, with the same, another or a further item."""

Table = tuple[tuple[int, ...], ...]
"""The scores of each group."""

Crowds = dict[Table, Fraction]
"""The law of the scores that the choice of groups leaves."""


@dataclass(frozen=True, kw_only=True)
class Grouped:
    """One item for each of two groups, in each of which a mechanism gets its share of ε and δ.

    Each person keeps `max_groups_per_person` of their groups, chosen at random. An outcome is the answer of each group,
    the positions of a set in ascending order.
    """

    name: ClassVar[str] = NAME
    ordered: ClassVar[bool] = True
    places_are_items: ClassVar[bool] = False
    sensitivity: ClassVar[Sensitivity] = COUNTS
    k: ClassVar[int] = 2
    """The number of groups, which is the length of an outcome."""

    mechanism: str
    epsilon: float
    delta: float = 0.0
    max_groups_per_person: int = 1
    max_items_per_person: int | None = None

    @property
    def plan(self) -> ReleasePlan:
        """What `top` would do."""
        return _plan(self)

    @property
    def inner(self) -> Mechanism:
        """The mechanism of one group, with its share."""
        return self.plan.mechanism

    @property
    def guarantee(self) -> Guarantee:
        """The claim for all groups together."""
        return self.plan.guarantee

    def law(self, scores: Any) -> dict[Any, float]:
        """Return `Σ P(kept) · Π P(y_j | kept)` over the groups that people may keep."""
        law: dict[Any, float] = {}
        for table, share in self.kept(counts_of(scores)).items():
            for outcome, probability in self.law_of(table).items():
                law[outcome] = law.get(outcome, 0.0) + float(share) * probability
        return law

    def kept(self, counts: Sequence[int]) -> Crowds:
        """Return the law of the scores: each person keeps a uniformly random subset of their groups."""
        law: Crowds = {tuple((0,) * len(part) for part in KINDS[0]): Fraction(1)}
        for kind, count in zip(KINDS, counts, strict=True):
            for _ in range(count):
                law = _with_person(law, kind, self.max_groups_per_person)
        return law

    def law_of(self, table: Table) -> dict[Any, float]:
        """Return the law of the answers, which are drawn independently."""
        laws = [_law(self.inner, scores) for scores in table]
        return {
            tuple(answer for answer, _ in answers): prod(probability for _, probability in answers)
            for answers in product(*(law.items() for law in laws))
        }

    def select(self, scores: Any, *, seed: int | None = None) -> Any:
        """Draw the answers: choose the groups of each person, and answer each group."""
        bits = bit_source(seed)
        totals = [[0] * len(part) for part in KINDS[0]]
        for kind, count in zip(KINDS, counts_of(scores), strict=True):
            for _ in range(count):
                for group in self._drawn(kind, bits):
                    totals[group] = [total + more for total, more in zip(totals[group], kind[group], strict=True)]
        return [_in_order(self.inner, self.inner.draw(Scores.of(part), bits).positions().tolist()) for part in totals]

    def _drawn(self, kind: Kind, bits: BitSource) -> list[int]:
        groups = groups_of(kind)
        most = min(self.max_groups_per_person, len(groups))
        return [groups[place] for place in uniform_sequence(len(groups), most, bits)]


@lru_cache(maxsize=64)
def _plan(grouped: Grouped) -> ReleasePlan:
    return ReleaseRequest(
        mechanism=grouped.mechanism,
        k=1,
        epsilon=grouped.epsilon,
        delta=grouped.delta,
        sensitivity=COUNTS,
        max_items_per_person=grouped.max_items_per_person,
        groups_per_person=grouped.max_groups_per_person,
    ).plan()


@lru_cache(maxsize=1 << 12)
def _law(mechanism: Mechanism, scores: tuple[int, ...]) -> dict[Any, float]:
    return {_in_order(mechanism, outcome): mass for outcome, mass in mechanism.law(list(scores)).items()}


def _in_order(mechanism: Mechanism, outcome: Any) -> tuple[int, ...]:
    return tuple(outcome if mechanism.ordered else sorted(outcome))


def counts_of(scores: Any) -> list[int]:
    """Return how many people there are of each kind."""
    return [int(count) for count in Scores.of(scores).exact()]


def groups_of(kind: Kind) -> list[int]:
    """Return the groups that a person is in."""
    return [group for group, part in enumerate(kind) if any(part)]


def _with_person(law: Crowds, kind: Kind, most: int) -> Crowds:
    """Return the law of the scores with one more person."""
    groups = groups_of(kind)
    kept = min(most, len(groups))
    share = Fraction(1, comb(len(groups), kept))
    more: Crowds = {}
    for (table, mass), chosen in product(law.items(), combinations(groups, kept)):
        new = added(table, kind, chosen)
        more[new] = more.get(new, Fraction(0)) + mass * share
    return more


def added(table: Table, kind: Kind, chosen: Sequence[int]) -> Table:
    """Return the scores after a person was added to the groups chosen."""
    return tuple(
        tuple(score + (group in chosen) * more for score, more in zip(part, kind[group], strict=True))
        for group, part in enumerate(table)
    )


CROWDS = Domain(len(KINDS), 1, items_per_person=1)
"""At most one person of each kind, and one more or fewer."""

FEW = Chosen(
    len(KINDS),
    items_per_person=1,
    vectors=tuple(tuple(int(place < people) for place in range(len(KINDS))) for people in range(3)),
)
"""At most two people, of different kinds, and one more or fewer."""

PAIRS: list[tuple[Grouped, Domain]] = [
    (Grouped(mechanism="canonical", epsilon=1.0), CROWDS),
    (Grouped(mechanism="canonical", epsilon=1.0, max_groups_per_person=2), CROWDS),
    (Grouped(mechanism="oneshot", epsilon=2.0, max_groups_per_person=2), CROWDS),
    (Grouped(mechanism="laplace", epsilon=1.0, max_items_per_person=2), CROWDS),
    (Grouped(mechanism="gaussian", epsilon=1.0, delta=0.05, max_groups_per_person=2, max_items_per_person=2), FEW),
    (Grouped(mechanism="limited", epsilon=1.0, delta=0.05), FEW),
    (Grouped(mechanism="restricted", epsilon=2.0, delta=0.05, max_groups_per_person=2), FEW),
]
QUICK = 2
"""The number of pairs in the quick checks."""

SAMPLES = [
    (Grouped(mechanism="canonical", epsilon=4.0), [1, 1, 2, 1, 0]),
    (Grouped(mechanism="canonical", epsilon=4.0, max_groups_per_person=2), [0, 1, 1, 0, 2]),
]
"""Groups and the people to draw for."""
