"""`dpselect reproduce`: a paper's figures and tables, computed again."""

from __future__ import annotations

import enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpselect.cli.options import ResultFormat, examples
from dpselect.cli.output import Format, as_csv, as_json, note, progress_bar, publish

if TYPE_CHECKING:
    from dpselect.reproduce import Outcome

EXAMPLES = examples(
    "dpselect reproduce canonical --figure 1 --quick --data data",
    title="Example, with the data sets in the folder data:",
)


class PlotFormat(enum.StrEnum):
    """The values of --plot-format."""

    svg = "svg"
    png = "png"


def reproduce_command(
    paper: Annotated[
        str,
        typer.Argument(
            help="One of canonical, joint, oneshot, restricted, multi-selection.",
            metavar="PAPER",
            show_default=False,
        ),
    ],
    data: Annotated[
        Path | None,
        typer.Option(
            help="Folder with the data sets. Not needed for oneshot and multi-selection.",
            metavar="FOLDER",
            show_default=False,
        ),
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for pictures, numbers and verdicts.", metavar="FOLDER")] = Path(
        "reproduced"
    ),
    figure: Annotated[
        str | None,
        typer.Option(
            help="Compute only this figure, table or section, such as 4, table-1 or 7.3. Default: all.",
            metavar="NAME",
            show_default=False,
        ),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Compute fewer points and draws; about a minute per paper.")
    ] = False,
    plot_format: Annotated[PlotFormat, typer.Option(help="Format of the pictures.")] = PlotFormat.svg,
    form: ResultFormat = Format.table,
) -> None:
    """Compute the figures and tables of a paper again, and show whether its claims hold.

    Each prints the paper's claim, our figure and the verdict in one line, and
    writes a picture, its numbers as CSV and the verdict to FOLDER/PAPER.
    An interrupted run continues where it stopped if the same command is run
    again.
    """
    from dpselect.reproduce import reproduce

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
            note("finished points are kept; run the same command again to continue")
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
