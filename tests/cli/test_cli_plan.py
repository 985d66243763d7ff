"""`dpselect plan`: numbers that match exact computation, and bad facts refused in one line."""

from __future__ import annotations

import csv
import io
import json
import math
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import dpselect as dps
from dpselect.cli import app


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a public look-alike, in which commands run."""
    (tmp_path / "public.csv").write_text("item,count\n" + "".join(f"i{n},{900 // n}\n" for n in range(1, 40)))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")
    return tmp_path


def run(*line: str) -> Any:
    return CliRunner().invoke(app, ["plan", *line])


def test_the_example_of_the_manual_matches_exact_computation() -> None:
    result = run("-k", "10", "--gap", "50", "--accuracy", "0.99", "--format", "json")
    assert result.exit_code == 0
    assert "10,000 were assumed" in result.stderr
    data = json.loads(result.stdout)
    found = {row["label"]: row["epsilon"] for row in data["mechanisms"]}
    others = math.comb(10_000, 10) - 1
    assert found["canonical, gumbel"] == pytest.approx((math.log(others) + math.log(99)) / 50, rel=1e-9)
    scores = dps.Scores.from_histogram([50, 0], [10, 9990])
    for row in data["mechanisms"]:
        described = {key: value for key, value in row["mechanism"].items() if key not in ("name", "sensitivity")}
        kind = {"canonical": dps.Canonical, "oneshot": dps.OneShot}[row["mechanism"]["name"]]
        mechanism: Any = kind(epsilon=row["epsilon"], **described)
        outlook = dps.forecast.forecast(scores, mechanism, draws=0)
        assert outlook.exact is not None
        assert outlook.exact.value == pytest.approx(0.99, abs=1e-7)
    assert data["limit"] == dps.forecast.proven_limit(scores, 10, 0.99)
    assert data["model"].startswith("10 of 10,000 items")


def test_the_table_is_sorted_fits_the_terminal_and_says_what_to_do() -> None:
    result = run("-k", "10", "--gap", "50", "--accuracy", "0.99", "--items", "10000")
    assert (result.exit_code, result.stderr) == (0, "")
    assert max(map(len, result.stdout.splitlines())) <= 80
    rows = [line.split("│") for line in result.stdout.splitlines() if line.startswith("│") and line[1] != " "]
    assert [(row[1].strip(), row[2].strip()) for row in rows[:2]] == [
        ("canonical", "1.62"),
        ("canonical, gumbel", "1.64"),
    ]
    assert "state epsilon = 1.62" in " ".join(result.stdout.split())
    assert "worst case" in " ".join(result.stdout.split())


def test_the_manual_shows_what_is_printed() -> None:
    page = (Path(__file__).parents[2] / "docs" / "forecast.md").read_text()
    blocks = re.findall(r"```console\n\$ dpselect plan (.*?)\n(.*?)```", page, re.DOTALL)
    assert len(blocks) == 2
    for line, shown in blocks:
        assert re.sub(" +\n", "\n", run(*shlex.split(line)).stdout).startswith(shown)


def test_csv_has_a_row_for_each_mechanism() -> None:
    rows = list(csv.DictReader(io.StringIO(run("-k", "3", "--gap", "9", "--ordered", "--format", "csv").stdout)))
    assert {row["label"] for row in rows} == {"joint", "joint, published", "peeling", "peeling, gumbel", "oneshot"}
    assert [float(row["epsilon"]) for row in rows] == sorted(float(row["epsilon"]) for row in rows)


def test_plan_judges_protection_by_the_guarantee_of_the_default() -> None:
    """Whatever the question, a delta counts, if the default uses one."""
    for question in (("--epsilon", "0.5"), ("--gap", "50"), ("--epsilon", "0.5", "--like", "public.csv")):
        told = " ".join(run("-k", "10", "--ordered", "--delta", "1e-6", *question).stdout.split())
        assert "if the data are of fewer than 1/delta = 1,000,000 people." in told
    other = " ".join(run("-k", "10", "--gap", "50", "--ordered").stdout.split())
    assert other.endswith("Protection: moderate. With --aim exact: 0.425.")


def test_a_share_of_the_people_is_a_gap() -> None:
    line = ("-k", "3", "--items", "50", "--format", "json")
    share, number = run(*line, "--gap", "2%", "--people", "1000"), run(*line, "--gap", "20")
    assert json.loads(share.stdout)["mechanisms"] == json.loads(number.stdout)["mechanisms"]


def test_an_epsilon_asks_for_the_lead_or_for_what_a_look_alike_lets_expect() -> None:
    line = ("-k", "3", "--epsilon", "0.5", "--items", "50")
    data = json.loads(run(*line, "--format", "json").stdout)
    rows = list(csv.DictReader(io.StringIO(run(*line, "--format", "csv").stdout)))
    assert [row["lead_for_0.9"] for row in rows] == [str(row["leads"]["0.9"]) for row in data["mechanisms"]]
    assert "Protection: weak." in run("-k", "3", "--epsilon", "6").stdout
    like = ("-k", "3", "--epsilon", "0.02", "--like", "public.csv")
    result = run(*like, "--ordered")
    assert (result.exit_code, max(map(len, result.stdout.splitlines())) <= 80) == (0, True)
    assert "right of 3" in result.stdout
    assert "≈: estimated from 200 draws" in result.stdout
    told = " ".join(run(*like).stdout.split())
    assert (
        "oneshot has the most right: state --mechanism oneshot. Protection with canonical (the default): strong."
        in told
    )
    assert "--mechanism canonical --gamma 0.75" in " ".join(run("-k", "5", "--like", "public.csv").stdout.split())
    rows = list(csv.DictReader(io.StringIO(run(*like, "--format", "csv").stdout)))
    assert float(rows[0]["correct"]) > 1


@pytest.mark.slow
def test_a_look_alike_and_a_picture() -> None:
    result = run("-k", "3", "--like", "public.csv", "--plot", "plan.html", "--format", "json")
    assert result.exit_code == 0
    assert json.loads(result.stdout)["items"] == 39
    assert "<svg" in Path("plan.html").read_text()


BAD = [
    ("--gap 0", "--gap 0.0 above 0"),
    ("--gap wide", "--gap 'wide'"),
    ("--gap 2%", "--people must be stated"),
    ("--gap x% --people 5", "--gap 'x%'"),
    ("--gap 5 --accuracy 1", "--accuracy 1.0 between 0 and 1"),
    ("", "--gap must be stated like epsilon"),
    ("--gap 5 --like-people 3", "--like-people 3"),
    ("--like public.csv --like-people 3", "--people"),
    ("--like nothing.csv", "--like 'nothing.csv' no such file"),
    ("--like public.csv --count clicks", "--like column 'clicks'"),
    ("--gap 5 --plot plan.gif", "--plot 'plan.gif' .png .svg .html"),
    ("--gap 5 --items 3", "--items 3"),
    ("--gap 5 --delta 2", "--delta 2"),
    ("--gap 5 --epsilon 1", "--gap 5.0 must be left out"),
    ("--accuracy 0.9 --epsilon 1", "--accuracy 0.9 must be left out"),
    ("--epsilon 1 --plot plan.png", "--plot 'plan.png' --like"),
]


def test_bad_facts_are_refused_with_a_reason() -> None:
    """Each word must be in the message."""
    for line, words in BAD:
        result = run("-k", "4", *line.split())
        assert (result.exit_code, result.stdout) == (2, ""), line
        assert [word for word in words.split() if word not in result.stderr] == [], result.stderr
    assert not list(Path.cwd().glob("plan.*"))
