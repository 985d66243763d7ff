"""What the commands that read people's rows share: options, and notes on standard error."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from dpselect import InvalidInput
from dpselect.cli.numbers import number, whole_number
from dpselect.cli.output import Format, note

Source = Annotated[
    str,
    typer.Argument(
        metavar="SOURCE",
        help="CSV, JSON lines or Parquet; .gz and .zst are fine. With --table: duckdb://FILE, postgresql://…, "
        "spark://HOST:PORT or spark+local://.",
    ),
]
Length = Annotated[int, typer.Option("-k", parser=whole_number, help="How many items to publish.", metavar="N")]
Epsilon = Annotated[
    float,
    typer.Option(parser=number, help="Total privacy cost; smaller is more private.", metavar="NUMBER"),
]
Delta = Annotated[float, typer.Option(parser=number, help="Allowed failure probability.", metavar="NUMBER")]
DomainColumn = Annotated[
    str | None,
    typer.Option(help="Column of --domain that lists the items, if it is called otherwise.", metavar="COLUMN"),
]
DomainNoHeader = Annotated[
    bool, typer.Option("--domain-no-header", help="The file of --domain has no header: every line is an item.")
]
TableName = Annotated[
    str | None,
    typer.Option("--table", help="Table of SOURCE; with Spark also a path of Parquet files.", metavar="NAME"),
]
Where = Annotated[
    str | None,
    typer.Option(help="Condition on a row, in the engine's SQL; never made from the private rows.", metavar="SQL"),
]
Ordered = Annotated[bool, typer.Option("--ordered", help="Make the order of the answer mean something.")]
Seed = Annotated[
    int | None, typer.Option(parser=whole_number, help="For tests: reproducible, not secure.", metavar="N")
]
LedgerPlace = Annotated[
    str | None,
    typer.Option(
        "--ledger",
        help="Charge the release to this ledger first; a file or URL.",
        envvar="DPSELECT_LEDGER",
        metavar="PLACE",
    ),
]
DataSet = Annotated[str | None, typer.Option("--dataset", help="Data set of the ledger.", metavar="NAME")]
Purpose = Annotated[str, typer.Option(help="What the release is for; kept in the ledger.", metavar="TEXT")]
FormatAsked = Annotated[Format | None, typer.Option("--format", help="Default: table, or what OUTPUT's name says.")]


def output_file(text: Any) -> Path:
    """Return the path of a file; one that ends in a slash is a folder, which a Path would not say any more."""
    if str(text).endswith("/"):
        raise InvalidInput("output", str(text), "a file is needed, and this names a folder; leave out the last /")
    return Path(text)


Output = Annotated[
    Path | None,
    typer.Option(
        parser=output_file,
        help="Write the result there instead of to standard output; the name ends in .json, .csv or .txt.",
        metavar="FILE",
    ),
]


@contextlib.contextmanager
def engine_notes() -> Iterator[None]:
    """Show what an engine has to say about itself, such as that it may keep nothing, on standard error."""
    handler = logging.Handler()
    handler.emit = lambda record: note(record.getMessage())  # type: ignore[method-assign]
    log = logging.getLogger("dpselect")
    log.addHandler(handler)
    try:
        yield
    finally:
        log.removeHandler(handler)


def note_json(source: str, columns: str) -> None:
    """Say of every JSON file, whatever is in it, what cannot be told without looking at people's rows."""
    if {".json", ".jsonl", ".ndjson"} & {suffix.lower() for suffix in Path(source).suffixes[-2:]}:
        note(
            "JSON has no header, so a misspelt field cannot be noticed: the answer is then as random as that of an "
            f"empty table. Check the spelling of {columns}."
        )
