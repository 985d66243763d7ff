"""Broken twins of answers for each group."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from dpselect.privacy import Guarantee
from dpselect.verify.broken.base import Altered, Twin, by_privacy
from dpselect.verify.groups import CROWDS, KINDS, Crowds, Grouped, added, counts_of, groups_of

ONE = Grouped(mechanism="canonical", epsilon=1.0)
TWO = Grouped(mechanism="canonical", epsilon=1.0, max_groups_per_person=2)


class EveryGroupInFull(Grouped):
    """The whole of ε for each group, and stated once, although a person is in two of them."""

    @property
    def guarantee(self) -> Guarantee:
        return Guarantee(epsilon=self.inner.epsilon)


class InAnyGroup(Grouped):
    """People count in all their groups, although they are said to count in one."""

    def kept(self, counts: Sequence[int]) -> Crowds:
        return TWO.kept(counts)


class InSmallerGroup(Grouped):
    """Each person counts in that of their groups in which fewer people are so far: one person moves the next."""

    def kept(self, counts: Sequence[int]) -> Crowds:
        table = tuple((0,) * len(part) for part in KINDS[0])
        for kind, count in zip(KINDS, counts, strict=True):
            for _ in range(count):
                smallest = min(groups_of(kind), key=lambda group: sum(table[group]))
                table = added(table, kind, [smallest])
        return {table: Fraction(1)}


def largest_first(scores: Any) -> dict[Any, float]:
    """Answer the groups in the order of their number of rows."""
    law: dict[Any, float] = {}
    for table, share in ONE.kept(counts_of(scores)).items():
        turned = sum(table[1]) > sum(table[0])
        for outcome, probability in ONE.law_of(table).items():
            named = tuple((*answer, group) for group, answer in enumerate(outcome))
            named = named[::-1] if turned else named
            law[named] = law.get(named, 0.0) + float(share) * probability
    return law


def _twin(name: str, flaw: str, broken: Any, sound: Grouped) -> Twin:
    return by_privacy(name, flaw, broken, sound, noise="", domain=CROWDS)


TWINS = [
    _twin(
        "each group in full",
        "a person in two groups costs the epsilon of one",
        EveryGroupInFull(mechanism="canonical", epsilon=2.0, max_groups_per_person=2),
        TWO,
    ),
    _twin(
        "all groups of a person",
        "people count in all groups they are in, not in one",
        InAnyGroup(mechanism="canonical", epsilon=1.0),
        ONE,
    ),
    _twin(
        "the smaller group",
        "a person counts in the group that has fewer people",
        InSmallerGroup(mechanism="canonical", epsilon=1.0),
        ONE,
    ),
    _twin(
        "largest group first",
        "groups are listed by their number of rows",
        Altered(sound=ONE, wrong_law=largest_first),
        ONE,
    ),
]
