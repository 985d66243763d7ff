"""The ledger on the command line: created, spent, refused, shown and checked, with readable errors."""

from __future__ import annotations

import csv
import io
import json
import re
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from dpselect import Guarantee
from dpselect.cli import app
from dpselect.ledger import Ledger

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder in which commands run."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.delenv("DPSELECT_LEDGER", raising=False)
    return tmp_path


def run(line: str) -> Any:
    return CliRunner().invoke(app, line.split())


def test_a_budget_is_created_spent_twice_and_refused_the_third_time() -> None:
    assert run("ledger create films --epsilon 1").exit_code == 0
    assert run("ledger spend films --epsilon 0.5 --purpose first").exit_code == 0
    shown = run("ledger spend films --epsilon 0.25 --purpose second").stdout
    assert "0.75 of 1 spent, 0.25 left" in shown
    assert "1 more release like the last one (epsilon 0.25)" in shown
    assert re.search(r"1 +\d{4}-\d\d-\d\d \d\d:\d\d:\d\d +0.5 +first", shown)
    refused = run("ledger spend films --epsilon 0.5")
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert refused.stderr == (
        "dpselect: the budget of 'films' does not allow this release: requested 0.5, remaining 0.25, short by 0.25\n"
    )
    assert run("ledger show films").stdout == shown
    assert "second" in run("ledger show").stdout


def test_keys_are_shown_with_what_is_missing() -> None:
    run("ledger create films --epsilon 1")
    with Ledger("ledger.sqlite") as ledger:
        for week in (45, 46):
            charge = ledger.spend_once("films", Guarantee(0.25), f"chart-{week}", {"week": week}, "weekly")
        ledger.keep_answer(charge.entry, {"items": ["Up"]})
    shown = run("ledger show films").stdout
    assert re.search(r"1 +\d{4}.* 0.25 +chart-45 \(no answer yet\) +weekly", shown)
    assert re.search(r"2 +\d{4}.* 0.25 +chart-46 +weekly", shown)
    assert "1 earlier entries are left out" in run("ledger show films --last 1").stdout
    rows = list(csv.DictReader(io.StringIO(run("ledger show films --format csv").stdout)))
    assert [row["once"] for row in rows] == ["chart-45", "chart-46"]
    entries = json.loads(run("ledger show films --format json").stdout)["entries"]
    assert [(entry["once"], entry["answered"]) for entry in entries] == [("chart-45", False), ("chart-46", True)]
    assert json.loads(run("ledger list --format json").stdout)["datasets"][0]["entries"] == 2
    assert "films: 3 entries, all as written" in run("ledger check").stdout


def test_the_bar_is_empty_before_the_first_release_and_full_after_the_last() -> None:
    empty = run("ledger create films --epsilon 1 --delta 0.001").stdout
    assert empty.count("░" * 30) == 2
    assert "0 of 0.001 spent, 0.001 left" in empty
    run("ledger spend films --epsilon 0.0001")
    assert "█░" in run("ledger show").stdout
    run("ledger spend films --epsilon 0.999")
    assert "█" * 29 + "░" in run("ledger show").stdout
    run("ledger create books --epsilon 1")
    assert "█" * 30 in run("ledger spend books --epsilon 1").stdout


def test_a_zcdp_budget_shows_rho_and_the_epsilon_it_amounts_to() -> None:
    assert "--delta must be above 0 under zcdp" in run("ledger create films --epsilon 1 --composition zcdp").stderr
    assert "composition" in run("ledger create films --epsilon 1 --composition magic").stderr
    run("ledger create films --epsilon 1 --delta 1e-6 --composition zcdp")
    shown = run("ledger spend films --epsilon 0.1").stdout
    assert re.search(r"rho +█+░+  0.00501 of 0.0\d+ spent, 0.0\d+ left", shown)
    assert re.search(r"epsilon 0.4\d+ of 1 at delta 1e-06", shown)
    refused = run("ledger spend films --epsilon 0.5")
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert "rho: requested 0.125, remaining" in refused.stderr
    without_rho = run("ledger spend films --epsilon 0.1 --delta 1e-7")
    assert (without_rho.exit_code, without_rho.stdout) == (2, "")
    assert "delta = 1e-07 and no rho" in without_rho.stderr
    assert "no rho" in run("ledger spend films --epsilon 0.1 --delta 1e-7").stderr
    stated = run("ledger spend films --epsilon 0.1 --delta 1e-7 --rho 0.001 --format json")
    assert json.loads(stated.stdout)["entries"][-1]["guarantee"]["rho"] == 0.001
    assert "0.00601 of" in run("ledger show films").stdout
    assert "rho" in run("ledger spend films --epsilon 0.1 --delta 1e-7 --rho none").stderr


