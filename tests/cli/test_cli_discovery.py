"""`dpselect domain`: a list by name that --domain takes, and nothing of it on standard output but the list."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import dpselect as dps
from dpselect.cli import app
from dpselect.cli.domain import _text
from dpselect.cli.output import Format
from dpselect.sources import read_columns

ASKED = "--item film --person viewer --epsilon 2 --delta 1e-6 --max-items-per-person 12"


def run(line: str) -> Any:
    return CliRunner().invoke(app, shlex.split(line))


def test_the_file_is_a_domain_listed_by_name(folder: Path) -> None:
    """Items with 240 … 100 people have weights far above the threshold, those with 20 far below or near it."""
    result = run(f"domain views.parquet {ASKED} --output domain.csv")
    assert (result.exit_code, result.stdout) == (0, "")
    header, *items = Path("domain.csv").read_text().splitlines()
    assert header == "film"
    assert items == sorted(items)
    assert {f"film {place:02d}" for place in range(5)} <= set(items)
    assert f"{len(items)} items listed; state them as --domain domain.csv" in result.stderr
    answer = run("top views.parquet --item film --person viewer -k 3 --epsilon 50 --domain domain.csv --format json")
    assert answer.exit_code == 0
    assert set(json.loads(answer.stdout)["items"]) == {"film 00", "film 01", "film 02"}


def test_every_format_says_the_same(folder: Path) -> None:
    shown = {form: run(f"domain views.parquet {ASKED} --seed 1 --format {form}") for form in ("json", "csv", "table")}
    data = json.loads(shown["json"].stdout)
    assert shown["csv"].stdout.splitlines() == ["film", *data["items"]]
    assert all(item in shown["table"].stdout for item in data["items"])
    assert "by name" in shown["table"].stdout
    assert "none, because a seed was given" in shown["table"].stdout
    assert all("not private" in result.stderr for result in shown.values())
    assert data["secure"] is False
    assert data["mechanism"]["max_items_per_person"] == 12


@pytest.mark.parametrize("name", ["domain.json", "domain.txt"])
def test_a_file_that_is_no_domain_is_not_called_one(folder: Path, name: str) -> None:
    result = run(f"domain views.parquet {ASKED} --output {name}")
    assert result.exit_code == 0
    assert f"--domain {name}" not in result.stderr
    assert "items listed; for a list that --domain takes, name a file that ends in .csv" in result.stderr


def test_a_list_without_an_item_is_not_called_a_domain(folder: Path) -> None:
    """`top` refuses an empty list, so the note says why there may be none."""
    (folder / "few.csv").write_text("film,viewer\nfilm 00,1\n")
    few = "domain few.csv --item film --person viewer --epsilon 1 --delta 1e-6 --max-items-per-person 1"
    result = run(f"{few} --output none.csv")
    assert (result.exit_code, Path("none.csv").read_text()) == (0, "film\n")
    assert "no item is listed: none has enough people" in result.stderr
    assert "--domain none.csv" not in result.stderr


def test_at_least_is_stated_with_its_probability(folder: Path) -> None:
    result = run(f"domain views.parquet {ASKED} --at-least 60")
    assert "fewer than 60 people" in result.stdout
    assert "1e-6" in result.stdout


def test_the_release_is_charged(folder: Path) -> None:
    assert run("ledger create views --epsilon 3 --delta 1e-5 --ledger l.sqlite").exit_code == 0
    charged = f"domain views.parquet {ASKED} --ledger l.sqlite --dataset views --format csv"
    assert run(charged).exit_code == 0
    refused = run(charged)
    assert (refused.exit_code, refused.stdout) == (1, "")


def test_the_rows_as_their_own_domain_are_refused_with_this_way_out(folder: Path) -> None:
    result = run("top views.parquet --item film --person viewer -k 3 --epsilon 1 --domain views.parquet")
    assert result.exit_code == 2
    assert "dpselect domain" in result.stderr


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ("--delta 0", "--delta must be above 0"),
        ("--max-items-per-person none", "--max-items-per-person must be a whole number"),
        ("--at-least 0", "--at-least must be a whole number"),
        ("--output views.parquet", "--output"),
        ("--output list.xlsx", "--output"),
    ],
)
def test_bad_options_are_refused_by_their_name(folder: Path, changed: str, said: str) -> None:
    result = run(f"domain views.parquet {ASKED} {changed}")
    assert (result.exit_code, result.stdout) == (2, "")
    assert said in result.stderr


def test_items_that_no_line_can_hold_are_left_out_with_a_note(folder: Path) -> None:
    items = ["a\nb", "c"] * 400
    table = pyarrow.table({"film": items, "viewer": list(range(800))})
    pyarrow.parquet.write_table(table, "notes.parquet")
    line = f"domain notes.parquet {ASKED}"
    result = run(f"{line} --output notes.csv")
    assert Path("notes.csv").read_text() == "film\nc\n"
    assert "1 of the items cannot be a line of a CSV file" in result.stderr
    assert "1 items listed; state them as --domain notes.csv" in result.stderr
    assert json.loads(run(f"{line} --format json").stdout)["items"] == ["a\nb", "c"]


def release(items: list[Any], column: str = "word") -> dps.DomainRelease:
    mechanism = dps.Discovery(epsilon=1.0, delta=1e-6, max_items_per_person=1)
    return dps.DomainRelease(items, column, mechanism.guarantee, mechanism, True)


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\1\2\r\n")), max_size=30),
    st.sampled_from(["word", "a word", "a,b", "a;b", 'a "b"', "ö"]),
)
def test_what_is_written_is_read_again(tmp_path: Path, items: list[str], column: str) -> None:
    file = tmp_path / "list.csv"
    file.write_text(_text(release(items, column), Format.csv), encoding="utf-8", newline="")
    assert read_columns(file, [column]).column(column).to_pylist() == items
