"""Counting people per item gives the same answer in every format as in plain Python."""

from __future__ import annotations

import hashlib
import importlib
import tempfile
from pathlib import Path
from typing import Any

import duckdb
import ibis
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from source_files import FILMS, ROWS, TABLES, Row, arrow, histogram, members, plain_histogram, write_csv

from dpselect.sources import Domain, Unseen, open_counts
from dpselect.sources.duckdb import EmbeddedEngine

ODD = [
    "",
    " ",
    "' OR 1=1 --",
    'quo"te',
    "a,b",
    "line\nbreak",
    "\r",
    "\t",
    "NULL",
    "null",
    "nan",
    "0",
    "00",
    "é",
    "é",
    "\0x",
]
texts = st.one_of(st.sampled_from(ODD), st.text(st.characters(codec="utf-8"), max_size=4))
odd_rows = st.lists(st.tuples(st.none() | texts, st.none() | st.sampled_from(["", "ann", "bob", "a'b"])), max_size=12)


@pytest.mark.parametrize("kind", TABLES)
def test_every_format_counts_each_person_once_per_item(kind: str, tmp_path: Path) -> None:
    assert histogram(TABLES[kind](tmp_path, []), FILMS) == {0: len(FILMS)}
    table = TABLES[kind](tmp_path, ROWS)
    assert members(table, FILMS) == {2: ["Heat"], 1: ['Say "when", twice', "Up", "Ærø ☃"], 0: ["Alien", "Her"]}
    assert histogram(table, 10**30) == {2: 1, 1: 4, 0: 10**30 - 5}


def test_a_stated_number_may_be_the_number_of_items_there_are() -> None:
    assert histogram(arrow(ROWS), 5) == {2: 1, 1: 4}
    assert histogram(arrow([]), 7) == {0: 7}


@pytest.mark.long
@pytest.mark.parametrize("kind", ["csv", "jsonl", "json array", "parquet", "pandas", "polars"])
@settings(max_examples=12)
@given(rows=odd_rows, domain=st.lists(texts, min_size=1, max_size=8))
def test_odd_texts_are_counted_as_they_are(kind: str, rows: list[Row], domain: list[str]) -> None:
    if kind == "csv":
        rows = [(film, viewer) for film, viewer in rows if not set("\n\r\x01") & set(film or "")]
    with tempfile.TemporaryDirectory() as folder:
        table = TABLES[kind](Path(folder), rows)
        everything = sorted({film for film, viewer in rows if film is not None and viewer is not None} | set(domain))
        assert histogram(table, domain) == plain_histogram(rows, domain)
        found = members(table, everything)
    assert sorted(item for group in found.values() for item in group) == everything
    assert {score: len(group) for score, group in found.items()} == plain_histogram(rows, everything)


def test_items_are_fetched_in_the_order_asked_and_as_often() -> None:
    tied = sorted(['Say "when", twice', "Up", "Ærø ☃"], key=lambda film: hashlib.md5(film.encode()).hexdigest())
    with open_counts(arrow(ROWS), item="film", person="viewer", domain=Domain.of(FILMS), k=1) as counts:
        assert counts.fetch([1, 2, 1, 0, 1, 1], [2, 0, 1, 1, 0, 2]) == [
            tied[2],
            "Heat",
            tied[1],
            "Alien",
            tied[0],
            tied[2],
        ]


def test_unseen_items_are_numbered_within_the_answer() -> None:
    with open_counts(arrow(ROWS), item="film", person="viewer", domain=Domain.of(10**20), k=1) as counts:
        assert counts.fetch([0, 2, 0], [10**19, 0, 3]) == [Unseen(1), "Heat", Unseen(2)]
        assert counts.fetch([0], [5]) == [Unseen(1)]


@pytest.fixture
def crossings(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Record how many rows each result that reaches Python has, by every way out of the engine."""
    sizes: list[int] = []
    arrow_of = EmbeddedEngine._arrow

    def counted(self: EmbeddedEngine, expression: Any) -> Any:
        result = arrow_of(self, expression)
        sizes.append(result.num_rows)
        return result

    def refused(*_: Any, **__: Any) -> Any:
        raise AssertionError("another way out of the engine was used")

    monkeypatch.setattr(EmbeddedEngine, "_arrow", counted)
    backend = importlib.import_module("ibis.backends.duckdb").Backend
    for name in ("execute", "to_pyarrow", "to_pyarrow_batches", "to_pandas", "to_polars"):
        monkeypatch.setattr(backend, name, refused)
    return sizes


@pytest.mark.parametrize("as_file", [True, False])
def test_only_the_histogram_and_the_chosen_items_reach_python(
    as_file: bool, tmp_path: Path, crossings: list[int]
) -> None:
    rows: list[Row] = [(f"film {i % 500}", f"viewer {i}") for i in range(5000)]
    table = write_csv(tmp_path, rows) if as_file else arrow(rows)
    domain = [f"film {i}" for i in range(700)]
    with open_counts(table, item="film", person="viewer", domain=Domain.of(domain), k=1) as counts:
        scores, items = counts.histogram()
        before = len(crossings)
        counts.fetch([10, 0, 10], [499, 3, 0])
    assert (scores, items) == ([10, 0], [500, 200])
    # Two items that somebody has, and one that nobody has.
    assert crossings[before:] == [2, 1]
    # The public size of the list, then one row per distinct score of the items that somebody has.
    assert crossings[:before] == [1, 1]


def test_an_ibis_table_is_counted_on_its_own_backend_and_leaves_nothing_behind() -> None:
    connection = duckdb.connect()
    connection.register("given", arrow(ROWS))
    connection.execute("CREATE TABLE viewings AS SELECT * FROM given")
    backend = ibis.duckdb.from_connection(connection)
    table = ibis.table({"film": "string", "viewer": "string"}, name="viewings")
    table = ibis.expr.operations.DatabaseTable(
        name="viewings", schema=table.schema(), source=backend, namespace=table.op().namespace
    ).to_expr()
    assert histogram(table, FILMS) == {2: 1, 1: 3, 0: 2}
    assert members(table, 20)[2] == ["Heat"]
    assert connection.execute("SELECT count(*) FROM duckdb_tables() WHERE table_name <> 'viewings'").fetchall() == [
        (0,)
    ]
    assert connection.execute("SELECT count(*) FROM viewings").fetchall() == [(len(ROWS),)]
    backend.disconnect()


def test_an_ibis_table_in_memory_and_a_duckdb_relation_are_counted() -> None:
    assert histogram(ibis.memtable(arrow(ROWS)), FILMS) == {2: 1, 1: 3, 0: 2}
    rows = arrow(ROWS)
    with duckdb.connect() as connection:
        assert histogram(connection.from_arrow(rows), FILMS) == {2: 1, 1: 3, 0: 2}
