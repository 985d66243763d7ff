"""top(by=…): k items for each group of a public list, with one cost for all of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import duckdb
import pandas
import polars
import pyarrow
import pyarrow.parquet
import pytest

import dpselect as dps
from dpselect.ledger import Ledger
from dpselect.release import StatedDomain

pytestmark = pytest.mark.slow

FILMS = [f"film {number}" for number in range(6)]
COUNTRIES = ["FR", "DE", "IT"]
VIEWS = pandas.DataFrame(
    [
        (film, f"{country}{viewer}", country)
        for country, best in (("DE", 0), ("FR", 3), ("XX", 1), (None, 2))
        for place, film in enumerate(FILMS)
        for viewer in range(60 - 10 * ((place - best) % 6))
    ],
    columns=["film", "viewer", "country"],
)
ASKED: dict[str, Any] = {"item": "film", "person": "viewer", "k": 2, "epsilon": 1e6, "by": "country"}


def ask(table: Any = VIEWS, **options: Any) -> dps.Release:
    return dps.top(table, **{**ASKED, "domain": FILMS, "groups": COUNTRIES, **options})


def answers(release: dps.Release) -> dict[Any, set[Any]]:
    assert release.groups is not None
    return {group: set(part.items) for group, part in release.groups.items()}


def test_each_listed_group_has_its_own_answer_in_the_order_of_the_list() -> None:
    release = ask()
    assert release.groups is not None
    assert list(release.groups) == COUNTRIES
    assert answers(release) | {"IT": None} == {"FR": {FILMS[3], FILMS[4]}, "DE": {FILMS[0], FILMS[1]}, "IT": None}
    assert len(set(release.groups["IT"].items)) == 2, "a group without rows is answered like any other"
    assert release.items == [(group, item) for group, part in release.groups.items() for item in part.items]
    assert release.k == 2
    assert not release.stopped
    assert release.domain == StatedDomain(6, "public")


def test_the_cost_is_stated_once_and_each_group_repeats_it() -> None:
    release = ask(epsilon=1.0)
    assert release.groups is not None
    assert release.guarantee == dps.Canonical(k=2, epsilon=1.0).guarantee
    assert {part.guarantee for part in release.groups.values()} == {release.guarantee}
    in_two = ask(epsilon=1.0, max_groups_per_person=2)
    assert in_two.groups is not None
    assert (in_two.guarantee.epsilon, in_two.guarantee.delta) == (1.0, 0.0)
    assert in_two.groups["FR"].mechanism.guarantee.epsilon == 0.5
    assert {part.guarantee for part in in_two.groups.values()} == {in_two.guarantee}


def test_a_person_counts_in_as_many_listed_groups_as_stated() -> None:
    """Everybody is in four groups, one of which is not listed, and no two people keep the same one for certain."""
    everywhere = [("a", person, group) for person in range(300) for group in ("DE", "FR", "IT", "not listed")]
    rows = pandas.DataFrame(everywhere, columns=["film", "viewer", "country"])
    for most in (1, 2, 3):
        options = {"k": 1, "values": 0.5, "domain": ["a"], "max_groups_per_person": most}
        values = ask(rows, **options).values or []
        assert sum(values) == 300 * most
        # 300 people keep a group with probability most/3; eight standard deviations are below 66.
        assert all(abs(value - 100 * most) < 66 for value in values)


def test_groups_that_are_not_listed_and_items_outside_the_list_do_not_compete() -> None:
    rows = [("a", person, group) for person in range(50) for group in ("DE", *"uvwxyz")]
    rows += [("no item", person, group) for person in range(50) for group in ("FR", "IT")]
    table = pandas.DataFrame(rows, columns=["film", "viewer", "country"])
    release = ask(table, k=1, domain=["a"], values=0.5)
    assert release.values == [0, 50, 0]


def test_the_bound_on_items_holds_within_each_group() -> None:
    rows = [(film, person, group) for person in range(40) for film in FILMS for group in ("DE", "FR")]
    table = pandas.DataFrame(rows, columns=["film", "viewer", "country"])
    release = ask(table, k=6, values=0.5, max_items_per_person=2, max_groups_per_person=2, groups=["DE", "FR"])
    assert release.groups is not None
    assert [sum(part.values or []) for part in release.groups.values()] == [80, 80]


def test_nulls_and_repeated_groups_are_dropped_from_the_list() -> None:
    assert list(ask(groups=["DE", None, "FR", "DE", float("nan")]).groups or {}) == ["DE", "FR"]


@pytest.mark.parametrize("values", [None, 0.5], ids=["items", "values"])
def test_every_kind_of_question_can_be_asked_by_group(values: float | None) -> None:
    ordered = ask(ordered=True, values=values)
    assert ordered.groups is not None
    assert ordered.groups["DE"].items == FILMS[:2]
    assert ordered.groups["FR"].items == FILMS[3:5]
    assert ordered.groups["DE"].values == (None if values is None else [60, 50])
    lowest = ask(lowest=True, values=values)
    assert answers(lowest)["DE"] == {FILMS[4], FILMS[5]}
    assert lowest.lowest
    included = ask(values=True, mechanism="laplace", max_items_per_person=6)
    assert included.groups is not None
    assert sorted(included.groups["FR"].values or []) == [50, 60]


def test_a_domain_known_by_its_number_holds_for_each_group_and_names_what_the_group_has() -> None:
    release = ask(domain=1000)
    assert answers(release)["DE"] == {FILMS[0], FILMS[1]}
    assert release.groups is not None
    assert all(isinstance(item, dps.Unseen) for item in release.groups["IT"].items)
    assert release.groups["IT"].domain == StatedDomain(1000, "number")
    assert release.guarantee.neighbours == "add or remove, where others have the same items in the same groups"
    assert "where others have the same items in the same groups, adding or removing them" in str(release.guarantee)


def test_naming_is_charged_for_every_group_of_a_person() -> None:
    options = {"epsilon": 1.0, "domain": 10**9, "max_items_per_person": 1, "mechanism": "canonical"}
    one = ask(delta=1e-6, **options)
    three = ask(delta=1e-6, max_groups_per_person=3, **{**options, "epsilon": 3.0})
    assert three.guarantee.delta == pytest.approx(3 * one.guarantee.delta, rel=1e-12)
    assert one.guarantee.delta > 0
    with pytest.raises(dps.InvalidInput, match=r"delta must be at least .* for each of the 3 groups that a person may"):
        ask(delta=2 * one.guarantee.delta, max_groups_per_person=3, **{**options, "epsilon": 3.0})


def test_an_unknown_domain_has_a_pool_for_each_group() -> None:
    release = ask(domain=dps.UNKNOWN, delta=1e-6, epsilon=100.0)
    assert answers(release) == {"FR": {FILMS[3], FILMS[4]}, "DE": {FILMS[0], FILMS[1]}, "IT": set()}
    assert release.groups is not None
    assert release.stopped
    assert [part.stopped for part in release.groups.values()] == [False, False, True]


def test_each_group_can_have_items_of_its_own(tmp_path: Path) -> None:
    pairs = {"film": ["film 0", "film 1", "film 4", "film 5", "film 9"], "country": ["DE", "DE", "FR", "FR", "IT"]}
    pairs = {name: [*values, {"film": "film 8", "country": "IT"}[name]] for name, values in pairs.items()}
    table = pyarrow.table(pairs)
    pyarrow.parquet.write_table(table, tmp_path / "films.parquet")
    table.to_pandas().to_csv(tmp_path / "films.csv", index=False)
    table.to_pandas().to_json(tmp_path / "films.jsonl", orient="records", lines=True)
    found = {"FR": {"film 4", "film 5"}, "DE": {"film 0", "film 1"}, "IT": {"film 8", "film 9"}}
    for domain in (
        table,
        polars.from_arrow(table),
        *(tmp_path / f"films.{end}" for end in ("parquet", "csv", "jsonl")),
    ):
        release = ask(domain=domain)
        assert answers(release) == found
        assert release.domain == StatedDomain(2, "public")
    with pytest.raises(
        dps.InvalidInput, match=r"k must be at most 2 \(the number of items in the domain of group FR\)"
    ):
        ask(domain=table, k=3)
    with pytest.raises(
        dps.InvalidInput, match=r"k must be at most 0 \(the number of items in the domain of group UK\)"
    ):
        ask(domain=table, groups=["DE", "UK"])


def test_a_list_of_films_with_a_field_that_no_record_has_is_for_all_groups(tmp_path: Path) -> None:
    (tmp_path / "films.jsonl").write_text("".join(json.dumps({"film": film}) + "\n" for film in FILMS))
    assert answers(ask(domain=tmp_path / "films.jsonl"))["DE"] == {FILMS[0], FILMS[1]}


def test_groups_come_from_files_and_tables_in_their_order(tmp_path: Path) -> None:
    table = pyarrow.table({"name": ["Frankreich", "Deutschland", "Italien"], "country": COUNTRIES})
    pyarrow.parquet.write_table(table, tmp_path / "groups.parquet")
    (tmp_path / "groups.csv").write_text("country\nFR\nDE\n\nIT\nFR\n")
    lists = [table, table.to_pandas(), table["country"], polars.Series(COUNTRIES), tmp_path / "groups.csv"]
    for groups in (*lists, str(tmp_path / "groups.parquet")):
        assert list(ask(groups=groups).groups or {}) == COUNTRIES
    (tmp_path / "many.csv").write_text("country\n" + "".join(f"{number * 7919 % 5000}\n" for number in range(5000)))
    assert list(ask(k=1, groups=tmp_path / "many.csv").groups or {}) == [str(n * 7919 % 5000) for n in range(5000)]


def test_a_table_of_groups_in_the_engine_is_in_ascending_order(tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "views.duckdb")) as connection:
        connection.register("given", VIEWS)
        connection.execute("CREATE TABLE views AS FROM given")
        connection.execute("CREATE TABLE countries AS SELECT unnest(['IT', 'FR', NULL, 'DE', 'FR']) AS country")
        connection.execute("CREATE TABLE films AS SELECT DISTINCT film, country FROM given WHERE country <> 'XX'")
    url = f"duckdb://{tmp_path / 'views.duckdb'}"
    release = ask(url, table_name="views", groups="table:countries")
    assert list(release.groups or {}) == ["DE", "FR", "IT"]
    assert answers(release)["DE"] == {FILMS[0], FILMS[1]}
    with pytest.raises(dps.InvalidInput, match="groups 'table:views': it is the table of private rows"):
        ask(url, table_name="views", groups="table:views")
    own = ask(url, table_name="views", groups=["DE", "FR"], domain="table:films")
    assert answers(own) == {"DE": {FILMS[0], FILMS[1]}, "FR": {FILMS[3], FILMS[4]}}


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "unknown groups": ({"groups": dps.UNKNOWN}, "groups must list the groups.*dpselect domain --item country"),
    "a number of groups": ({"groups": 5}, "groups must list the groups"),
    "no groups": ({"groups": None}, "groups must list the groups, which are public"),
    "an empty list": ({"groups": []}, "groups must have at least one group"),
    "the column itself": ({"groups": VIEWS["country"]}, "groups: it is the table of private rows or a part of it"),
    "the rows": ({"groups": VIEWS}, "groups: it is the table of private rows.*dpselect domain"),
    "no column": ({"by": "land"}, "column 'land': there is no such column"),
    "the item": ({"by": "film"}, "by must be another column"),
    "the person": ({"by": "viewer"}, "by must be another column"),
    "not a name": ({"by": 3}, "by must be the name of a column"),
    "more than all": (
        {"max_groups_per_person": 4},
        r"max_groups_per_person must be at most 3 \(the number of groups\)",
    ),
    "none per person": ({"max_groups_per_person": 0}, "max_groups_per_person must be"),
    "groups alone": ({"by": None}, "groups must be left out without by"),
    "a column alone": ({"by": None, "groups": pandas.Series(["DE", "FR"])}, "groups must be left out.*got a Series"),
    "most alone": ({"by": None, "groups": None, "max_groups_per_person": 2}, "must be left out without by"),
    "too few items": ({"k": 7}, "k must be at most 6"),
    "lists": ({"groups": [["DE"], ["FR"]]}, "groups must have groups that are distinct, hashable"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_answered_is_refused_before_anything_is_charged(case: str, tmp_path: Path) -> None:
    options, message = REFUSED[case]
    with Ledger(tmp_path / "ledger.sqlite") as ledger:
        ledger.create("views", epsilon=2.0)
        with pytest.raises(dps.InvalidInput, match=message):
            ask(epsilon=1.0, ledger=ledger, dataset="views", **options)
        assert ledger.remaining("views").epsilon == 2.0


def test_the_file_of_the_rows_is_no_list_of_groups(tmp_path: Path) -> None:
    VIEWS.to_csv(tmp_path / "views.csv", index=False)
    (tmp_path / "link.csv").symlink_to(tmp_path / "views.csv")
    for name in ("views.csv", "link.csv"):
        with pytest.raises(dps.InvalidInput, match=r"groups .*it is the table of private rows or a part of it"):
            ask(tmp_path / "views.csv", groups=tmp_path / name)


def test_a_file_without_the_column_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "groups.csv").write_text("land\nDE\n")
    with pytest.raises(
        dps.InvalidInput, match=r"the header has no column 'country'; call the column of groups 'country'"
    ):
        ask(groups=tmp_path / "groups.csv")


def test_the_ledger_is_charged_once_for_all_groups(tmp_path: Path) -> None:
    with Ledger(tmp_path / "ledger.sqlite") as ledger:
        ledger.create("views", epsilon=2.0)
        ask(epsilon=0.5, ledger=ledger, dataset="views")
        ask(epsilon=0.5, ledger=ledger, dataset="views", max_groups_per_person=3)
        assert ledger.remaining("views").epsilon == 1.0
        [first, second] = ledger.entries("views")[-2:]
        assert (first.parameters["max_groups_per_person"], second.parameters["max_groups_per_person"]) == (1, 3)
        assert second.guarantee.epsilon == 0.5
        # What is left is less than asked for by a rounding error: the smaller release is shared by the groups again.
        ask(epsilon=1.0 + 1e-10, ledger=ledger, dataset="views", max_groups_per_person=2)
        assert ledger.remaining("views").epsilon == 0.0


def test_a_mechanism_object_states_the_cost_of_one_group() -> None:
    one = dps.Peeling(k=2, epsilon=0.5, noise="gumbel")
    release = ask(mechanism=one, epsilon=None, max_groups_per_person=2)
    assert release.mechanism is one
    assert release.guarantee.epsilon == 1.0
    assert ask(mechanism=one, epsilon=1.0, max_groups_per_person=2).guarantee == release.guarantee
    with pytest.raises(dps.InvalidInput, match="epsilon must be 1"):
        ask(mechanism=one, epsilon=0.5, max_groups_per_person=2)
    assert ask(mechanism=one, epsilon=0.5).guarantee == one.guarantee


def test_json_has_every_group_with_its_value_and_the_cost_once_more() -> None:
    rows = VIEWS.assign(country=VIEWS["country"].map({"DE": 49, "FR": 33}).astype("Int64"))
    release = ask(rows, groups=[49, 33], values=0.5)
    data = json.loads(json.dumps(release.to_dict()))
    assert list(data["groups"]) == ["49", "33"]
    assert data["group_order"] == [49, 33]
    assert {"items", "values", "intervals"}.isdisjoint(data)
    assert data["guarantee"] == data["groups"]["49"]["guarantee"]
    assert (data["k"], data["secure"], data["ordered"]) == (2, True, False)
    assert set(data["groups"]["33"]["items"]) == {FILMS[3], FILMS[4]}


def test_a_release_is_rebuilt_from_its_json() -> None:
    for options in ({}, {"values": 0.5}, {"domain": 50}, {"domain": dps.UNKNOWN, "delta": 1e-6, "epsilon": 50.0}):
        release = ask(**options)
        assert dps.Release.from_dict(json.loads(json.dumps(release.to_dict()))) == release


def test_groups_are_part_of_a_question_that_is_answered_once(tmp_path: Path) -> None:
    with Ledger(tmp_path / "ledger.sqlite") as ledger:
        ledger.create("views", epsilon=2.0)
        asked = {"epsilon": 0.5, "ledger": ledger, "dataset": "views", "once": "week 1"}
        first = ask(**asked)
        again = ask(**asked)
        assert again == first
        assert (first.repeated, again.repeated) == (False, True)
        assert list(again.groups or {}) == COUNTRIES
        pairs = pyarrow.table({"film": FILMS * 3, "country": [country for country in COUNTRIES for _ in FILMS]})
        for other in ({"groups": COUNTRIES[::-1]}, {"groups": ["FR", "DE"]}, {"max_groups_per_person": 2}):
            with pytest.raises(dps.InvalidInput, match="once"):
                ask(**asked, **other)
        with pytest.raises(dps.InvalidInput, match="once"):
            ask(**asked, domain=pairs)
        assert ledger.remaining("views").epsilon == 1.5


def test_a_seed_makes_all_groups_reproducible() -> None:
    first, second, other = (ask(epsilon=0.5, seed=seed) for seed in (1, 1, 2))
    assert first.items == second.items != other.items
    assert not first.secure
    assert first.groups is not None
    assert not any(part.secure for part in first.groups.values())
