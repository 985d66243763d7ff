"""Nothing that one person puts into a table shows in an error, a status or the size of an answer."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, date, datetime, time
from pathlib import Path
from typing import Any

import duckdb
import numpy
import pandas
import pyarrow
import pyarrow.parquet
import pytest
from source_files import TABLES, Row, write_csv, write_json, write_parquet

from dpselect import top
from dpselect.errors import DpSelectError
from dpselect.sources import Unseen

BASE: list[Row] = [(film, f"viewer {i}") for i in range(40) for film in ("Heat", "Up", "Her") if i % len(film)]
DOMAIN = ["Heat", "Up", "Her", "Alien", ""]

WEIRD_LINES: dict[str, list[bytes]] = {
    "rows.csv": [
        b'"never closed,mallory\n',
        b'"closed" too early,mallory\n',
        b"Heat,mallory,and,more\n",
        b"only one field\n",
        b"\xff\xfe\x00,mallory\n",
        b"x" * 3_000_000 + b",mallory\n",
        b",\n",
        b'"",""\n',
        b"film,viewer\n",
        b"\x00\n",
        b"\r\r\n",
        b"Outside,mallory\n" * 1000,
        b"".join(b"item %d,mallory\n" % i for i in range(5000)),
    ],
    "rows.jsonl": [
        b"{\n",
        b"[1, 2, 3]\n",
        b"null\n",
        b'{"film": {"deep": [1]}, "viewer": "mallory"}\n',
        b'{"film": "\xff", "viewer": "mallory"}\n',
        b'{"film": "Heat"}\n',
        b'{"other": 1}\n',
        b'{"film": "' + b"x" * 40_000_000 + b'", "viewer": "mallory"}\n',
        b'{"film": "a", "film": "b", "viewer": "mallory"}\n',
        b'{"film": "\\ud800", "viewer": "mallory"}\n',
    ],
    "rows.json": [
        b"[\n",
        b'[{"film": "Heat", "viewer": "mallory"}]\n',
        b'[{"film": "Heat", "viewer": "mallory"\n',
        b"]\n",
        b'{"other": 1}\n',
    ],
}


def outcome(table: Any, domain: Any, **options: Any) -> tuple[str, int]:
    """Return what an observer sees of a release beside the items themselves."""
    arguments = {"item": "film", "person": "viewer", "k": 3, "epsilon": 1.0, "seed": 1, **options}
    try:
        return ("released", len(top(table, domain=domain, **arguments).items))
    except DpSelectError as error:
        return (f"{type(error).__name__}: {error}", 0)


@pytest.mark.slow
@pytest.mark.parametrize("name", WEIRD_LINES)
def test_no_line_of_one_person_changes_what_is_seen(name: str, tmp_path: Path) -> None:
    header = b"film,viewer\n" if name == "rows.csv" else b""
    write = write_csv if name == "rows.csv" else write_json
    body = write(tmp_path, BASE, "base.csv" if name == "rows.csv" else "base.jsonl").read_bytes().removeprefix(header)
    path, lines = tmp_path / name, WEIRD_LINES[name]
    for line in lines:
        path.write_bytes(header + line + body)
        assert outcome(path, DOMAIN) == ("released", 3), line[:80]
    path.write_bytes(header + body + b"".join(lines))
    assert outcome(path, 10**6) == ("released", 3)
    path.write_bytes(header + b"".join(lines))
    assert outcome(path, DOMAIN) == ("released", 3)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["csv", "jsonl", "json array", "parquet", "pandas"])
def test_no_rows_of_one_person_change_what_is_seen(kind: str, tmp_path: Path) -> None:
    films: list[str | None] = ["Outside", None, "", *["Heat"] * 50, *(f"new {i}" for i in range(300))]
    for base, domain in (([], DOMAIN), (BASE, DOMAIN), (BASE, 10**6)):
        table = TABLES[kind](tmp_path, base + [(film, "mallory") for film in films])
        assert outcome(table, domain) == ("released", 3)


@pytest.mark.slow
def test_no_object_of_one_person_in_a_frame_changes_what_is_seen() -> None:
    for film in (3, 2.5, None, float("nan"), [1], {"a": 1}, b"x", object(), "\ud800"):
        films = pandas.Series([*(row[0] for row in BASE), film], dtype=object)
        table = pandas.DataFrame({"film": films, "viewer": [*(row[1] for row in BASE), "mallory"]})
        assert outcome(table, DOMAIN) == ("released", 3), type(film)


@pytest.mark.slow
def test_no_missing_category_changes_what_is_seen() -> None:
    for ordinary in ([1, 2], [True, False], ["a", "b"], [1.5, 2.5]):
        kind = pandas.CategoricalDtype(ordinary)
        for films in (ordinary, [*ordinary, None]):
            table = pandas.DataFrame({"film": pandas.Series(films, dtype=kind), "viewer": range(len(films))})
            items = top(table, item="film", person="viewer", k=2, epsilon=1.0, domain=2, seed=1).items
            assert sorted(items) == sorted(ordinary)


def raw(kind: Any, *numbers: int) -> Any:
    """Return an Arrow column of these numbers under that type, with no check."""
    width = kind.bit_width // 8
    data = pyarrow.py_buffer(numpy.array(numbers, f"i{width}").tobytes())
    return pyarrow.Array.from_buffers(kind, len(numbers), [None, data])


STRANGE_TIMES = {
    "day": (raw(pyarrow.date32(), 0, 10**7), date(1970, 1, 1)),
    "last day": (raw(pyarrow.date32(), 0, 2**31 - 1), date(1970, 1, 1)),
    "day in milliseconds": (raw(pyarrow.date64(), 0, 86_400_000 * 10**10), date(1970, 1, 1)),
    "seconds": (raw(pyarrow.timestamp("s"), 0, 10**15), datetime(1970, 1, 1)),
    "milliseconds": (raw(pyarrow.timestamp("ms"), 0, -(2**62)), datetime(1970, 1, 1)),
    "microseconds": (raw(pyarrow.timestamp("us"), 0, 2**62), datetime(1970, 1, 1)),
    "infinity": (raw(pyarrow.timestamp("us"), 0, 2**63 - 1), datetime(1970, 1, 1)),
    "time zone": (
        raw(pyarrow.timestamp("us", "Asia/Tokyo"), 0, 253_402_300_799 * 10**6),
        datetime(1970, 1, 1, tzinfo=UTC),
    ),
    "midnight at the end": (raw(pyarrow.time64("us"), 0, 86_400 * 10**6), time(0)),
}


def only_item(table: Any) -> Any:
    """Return the one item that a table holds, from an answer that contains every item that was counted."""
    release = top(table, item="film", person="viewer", k=9, epsilon=1.0, domain=9, seed=1)
    [item] = [item for item in release.items if not isinstance(item, Unseen)]
    return item


@pytest.mark.slow
def test_a_date_outside_the_calendar_of_python_is_dropped(tmp_path: Path) -> None:
    for kind, (films, ordinary) in STRANGE_TIMES.items():
        table = pyarrow.table({"film": films, "viewer": ["ann", "mallory"]})
        assert only_item(table) == ordinary, kind
        if kind not in ("seconds", "milliseconds", "day in milliseconds", "midnight at the end"):
            pyarrow.parquet.write_table(table, tmp_path / "rows.parquet")
            assert only_item(tmp_path / "rows.parquet") == ordinary, kind


@pytest.mark.slow
@pytest.mark.parametrize("unit", ["us", "ns"])
def test_the_edges_of_the_calendar_and_of_the_day_count(unit: str) -> None:
    times = pyarrow.array([time.min, time(23, 59, 59, 999_999)], pyarrow.time64(unit))
    assert top(
        pyarrow.table({"film": times, "viewer": [1, 2]}), item="film", person="viewer", k=2, epsilon=1, domain=2
    ).items
    for kind, edges in (
        (pyarrow.date32(), [date.min, date.max]),
        (pyarrow.timestamp("us"), [datetime.min, datetime.max]),
        (pyarrow.timestamp("ms"), [datetime.min, datetime(9999, 12, 31)]),
    ):
        table = pyarrow.table({"film": pyarrow.array(edges, kind), "viewer": [1, 2]})
        assert sorted(top(table, item="film", person="viewer", k=2, epsilon=1, domain=2, seed=1).items) == edges


@pytest.mark.parametrize("kind", [pyarrow.string(), pyarrow.large_string()], ids=str)
def test_text_in_a_frame_that_is_not_utf8_is_dropped(kind: Any) -> None:
    """Arrow does not check text when a table is made, and Python fails when it is fetched."""
    width = "i8" if pyarrow.types.is_large_string(kind) else "i4"
    ends = pyarrow.py_buffer(numpy.array([0, 4, 6], width).tobytes())
    films = pyarrow.Array.from_buffers(kind, 2, [None, ends, pyarrow.py_buffer(b"Heat\xff\xfe")])
    for column in (films, pyarrow.DictionaryArray.from_arrays(pyarrow.array([0, 1]), films)):
        assert only_item(pyarrow.table({"film": column, "viewer": ["ann", "mallory"]})) == "Heat"


def test_a_parquet_column_without_values_has_no_type_and_that_does_not_show(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    cases: list[list[Row]] = [[], [(None, "ann")], [("Heat", None)], [("Heat", "ann")]]
    for rows in cases:
        pandas.DataFrame(rows, columns=["film", "viewer"], dtype=object).to_parquet(path)
        assert outcome(path, DOMAIN) == ("released", 3), rows


@pytest.mark.parametrize("film", ["7", "Secret"])
def test_files_of_different_types_are_read_alike_whatever_they_hold(film: str, tmp_path: Path) -> None:
    """The types of the first file alone would make a text that is no number an error."""
    duckdb.sql("SELECT 1 AS film, 'ann' AS viewer").write_parquet(str(tmp_path / "a.parquet"))
    duckdb.sql(f"SELECT '{film}' AS film, 'mallory' AS viewer").write_parquet(str(tmp_path / "b.parquet"))
    assert outcome(tmp_path, DOMAIN) == ("released", 3)


ERRORS: dict[str, dict[str, Any]] = {
    "no such column": {"item": "flim"},
    "k above the domain": {"k": 6},
    "stated number too small": {"domain": 2, "k": 1},
    "epsilon": {"epsilon": -1.0},
    "same column": {"person": "film"},
}


@pytest.mark.slow
@pytest.mark.parametrize("write", [write_csv, write_json, write_parquet], ids=["csv", "jsonl", "parquet"])
def test_errors_are_the_same_for_neighbours_and_quote_no_row(write: Callable[..., Path], tmp_path: Path) -> None:
    for wrong, changed in ERRORS.items():
        options = {"domain": DOMAIN, **changed}
        without = outcome(write(tmp_path, BASE), **options)
        beside = outcome(write(tmp_path, [("Mallory's Secret", "mallory"), *BASE, ("Heat", "mallory")]), **options)
        assert without == beside
        # JSON has no header, so a field that no record has cannot be told from one that is always null.
        assert (without[0] == "released") == (write is write_json and wrong == "no such column")
        for film, viewer in BASE:
            assert json.dumps(film)[1:-1] not in without[0]
            assert str(viewer) not in without[0]
