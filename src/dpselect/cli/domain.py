"""`dpselect domain`: which items exist, as a file that --domain takes."""

from __future__ import annotations

import math
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

import dpselect
from dpselect.cli.inputs import check_answer
from dpselect.cli.options import (
    DataSet,
    Epsilon,
    LedgerPlace,
    Once,
    Output,
    OutputFormat,
    PeriodName,
    Purpose,
    Seed,
    Source,
    TableName,
    TimeColumn,
    Unfinished,
    Where,
    engine_notes,
    examples,
    note_json,
    number,
    whole_number,
)
from dpselect.cli.output import (
    Format,
    as_csv,
    as_json,
    as_text,
    chosen_format,
    item_text,
    note,
    note_repeated,
    note_seed,
    progress_bar,
    protection,
    publish,
)
from dpselect.cli.stdin import source_path
from dpselect.periods import Period

EXAMPLES = examples(
    "dpselect domain demo/views.parquet --item film --person viewer \\",
    "    --epsilon 1 --delta 1e-6 --max-items-per-person 20 --output domain.csv",
    "dpselect top demo/views.parquet --item film --person viewer \\",
    "    -k 5 --epsilon 1 --domain domain.csv",
    title="Example, after [bold]dpselect demo --out demo[/bold]: discover the films, then ask about them.",
)

_NOT_IN_CSV = frozenset("\0\1\2\r\n")
"""Characters that a line of a CSV file cannot hold."""


def domain_command(
    source: Source,
    item: Annotated[
        str, typer.Option(help="Column with the items. A misspelt JSON field is not detected.", metavar="COLUMN")
    ],
    person: Annotated[
        str, typer.Option(help="Column that identifies the people, who are protected.", metavar="COLUMN")
    ],
    epsilon: Epsilon,
    delta: Annotated[
        float,
        typer.Option(
            parser=number,
            help="Probability with which the guarantee may fail, such as 1e-7; well below 1/n for n people.",
            metavar="NUMBER",
        ),
    ],
    max_items_per_person: Annotated[
        int, typer.Option(parser=whole_number, help="Keep at most N random items of each person.", metavar="N")
    ],
    at_least: Annotated[
        int,
        typer.Option(
            parser=whole_number,
            help="List an item that fewer than N people have with probability one in a million at most.",
            metavar="N",
        ),
    ] = 1,
    table: TableName = None,
    where: Where = None,
    time: TimeColumn = None,
    period: PeriodName = None,
    unfinished: Unfinished = False,
    protects: Annotated[
        str, typer.Option(help="What one value of --person stands for, as stated in the guarantee.", metavar="TEXT")
    ] = "one person",
    seed: Seed = None,
    ledger: LedgerPlace = None,
    dataset: DataSet = None,
    purpose: Purpose = "",
    once: Once = None,
    form: OutputFormat = None,
    output: Output = None,
) -> None:
    """Publish which items exist, as far as enough people have them: a list for --domain.

    Items are listed by name. Each of a person's n items has the weight 1/√n; items
    whose noisy weight is above a threshold are listed. Rows without an item or a
    person are ignored without a message.
    """
    check_answer(output, source, table=table, ledger=ledger)
    form = chosen_format(form, output)
    with source_path(source) as path, engine_notes(), progress_bar("Weighing items") as progress:
        release = dpselect.discover(
            path,
            item=item,
            person=person,
            epsilon=epsilon,
            delta=delta,
            max_items_per_person=max_items_per_person,
            at_least=at_least,
            protects=protects,
            seed=seed,
            table_name=table,
            where=where,
            time=time,
            period=period,
            unfinished=unfinished,
            ledger=ledger,
            dataset=dataset,
            purpose=purpose,
            once=once,
            progress=progress,
        )
    note_json(source, "--item and --person")
    note_seed(release)
    note_repeated(release)
    publish(_text(release, form), output)
    if output is not None and form is Format.csv:
        note(f"{len(_rows(release)):,} items listed; state them as --domain {output}")
    elif output is not None:
        note(f"{len(release.items):,} items listed; for a list that --domain takes, name a file that ends in .csv")


def _text(release: dpselect.DomainRelease, form: Format) -> str:
    if form is Format.json:
        return as_json(release.to_dict())
    if form is Format.csv:
        rows = _rows(release)
        if left_out := len(release.items) - len(rows):
            note(
                f"{left_out:,} of the items cannot be a line of a CSV file, because of a line break or another control "
                "character, so they are left out; --format json has them"
            )
        return as_csv(rows, [release.column])
    listed = Table()
    listed.add_column(release.column, overflow="fold")
    for item in release.items:
        listed.add_row(item_text(item))
    return as_text(Text(f"Discovered items: {len(release.items):,}", style="bold"), listed, _facts(release))


def _rows(release: dpselect.DomainRelease) -> list[dict[str, Any]]:
    """Return a row for each item that a line of CSV can hold."""
    return [{release.column: item} for item in release.items if _NOT_IN_CSV.isdisjoint(str(item))]


def _facts(release: dpselect.DomainRelease) -> Table:
    """Return a table of what was done and promised."""
    mechanism = release.mechanism
    limit, least = mechanism.max_items_per_person, mechanism.at_least
    needed = [math.ceil(mechanism.threshold / mechanism.weight(items)) for items in (1, limit)]
    many = f", or {needed[1]:,} with {limit} items each" if limit > 1 else ""
    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold")
    table.add_column()
    table.add_row("Order", "by name")
    if release.period is not None:
        table.add_row("Period", str(Period.of(release.period)))
    table.add_row("Mechanism", f"discovery, at most {limit} item{'s' if limit > 1 else ''} per person")
    table.add_row("Reach", f"{needed[0]:,} people who have nothing else{many}, get an item listed with probability 0.5")
    if least > 1:
        table.add_row("At least", f"an item with fewer than {least} people is listed with probability 1e-6 at most")
    promise = str(release.guarantee)
    table.add_row("Guarantee", promise if release.secure else f"none, because a seed was given; without it, {promise}")
    if release.secure:
        table.add_row("Protection", protection(release.guarantee))
    return table
