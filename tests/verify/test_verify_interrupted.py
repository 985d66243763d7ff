"""An audit that is interrupted stops the engines and the processes that it started."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from dpselect.cli.stdin import signals_as_exits
from dpselect.verify.servers import signals_wait


def commands(folder: Path) -> list[str]:
    """Return the command lines of the processes whose temporary files belong into a folder."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it ended meanwhile, or is another user's
            if f"TMPDIR={folder}".encode() in (process / "environ").read_bytes().split(b"\0"):
                found.append((process / "cmdline").read_bytes().replace(b"\0", b" ").decode())
    return found


def running(folder: Path) -> int:
    """Return how many of Java, PostgreSQL and further processes of the audit are at work."""
    lines = commands(folder)
    return sum(any(kind in line for line in lines) for kind in ("/java ", "/postgres ", "multiprocessing.spawn"))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_waits_until_an_engine_has_started(number: int) -> None:
    started = []

    def start() -> None:
        with signals_as_exits(), signals_wait():
            signal.raise_signal(number)
            started.append("an engine")

    with pytest.raises(SystemExit) as ended:
        start()
    assert (ended.value.code, started) == (128 + number, ["an engine"])


@pytest.mark.skipif(not Path("/proc").exists(), reason="processes are found in /proc")
@pytest.mark.long
@pytest.mark.parametrize(
    ("number", "send", "status"),
    [(signal.SIGINT, os.killpg, 130), (signal.SIGTERM, os.kill, 143)],
    ids=["Ctrl-C, which the whole group gets", "SIGTERM"],
)
@pytest.mark.parametrize("kinds", [1, 3], ids=["while engines start", "while questions are asked"])
def test_nothing_is_left_of_an_interrupted_audit(
    number: int, send: Callable[[int, int], None], status: int, kinds: int, tmp_path: Path
) -> None:
    command = [sys.executable, "-m", "dpselect", "verify", "--audit"]
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(command, env=environment, cwd=tmp_path, start_new_session=True) as audit:
        try:
            deadline = time.monotonic() + 200
            while running(tmp_path) < kinds:
                assert audit.poll() is None
                assert time.monotonic() < deadline
                time.sleep(0.2)
            send(audit.pid, number)
            assert audit.wait(100) == status
        finally:
            audit.kill()
    for _ in range(100):  # Java ends when its standard input does
        if not commands(tmp_path):
            break
        time.sleep(0.1)
    assert commands(tmp_path) == []
    assert list(tmp_path.glob("dpselect-*")) == []
