"""`dpselect plan`: which epsilon the right answer needs, or what an epsilon can do, from public facts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

import dpselect
from dpselect._format import shown_above, shown_below
from dpselect._release_text import protection
from dpselect.cli.by_group import check_by, group_text
from dpselect.cli.figures import cell, mechanism_table
from dpselect.cli.forecast import ByGroup, ItemsPerPerson, OrderMatters, Plot, PoolSize, forecast_rows
from dpselect.cli.options import Aim, Delta, Length, MaxGroups, ResultFormat, examples, number, whole_number
from dpselect.cli.output import Format, as_csv, as_json, as_text, check_output, note, publish
from dpselect.cli.unknown import UNKNOWN, check_unknown, plan_text
from dpselect.errors import plain

PLAN_EXAMPLES = examples(
    "dpselect plan -k 10 --gap 50 --accuracy 0.99",
    "dpselect plan -k 10 --epsilon 1 --items 10000",
    title="Which epsilon is needed, and which lead an epsilon needs:",
)


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
    domain: Annotated[
        str | None,
        typer.Option(help="unknown, if the possible items cannot be listed (needs --delta).", metavar="unknown"),
    ] = None,
    pool: PoolSize = None,
    expect: Annotated[
        float | None,
        typer.Option(
            parser=number,
            help="With --domain unknown and --like: show the epsilon that returns so many items on average.",
            metavar="N",
        ),
    ] = None,
    by: ByGroup = None,
    item: Annotated[
        str | None,
        typer.Option(
            help="With --by: column with the items in --like; an item without a row in a group counts 0 there.",
            metavar="COLUMN",
        ),
    ] = None,
    max_groups_per_person: MaxGroups = 1,
    delta: Delta = 0.0,
    ordered: OrderMatters = False,
    aim: Aim = "most",
    max_items_per_person: ItemsPerPerson = None,
    plot: Plot = None,
    form: ResultFormat = Format.table,
) -> None:
    """Show which epsilon each mechanism needs, or what it can do with one, before any private row is read.

    Nothing here reads private data: state what is public or what you expect.
    """
    from dpselect.cli.counts_file import counts_by_group, counts_in_file

    check_by(
        by,
        epsilon,
        max_groups_per_person=max_groups_per_person,
        **({} if by is None else {"gap": gap, "accuracy": accuracy, "items": items, "domain": domain, "plot": plot}),
    )
    if by is None and item is not None:
        raise dpselect.InvalidInput("item", item, "must be left out without --by, the column of groups")
    if by is not None:
        if like is None:
            raise dpselect.InvalidInput("like", plain("nothing"), "must be stated with --by: a file of similar counts")
        assert epsilon is not None  # check_by
        found = dpselect.forecast.forecast_groups(
            counts_by_group("like", like, by, item, count),
            k,
            epsilon=epsilon,
            delta=delta,
            max_groups_per_person=max_groups_per_person,
            aim=aim,
            ordered=ordered,
            max_items_per_person=max_items_per_person,
            people=people,
            like_people=like_people,
        )
        return publish(
            group_text(found, form, model=" All this if the groups have the scores of the look-alike."), None
        )
    if domain not in (None, UNKNOWN):
        raise dpselect.InvalidInput(
            "domain", domain, "must be unknown or left out; state the number of items as --items"
        )
    gap_given = {"gap": gap, "accuracy": accuracy, "items": items, "people": people, "like_people": like_people}
    check_unknown(domain == UNKNOWN, pool=pool, expect=expect, **({"plot": plot, **gap_given} if domain else {}))
    if domain is not None:
        asked = {"pool": pool, "ordered": ordered, "max_items_per_person": max_items_per_person}
        similar = None if like is None else counts_in_file("like", like, count)
        return publish(plan_text(k, epsilon, delta, similar, expect, form, **asked), None)
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
        assert isinstance(planned, dpselect.forecast.Plan)  # with --epsilon and no --like, --plot was refused
        dpselect.forecast.write_plot(plot, planned, f"If {planned.model}: {planned.comparison.finding}")


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
        return as_csv(forecast_rows(comparison)) if form is Format.csv else as_text(*_expected(planned))
    table = mechanism_table("epsilon")
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
        Text(f"{_advice(planned)} {_gamma_advice(planned)}".rstrip()),
    )


def _lead_rows(planned: Any) -> list[dict[str, Any]]:
    """Return a row for each mechanism, with its leads."""
    return [
        {"label": row.label, **{f"lead_for_{name}": lead for name, lead in row.leads.items()}, "default": row.default}
        for row in planned.rows
    ]


def _leads(planned: Any) -> list[Any]:
    """Return the table of leads at the stated epsilon, and what they mean."""
    table = mechanism_table(*(f"for {name}" for name in planned.rows[0].leads))
    for row in planned.rows:
        table.add_row(row.title, *row.shown)
    order = " in order" if planned.ordered else ""
    title = f"Lead, in people, needed to get exactly the top {planned.k}{order} at epsilon = {planned.epsilon:g}"
    row = next((row for row in planned.rows if row.default), planned.rows[0])
    usual, probabilities = row.reaches[len(row.reaches) // 2], _listed(dpselect.forecast.LEAD_PROBABILITIES)
    said = "" if usual is None else f"With {'the default' if row.default else row.label}, {usual}. "
    return [
        Text(title, style="bold"),
        Text(f"with probability {probabilities}, if {planned.model}. This is the worst case."),
        table,
        Text(f"{said}Protection: {protection(row.mechanism.guarantee)}."),
    ]


def _expected(planned: Any) -> list[Any]:
    """Return the table of what to expect at the stated epsilon under the scores of the look-alike."""
    compared = planned.comparison
    table = mechanism_table("exact", f"right of {compared.k}")
    rows = [
        (need, outlook) for need, outlook in zip(compared.needs, compared.forecasts, strict=True) if outlook.correct
    ]
    rows.sort(key=lambda row: -row[1].correct.value)
    for need, outlook in rows:
        table.add_row(need.title, cell("exact", outlook.exact), cell("correct", outlook.correct))
    simulated = any(not figure.exact for each in compared.forecasts for figure in (each.exact, each.correct) if figure)
    # Mechanisms as published, without their margin, cannot be stated on the command line.
    ranked = [(need, str(outlook.correct)) for need, outlook in rows if getattr(need.mechanism, "margin", True)]
    most = [need for need, correct in ranked if correct == ranked[0][1]]
    best = next((need for need in most if need.default), most[0])
    said = f"{best.title} has the most right" + ("" if best.default else f": state {_options(best.mechanism)}")
    usual: Any = next((need for need in compared.needs if need.default), best)
    guarantee = replace(usual.mechanism, epsilon=compared.epsilon).guarantee
    return [
        Text(f"Top {compared.k} at epsilon = {compared.epsilon:g}", style="bold"),
        Text(f"The probability of exactly the right answer, and how many right items to expect, if {planned.model}."),
        table,
        *([Text(f"≈: estimated from {compared.draws} draws.")] if simulated else []),
        Text(f"{said}. Protection with {usual.title}: {protection(guarantee)}."),
    ]


def _options(mechanism: Any) -> str:
    """Return the options of `dpselect top` that choose a mechanism."""
    usual = {field.name: field.default for field in fields(mechanism)}
    given = {name: mechanism.describe().get(name) for name in ("noise", "gamma")}
    stated = [f"--{name} {value}" for name, value in given.items() if value not in (None, usual.get(name))]
    return " ".join([f"--mechanism {mechanism.name}", *stated])


def _listed(numbers: Sequence[float]) -> str:
    """Return numbers as text: 0.5, 0.9 and 0.99."""
    *first, last = (f"{number:g}" for number in numbers)
    return f"{', '.join(first)} and {last}"


def _gamma_advice(planned: Any) -> str:
    """Return which gamma to state, if there was a choice and canonical needs the least."""
    best = planned.comparison.needs[0].mechanism
    if planned.gamma is None or getattr(best, "gamma", None) != planned.gamma:
        return ""
    state = "its default" if planned.gamma == dpselect.Canonical.gamma else _options(best)
    return f"Of gamma = {_listed(dpselect.forecast.GAMMAS)}, canonical does best with {planned.gamma:g} ({state})."


def _advice(planned: Any) -> str:
    """Return what to do with the table of a plan, in a sentence or two."""
    needs = planned.comparison.needs
    if not math.isfinite(needs[0].epsilon):
        return "No epsilon is enough for that accuracy."
    if not needs[0].epsilon:
        return "Any epsilon is enough: there is hardly anything to decide."
    default = next((need for need in needs if need.default), None)
    if default is None or not 0 < default.epsilon < math.inf:
        return f"{needs[0].label} needs the least: state {_options(needs[0].mechanism)}."
    stated = replace(default.mechanism, epsilon=float(shown_above(default.epsilon, 3))).guarantee
    more = " Consider a smaller k, more people, or a lower accuracy." if stated.strength == "weak" else ""
    less = "" if planned.exact is None else f" With --aim exact: {planned.exact.shown}."
    return f"With the default, state {stated}. Protection: {protection(stated)}.{more}{less}"
