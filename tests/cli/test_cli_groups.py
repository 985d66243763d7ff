"""dpselect top --by: a table for each group, a column in CSV, and one cost."""

from __future__ import annotations

import csv
import io
import json
import shlex
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest
from typer.testing import CliRunner

from dpselect.cli import app

ASKED = "top rows.parquet --item film --person viewer -k 2 --epsilon 1e6 --by country"
LISTED = f"{ASKED} --domain films.csv --groups countries.csv"


@pytest.fixture
def rows(folder: Path) -> Path:
    """Rows of two countries, beside a list of three."""
    views = [
        (f"film {place:02d}", f"{country} {viewer}", country)
        for country, best in (("Peru", 0), ("Fiji", 6))
        for place in range(12)
        for viewer in range(120 - 10 * ((place - best) % 12))
    ]
    columns = {name: [row[at] for row in views] for at, name in enumerate(("film", "viewer", "country"))}
    pyarrow.parquet.write_table(pyarrow.table(columns), folder / "rows.parquet")
    (folder / "countries.csv").write_text("country\nPeru\nFiji\nOman\n")
    return folder


def run(line: str) -> Any:
    return CliRunner().invoke(app, shlex.split(line))


def done(line: str) -> str:
    result = run(line)
    assert result.exit_code == 0, result.stderr
    return str(result.stdout)


def refused(line: str) -> str:
    result = run(line)
    assert (result.exit_code, result.stdout) == (2, ""), result.stderr
    return " ".join(str(result.stderr).split())


def test_people_see_a_table_for_each_group_and_the_facts_once(rows: Path) -> None:
    said = done(LISTED)
    places = [said.index(f"Group {country}") for country in ("Peru", "Fiji", "Oman")]
    assert places == sorted(places)
    assert said.startswith("Private top 2 of each of 3 groups")
    assert said.count("Guarantee") == 1
    assert "each person counts in one of them" in " ".join(said.split())
    assert "12 items, stated as public, for each group" in " ".join(said.split())


def test_csv_has_a_column_of_groups(rows: Path) -> None:
    table = list(csv.DictReader(io.StringIO(done(f"{LISTED} --ordered --values 0.5 --format csv"))))
    assert list(table[0]) == ["group", "rank", "item", "value", "low", "high"]
    assert [(row["group"], row["rank"]) for row in table] == [
        (country, rank) for country in ("Peru", "Fiji", "Oman") for rank in "12"
    ]
    assert [row["item"] for row in table[:4]] == ["film 00", "film 01", "film 06", "film 07"]
    assert [row["value"] for row in table] == ["120", "110", "120", "110", "0", "0"]


def test_json_has_every_group(rows: Path) -> None:
    data = json.loads(done(f"{LISTED} --max-groups-per-person 2 --format json"))
    assert list(data["groups"]) == ["Peru", "Fiji", "Oman"]
    assert set(data["groups"]["Peru"]["items"]) == {"film 00", "film 01"}
    assert data["max_groups_per_person"] == 2
    assert data["groups"]["Oman"]["guarantee"] == data["guarantee"]
    assert (data["guarantee"]["epsilon"], data["mechanism"]["epsilon"]) == (1e6, 5e5)


def test_groups_that_stop_early_say_so(rows: Path) -> None:
    said = done(f"{ASKED} --domain unknown --delta 1e-6 --groups countries.csv".replace("1e6", "50"))
    assert "Group Oman (stopped after 0 of 2)" in said
    assert "stopped early in 1 groups" not in said
    assert "stopped early in 1 group:" in said


def test_what_is_no_public_list_of_groups_is_refused_with_the_way_out(rows: Path) -> None:
    asked = f"{ASKED} --domain films.csv"
    for groups in ("unknown", "rows.parquet"):
        said = refused(f"{asked} --groups {groups}")
        assert said.startswith("dpselect: --groups")
        assert "dpselect domain" in said
    assert "--groups must list the groups, which are public" in refused(asked)
    alone = refused(LISTED.replace("--by country", ""))
    assert "--groups must be left out without by (--by), the column of groups, got 'countries.csv'" in alone
    assert "must be at most 3 (the number of groups)" in refused(f"{LISTED} --max-groups-per-person 4")


def test_the_list_of_groups_is_not_overwritten(rows: Path) -> None:
    assert "must not be a file that is read" in refused(f"{LISTED} --output countries.csv")
    assert (rows / "countries.csv").read_text() == "country\nPeru\nFiji\nOman\n"
