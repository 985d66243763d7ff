"""Rows of one person that look different from equal ones of others, or that an engine cannot fetch or convert."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from engine_places import DuckDbFile, PostgreSqlDatabase, SparkSession

import dpselect as dps
from dpselect.sources import Contribution, Domain, open_counts

pytestmark = pytest.mark.slow

ONE_ITEM = Contribution.of(None, None, None, 1)
PEOPLE = "('pen', 'Ann', 'Bonn'), ('ink', 'ann', 'Rome'), ('pen', 'Bob', 'Bonn')"
"""Two people, if case is ignored, as rows (item, person, town) in SQL."""


def items_and_scores(domain: Any = 50, *, table: Any, contribution: Contribution | None = None, **where: Any) -> Any:
    """Return all items that somebody has, each with its score, in the order of their text."""
    options = {} if contribution is None else {"contribution": contribution}
    with open_counts(table, item="item", person="person", domain=Domain.of(domain), k=1, **options, **where) as counts:
        scores, numbers = counts.histogram()
        asked = [
            (score, index) for score, number in zip(scores, numbers, strict=True) if score for index in range(number)
        ]
        items = counts.fetch([score for score, _ in asked], [index for _, index in asked])
        return sorted(zip(items, (score for score, _ in asked), strict=True), key=str)


def in_duckdb(folder: Path, kind: str, *items: str) -> dict[str, Any]:
    """Return a table of a DuckDB file in which a person each has one of the items, beside a list of them, `goods`."""
    import duckdb

    place = DuckDbFile(folder)
    with contextlib.closing(duckdb.connect(str(place.file))) as connection:
        connection.execute(f"CREATE OR REPLACE TABLE orders (item {kind}, person INTEGER)")
        for person, item in enumerate(items):
            connection.execute("INSERT INTO orders VALUES (?, ?)", [item, person])
        connection.execute("CREATE OR REPLACE TABLE goods AS SELECT item FROM orders")
    return place.source("orders")


def in_postgresql(place: PostgreSqlDatabase, kind: str, *items: str) -> dict[str, Any]:
    """Return a table of a database in which a person each has one of the items."""
    with place.connect() as connection:
        connection.execute("DROP TABLE IF EXISTS orders")
        connection.execute(f"CREATE TABLE orders (item {kind}, person integer)")
        for person, item in enumerate(items):
            connection.execute(f"INSERT INTO orders VALUES ('{item}', {person})")
    return place.source("orders")


def test_a_negative_zero_is_shown_as_zero_in_duckdb_and_in_a_frame(tmp_path: Path) -> None:
    for kind in ("DOUBLE", "FLOAT"):
        [(item, score)] = items_and_scores(**in_duckdb(tmp_path, kind, "-0", "0", "0"))
        assert (str(item), score) == ("0.0", 3)
    rows = pyarrow.table({"item": [-0.0, 0.0, 0.0], "person": [1, 2, 3]})
    assert str(items_and_scores(table=rows)) == "[(0.0, 3)]"


def test_a_collation_does_not_let_one_person_choose_the_spelling_in_duckdb(tmp_path: Path) -> None:
    source = in_duckdb(tmp_path, "VARCHAR COLLATE NOCASE", "heat", "Heat", "Heat")
    assert items_and_scores(**source) == [("Heat", 2), ("heat", 1)]
    assert items_and_scores("table:goods", **source) == [("Heat", 2), ("heat", 1)]
    assert items_and_scores(["Heat", "Up"], **source) == [("Heat", 2)]


def test_a_number_of_39_digits_is_left_out_in_duckdb(tmp_path: Path) -> None:
    source = in_duckdb(tmp_path, "HUGEINT", "1" + "0" * 38, "5", "-" + "9" * 38)
    assert items_and_scores(**source) == [(-(10**38 - 1), 1), (5, 1)]
    assert items_and_scores([5, 6], **source) == [(5, 1)]


def test_a_type_that_cannot_be_used_is_named_plainly(tmp_path: Path) -> None:
    for kind, name in (("TIME_NS", "TIME_NS"), ("BIT", "BIT"), ("INTERVAL", "interval('us')")):
        with pytest.raises(dps.InvalidInput, match=r"^item must be text, numbers, .* column 'item' of type ") as caught:
            items_and_scores(**in_duckdb(tmp_path, kind))
        assert f"of type {name};" in str(caught.value)


def test_equal_items_have_one_form_in_postgresql(postgresql_place: PostgreSqlDatabase) -> None:
    for kind, items, shown in (
        ("double precision", ("-0", "0", "0"), [("0.0", 3)]),
        ("real", ("-0", "0", "0"), [("0.0", 3)]),
        ("numeric", ("1.00", "1", "1.0", "NaN"), [("1", 3)]),
        ("numeric(5, 2)", ("1.00", "1", "NaN"), [("1.00", 2)]),
        ("char(5)", ("a", "a  ", "b"), [("a", 2), ("b", 1)]),
    ):
        found = items_and_scores(**in_postgresql(postgresql_place, kind, *items))
        assert [(str(item), score) for item, score in found] == shown, kind


def test_an_enumeration_of_postgresql_is_text(postgresql_place: PostgreSqlDatabase) -> None:
    with postgresql_place.connect() as connection:
        connection.execute("DROP TYPE IF EXISTS mood CASCADE")
        connection.execute("CREATE TYPE mood AS ENUM ('glad', 'sad')")
    source = in_postgresql(postgresql_place, "mood", "glad", "sad", "sad")
    assert items_and_scores(**source) == [("glad", 1), ("sad", 2)]
    assert items_and_scores(["sad", "mad"], **source) == [("sad", 2)]


def test_no_weight_of_one_person_stops_postgresql(postgresql_place: PostgreSqlDatabase) -> None:
    weighted = Contribution.of(None, None, "weight", None)
    for kind, numbers in (
        ("numeric", ("1e-16000", "1e10000", "NaN", "-Infinity")),
        ("double precision", ("5e-324", "1e308", "NaN", "-Infinity")),
        ("boolean", ("true", "false")),
    ):
        source = in_postgresql(postgresql_place, kind, *numbers)
        with postgresql_place.connect() as connection:
            connection.execute("ALTER TABLE orders RENAME item TO weight")
            connection.execute("ALTER TABLE orders ADD item text DEFAULT 'pen'")
        assert items_and_scores(contribution=weighted, **source) == [("pen", 1)], kind


def test_a_type_that_the_server_cannot_compute_with_costs_nothing(
    postgresql_place: PostgreSqlDatabase, tmp_path: Path
) -> None:
    source = in_postgresql(postgresql_place, "money", "3")
    options = {"item": "person", "person": "item", "value": "item", "clip": (0, 1), "domain": [0, 1]}
    with dps.privacy.Ledger(tmp_path / "budget.sqlite") as ledger:
        ledger.create("shop", epsilon=1)
        with pytest.raises(dps.SourceError, match="types do not match"):
            dps.top(**source, **options, k=1, epsilon=1, ledger=ledger, dataset="shop")
        assert not ledger.entries("shop")


def test_texts_of_spark_are_compared_byte_by_byte_and_must_be_unicode(spark_place: SparkSession) -> None:
    frame = spark_place.session.sql(
        "SELECT item COLLATE UTF8_LCASE AS item, person FROM VALUES "
        "('heat', 1), ('Heat', 2), ('Heat', 3), (CAST(x'61ff' AS STRING), 4) AS rows (item, person)"
    )
    assert items_and_scores(table=frame) == [("Heat", 2), ("heat", 1)]


class TestPeople:
    """A collation in which different texts are equal lets an engine keep either spelling of a person, by other rows."""

    def refused(self, reason: str, advice: str, **source: Any) -> None:
        asked: dict[str, Any] = {**source, "item": "item", "person": "person", "epsilon": 1.0}
        calls = [
            lambda: dps.top(**asked, k=1, domain=["pen", "ink"]),
            lambda: dps.top(**asked, k=1, domain=["pen", "ink"], max_items_per_person=1),
            lambda: dps.top(**asked, k=1, domain=["pen", "ink"], by="town", groups=["Bonn", "Rome"]),
            lambda: dps.discover(**asked, delta=1e-6, max_items_per_person=1),
        ]
        for call in calls:
            with pytest.raises(dps.InvalidInput) as caught:
                call()
            assert str(caught.value).startswith("person must be text that is compared byte by byte")
            assert f"got column 'person' with {reason}; use a view" in str(caught.value)
            assert advice in str(caught.value)

    def accepted(self, **source: Any) -> None:
        with open_counts(
            **source,
            item="item",
            person="person",
            domain=Domain.of(["pen", "ink"]),
            k=1,
            key="k",
            contribution=ONE_ITEM,
        ) as counts:
            scores, numbers = counts.histogram()
        assert sum(score * number for score, number in zip(scores, numbers, strict=True)) == 2

    @pytest.mark.parametrize("collation", ["NOCASE", "NOACCENT", "NFC", "NOCASE.NOACCENT"])
    def test_duckdb(self, collation: str, tmp_path: Path) -> None:
        import duckdb

        place = DuckDbFile(tmp_path)
        with contextlib.closing(duckdb.connect(str(place.file))) as connection:
            connection.execute(f"CREATE TABLE orders (item TEXT, person TEXT COLLATE {collation}, town TEXT)")
            connection.execute(f"INSERT INTO orders VALUES {PEOPLE}")
            connection.execute("CREATE VIEW seen AS SELECT * FROM orders")
            connection.execute(
                'CREATE VIEW fit AS SELECT item, CAST(lower(person) AS TEXT) COLLATE "C" AS person FROM orders'
            )
        for name in ("orders", "seen"):
            self.refused("a collation such as NOCASE", 'COLLATE "C"', **place.source(name))
        self.accepted(**place.source("fit"))

    def test_postgresql(self, fresh_database: PostgreSqlDatabase) -> None:
        """The server of these tests has no ICU and no extensions, so its catalogue and a type of that name stand in."""
        with fresh_database.connect() as connection:
            connection.execute("CREATE COLLATION loose (provider = libc, locale = 'C')")
            connection.execute("UPDATE pg_collation SET collisdeterministic = false WHERE collname = 'loose'")
            connection.execute("CREATE TYPE citext")
            for name, takes, gives in (("textin", "cstring", "citext"), ("textout", "citext", "cstring")):
                connection.execute(
                    f"CREATE FUNCTION ci{name}({takes}) RETURNS {gives} AS '{name}' LANGUAGE internal IMMUTABLE STRICT"
                )
            connection.execute(
                "CREATE TYPE citext (INPUT = citextin, OUTPUT = citextout, LIKE = text, CATEGORY = 'S', COLLATABLE)"
            )
            connection.execute("CREATE CAST (citext AS text) WITHOUT FUNCTION AS IMPLICIT")
            for name, kind in (
                ("orders", "text COLLATE loose"),
                ("short", "varchar(9) COLLATE loose"),
                ("typed", "citext"),
                ("plain", "text"),
                ("fixed", "char(5)"),
            ):
                connection.execute(f"CREATE TABLE {name} (item text, person {kind}, town text)")
                connection.execute(f"INSERT INTO {name} VALUES {PEOPLE}")
            for name in ("orders", "typed"):
                lower = 'CAST(lower(person) AS TEXT) COLLATE "C" AS person'
                connection.execute(f"CREATE VIEW fit_{name} AS SELECT item, {lower} FROM {name}")
        for name, reason in (("orders", "collation loose"), ("short", "collation loose"), ("typed", "type citext")):
            self.refused(reason, 'COLLATE "C"', **fresh_database.source(name))
        for name in ("fit_orders", "fit_typed"):
            self.accepted(**fresh_database.source(name))
        for name in ("plain", "fixed"):
            with open_counts(
                **fresh_database.source(name), item="item", person="person", domain=Domain.of(2), k=1
            ) as counts:
                assert counts.size == 2

    def test_spark(self, spark_place: SparkSession) -> None:
        frame = spark_place.session.sql(
            f"SELECT item, person COLLATE UTF8_LCASE AS person, town FROM VALUES {PEOPLE} AS rows (item, person, town)"
        )
        self.refused("collation UTF8_LCASE", "COLLATE UTF8_BINARY", table=frame)
        fit = frame.selectExpr("item", "CAST(lower(person) AS STRING) COLLATE UTF8_BINARY AS person")
        self.accepted(table=fit)


def test_voters_in_a_collation_that_ignores_case_are_refused(tmp_path: Path) -> None:
    import duckdb

    place = DuckDbFile(tmp_path)
    with contextlib.closing(duckdb.connect(str(place.file))) as connection:
        connection.execute("CREATE TABLE votes (winner TEXT, loser TEXT, voter TEXT COLLATE NOCASE)")
    asked: dict[str, Any] = {"winner": "winner", "loser": "loser", "person": "voter", "max_votes_per_person": 1}
    with pytest.raises(dps.InvalidInput, match="column 'voter' with a collation such as NOCASE"):
        dps.rank(
            place.source("votes")["table"],
            table_name="votes",
            **asked,
            k=1,
            epsilon=1.0,
            comparisons_per_pair=2,
            max_degree=3,
            domain=["a", "b", "c", "d"],
        )
