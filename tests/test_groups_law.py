"""The whole answer for all groups, end to end on small tables: its exact law with and without any one person.

Scores come from the rows through the real source, with the choice of groups and items that the engine makes for a fixed
key; the law is the product of the laws of the groups. The guarantee must hold for each key.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache
from itertools import combinations_with_replacement, product
from typing import Any
from unittest import mock

import pyarrow
import pytest

from dpselect.privacy import COUNTS
from dpselect.request import ReleasePlan, ReleaseRequest
from dpselect.sources import Contribution, Domain, Groups, counts, open_counts
from dpselect.sources.duckdb import EmbeddedEngine, embedded_engine

pytestmark = [pytest.mark.filterwarnings("ignore:fetch_arrow_table:DeprecationWarning"), pytest.mark.slow]

ITEMS, GROUPS = ["a", "b"], ["x", "y"]
KEY = "00112233445566778899aabbccddeeff"

Cells = tuple[tuple[str, str], ...]
"""The rows (item, group) of one person."""

EVERYTHING = list(product(ITEMS, ["x", "y", "not listed"]))
PEOPLE: list[Cells] = [
    tuple(cell for cell, chosen in zip(EVERYTHING, mask, strict=True) if chosen)
    for mask in product((False, True), repeat=len(EVERYTHING))
    if any(mask) and sum(mask[place] for place in (2, 5)) < 2
]
"""Everybody with any rows in two listed groups and at most one elsewhere."""


@pytest.fixture(scope="module")
def engine() -> Iterator[EmbeddedEngine]:
    with embedded_engine() as opened:
        opened.connection.execute("SET threads = 1")
        with mock.patch.object(counts, "embedded_when_needed", return_value=lambda: opened):
            yield opened


def tables() -> Iterator[tuple[Cells, ...]]:
    """Yield tables of two people of a few kinds, and of one person of many kinds beside two who are in both groups."""
    yield from combinations_with_replacement(PEOPLE[::13], 2)
    for person in PEOPLE[::6]:
        yield (person, (("a", "x"), ("b", "y")), (("a", "x"), ("a", "y")))


def scores_of(people: tuple[Cells, ...], most: int, most_items: int | None) -> tuple[tuple[int, ...], ...]:
    """Return the scores of the items of each group, read through the source; the place of a person is their name."""
    return _scores(tuple((place, cells) for place, cells in enumerate(people)), most, most_items)


@cache
def _scores(people: tuple[tuple[int, Cells], ...], most: int, most_items: int | None) -> tuple[tuple[int, ...], ...]:
    rows = [(item, f"person {place}", group) for place, cells in people for item, group in cells]
    columns = list(zip(*rows, strict=True)) or [(), (), ()]
    table = pyarrow.table(
        {name: pyarrow.array(values, pyarrow.string()) for name, values in zip("ipg", columns, strict=True)}
    )
    with open_counts(
        table,
        item="i",
        person="p",
        domain=Domain.of(len(ITEMS)),
        k=1,
        contribution=Contribution.of(None, None, None, most_items),
        groups=Groups.of("g", GROUPS, most),
        key=KEY,
    ) as found:
        places = [
            [(score, index) for score, number in zip(*histogram, strict=True) for index in range(number)]
            for histogram in found.histograms()
        ]
        items = found.chosen([([score for score, _ in part], [index for _, index in part]) for part in places])
    by_item = [
        dict(zip(names, (score for score, _ in part), strict=True)) for names, part in zip(items, places, strict=True)
    ]
    return tuple(tuple(part.get(item, 0) for item in ITEMS) for part in by_item)


def law_of(plan: ReleasePlan, scores: tuple[tuple[int, ...], ...]) -> dict[Any, float]:
    """Return the law of the answers of all groups, which are drawn independently."""
    laws = [_law(plan.mechanism, part) for part in scores]
    return {
        tuple(answer for answer, _ in answers): math.prod(mass for _, mass in answers)
        for answers in product(*(law.items() for law in laws))
    }


@cache
def _law(mechanism: Any, scores: tuple[int, ...]) -> dict[Any, float]:
    return dict(mechanism.law(list(scores)))


def worst_loss(plan: ReleasePlan, most: int, most_items: int | None) -> float:
    """Return the largest privacy loss over all tables, each with and without each person."""
    worst = 0.0
    for people in tables():
        with_all = law_of(plan, scores_of(people, most, most_items))
        for place in range(len(people)):
            left = tuple((other, cells) for other, cells in enumerate(people) if other != place)
            without = law_of(plan, _scores(left, most, most_items))
            worst = max(worst, *(abs(math.log(with_all[answer] / without[answer])) for answer in with_all))
    return worst


def planned(most: int, mechanism: str, **more: Any) -> ReleasePlan:
    asked = {"k": 1, "epsilon": 1.0, "sensitivity": COUNTS, "groups_per_person": most, **more}
    return ReleaseRequest(mechanism=mechanism, **asked).plan()


@pytest.mark.parametrize(("most", "most_items"), [(1, None), (2, None), (1, 1)])
def test_no_table_exceeds_the_cost_of_the_whole_and_some_use_all_of_it(
    engine: EmbeddedEngine, most: int, most_items: int | None
) -> None:
    loss = worst_loss(planned(most, "canonical"), most, most_items)
    assert loss <= 1 + 1e-9
    assert loss == pytest.approx(1.0)
    laplace = planned(most, "laplace", max_items_per_person=most_items or 2)
    assert worst_loss(laplace, most, most_items) <= 1 + 1e-9


def test_the_epsilon_of_one_group_does_not_cover_people_who_are_in_two(engine: EmbeddedEngine) -> None:
    assert worst_loss(planned(1, "canonical"), 2, None) == pytest.approx(2.0)


def test_whoever_has_rows_in_a_listed_group_counts_in_one(engine: EmbeddedEngine) -> None:
    """Groups that are not listed take no part in the choice."""
    for person in PEOPLE[::6]:
        listed = {group for _, group in person} & set(GROUPS)
        for most in (1, 2):
            scores = scores_of((person,), most, None)
            assert sum(any(part) for part in scores) == min(most, len(listed))
