"""`dpselect rank`: the k best items from people's comparisons of pairs, in a file or a database."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dpselect.cli.inputs import check_answer
from dpselect.cli.numbers import number, whole_number
from dpselect.cli.options import (
    DataSet,
    Delta,
    DomainColumn,
    DomainNoHeader,
    Epsilon,
    FormatAsked,
    LedgerPlace,
    Length,
    Ordered,
    Output,
    Purpose,
    Seed,
    Source,
    TableName,
    Where,
    engine_notes,
    note_json,
)
from dpselect.cli.output import chosen_format, note_seed, publish, release_text
from dpselect.cli.progress import progress_bar


def rank_command(
    source: Source,
    k: Length,
    epsilon: Epsilon,
    comparisons_per_pair: Annotated[
        int,
        typer.Option(
            parser=whole_number, help="Keep a random choice of so many comparisons of each pair of items.", metavar="N"
        ),
    ],
    max_degree: Annotated[
        int,
        typer.Option(
            parser=whole_number,
            help="How many others an item is compared with, as planned; an item keeps at most N times "
            "--comparisons-per-pair of its losses.",
            metavar="N",
        ),
    ],
    winner: Annotated[str, typer.Option(help="Column that says which item won.", metavar="COLUMN")] = "winner",
    loser: Annotated[str, typer.Option(help="Column that says which item lost.", metavar="COLUMN")] = "loser",
    tie: Annotated[
        str | None,
        typer.Option(
            help="Column that says (true, yes or 1) where neither won: half a win for each.", metavar="COLUMN"
        ),
    ] = None,
    person: Annotated[
        str | None,
        typer.Option(
            help="Column that says who compared; they are protected, not only one comparison. "
            "Needs --max-votes-per-person.",
            metavar="COLUMN",
        ),
    ] = None,
    max_votes_per_person: Annotated[
        int | None,
        typer.Option(
            parser=whole_number, help="Keep a random choice of so many comparisons of each person.", metavar="N"
        ),
    ] = None,
    domain: Annotated[
        str | None,
        typer.Option(
            help="The possible items, which are public: a file that lists them, or table:NAME beside --table. If left "
            "out the rows name them, and who alone names an item is not protected.",
            metavar="FILE|table:NAME",
        ),
    ] = None,
    domain_column: DomainColumn = None,
    domain_no_header: DomainNoHeader = False,
    damping: Annotated[
        float | None,
        typer.Option(
            parser=number,
            help="More means less noise, less means more regard for who was beaten and less for who played often; "
            "from 0.001 up to, but not including, 1. Default: 0.8.",
            metavar="NUMBER",
        ),
    ] = None,
    promised_rho: Annotated[
        float | None,
        typer.Option(
            parser=number,
            help="As published, in place of damping: a PROMISE about the private rows. Nothing checks it; if it is "
            "wrong, nobody is protected.",
            metavar="NUMBER",
        ),
    ] = None,
    table: TableName = None,
    where: Where = None,
    delta: Delta = 0.0,
    mechanism: Annotated[
        str, typer.Option(help="auto, canonical, gamma, joint, oneshot, peeling.", metavar="NAME")
    ] = "auto",
    values: Annotated[
        float | None,
        typer.Option(
            parser=number, help="Share of epsilon, such as 0.3, for publishing noisy scores as well.", metavar="SHARE"
        ),
    ] = None,
    protects: Annotated[
        str | None, typer.Option(help="What a value of --person stands for, stated in the guarantee.", metavar="TEXT")
    ] = None,
    ordered: Ordered = False,
    seed: Seed = None,
    ledger: LedgerPlace = None,
    dataset: DataSet = None,
    purpose: Purpose = "",
    form: FormatAsked = None,
    output: Output = None,
) -> None:
    r"""Publish the K best items from comparisons of pairs, so that no one vote shows.

    Each row says that one item won against another. Rows that lack a winner, a
    loser or a person, that compare an item with itself, or with one outside the
    domain, are left out; no message ever tells. A tie is a row with a mark in
    the column --tie; written as two rows, one each way, it counts as two
    comparisons. An item of the domain that was never compared scores as one that
    won as often as it lost; groups that never met are ranked each by itself.

    An example:

    [bold]printf 'winner,loser\nann,bob\nann,cem\nbob,cem\n' > games.csv
    dpselect rank games.csv -k 1 --epsilon 1 --comparisons-per-pair 1 [/bold]\
    [bold]    --max-degree 2[/bold]
    """
    from dpselect import InvalidInput, ranking

    if damping is not None and promised_rho is not None:
        raise InvalidInput("damping", damping, "--promised-rho stands in its place; leave out one of the two")
    possible = _domain(domain)
    check_answer(output, source, table=table, domain=possible, ledger=ledger)
    form = chosen_format(form, output)
    with engine_notes(), progress_bar("Counting comparisons per pair") as progress:
        release = ranking.rank(
            source,
            k=k,
            epsilon=epsilon,
            delta=delta,
            comparisons_per_pair=comparisons_per_pair,
            max_degree=max_degree,
            damping=ranking.DEFAULT_DAMPING if damping is None else damping,
            mechanism=mechanism,
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
            values=values,
            protects=protects,
            seed=seed,
            table_name=table,
            where=where,
            ledger=ledger,
            dataset=dataset,
            purpose=purpose,
            progress=progress,
        )
    note_json(source, "--winner, --loser, --tie and --person")
    note_seed(release)
    publish(release_text(release, form), output)


def _domain(text: str | None) -> str | Path | None:
    """Understand --domain: nothing, a table in the engine, or a path."""
    return text if text is None or text.startswith("table:") else Path(text)
