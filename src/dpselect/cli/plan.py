"""`dpselect plan`: which epsilon will be needed, from public facts."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

import dpselect
from dpselect.cli.numbers import number, whole_number
from dpselect.cli.output import Format, as_csv, as_json, as_text, check_output, note, publish


def plan_command(
    k: Annotated[int, typer.Option("-k", parser=whole_number, help="How many items to publish.", metavar="N")],
    gap: Annotated[
        str | None,
        typer.Option(help="By how many people the last of them leads the next; or 2% of --people.", metavar="N|N%"),
    ] = None,
    like: Annotated[
        str | None, typer.Option(help="Instead of a gap: a public file of counts that look alike.", metavar="FILE")
    ] = None,
    count: Annotated[str, typer.Option(help="Column of that file.", metavar="COLUMN")] = "count",
    accuracy: Annotated[
        float, typer.Option(parser=number, help="Wanted probability of exactly the right items.", metavar="NUMBER")
    ] = 0.99,
    items: Annotated[
        int | None, typer.Option(parser=whole_number, help="How many items are possible.", metavar="N")
    ] = None,
    people: Annotated[
        int | None, typer.Option(parser=whole_number, help="How many people the data are about.", metavar="N")
    ] = None,
    like_people: Annotated[
        int | None,
        typer.Option(parser=whole_number, help="How many the look-alike is about; scales it.", metavar="N"),
    ] = None,
    delta: Annotated[float, typer.Option(parser=number, help="Allowed failure probability.", metavar="NUMBER")] = 0.0,
    ordered: Annotated[bool, typer.Option("--ordered", help="The order of the answer has to be right too.")] = False,
    max_items_per_person: Annotated[
        int | None,
        typer.Option(parser=whole_number, help="Nobody has more items; for --ordered --delta.", metavar="N"),
    ] = None,
    plot: Annotated[
        str | None, typer.Option(help="Draw success against epsilon: .png, .svg or .html.", metavar="FILE")
    ] = None,
    form: Annotated[Format, typer.Option("--format", help="How to show the plan.")] = Format.table,
) -> None:
    """Say which epsilon each mechanism needs, before any private row is read.

    Nothing here looks at private data: state what you know or expect in public.

    For example:

    [bold]dpselect plan -k 10 --gap 50 --accuracy 0.99[/bold]
    """
    from dpselect.forecast import check_plot

    if plot is not None:
        check_plot(plot)
        check_output("plot", plot, [] if like is None else [Path(like)])
    planned = dpselect.forecast.plan(
        k,
        accuracy=accuracy,
        gap=_gap(gap, people),
        like=_look_alike(like, count),
        items=items,
        people=people,
        like_people=like_people,
        delta=delta,
        ordered=ordered,
        max_items_per_person=max_items_per_person,
    )
    for line in planned.notes:
        note(line)
    publish(_text(planned, form), None)
    if plot is not None:
        dpselect.forecast.write_plot(plot, planned, f"If {planned.model}")


def _gap(text: str | None, people: Any) -> Any:
    """Understand --gap: a number, or a share of the people."""
    if text is None or not text.endswith("%"):
        return text if text is None else number(text)
    if not isinstance(people, int):
        raise dpselect.InvalidInput("people", people, "a share as gap needs to know of how many: state --people")
    share = number(text[:-1])
    return share * people / 100 if isinstance(share, float) and math.isfinite(share) else text


def _look_alike(path: str | None, column: str) -> dpselect.Scores | None:
    from dpselect.cli.counts_file import counts_in_file

    return None if path is None else counts_in_file("like", path, column)


def _text(planned: Any, form: Format) -> str:
    from dpselect.forecast import LIMIT_WORDS, shown_epsilon, shown_limit

    if form is Format.json:
        return as_json(planned.to_dict())
    comparison = planned.comparison
    if form is Format.csv:
        rows = [need.to_dict() for need in comparison.needs]
        return as_csv([{key: row[key] for key in ("label", "epsilon", "default")} for row in rows])
    worst = "" if planned.gap is None else " With larger gaps less is needed: this is the worst case."
    answer = "list in the right order," if comparison.needs[0].mechanism.ordered else "set"
    title = f"Epsilon needed to get exactly the top {comparison.k} with probability {comparison.accuracy:g}"
    table = Table(pad_edge=False)
    table.add_column("mechanism", no_wrap=True)
    table.add_column("epsilon", justify="right", no_wrap=True)
    table.add_column("what it does")
    for need in comparison.needs:
        words = f"{need.words} (the default)" if need.default else need.words
        table.add_row(need.label, shown_epsilon(need.epsilon), words)
    if comparison.limit:
        table.add_section()
        table.add_row("limit", shown_limit(comparison.limit), LIMIT_WORDS)
    best = comparison.needs[0]
    advice = _advice(best, comparison)
    return as_text(
        Text(title, style="bold"),
        Text(f"as a {answer} if {planned.model}.{worst}"),
        table,
        Text(advice),
    )


def _advice(best: Any, comparison: Any) -> str:
    """Say in a sentence or two what to do with the table."""
    from dpselect.forecast import rounded_up

    if not math.isfinite(best.epsilon):
        return "No epsilon is enough for that accuracy."
    if not best.epsilon:
        return "Any epsilon will do: there is next to nothing to decide."
    default = next((need for need in comparison.needs if need.default), None)
    if default is None or not 0 < default.epsilon < math.inf:
        return f"The least is needed by {best.label}: name it with --mechanism."
    epsilon = rounded_up(default.epsilon)
    strength = (
        "That is strong protection."
        if epsilon <= 1
        else "That is moderate protection."
        if epsilon <= 5
        else "That protects little: consider a smaller k, more people, or a lower accuracy."
    )
    return f"With the default, state {dpselect.Guarantee(epsilon=epsilon)}. {strength}"
