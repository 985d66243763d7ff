"""`dpselect top`: the private top k of people's rows in a file or a database."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

import dpselect
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

_KINDS: dict[str, Any] = {
    kind.name: kind
    for kind in vars(dpselect).values()
    if isinstance(kind, type) and issubclass(kind, dpselect.Mechanism) and kind is not dpselect.Mechanism
}


def top_command(
    source: Source,
    item: Annotated[str, typer.Option(help="Column that says what; in JSON, mind the spelling.", metavar="COLUMN")],
    person: Annotated[str, typer.Option(help="Column that says who; this is who is protected.", metavar="COLUMN")],
    k: Length,
    epsilon: Epsilon,
    domain: Annotated[
        str,
        typer.Option(
            help="The possible items, which are public: a file that lists them, table:NAME beside --table, or how "
            "many there are. Or unknown, if nobody can list them; needs --delta.",
            metavar="FILE|table:NAME|N|unknown",
        ),
    ],
    domain_column: DomainColumn = None,
    domain_no_header: DomainNoHeader = False,
    table: TableName = None,
    where: Where = None,
    value: Annotated[
        str | None,
        typer.Option(help="Add up this column instead of counting people; needs --clip.", metavar="COLUMN"),
    ] = None,
    clip: Annotated[
        tuple[float, float] | None,
        typer.Option(help="Bounds of what one person adds to an item.", metavar="LOW HIGH"),
    ] = None,
    weight: Annotated[
        str | None,
        typer.Option(help="Column of numbers from 0 to 1 by which people count.", metavar="COLUMN"),
    ] = None,
    max_items_per_person: Annotated[
        int | None,
        typer.Option(parser=whole_number, help="Keep a random choice of so many items of each person.", metavar="N"),
    ] = None,
    pool: Annotated[
        int | None,
        typer.Option(parser=whole_number, help="Of an unknown domain, look at so many items; else 10 K.", metavar="N"),
    ] = None,
    delta: Delta = 0.0,
    mechanism: Annotated[str, typer.Option(help=f"auto, {', '.join(_KINDS)}.", metavar="NAME")] = "auto",
    noise: Annotated[
        str | None,
        typer.Option(
            help="exponential, gumbel, laplace, logistic or half-logistic; needs --mechanism.", metavar="NAME"
        ),
    ] = None,
    values: Annotated[
        float | None,
        typer.Option(
            parser=number, help="Share of epsilon, such as 0.3, for publishing noisy counts as well.", metavar="SHARE"
        ),
    ] = None,
    protects: Annotated[
        str, typer.Option(help="What a value of --person stands for, stated in the guarantee.", metavar="TEXT")
    ] = "one person",
    ordered: Ordered = False,
    seed: Seed = None,
    ledger: LedgerPlace = None,
    dataset: DataSet = None,
    purpose: Purpose = "",
    form: FormatAsked = None,
    output: Output = None,
) -> None:
    r"""Publish the K items that most people have, so that no one person shows.

    Each person counts at most once per item. Rows without an item or a person,
    and items outside the domain, are left out; no message ever tells.

    Example, after [bold]dpselect demo --out demo[/bold]:

    [bold]dpselect top demo/views.parquet --item film --person viewer [/bold]\
    [bold]    -k 5 --epsilon 1 --domain demo/films.csv[/bold]
    """
    if values is not None and noise is not None:
        raise dpselect.InvalidInput("values", values, "with --noise they cannot be published; leave out one of the two")
    possible = _domain(domain)
    check_answer(output, source, table=table, domain=possible, ledger=ledger)
    form = chosen_format(form, output)
    with engine_notes(), progress_bar("Counting people per item") as progress:
        release = dpselect.top(
            source,
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
            value=value,
            clip=clip,
            weight=weight,
            max_items_per_person=max_items_per_person,
            pool=pool,
            mechanism=_mechanism(mechanism, noise, k, epsilon, delta, clip, max_items_per_person, pool),
            ordered=ordered,
            values=values,
            protects=protects,
            seed=seed,
            ledger=ledger,
            dataset=dataset,
            purpose=purpose,
            progress=progress,
        )
    note_json(source, "--item and --person")
    note_seed(release)
    publish(release_text(release, form), output)


def _domain(text: str) -> Any:
    """Understand --domain: the word unknown, a table in the engine, a whole number, or a path."""
    if text == "unknown":
        return dpselect.UNKNOWN
    if text.startswith("table:"):
        return text
    try:
        return int(text)
    except ValueError:
        return Path(text)


def _mechanism(
    name: str,
    noise: str | None,
    k: int,
    epsilon: float,
    delta: float,
    clip: tuple[float, float] | None,
    max_items_per_person: int | None,
    pool: int | None,
) -> Any:
    """Return the name, or with a noise the mechanism itself, which gets the delta that it can use."""
    if noise is None:
        return name
    noisy = [kind for kind in _KINDS if hasattr(_KINDS[kind], "noise")]
    if name not in noisy:
        raise dpselect.InvalidInput("noise", noise, "name a mechanism that has it: --mechanism " + " or ".join(noisy))
    kind = _KINDS[name]
    usable = hasattr(kind, "delta") and noise in getattr(kind, "noises_with_delta", (noise,))
    extras: dict[str, Any] = {"delta": delta} if usable else {}
    if clip is not None:
        extras["sensitivity"] = dpselect.Sensitivity(min(clip[0], 0), max(clip[1], 0))
    own = {"max_items_per_person": max_items_per_person, "pool": pool}
    extras |= {name: given for name, given in own.items() if hasattr(kind, name)}
    return kind(k=k, epsilon=epsilon, noise=noise, **extras)
