"""The help fits 80 columns with whole option names, its examples run, and shells complete commands and options."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from rich.text import Text
from typer.testing import CliRunner

from dpselect.cli import app
from dpselect.cli.app import COMMANDS, imported

WIDTH = 80


def commands() -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield every command and group with the words that call it."""

    def below(words: tuple[str, ...], command: Any) -> Iterator[tuple[tuple[str, ...], Any]]:
        yield words, command
        for name, each in getattr(command, "commands", {}).items():
            yield from below((*words, name), each)

    for name in COMMANDS:
        yield from below((name,), imported(name))


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(WIDTH))
    monkeypatch.setenv("NO_COLOR", "1")


@pytest.mark.usefixtures("narrow")
@pytest.mark.parametrize("words", [(), *(words for words, _ in commands())], ids=" ".join)
def test_the_help_fits_80_columns_with_whole_option_names(words: tuple[str, ...]) -> None:
    result = CliRunner().invoke(app, [*words, "--help"])
    assert result.exit_code == 0
    assert [line for line in result.stdout.splitlines() if len(line) > WIDTH] == []
    assert not re.search(r"-[\w-]*…", result.stdout)
    command = dict(commands()).get(words)
    shown = set(re.findall(r"(?<![\w-])--?[a-z][a-z-]*", result.stdout))
    group = getattr(command, "commands", {})
    for param in [] if command is None or "open" in group else command.params:
        if param.param_type_name == "option":
            assert {option for option in param.opts if option.startswith("--")} <= shown, param.opts


def examples() -> dict[str, list[str]]:
    """Return the example commands of each page of the help."""
    found: dict[str, list[str]] = {}
    for words, command in commands():
        text = Text.from_markup(command.epilog or "").plain
        assert all(len(line) < WIDTH - 1 for line in text.splitlines() if re.match(r"dpselect|    ", line)), words
        joined = text.replace("\\\n", " ")  # as in a shell, where such a line goes on
        lines = [line.strip() for line in joined.splitlines()]
        found[" ".join(words)] = [line for line in lines if re.match(r"(dpselect|printf) ", line)]
    return found


SERVERS = re.compile(r"dpselect (serve|desk)\b")
ELSEWHERE = re.compile(r"--data data\b|dpselect verify ")
"""Examples that need other people's files, or that the tests of their command run already."""


def test_every_command_has_an_example() -> None:
    groups = {" ".join(words) for words, command in commands() if hasattr(command, "commands")}
    hidden = {"desk token revoke", "desk token list"}
    without = {words for words, lines in examples().items() if not lines and words not in groups | hidden}
    assert without == set()


@pytest.mark.slow
def test_the_examples_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the order of the help, in one folder, as a shell runs them; without servers."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DPSELECT_LEDGER", raising=False)
    assert CliRunner().invoke(app, ["demo", "--out", "demo", "--rows", "20000"]).exit_code == 0
    lines = list(dict.fromkeys(line for found in examples().values() for line in found))
    lines = [line for line in lines if not SERVERS.match(line) and not ELSEWHERE.search(line)]
    made = [line for line in lines if line.startswith("dpselect ledger create")]
    assert len(lines) > 20
    for line in sorted(lines, key=lambda line: line not in made):
        if line == "dpselect demo --out demo":
            continue
        if line.startswith("printf"):
            subprocess.run(line, shell=True, check=True)
            continue
        result = CliRunner().invoke(app, shlex.split(line)[1:])
        assert result.exit_code == 0, f"{line}\n{result.stderr}"


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("dpselect re", {"reproduce"}),
        ("dpselect top --max-", {"--max-items-per-person", "--max-groups-per-person"}),
        ("dpselect ledger sp", {"spend"}),
    ],
)
def test_a_shell_completes_commands_and_options(typed: str, offered: set[str]) -> None:
    words = typed.split()
    asked = {"_DPSELECT_COMPLETE": "complete_bash", "COMP_WORDS": typed, "COMP_CWORD": str(len(words) - 1)}
    command = [sys.executable, "-c", "import sys; sys.argv[0] = 'dpselect'; from dpselect.cli import main; main()"]
    finished = subprocess.run(command, env={**os.environ, **asked}, capture_output=True, text=True)
    assert set(finished.stdout.split()) == offered, finished.stderr