def test_programs_read_json_and_csv() -> None:
    run("ledger create films --epsilon 1 --delta 0.5")
    run("ledger create books --epsilon 2")
    entry = json.loads(run("ledger spend films --epsilon 0.25 --delta 0.125 --purpose chart --format json").stdout)
    assert entry["remaining"] == {"epsilon": 0.75, "delta": 0.375}
    assert entry["buys"][0] == {"releases": 3, "epsilon": 0.25, "delta": 0.125}
    shown = json.loads(run("ledger show films --format json").stdout)
    assert shown == entry
    assert [one["dataset"] for one in json.loads(run("ledger show --format json").stdout)["datasets"]] == [
        "books",
        "films",
    ]
    (row,) = csv.DictReader(io.StringIO(run("ledger show --format csv").stdout))
    assert (row["dataset"], row["sequence"], row["epsilon"], row["purpose"]) == ("films", "1", "0.25", "chart")
    header = run("ledger show books --format csv").stdout
    assert header.strip().split(",") == list(row)
    listed = json.loads(run("ledger list --format json").stdout)["datasets"]
    assert [(one["dataset"], one["left"], one["entries"]) for one in listed] == [("books", 2.0, 0), ("films", 0.75, 1)]
    assert len(run("ledger list --format csv").stdout.splitlines()) == 3
    assert "one person" in run("ledger list").stdout


def test_only_the_last_entries_are_shown_unless_all_are_wanted() -> None:
    with Ledger("ledger.sqlite") as ledger:
        ledger.create("films", epsilon=100.0)
        for _ in range(12):
            ledger.spend("films", Guarantee(1.0))
    assert "2 earlier entries are left out" in run("ledger show").stdout
    assert "earlier" not in run("ledger show --all").stdout
    assert len(run("ledger show --format csv --last 3").stdout.splitlines()) == 4
    assert len(run("ledger show --format csv --all").stdout.splitlines()) == 13
    for bad in ("-1", "x"):
        refused = run(f"ledger show --last {bad}")
        assert (refused.exit_code, refused.stdout) == (2, "")
        assert "--last" in refused.stderr


def test_backup_checks_the_copy_that_it_made(folder: Path) -> None:
    run("ledger create films --epsilon 1")
    run("ledger spend films --epsilon 0.125")
    made = run("ledger backup copy.sqlite")
    assert (made.exit_code, made.stdout) == (0, run("ledger check").stdout)
    assert run("ledger show --ledger copy.sqlite").stdout == run("ledger show").stdout
    again = run("ledger backup copy.sqlite")
    assert again.exit_code == 2
    assert "does not exist yet" in again.stderr


def test_check_says_which_entry_was_changed_with_status_1(folder: Path) -> None:
    run("ledger create films --epsilon 1")
    for _ in range(3):
        run("ledger spend films --epsilon 0.125")
    sound = run("ledger check")
    assert sound.exit_code == 0
    head = json.loads(run("ledger show films --format json").stdout)["head"]
    assert f"films: 3 entries, all as written; head {head}" in sound.stdout
    whole = json.loads(run("ledger check --format json").stdout)["head"]
    assert sound.stdout.endswith(f"the ledger: nothing is missing; head {whole}\n")
    assert run(f"ledger check --head {whole}").exit_code == run(f"ledger check films --head {whole}").exit_code == 0
    assert "the ledger:" not in run("ledger check films").stdout
    assert run(f"ledger check films --head {head}").exit_code == 0
    assert run(f"ledger check films --head {'0' * 64}").exit_code == 1
    with sqlite3.connect(folder / "ledger.sqlite") as connection:
        connection.execute("UPDATE dpselect_entries SET purpose = 'harmless' WHERE sequence = 2")
    connection.close()
    broken = run("ledger check")
    assert (broken.exit_code, broken.stdout) == (
        1,
        "films, entry 2: it was changed: its content does not have its hash\n",
    )
    assert "1 fault" in broken.stderr
    report = json.loads(run("ledger check --format json").stdout)
    assert (report["passed"], report["faults"][0]["sequence"]) == (False, 2)
    assert run("ledger check --format csv").stdout.splitlines()[1].startswith("films,2,")


