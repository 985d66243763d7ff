"""How results are shown and written: tables for people, JSON and CSV for programs; notes and progress on stderr."""

from __future__ import annotations

import contextlib
import csv
import enum
import io
import json
import math
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console, RenderableType
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from dpselect import _text
from dpselect.errors import InvalidInput, SourceError
from dpselect.writing import is_same_file, is_writable, write_whole

if TYPE_CHECKING:
    from dpselect import DomainRelease, Release


class Format(enum.StrEnum):
    """The values of --format."""

    table = "table"
    json = "json"
    csv = "csv"


_ENDINGS = {".json": Format.json, ".csv": Format.csv, ".txt": Format.table, "": Format.table}
_NEVER_WRITTEN = (".parquet", ".parq", ".pq")
"""Endings of data files; an answer with such an ending could be read as data by a folder or pattern."""


def check_output(argument: str, path: str | Path | None, read: Iterable[Path]) -> None:
    """Refuse a file that cannot be written or that is read, before any work: a lost release has still been paid for."""
    if path is None:
        return
    if not is_writable(path):
        raise InvalidInput(
            argument,
            str(path),
            "must be a file in an existing folder with write permission, and not a mount point",
        )
    if any(is_same_file(path, file) for file in read):
        raise InvalidInput(
            argument, str(path), "must not be a file that is read or belongs to the ledger; name another file"
        )


def chosen_format(given: Format | None, output: Path | None) -> Format:
    """Return the format asked for, or the one that the ending of the output file means; refuse a contradiction."""
    # pathlib sees no suffix in a name such as .json unless a letter precedes it.
    ending = Path(f"x{output.name}").suffix.lower() if output else ""
    meant = _ENDINGS.get(ending)
    refused = ""
    if ending in _NEVER_WRITTEN or (given is None and meant is None):
        instead = "" if ending in _NEVER_WRITTEN else "; or state --format"
        refused = f"must end in .json, .csv or .txt{instead}"
    elif given is not None and ending in (".json", ".csv") and given is not meant:
        refused = f"must have the ending of --format {given}; change one of the two"
    if refused:
        raise InvalidInput("output", str(output), refused)
    return given or meant or Format.table


def publish(text: str, output: Path | None) -> None:
    """Write a result to standard output, or atomically to a file.

    If the file cannot be written, the result goes to standard output, because it has been paid for.
    """
    failed = False
    if output is not None:
        try:
            write_whole(output, text.encode())
            return
        except BrokenPipeError:
            raise
        except OSError:
            failed = True
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError:
        raise SourceError("the answer cannot be written to standard output; check the space where it goes") from None
    if failed:
        raise InvalidInput(
            "output",
            str(output),
            "must be a file that can be written; the answer is on standard output instead, because it has been paid "
            "for; check space and permissions",
        )


class Verbosity(enum.IntEnum):
    """How much is written to standard error."""

    quiet = 0
    normal = 1
    verbose = 2


_verbosity = Verbosity.normal


def set_verbosity(wanted: Verbosity) -> None:
    """Set how much is written to standard error from now on."""
    global _verbosity
    _verbosity = wanted


def is_verbose() -> bool:
    """Whether each step is shown."""
    return _verbosity is Verbosity.verbose


def failure(text: str) -> None:
    """Write what failed to standard error, also with --quiet."""
    typer.echo(f"dpselect: {text}", err=True)


def note(text: str) -> None:
    """Write a message to standard error, unless --quiet."""
    if _verbosity > Verbosity.quiet:
        failure(text)


def detail(text: str) -> None:
    """Write a step to standard error if --verbose."""
    if is_verbose():
        failure(text)


def note_seed(release: Release | DomainRelease) -> None:
    """Warn that a seeded release is not private."""
    if not release.secure:
        note("a seed was given, so this answer is not private. Do not publish it.")


def note_repeated(release: Release | DomainRelease) -> None:
    """Say that an answer was stored before."""
    if release.repeated:
        note("this question was answered before under this key; this is the same answer, and nothing more was charged")


def as_json(data: dict[str, Any]) -> str:
    """Return plain data as JSON text; infinite numbers and NaN become text: "inf", "-inf", "nan"."""
    return json.dumps(_finite(data), ensure_ascii=False, allow_nan=False, indent=2) + "\n"


def _finite(data: Any) -> Any:
    if isinstance(data, dict):
        return {name: _finite(part) for name, part in data.items()}
    if isinstance(data, list | tuple):
        return [_finite(part) for part in data]
    return str(float(data)) if isinstance(data, float) and not math.isfinite(data) else data


def as_csv(rows: list[dict[str, Any]], columns: list[str] | None = None) -> str:
    """Return rows as CSV text with a header; `columns` is required if there may be no rows."""
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, fieldnames=columns or list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def release_text(release: Release, form: Format) -> str:
    """Return a release in the format asked for."""
    from dpselect._release_text import release_columns, release_rows, release_tables  # not for the help

    if form is Format.json:
        return as_json(release.to_dict())
    if form is Format.csv:
        return as_csv(release_rows(release), release_columns(release))
    return as_text(*release_tables(release))


def as_text(*parts: RenderableType) -> str:
    """Return what Rich prints to standard output, in colour only if that is a terminal."""
    return _text.as_text(*parts, width=Console().width, colour=sys.stdout.isatty())


_SECONDS_BEFORE_BAR = 1.0


@contextlib.contextmanager
def progress_bar(description: str) -> Iterator[Callable[[float | None], None]]:
    """Yield a function to call with the share done, or None if unknown; draws only if stderr is a terminal."""
    bar = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(bar_width=30),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    started = time.monotonic()
    task = bar.add_task(description, total=None)
    best = 0.0

    def report(share: float | None) -> None:
        nonlocal best
        if (
            _verbosity is Verbosity.quiet
            or not bar.console.is_terminal
            or time.monotonic() - started < _SECONDS_BEFORE_BAR
        ):
            return
        bar.start()
        if share is not None and share > best:
            best = share
            bar.update(task, total=1.0, completed=share)

    try:
        yield report
    finally:
        if bar.live.is_started:
            bar.stop()
