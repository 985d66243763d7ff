"""`dpselect rank`: the documented way, what it prints, odd rows, budgets and refusals."""

from __future__ import annotations

import json
import re
import shlex
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from dpselect.cli import app
from dpselect.ranking import DEFAULT_DAMPING

PLAYERS = ["ann", "bob", "cem", "dia", "eve"]
"""From best to worst; each wins 9 of 10 against all that come later."""

LISTED = ["--domain", "players.csv", "--domain-column", "player"]
CAPS = ["--comparisons-per-pair", "100", "--max-degree", "4"]


def games() -> list[tuple[str, str]]:
    pairs = [pair for pair in combinations(PLAYERS, 2) for _ in range(90)]
    return pairs + [(loser, winner) for winner, loser in combinations(PLAYERS, 2) for _ in range(10)]


def write(path: Path, header: str, rows: list[str]) -> None:
    path.write_text("\n".join([header, *rows]) + "\n")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a thousand games, and the list of players."""
    rows = [f"{winner},{loser}" for winner, loser in games()]
    write(tmp_path / "games.csv", "winner,loser", rows)
    write(tmp_path / "players.csv", "player", [*PLAYERS, "zoe"])
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.delenv("DPSELECT_LEDGER", raising=False)
    return tmp_path


def ask(*options: str, file: str = "games.csv", epsilon: str = "50", k: str = "2") -> Any:
    return CliRunner().invoke(app, ["rank", file, "-k", k, "--epsilon", epsilon, *CAPS, *options])


def answer(*options: str, **settings: str) -> dict[str, Any]:
    result = ask(*options, "--format", "json", **settings)
    assert result.exit_code == 0, result.stderr
    data: dict[str, Any] = json.loads(result.stdout)
    return data


def test_the_example_of_the_help_runs(folder: Path) -> None:
    text = CliRunner().invoke(app, ["rank", "--help"]).stdout
    line = " ".join(re.findall(r"(dpselect rank games\.csv.*?)\\\s*\n(.*?)\n", text)[0])
    write(folder / "games.csv", "winner,loser", ["ann,bob", "ann,cem", "bob,cem"])
    assert "printf 'winner,loser\\nann,bob\\nann,cem\\nbob,cem\\n' > games.csv" in text
    result = CliRunner().invoke(app, shlex.split(line)[1:])
    assert result.exit_code == 0, result.stderr
    assert "Private top 1" in result.stdout


def test_the_help_tells_the_damping_that_is_taken() -> None:
    text = CliRunner().invoke(app, ["rank", "--help"], env={"COLUMNS": "80"}).stdout
    assert f"Default: {DEFAULT_DAMPING:g}." in " ".join(text.replace("│", " ").split())


def test_the_best_are_found_and_the_guarantee_is_said(folder: Path) -> None:
    """Ann leads cem by far more than the noise at epsilon = 50; a miss has a probability below 1e-9."""
    result = ask(*LISTED)
    assert result.exit_code == 0, result.stderr
    assert "ann" in result.stdout
    assert "bob" in result.stdout
    assert "one comparison" in result.stdout
    assert result.stderr == ""


def test_json_is_the_release(folder: Path) -> None:
    data = answer(*LISTED)
    assert sorted(data["items"]) == ["ann", "bob"]
    assert data["guarantee"]["protects"] == "one comparison"
    assert data["guarantee"]["neighbours"] == "add or remove"
    assert data["guarantee"]["epsilon"] == 50
    assert data["secure"] is True


def test_the_same_in_order_from_a_table_and_in_csv(folder: Path) -> None:
    import duckdb

    with duckdb.connect(str(folder / "games.duckdb")) as connection:
        connection.execute("CREATE TABLE games AS SELECT winner AS w, loser AS l FROM 'games.csv'")
        connection.execute("CREATE TABLE players AS SELECT player FROM 'players.csv'")
    columns = ["--winner", "w", "--loser", "l", "--domain", "table:players", "--table", "games"]
    result = ask(*columns, "--ordered", "--format", "csv", file="duckdb://games.duckdb", epsilon="200")
    assert result.exit_code == 0, result.stderr
    assert result.stdout.splitlines() == ["rank,item", "1,ann", "2,bob"]


def test_names_from_the_rows_are_a_weaker_promise_and_no_ledger_takes_it(folder: Path) -> None:
    assert "where others have the same items" in answer()["guarantee"]["neighbours"]
    CliRunner().invoke(app, ["ledger", "create", "games", "--epsilon", "100", "--ledger", "ledger.sqlite"])
    result = ask("--ledger", "ledger.sqlite", "--dataset", "games")
    assert result.exit_code == 2
    assert "--domain" in result.stderr
    assert result.stdout == ""


def test_a_ledger_is_charged_and_refuses_what_is_too_much(folder: Path) -> None:
    made = ["ledger", "create", "games", "--epsilon", "70", "--protects", "one comparison", "--ledger", "ledger.sqlite"]
    assert CliRunner().invoke(app, made).exit_code == 0
    bound = [*LISTED, "--ledger", "ledger.sqlite", "--dataset", "games"]
    first, second = ask(*bound), ask(*bound)
    assert first.exit_code == 0, first.stderr
    assert second.exit_code == 1
    assert "requested 50, remaining 20" in second.stderr
    assert second.stdout == ""


def test_a_person_is_protected_with_all_kept_votes(folder: Path) -> None:
    rows = [f"{winner},{loser},p{place % 400}" for place, (winner, loser) in enumerate(games())]
    write(folder / "votes.csv", "winner,loser,voter", rows)
    data = answer("--person", "voter", "--max-votes-per-person", "3", *LISTED, file="votes.csv")
    assert data["guarantee"]["protects"] == "one person"
    refused = ask("--person", "voter", file="votes.csv")
    assert refused.exit_code == 2
    assert "--max-votes-per-person" in refused.stderr


def test_ties_count_for_both(folder: Path) -> None:
    """Eve ties with everybody, and zoe loses to all: eve is ahead of zoe, whichever way the rows of ties go."""
    tied = [f"{player},eve,yes" for player in PLAYERS[:4] for _ in range(100)]
    lost = [f"{player},zoe,no" for player in PLAYERS[:4] for _ in range(100)]
    turned = [",".join([*line.split(",")[1::-1], "yes"]) for line in tied]
    for name, rows in (("ties", tied + lost), ("turned", turned + lost)):
        write(folder / f"{name}.csv", "winner,loser,drawn", rows)
        data = answer("--tie", "drawn", *LISTED, "--seed", "1", file=f"{name}.csv", k="5")
        assert "zoe" not in data["items"]


ODD = [",bob", "ann,", "ann,ann", "ann,nobody", "nobody,eve"]


@pytest.mark.parametrize("form", ["table", "json", "csv"])
def test_rows_that_say_nothing_change_nothing_and_are_not_mentioned(folder: Path, form: str) -> None:
    rows = [f"{winner},{loser}" for winner, loser in games()]
    write(folder / "odd.csv", "winner,loser", [*rows, *ODD])
    options = [*LISTED, "--seed", "7", "--format", form]
    clean, odd = ask(*options), ask(*options, file="odd.csv")
    assert (clean.exit_code, clean.stdout, clean.stderr) == (odd.exit_code, odd.stdout, odd.stderr)
    assert clean.exit_code == 0


def test_groups_that_never_met_and_items_never_compared_are_ranked_too(folder: Path) -> None:
    """A and c win all their games, in two islands; a lead of a third of the mean share against noise far below it."""
    write(folder / "islands.csv", "winner,loser", ["a,b"] * 100 + ["c,d"] * 100)
    write(folder / "letters.csv", "winner", list("abcdef"))
    data = answer("--domain", "letters.csv", file="islands.csv", epsilon="500")
    assert sorted(data["items"]) == ["a", "c"]
    four = answer("--domain", "letters.csv", file="islands.csv", epsilon="500", k="4")
    assert sorted(four["items"]) == ["a", "c", "e", "f"]


def test_no_rows_look_like_any_rows(folder: Path) -> None:
    write(folder / "empty.csv", "winner,loser", [])
    data = answer(*LISTED, file="empty.csv")
    assert len(data["items"]) == 2
    assert data["guarantee"] == answer(*LISTED)["guarantee"]


def test_a_promise_is_marked_wherever_it_is_made(folder: Path) -> None:
    result = ask("--promised-rho", "0.9", *LISTED, "--format", "json")
    assert result.exit_code == 0, result.stderr
    assert "promise" in result.stderr
    assert "promise" in json.loads(result.stdout)["guarantee"]["neighbours"]


def test_json_lines_are_read_and_their_weakness_is_noted(folder: Path) -> None:
    rows = [json.dumps({"winner": winner, "loser": loser}) for winner, loser in games()]
    (folder / "games.jsonl").write_text("\n".join(rows) + "\n")
    result = ask(*LISTED, file="games.jsonl")
    assert result.exit_code == 0, result.stderr
    assert "ann" in result.stdout
    assert "--winner" in result.stderr


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--winner", "w"], "the header has no column 'w'"),
        (["--domain", "nothing.csv"], "--domain"),
        (["--loser", "winner"], "--loser must be another column than winner"),
        (["--damping", "1.5"], "--damping: 1.5 was given"),
        (["--damping", "much"], "--damping: 'much' was given"),
        (["--damping", "0.5", "--promised-rho", "0.9"], "--damping: 0.5 was given; --promised-rho stands in its place"),
        (["--mechanism", "gaussian"], "--mechanism: 'gaussian' was given"),
        (["--max-degree", "0"], "--max-degree: 0 was given"),
        (["--promised-rho", "1"], "--promised-rho: 1.0 was given"),
        (["--max-votes-per-person", "3"], "--max-votes-per-person: 3 was given"),
        (["-k", "9", *LISTED], "-k: 9 was given"),
        (["--output", "games.csv"], "--output"),
        (["--protects", "one person"], "--protects: 'one person' was given; without `person` one comparison"),
    ],
)
def test_what_cannot_be_is_refused_in_a_line_with_status_2(folder: Path, options: list[str], told: str) -> None:
    result = ask(*options)
    assert result.exit_code == 2
    assert told in " ".join(result.stderr.split())
    assert "Traceback" not in result.stderr
    assert result.stdout == ""
