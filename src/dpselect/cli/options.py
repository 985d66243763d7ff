"""What the commands share: numbers on the command line, common options, and examples in the help."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from dpselect.cli.output import Format, is_verbose, note

ITEMS, ROWS, GROUPS, ANSWER = "Possible items", "Rows that count", "Groups", "Answer"
MECHANISM, BUDGET, OUTPUT = "Mechanism", "Budget", "Output"
"""Titles of the groups of options in the help, which has room for few columns: each group has its own widths."""


def whole_number(text: Any) -> Any:
    """Return a whole number, or the text itself, which the package then refuses in its own words."""
    try:
        return int(text)
    except ValueError:
        return text


def number(text: Any) -> Any:
    """Return a number, or the text itself, which the package then refuses in its own words."""
    try:
        return float(text)
    except ValueError:
        return text


def examples(*lines: str, title: str = "Example:") -> str:
    r"""Return the end of a help page: example commands, one per line, where a line may end in \ as in a shell."""
    shown = [f"[bold]{line[:-1]}[/bold]\\" if line.endswith("\\") else f"[bold]{line}[/bold]" for line in lines]
    return title + "\n\n" + "\n".join(shown)


Source = Annotated[
    str,
    typer.Argument(
        metavar="SOURCE",
        help="CSV, JSON lines or Parquet file, possibly compressed (.gz, .zst); a folder or pattern of CSV or Parquet "
        "files; - for CSV from standard input. With --table: duckdb://FILE, postgresql://…, spark://HOST:PORT or "
        "spark+local://.",
    ),
]
Length = Annotated[int, typer.Option("-k", parser=whole_number, help="Number of items to publish.", metavar="N")]
Epsilon = Annotated[
    float,
    typer.Option(
        parser=number, help="Privacy budget of the release; a smaller value is more private.", metavar="NUMBER"
    ),
]
Delta = Annotated[
    float,
    typer.Option(
        parser=number,
        help="Probability with which the guarantee may fail; 0 for pure differential privacy.",
        metavar="NUMBER",
    ),
]
DomainColumn = Annotated[
    str | None,
    typer.Option(
        help="Column of the --domain file with the items. Default: the name of the item column.",
        metavar="COLUMN",
        rich_help_panel=ITEMS,
    ),
]
DomainNoHeader = Annotated[
    bool,
    typer.Option(
        "--domain-no-header", help="The --domain file has no header: every line is an item.", rich_help_panel=ITEMS
    ),
]
TableName = Annotated[
    str | None,
    typer.Option(
        "--table",
        help="Table in the database; with Spark also a path of Parquet files.",
        metavar="NAME",
        rich_help_panel=ROWS,
    ),
]
Where = Annotated[
    str | None,
    typer.Option(
        help="Condition that selects rows, in the engine's SQL. Do not derive it from the private rows.",
        metavar="SQL",
        rich_help_panel=ROWS,
    ),
]
By = Annotated[
    str | None,
    typer.Option(
        help="Column of groups, such as countries: publish K items for each group; needs --groups.",
        metavar="COLUMN",
        rich_help_panel=GROUPS,
    ),
]
ListOfGroups = Annotated[
    str | None,
    typer.Option(
        "--groups",
        help="The groups, which are public: a file with a column named like --by, or table:NAME (with --table).",
        metavar="LIST",
        rich_help_panel=GROUPS,
    ),
]
MaxGroups = Annotated[
    int,
    typer.Option(
        "--max-groups-per-person",
        parser=whole_number,
        help="In how many groups a person counts, chosen at random; epsilon is shared by that many groups.",
        metavar="N",
        rich_help_panel=GROUPS,
    ),
]
TimeColumn = Annotated[
    str | None,
    typer.Option(
        "--time",
        help="Column with dates or times, in UTC unless they name a zone.",
        metavar="COLUMN",
        rich_help_panel=ROWS,
    ),
]
PeriodName = Annotated[
    str | None,
    typer.Option(
        help="Read only the rows of this period: a day (2026-11-18), an ISO week (2026-W46) or a month (2026-11). Each "
        "person's period is then protected by itself.",
        metavar="PERIOD",
        rich_help_panel=ROWS,
    ),
]
Unfinished = Annotated[
    bool,
    typer.Option(
        "--unfinished", help="Accept a --period that is not over yet, and read what there is.", rich_help_panel=ROWS
    ),
]
ValueColumn = Annotated[
    str | None,
    typer.Option(
        help="Sum this column instead of counting people; needs --clip.", metavar="COLUMN", rich_help_panel=ROWS
    ),
]
Clip = Annotated[
    tuple[float, float] | None,
    typer.Option(
        help="Bounds on what one person adds to an item; values outside are clipped.",
        metavar="LOW HIGH",
        rich_help_panel=ROWS,
    ),
]
WeightColumn = Annotated[
    str | None,
    typer.Option(help="Column with a weight from 0 to 1 for each person.", metavar="COLUMN", rich_help_panel=ROWS),
]
Aim = Annotated[
    str,
    typer.Option(
        help="What auto aims at: most (the most right items) or exact (exactly the right answer).",
        metavar="AIM",
        rich_help_panel=MECHANISM,
    ),
]
MechanismName = Annotated[
    str,
    typer.Option(
        help="One of auto, canonical, gamma, gaussian, joint, laplace, oneshot, peeling; for an unknown "
        "domain auto, discovered, limited, restricted, top-stable.",
        metavar="NAME",
        rich_help_panel=MECHANISM,
    ),
]
Noise = Annotated[
    str | None,
    typer.Option(
        help="Noise of the mechanism: exponential, gumbel, laplace, logistic or half-logistic; needs --mechanism.",
        metavar="NAME",
        rich_help_panel=MECHANISM,
    ),
]
GammaOption = Annotated[
    float | None,
    typer.Option(
        parser=number,
        help="Gamma of the mechanism canonical, as plan --like may advise.",
        metavar="NUMBER",
        rich_help_panel=MECHANISM,
    ),
]
NoMargin = Annotated[
    bool,
    typer.Option(
        "--no-margin",
        help="Leave out the margin of the mechanism canonical or joint, as the papers do.",
        rich_help_panel=MECHANISM,
    ),
]
Rounded = Annotated[
    bool,
    typer.Option(
        "--rounded",
        help="Round the losses of the mechanism canonical, as its paper does.",
        rich_help_panel=MECHANISM,
    ),
]
InnerMechanism = Annotated[
    str | None,
    typer.Option(
        help="Mechanism that chooses inside --mechanism restricted: canonical, gamma, gaussian, joint, laplace, "
        "oneshot or peeling.",
        metavar="NAME",
        rich_help_panel=MECHANISM,
    ),
]
TestShare = Annotated[
    float | None,
    typer.Option(
        parser=number,
        help="Share of epsilon for the tests of --mechanism restricted, such as 0.3.",
        metavar="SHARE",
        rich_help_panel=MECHANISM,
    ),
]
PoolOption = Annotated[
    int | None,
    typer.Option(
        parser=whole_number,
        help="Number of top items considered, for an unknown domain. Default: 10 times K.",
        metavar="N",
        rich_help_panel=ITEMS,
    ),
]
Values = Annotated[
    float | None,
    typer.Option(
        parser=lambda text: True if text == "included" else number(text),
        help="Also publish noisy counts, with this share of epsilon, such as 0.3. With the mechanisms laplace and "
        "gaussian: included, at no further cost.",
        metavar="SHARE",
        rich_help_panel=ANSWER,
    ),
]
Protects = Annotated[
    str,
    typer.Option(
        help="The unit that is protected, as stated in the guarantee, such as 'one household'.",
        metavar="TEXT",
        rich_help_panel=ANSWER,
    ),
]
Lowest = Annotated[
    bool,
    typer.Option(
        "--lowest", help="Publish the lowest instead of the highest; needs a list of items.", rich_help_panel=ANSWER
    ),
]
Ordered = Annotated[
    bool, typer.Option("--ordered", help="Publish a ranked list instead of a set.", rich_help_panel=ANSWER)
]
Seed = Annotated[
    int | None,
    typer.Option(
        parser=whole_number,
        help="Make the answer reproducible, for tests only: it is then not private.",
        metavar="N",
        rich_help_panel=ANSWER,
    ),
]
LEDGER = "ledger.sqlite"
"""The ledger of every command if neither --ledger nor DPSELECT_LEDGER names one; see docs/ledger.md."""

LedgerPlace = Annotated[
    str | None,
    typer.Option(
        "--ledger",
        help="Ledger that is charged before the answer is drawn: a file or URL. Default: ledger.sqlite, if --dataset "
        "is given.",
        envvar="DPSELECT_LEDGER",
        metavar="PLACE",
        rich_help_panel=BUDGET,
    ),
]
DataSet = Annotated[
    str | None,
    typer.Option(
        "--dataset", help="Data set in the ledger whose budget is charged.", metavar="NAME", rich_help_panel=BUDGET
    ),
]
Purpose = Annotated[
    str, typer.Option(help="What the release is for; recorded in the ledger.", metavar="TEXT", rich_help_panel=BUDGET)
]
Once = Annotated[
    str | None,
    typer.Option(
        help="Key of the release: the ledger keeps the answer, and the same question under the same key returns it and "
        "costs nothing more.",
        metavar="KEY",
        rich_help_panel=BUDGET,
    ),
]
OutputFormat = Annotated[
    Format | None,
    typer.Option(
        "--format",
        help="table, json or csv. Default: by the ending of --output, else table.",
        metavar="FORM",
        rich_help_panel=OUTPUT,
    ),
]


ResultFormat = Annotated[
    Format, typer.Option("--format", help="table, json or csv.", metavar="FORM", rich_help_panel=OUTPUT)
]


def output_file(text: Any) -> Path:
    """Return the path of a file, and refuse one that ends in a slash, which a Path would drop."""
    if str(text).endswith("/"):
        raise typer.BadParameter("must be a file, not a folder; remove the / at the end")
    return Path(text)


Output = Annotated[
    Path | None,
    typer.Option(
        parser=output_file,
        help="Write the result to this file (.json, .csv or .txt) instead of standard output.",
        metavar="FILE",
        rich_help_panel=OUTPUT,
    ),
]


@contextlib.contextmanager
def engine_notes() -> Iterator[None]:
    """Show the log messages of the package, such as notes about the engine, on standard error."""
    handler = logging.Handler()
    handler.emit = lambda record: note(record.getMessage())  # type: ignore[method-assign]
    log = logging.getLogger("dpselect")
    log.addHandler(handler)
    level = log.level
    if is_verbose():
        log.setLevel(logging.INFO)
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.setLevel(level)


def note_json(source: str, **columns: str | None) -> None:
    """Warn that misspelt fields are not detected, for every JSON file whatever it contains."""
    if {".json", ".jsonl", ".ndjson"} & {suffix.lower() for suffix in Path(source).suffixes[-2:]}:
        *first, last = (f"--{option}" for option, column in columns.items() if column is not None)
        note(
            "JSON has no header, so a misspelt field is not detected, and the answer is then random. "
            f"Check the spelling of {', '.join(first)} and {last}."
        )


def ledger_place(ledger: str | None, dataset: str | None) -> str | None:
    """Return the ledger to charge: the one that is named, else the default one if a data set is."""
    return LEDGER if ledger is None and dataset else ledger


def mechanism_options(*, no_margin: bool, rounded: bool, **given: Any) -> dict[str, Any]:
    """Return the options of the mechanism that were given on the command line."""
    given |= {"margin": False if no_margin else None, "rounded": True if rounded else None}
    return {name: value for name, value in given.items() if value is not None}


def domain_of(text: str) -> str | Path:
    """Return the list that --domain or --groups names: a table in the engine, or the path of a file."""
    return text if text.startswith("table:") else Path(text)
