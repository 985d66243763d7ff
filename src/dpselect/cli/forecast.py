"""`dpselect forecast`: how likely the right answer is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

import dpselect
from dpselect._format import shown_below, shown_probability
from dpselect.cli.by_group import check_by, group_text, scores_by_group
from dpselect.cli.figures import cell, mechanism_table
from dpselect.cli.inputs import files_read
from dpselect.cli.options import (
    GROUPS,
    ITEMS,
    ROWS,
    Aim,
    Clip,
    Delta,
    DomainColumn,
    DomainNoHeader,
    Length,
    ListOfGroups,
    MaxGroups,
    PeriodName,
    ResultFormat,
    TableName,
    TimeColumn,
    Unfinished,
    ValueColumn,
    WeightColumn,
    Where,
    engine_notes,
    examples,
    number,
    whole_number,
)
from dpselect.cli.output import Format, as_csv, as_json, as_text, check_output, note, progress_bar, publish
from dpselect.cli.stdin import source_path
from dpselect.cli.unknown import UNKNOWN, check_unknown, forecast_text
from dpselect.errors import plain

if TYPE_CHECKING:
    from dpselect.cli.counts_file import PeoplesRows
    from dpselect.sources import Domain

_CHECK_THE_ROWS = "check how items and dates are written; see docs/tutorial.md#your-own-file"
FORECAST_EXAMPLES = examples(
    "dpselect forecast demo/views.parquet --item film --person viewer \\",
    "    --domain demo/films.csv -k 5 --epsilon 0.1",
    title="Example, after [bold]dpselect demo --out demo[/bold]:",
)

Accuracy = Annotated[
    float, typer.Option(parser=number, help="Wanted probability of exactly the right items.", metavar="NUMBER")
]
OrderMatters = Annotated[bool, typer.Option("--ordered", help="The order of the answer must be right too.")]
ItemsPerPerson = Annotated[
    int | None,
    typer.Option(
        parser=whole_number,
        help="Largest number of items per person; adds laplace and, with --delta, gaussian.",
        metavar="N",
    ),
]
PoolSize = Annotated[
    int | None,
    typer.Option(
        parser=whole_number,
        help="Items considered with --domain unknown. Default: 10 times K.",
        metavar="N",
        rich_help_panel=ITEMS,
    ),
]
ByGroup = Annotated[
    str | None,
    typer.Option(
        help="Column of groups, such as countries: show what the answer for each is worth; needs --epsilon.",
        metavar="COLUMN",
        rich_help_panel=GROUPS,
    ),
]
Plot = Annotated[
    str | None,
    typer.Option(help="Write a plot of success against epsilon: .png, .svg or .html.", metavar="FILE"),
]

_EPSILONS = (0.01, 0.1, 1.0, 10.0)
"""The columns of the table if no epsilon is stated."""


def forecast_command(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="Counts: a CSV, JSON lines or Parquet file with one row per item, or - for CSV from standard input. "
            "With --item and --person: people's rows, as the SOURCE of top, also in a database.",
        ),
    ],
    k: Length,
    epsilon: Annotated[
        float | None,
        typer.Option(
            parser=number,
            help="Show all figures at this epsilon. Default: only P(exact), at four epsilons.",
            metavar="NUMBER",
        ),
    ] = None,
    accuracy: Accuracy = 0.99,
    count: Annotated[str, typer.Option(help="Column with the counts.", metavar="COLUMN")] = "count",
    sensitivity: Annotated[
        tuple[float, float] | None,
        typer.Option(
            help="Of counts in a file, as in select: adding a person moves each count by LOW to HIGH. Default: 0 1.",
            metavar="LOW HIGH",
            rich_help_panel=ROWS,
        ),
    ] = None,
    item: Annotated[str | None, typer.Option(help="Column with the items.", metavar="COLUMN")] = None,
    person: Annotated[
        str | None, typer.Option(help="Column that identifies the people of people's rows.", metavar="COLUMN")
    ] = None,
    domain: Annotated[
        str | None,
        typer.Option(
            help="The possible items: a file that lists them, or unknown if they cannot be listed (needs --delta); for "
            "people's rows also their number, or table:NAME (with --table).",
            metavar="DOMAIN",
        ),
    ] = None,
    domain_column: DomainColumn = None,
    domain_no_header: DomainNoHeader = False,
    table: TableName = None,
    where: Where = None,
    time: TimeColumn = None,
    period: PeriodName = None,
    unfinished: Unfinished = False,
    value: ValueColumn = None,
    clip: Clip = None,
    weight: WeightColumn = None,
    max_items_per_person: Annotated[
        int | None,
        typer.Option(
            parser=whole_number,
            help="Keep at most N random items of each person; counts in a file must have been computed so. Adds "
            "laplace and, with --delta, gaussian.",
            metavar="N",
            rich_help_panel=ROWS,
        ),
    ] = None,
    pool: PoolSize = None,
    by: ByGroup = None,
    groups: ListOfGroups = None,
    max_groups_per_person: MaxGroups = 1,
    delta: Delta = 0.0,
    ordered: OrderMatters = False,
    aim: Aim = "most",
    draws: Annotated[
        int,
        typer.Option(
            parser=whole_number,
            help="Number of draws for figures without an exact form; 0 leaves these figures out.",
            metavar="N",
        ),
    ] = 200,
    plot: Plot = None,
    form: ResultFormat = Format.table,
) -> None:
    """Show how likely each mechanism is to return exactly the right items.

    For the curator only: the output depends on the data directly and is
    [bold]not private[/bold].
    """
    from dpselect.cli.counts_file import counts_of_rows, list_of_items
    from dpselect.sources import Contribution, PeriodFilter

    if plot is not None:
        dpselect.forecast.check_plot(plot)
        check_output("plot", plot, [Path(file), *files_read(file, table=table, domain=domain)])
    unknown = domain == UNKNOWN
    check_by(by, epsilon, groups=groups, max_groups_per_person=max_groups_per_person, plot=plot)
    check_unknown(unknown, pool=pool, plot=plot if unknown else None)
    contribution = Contribution.of(value, clip, weight, max_items_per_person)
    if sensitivity is not None and person is not None:
        raise dpselect.InvalidInput(
            "sensitivity", sensitivity, "must be left out with --person; it follows from --clip"
        )
    moves = contribution.sensitivity if sensitivity is None else dpselect.Sensitivity(*sensitivity)
    asked: dict[str, Any] = {
        "ordered": ordered,
        "sensitivity": moves,
        "max_items_per_person": contribution.max_items_per_person,
    }
    with source_path(file) as path, engine_notes(), progress_bar("Computing") as progress:
        rows = _rows(
            path,
            item,
            person,
            domain,
            domain_column=domain_column,
            domain_header=not domain_no_header,
            table_name=table,
            where=where,
            during=PeriodFilter.of(time, period, unfinished=unfinished),
            contribution=contribution,
        )
        if by is not None:
            parts = scores_by_group(
                path,
                by,
                groups,
                max_groups_per_person,
                k,
                progress,
                item=item,
                count=count,
                domain=domain,
                negative=sensitivity is not None,
                rows=rows,
            )
            note(dpselect.forecast.WARNING)
            assert epsilon is not None  # check_by
            asked |= {"delta": delta, "aim": aim, "max_groups_per_person": max_groups_per_person, "draws": draws}
            return publish(
                group_text(dpselect.forecast.forecast_groups(parts, k, epsilon=epsilon, **asked), form), None
            )
        if rows is None:
            possible = list_of_items(domain, path, domain_column, not domain_no_header)
            scores = _counts(path, count, item, possible, negative=sensitivity is not None)
        else:
            scores = counts_of_rows(rows, k, progress)
        note(dpselect.forecast.WARNING)
        if rows is not None:
            _note_if_few_are_counted(scores, k)
        progress(None)
        if unknown:
            text = forecast_text(
                scores,
                k,
                epsilon,
                delta,
                draws,
                form,
                of_people=contribution.counts and moves == dpselect.COUNTS,
                pool=pool,
                **asked,
            )
            return publish(text, None)
        compared = dpselect.forecast.compare(
            scores,
            k,
            epsilon=epsilon,
            accuracy=accuracy,
            delta=delta,
            aim=aim,
            draws=draws,
            **asked,
        )
        progress(None)
        text = _forecast_text(compared, form)
        if plot is not None:
            progress(None)
            title = f"Top {compared.k} of {compared.scores.size:,} items: {compared.finding}"
            dpselect.forecast.write_plot(plot, compared, title)
    publish(text, None)


def _rows(file: str, item: str | None, person: str | None, domain: str | None, **where: Any) -> PeoplesRows | None:
    """Return where people's rows are, or None if the file has counts; refuse options that need the other."""
    if person is None:
        during, contribution = where["during"], where["contribution"]
        of_rows = {
            "table_name": where["table_name"],
            "where": where["where"],
            "period": None if during is None else during.period.name,
            "value": contribution.value,
            "weight": contribution.weight,
        }
        for argument, given in of_rows.items():
            if given is not None:
                accepted = "must be left out without --person: a file of counts has none"
                raise dpselect.InvalidInput(argument, given, accepted)
        return None
    for argument, given in (("item", item), ("domain", domain)):
        if given is None:
            raise dpselect.InvalidInput(
                argument, plain("nothing"), "must be stated for people's rows, with --item, --person and --domain"
            )
    from dpselect.cli.counts_file import PeoplesRows

    return PeoplesRows(file, str(item), person, str(domain), **where)


