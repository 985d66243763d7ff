"""`dpselect top`: the private top k of people's rows in a file or a database."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

import dpselect
from dpselect.cli.numbers import number, whole_number
from dpselect.cli.output import Format, check_output, chosen_format, note, note_seed, publish, release_text
from dpselect.cli.progress import progress_bar

_KINDS: dict[str, Any] = {
    kind.name: kind
    for kind in vars(dpselect).values()
    if isinstance(kind, type) and issubclass(kind, dpselect.Mechanism) and kind is not dpselect.Mechanism
}


def top_command(
    source: Annotated[
        str,
        typer.Argument(
            metavar="SOURCE",
            help="CSV, JSON lines or Parquet; .gz and .zst are fine. With --table: duckdb://FILE, postgresql://…, "
            "spark://HOST:PORT or spark+local://.",
        ),
    ],
    item: Annotated[str, typer.Option(help="Column that says what; in JSON, mind the spelling.", metavar="COLUMN")],
    person: Annotated[str, typer.Option(help="Column that says who; this is who is protected.", metavar="COLUMN")],
    k: Annotated[int, typer.Option("-k", parser=whole_number, help="How many items to publish.", metavar="N")],
    epsilon: Annotated[
        float,
        typer.Option(parser=number, help="Total privacy cost; smaller is more private.", metavar="NUMBER"),
    ],
    domain: Annotated[
        str,
        typer.Option(
            help="The possible items, which are public: a file that lists them, table:NAME beside --table, or how "
            "many there are. Or unknown, if nobody can list them; needs --delta.",
            metavar="FILE|table:NAME|N|unknown",
        ),
    ],
    table: Annotated[
        str | None,
        typer.Option(help="Table of SOURCE; with Spark also a path of Parquet files.", metavar="NAME"),
    ] = None,
    where: Annotated[
        str | None,
        typer.Option(help="Condition on a row, in the engine's SQL; never made from the private rows.", metavar="SQL"),
    ] = None,
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
    delta: Annotated[float, typer.Option(parser=number, help="Allowed failure probability.", metavar="NUMBER")] = 0.0,
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
    ordered: Annotated[bool, typer.Option("--ordered", help="Make the order of the answer mean something.")] = False,
    seed: Annotated[
        int | None, typer.Option(parser=whole_number, help="For tests: reproducible, not secure.", metavar="N")
    ] = None,
    ledger: Annotated[
        str | None,
        typer.Option(
            help="Charge the release to this ledger first; a file or URL.", envvar="DPSELECT_LEDGER", metavar="PLACE"
        ),
    ] = None,
    dataset: Annotated[str | None, typer.Option(help="Data set of the ledger.", metavar="NAME")] = None,
    purpose: Annotated[str, typer.Option(help="What the release is for; kept in the ledger.", metavar="TEXT")] = "",
    form: Annotated[Format | None, typer.Option("--format", help="Default: table, or what OUTPUT's name says.")] = None,
    output: Annotated[
        Path | None, typer.Option(help="Write the result there instead of to standard output.", metavar="FILE")
    ] = None,
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
    check_output(output, [Path(source), Path(domain), Path((ledger or "").removeprefix("sqlite:///"))])
    with _notes(), progress_bar("Counting people per item") as progress:
        release = dpselect.top(
            source,
            item=item,
            person=person,
            k=k,
            epsilon=epsilon,
            delta=delta,
            domain=_domain(domain),
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
    _note_json(source)
    note_seed(release)
    publish(release_text(release, chosen_format(form, output)), output)


@contextlib.contextmanager
def _notes() -> Iterator[None]:
    """Show what an engine has to say about itself, such as that it reads twice, on standard error."""
    handler = logging.Handler()
    handler.emit = lambda record: note(record.getMessage())  # type: ignore[method-assign]
    log = logging.getLogger("dpselect")
    log.addHandler(handler)
    try:
        yield
    finally:
        log.removeHandler(handler)


def _note_json(source: str) -> None:
    """Say of every JSON file, whatever is in it, what cannot be told without looking at people's rows."""
    if {".json", ".jsonl", ".ndjson"} & {suffix.lower() for suffix in Path(source).suffixes[-2:]}:
        note(
            "JSON has no header, so a misspelt field cannot be noticed: the answer is then as random as that of an "
            "empty table. Check the spelling of --item and --person."
        )


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
