"""--once on the command line: a job that runs twice publishes one answer, and is charged once."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from dpselect.cli import app
from dpselect.ledger import Ledger

pytestmark = pytest.mark.slow

TOP = "top views.parquet --item film --person viewer -k 3 --epsilon 0.25 --domain films.csv"
KEPT = "--ledger ledger.sqlite --dataset films"


@pytest.fixture(autouse=True)
def ledger(folder: Path) -> Path:
    """A ledger in the folder in which commands run."""
    with Ledger(folder / "ledger.sqlite") as opened:
        opened.create("films", epsilon=1.0)
    return folder


def run(line: str) -> Any:
    return CliRunner().invoke(app, shlex.split(line))


@pytest.mark.parametrize("form", ["table", "json", "csv"])
def test_a_job_that_runs_twice_prints_the_same_answer(form: str) -> None:
    first, second = (run(f"{TOP} {KEPT} --once '2026-11-18 films' --format {form}") for _ in range(2))
    assert (first.exit_code, first.stderr) == (0, "")
    assert (second.exit_code, second.stdout) == (0, first.stdout)
    assert second.stderr == (
        "dpselect: this question was answered before under this key; this is the same answer, and nothing more was "
        "charged\n"
    )
    with Ledger("ledger.sqlite") as opened:
        assert opened.remaining("films").epsilon == 0.75


def test_another_question_under_the_key_is_bad_input() -> None:
    run(f"{TOP} {KEPT} --once a")
    refused = run(f"{TOP} {KEPT} --once a --ordered")
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert refused.stderr == (
        "dpselect: --once 'a': another question was asked under this key; ask the same question, or choose another "
        "key; see docs/ledger.md#answered-once\n"
    )


def test_a_list_of_items_is_discovered_once(folder: Path) -> None:
    with Ledger("ledger.sqlite") as opened:
        opened.create("views", epsilon=1.0, delta=1e-5)
    asked = "--item film --person viewer --epsilon 0.5 --delta 1e-6 --max-items-per-person 5"
    line = f"domain views.parquet {asked} --ledger ledger.sqlite --dataset views --once films --format json"
    first, second = (run(line) for _ in range(2))
    assert (first.exit_code, first.stderr) == (0, "")
    assert (second.exit_code, second.stdout) == (0, first.stdout)
    assert "answered before under this key" in second.stderr
    refused = run(f"{line} --at-least 9")
    assert (refused.exit_code, refused.stdout) == (2, "")
    with Ledger("ledger.sqlite") as opened:
        assert opened.remaining("views").epsilon == 0.5


def test_a_key_without_a_ledger_and_a_seed_are_refused() -> None:
    without = run(f"{TOP} --once a")
    assert (without.exit_code, without.stdout) == (2, "")
    assert "--once must be left out without a ledger, got 'a'; name the ledger too" in without.stderr
    seeded = run(f"{TOP} {KEPT} --once a --seed 1")
    assert (seeded.exit_code, seeded.stdout) == (2, "")
    assert "--seed must be left out with once" in seeded.stderr


def test_rankings_are_answered_once_too(folder: Path) -> None:
    (folder / "players.csv").write_text("winner\n" + "".join(f"{name}\n" for name in "abcdefgh"))
    (folder / "games.csv").write_text("winner,loser\n" + "a,b\nc,d\ne,f\ng,h\n" * 3)
    with Ledger("ledger.sqlite") as opened:
        opened.create("games", epsilon=1.0, protects="one comparison")
    line = (
        "rank games.csv -k 2 --epsilon 0.5 --comparisons-per-pair 3 --max-degree 2 --domain players.csv "
        "--ledger ledger.sqlite --dataset games --once season-1 --format json"
    )
    first, second = run(line), run(line)
    assert (first.exit_code, second.exit_code) == (0, 0)
    assert json.loads(first.stdout) == json.loads(second.stdout)
    with Ledger("ledger.sqlite") as opened:
        assert opened.remaining("games").epsilon == 0.5