def _counts(file: str, count: str, item: str | None, possible: Domain | None, *, negative: bool) -> dpselect.Scores:
    from dpselect.cli.counts_file import counts_in_file, counts_of_items

    if possible is None and item is None:
        return counts_in_file("file", file, count, negative=negative)
    return counts_of_items(file, item or "item", count, possible, negative=negative)


def _note_if_few_are_counted(scores: dpselect.Scores, k: int) -> None:
    """Warn the curator if fewer than k items are counted: rows that spell items otherwise are dropped in silence."""
    found = int(scores.multiplicities[scores.values != 0].sum())
    if found == 0:
        note(f"no row is counted, so every score is 0: {_CHECK_THE_ROWS}")
    elif found < k:
        note(f"{found:,} of {scores.size:,} items counted, all others have the score 0: {_CHECK_THE_ROWS}")


def _forecast_text(compared: Any, form: Format) -> str:
    if form is Format.json:
        return as_json(compared.to_dict())
    if form is Format.csv:
        return as_csv(forecast_rows(compared))
    return as_text(*(_figures_at(compared) if compared.epsilon else _overview(compared)))


def forecast_rows(compared: Any) -> list[dict[str, Any]]:
    """Return a row for each mechanism, with every figure and its interval if an epsilon was stated."""
    rows = []
    for place, need in enumerate(compared.needs):
        row = {"label": need.label, "default": need.default, "epsilon_needed": need.to_dict()["epsilon"]}
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
    table = mechanism_table(*(f"ε = {epsilon:g}" for epsilon in _EPSILONS), f"ε for {compared.accuracy:g}")
    for need, (_, curve) in zip(compared.needs, compared.curves(), strict=True):
        table.add_row(need.title, *map(shown_probability, curve.chances(_EPSILONS)), need.shown)
    parts: list[Any] = [Text(f"Probability of exactly the top {compared.k}", style="bold"), table]
    if compared.limit:
        least = f"{dpselect.forecast.LIMIT_WORDS} than {shown_below(compared.limit, 3)}"
        parts.append(Text(f"Limit: {least} for {compared.accuracy:g}."))
    return parts


