"""`dpselect multiselect`: where the answers to a noisy signal should lie, and what they cost."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from dpselect.cli.numbers import number, whole_number
from dpselect.cli.output import Format, as_csv, as_json, as_text, publish
from dpselect.cli.serve import serve_command

multiselect_commands = typer.Typer(no_args_is_help=True, rich_markup_mode="rich", add_completion=False)
multiselect_commands.command("serve")(serve_command)

Answers = Annotated[int, typer.Option("-k", parser=whole_number, help="How many answers to a signal.", metavar="N")]
Epsilon = Annotated[float, typer.Option(parser=number, help="Privacy per unit of distance.", metavar="NUMBER")]
Shape = Annotated[str, typer.Option(help="What distance costs: linear, square, root or capped:LIMIT.", metavar="NAME")]
Plot = Annotated[str | None, typer.Option(help="Draw it: .png, .svg or .html.", metavar="FILE")]
Form = Annotated[Format, typer.Option("--format", help="How to show it.")]


@multiselect_commands.callback()
def multiselect_command() -> None:
    """Recommend without seeing the user: a noisy signal, k answers, a private choice.

    For example:

    [bold]dpselect multiselect offsets -k 5 --epsilon 0.5[/bold]
    """


@multiselect_commands.command("offsets")
def offsets_command(
    k: Answers,
    epsilon: Epsilon,
    disutility: Shape = "linear",
    plot: Plot = None,
    form: Form = Format.table,
) -> None:
    """Say where the k answers to a signal should lie, counted from it.

    For example:

    [bold]dpselect multiselect offsets -k 5 --epsilon 0.5[/bold]
    """
    from dpselect.forecast import check_plot, write_plot
    from dpselect.multiselect import best_answers

    if plot is not None:
        check_plot(plot)
    answers = best_answers(k, epsilon, disutility)
    publish(_offsets_text(answers, form), None)
    if plot is not None:
        write_plot(plot, answers, f"The best {k} answers to a signal at epsilon = {epsilon:g}")


@multiselect_commands.command("simulate")
def simulate_command(
    k: Answers,
    epsilon: Epsilon,
    disutility: Shape = "linear",
    trials: Annotated[int, typer.Option(parser=whole_number, help="How many users to try.", metavar="N")] = 100_000,
    grid: Annotated[
        float | None, typer.Option(parser=number, help="Step of the grid that signals lie on.", metavar="NUMBER")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(parser=whole_number, help="For the same draws again.", metavar="N")
    ] = None,
    plot: Plot = None,
    form: Form = Format.table,
) -> None:
    """Try many users: the cost of the best of up to k answers, met and computed.

    For example:

    [bold]dpselect multiselect simulate -k 8 --epsilon 0.5[/bold]
    """
    from dpselect.forecast import check_plot, write_plot
    from dpselect.multiselect import simulate_up_to

    if plot is not None:
        check_plot(plot)
    found = simulate_up_to(k, epsilon, disutility, trials=trials, grid=grid, seed=seed)
    publish(_simulations_text(found, form), None)
    if plot is not None:
        write_plot(plot, found, f"Cost against the number of answers, {disutility}, epsilon = {epsilon:g}")


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
        Text(f"{first.trials:,} users each. Theory is for noise without a grid."),
    )
