"""A password in the wrong place of a command is not repeated, so that it reaches no screen and no log of a job."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

import dpselect as dps
from dpselect.cli import app

URL = "postgresql://ann:hunter2@host/shop"
WANTED = "--item film --person viewer -k 1 --epsilon 1"


COMMANDS = [
    f"films.csv {URL} {WANTED} --domain 9",
    f"{URL.replace('//', '/')} {WANTED} --domain 9",
    f"host=db;password=hunter2 {WANTED} --domain 9",
    f"films.csv --table {URL} {WANTED} --domain 9",
    f"films.csv {WANTED} --domain {URL}",
    f"films.csv {WANTED} --domain 9 --output {URL}",
    f"films.csv {WANTED} --domain 9 --{URL}",
    f"duckdb://{URL} --table films {WANTED} --domain 9",
    f"spark+local://ann:hunter2@host --table films {WANTED} --domain 9",
]


@pytest.mark.slow
def test_a_password_is_not_repeated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("films.csv").write_text("film,viewer\nHeat,1\n")
    for command in COMMANDS:
        result = CliRunner().invoke(app, ["top", *command.split()])
        assert result.exit_code == 2, command
        assert result.output.strip()
        assert "hunter2" not in result.output


def test_an_error_does_not_keep_a_password() -> None:
    for given in (URL, URL.encode(), Path(URL), "password = hunter2"):
        error = dps.InvalidInput("table_name", given, "must be a name")
        assert "hunter2" not in repr(error) + str(error) + str(error.given)


def test_an_address_without_a_password_is_shown() -> None:
    assert "films:2020@home.csv" in str(dps.InvalidInput("table", "data/films:2020@home.csv", "must be a file"))