def _figures_at(compared: Any) -> list[Any]:
    """Return the table of figures at the stated epsilon, and what to expect of the default."""
    columns = {"exact": "exact", "great": "great", "good": "good", "correct": "correct", "score_ratio": "score\nratio"}
    errors = {"largest_error": "ℓ∞ error", "total_error": "ℓ1 error", "relative_error": "k-relative error"}
    table = mechanism_table(*columns.values(), f"ε for\n{compared.accuracy:g}")
    for need, outlook in zip(compared.needs, compared.forecasts, strict=True):
        figures = outlook.figures()
        table.add_row(need.title, *(cell(name, figures[name]) for name in columns), need.shown)
    parts: list[Any] = [Text(f"Top {compared.k} at epsilon = {compared.epsilon:g}", style="bold"), table]
    place = next((place for place, need in enumerate(compared.needs) if need.default), 0)
    best = compared.forecasts[place].figures()
    right = [] if best["correct"] is None else [f"{cell('correct', best['correct'])} of {compared.k} right"]
    expected = right + [f"{title} {best[name]}" for name, title in errors.items() if best[name] is not None]
    parts.append(Text(f"Expected with {compared.needs[place].title}: {', '.join(expected)}."))
    drawn = [outlook.figures()[name] for outlook in compared.forecasts for name in columns] + list(best.values())
    if any(figure is not None and not figure.exact for figure in drawn):
        parts.append(
            Text(f"≈: estimated from {compared.draws} draws; --format json has 95% intervals. The rest is exact.")
        )
    return parts
