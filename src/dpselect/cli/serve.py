"""`dpselect serve`: multi-selection over HTTP, and the page that sends signals."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

import typer

import dpselect
from dpselect.cli.multiselect import AnswerCount, Grid
from dpselect.cli.options import examples, number, whole_number
from dpselect.cli.output import note

SERVE_EXAMPLES = examples(
    "dpselect serve --port 8000",
    "dpselect serve trains.csv --position hour --circumference 24 -k 2",
    "dpselect serve films.csv --features action,romance,length",
    title="Examples; the files are yours:",
)


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
    circumference: Annotated[
        float | None,
        typer.Option(parser=number, help="Serve positions on a ring of this length.", metavar="NUMBER"),
    ] = None,
    features: Annotated[
        str | None,
        typer.Option(help="Serve feature vectors from these columns, separated by commas.", metavar="COLUMNS"),
    ] = None,
    noise: Annotated[
        str, typer.Option(help="With --features: noise of the clients, laplace or gaussian.", metavar="NAME")
    ] = "laplace",
    delta: Annotated[
        float, typer.Option(parser=number, help="With --noise gaussian: delta of the clients.", metavar="NUMBER")
    ] = 0.0,
    k: AnswerCount = 5,
    epsilon: Annotated[
        float | None,
        typer.Option(
            parser=number, help="Epsilon per unit of distance. Default: 1, for the coast 0.2.", metavar="NUMBER"
        ),
    ] = None,
    grid: Grid = None,
    unit: Annotated[str, typer.Option(help="Unit of distances.", metavar="TEXT")] = "unit",
    host: Annotated[str, typer.Option(help="Address to listen on.", metavar="HOST")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(parser=whole_number, help="Port to listen on; 0 takes a free one.", metavar="N")
    ] = 8000,
) -> None:
    """Answer noisy signals over HTTP, and show the page that sends them.

    Without a file it serves a generated coast of a million places. Requests
    are not logged. Stop it with Ctrl-C. The page shows catalogues on a line.
    """
    from dpselect.service import coast, run

    if not isinstance(port, int) or not 0 <= port < 65536:
        raise dpselect.InvalidInput("port", port, "must be a whole number from 0 to 65535")
    if features is None and (noise != "laplace" or delta):
        raise dpselect.InvalidInput("features", None, "must name columns if --noise or --delta is given")
    chosen: dict[str, Any] = {} if epsilon is None else {"epsilon": epsilon}
    if catalogue is None:
        for option, given in (("circumference", circumference), ("features", features)):
            if given is not None:
                raise dpselect.InvalidInput(option, given, "must come with a FILE of results")
        offers: dict[str, Any] = {name or "coast": coast(k=k, grid=grid, **chosen)}
    else:
        shared = {"k": k, "unit": unit, "title": Path(catalogue).stem, **chosen}
        if features is not None:
            if circumference is not None:
                raise dpselect.InvalidInput("circumference", circumference, "must be left out with --features")
            offer = _vectors_in_file(
                catalogue, features.split(","), item, **shared, grid=grid, noise=noise, delta=delta
            )
        else:
            offer = _positions_in_file(catalogue, position, item, circumference, grid, **shared)
        offers = {name or Path(catalogue).stem.split(".")[0]: offer}
    run(offers, host=host, port=port, ready=lambda address: _announce(address, offers))


def _announce(address: str, offers: dict[str, Any]) -> None:
    for name, offer in offers.items():
        note(f"serving {len(offer):,} results as {address}v1/multiselect/{quote(name)}")
    note(f"the page is at {address}; stop with Ctrl-C")


def _positions_in_file(
    path: str, position: str, item: str, circumference: float | None, grid: float | None, **shared: Any
) -> Any:
    """Return the offer of results on a line, or on a ring of this circumference."""
    from dpselect.multiselect import Catalogue
    from dpselect.service import Offer, RingOffer

    numbers, items = _read(path, [position], item, "--position")
    results = Catalogue(numbers[0], items)
    if circumference is None:
        return Offer(results, grid=grid, **shared)
    if grid is not None:
        raise dpselect.InvalidInput("grid", grid, "must be left out on a ring, which has places")
    return RingOffer(results, circumference=circumference, **shared)


def _vectors_in_file(path: str, features: list[str], item: str, **shared: Any) -> Any:
    """Return the offer of results with a feature vector from these columns."""
    import numpy as np

    from dpselect.service import VectorOffer

    columns, items = _read(path, features, item, "--features")
    return VectorOffer(np.stack(columns, axis=1), items, search_dimensions=min(2, len(features)), **shared)


def _read(path: str, numbers: list[str], item: str, option: str) -> tuple[list[Any], list[Any] | None]:
    """Return columns of numbers, and the items; without a column of items the results are numbered."""
    from dpselect.sources import read_columns

    table = read_columns(
        path,
        [*numbers, item],
        numbers=numbers,
        optional=[item],
        argument="catalogue",
        advice=f"name another column with {option}",
    )
    items = table[item].to_pylist() if item in table.column_names else None
    return [table[name].to_numpy() for name in numbers], items
