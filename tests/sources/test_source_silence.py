"""Nothing that one person puts into a table shows in an error, a status or the size of an answer."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas
import pytest
from source_files import TABLES, Row, write_csv, write_json, write_parquet

from dpselect.errors import DpSelectError
from dpselect.top import top

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


@pytest.mark.parametrize(
    ("name", "line"),
    [pytest.param(name, line, id=f"{name} {i}") for name, lines in WEIRD_LINES.items() for i, line in enumerate(lines)],
)
@pytest.mark.parametrize(("place", "domain"), [("first", DOMAIN), ("last", 10**6), ("alone", DOMAIN)], ids=str)
def test_no_line_of_one_person_changes_what_is_seen(
    name: str, line: bytes, place: str, domain: Any, tmp_path: Path
) -> None:
    write, written = (write_csv, name) if name.endswith(".csv") else (write_json, "rows.jsonl")
    path = write(tmp_path, [] if place == "alone" else BASE, written).rename(tmp_path / name)
    before = outcome(path, domain)
    header, _, body = path.read_bytes().partition(b"\n") if name.endswith(".csv") else (b"", b"", path.read_bytes())
    start = header + b"\n" if header else b""
    path.write_bytes(start + line + body if place == "first" else start + body + line)
    assert before == ("released", 3)
    assert outcome(path, domain) == before


@pytest.mark.parametrize("kind", ["csv", "jsonl", "json array", "parquet", "pandas"])
@pytest.mark.parametrize("films", [["Outside"], [None], [""], ["Heat"] * 50, [f"new {i}" for i in range(300)]], ids=len)
def test_no_rows_of_one_person_change_what_is_seen(kind: str, films: list[str | None], tmp_path: Path) -> None:
    for base in ([], BASE):
        table = TABLES[kind](tmp_path, base + [(film, "mallory") for film in films])
        for domain in (DOMAIN, 10**6):
            assert outcome(table, domain) == ("released", 3)


@pytest.mark.parametrize(
    "film", [3, 2.5, None, float("nan"), [1], {"a": 1}, b"x", object(), "\ud800"], ids=lambda film: type(film).__name__
)
def test_no_object_of_one_person_in_a_frame_changes_what_is_seen(film: Any) -> None:
    films = pandas.Series([*(row[0] for row in BASE), film], dtype=object)
    table = pandas.DataFrame({"film": films, "viewer": [*(row[1] for row in BASE), "mallory"]})
    for domain in (DOMAIN, 10**6):
        assert outcome(table, domain) == ("released", 3)


ERRORS: dict[str, dict[str, Any]] = {
    "no such column": {"item": "flim"},
    "k above the domain": {"k": 6},
    "stated number too small": {"domain": 2, "k": 1},
    "epsilon": {"epsilon": -1.0},
    "same column": {"person": "film"},
}


@pytest.mark.parametrize("wrong", ERRORS)
@pytest.mark.parametrize("write", [write_csv, write_json, write_parquet], ids=["csv", "jsonl", "parquet"])
def test_errors_are_the_same_for_neighbours_and_quote_no_row(
    wrong: str, write: Callable[..., Path], tmp_path: Path
) -> None:
    options = {"domain": DOMAIN, **ERRORS[wrong]}
    without = outcome(write(tmp_path, BASE), **options)
    beside = outcome(write(tmp_path, [("Mallory's Secret", "mallory"), *BASE, ("Heat", "mallory")]), **options)
    assert without == beside
    # JSON has no header, so a field that no record has cannot be told from one that is always null.
    assert (without[0] == "released") == (write is write_json and wrong == "no such column")
    for film, viewer in BASE:
        assert json.dumps(film)[1:-1] not in without[0]
        assert str(viewer) not in without[0]
