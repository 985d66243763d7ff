"""`-` as the source: CSV from standard input, in a private copy that never stays behind."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from dpselect.cli import app
from dpselect.cli.stdin import signals_as_exits

COMMAND = Path(sys.executable).with_name("dpselect")
ROWS = "film,viewer\n" + "".join(f"film {n:02d},{viewer}\n" for n in range(12) for viewer in range(240 - 20 * n))
COUNTS = "item,count\n" + "".join(f"film {place:02d},{240 - 20 * place}\n" for place in range(12))
GAMES = "winner,loser\nann,bob\nann,cem\nbob,cem\n"
TOP = "--item film --person viewer -k 3 --epsilon 0.01 --domain films.csv --seed 7"

COMMANDS = {
    f"top {{}} {TOP} --format csv": ROWS,
    "select {} -k 3 --epsilon 0.01 --items-are-public --seed 7 --format csv": COUNTS,
    "rank {} -k 1 --epsilon 1 --comparisons-per-pair 1 --max-degree 2 --seed 7 --format csv": GAMES,
    "domain {} --item film --person viewer --epsilon 9 --delta 0.01 --max-items-per-person 12 --seed 7": ROWS,
    "forecast {} -k 3 --format csv": COUNTS,
    "forecast {} -k 3 --item film --person viewer --domain films.csv --format csv": ROWS,
}


@pytest.fixture
def temporary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("temporary")


def environment(temporary: Path) -> dict[str, str]:
    return {**os.environ, "TMPDIR": str(temporary)}


def piped(line: str, rows: str, temporary: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [COMMAND, *shlex.split(line)],
        input=rows,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env=environment(temporary),
    )


@pytest.mark.slow
@pytest.mark.parametrize("line", COMMANDS, ids=lambda line: line.split("{")[0] + str(len(line)))
def test_standard_input_is_read_like_a_file_and_nothing_stays_behind(line: str, folder: Path, temporary: Path) -> None:
    (folder / "rows.csv").write_text(COMMANDS[line])
    from_file = CliRunner().invoke(app, shlex.split(line.format("rows.csv")))
    result = piped(line.format("-"), COMMANDS[line], temporary)
    assert result.returncode == 0, result.stderr
    assert result.stdout == from_file.stdout
    assert list(temporary.iterdir()) == []


@pytest.mark.slow
def test_errors_name_standard_input_quote_no_row_and_leave_nothing_behind(folder: Path, temporary: Path) -> None:
    result = piped(f"top - {TOP}".replace("viewer", "user"), ROWS, temporary)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith("dpselect: SOURCE standard input: the header has no column 'user'")
    assert "film 0" not in result.stderr
    assert list(temporary.iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)], ids=str
)
def test_a_signal_removes_the_private_copy(number: int, status: int, folder: Path, temporary: Path) -> None:
    """The process waits for the rest of its input; the signal comes when it has read the first part."""
    with subprocess.Popen(
        [COMMAND, *shlex.split(f"top - {TOP}")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(temporary),
        start_new_session=True,
    ) as process:
        assert process.stdin is not None
        process.stdin.write(ROWS.encode() * 50)
        process.stdin.flush()
        copy = _appears(temporary, process)
        assert copy.stat().st_mode & 0o777 == 0o600
        assert copy.parent.stat().st_mode & 0o777 == 0o700
        process.send_signal(number)
        output, _ = process.communicate(timeout=60)
    assert (process.returncode, output) == (status, b"")
    assert list(temporary.iterdir()) == []


def test_a_hangup_that_is_ignored_as_under_nohup_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with signals_as_exits():
            signal.raise_signal(signal.SIGHUP)
        assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def _appears(temporary: Path, process: Any) -> Path:
    """Wait until the copy has some rows."""
    while process.poll() is None:
        for copy in temporary.glob("*/standard-input.csv"):
            if copy.stat().st_size:
                return copy
        time.sleep(0.05)
    raise AssertionError(process.stderr.read())


@pytest.mark.slow
def test_a_closed_standard_input_is_refused(folder: Path, temporary: Path) -> None:
    line = f"{COMMAND} top - {TOP} <&-"
    result = subprocess.run(
        line, shell=True, capture_output=True, text=True, check=False, timeout=120, env=environment(temporary)
    )
    assert (result.returncode, result.stdout) == (2, "")
    assert "standard input cannot be copied" in result.stderr
    assert list(temporary.iterdir()) == []


def test_a_list_of_items_does_not_come_from_standard_input(folder: Path) -> None:
    for line, rows in (
        (f"top - {TOP}".replace("films.csv", "-"), ROWS),
        ("select - -k 1 --epsilon 1 --domain -", COUNTS),
    ):
        result = CliRunner().invoke(app, shlex.split(line), input=rows)
        assert (result.exit_code, result.stdout) == (2, "")
        assert "--domain '-': there is no such file" in result.stderr
