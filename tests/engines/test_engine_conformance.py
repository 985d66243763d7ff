"""Every engine counts as plain Python does, and answers as the embedded engine does for the same seed."""

from __future__ import annotations

import csv
import math
from collections import Counter
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from engine_cases import BUYERS, CASES, GOODS, LOOKALIKES, Case, plain_scores
from engine_places import Place, rows_fetched, rows_of
from scipy.stats import chi2

import dpselect as dps
from dpselect.sources import Unseen

pytestmark = pytest.mark.slow

SURE = 1e9
"""An epsilon with which the noise is far below the last digit that is compared."""


def ask(source: dict[str, Any], **options: Any) -> dps.Release:
    arguments = {"item": "item", "person": "person", "k": 2, "epsilon": 1.0, "domain": GOODS, **source, **options}
    return dps.top(arguments.pop("table"), **arguments)


def all_scores(source: dict[str, Any], domain: Any, size: int, **options: Any) -> dict[Any, float]:
    """Return every item's score, by asking for all of them with almost no noise.

    That each item comes once is the law of answers too: every rank of the histogram leads to an item of its own.
    """
    release = ask(source, k=size, epsilon=SURE, values=0.5, domain=domain, **options)
    assert release.values is not None
    assert len(set(release.items)) == size
    return dict(zip(release.items, release.values, strict=True))


@pytest.mark.parametrize("group", CASES)
def test_scores_are_those_of_plain_python_and_answers_those_of_the_embedded_engine(place: Place, group: str) -> None:
    for case in CASES[group]:
        place.put("orders", case.rows)
        found = all_scores(place.source("orders"), case.domain, len(case.domain), seed=1, **case.options)
        assert found == pytest.approx(shown_scores(case), abs=1e-5 + rounding(case)), case.name
        assert list(found) == embedded_answer(group, CASES[group].index(case)), case.name


@cache
def embedded_answer(group: str, number: int) -> list[Any]:
    """Return the answer of the embedded engine, in the order that the seed gives."""
    case = CASES[group][number]
    return list(all_scores({"table": case.rows}, case.domain, len(case.domain), seed=1, **case.options))


def test_noisy_answers_are_those_of_the_embedded_engine(place: Place) -> None:
    place.put("orders", BUYERS)
    clipped = {"value": "paid", "clip": (-2, 5), "weight": "share", "where": "year >= 2024"}
    for options in ({}, clipped, {"lowest": True}, {"lowest": True, "values": 0.5, **clipped}):
        noisy = {"epsilon": 0.5, "seed": 2, **options}
        assert ask(place.source("orders"), **noisy).to_dict() == ask({"table": BUYERS}, **noisy).to_dict()


def shown_scores(case: Case) -> dict[Any, float]:
    """Return plain scores as a release shows them: whole where a person adds nothing to 1, weighted or not."""
    scores = plain_scores(case)
    return scores if "clip" in case.options else {item: math.floor(score + 0.5) for item, score in scores.items()}


def rounding(case: Case) -> float:
    """Return by how much a score may be off: each contribution is rounded to the 2^28th part of the limits."""
    return float(case.rows.num_rows * max(map(abs, case.options.get("clip", (0, 1)))) * 2.0**-28)


def test_a_listed_domain_may_be_of_any_form(place: Place, tmp_path: Path) -> None:
    place.put("orders", BUYERS)
    place.put("goods", rows_of(item=[*GOODS, None, "ham"]))
    file = tmp_path / "goods.csv"
    with file.open("w", newline="") as opened:
        csv.writer(opened).writerows([["item"], *([item] for item in GOODS)])
    # As a list the domain is part of every other test.
    for domain in (file, "table:goods", _table(place, "goods")):
        found = all_scores(place.source("orders"), domain, 5, seed=1)
        assert found == pytest.approx(plain_scores(Case("", BUYERS, GOODS)), abs=1e-5)


def test_a_table_of_items_may_be_of_another_type_than_the_column(place: Place) -> None:
    place.put("orders", rows_of(item=["1", "1", "2", "ham"], person=["ann", "bob", "ann", "bob"]))
    place.put("numbers", rows_of(item=[1, 2, 3, None]))
    found = all_scores(place.source("orders"), "table:numbers", 3, seed=1)
    assert found == pytest.approx({"1": 2, "2": 1, "3": 0}, abs=1e-5)


def _table(place: Place, name: str) -> Any:
    """Return a table as an object of its engine, or as Arrow where the connection is not ours."""
    return place.source(name)["table"] if place.name == "spark" else rows_of(item=[*GOODS, None, "ham"])


def test_of_a_number_of_items_those_that_nobody_has_are_unseen(place: Place) -> None:
    place.put("orders", BUYERS)
    found = all_scores(place.source("orders"), 1000, 7, seed=1)
    scores = {item: score for item, score in found.items() if not isinstance(item, Unseen)}
    assert scores == pytest.approx({"ham": 3, "jam": 2, "tea": 3, "rye": 1}, abs=1e-5)
    assert {item: score for item, score in found.items() if isinstance(item, Unseen)} == {
        Unseen(1): 0,
        Unseen(2): 0,
        Unseen(3): 0,
    }


