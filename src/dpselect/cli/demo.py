"""`dpselect demo`: the whole path on an invented example."""

from __future__ import annotations

import contextlib
import shlex
import tempfile
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

import dpselect
from dpselect.cli.demo_data import FILMS, VIEWERS, DemoData
from dpselect.cli.numbers import number, whole_number
from dpselect.cli.output import Format, as_csv, as_json, as_text, facts, note, note_seed, publish
from dpselect.cli.progress import progress_bar


def demo_command(
    out: Annotated[Path | None, typer.Option(help="Keep the example's files in this folder.", metavar="FOLDER")] = None,
    rows: Annotated[
        int, typer.Option(parser=whole_number, help="How many viewings to invent.", metavar="N")
    ] = 1_000_000,
    k: Annotated[int, typer.Option("-k", parser=whole_number, help="How many films to publish.", metavar="N")] = 10,
    epsilon: Annotated[
        float,
        typer.Option(parser=number, help="Total privacy cost; smaller is more private.", metavar="NUMBER"),
    ] = 1.0,
    seed: Annotated[
        int | None, typer.Option(parser=whole_number, help="For tests: reproducible, not secure.", metavar="N")
    ] = None,
    form: Annotated[Format, typer.Option("--format", help="How to show the answer.")] = Format.table,
    force: Annotated[bool, typer.Option("--force", help="Overwrite files that the demo did not make.")] = False,
) -> None:
    """Invent viewers and films, publish the private top 10, and show it beside the true one.

    Example, which keeps its files in the folder demo:

    [bold]dpselect demo --out demo[/bold]
    """
    if not isinstance(rows, int) or rows < 1:
        raise dpselect.InvalidInput("rows", rows, "a whole number of at least 1 is needed")
    with contextlib.ExitStack() as stack:
        folder = out if out is not None else Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="dpselect-")))
        data = DemoData.generate(rows)
        views, films = _write(data, folder, force)
        progress = stack.enter_context(progress_bar("Counting viewers per film"))
        release = dpselect.top(
            views, item="film", person="viewer", k=k, epsilon=epsilon, domain=films, seed=seed, progress=progress
        )
    note_seed(release)
    truth = data.true_top(k)
    publish(_demo_text(release, truth, rows, form, out), None)
    if out is not None:
        note(f"the example's files are {views} (private rows) and {films} (public list)")


def _write(data: DemoData, folder: Path, force: bool) -> tuple[Path, Path]:
    strangers: list[str] = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not force:
            strangers = data.strangers(folder)
        if not strangers:
            return data.write(folder)
    except (OSError, ValueError):
        pass
    if strangers:
        raise dpselect.InvalidInput(
            "out",
            str(folder),
            f"it holds {' and '.join(strangers)}, not made by the demo; name another folder, or overwrite with --force",
        )
    raise dpselect.InvalidInput("out", str(folder), "a folder with permission to write is needed")


def _demo_text(
    release: dpselect.Release, truth: list[tuple[str, int]], rows: int, form: Format, out: Path | None
) -> str:
    true_items = [title for title, _ in truth]
    found = sum(item in true_items for item in release.items)
    if form is Format.json:
        return as_json({**release.to_dict(), "true_items": true_items, "found": found})
    if form is Format.csv:
        return as_csv([{"item": item, "in_true_top": item in true_items} for item in release.items])
    return as_text(
        f"{rows:,} viewings by {VIEWERS:,} invented viewers; {FILMS:,} films, whose titles are public.\n",
        _comparison(release, truth),
        f"[bold]{found} of {release.k}[/bold] films of the true top {release.k} were found.\n",
        facts(release),
        "",
        "[bold]Protected[/bold]: every viewer, with everything they watched. Whoever reads the private answer can "
        "hardly tell whether a given viewer was in the data at all. "
        "[bold]Not protected[/bold]: the list of films, the name of the file, and what is true of viewers in general. "
        "The true top is shown only because these viewers are invented.\n",
        *_next_steps(release, out or Path("demo"), kept=out is not None),
    )


def _comparison(release: dpselect.Release, truth: list[tuple[str, int]]) -> Table:
    table = Table()
    table.add_column("private answer\n(in random order)", overflow="fold")
    table.add_column(f"true top {release.k}\n(secret)", overflow="fold")
    table.add_column("viewers\n(secret)", justify="right")
    table.add_column("found", justify="center", vertical="bottom")
    for item, (title, viewers) in zip(release.items, truth, strict=True):
        table.add_row(Text(str(item)), Text(title), f"{viewers:,}", "yes" if title in release.items else "no")
    return table


def _next_steps(release: dpselect.Release, folder: Path, *, kept: bool) -> list[Any]:
    views, films = folder / "views.parquet", folder / "films.csv"
    epsilon = repr(release.guarantee.epsilon).removesuffix(".0")
    command = (
        f"dpselect top {shlex.quote(str(views))} --item film --person viewer \\\n"
        f"      -k {release.k} --epsilon {epsilon} --domain {shlex.quote(str(films))}"
    )
    python = (
        f'dpselect.top({str(views)!r}, item="film", person="viewer",\n'
        f"               k={release.k}, epsilon={epsilon}, domain={str(films)!r})"
    )
    first = [] if kept else [Text("  dpselect demo --out demo")]
    return [Text("Next, type", style="bold"), *first, Text(f"  {command}"), Text("or, in Python"), Text(f"  {python}")]