BAD = {
    "show": "--ledger ledger.sqlite no ledger there",
    "spend films --epsilon 1": "no ledger there",
    "create films --epsilon 0": "--epsilon 0.0 positive",
    "create films --epsilon much": "--epsilon 'much'",
    "create films --epsilon 1 --delta 2": "--delta 2.0",
    "create films --epsilon 1 --ledger none/x.db": "--ledger existing folder",
    "create films --epsilon 1 --ledger mysql://u:hunter2@h/d": "--ledger URL",
    "create films --epsilon 1 --ledger postgresql://u:hunter2@127.0.0.1:1/d": "database",
    "create films": "--epsilon",
}


def test_errors_are_one_or_two_lines_without_passwords_and_make_no_file(folder: Path) -> None:
    """Each word must be in the message."""
    for line, words in BAD.items():
        refused = run(f"ledger {line}")
        assert (refused.exit_code, refused.stdout) == (2, ""), line
        assert [word for word in words.split() if word not in refused.stderr] == [], refused.stderr
        assert len(refused.stderr.splitlines()) <= 2, refused.stderr
        assert "hunter2" not in refused.stderr
    assert list(folder.iterdir()) == []


def test_check_finds_a_data_set_that_was_removed_as_a_whole(folder: Path) -> None:
    for name in ("films", "books"):
        run(f"ledger create {name} --epsilon 1")
        run(f"ledger spend {name} --epsilon 0.125")
    with sqlite3.connect(folder / "ledger.sqlite") as connection:
        for table in ("entries", "accounts"):
            connection.execute(f"DELETE FROM dpselect_{table} WHERE dataset = 'films'")
    connection.close()
    broken = run("ledger check")
    assert broken.exit_code == 1
    assert "the ledger: records 1 to 2 are missing: entries or data sets were removed\n" in broken.stdout
    assert run("ledger create films --epsilon 1").exit_code == 2


def test_errors_about_a_data_set_name_those_that_there_are() -> None:
    run("ledger create films --epsilon 1")
    for line in ("show film", "spend film --epsilon 1", "check film"):
        assert "data set" in run(f"ledger {line}").stderr
    assert "(films)" in run("ledger show film").stderr
    again = run("ledger create films --epsilon 5")
    assert again.exit_code == 2
    assert "cannot be changed" in again.stderr


def test_the_ledger_can_be_named_once_for_all_commands(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.setenv("DPSELECT_LEDGER", "shared.db")
    run("ledger create films --epsilon 1")
    assert [path.name for path in folder.iterdir()] == ["shared.db"]
    assert run("ledger show films").exit_code == 0


def test_top_is_charged_before_it_answers_and_refused_when_nothing_is_left(folder: Path) -> None:
    (folder / "views.csv").write_text("film,viewer\n" + "".join(f"film {i % 3},v{i}\n" for i in range(30)))
    (folder / "films.csv").write_text("film\nfilm 0\nfilm 1\nfilm 2\n")
    run("ledger create films --epsilon 1")
    line = "top views.csv --item film --person viewer -k 1 --epsilon 0.5 --domain films.csv --ledger ledger.sqlite"
    for _ in range(2):
        answer = run(f"{line} --dataset films --purpose chart --format json")
        assert answer.exit_code == 0
        assert len(json.loads(answer.stdout)["items"]) == 1
    refused = run(f"{line} --dataset films")
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert "requested 0.5, remaining 0, short by 0.5" in refused.stderr
    shown = run("ledger show").stdout
    assert "canonical top 1" in shown
    assert "chart" in shown
    missing = run(line)
    assert (missing.exit_code, missing.stdout) == (2, "")
    assert "--dataset" in missing.stderr


def test_every_help_carries_an_example_that_runs(folder: Path) -> None:
    for command in ("", "create", "spend", "show", "list", "check"):
        text = run(f"ledger {command} --help").stdout
        assert max(len(row) for row in text.splitlines()) <= 80
        examples = re.findall(r"^ dpselect (ledger \w+ ?.*?) *$", text, re.MULTILINE)
        assert examples, command
        if command:
            assert run(examples[-1]).exit_code == 0
