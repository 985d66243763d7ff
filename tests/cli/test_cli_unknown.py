"""`dpselect top --domain unknown`: the documented way, what it prints, and that an empty answer tells nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from dpselect.cli import app

SHARED = {"weather": 300, "news": 250, "football": 200}
HEADER = "query,user\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with queries that many, one or no people made."""
    many = [f"{query},u{person}" for query, count in SHARED.items() for person in range(count)]
    lonely = [f"secret {person},u{person}" for person in range(40)]
    for name, lines in (("queries", [*many, *lonely]), ("lonely", lonely), ("nobody", [])):
        (tmp_path / f"{name}.csv").write_text(HEADER + "".join(f"{line}\n" for line in lines))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")
    return tmp_path


def ask(file: str, *options: str) -> Any:
    line = f"top {file} --item query --person user -k 10 --epsilon 8 --delta 1e-6 --domain unknown"
    return CliRunner().invoke(app, [*line.split(), *options])


def test_the_answer_stops_where_items_are_no_longer_shared_and_says_so(folder: Path) -> None:
    """Leads of 50 and more at noise scales of a few units; a secret passes with probability at most 1e-6."""
    result = ask("queries.csv")
    assert result.exit_code == 0
    assert "stopped after 3 of 10" in result.stdout
    assert "football" in result.stdout
    assert "secret" not in result.stdout
    assert "delta = 1e-06" in result.stdout


def test_json_is_the_release(folder: Path) -> None:
    data = json.loads(ask("queries.csv", "--format", "json", "--pool", "20").stdout)
    assert sorted(data["items"]) == sorted(SHARED)
    assert data["stopped"] is True
    assert data["k"] == 10
    assert data["mechanism"]["name"] == "restricted"
    assert data["mechanism"]["pool"] == 20
    assert data["guarantee"]["delta"] == 1e-6


@pytest.mark.parametrize("form", ["table", "json"])
def test_no_data_and_data_that_nobody_shares_look_the_same(folder: Path, form: str) -> None:
    lonely, nobody = ask("lonely.csv", "--format", form), ask("nobody.csv", "--format", form)
    assert (lonely.exit_code, lonely.stdout, lonely.stderr) == (nobody.exit_code, nobody.stdout, nobody.stderr)
    assert lonely.exit_code == 0


def test_another_mechanism_can_be_asked_for(folder: Path) -> None:
    name = "top-stable"
    result = ask("queries.csv", "--mechanism", name, "--format", "json")
    assert result.exit_code == 0
    data = json.loads(result.stdout)
    assert data["mechanism"]["name"] == name
    assert set(data["items"]) <= set(SHARED)


BAD = [
    ("--mechanism canonical", "--mechanism 'canonical' unknown domain"),
    ("--pool 3", "--pool 3 10"),
    ("--pool 100000000", "--pool 100000000 10000000"),
    ("--delta 0", "--delta unknown domain"),
    ("--mechanism top-stable --ordered", "--mechanism restricted limited"),
    ("--mechanism limited --noise laplace", "--max-items-per-person"),
]


def test_bad_options_are_refused_and_nothing_is_answered(folder: Path) -> None:
    """Each word must be in the message."""
    for options, words in BAD:
        result = ask("queries.csv", *options.split())
        assert (result.exit_code, result.stdout) == (2, ""), options
        assert [word for word in words.split() if word not in result.stderr] == [], result.stderr


def test_the_noise_of_limited_can_be_named_with_what_it_relies_on(folder: Path) -> None:
    """A scale of 3/8 at leads of 50: a miss has a probability below e^-100."""
    bound = ["--max-items-per-person", "3", "--pool", "20", "--format", "json"]
    result = ask("queries.csv", "--mechanism", "limited", "--noise", "laplace", *bound)
    assert result.exit_code == 0, result.stderr
    data = json.loads(result.stdout)
    assert sorted(data["items"]) == sorted(SHARED)
    described = data["mechanism"]
    assert (described["noise"], described["max_items_per_person"], described["pool"]) == ("laplace", 3, 20)
