"""`dpselect domain`: which items exist, as a file that --domain takes."""

from __future__ import annotations

from typing import Annotated, Any

import typer

import dpselect
from dpselect._release_text import domain_tables
from dpselect.cli.dry_run import DryRun, stopped_before_charge
from dpselect.cli.inputs import check_answer
from dpselect.cli.options import (
    ANSWER,
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
    ledger_place,
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
    note,
    note_repeated,
    note_seed,
    progress_bar,
    publish,
)
from dpselect.cli.stdin import source_path

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
            rich_help_panel=ANSWER,
        ),
    ] = 1,
    table: TableName = None,
    where: Where = None,
    time: TimeColumn = None,
    period: PeriodName = None,
    unfinished: Unfinished = False,
    protects: Annotated[
        str,
        typer.Option(
            help="What one value of --person stands for, as stated in the guarantee.",
            metavar="TEXT",
            rich_help_panel=ANSWER,
        ),
    ] = "one person",
    seed: Seed = None,
    ledger: LedgerPlace = None,
    dataset: DataSet = None,
    purpose: Purpose = "",
    once: Once = None,
    form: OutputFormat = None,
    output: Output = None,
    dry_run: DryRun = False,
) -> None:
    """Publish which items exist, as far as enough people have them: a list for --domain.

    Items are listed by name. Each of a person's n items has the weight 1/√n; items
    whose noisy weight is above a threshold are listed. Rows without an item or a
    person are ignored without a message.
    """
    ledger = ledger_place(ledger, dataset)
    check_answer(output, source, table=table, ledger=ledger)
    form = chosen_format(form, output)
    with (
        stopped_before_charge(dry_run, form),
        source_path(source, header_only=dry_run) as path,
        engine_notes(),
        progress_bar("Weighing items") as progress,
    ):
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
    note_json(source, item=item, person=person, time=time)
    note_seed(release)
    note_repeated(release)
    publish(_text(release, form), output)
    if not release.items:
        note(
            "no item is listed: none has enough people for this epsilon and delta, or the columns are not the right "
            "ones; the table says how many people are needed"
        )
    elif output is not None and form is Format.csv:
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
    return as_text(*domain_tables(release))


def _rows(release: dpselect.DomainRelease) -> list[dict[str, Any]]:
    """Return a row for each item that a line of CSV can hold."""
    return [{release.column: item} for item in release.items if _NOT_IN_CSV.isdisjoint(str(item))]
