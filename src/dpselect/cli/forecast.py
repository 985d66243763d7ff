"""`dpselect forecast` and `dpselect plan`: how likely the right answer is, and which epsilon it needs."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

import dpselect
from dpselect._format import shown_above, shown_below, shown_probability, three_digits
from dpselect.cli.inputs import files_read
from dpselect.cli.options import Aim, Delta, DomainColumn, DomainNoHeader, Length, examples, number, whole_number
from dpselect.cli.output import Format, as_csv, as_json, as_text, check_output, note, progress_bar, publish
from dpselect.errors import plain

FORECAST_EXAMPLES = examples(
    "dpselect forecast demo/views.parquet --item film --person viewer \\",
    "    --domain demo/films.csv -k 5 --epsilon 0.1",
    title="Example, after [bold]dpselect demo --out demo[/bold]:",
)
PLAN_EXAMPLES = examples(
    "dpselect plan -k 10 --gap 50 --accuracy 0.99",
    "dpselect plan -k 10 --epsilon 1 --items 10000",
    title="Which epsilon is needed, and what one can tell apart:",
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
            help="Counts: a CSV, JSON lines or Parquet file with one row per item. With --item and --person: people's "
            "rows, as for top.",
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
    item: Annotated[str | None, typer.Option(help="Column with the items of people's rows.", metavar="COLUMN")] = None,
    person: Annotated[
        str | None, typer.Option(help="Column that identifies the people of people's rows.", metavar="COLUMN")
    ] = None,
    domain: Annotated[
        str | None,
        typer.Option(
            help="The possible items of people's rows: a file that lists them, or their number.", metavar="FILE|N"
        ),
    ] = None,
    domain_column: DomainColumn = None,
    domain_no_header: DomainNoHeader = False,
    delta: Delta = 0.0,
    ordered: OrderMatters = False,
    aim: Aim = "most",
    max_items_per_person: ItemsPerPerson = None,
    draws: Annotated[
        int,
        typer.Option(
            parser=whole_number,
            help="Number of draws for figures without an exact form; 0 leaves these figures out.",
            metavar="N",
        ),
    ] = 200,
    plot: Plot = None,
    form: Annotated[Format, typer.Option("--format", help="Format of the forecast.")] = Format.table,
) -> None:
    """Show how likely each mechanism is to return exactly the right items.

    For the curator only: the output depends on the data directly and is
    [bold]not private[/bold].
    """
    if plot is not None:
        dpselect.forecast.check_plot(plot)
        check_output("plot", plot, [Path(file), *files_read(file, domain=domain)])
    if max_items_per_person is not None and item is not None:
        raise dpselect.InvalidInput(
            "max_items_per_person", max_items_per_person, "must be left out with --item; it describes a file of counts"
        )
    with progress_bar("Computing") as progress:
        scores = _scores(
            file, count, item, person, domain, k, progress, column=domain_column, header=not domain_no_header
        )
        note(dpselect.forecast.WARNING)
        progress(None)
        compared = dpselect.forecast.compare(
            scores,
            k,
            epsilon=epsilon,
            accuracy=accuracy,
            delta=delta,
            ordered=ordered,
            aim=aim,
            max_items_per_person=max_items_per_person,
            draws=draws,
        )
        progress(None)
        text = _forecast_text(compared, form)
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
            raise dpselect.InvalidInput(
                "domain", domain, "must be left out for a file of counts; or add --item and --person"
            )
        if column is not None or not header:
            raise dpselect.InvalidInput(
                "domain", plain("nothing"), "must name the file to which --domain-column and --domain-no-header apply"
            )
        return counts_in_file("file", file, count)
    for argument, given in (("item", item), ("person", person), ("domain", domain)):
        if given is None:
            raise dpselect.InvalidInput(
                argument, plain("nothing"), "must be stated for people's rows, with --item, --person and --domain"
            )
    return counts_of_rows(
        file, str(item), str(person), str(domain), k, progress, domain_column=column, domain_header=header
    )


def _forecast_text(compared: Any, form: Format) -> str:
    if form is Format.json:
        return as_json(compared.to_dict())
    if form is Format.csv:
        return as_csv(_forecast_rows(compared))
    return as_text(*(_figures_at(compared) if compared.epsilon else _overview(compared)))


def _forecast_rows(compared: Any) -> list[dict[str, Any]]:
    """Return a row for each mechanism, with every figure and its interval if an epsilon was stated."""
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


def _mechanism_table(*columns: str) -> Table:
    """Return a table with a column of mechanisms and right-aligned columns of numbers."""
    table = Table(pad_edge=False)
    table.add_column("mechanism", no_wrap=True)
    for heading in columns:
        table.add_column(heading, justify="right", no_wrap=True)
    return table


def _overview(compared: Any) -> list[Any]:
    table = _mechanism_table(*(f"ε = {epsilon:g}" for epsilon in _EPSILONS), f"ε for {compared.accuracy:g}")
    for need, (label, curve) in zip(compared.needs, compared.curves(), strict=True):
        table.add_row(label, *map(shown_probability, curve.chances(_EPSILONS)), need.shown)
    parts: list[Any] = [Text(f"Probability of exactly the top {compared.k}", style="bold"), table]
    if compared.limit:
        least = f"{dpselect.forecast.LIMIT_WORDS} than {shown_below(compared.limit, 3)}"
        parts.append(Text(f"Limit: {least} for {compared.accuracy:g}."))
    return parts


def _figures_at(compared: Any) -> list[Any]:
    """Return the table of figures at the stated epsilon, and the expected errors of the best mechanism."""
    columns = {"exact": "exact", "great": "great", "good": "good", "correct": "correct", "score_ratio": "score\nratio"}
    errors = {"largest_error": "ℓ∞ error", "total_error": "ℓ1 error", "relative_error": "k-relative error"}
    table = _mechanism_table(*columns.values(), f"ε for\n{compared.accuracy:g}")
    for need, outlook in zip(compared.needs, compared.forecasts, strict=True):
        figures = outlook.figures()
        table.add_row(need.label, *(_cell(name, figures[name]) for name in columns), need.shown)
    parts: list[Any] = [Text(f"Top {compared.k} at epsilon = {compared.epsilon:g}", style="bold"), table]
    best = compared.forecasts[0].figures()
    expected = ", ".join(f"{title} {best[name]}" for name, title in errors.items() if best[name] is not None)
    parts.append(Text(f"Expected with {compared.needs[0].label}: {expected}."))
    drawn = [outlook.figures()[name] for outlook in compared.forecasts for name in columns] + list(best.values())
    if any(figure is not None and not figure.exact for figure in drawn):
        parts.append(
            Text(f"≈: estimated from {compared.draws} draws; --format json has 95% intervals. The rest is exact.")
        )
    return parts


def _cell(name: str, figure: Any) -> str:
    """Return a figure for the table: empty if unknown, marked with ≈ if simulated."""
    if figure is None:
        return ""
    if not figure.exact:
        return f"≈{three_digits(figure.value)}"
    return shown_probability(figure.value) if name in dpselect.forecast.PROBABILITIES else three_digits(figure.value)


def plan_command(
    k: Length,
    gap: Annotated[
        str | None,
        typer.Option(
            help="Gap in people between ranks K and K + 1: a number, or a percentage of --people.", metavar="N|N%"
        ),
    ] = None,
    like: Annotated[
        str | None, typer.Option(help="Instead of --gap: a public file of similar counts.", metavar="FILE")
    ] = None,
    epsilon: Annotated[
        float | None,
        typer.Option(
            parser=number,
            help="Instead of --gap: show the lead that is needed at this epsilon; with --like, the items expected to "
            "be right.",
            metavar="NUMBER",
        ),
    ] = None,
    count: Annotated[str, typer.Option(help="Column with the counts in --like.", metavar="COLUMN")] = "count",
    accuracy: Annotated[
        float | None,
        typer.Option(
            parser=number,
            help="Wanted probability of exactly the right items; not with --epsilon. Default: 0.99.",
            metavar="NUMBER",
        ),
    ] = None,
    items: Annotated[
        int | None, typer.Option(parser=whole_number, help="Number of possible items.", metavar="N")
    ] = None,
    people: Annotated[
        int | None, typer.Option(parser=whole_number, help="Number of people in the data.", metavar="N")
    ] = None,
    like_people: Annotated[
        int | None,
        typer.Option(
            parser=whole_number,
            help="Number of people in --like, whose counts are then scaled to --people.",
            metavar="N",
        ),
    ] = None,
    delta: Delta = 0.0,
    ordered: OrderMatters = False,
    aim: Aim = "most",
    max_items_per_person: ItemsPerPerson = None,
    plot: Plot = None,
    form: Annotated[Format, typer.Option("--format", help="Format of the plan.")] = Format.table,
) -> None:
    """Show which epsilon each mechanism needs, or what it can do with one, before any private row is read.

    Nothing here reads private data: state what is public or what you expect.
    """
    from dpselect.cli.counts_file import counts_in_file

    if plot is not None:
        if epsilon is not None and like is None:
            raise dpselect.InvalidInput("plot", plot, "must be left out with --epsilon, unless --like is given")
        dpselect.forecast.check_plot(plot)
        check_output("plot", plot, [] if like is None else [Path(like)])
    planned = dpselect.forecast.plan(
        k,
        accuracy=accuracy,
        gap=_gap(gap, people),
        epsilon=epsilon,
        like=None if like is None else counts_in_file("like", like, count),
        items=items,
        people=people,
        like_people=like_people,
        delta=delta,
        ordered=ordered,
        aim=aim,
        max_items_per_person=max_items_per_person,
    )
    for line in planned.notes:
        note(line)
    publish(_plan_text(planned, form), None)
    if plot is not None:
        dpselect.forecast.write_plot(plot, planned, f"If {planned.model}")


def _gap(text: str | None, people: Any) -> Any:
    """Return the gap that --gap states: a number of people, or a percentage of all people."""
    if text is None or not text.endswith("%"):
        return text if text is None else number(text)
    if not isinstance(people, int):
        raise dpselect.InvalidInput("people", people or plain("nothing"), "must be stated if --gap is a percentage")
    percentage = number(text[:-1])
    return percentage * people / 100 if isinstance(percentage, float) and math.isfinite(percentage) else text


def _plan_text(planned: Any, form: Format) -> str:
    if form is Format.json:
        return as_json(planned.to_dict())
    if isinstance(planned, dpselect.forecast.Leads):
        return as_csv(_lead_rows(planned)) if form is Format.csv else as_text(*_leads(planned))
    comparison = planned.comparison
    if form is Format.csv and comparison.epsilon is None:
        rows = [need.to_dict() for need in comparison.needs]
        return as_csv([{key: row[key] for key in ("label", "epsilon", "default")} for row in rows])
    if comparison.epsilon is not None:
        return as_csv(_forecast_rows(comparison)) if form is Format.csv else as_text(*_expected(planned))
    table = _mechanism_table("epsilon")
    table.add_column("what it does")
    for need in comparison.needs:
        table.add_row(need.label, need.shown, f"{need.words} (the default)" if need.default else need.words)
    if comparison.limit:
        table.add_section()
        table.add_row("limit", shown_below(comparison.limit, 3), dpselect.forecast.LIMIT_WORDS)
    answer = "list in the right order," if comparison.ordered else "set"
    worst = "" if planned.gap is None else " Larger gaps need less: this is the worst case."
    return as_text(
        Text(
            f"Epsilon needed to get exactly the top {comparison.k} with probability {comparison.accuracy:g}",
            style="bold",
        ),
        Text(f"as a {answer} if {planned.model}.{worst}"),
        table,
        Text(f"{_advice(comparison)} {_gamma_advice(planned)}".rstrip()),
    )


def _label(row: Any) -> str:
    """Return the label of a row, and whether it is the default."""
    return f"{row.label} (the default)" if row.default else str(row.label)


def _lead_rows(planned: Any) -> list[dict[str, Any]]:
    """Return a row for each mechanism, with its leads."""
    return [
        {"label": row.label, **{f"lead_for_{name}": lead for name, lead in row.leads.items()}, "default": row.default}
        for row in planned.rows
    ]


def _leads(planned: Any) -> list[Any]:
    """Return the table of leads at the stated epsilon, and what they mean."""
    table = _mechanism_table(*(f"for {name}" for name in planned.rows[0].leads))
    for row in planned.rows:
        table.add_row(_label(row), *row.shown)
    order = " in order" if planned.ordered else ""
    title = f"Lead, in people, needed to get exactly the top {planned.k}{order} at epsilon = {planned.epsilon:g}"
    row = next((row for row in planned.rows if row.default), planned.rows[0])
    usual, strength = row.reaches[1], dpselect.Guarantee(epsilon=planned.epsilon).strength
    said = "" if usual is None else f"With {'the default' if row.default else row.label}, {usual}. "
    return [
        Text(title, style="bold"),
        Text(f"with probability 0.5, 0.9 and 0.99, if {planned.model}. This is the worst case."),
        table,
        Text(f"{said}An epsilon of {planned.epsilon:g} is {strength} protection."),
    ]


def _expected(planned: Any) -> list[Any]:
    """Return the table of what to expect at the stated epsilon under the scores of the look-alike."""
    compared = planned.comparison
    table = _mechanism_table("exact", f"right of {compared.k}")
    rows = zip(compared.needs, compared.forecasts, strict=True)
    for need, outlook in sorted(rows, key=lambda row: -row[1].correct.value if row[1].correct else 0.0):
        table.add_row(_label(need), _cell("exact", outlook.exact), _cell("correct", outlook.correct))
    simulated = any(not figure.exact for each in compared.forecasts for figure in (each.exact, each.correct) if figure)
    strength = dpselect.Guarantee(epsilon=compared.epsilon).strength
    return [
        Text(f"Top {compared.k} at epsilon = {compared.epsilon:g}", style="bold"),
        Text(f"The probability of exactly the right answer, and how many right items to expect, if {planned.model}."),
        table,
        *([Text(f"≈: estimated from {compared.draws} draws.")] if simulated else []),
        Text(f"An epsilon of {compared.epsilon:g} is {strength} protection. {_gamma_advice(planned)}".rstrip()),
    ]


def _gamma_advice(planned: Any) -> str:
    """Return which gamma to state, if there was a choice."""
    if planned.gamma is None:
        return ""
    state = "the default" if planned.gamma == 0.5 else f"--mechanism canonical --gamma {planned.gamma:g}"
    return f"Of gamma = 0.25, 0.5, 0.75 and 1, canonical does best with {planned.gamma:g} ({state})."


def _advice(comparison: Any) -> str:
    """Return what to do with the table of a plan, in a sentence or two."""
    best = comparison.needs[0]
    if not math.isfinite(best.epsilon):
        return "No epsilon is enough for that accuracy."
    if not best.epsilon:
        return "Any epsilon is enough: there is hardly anything to decide."
    default = next((need for need in comparison.needs if need.default), None)
    if default is None or not 0 < default.epsilon < math.inf:
        return f"{best.label} needs the least: choose it with --mechanism."
    stated = dpselect.Guarantee(epsilon=float(shown_above(default.epsilon, 3)))
    more = ": consider a smaller k, more people, or a lower accuracy" if stated.strength == "weak" else ""
    return f"With the default, state {stated}. That is {stated.strength} protection{more}."
