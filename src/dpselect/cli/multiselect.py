"""`dpselect multiselect`: the best answers to a noisy signal on a line and on a ring, and their cost."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

import dpselect
from dpselect.cli.options import ResultFormat, examples, number, whole_number
from dpselect.cli.output import Format, as_csv, as_json, as_text, publish

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


@multiselect_commands.callback(epilog=examples("dpselect multiselect offsets -k 5 --epsilon 0.5"))
def multiselect_command() -> None:
    """Recommend without seeing the user: a noisy signal, k answers, a private choice."""


@multiselect_commands.command(
    "offsets",
    epilog=examples(
        "dpselect multiselect offsets -k 5 --epsilon 0.5",
        "dpselect multiselect offsets -k 5 --epsilon 0.5 --privacy exponential \\",
        "    --threshold 10 --grid 0.25",
    ),
)
def offsets_command(
    k: AnswerCount,
    epsilon: EpsilonPerDistance,
    disutility: Disutility = "linear",
    privacy: Annotated[
        str | None,
        typer.Option(
            help="Bound on the privacy loss at distance t, with slope epsilon at 0: linear, quadratic or exponential.",
            metavar="NAME",
        ),
    ] = None,
    threshold: Annotated[
        float | None,
        typer.Option(
            parser=number, help="With --privacy: distance beyond which nothing is required.", metavar="NUMBER"
        ),
    ] = None,
    grid: Annotated[
        float | None,
        typer.Option(parser=number, help="With --privacy: step of the grid on which signals lie.", metavar="NUMBER"),
    ] = None,
    plot: Plot = None,
    form: ResultFormat = Format.table,
) -> None:
    """Show where the best k answers to a signal lie, relative to the signal.

    With --privacy the loss is bounded by another function of the distance
    than epsilon times it, and the noise has the largest rate that keeps it.
    """
    if plot is not None:
        dpselect.forecast.check_plot(plot)
    promise = _promise(privacy, epsilon, threshold, grid)
    if promise is not None:
        epsilon = promise["rate"]
    answers = dpselect.multiselect.best_answers(k, epsilon, disutility)
    publish(_offsets_text(answers, promise, form), None)
    if plot is not None:
        saved = answers.single / answers.cost
        title = f"The best {k} answers to a signal cost {saved:.3g} times less than one (epsilon = {epsilon:g})"
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
        saved = found.parts[0].theory / found.parts[-1].theory
        title = f"{k} answers cost {saved:.3g} times less than one ({disutility}, epsilon = {epsilon:g})"
        dpselect.forecast.write_plot(plot, found, title)


@multiselect_commands.command("quantiles", epilog=examples("dpselect multiselect quantiles -k 5 --noise gaussian:2.5"))
def quantiles_command(
    k: AnswerCount,
    noise: Annotated[
        str,
        typer.Option(
            help="Noise that users add: laplace, gaussian, logistic or secant, as NAME or NAME:SCALE.", metavar="NOISE"
        ),
    ],
    disutility: Disutility = "linear",
    plot: Plot = None,
    form: ResultFormat = Format.table,
) -> None:
    """Show k answers at the quantiles of a noise that users add, and their cost.

    For servers whose users do not send Laplace noise; for those who do, the
    answers of `offsets` are better. The clients of this package send neither.
    """
    if plot is not None:
        dpselect.forecast.check_plot(plot)
    answers = dpselect.multiselect.quantile_answers(k, noise, disutility)
    publish(_quantiles_text(answers, form), None)
    if plot is not None:
        dpselect.forecast.write_plot(plot, answers, f"{k} answers at the quantiles of {noise} noise")


@multiselect_commands.command("ring", epilog=examples("dpselect multiselect ring -k 2 --epsilon 0.375"))
def ring_command(
    k: AnswerCount,
    epsilon: EpsilonPerDistance,
    circumference: Annotated[
        float,
        typer.Option(parser=number, help="Length of the ring. Default: 2 pi.", metavar="NUMBER", show_default=False),
    ] = math.tau,
    places: Annotated[int, typer.Option(parser=whole_number, help="Number of places of the ring.", metavar="N")] = 240,
    disutility: Disutility = "linear",
    plot: Plot = None,
    form: ResultFormat = Format.table,
) -> None:
    """Show the best noise on a ring beside Laplace noise, each with its best k answers.

    Hours of the day and directions lie on a ring. The best noise there is the
    solution of a linear program; k is at most 4.
    """
    if plot is not None:
        dpselect.forecast.check_plot(plot)
    found = dpselect.multiselect.compare_rings(
        k, epsilon, circumference=circumference, places=places, disutility=disutility
    )
    publish(_ring_text(found, form), None)
    if plot is not None:
        more = max(0.0, 100 * (found.laplace.cost / found.optimal.cost - 1))
        title = f"{k} answers on a ring at epsilon = {epsilon:g}: Laplace noise costs {more:.2g}% more"
        dpselect.forecast.write_plot(plot, found, title)


def _promise(privacy: str | None, epsilon: float, threshold: float | None, grid: float | None) -> dict[str, Any] | None:
    """Return the promise of --privacy as plain data, with the rate of the noise that keeps it."""
    if privacy is None:
        for name, given in (("threshold", threshold), ("grid", grid)):
            if given is not None:
                raise dpselect.InvalidInput(name, given, "must be left out; or name the promise with --privacy")
        return None
    wanted = dpselect.multiselect.Geographic.named(privacy, epsilon, math.inf if threshold is None else threshold)
    return {
        "name": privacy,
        "loss": wanted.formula,
        "slope": wanted.slope,
        "threshold": threshold,
        "grid": grid,
        "rate": wanted.rate(grid),
    }


def _offsets_text(answers: Any, promise: dict[str, Any] | None, form: Format) -> str:
    if form is Format.json:
        return as_json({**answers.to_dict(), **({} if promise is None else {"privacy": promise})})
    if form is Format.csv:
        return as_csv([{"answer": place, "offset": offset} for place, offset in enumerate(answers.offsets, start=1)])
    lines = [
        f"Expected cost of the best of them: {answers.cost:.4g} ({answers.disutility}). "
        f"A single answer costs {answers.single:.4g}."
    ]
    if promise is not None:
        reach = "" if promise["threshold"] is None else f" up to t = {promise['threshold']:g}, and is unbounded beyond"
        where = "without a grid" if promise["grid"] is None else f"on a grid of {promise['grid']:g}"
        lines.append(
            f"The privacy loss at distance t is at most {promise['loss']}{reach}. "
            f"Noise of rate {promise['rate']:.4g} {where} keeps this."
        )
    title = f"The best {answers.k} answers to a signal at epsilon = {answers.epsilon:.4g}"
    return as_text(Text(title, style="bold"), _offsets_table(answers.offsets), *(Text(line) for line in lines))


def _quantiles_text(answers: Any, form: Format) -> str:
    if form is Format.json:
        return as_json(answers.to_dict())
    if form is Format.csv:
        return as_csv([{"answer": place, "offset": offset} for place, offset in enumerate(answers.offsets, start=1)])
    bound = "" if answers.bound is None else f" It is at most {answers.bound:.4g} by theorem 24."
    privacy = (
        "This noise has no privacy loss per unit of distance: its guarantee needs a delta."
        if answers.rate is None
        else f"Privacy loss of this noise: {answers.rate:.4g} per unit of distance."
    )
    return as_text(
        Text(
            f"{answers.k} answers at the quantiles of {answers.noise.name} noise of scale {answers.noise.scale:g}",
            style="bold",
        ),
        _offsets_table(answers.offsets),
        Text(
            f"Expected cost of the best of them: {answers.cost:.4g} ({answers.disutility}).{bound} "
            f"A single answer costs {answers.single:.4g}."
        ),
        Text(privacy),
    )


def _ring_text(found: Any, form: Format) -> str:
    data = found.to_dict()
    if form is Format.json:
        return as_json(data)
    if form is Format.csv:
        return as_csv(
            [
                {"noise": noise["noise"], "cost": noise["cost"], "answer": place, "offset": offset}
                for noise in data["noises"]
                for place, offset in enumerate(noise["offsets"], start=1)
            ]
        )
    table = Table()
    table.add_column("noise")
    table.add_column("answers, from the signal", justify="right")
    table.add_column("expected cost", justify="right")
    for noise in data["noises"]:
        offsets = ", ".join(_shown(offset) for offset in noise["offsets"])
        table.add_row(noise["noise"], offsets, f"{noise['cost']:.4g}")
    best, laplace = (noise["cost"] for noise in data["noises"])
    return as_text(
        Text(
            f"The best {data['k']} answers on a ring of length {data['circumference']:.4g} at epsilon = "
            f"{data['epsilon']:g}",
            style="bold",
        ),
        table,
        Text(
            f"Laplace noise costs {max(0.0, 100 * (laplace / best - 1)):.2g}% more than the best noise "
            f"({data['disutility']}, {data['places']} places)."
        ),
    )


def _offsets_table(offsets: Sequence[float]) -> Table:
    table = Table()
    table.add_column("answer", justify="right")
    table.add_column("offset from the signal", justify="right")
    for place, offset in enumerate(offsets, start=1):
        table.add_row(str(place), _shown(offset))
    return table


def _shown(offset: float) -> str:
    return f"{offset:.4f}" if 0.001 <= abs(offset) < 1e6 or offset == 0 else f"{offset:.4g}"


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
