"""Rows from standard input: `-` as the name of the source."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dpselect import SourceError
from dpselect.cli.output import note

STANDARD_INPUT = "-"


@contextlib.contextmanager
def source_path(source: str) -> Iterator[str]:
    """Yield the source itself, or for `-` the path of a copy of standard input, which is removed at the end.

    Two queries read the rows, so they have to be kept. The copy is readable by its owner only, in a folder of its own.
    It is removed at the end of the block, on errors, and when a signal ends the process; only SIGKILL leaves it.
    """
    if source != STANDARD_INPUT:
        yield source
        return
    with _signals_as_exits(), tempfile.TemporaryDirectory(prefix="dpselect-") as folder:
        copy = Path(folder, "standard-input.csv")
        _copy_standard_input(copy)
        yield str(copy)


def _copy_standard_input(copy: Path) -> None:
    if sys.stdin is not None and sys.stdin.isatty():
        note("reading CSV from the terminal; end it with Ctrl-D")
    try:
        descriptor = os.open(copy, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        return
    except (OSError, AttributeError):  # there is no sys.stdin if it was closed
        pass
    raise SourceError(
        "standard input cannot be copied to a temporary file; check that it is open, and the space in TMPDIR"
    )


@contextlib.contextmanager
def _signals_as_exits() -> Iterator[None]:
    """Let SIGTERM and SIGHUP end the process by an exception, so that files are removed, within the block."""
    if threading.current_thread() is not threading.main_thread():  # only the main thread may set handlers
        yield
        return

    def leave(number: int, _: Any) -> None:
        raise SystemExit(128 + number)

    before = {number: signal.signal(number, leave) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
