"""Answers for each group in every engine: those of plain Python, and of the embedded engine for the same seed."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pytest
from engine_cases import GOODS
from engine_places import Place, rows_fetched, rows_of

import dpselect as dps

pytestmark = pytest.mark.slow

SURE = 1e9

ORDERS = rows_of(
    item=["ham", "jam", "ham", "tea", "ham", "rye", "jam", "ham", None, "fig", "ham", "jam"],
    person=["ann", "ann", "bob", "bob", "cat", "dan", "dan", "eve", "eve", "eve", None, "fay"],
    country=["DE", "FR", "DE", "DE", "FR", "FR", "FR", "de", "DE", "DE", "FR", None],
    year=[2023, 2024, 2024, 2024, 2024, 2023, 2024, 2024, 2024, 2024, 2024, 2024],
    paid=[2.5, 1.5, 9.0, -1.0, -7.5, 0.25, 0.5, 1.0, 3.0, 3.0, 1.0, 1.0],
)
COUNTRIES = ["FR", "DE", "IT"]


def ask(source: dict[str, Any], **options: Any) -> dps.Release:
    asked: dict[str, Any] = {"item": "item", "person": "person", "k": 2, "epsilon": 1.0, "domain": GOODS}
    asked |= {"by": "country", "groups": COUNTRIES, "max_groups_per_person": 3, **source, **options}
    return dps.top(asked.pop("table"), **asked)


def plain_scores(groups: list[Any], column: str, keeps: Any = lambda row: True) -> dict[Any, dict[str, int]]:
    people: dict[Any, set[Any]] = defaultdict(set)
    for row in ORDERS.to_pylist():
        if row["item"] is not None and row["person"] is not None and keeps(row):
            people[row[column], row["item"]].add(row["person"])
    return {group: {item: len(people[group, item]) for item in GOODS} for group in groups}


def scores(release: dps.Release) -> dict[Any, dict[str, Any]]:
    assert release.groups is not None
    return {group: dict(zip(part.items, part.values or [], strict=True)) for group, part in release.groups.items()}


def test_every_group_is_scored_as_in_plain_python(place: Place) -> None:
    place.put("orders", ORDERS)
    everything = {"k": len(GOODS), "epsilon": SURE, "values": 0.5}
    assert scores(ask(place.source("orders"), **everything)) == plain_scores(COUNTRIES, "country")
    years = {"by": "year", "groups": [2024, 2023, 2022], **everything}
    assert scores(ask(place.source("orders"), **years)) == plain_scores([2024, 2023, 2022], "year")
    later = {"where": "year >= 2024", **everything}
    expected = plain_scores(COUNTRIES, "country", lambda row: row["year"] >= 2024)
    assert scores(ask(place.source("orders"), **later)) == expected


def test_noisy_answers_are_those_of_the_embedded_engine(place: Place) -> None:
    place.put("orders", ORDERS)
    clipped = {"value": "paid", "clip": (-2, 5)}
    kinds: list[dict[str, Any]] = [
        {},
        {"max_groups_per_person": 1},
        {"max_groups_per_person": 2, "max_items_per_person": 1, **clipped},
        {"domain": 1000, "ordered": True},
        {"lowest": True, "values": 0.5},
        {"domain": dps.UNKNOWN, "epsilon": 20.0, "delta": 0.1, "pool": 3, "max_groups_per_person": 1},
    ]
    for options in kinds:
        noisy = {"epsilon": 0.5, "seed": 2, **options}
        assert ask(place.source("orders"), **noisy).to_dict() == ask({"table": ORDERS}, **noisy).to_dict(), options


def test_groups_and_their_items_can_be_tables_of_the_engine(place: Place) -> None:
    place.put("orders", ORDERS)
    place.put("countries", rows_of(country=["IT", "FR", "DE", None, "FR"]))
    place.put(
        "goods", rows_of(item=["ham", "tea", "jam", "rye", "fig", "ham"], country=["DE", "DE", "FR", "FR", "IT", "IT"])
    )
    source = place.source("orders")
    release = ask(source, groups="table:countries", domain="table:goods", epsilon=SURE, values=0.5)
    assert list(release.groups or {}) == ["DE", "FR", "IT"]
    assert scores(release) == {"DE": {"ham": 2, "tea": 1}, "FR": {"jam": 2, "rye": 1}, "IT": {"fig": 0, "ham": 0}}
    with pytest.raises(dps.InvalidInput, match="groups 'table:orders': it is the table of private rows"):
        ask(source, groups="table:orders")


def test_only_histograms_and_chosen_items_leave_the_engine(place: Place) -> None:
    rows = [(f"item {number % 50}", f"person {number}", f"group {number % 3}") for number in range(600)]
    item, person, country = (list(column) for column in zip(*rows, strict=True))
    place.put("orders", rows_of(item=item, person=person, country=country))
    with rows_fetched() as fetched:
        ask(place.source("orders"), groups=["group 0", "group 1"], max_groups_per_person=1, domain=10**6, epsilon=50.0)
    # The rows of two groups with k = 2; whatever is counted or checked beside is one row.
    assert sum(number for number in fetched if number > 1) <= 4


def test_the_limit_on_groups_is_for_people(quick_place: Place) -> None:
    everywhere = [("ham", person, group) for person in range(200) for group in COUNTRIES]
    item, person, country = (list(column) for column in zip(*everywhere, strict=True))
    quick_place.put("orders", rows_of(item=item, person=person, country=country))
    for most in (1, 2):
        release = ask(
            quick_place.source("orders"), k=1, domain=["ham"], epsilon=SURE, values=0.5, max_groups_per_person=most
        )
        assert sum(release.values or []) == 200 * most
