"""What `dpselect desk` takes from the command line, the environment and dpselect.toml."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from dpselect.cli import app

pytestmark = pytest.mark.usefixtures("folder")

SECTION = """
[desk]
port = 9999
ledger = "of-file.sqlite"

[desk.token.create]
days = -1
"""


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What a desk that was started would have been asked to do; none is started."""
    found: dict[str, Any] = {}
    monkeypatch.setattr("dpselect.desk.run", lambda files, **settings: found.update(settings, files=files))
    return found


def start(line: str, asked: dict[str, Any]) -> tuple[Any, Any]:
    """Return the port and the ledger of the desk that this line starts."""
    result = CliRunner().invoke(app, shlex.split(line))
    assert result.exit_code == 0, result.stderr
    return asked["port"], asked["ledger"]


def test_the_command_line_wins_over_the_environment_and_this_over_the_file(
    asked: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert start("desk views.parquet", asked) == (8417, None)
    Path("dpselect.toml").write_text(SECTION)
    assert start("desk views.parquet", asked) == (9999, "of-file.sqlite")
    monkeypatch.setenv("DPSELECT_LEDGER", "of-environment.sqlite")
    assert start("desk views.parquet", asked) == (9999, "of-environment.sqlite")
    assert start("desk views.parquet --port 0 --ledger typed.sqlite", asked) == (0, "typed.sqlite")
    Path("dpselect.toml").rename("other.toml")
    monkeypatch.setenv("DPSELECT_CONFIG", "other.toml")
    assert start("desk views.parquet", asked)[0] == 9999


def test_the_configuration_of_a_shared_desk_alone_names_its_ledger(
    asked: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("dpselect.toml").write_text(SECTION)
    monkeypatch.setenv("DPSELECT_LEDGER", "of-environment.sqlite")
    assert start("desk --config desk.toml", asked) == (9999, None)
    monkeypatch.undo()
    result = CliRunner().invoke(app, shlex.split("desk --config desk.toml --ledger typed.sqlite"))
    assert result.exit_code == 2
    assert "--ledger must be left out with --config, which names the ledger" in " ".join(result.stderr.split())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[desk]\ncolour = 1\n", "line 2: desk has no option colour; see dpselect desk --help"),
        ('[desk]\nconfig = "desk.toml"\n', "line 2: desk has no option config"),
        ("[desk.tokens]\ndays = 1\n", "desk has no option tokens"),
    ],
)
def test_a_mistake_in_the_section_is_an_error_with_its_line(asked: dict[str, Any], text: str, said: str) -> None:
    Path("dpselect.toml").write_text(text)
    result = CliRunner().invoke(app, ["desk", "views.parquet"])
    assert (result.exit_code, asked) == (2, {})
    assert said in " ".join(result.stderr.split())


def test_the_commands_for_tokens_have_sections_of_their_own() -> None:
    Path("dpselect.toml").write_text(SECTION)
    result = CliRunner().invoke(app, ["desk", "token", "create", "ann"])
    assert result.exit_code == 2
    assert "--days must be above 0" in " ".join(result.stderr.split())
