"""Periods on the command line: a budget each week, --time with --period, and what is said about the year."""

from __future__ import annotations

import csv
import io
import json
import re
import shlex
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from dpselect.cli import app

pytestmark = pytest.mark.slow

TOP = "top visits.csv --item film --person viewer -k 2 --epsilon 0.25 --domain films.csv --time day"
KEPT = "--ledger ledger.sqlite --dataset views"


@pytest.fixture(autouse=True)
def visits(folder: Path) -> Path:
    """A folder with visits.csv, whose rows are of the weeks 45 and 46 of 2024 and of no time at all."""
    days = ["2024-11-04", "2024-11-11T10:00:00Z", "never"]
    rows = [f"film {number % 12:02d},{number},{days[number % 3]}\n" for number in range(600)]
    (folder / "visits.csv").write_text("film,viewer,day\n" + "".join(rows))
    return folder


def run(line: str) -> Any:
    return CliRunner().invoke(app, shlex.split(line))


def test_a_weekly_budget_is_created_spent_and_shown() -> None:
    created = run("ledger create views --epsilon 0.5 --every week").stdout
    assert "views: protects one person's week" in created
    assert re.search(r"a year +epsilon 26, for a person in all 52 weeks; no lifetime limits it", created)
    for week in (45, 46):
        answered = run(f"{TOP} {KEPT} --period 2024-W{week}")
        assert answered.exit_code == 0
        assert re.search(rf"Period +2024-W{week} \(2024-11-", answered.stdout)
        assert "protects one person's week" in answered.stdout
        assert re.search(r"leads\s+the\s+rest\s+by\s+[0-9]+\s+people\s+or\s+more", answered.stdout)
    shown = run("ledger show views").stdout
    assert re.search(r"2024-W46 epsilon +█+░+  0.25 of 0.5 spent, 0.25 left", shown)
    assert re.search(r"sum so far +epsilon 0.5, for a person in every week", shown)
    assert re.search(r"a new week buys +2 more releases like the last one", shown)
    run(f"{TOP} {KEPT} --period 2024-W46")
    refused = run(f"{TOP} {KEPT} --period 2024-W46")
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert "the budget of 'views' for 2024-W46 does not allow this release" in refused.stderr
    assert re.search(r"views +0.5 a week +0.75 +0.5 a week +0 +3 ", run("ledger list").stdout)
    assert json.loads(run("ledger list --format json").stdout)["datasets"][0]["every"] == "week"
    rows = list(csv.DictReader(io.StringIO(run("ledger show views --format csv").stdout)))
    assert [row["period"] for row in rows] == ["2024-W45", "2024-W46", "2024-W46"]
    assert "3 entries, all as written" in run("ledger check").stdout


def test_a_lifetime_is_a_bar_and_ends_all_weeks() -> None:
    created = run("ledger create views --epsilon 0.5 --every week --lifetime 0.5").stdout
    assert re.search(r"lifetime epsilon +░+  0 of 0.5 spent, 0.5 left", created)
    assert "a year" not in created
    run(f"{TOP} {KEPT} --period 2024-W45")
    run("ledger spend views --epsilon 0.25 --period 2024-W44 --ledger ledger.sqlite")
    refused = run(f"{TOP} {KEPT} --period 2024-W46")
    assert refused.exit_code == 1
    assert "the budget of 'views' over all periods does not allow this release" in refused.stderr
    data = json.loads(run("ledger show views --format json").stdout)
    assert (data["every"], data["lifetime"]) == ("week", {"epsilon": 0.5, "delta": 0.0})
    assert [one["period"] for one in data["periods"]] == ["2024-W45", "2024-W44"]


def test_a_field_of_json_that_may_be_misspelt_is_named_whatever_it_selects_rows_by(visits: Path) -> None:
    (visits / "visits.jsonl").write_text('{"film": "film 00", "viewer": 1, "day": "2024-11-11"}\n')
    (visits / "lands.csv").write_text("land\nDE\n")
    line = TOP.replace("visits.csv", "visits.jsonl").replace("--time day", "--time dya --by land --groups lands.csv")
    answered = run(f"{line} --period 2024-W46")
    assert answered.exit_code == 0
    assert "Check the spelling of --item, --person, --by and --time." in " ".join(answered.stderr.split())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("", "--period must be given together with time"),
        ("--period 2024-46", "--period must be a day (2026-11-18), an ISO week (2026-W46) or a month (2026-11)"),
        ("--period 2024-11", "--period must be a week such as 2026-W46, as data set 'views' has a total for each week"),
        ("--period 9998-W01", "--period '9998-W01': it has not begun: today is "),
        ("--period 9998-W01 --unfinished", "--period '9998-W01': it has not begun: today is "),
        ("--period 2024-W46 --protects 'one home'", "must protect one person's week"),
    ],
)
def test_bad_periods_are_bad_input_and_cost_nothing(options: str, message: str) -> None:
    run("ledger create views --epsilon 0.5 --every week")
    refused = run(f"{TOP} {KEPT} {options}")
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert message in refused.stderr
    assert json.loads(run("ledger show views --format json").stdout)["entries"] == []


def test_the_present_week_is_refused_unless_asked_for() -> None:
    """Near midnight the week may change between the two lines, so the days around it are not used."""
    now = datetime.now(UTC) - timedelta(minutes=5)
    week = f"{now:%G-W%V}"
    refused = run(f"{TOP} --period {week}")
    if f"{datetime.now(UTC):%G-W%V}" == week:
        assert (refused.exit_code, refused.stdout) == (2, "")
        assert f"--period '{week}': it is not over before" in refused.stderr
    assert run(f"{TOP} --period {week} --unfinished").exit_code == 0


def test_a_release_without_a_period_is_refused_by_a_data_set_with_periods() -> None:
    run("ledger create views --epsilon 0.5 --delta 1e-6 --every week")
    without_time = TOP.removesuffix(" --time day")
    discovery = "domain visits.csv --item film --person viewer --epsilon 0.25 --delta 1e-7 --max-items-per-person 1"
    for line in (without_time, discovery):
        refused = run(f"{line} {KEPT}")
        assert (refused.exit_code, refused.stdout) == (2, "")
        assert "--period must be a week such as 2026-W46" in refused.stderr
    discovered = run(f"{discovery} {KEPT} --time day --period 2024-W46 --format json")
    assert json.loads(discovered.stdout)["period"] == "2024-W46"


def test_counts_and_rankings_have_periods_too(folder: Path) -> None:
    (folder / "counts.csv").write_text("item,count\na,9\nb,4\n")
    (folder / "games.csv").write_text("winner,loser,day\na,b,2024-11-12\nb,a,2024-11-12\n")
    (folder / "players.csv").write_text("winner\na\nb\n")
    run("ledger create views --epsilon 1 --every week")
    selected = run(f"select counts.csv -k 1 --epsilon 0.5 --items-are-public --period 2024-W46 {KEPT} --format json")
    assert json.loads(selected.stdout)["guarantee"]["protects"] == "one person's week"
    ranked = run(
        "rank games.csv -k 1 --epsilon 1 --comparisons-per-pair 1 --max-degree 1 --domain players.csv "
        "--time day --period 2024-W46 --format json"
    )
    assert json.loads(ranked.stdout)["period"] == "2024-W46"
