"""`forecast --by` and `plan --by`: what the answer for each group is worth."""

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
from dpselect.forecast import forecast_groups

SCORES = {"DE": [90, 70, 40, 10, 0], "FR": [9, 7, 4, 1, 0], "IS": [0, 0, 0, 0, 0]}
FILMS = ["Heat", "Up", "Her", "Big", "Ran"]
ROWS = "--item film --person viewer --domain list.csv --by country --groups countries.csv"


@pytest.fixture(autouse=True)
def files(folder: Path) -> None:
    """People's rows of two countries, with one person in both, and their counts; nobody is in the third one."""
    rows = [
        (film, f"{country} {viewer}", country)
        for country, scores in SCORES.items()
        for film, score in zip(FILMS, scores, strict=True)
        for viewer in range(score)
    ]
    table = pyarrow.table(dict(zip(("film", "viewer", "country"), zip(*rows, strict=True), strict=True)))
    pyarrow.parquet.write_table(table, "rows.parquet")
    Path("list.csv").write_text("film\n" + "\n".join(FILMS) + "\n")
    Path("countries.csv").write_text("country\nDE\nFR\nIS\n")
    counted = [(country, film) for film, _, country in rows]
    lines = [f"{country},{film},{counted.count((country, film))}\n" for country, film in sorted(set(counted))]
    Path("counts.csv").write_text("country,item,count\n" + "".join(lines) + "DE,Ran,0\n")


def run(line: str) -> Any:
    return CliRunner().invoke(app, shlex.split(line))


def figures(line: str) -> dict[str, float]:
    result = run(f"{line} --format json")
    assert result.exit_code == 0, result.stderr
    data = json.loads(result.stdout)
    return {row["group"]: row["forecast"]["exact"]["value"] for row in data["groups"]}


def wanted(**asked: Any) -> dict[str, float]:
    found = forecast_groups(SCORES, 2, **asked).forecasts
    return {group: outlook.exact.value for group, outlook in found.items() if outlook.exact is not None}


def test_rows_are_forecast_for_each_group() -> None:
    assert figures(f"forecast rows.parquet -k 2 --epsilon 0.5 {ROWS}") == pytest.approx(wanted(epsilon=0.5))
    asked = f"forecast rows.parquet -k 2 --epsilon 0.5 {ROWS} --max-groups-per-person 2 --ordered"
    assert figures(asked) == pytest.approx(wanted(epsilon=0.5, max_groups_per_person=2, ordered=True))


def test_counts_are_forecast_for_each_group_and_missing_items_count_0() -> None:
    expected = {group: value for group, value in wanted(epsilon=0.5).items() if group != "IS"}
    for line in ("forecast counts.csv", "plan --like counts.csv"):
        assert figures(f"{line} -k 2 --epsilon 0.5 --by country --item item") == pytest.approx(expected)
    assert "not private" in run("forecast counts.csv -k 2 --epsilon 0.5 --by country").stderr
    assert "not private" not in run("plan --like counts.csv -k 2 --epsilon 0.5 --by country").stderr
    scaled = figures("plan --like counts.csv -k 2 --epsilon 0.5 --by country --people 50 --like-people 100 --item item")
    assert scaled["DE"] < expected["DE"]


def test_the_table_and_the_rows_name_the_groups() -> None:
    shown = run(f"forecast rows.parquet -k 2 --epsilon 0.5 {ROWS} --max-groups-per-person 2").stdout
    assert "Top 2 of each of 3 groups at epsilon = 0.5" in shown
    assert "epsilon = 0.25 for each group, since a person counts in up to 2" in " ".join(shown.split())
    assert max(len(line) for line in shown.splitlines()) <= 80
    rows = list(csv.DictReader(io.StringIO(run(f"forecast rows.parquet -k 2 --epsilon 1 {ROWS} --format csv").stdout)))
    assert [(row["group"], row["items"]) for row in rows] == [("DE", "5"), ("FR", "5"), ("IS", "5")]
    shown = " ".join(run("plan --like counts.csv -k 2 --epsilon 0.5 --by country").stdout.split())
    assert "if the groups have the scores of the look-alike" in shown


BAD = [
    (f"forecast rows.parquet -k 2 {ROWS}", "--epsilon must be stated --by"),
    (f"forecast rows.parquet -k 6 --epsilon 1 {ROWS}", "-k 6 5"),
    (f"forecast rows.parquet -k 2 --epsilon 1 {ROWS} --plot out.svg", "--plot --by"),
    (f"forecast rows.parquet -k 2 --epsilon 1 {ROWS}".replace("list.csv", "unknown"), "--domain unknown --by"),
    (f"forecast rows.parquet -k 2 --epsilon 1 {ROWS}".replace("--groups countries.csv", ""), "--groups must be stated"),
    (
        f"forecast rows.parquet -k 2 --epsilon 1 {ROWS}".replace("countries.csv", "none.csv"),
        "--groups none.csv no such",
    ),
    (f"forecast rows.parquet -k 2 --epsilon 1 {ROWS} --max-groups-per-person 9", "--max-groups-per-person 9 3"),
    ("forecast counts.csv -k 2 --epsilon 1 --groups countries.csv", "--groups --by"),
    ("forecast counts.csv -k 2 --epsilon 1 --max-groups-per-person 2", "--max-groups-per-person --by"),
    ("forecast counts.csv -k 2 --epsilon 1 --by country --groups countries.csv", "--groups file of counts"),
    ("forecast counts.csv -k 2 --epsilon 1 --by land", "FILE 'counts.csv' 'land' --by"),
    ("forecast twice.csv -k 1 --epsilon 1 --by country --item item", "FILE twice one row per group and item"),
    ("plan -k 2 --epsilon 1 --by country", "--like must be stated --by"),
    ("plan --like counts.csv -k 2 --by country", "--epsilon must be stated --by"),
    ("plan --like counts.csv -k 2 --epsilon 1 --item item", "--item --by"),
    ("plan --like counts.csv -k 2 --epsilon 1 --by country --items 9", "--items --by"),
]


@pytest.mark.parametrize(("line", "words"), BAD, ids=[line for line, _ in BAD])
def test_bad_input_is_refused_with_the_way_out(line: str, words: str) -> None:
    """Each word must be in the message."""
    Path("twice.csv").write_text("country,item,count\nDE,hush,3\nDE,hush,4\n")
    result = run(line)
    assert (result.exit_code, result.stdout) == (2, "")
    assert [word for word in words.split() if word not in result.stderr] == [], result.stderr
    assert "hush" not in result.stderr


def test_what_is_right_is_said_to_depend_on_the_groups_that_people_count_in() -> None:
    asked = f"forecast rows.parquet -k 2 --epsilon 0.5 {ROWS}"
    assert "among people who count in one group each" in " ".join(run(asked).stdout.split())
    several = " ".join(run(f"{asked} --max-groups-per-person 2").stdout.split())
    assert "among people who count in at most 2 groups each" in several
