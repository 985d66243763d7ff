"""`dpselect select`: the private top k of counts that are already in a file."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.text import Text

import dpselect
from dpselect.cli.counts_file import private_counts, stated_list
from dpselect.cli.dry_run import DryRun, stopped_before_charge
from dpselect.cli.inputs import check_answer
from dpselect.cli.options import (
    ROWS,
    Aim,
    DataSet,
    Delta,
    DomainColumn,
    DomainNoHeader,
    Epsilon,
    GammaOption,
    InnerMechanism,
    LedgerPlace,
    Length,
    Lowest,
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
    TestShare,
    Unfinished,
    Values,
    engine_notes,
    examples,
    ledger_place,
    mechanism_options,
    note_json,
    whole_number,
)
from dpselect.cli.output import Format, as_text, chosen_format, note_repeated, note_seed, publish, release_text
from dpselect.cli.stdin import source_path
from dpselect.cli.unknown import UNKNOWN
from dpselect.mechanisms import FOR_UNKNOWN_DOMAINS, automatic_for_unknown

EXAMPLES = examples(
    "printf 'item,count\\nHeat,900\\nUp,700\\nHer,20\\nBig,10\\n' > counts.csv",
    "dpselect select counts.csv -k 2 --epsilon 1 --items-are-public",
)


def select_command(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="Counts: a CSV, JSON lines or Parquet file with one row per item, or - for CSV from standard input.",
        ),
    ],
    k: Length,
    epsilon: Epsilon,
    domain: Annotated[
        str | None,
        typer.Option(
            help="The possible items, which are public: a file that lists them, or unknown if they cannot be listed "
            "(needs --delta).",
            metavar="FILE|unknown",
        ),
    ] = None,
    items_are_public: Annotated[
        bool,
        typer.Option(
            "--items-are-public",
            help="Instead of --domain: the items in FILE are public, also those that only one person has.",
        ),
    ] = False,
    domain_column: DomainColumn = None,
    domain_no_header: DomainNoHeader = False,
    item: Annotated[str, typer.Option(help="Column with the items.", metavar="COLUMN", rich_help_panel=ROWS)] = "item",
    count: Annotated[
        str, typer.Option(help="Column with the counts.", metavar="COLUMN", rich_help_panel=ROWS)
    ] = "count",
    sensitivity: Annotated[
        tuple[float, float] | None,
        typer.Option(
            help="Your promise: adding a person moves each count by LOW to HIGH. Default: 0 1, if each person counts "
            "at most once per item.",
            metavar="LOW HIGH",
            rich_help_panel=ROWS,
        ),
    ] = None,
    max_items_per_person: Annotated[
        int | None,
        typer.Option(
            parser=whole_number,
            help="Your promise: one person moves at most N of the counts.",
            metavar="N",
            rich_help_panel=ROWS,
        ),
    ] = None,
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
    period: PeriodName = None,
    unfinished: Unfinished = False,
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
    """Publish the K items with the highest counts in a file, without revealing whether any one person is in the data.

    The sensitivity is [bold]your promise[/bold], which nothing checks: the
    guarantee holds if one person counts at most once per item, or moves no
    count by more than --sensitivity says.

    A count that is missing, not a number or below 0 counts as 0, and of an
    item that is listed twice the higher count is used, without a message:
    counts are private. [bold]dpselect forecast FILE[/bold] is for the curator only
    and says if a count cannot be read.
    """
    ledger = ledger_place(ledger, dataset)
    check_answer(output, file, domain=domain, ledger=ledger)
    form = chosen_format(form, output)
    moves = dpselect.COUNTS if sensitivity is None else dpselect.Sensitivity(*sensitivity)
    with source_path(file, header_only=dry_run) as path:
        possible = stated_list(
            domain,
            path,
            items_are_public=items_are_public,
            domain_column=domain_column,
            domain_header=not domain_no_header,
        )
        scores = private_counts(
            path, item, count, domain, possible, k=k, negative=sensitivity is not None, header_only=dry_run
        )
    if dry_run and items_are_public and once is not None:
        raise dpselect.InvalidInput(
            "once",
            once,
            "must be left out of a dry run with --items-are-public, since the items are part of the question",
        )
    with stopped_before_charge(dry_run, form), engine_notes():
        release = dpselect.select(
            scores,
            k,
            epsilon=epsilon,
            delta=delta,
            mechanism=_mechanism(mechanism, domain, k, max_items_per_person, pool, counts=moves == dpselect.COUNTS),
            options=mechanism_options(
                noise=noise, gamma=gamma, no_margin=no_margin, rounded=rounded, inner=inner, test_share=test_share
            ),
            aim=aim,
            sensitivity=moves,
            max_items_per_person=max_items_per_person,
            pool=pool,
            ordered=ordered,
            lowest=lowest,
            values=values,
            protects=protects,
            period=period,
            unfinished=unfinished,
            seed=seed,
            ledger=ledger,
            dataset=dataset,
            purpose=purpose,
            once=once,
        )
    note_json(file, item=item, count=count)
    note_seed(release)
    note_repeated(release)
    publish(
        release_text(release, form) + (_promise(moves, max_items_per_person) if form is Format.table else ""), output
    )


def _mechanism(
    name: str, domain: str | None, k: int, max_items_per_person: int | None, pool: int | None, *, counts: bool
) -> str:
    """Return the mechanism, for auto on an unknown domain that of `top`; refuse one that shows which items exist."""
    if domain != UNKNOWN or name in FOR_UNKNOWN_DOMAINS:
        return name
    if name == "auto":
        return automatic_for_unknown(k, max_items_per_person, pool, counts=counts)
    names = ", ".join(FOR_UNKNOWN_DOMAINS)
    raise dpselect.InvalidInput("mechanism", name, f"must be auto or one of {names} with --domain unknown")


def _promise(moves: dpselect.Sensitivity, max_items_per_person: int | None) -> str:
    """Return what the guarantee takes on trust, as a sentence below the answer."""
    few = "" if max_items_per_person is None else f", and at most {max_items_per_person} of the scores"
    return as_text("", Text(f"The guarantee rests on your promise, which nothing checks: {moves}{few}."))