@pytest.mark.long
def test_answers_follow_the_law_of_the_mechanism(quick_place: Place) -> None:
    """Chi-square of the chosen pairs against the exact law; a right engine fails one time in a million."""
    quick_place.put("orders", BUYERS)
    mechanism = dps.Canonical(k=2, epsilon=1.0)
    scores = plain_scores(Case("", BUYERS, GOODS))
    law = mechanism.law([scores[item] for item in GOODS])
    options = {"mechanism": mechanism, "k": None, "epsilon": None}
    answers = [ask(quick_place.source("orders"), seed=seed, **options).items for seed in range(100)]
    seen = Counter(frozenset(map(GOODS.index, items)) for items in answers)
    assert set(seen) <= set(law)
    expected = {pair: 100 * float(chance) for pair, chance in law.items()}
    statistic = sum((seen[pair] - number) ** 2 / number for pair, number in expected.items())
    assert statistic < chi2.isf(1e-6, len(law) - 1)


def test_what_crosses_the_wire_is_the_distinct_scores_and_the_answer(place: Place) -> None:
    """3,000 items have a score of 1 and 10 have more; of the large tie only the chosen are fetched."""
    items = [f"item {number}" for number in range(3000)]
    rows = rows_of(
        item=items + [item for place, item in enumerate(items[:10]) for _ in range(place + 1)],
        person=[0] * 3000 + [person for place in range(10) for person in range(1, place + 2)],
    )
    place.put("orders", rows)
    with rows_fetched() as counted:
        release = ask(place.source("orders"), domain=5000, k=20, epsilon=0.01, seed=1)
    assert len(release.items) == 20
    assert 0 < sum(counted) <= 11 + 20 + 1
    place.put("goods", rows_of(item=items))
    with rows_fetched() as counted:
        ask(place.source("orders"), domain="table:goods", k=20, epsilon=0.01, seed=1)
    assert 0 < sum(counted) <= 11 + 20 + 2


FOUR = [f"{person} {letter}" for person in range(600) for letter in "abcd"]
"""Four items for each of 600 people, which nobody else has, so that scores show what each person keeps."""


def kept(source: dict[str, Any], people: list[int], limit: int, seed: int) -> dict[int, tuple[str, ...]]:
    """Return which items each person keeps."""
    domain = [item for item in FOUR if int(item.split()[0]) in set(people)]
    scores = all_scores(source, domain, len(domain), max_items_per_person=limit, seed=seed)
    return {person: tuple(letter for letter in "abcd" if round(scores[f"{person} {letter}"]) == 1) for person in people}


def put_people(place: Place, people: list[int]) -> dict[str, Any]:
    """Make a table in which each of these people has their four items, twice."""
    items = [item for item in FOUR if int(item.split()[0]) in set(people)] * 2
    place.put("orders", rows_of(item=items, person=[item.split()[0] for item in items]))
    return place.source("orders")


def test_a_person_keeps_just_as_many_items_as_allowed(place: Place) -> None:
    people = list(range(20))
    source = put_people(place, people)
    for limit in (1, 3):
        assert {len(items) for items in kept(source, people, limit, seed=1).values()} == {limit}


def test_what_a_person_keeps_is_uniform_and_the_same_in_every_engine(place: Place) -> None:
    """600 people keep 2 of 4; chi-square over the 6 pairs, failing one time in a million for a uniform choice."""
    people = list(range(600))
    rows = rows_of(item=FOUR, person=[item.split()[0] for item in FOUR])
    found = kept(put_people(place, people), people, 2, seed=7)
    counted = Counter(found.values())
    assert set(counted) <= set(combinations("abcd", 2))
    statistic = sum((counted[pair] - 100) ** 2 / 100 for pair in combinations("abcd", 2))
    assert statistic < chi2.isf(1e-6, 5)
    assert found == kept({"table": rows}, people, 2, seed=7)


def test_what_a_person_keeps_does_not_depend_on_others_but_on_the_seed(place: Place) -> None:
    alone = kept(put_people(place, list(range(10))), list(range(10)), 2, seed=1)
    many = kept(put_people(place, list(range(60))), list(range(60)), 2, seed=1)
    assert {person: many[person] for person in range(10)} == alone
    # Ten people would all keep the same by chance once in 6^10, about 6e7.
    assert kept(put_people(place, list(range(10))), list(range(10)), 2, seed=2) != alone


def test_items_outside_a_listed_domain_take_no_room(place: Place) -> None:
    """Else what a person did outside the domain would hide what they did within."""
    people = list(range(20))
    source = put_people(place, people)
    within = [f"{person} a" for person in people]
    assert set(all_scores(source, within, 20, max_items_per_person=1, seed=1).values()) == {1}


def test_a_person_with_few_items_makes_gaussian_noise_possible(place: Place) -> None:
    place.put("orders", BUYERS)
    mechanism = dps.Gaussian(k=2, epsilon=SURE, delta=1e-6, max_items_per_person=2)
    options = {"k": None, "epsilon": None, "mechanism": mechanism, "seed": 1, "domain": [*GOODS, *LOOKALIKES]}
    assert len(ask(place.source("orders"), max_items_per_person=2, **options).items) == 2
    for wrong in (None, 3):
        with pytest.raises(dps.InvalidInput, match="max_items_per_person"):
            ask(place.source("orders"), max_items_per_person=wrong, **options)
