"""`dpselect serve`: the HTTP service of multi-selection and its page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

import typer

import dpselect
from dpselect.cli.numbers import number, whole_number
from dpselect.cli.output import note


def serve_command(
    catalogue: Annotated[
        str | None,
        typer.Argument(help="CSV, JSON lines or Parquet with a position for each result.", metavar="FILE"),
    ] = None,
    position: Annotated[str, typer.Option(help="Column of positions.", metavar="COLUMN")] = "position",
    item: Annotated[str, typer.Option(help="Column of what is there.", metavar="COLUMN")] = "item",
    name: Annotated[
        str | None, typer.Option(help="Name in the address; usually that of the file.", metavar="NAME")
    ] = None,
    k: Annotated[int, typer.Option("-k", parser=whole_number, help="Answers to a signal.", metavar="N")] = 5,
    epsilon: Annotated[
        float, typer.Option(parser=number, help="Usual epsilon per unit of distance.", metavar="NUMBER")
    ] = 1.0,
    grid: Annotated[
        float | None, typer.Option(parser=number, help="Step of the grid that signals lie on.", metavar="NUMBER")
    ] = None,
    unit: Annotated[str, typer.Option(help="What distances are measured in.", metavar="TEXT")] = "unit",
    host: Annotated[str, typer.Option(help="Address to listen on.", metavar="HOST")] = "127.0.0.1",
    port: Annotated[int, typer.Option(parser=whole_number, help="Port; 0 takes a free one.", metavar="N")] = 8000,
) -> None:
    """Answer noisy signals over HTTP, and show the page that sends them.

    Without a file it serves an invented coast of a million places. Nothing of
    what is asked is logged. Stop it with Ctrl-C.

    For example:

    [bold]dpselect serve --port 8000[/bold]
    """
    from dpselect.service import Offer, run
    from dpselect.service.offer import coast

    if catalogue is None:
        offers = {name or "coast": coast(k=k, epsilon=epsilon, grid=grid)}
    else:
        from dpselect.cli.catalogue_file import catalogue_in_file

        results = catalogue_in_file(catalogue, position, item)
        offer = Offer(results, k=k, epsilon=epsilon, grid=grid, unit=unit, title=Path(catalogue).stem)
        offers = {name or Path(catalogue).stem.split(".")[0]: offer}
    run(offers, host=host, port=_port(port), ready=lambda address: _ready(address, offers))


def _port(given: Any) -> int:
    if isinstance(given, int) and 0 <= given < 65536:
        return given
    raise dpselect.InvalidInput("port", given, "a whole number from 0 to 65535 is needed")


def _ready(address: str, offers: dict[str, Any]) -> None:
    for name, offer in offers.items():
        note(f"serving {len(offer):,} results as {address}v1/multiselect/{quote(name)}")
    note(f"the page is at {address}; stop with Ctrl-C")
