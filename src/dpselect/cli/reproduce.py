"""`dpselect reproduce`: a paper's figures and tables, computed again."""

from __future__ import annotations

import enum
from pathlib import Path
from typing import Annotated

import typer

from dpselect.cli.output import Format, as_csv, as_json, note, publish
from dpselect.cli.progress import progress_bar
from dpselect.reproduce import Outcome, reproduce


class PlotFormat(enum.StrEnum):
    """The values of --plot-format."""

    svg = "svg"
    png = "png"


def reproduce_command(
    paper: Annotated[
        str,
        typer.Argument(
            help="canonical, joint, oneshot, restricted or multi-selection.",
            metavar="PAPER",
            show_default=False,
        ),
    ],
    data: Annotated[
        Path | None,
        typer.Option(
            help="The folder with the data sets; oneshot and multi-selection need none.",
            metavar="FOLDER",
            show_default=False,
        ),
    ] = None,
    out: Annotated[Path, typer.Option(help="Where pictures, numbers and verdicts go.", metavar="FOLDER")] = Path(
        "reproduced"
    ),
    figure: Annotated[
        str | None, typer.Option(help="Only this one, as 4 or table-1.", metavar="NAME", show_default=False)
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer points and draws; at most a minute or so.")] = False,
    plot_format: Annotated[PlotFormat, typer.Option(help="The kind of picture.")] = PlotFormat.svg,
    form: Annotated[Format, typer.Option("--format", help="How to show the verdicts.")] = Format.table,
) -> None:
    """Compute the figures and tables of a paper again, and say whether its claims hold.

    Each writes a picture, its numbers as CSV and a paragraph to FOLDER/PAPER. A run that
    was interrupted goes on where it stopped when the same command is given again.

    Example, with the data sets in the folder data:

    [bold]dpselect reproduce canonical --figure 1 --quick --data data[/bold]
    """
    outcomes: list[Outcome] = []
    with progress_bar(f"Computing {paper}") as progress:
        try:
            for outcome in reproduce(
                paper, data=data, out=out, figure=figure, quick=quick, plot_format=plot_format, progress=progress
            ):
                outcomes.append(outcome)
                if form is Format.table:
                    publish(_text(outcome), None)
        except KeyboardInterrupt:
            note("what was computed so far is kept; give the same command again to go on from there")
            raise
    if form is not Format.table:
        publish(_data(outcomes, form), None)


def _text(outcome: Outcome) -> str:
    page = next(path for path in outcome.files if path.suffix == ".md")
    written = ", ".join(path.name for path in outcome.files)
    return f"{page.read_text(encoding='utf-8')}\nWritten to {page.parent}: {written}\n\n"


def _data(outcomes: list[Outcome], form: Format) -> str:
    rows = [outcome.to_dict() for outcome in outcomes]
    if form is Format.json:
        return as_json({"studies": rows})
    return as_csv([{**row, "files": " ".join(row["files"])} for row in rows])
