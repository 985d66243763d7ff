"""One person never touches another's row: every way into `top`, with and without any one person.

For random small tables of nasty cells, written through every source that can hold them: the scores are those of a slow
oracle in plain Python; taking away a person moves them by no more than the stated sensitivity, and changes neither
whether there is an answer nor what is said; and sources that hold the same rows agree.

Much longer, with a new seed each time: `make fuzz`, or `make fuzz SEED=7 MINUTES=60`. How to add a source is said in
`neighbour_sources`, how to add a nasty cell in `neighbour_tables`, and a condition in `neighbour_conditions`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest
from neighbour_check import check_everybody, check_without, try_agreement, try_case
from neighbour_sources import (
    ARROW,
    CSV,
    EMBEDDED,
    JSON_ARRAY,
    JSON_LINES,
    PANDAS_OBJECTS,
    PARQUET,
    POLARS_LAZY,
    RELATION,
    Postgres,
    Source,
    Spark,
)
from neighbour_tables import Case, Genre, Json, Nested, Question, Table, nan

from dpselect.errors import InvalidInput
from dpselect.sources import Domain, open_counts

# dpselect ignores this warning for each engine that it opens, but here one engine is open for many tests.
pytestmark = [pytest.mark.filterwarnings("ignore:fetch_arrow_table:DeprecationWarning"), pytest.mark.slow]

TABLES = 101
"""Tables of each of the 19 embedded sources; with those that agree, more than 2,000. Half of them lack one person."""

POSTGRESQL_TABLES, SPARK_TABLES, AGREEING_TABLES = 24, 10, 100

TYPED = [*PARQUET, *ARROW, POLARS_LAZY, RELATION]
TEXTS = {"item": "text", "person": "text"}


def try_cases(tables: int, try_one: Callable[[int], int]) -> None:
    """Try one case after another until so many tables were read."""
    numbers = itertools.count()
    while tables > 0:
        tables -= try_one(next(numbers))


@pytest.mark.parametrize("source", EMBEDDED, ids=repr)
def test_scores_are_as_documented_whoever_leaves(source: Source) -> None:
    try_cases(TABLES, lambda number: try_case(source, number))


def test_scores_in_postgresql_are_as_documented_whoever_leaves(postgresql_server: str) -> None:
    source = Postgres(postgresql_server)
    try_cases(POSTGRESQL_TABLES, lambda number: try_case(source, number))


def test_scores_in_spark_are_as_documented_whoever_leaves(spark_session: Any) -> None:
    source = Spark(spark_session)
    try_cases(SPARK_TABLES, lambda number: try_case(source, number))


def test_sources_that_hold_the_same_rows_agree() -> None:
    try_cases(AGREEING_TABLES, try_agreement)


NOT_A_NUMBER = [("A", "ann", nan), ("A", "bob", nan), ("B", "cat", 3.0), ("B", "dan", 3.0), ("B", "eve", 10.0)]
CONDITIONS = ["{amount} > 5", "{amount} >= 5", "{amount} <> 3", "NOT {amount} <= 5", "{amount} + 0 > 5"]
CONDITIONS += ["{amount} > 5 AND NOT isnan({amount})"]


def with_amounts(where: str) -> Case:
    question = Question(domain="list", listed=("A", "B"), where=where)
    return Case(Table({**TEXTS, "amount": "float"}, NOT_A_NUMBER), question)


@pytest.mark.parametrize("source", PARQUET, ids=repr)
def test_a_condition_is_not_answered_from_statistics_that_leave_nan_out(source: Source) -> None:
    for where in CONDITIONS:
        check_without(source, with_amounts(where), "eve")


def test_a_condition_in_spark_is_not_answered_from_statistics_that_leave_nan_out(spark_session: Any) -> None:
    check_everybody(Spark(spark_session), with_amounts("{amount} > 5"))


def test_the_last_day_of_the_calendar_counts_in_spark(spark_session: Any) -> None:
    last_day = 2_932_896
    case = Case(Table({"item": "date", "person": "date"}, [(last_day, last_day), (last_day, 0)]), Question("number"))
    check_everybody(Spark(spark_session), case)


@pytest.mark.parametrize("source", TYPED, ids=repr)
def test_a_row_with_nan_is_dropped(source: Source) -> None:
    rows = [("A", "ann", 0.5), ("A", "bob", nan), ("B", "cat", 1.0)]
    for role, question in (("amount", Question(clip=(0, 5))), ("share", Question(weighted=True))):
        case = Case(Table({**TEXTS, role: "float"}, rows), replace(question, listed=("A", "B")))
        check_without(source, case, "bob")
    floats = [(1.0, 1.0), (1.0, nan), (nan, 2.0), (2.0, 2.0)]
    check_everybody(source, Case(Table({"item": "float", "person": "float"}, floats), Question("number")))


@pytest.mark.parametrize("listed", [("a", "noir"), ("Genre.DRAMA",)])
def test_a_number_beside_members_of_an_enum_does_not_change_how_they_are_read(listed: tuple[str, ...]) -> None:
    rows = [(Genre.DRAMA, "ann"), (Genre.DRAMA, "bob"), (Genre.NOIR, "bob"), (7, "cat")]
    kinds = {"item": "mixed", "person": "text"}
    check_everybody(PANDAS_OBJECTS, Case(Table(kinds, rows), Question(listed=listed)))


@pytest.mark.parametrize("source", [JSON_ARRAY, JSON_LINES], ids=repr)
def test_a_deeply_nested_record_does_not_change_how_others_are_read(source: Source) -> None:
    for depth in (995, 3000, 100_000):
        rows = [("A", "ann", None), ("A", "bob", Json("[]")), ("B", "cat", Nested(depth))]
        case = Case(Table({**TEXTS, "note": "mixed"}, rows), Question(listed=("A", "B")))
        check_without(source, case, "cat")


def test_numbers_in_json_are_taken_by_their_text() -> None:
    rows = [(Json(text), "ann") for text in ("1.10", "1.1", "1e2", "100", "-0", "0", "1E400")]
    case = Case(Table({"item": "mixed", "person": "text"}, rows), Question("number"))
    check_everybody(JSON_LINES, case)
    check_everybody(JSON_ARRAY, case)


@pytest.mark.parametrize("source", [*PARQUET, ARROW[0], POLARS_LAZY, CSV, JSON_LINES], ids=repr)
def test_columns_are_found_by_their_exact_names(source: Source) -> None:
    for item in ("Film", "film_1"):
        table = Table(TEXTS, [("A", "ann"), ("A", "bob"), ("B", "cat")], {"item": item})
        check_without(source, Case(table, Question(listed=("A", "B"))), "cat")


@pytest.mark.parametrize("names", [["film", "Film", "film_1", "viewer"], ["Film", "film", "film_1", "viewer"]])
def test_three_columns_whose_names_engines_confuse_are_told_apart(names: list[str], tmp_path: Path) -> None:
    columns = [["own 1", "own 1"] if name == "viewer" else [f"of {name}"] * 2 for name in names]
    path = tmp_path / "rows.parquet"
    pyarrow.parquet.write_table(pyarrow.table(columns, names=names), path)
    for item in names[:3]:
        with open_counts(path, item=item, person="viewer", domain=Domain(unknown=True), k=1) as counts:
            assert counts.highest(5) == ([f"of {item}"], [1])


def test_a_column_that_comes_twice_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    rows = pyarrow.table([["A"], ["B"], ["ann"]], names=["film", "film", "viewer"])
    pyarrow.parquet.write_table(rows, path)
    with (
        pytest.raises(InvalidInput, match="film"),
        open_counts(path, item="film", person="viewer", domain=Domain(unknown=True), k=1),
    ):
        pass


def test_a_header_of_more_than_a_megabyte_is_read_or_refused(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    others = ",".join(f"column{number}" for number in range(200_000))
    path.write_text(f"film,viewer,{others}\nA,ann{',' * 200_000}\n")
    try:
        with open_counts(path, item="film", person="viewer", domain=Domain(unknown=True), k=1) as counts:
            assert counts.highest(5) == (["A"], [1])
    except InvalidInput:
        pass


@pytest.mark.parametrize("source", [*TYPED, CSV, JSON_LINES, PANDAS_OBJECTS], ids=repr)
def test_a_row_on_which_a_condition_fails_is_left_out(source: Source) -> None:
    rows = [("A", "ann", 3, "1"), ("A", "bob", 2**40, "one"), ("B", "cat", None, None)]
    table = Table({**TEXTS, "amount": "integer", "note": "text"}, rows)
    for where in ("CAST({note} AS FLOAT) > 0.5", "CAST({amount} AS SMALLINT) > 1"):
        check_without(source, Case(table, Question(listed=("A", "B"), where=where)), "bob")


@pytest.mark.parametrize("source", [CSV, JSON_ARRAY, PARQUET[0], ARROW[0], PANDAS_OBJECTS], ids=repr)
def test_the_check_itself_fails_where_one_person_decides_about_others(
    source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = Case(Table(TEXTS, [("a", "1"), ("a", "A"), ("b", "b"), ("b", "1")]), Question(listed=("a", "b")))
    check_without(source, case, "b")
    write = source.write
    monkeypatch.setattr(
        source,
        "write",
        lambda folder, given: write(folder, given if len(given.table.rows) == 4 else given.with_rows([])),
    )
    with pytest.raises(AssertionError, match="documented is"):
        check_without(source, case, "b")
