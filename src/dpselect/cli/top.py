"""`dpselect top`: the private top k of a file of people's rows."""

from __future__ import annotations

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
    file: Annotated[str, typer.Argument(metavar="FILE", help="CSV, JSON lines or Parquet; .gz and .zst are fine.")],
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
            help="The possible items, which are public: a file that lists them, or how many there are.",
            metavar="FILE|N",
        ),
    ],
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
    check_output(output, [Path(file), Path(domain)])
    with progress_bar("Counting people per item") as progress:
        release = dpselect.top(
            file,
            item=item,
            person=person,
            k=k,
            epsilon=epsilon,
            delta=delta,
            domain=_domain(domain),
            mechanism=_mechanism(mechanism, noise, k, epsilon, delta),
            ordered=ordered,
            values=values,
            protects=protects,
            seed=seed,
            ledger=ledger,
            dataset=dataset,
            purpose=purpose,
            progress=progress,
        )
    _note_json(file)
    note_seed(release)
    publish(release_text(release, chosen_format(form, output)), output)


def _note_json(file: str) -> None:
    """Say of every JSON file, whatever is in it, what cannot be told without looking at people's rows."""
    if {".json", ".jsonl", ".ndjson"} & {suffix.lower() for suffix in Path(file).suffixes[-2:]}:
        note(
            "JSON has no header, so a misspelt field cannot be noticed: the answer is then as random as that of an "
            "empty table. Check the spelling of --item and --person."
        )


def _domain(text: str) -> Any:
    """Understand --domain: the word unknown, a whole number, or a path."""
    if text == "unknown":
        return dpselect.UNKNOWN
    try:
        return int(text)
    except ValueError:
        return Path(text)


def _mechanism(name: str, noise: str | None, k: int, epsilon: float, delta: float) -> Any:
    """Return the name, or with a noise the mechanism itself, which gets the delta that it can use."""
    if noise is None:
        return name
    noisy = [kind for kind in _KINDS if hasattr(_KINDS[kind], "noise")]
    if name not in noisy:
        raise dpselect.InvalidInput("noise", noise, "name a mechanism that has it: --mechanism " + " or ".join(noisy))
    kind = _KINDS[name]
    usable = hasattr(kind, "delta") and noise in getattr(kind, "noises_with_delta", (noise,))
    return kind(k=k, epsilon=epsilon, noise=noise, **({"delta": delta} if usable else {}))
