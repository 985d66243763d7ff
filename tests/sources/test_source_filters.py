"""Filters look at one row at a time, work on every kind of table, and are told apart before anything is charged."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import ibis
import pandas
import polars
import pyarrow
import pytest

import dpselect as dps
from dpselect.errors import InvalidInput, SourceError
from dpselect.privacy import Ledger
from dpselect.sources import Domain, open_counts

ROWS = pandas.DataFrame(
    {
        "film": ["Heat", "Heat", "Up", "Up", "Up"],
        "viewer": ["ann", "bob", "ann", "bob", "cat"],
        "Year sold": [1999, 2020, 2021, 2022, 1990],
    }
)


def at(folder: Path, kind: str) -> Any:
    if kind == "pandas":
        return ROWS
    if kind == "polars":
        return polars.from_pandas(ROWS)
    if kind == "memory":
        return ibis.memtable(pyarrow.Table.from_pandas(ROWS))
    path = folder / f"rows.{kind}"
    if kind == "parquet":
        ROWS.to_parquet(path)
    elif kind == "csv":
        ROWS.to_csv(path, index=False)
    else:
        ROWS.to_json(path, orient="records", lines=True)
    return path


def histogram(table: Any, where: str | None, **options: Any) -> dict[int, int]:
    with open_counts(
        table, item="film", person="viewer", domain=Domain.of(["Heat", "Up"]), k=1, where=where, **options
    ) as counts:
        return dict(zip(*counts.histogram(), strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["pandas", "polars", "memory", "parquet", "csv", "jsonl"])
def test_rows_for_which_a_condition_is_not_true_are_left_out(kind: str, tmp_path: Path) -> None:
    table = at(tmp_path, kind)
    assert histogram(table, None) == {3: 1, 2: 1}
    assert histogram(table, 'CAST("Year sold" AS INTEGER) >= 2020') == {2: 1, 1: 1}
    assert histogram(table, "viewer <> 'ann' AND film LIKE 'U%'") == {2: 1, 0: 1}
    assert histogram(table, "NULL") == {0: 2}


NO_CONDITIONS = [
    "",
    "   ",
    3,
    "film = 'Up'; DROP TABLE films",
    "film = 'Up') OR (1 = 1",
    "SELECT true",
    "DROP TABLE films",
    "film IN (SELECT film FROM films)",
    "EXISTS (SELECT 1)",
    "count(*) > 1",
    'sum("Year sold") > 3',
    "row_number() OVER (PARTITION BY film) = 1",
    "rank() OVER () = 1",
    "film =",
]


def test_what_looks_at_other_rows_or_is_no_condition_is_refused() -> None:
    for where in NO_CONDITIONS:
        with pytest.raises(InvalidInput, match="must be one condition on the columns of a row") as caught:
            histogram(ROWS, where)
        assert caught.value.argument == "where", where


def test_a_column_in_single_quotes_is_refused_with_its_right_quotes() -> None:
    """Otherwise the condition is about a text: true of all rows or of none, and the answer of nothing is charged."""
    for where in (
        "'Year sold' > 2000",
        "'Year sold' = 'Year sold'",
        "length('Year sold') > 3",
        "film = 'Heat' AND 'Year sold' > 2000",
        "film = 'Heat' OR (NOT 'Year sold' > 2000)",
    ):
        with pytest.raises(InvalidInput, match=r'where must use a column.*write "Year sold"'):
            histogram(ROWS, where)


def test_a_number_of_a_csv_needs_a_cast_and_the_error_says_so(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"column 'Year sold' is text, .*: CAST\(… AS INTEGER\) makes it a number"):
        histogram(at(tmp_path, "csv"), '"Year sold" >= 2020')
    with pytest.raises(InvalidInput) as caught:
        histogram(ROWS, "\"Year sold\" >= date '2020-01-01'")
    assert "CAST" not in str(caught.value)


def test_a_filter_that_does_not_fit_costs_nothing(tmp_path: Path) -> None:
    asked = {"item": "film", "person": "viewer", "k": 1, "epsilon": 0.25, "domain": ["Heat", "Up"]}
    with Ledger(tmp_path / "ledger.sqlite") as ledger:
        ledger.create("films", epsilon=1.0)
        for where in ("no_such_column = 1", "film + 1 = date '2020-01-01'", "no_such_function(film)"):
            with pytest.raises(InvalidInput):
                dps.top(ROWS, where=where, ledger=ledger, dataset="films", **asked)
        assert ledger.remaining("films").epsilon == 1.0


def test_a_text_that_is_no_truth_value_leaves_its_row_out(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("film,viewer,active\nHeat,1,true\nUp,2,false\nUp,3,maybe\n")
    for where in ("active", "active;", "NOT (NOT active)"):
        assert histogram(path, where) == {1: 1, 0: 1}


@pytest.mark.filterwarnings("ignore:fetch_arrow_table:DeprecationWarning")
def test_a_connection_with_locked_settings_is_refused_with_the_reason() -> None:
    backend = ibis.duckdb.connect()
    backend.con.execute("CREATE TABLE films AS SELECT 'Heat' AS film, 1 AS viewer")
    backend.con.execute("SET lock_configuration = true")
    with pytest.raises(SourceError, match="lock_configuration"):
        dps.top(backend.table("films"), item="film", person="viewer", k=1, epsilon=1.0, domain=["Heat", "Up"])


def test_a_row_on_which_a_filter_fails_is_left_out() -> None:
    rows = pandas.DataFrame({"film": ["Heat", "Heat", "Up", "3"], "viewer": list("abcd"), "amount": [1, 2, 0, 0]})
    asked = {"item": "film", "person": "viewer", "k": 1, "epsilon": 100.0, "domain": ["Heat", "Up", "3"]}
    assert dps.top(rows, where="CAST(film AS INTEGER) = 3", **asked).items == ["3"]
    assert dps.top(rows, where="6 // amount > 2", **asked).items == ["Heat"]


def test_tables_of_a_duckdb_file_are_found_by_name(tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "it's.duckdb")) as connection:
        rows = ROWS  # noqa: F841 (DuckDB looks the name up)
        connection.execute('CREATE SCHEMA "big.shop"')
        connection.execute('CREATE TABLE "big.shop".sales AS SELECT * FROM rows')
        connection.execute("CREATE TABLE films AS SELECT unnest(['Heat', 'Up', 'Her', 'Up', NULL]) AS name")
    url = f"duckdb://{tmp_path}/it's.duckdb"
    named = {"table": url, "table_name": '"big.shop".sales'}
    assert histogram(where='"Year sold" > 2000', **named) == {2: 1, 1: 1}
    release = dps.top(
        url, table_name='"big.shop".sales', item="film", person="viewer", k=3, epsilon=1.0, domain="table:films"
    )
    assert sorted(release.items) == ["Heat", "Her", "Up"]
    for name in ("sales", "other.sales", "a.b.c.d", "", None, ".", "a..b"):
        with pytest.raises(InvalidInput) as caught:
            histogram(url, None, table_name=name)
        assert caught.value.argument == "table_name"
    with pytest.raises(InvalidInput, match="no such table"):
        dps.top(url, table_name='"big.shop".sales', item="film", person="viewer", k=1, epsilon=1.0, domain="table:none")


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("duckdb://none.duckdb", "must name an existing file"),
        ("mysql://ann:secret@host/films", "duckdb://FILE"),
        ("spark://", "HOST:PORT"),
        ("spark+local://many", "spark"),
    ],
)
def test_other_urls_are_refused_and_never_shown(url: str, words: str) -> None:
    with pytest.raises(InvalidInput, match=words) as caught:
        histogram(url, None, table_name="films")
    assert "secret" not in str(caught.value)
    with pytest.raises(InvalidInput, match="table_name"):
        histogram("duckdb://none.duckdb", None)
    with pytest.raises(InvalidInput, match="table_name"):
        histogram(ROWS, None, table_name="films")


def test_a_domain_beside_the_rows_needs_a_database() -> None:
    with pytest.raises(InvalidInput, match="the rows are not in a database"):
        dps.top(ROWS, item="film", person="viewer", k=1, epsilon=1.0, domain="table:films")


def test_places_that_are_gone_when_they_are_asked_for_release_nothing() -> None:
    with open_counts(ROWS, item="film", person="viewer", domain=Domain.of(["Heat", "Up"]), k=1) as counts:
        assert dict(zip(*counts.histogram(), strict=True)) == {3: 1, 2: 1}
        for scores, indexes in (([3, 2], [0, 1]), ([4], [0]), ([3], [1])):
            with pytest.raises(SourceError, match="changed between two queries"):
                counts.fetch(scores, indexes)
