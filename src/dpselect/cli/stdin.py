"""Rows from standard input: `-` as the name of the source."""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from dpselect import InvalidInput, SourceError
from dpselect.cli.output import note
from dpselect.errors import plain

STANDARD_INPUT = "-"
COPY = "standard-input.csv"
_LONGEST = 4_000_000
"""Bytes after which a header is given up; reading it then fails."""


@contextlib.contextmanager
def source_path(source: str, *, header_only: bool = False) -> Iterator[str]:
    """Yield the source itself, or for `-` the path of a copy of standard input, which is removed at the end.

    Two queries read the rows, so they have to be kept. The copy is readable by its owner only, in a folder of its own.
    It is removed at the end of the block, on errors, and when a signal ends the process; only SIGKILL leaves it.
    With `header_only` nothing behind the header is read.
    """
    if source != STANDARD_INPUT:
        yield source
        return
    with signals_as_exits(), tempfile.TemporaryDirectory(prefix="dpselect-") as folder:
        copy = Path(folder, COPY)
        _copy_standard_input(copy, header_only)
        try:
            yield str(copy)
            return
        except InvalidInput as error:
            if error.given not in (COPY, str(copy)):
                raise
            argument, accepted = error.argument, error.accepted
    raise InvalidInput(argument, plain("standard input"), accepted)


def _copy_standard_input(copy: Path, header_only: bool) -> None:
    if sys.stdin is not None and sys.stdin.isatty():
        note("reading CSV from the terminal; end it with Ctrl-D")
    try:
        descriptor = os.open(copy, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            rows = io.BytesIO(_header(sys.stdin.buffer)) if header_only else sys.stdin.buffer
            shutil.copyfileobj(rows, file)
        return
    except (OSError, AttributeError):  # there is no sys.stdin if it was closed
        pass
    raise SourceError(
        "standard input cannot be copied to a temporary file; check that it is open, and the space in TMPDIR"
    )


def _header(rows: BinaryIO) -> bytes:
    """Return the first line, and those after it that belong to a quoted name."""
    header = rows.readline(_LONGEST)
    while header.count(b'"') % 2 and len(header) < _LONGEST and (more := rows.readline(_LONGEST)):
        header += more
    return header


@contextlib.contextmanager
def signals_as_exits() -> Iterator[None]:
    """Let SIGTERM and SIGHUP end the block by an exception, so that it removes its files and stops what it started.

    One that is ignored, as SIGHUP is under nohup, stays ignored.
    """
    if threading.current_thread() is not threading.main_thread():  # only the main thread may set handlers
        yield
        return

    def leave(number: int, _: Any) -> None:
        raise SystemExit(128 + number)

    ends = [each for each in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(each) != signal.SIG_IGN]
    before = {number: signal.signal(number, leave) for number in ends}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
