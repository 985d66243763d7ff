"""--domain: a public list, never the rows, and every answer says what was stated."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
from pathlib import Path
from typing import Any

import duckdb
import pytest
from typer.testing import CliRunner

from dpselect.cli import app

ASKED = "--item film --person viewer -k 3 --epsilon 1e6"


def run(line: str) -> Any:
    return CliRunner().invoke(app, shlex.split(line))


def refused(line: str) -> str:
    result = run(line)
    assert (result.exit_code, result.stdout) == (2, ""), result.stderr
    return str(result.stderr)


def test_the_private_rows_are_no_list_of_the_possible_items(folder: Path) -> None:
    os.link("views.parquet", "list.parquet")
    with contextlib.closing(duckdb.connect("v.duckdb")) as connection:
        connection.execute("CREATE TABLE views AS FROM 'views.parquet'")
    caps = "-k 1 --epsilon 1 --comparisons-per-pair 1 --max-degree 1 --winner film --loser viewer"
    for line in (
        f"top views.parquet {ASKED} --domain views.parquet",
        f"top views.parquet {ASKED} --domain list.parquet",
        f"top {folder} {ASKED} --domain ./views.parquet",
        f"top duckdb://v.duckdb --table views {ASKED} --domain table:main.views",
        f"rank views.parquet {caps} --domain list.parquet",
    ):
        said = refused(line)
        assert "--domain" in said
        assert "only one person has" in said
        assert "--domain unknown" in said


def test_a_forecast_for_the_rows_as_their_own_list_is_refused_with_what_to_do_there(folder: Path) -> None:
    said = refused("forecast views.parquet --item film --person viewer -k 1 --domain views.parquet")
    assert "--domain" in said
    assert "'views.parquet'" in said
    assert "unknown" not in said


@pytest.mark.slow
def test_a_list_without_a_header_loses_no_item(folder: Path) -> None:
    Path("list.txt").write_text("film 00\nfilm 01\nfilm 02\n")
    line = f"top views.parquet {ASKED} --domain list.txt"
    said = refused(line)
    assert all(
        word in said for word in ("--domain", "'list.txt'", "'film 00'", "--domain-column", "--domain-no-header")
    )
    answer = json.loads(run(f"{line} --domain-no-header --format json").stdout)
    assert set(answer["items"]) == {"film 00", "film 01", "film 02"}
    assert answer["domain"] == {"items": 3, "stated": "public"}
    Path("list.txt").write_text("title\nfilm 00\nfilm 01\nfilm 02\n")
    answer = json.loads(run(f"{line} --domain-column title --format json").stdout)
    assert answer["domain"] == {"items": 3, "stated": "public"}
    for options in ("--domain-no-header", "--domain-column title"):
        rows = "--item film --person viewer -k 1 --epsilon 1 --format json"
        assert run(f"forecast views.parquet {rows} --domain list.txt {options}").exit_code == 0
        assert "--domain must name the file" in refused(f"forecast list.txt -k 1 {options}")


def test_the_two_options_do_not_go_together(folder: Path) -> None:
    said = refused(f"top views.parquet {ASKED} --domain films.csv --domain-column film --domain-no-header")
    assert "--domain-no-header" in said
    assert "'film'" in said


@pytest.mark.slow
@pytest.mark.parametrize(
    ("domain", "words", "plain"),
    [
        ("films.csv", "12 items, stated as public", {"items": 12, "stated": "public"}),
        ("1500", "1,500 items, only their number stated as public", {"items": 1500, "stated": "number"}),
        ("unknown", "unknown; which items exist is private", {"items": None, "stated": "unknown"}),
    ],
    ids=["list", "number", "unknown"],
)
def test_every_answer_says_what_was_stated(domain: str, words: str, plain: dict[str, Any], folder: Path) -> None:
    line = f"top views.parquet {ASKED} --delta 1e-3 --domain {domain}"
    assert f"Domain {words} Mechanism" in " ".join(run(line).stdout.split())
    assert json.loads(run(f"{line} --format json").stdout)["domain"] == plain
