"""`dpselect multiselect` and `dpselect serve`: the best answers to a noisy signal, their cost, and the HTTP service."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

import typer
from rich.table import Table
from rich.text import Text

import dpselect
from dpselect.cli.options import examples, number, whole_number
from dpselect.cli.output import Format, as_csv, as_json, as_text, note, publish

SERVE_EXAMPLES = examples("dpselect serve --port 8000")

multiselect_commands = typer.Typer(no_args_is_help=True, rich_markup_mode="rich", add_completion=False)

AnswerCount = Annotated[
    int, typer.Option("-k", parser=whole_number, help="Number of answers to a signal.", metavar="N")
]
EpsilonPerDistance = Annotated[
    float, typer.Option(parser=number, help="Epsilon per unit of distance.", metavar="NUMBER")
]
Disutility = Annotated[
    str, typer.Option(help="Cost of a distance: linear, square, root or capped:LIMIT.", metavar="NAME")
]
Grid = Annotated[
    float | None,
    typer.Option(parser=number, help="Step of the grid on which signals lie.", metavar="NUMBER"),
]
Plot = Annotated[str | None, typer.Option(help="Write a plot: .png, .svg or .html.", metavar="FILE")]
ResultFormat = Annotated[Format, typer.Option("--format", help="Format of the result.")]


@multiselect_commands.callback(epilog=examples("dpselect multiselect offsets -k 5 --epsilon 0.5"))
def multiselect_command() -> None:
    """Recommend without seeing the user: a noisy signal, k answers, a private choice."""


@multiselect_commands.command("offsets", epilog=examples("dpselect multiselect offsets -k 5 --epsilon 0.5"))
def offsets_command(
    k: AnswerCount,
    epsilon: EpsilonPerDistance,
    disutility: Disutility = "linear",
    plot: Plot = None,
    form: ResultFormat = Format.table,
) -> None:
    """Show where the best k answers to a signal lie, relative to the signal."""
    if plot is not None:
        dpselect.forecast.check_plot(plot)
    answers = dpselect.multiselect.best_answers(k, epsilon, disutility)
    publish(_offsets_text(answers, form), None)
    if plot is not None:
        title = f"The best {k} answers to a signal at epsilon = {epsilon:g}"
        dpselect.forecast.write_plot(plot, answers, title)


@multiselect_commands.command("simulate", epilog=examples("dpselect multiselect simulate -k 8 --epsilon 0.5"))
def simulate_command(
    k: AnswerCount,
    epsilon: EpsilonPerDistance,
    disutility: Disutility = "linear",
    trials: Annotated[int, typer.Option(parser=whole_number, help="Number of simulated users.", metavar="N")] = 100_000,
    grid: Grid = None,
    seed: Annotated[
        int | None, typer.Option(parser=whole_number, help="Make the simulation reproducible.", metavar="N")
    ] = None,
    plot: Plot = None,
    form: ResultFormat = Format.table,
) -> None:
    """Simulate users and compare the cost of the best of 1 to k answers with theory."""
    if plot is not None:
        dpselect.forecast.check_plot(plot)
    found = dpselect.multiselect.simulate_up_to(k, epsilon, disutility, trials=trials, grid=grid, seed=seed)
    publish(_simulations_text(found, form), None)
    if plot is not None:
        title = f"Cost against the number of answers, {disutility}, epsilon = {epsilon:g}"
        dpselect.forecast.write_plot(plot, found, title)


def _offsets_text(answers: Any, form: Format) -> str:
    if form is Format.json:
        return as_json(answers.to_dict())
    if form is Format.csv:
        return as_csv([{"answer": place, "offset": offset} for place, offset in enumerate(answers.offsets, start=1)])
    table = Table()
    table.add_column("answer", justify="right")
    table.add_column("offset from the signal", justify="right")
    for place, offset in enumerate(answers.offsets, start=1):
        table.add_row(str(place), f"{offset:.4f}" if 0.001 <= abs(offset) < 1e6 or offset == 0 else f"{offset:.4g}")
    return as_text(
        Text(f"The best {answers.k} answers to a signal at epsilon = {answers.epsilon:g}", style="bold"),
        table,
        Text(
            f"Expected cost of the best of them: {answers.cost:.4g} ({answers.disutility}). "
            f"A single answer costs {answers.single:.4g}."
        ),
    )


def _simulations_text(found: Any, form: Format) -> str:
    if form is Format.json:
        return as_json(found.to_dict())
    if form is Format.csv:
        return as_csv([part.to_dict() for part in found.parts])
    table = Table()
    for heading in ("answers", "simulated", "95% interval", "theory"):
        table.add_column(heading, justify="right")
    for part in found.parts:
        table.add_row(str(part.k), f"{part.cost:.4g}", f"{part.low:.4g} to {part.high:.4g}", f"{part.theory:.4g}")
    first = found.parts[0]
    return as_text(
        Text(f"Expected cost of the best answer at epsilon = {first.epsilon:g} ({first.disutility})", style="bold"),
        table,
        Text(f"{first.trials:,} simulated users each. Theory is for noise without a grid."),
    )


@multiselect_commands.command("serve", epilog=SERVE_EXAMPLES)
def serve_command(
    catalogue: Annotated[
        str | None,
        typer.Argument(
            help="CSV, JSON lines or Parquet file with a position for each result. Default: a generated coast.",
            metavar="FILE",
            show_default=False,
        ),
    ] = None,
    position: Annotated[str, typer.Option(help="Column with the positions.", metavar="COLUMN")] = "position",
    item: Annotated[str, typer.Option(help="Column with the results.", metavar="COLUMN")] = "item",
    name: Annotated[
        str | None, typer.Option(help="Name of the catalogue in the URL. Default: that of the file.", metavar="NAME")
    ] = None,
    k: AnswerCount = 5,
    epsilon: EpsilonPerDistance = 1.0,
    grid: Grid = None,
    unit: Annotated[str, typer.Option(help="Unit of distances.", metavar="TEXT")] = "unit",
    host: Annotated[str, typer.Option(help="Address to listen on.", metavar="HOST")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(parser=whole_number, help="Port to listen on; 0 takes a free one.", metavar="N")
    ] = 8000,
) -> None:
    """Answer noisy signals over HTTP, and show the page that sends them.

    Without a file it serves a generated coast of a million places. Requests
    are not logged. Stop it with Ctrl-C.
    """
    from dpselect.service import Offer, coast, run

    if not isinstance(port, int) or not 0 <= port < 65536:
        raise dpselect.InvalidInput("port", port, "must be a whole number from 0 to 65535")
    if catalogue is None:
        offers = {name or "coast": coast(k=k, epsilon=epsilon, grid=grid)}
    else:
        results = _catalogue_in_file(catalogue, position, item)
        offer = Offer(results, k=k, epsilon=epsilon, grid=grid, unit=unit, title=Path(catalogue).stem)
        offers = {name or Path(catalogue).stem.split(".")[0]: offer}
    run(offers, host=host, port=port, ready=lambda address: _announce(address, offers))


def _announce(address: str, offers: dict[str, Any]) -> None:
    for name, offer in offers.items():
        note(f"serving {len(offer):,} results as {address}v1/multiselect/{quote(name)}")
    note(f"the page is at {address}; stop with Ctrl-C")


def _catalogue_in_file(path: str, position: str, item: str) -> Any:
    """Return the results in a file; without a column of items they are numbered."""
    from dpselect.multiselect import Catalogue
    from dpselect.sources import read_columns

    table = read_columns(
        path,
        [position, item],
        numbers=[position],
        optional=[item],
        argument="catalogue",
        advice="name another column with --position",
    )
    items = table[item].to_pylist() if item in table.column_names else None
    return Catalogue(table[position].to_numpy(), items)
