"""`dpselect top`: the private top k of people's rows in a file or database."""

from __future__ import annotations

from typing import Annotated, Any

import typer

import dpselect
from dpselect.cli.dry_run import DryRun, stopped_before_charge
from dpselect.cli.inputs import check_answer
from dpselect.cli.options import (
    ROWS,
    Aim,
    By,
    Clip,
    DataSet,
    Delta,
    DomainColumn,
    DomainNoHeader,
    Epsilon,
    GammaOption,
    InnerMechanism,
    LedgerPlace,
    Length,
    ListOfGroups,
    Lowest,
    MaxGroups,
    MechanismName,
    Noise,
    NoMargin,
    Once,
    Ordered,
    Output,
    OutputFormat,
    PeriodName,
    PoolOption,
    Protects,
    Purpose,
    Rounded,
    Seed,
    Source,
    TableName,
    TestShare,
    TimeColumn,
    Unfinished,
    ValueColumn,
    Values,
    WeightColumn,
    Where,
    domain_of,
    engine_notes,
    examples,
    ledger_place,
    mechanism_options,
    note_json,
    whole_number,
)
from dpselect.cli.output import chosen_format, note_repeated, note_seed, progress_bar, publish, release_text
from dpselect.cli.stdin import source_path

EXAMPLES = examples(
    "dpselect top demo/views.parquet --item film --person viewer \\",
    "    -k 5 --epsilon 1 --domain demo/films.csv",
    "dpselect top demo/views.parquet --item film --person viewer \\",
    "    -k 5 --epsilon 1 --domain demo/films.csv \\",
    "    --by country --groups demo/countries.csv",
    title="Examples, after [bold]dpselect demo --out demo[/bold]:",
)


def top_command(
    source: Source,
    item: Annotated[
        str, typer.Option(help="Column with the items. A misspelt JSON field is not detected.", metavar="COLUMN")
    ],
    person: Annotated[
        str, typer.Option(help="Column that identifies the people, who are protected.", metavar="COLUMN")
    ],
    k: Length,
    epsilon: Epsilon,
    domain: Annotated[
        str,
        typer.Option(
            help="The possible items, which are public: a file that lists them, table:NAME (with --table), their "
            "number, or unknown if they cannot be listed (needs --delta).",
            metavar="DOMAIN",
        ),
    ],
    domain_column: DomainColumn = None,
    domain_no_header: DomainNoHeader = False,
    table: TableName = None,
    where: Where = None,
    time: TimeColumn = None,
    period: PeriodName = None,
    unfinished: Unfinished = False,
    value: ValueColumn = None,
    clip: Clip = None,
    weight: WeightColumn = None,
    max_items_per_person: Annotated[
        int | None,
        typer.Option(
            parser=whole_number, help="Keep at most N random items of each person.", metavar="N", rich_help_panel=ROWS
        ),
    ] = None,
    by: By = None,
    groups: ListOfGroups = None,
    max_groups_per_person: MaxGroups = 1,
    pool: PoolOption = None,
    delta: Delta = 0.0,
    mechanism: MechanismName = "auto",
    noise: Noise = None,
    gamma: GammaOption = None,
    no_margin: NoMargin = False,
    rounded: Rounded = False,
    inner: InnerMechanism = None,
    test_share: TestShare = None,
    values: Values = None,
    protects: Protects = "one person",
    ordered: Ordered = False,
    lowest: Lowest = False,
    aim: Aim = "most",
    seed: Seed = None,
    ledger: LedgerPlace = None,
    dataset: DataSet = None,
    purpose: Purpose = "",
    once: Once = None,
    form: OutputFormat = None,
    output: Output = None,
    dry_run: DryRun = False,
) -> None:
    """Publish the K items that most people have, without revealing whether any one person is in the data.

    Each person counts at most once per item. Rows without an item or a person,
    and items outside the domain, are ignored without a message. With --by, K items
    are published for each group of a public list.
    """
    possible = _domain(domain)
    listed = None if groups is None else dpselect.UNKNOWN if groups == "unknown" else domain_of(groups)
    ledger = ledger_place(ledger, dataset)
    check_answer(output, source, table=table, domain=possible, groups=listed, ledger=ledger)
    form = chosen_format(form, output)
    with (
        stopped_before_charge(dry_run, form),
        source_path(source, header_only=dry_run) as path,
        engine_notes(),
        progress_bar("Counting people per item") as progress,
    ):
        release = dpselect.top(
            path,
            item=item,
            person=person,
            k=k,
            epsilon=epsilon,
            delta=delta,
            domain=possible,
            domain_column=domain_column,
            domain_header=not domain_no_header,
            table_name=table,
            where=where,
            time=time,
            period=period,
            unfinished=unfinished,
            value=value,
            clip=clip,
            weight=weight,
            max_items_per_person=max_items_per_person,
            by=by,
            groups=listed,
            max_groups_per_person=max_groups_per_person,
            pool=pool,
            mechanism=mechanism,
            options=mechanism_options(
                noise=noise, gamma=gamma, no_margin=no_margin, rounded=rounded, inner=inner, test_share=test_share
            ),
            ordered=ordered,
            lowest=lowest,
            aim=aim,
            values=values,
            protects=protects,
            seed=seed,
            ledger=ledger,
            dataset=dataset,
            purpose=purpose,
            once=once,
            progress=progress,
        )
    note_json(source, item=item, person=person, value=value, weight=weight, by=by, time=time)
    note_seed(release)
    note_repeated(release)
    publish(release_text(release, form), output)


def _domain(text: str) -> Any:
    """Return the domain that --domain states: unknown, a table in the engine, a number of items, or a file."""
    if text == "unknown":
        return dpselect.UNKNOWN
    size = whole_number(text)
    return size if isinstance(size, int) else domain_of(text)
