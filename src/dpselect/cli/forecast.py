"""`dpselect forecast`: how likely the right answer is, for the curator."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

import dpselect
from dpselect.cli.inputs import files_read
from dpselect.cli.numbers import number, whole_number
from dpselect.cli.options import DomainColumn, DomainNoHeader
from dpselect.cli.output import Format, as_csv, as_json, as_text, check_output, note, publish
from dpselect.cli.progress import progress_bar

_SHOWN = (0.01, 0.1, 1.0, 10.0)
"""The epsilons of the table where none is chosen."""


def forecast_command(
    file: Annotated[str, typer.Argument(metavar="FILE", help="Counts: CSV, JSON lines or Parquet.")],
    k: Annotated[int, typer.Option("-k", parser=whole_number, help="How many items to publish.", metavar="N")],
    epsilon: Annotated[
        float | None, typer.Option(parser=number, help="Look closely at this epsilon.", metavar="NUMBER")
    ] = None,
    accuracy: Annotated[
        float, typer.Option(parser=number, help="Wanted probability of exactly the right items.", metavar="NUMBER")
    ] = 0.99,
    count: Annotated[str, typer.Option(help="Column of counts.", metavar="COLUMN")] = "count",
    item: Annotated[str | None, typer.Option(help="FILE holds people's rows: what.", metavar="COLUMN")] = None,
    person: Annotated[str | None, typer.Option(help="FILE holds people's rows: who.", metavar="COLUMN")] = None,
    domain: Annotated[
        str | None, typer.Option(help="The possible items, with --item and --person.", metavar="FILE|N")
    ] = None,
    domain_column: DomainColumn = None,
    domain_no_header: DomainNoHeader = False,
    delta: Annotated[float, typer.Option(parser=number, help="Allowed failure probability.", metavar="NUMBER")] = 0.0,
    ordered: Annotated[bool, typer.Option("--ordered", help="The order of the answer has to be right too.")] = False,
    max_items_per_person: Annotated[
        int | None,
        typer.Option(parser=whole_number, help="Nobody is in more counts; for --ordered --delta.", metavar="N"),
    ] = None,
    draws: Annotated[
        int,
        typer.Option(parser=whole_number, help="Draws for what has no exact form; 0 leaves it out.", metavar="N"),
    ] = 200,
    plot: Annotated[
        str | None, typer.Option(help="Draw success against epsilon: .png, .svg or .html.", metavar="FILE")
    ] = None,
    form: Annotated[Format, typer.Option("--format", help="How to show the forecast.")] = Format.table,
) -> None:
    r"""Say how likely each mechanism is to return exactly the right items.

    For the curator: what is printed depends on the data directly and is [bold]not private[/bold].

    Example, after [bold]dpselect demo --out demo[/bold]:

    [bold]dpselect forecast demo/views.parquet --item film --person viewer [/bold]\
    [bold]    --domain demo/films.csv -k 5 --epsilon 0.1[/bold]
    """
    from dpselect.forecast import check_plot

    if plot is not None:
        check_plot(plot)
        check_output("plot", plot, [Path(file), *files_read(file, domain=domain)])
    if max_items_per_person is not None and item is not None:
        raise dpselect.InvalidInput(
            "max_items_per_person", max_items_per_person, "leave it out with rows: it says how FILE was counted"
        )
    note(dpselect.forecast.WARNING)
    with progress_bar("Computing") as progress:
        scores = _scores(
            file, count, item, person, domain, k, progress, column=domain_column, header=not domain_no_header
        )
        progress(None)
        compared = dpselect.forecast.compare(
            scores,
            k,
            epsilon=epsilon,
            accuracy=accuracy,
            delta=delta,
            ordered=ordered,
            max_items_per_person=max_items_per_person,
            draws=draws,
        )
        progress(None)
        text = _text(compared, form)
        if plot is not None:
            progress(None)
            title = f"Top {compared.k} of {compared.scores.size:,} items"
            dpselect.forecast.write_plot(plot, compared, title)
    publish(text, None)


def _scores(
    file: str,
    count: str,
    item: str | None,
    person: str | None,
    domain: str | None,
    k: int,
    progress: Any,
    *,
    column: str | None,
    header: bool,
) -> dpselect.Scores:
    from dpselect.cli.counts_file import counts_in_file, counts_of_rows

    if item is None and person is None:
        if domain is not None:
            raise dpselect.InvalidInput("domain", domain, "it goes with --item and --person; leave it out for counts")
        if column is not None or not header:
            raise dpselect.InvalidInput("domain", None, "name the file whose column or header is meant")
        return counts_in_file("file", file, count)
    for argument, given in (("item", item), ("person", person), ("domain", domain)):
        if given is None:
            raise dpselect.InvalidInput(argument, None, "people's rows need --item, --person and --domain")
    return counts_of_rows(
        file, str(item), str(person), str(domain), k, progress, domain_column=column, domain_header=header
    )


def _text(compared: Any, form: Format) -> str:
    if form is Format.json:
        return as_json(compared.to_dict())
    if form is Format.csv:
        return as_csv(_rows(compared))
    return as_text(*(_closely(compared) if compared.epsilon else _overview(compared)))


def _rows(compared: Any) -> list[dict[str, Any]]:
    """Return a row for each mechanism, with each figure and its interval where an epsilon was chosen."""
    rows = []
    for place, need in enumerate(compared.needs):
        row = {"label": need.label, "epsilon_needed": need.to_dict()["epsilon"]}
        if compared.forecasts:
            for name, figure in compared.forecasts[place].figures().items():
                row |= {
                    name: "" if figure is None else figure.value,
                    f"{name}_low": "" if figure is None else figure.low,
                    f"{name}_high": "" if figure is None else figure.high,
                }
        rows.append(row)
    return rows


def _overview(compared: Any) -> list[Any]:
    from dpselect.forecast import LIMIT_WORDS, shown_epsilon, shown_limit

    table = Table(pad_edge=False)
    table.add_column("mechanism", no_wrap=True)
    for epsilon in _SHOWN:
        table.add_column(f"ε = {epsilon:g}", justify="right", no_wrap=True)
    table.add_column(f"ε for {compared.accuracy:g}", justify="right", no_wrap=True)
    for need, (label, curve) in zip(compared.needs, compared.curves(), strict=True):
        chances = [_shown_chance(chance) for chance in curve.chances(_SHOWN)]
        table.add_row(label, *chances, shown_epsilon(need.epsilon))
    parts: list[Any] = [Text(f"Probability of exactly the top {compared.k}", style="bold"), table]
    if compared.limit:
        parts.append(Text(f"Limit: {LIMIT_WORDS} than {shown_limit(compared.limit)} for {compared.accuracy:g}."))
    return parts


def _shown_chance(chance: float) -> str:
    """Return a chance to three digits; what is next to nothing may be left out in part, and would fill the table."""
    from dpselect.forecast import shown

    return "<1e-9" if chance < 1e-9 else shown(chance)


def _closely(compared: Any) -> list[Any]:
    from dpselect.forecast import PROBABILITIES, TITLES, shown, shown_epsilon

    columns = {"exact": "exact", "great": "great", "good": "good", "correct": "correct", "score_ratio": "score\nratio"}
    table = Table(pad_edge=False)
    table.add_column("mechanism", no_wrap=True)
    for heading in columns.values():
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column(f"ε for\n{compared.accuracy:g}", justify="right", no_wrap=True)
    simulated = False
    for need, outlook in zip(compared.needs, compared.forecasts, strict=True):
        cells = []
        for name in columns:
            figure = outlook.figures()[name]
            simulated |= figure is not None and not figure.exact
            if figure is None:
                cells.append("")
            elif figure.exact and name in PROBABILITIES:
                cells.append(_shown_chance(figure.value))
            else:
                cells.append(f"{'' if figure.exact else '≈'}{shown(figure.value)}")
        table.add_row(need.label, *cells, shown_epsilon(need.epsilon))
    parts: list[Any] = [Text(f"Top {compared.k} at epsilon = {compared.epsilon:g}", style="bold"), table]
    best = compared.forecasts[0]
    simulated |= any(figure is not None and not figure.exact for figure in best.figures().values())
    errors = ", ".join(
        f"{TITLES[name]} {best.figures()[name]}"
        for name in ("largest_error", "total_error", "relative_error")
        if best.figures()[name] is not None
    )
    parts.append(Text(f"Expected with {compared.needs[0].label}: {errors}."))
    if simulated:
        parts.append(Text(f"≈: from {compared.draws} draws; --format json gives 95% intervals. All else is exact."))
    return parts
