"""How a release is shown: a table for people, JSON and CSV for programs."""

from __future__ import annotations

import csv
import enum
import io
import json
import math
import sys
import unicodedata
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import typer
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from dpselect import InvalidInput, Release
from dpselect.writing import is_same_file, is_writable, write_whole


class Format(enum.StrEnum):
    """The values of --format."""

    table = "table"
    json = "json"
    csv = "csv"


_ENDINGS = {".json": Format.json, ".csv": Format.csv, ".txt": Format.table, "": Format.table}
_NEVER_WRITTEN = (".parquet", ".parq", ".pq")
"""Endings by which a folder or pattern would take an answer for one of its files."""


def check_output(argument: str, path: str | Path | None, read: Iterable[Path]) -> None:
    """Refuse a place that cannot be written to, or that is read, before any work: a lost release has still cost."""
    if path is None:
        return
    if not is_writable(path):
        raise InvalidInput(
            argument,
            str(path),
            "a file in an existing folder with permission to write, and not mounted by itself, is needed",
        )
    if any(is_same_file(path, file) for file in read):
        raise InvalidInput(
            argument, str(path), "it is read, or belongs to the ledger, and would be lost; name another file"
        )


def chosen_format(given: Format | None, output: Path | None) -> Format:
    """Return the format asked for, or else the one that the output's name ends in; refuse a name of another format."""
    # With a letter before it, the whole name .json is an ending.
    ending = Path(f"x{output.name}").suffix.lower() if output else ""
    meant = _ENDINGS.get(ending)
    refused = ""
    if ending in _NEVER_WRITTEN or (given is None and meant is None):
        instead = "" if ending in _NEVER_WRITTEN else ", or --format"
        refused = f"no {ending} is written; a name that ends in .json, .csv or .txt is needed{instead}"
    elif given is not None and ending in (".json", ".csv") and given is not meant:
        refused = f"its ending and --format {given} contradict each other; change one of the two"
    if refused:
        raise InvalidInput("output", str(output), refused)
    return given or meant or Format.table


def publish(text: str, output: Path | None) -> None:
    """Write a result to standard output, or to a file that is replaced as a whole.

    If that fails, the result goes to standard output: it has been paid for.
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
            "it could not be written, so the answer, which has been paid for, is on standard output instead; "
            "check space and permissions",
        )


def note(text: str) -> None:
    """Tell something beside the result, on standard error."""
    typer.echo(f"dpselect: {text}", err=True)


def note_seed(release: Release) -> None:
    """Say that a seeded release protects nobody."""
    if not release.secure:
        note("a seed was given: this answer can be reproduced, so it protects nobody. Do not publish it.")


def as_json(data: dict[str, Any]) -> str:
    """Return plain data as JSON text; numbers that JSON has no word for become text: "inf", "-inf", "nan"."""
    return json.dumps(_finite(data), ensure_ascii=False, allow_nan=False, indent=2) + "\n"


def _finite(data: Any) -> Any:
    if isinstance(data, dict):
        return {name: _finite(part) for name, part in data.items()}
    if isinstance(data, list | tuple):
        return [_finite(part) for part in data]
    return str(float(data)) if isinstance(data, float) and not math.isfinite(data) else data


def as_csv(rows: list[dict[str, Any]], columns: list[str] | None = None) -> str:
    """Return rows as CSV text with a header; where there may be none, the columns have to be said."""
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
    return as_text(Text(f"Private top {release.k}", style="bold"), _release_table(release), facts(release))


def _release_columns(release: Release) -> list[str]:
    """Return the columns of an answer, whether it has items or not."""
    return [
        *(["rank"] if release.ordered else []),
        "item",
        *(["value", "low", "high"] if release.values is not None else []),
    ]


def _release_rows(release: Release) -> list[dict[str, Any]]:
    """Return a row for each item: its rank where ranks mean something, and its noisy score where there is one."""
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
        table.add_row(*(shown(cell) for cell in row.values()))
    return table


def facts(release: Release) -> Table:
    """Say what was done and promised, and whether the order means anything."""
    described = release.mechanism.describe()
    inside = f" around {described['inner']['name']}" if "inner" in described else ""
    described |= described.get("inner", {})
    noise = f", {described['noise']} noise" if "noise" in described else ""
    order = (
        "highest first, as far as the noise lets it; the order is part of the private answer"
        if release.ordered
        else "random; it means nothing"
    )
    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold")
    table.add_column()
    if release.stopped:
        shown_items = f"stopped after {len(release.items)} of {release.k}: more could show that an item exists"
        table.add_row("Answer", shown_items)
    table.add_row("Order", order)
    if release.domain is not None:
        table.add_row("Domain", str(release.domain))
    if release.confidence is not None:
        table.add_row("Values", f"noisy; the truth lies between low and high with probability {release.confidence:g}")
    table.add_row("Mechanism", f"{release.mechanism.name}{inside}{noise}")
    promise = str(release.guarantee)
    table.add_row("Guarantee", promise if release.secure else f"none, because a seed was given; without it, {promise}")
    return table


def shown(item: Any) -> Text:
    """Return an item for a terminal: no markup is read in it, and control characters are spelt out."""
    text = "".join(repr(mark)[1:-1] if unicodedata.category(mark)[0] == "C" else mark for mark in str(item))
    return Text(text or "(empty text)", style="" if text else "dim")


class _Drawn(io.StringIO):
    """Text in memory that says what standard output can show, so that Rich draws lines from ASCII where it must."""

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """The encoding of standard output."""
        return sys.stdout.encoding or "utf-8"


def as_text(*parts: RenderableType) -> str:
    """Return what Rich would print on standard output, with colours only when that is a terminal."""
    drawn = _Drawn()
    console = Console(file=drawn, force_terminal=sys.stdout.isatty(), width=Console().width)
    for part in parts:
        console.print(part)
    return drawn.getvalue()
