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
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console, RenderableType
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from dpselect._format import three_digits
from dpselect.errors import InvalidInput
from dpselect.periods import Period
from dpselect.writing import is_same_file, is_writable, write_whole

if TYPE_CHECKING:
    from dpselect import DomainRelease, Guarantee, Release


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
    sys.stdout.write(text)
    sys.stdout.flush()
    if failed:
        raise InvalidInput(
            "output",
            str(output),
            "must be a file that can be written; the answer is on standard output instead, because it has been paid "
            "for; check space and permissions",
        )


def note(text: str) -> None:
    """Write a message to standard error."""
    typer.echo(f"dpselect: {text}", err=True)


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
    if form is Format.json:
        return as_json(release.to_dict())
    if form is Format.csv:
        return as_csv(_release_rows(release), _release_columns(release))
    title = f"Private {'lowest' if release.lowest else 'top'} {release.k}"
    if release.groups is None:
        return as_text(Text(title, style="bold"), _release_table(release), facts(release))
    parts: list[RenderableType] = [Text(f"{title} of each of {len(release.groups):,} groups", style="bold")]
    for group, part in release.groups.items():
        stopped = f" (stopped after {len(part.items)} of {part.k})" if part.stopped else ""
        parts += ["", Text.assemble("Group ", (item_text(group).plain, "bold"), stopped), _release_table(part)]
    return as_text(*parts, "", facts(release))


def _release_columns(release: Release) -> list[str]:
    """Return the columns of an answer, which may have no items."""
    return [
        *(["group"] if release.groups is not None else []),
        *(["rank"] if release.ordered else []),
        "item",
        *(["value", "low", "high"] if release.values is not None else []),
    ]


def _release_rows(release: Release) -> list[dict[str, Any]]:
    """Return a row for each item: its rank if the answer is ordered, the item, and its noisy score if there is one.

    With groups, a row also has the group, and ranks are within it.
    """
    if release.groups is not None:
        return [{"group": group, **row} for group, part in release.groups.items() for row in _release_rows(part)]
    rows: list[dict[str, Any]] = []
    for place, item in enumerate(release.items):
        row: dict[str, Any] = {"rank": place + 1} if release.ordered else {}
        row["item"] = item
        if release.values is not None and release.intervals is not None:
            low, high = release.intervals[place]
            row |= {"value": release.values[place], "low": low, "high": high}
        rows.append(row)
    return rows


def _release_table(release: Release) -> Table:
    table = Table()
    rows = _release_rows(release)
    for name in _release_columns(release):
        numeric = name != "item"
        table.add_column(name, justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        table.add_row(*(item_text(cell) for cell in row.values()))
    return table


def facts(release: Release) -> Table:
    """Return a table of what was done and promised, and of what the order means."""
    described = release.mechanism.describe()
    link = ", then" if "discovery" in described else " around"
    inside = f"{link} {described['inner']['name']}" if "inner" in described else ""
    described |= described.get("inner", {})
    chosen = "".join(f", {option}" for option in _options_of(described))
    limit = getattr(release.mechanism, "max_items_per_person", None)
    kept = "" if limit is None else f"at most {limit} item{'s' if limit > 1 else ''} per person"
    order = (
        f"{'lowest' if release.lowest else 'highest'} first, up to noise; the order is part of the private answer"
        if release.ordered
        else "random, without meaning"
    )
    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold")
    table.add_column()
    if release.stopped:
        where = f"after {len(release.items)} of {release.k}"
        if release.groups is not None:
            early = sum(part.stopped for part in release.groups.values())
            where = f"early in {early:,} group{'' if early == 1 else 's'}"
        table.add_row("Answer", f"stopped {where}: more could reveal that an item exists")
    if release.groups is not None:
        table.add_row("Groups", _groups_fact(release))
    table.add_row("Order", order)
    if release.period is not None:
        table.add_row("Period", str(Period.of(release.period)))
    if release.domain is not None:
        table.add_row("Domain", f"{release.domain}{'' if release.groups is None else ', for each group'}")
    if release.confidence is not None:
        table.add_row(
            "Values",
            f"noisy; each true value{kept and f', counting {kept},'} is between low and high with probability "
            f"{release.confidence:g}",
        )
    table.add_row("Mechanism", f"{release.mechanism.name}{inside}{chosen}{kept and f', {kept}'}")
    if release.reach is not None:
        table.add_row("Reach", str(release.reach))
    promise = str(release.guarantee)
    table.add_row("Guarantee", promise if release.secure else f"none, because a seed was given; without it, {promise}")
    if release.secure:
        table.add_row("Protection", protection(release.guarantee))
    return table


def _options_of(described: dict[str, Any]) -> list[str]:
    """Return the noise of a mechanism, and what else differs from its default, in words."""
    from dpselect import Canonical  # loaded with the release, and not for the help

    options = [f"{described['noise']} noise"] if "noise" in described else []
    if described.get("gamma", Canonical.gamma) != Canonical.gamma:
        options.append(f"gamma {described['gamma']:g}")
    if not described.get("margin", True):
        options.append("no margin")
    return [*options, "rounded loss"] if described.get("rounded") else options


def _groups_fact(release: Release) -> str:
    """Return how many groups there are, in how many of them a person counts, and how many items they have."""
    parts, most = list((release.groups or {}).values()), release.max_groups_per_person
    limit = f"each person counts in {'one of them' if most == 1 else f'at most {most} of them'}, chosen at random"
    sizes = [part.domain.items for part in parts if part.domain is not None and part.domain.items is not None]
    own = f"; {min(sizes):,} to {max(sizes):,} items each, stated as public" if release.domain is None and sizes else ""
    return f"{len(parts):,}, stated as public; {limit}{own}"


def protection(guarantee: Guarantee) -> str:
    """Return how strong a guarantee is, in the words of plan."""
    if not guarantee.delta:
        return guarantee.strength
    return f"{guarantee.strength}, if the data are of fewer than 1/delta = {three_digits(1 / guarantee.delta)} people"


def item_text(item: Any) -> Text:
    """Return an item for a terminal, without interpreting markup and with control characters escaped."""
    text = "".join(repr(mark)[1:-1] if unicodedata.category(mark)[0] == "C" else mark for mark in str(item))
    return Text(text or "(empty text)", style="" if text else "dim")


class _Buffer(io.StringIO):
    """A buffer with the encoding of standard output, so that Rich falls back to ASCII where needed."""

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """The encoding of standard output."""
        return sys.stdout.encoding or "utf-8"


def as_text(*parts: RenderableType) -> str:
    """Return what Rich prints to standard output, in colour only if that is a terminal."""
    buffer = _Buffer()
    console = Console(file=buffer, force_terminal=sys.stdout.isatty(), width=Console().width)
    for part in parts:
        console.print(part)
    return buffer.getvalue()


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
        if not bar.console.is_terminal or time.monotonic() - started < _SECONDS_BEFORE_BAR:
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
