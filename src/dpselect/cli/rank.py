"""`dpselect rank`: the k best items from people's comparisons of pairs, in a file or database."""

from __future__ import annotations

from typing import Annotated

import typer

from dpselect.cli.dry_run import DryRun, stopped_before_charge
from dpselect.cli.inputs import check_answer
from dpselect.cli.options import (
    ANSWER,
    ITEMS,
    MECHANISM,
    ROWS,
    Aim,
    DataSet,
    Delta,
    DomainColumn,
    DomainNoHeader,
    Epsilon,
    GammaOption,
    LedgerPlace,
    Length,
    Lowest,
    Noise,
    NoMargin,
    Once,
    Ordered,
    Output,
    OutputFormat,
    PeriodName,
    Purpose,
    Rounded,
    Seed,
    Source,
    TableName,
    TimeColumn,
    Unfinished,
    Where,
    domain_of,
    engine_notes,
    examples,
    ledger_place,
    mechanism_options,
    note_json,
    number,
    whole_number,
)
from dpselect.cli.output import chosen_format, note_repeated, note_seed, progress_bar, publish, release_text
from dpselect.cli.stdin import source_path

EXAMPLES = examples(
    "printf 'winner,loser\\nann,bob\\nann,cem\\nbob,cem\\n' > games.csv",
    "dpselect rank games.csv -k 1 --epsilon 1 --comparisons-per-pair 1 \\",
    "    --max-degree 2",
)


def rank_command(
    source: Source,
    k: Length,
    epsilon: Epsilon,
    comparisons_per_pair: Annotated[
        int,
        typer.Option(parser=whole_number, help="Keep at most N random comparisons of each pair of items.", metavar="N"),
    ],
    max_degree: Annotated[
        int,
        typer.Option(
            parser=whole_number,
            help="Planned number of other items that an item is compared with. An item keeps at most N times "
            "--comparisons-per-pair of its losses.",
            metavar="N",
        ),
    ],
    winner: Annotated[
        str, typer.Option(help="Column with the item that won.", metavar="COLUMN", rich_help_panel=ROWS)
    ] = "winner",
    loser: Annotated[
        str, typer.Option(help="Column with the item that lost.", metavar="COLUMN", rich_help_panel=ROWS)
    ] = "loser",
    tie: Annotated[
        str | None,
        typer.Option(
            help="Column that marks ties (true, yes or 1), which count as half a win for each.",
            metavar="COLUMN",
            rich_help_panel=ROWS,
        ),
    ] = None,
    person: Annotated[
        str | None,
        typer.Option(
            help="Column that identifies the people. Protects each person instead of each comparison; needs "
            "--max-votes-per-person.",
            metavar="COLUMN",
            rich_help_panel=ROWS,
        ),
    ] = None,
    max_votes_per_person: Annotated[
        int | None,
        typer.Option(
            parser=whole_number,
            help="Keep at most N random comparisons of each person.",
            metavar="N",
            rich_help_panel=ROWS,
        ),
    ] = None,
    domain: Annotated[
        str | None,
        typer.Option(
            help="The possible items, which are public: a file that lists them, or table:NAME (with --table). Default: "
            "the items in the rows; a person who is the only one to name an item is then not protected.",
            metavar="DOMAIN",
            rich_help_panel=ITEMS,
        ),
    ] = None,
    domain_column: DomainColumn = None,
    domain_no_header: DomainNoHeader = False,
    damping: Annotated[
        float | None,
        typer.Option(
            parser=number,
            help="From 0.001 to just below 1. A larger value needs less noise; a smaller one gives more weight to the "
            "strength of beaten items. Default: 0.8.",
            metavar="NUMBER",
            rich_help_panel=MECHANISM,
        ),
    ] = None,
    promised_rho: Annotated[
        float | None,
        typer.Option(
            parser=number,
            help="Instead of --damping: a PROMISE, as in the published method, that the ergodicity coefficient of the "
            "walk on the private rows is at most this. It is not checked. If it is wrong, nobody is protected.",
            metavar="NUMBER",
            rich_help_panel=MECHANISM,
        ),
    ] = None,
    table: TableName = None,
    where: Where = None,
    time: TimeColumn = None,
    period: PeriodName = None,
    unfinished: Unfinished = False,
    delta: Delta = 0.0,
    mechanism: Annotated[
        str,
        typer.Option(
            help="One of auto, canonical, gamma, joint, oneshot, peeling.",
            metavar="NAME",
            rich_help_panel=MECHANISM,
        ),
    ] = "auto",
    noise: Noise = None,
    gamma: GammaOption = None,
    no_margin: NoMargin = False,
    rounded: Rounded = False,
    values: Annotated[
        float | None,
        typer.Option(
            parser=number,
            help="Also publish noisy scores, with this share of epsilon, such as 0.3.",
            metavar="SHARE",
            rich_help_panel=ANSWER,
        ),
    ] = None,
    protects: Annotated[
        str | None,
        typer.Option(
            help="What one value of --person stands for, as stated in the guarantee.",
            metavar="TEXT",
            rich_help_panel=ANSWER,
        ),
    ] = None,
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
    """Publish the K best items from comparisons of pairs, without revealing any one vote.

    Each row says that one item won against another. Rows without a winner, a
    loser or a person, rows that compare an item with itself, and rows with an
    item outside the domain are ignored without a message. Mark a tie in the
    column --tie; two rows, one each way, count as two comparisons. An item
    that was never compared scores like one that won as often as it lost.
    Groups that were never compared with each other are ranked separately.
    """
    from dpselect import InvalidInput, ranking

    if damping is not None and promised_rho is not None:
        raise InvalidInput("damping", damping, "must be left out with --promised-rho; state one of the two")
    possible = None if domain is None else domain_of(domain)
    ledger = ledger_place(ledger, dataset)
    check_answer(output, source, table=table, domain=possible, ledger=ledger)
    form = chosen_format(form, output)
    with (
        stopped_before_charge(dry_run, form),
        source_path(source, header_only=dry_run) as path,
        engine_notes(),
        progress_bar("Counting comparisons per pair") as progress,
    ):
        release = ranking.rank(
            path,
            k=k,
            epsilon=epsilon,
            delta=delta,
            comparisons_per_pair=comparisons_per_pair,
            max_degree=max_degree,
            damping=ranking.DEFAULT_DAMPING if damping is None else damping,
            mechanism=mechanism,
            options=mechanism_options(noise=noise, gamma=gamma, no_margin=no_margin, rounded=rounded),
            max_votes_per_person=max_votes_per_person,
            domain=possible,
            domain_column=domain_column,
            domain_header=not domain_no_header,
            winner=winner,
            loser=loser,
            person=person,
            tie=tie,
            promised_rho=promised_rho,
            ordered=ordered,
            lowest=lowest,
            aim=aim,
            values=values,
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
    note_json(source, winner=winner, loser=loser, tie=tie, person=person, time=time)
    note_seed(release)
    note_repeated(release)
    publish(release_text(release, form), output)
