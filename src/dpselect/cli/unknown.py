"""`forecast` and `plan` with --domain unknown: how many items to expect, and what it takes to release one."""

from __future__ import annotations

import math
from typing import Any

from rich.table import Table
from rich.text import Text

import dpselect
from dpselect._format import shown_probability, three_digits
from dpselect.cli.output import Format, as_csv, as_json, as_text

UNKNOWN = "unknown"
"""The --domain of items that cannot be listed."""

_EPSILONS = (0.01, 0.1, 1.0, 10.0)
"""The columns of the table if no epsilon is stated."""


def check_unknown(unknown: bool, **given: Any) -> None:
    """Refuse options that belong to an unknown domain only, or cannot be used with one."""
    for argument, value in given.items():
        if value is None or value is False:
            continue
        if unknown and argument not in ("pool", "expect"):
            raise dpselect.InvalidInput(argument, value, "must be left out with --domain unknown")
        if not unknown and argument in ("pool", "expect"):
            raise dpselect.InvalidInput(argument, value, "must be used with --domain unknown")


def forecast_text(
    scores: dpselect.Scores,
    k: int,
    epsilon: float | None,
    delta: float,
    draws: int,
    form: Format,
    *,
    of_people: bool,
    **asked: Any,
) -> str:
    """Return the figures of each mechanism at an epsilon, or the items to expect at several.

    A discovery counts people, so it is left out if scores are not numbers `of_people`.
    """
    if not of_people and asked["pool"] is None:
        asked["pool"] = 10 * k  # the default; stated, it leaves out the mechanism "discovered", which has none
    chosen = _EPSILONS if epsilon is None else (epsilon,)
    compared = [
        dpselect.forecast.compare_unknown(scores, k, epsilon=each, delta=delta, draws=draws, **asked) for each in chosen
    ]
    limit = asked["max_items_per_person"] if of_people else None
    listed = None if epsilon is None else discovered(scores, epsilon, delta, limit)
    if form is Format.json:
        every = {"epsilons": [each.to_dict() for each in compared], "private": False}
        return as_json(every if epsilon is None else compared[0].to_dict() | ({"discovery": listed} if listed else {}))
    if form is Format.csv:
        return as_csv([row for each in compared for row in _rows(each)])
    if epsilon is not None:
        return as_text(*expected(compared[0]), *discovery_lines(listed))
    table = _table(*(f"ε = {each:g}" for each in _EPSILONS))
    for outlooks in zip(*(each.outlooks for each in compared), strict=True):
        table.add_row(outlooks[0].mechanism.name, *(_cell("returned", each.returned) for each in outlooks))
    title = f"Items to expect of a top {k} of an unknown domain, delta = {delta:g}"
    return as_text(Text(title, style="bold"), table, *_drawn(compared))


def discovered(
    scores: dpselect.Scores, epsilon: float, delta: float, max_items_per_person: int | None
) -> dict[str, float] | None:
    """Return how many items `dpselect domain` would list, if everybody has as many items as allowed."""
    if max_items_per_person is None:
        return None
    found = dpselect.Discovery(epsilon=epsilon, delta=delta, max_items_per_person=max_items_per_person)
    return {"listed": dpselect.forecast.expected_discovered(scores, found), "items_per_person": max_items_per_person}


def discovery_lines(listed: dict[str, float] | None) -> list[Text]:
    """Return a sentence about what `dpselect domain` would list."""
    if listed is None:
        return []
    number, items = three_digits(listed["listed"]), listed["items_per_person"]
    each = "1 item" if items == 1 else f"{items} items"
    return [Text(f"dpselect domain would list {number} items at this epsilon and delta, if everybody has {each}.")]


def _rows(compared: Any) -> list[dict[str, Any]]:
    """Return a row for each mechanism, with every figure and its interval."""
    rows = []
    for outlook in compared.outlooks:
        row: dict[str, Any] = {"label": outlook.mechanism.name, "epsilon": compared.epsilon}
        for name, figure in outlook.figures().items():
            values = ("", "", "") if figure is None else (figure.value, figure.low, figure.high)
            row |= dict(zip((name, f"{name}_low", f"{name}_high"), values, strict=True))
        rows.append(row)
    return rows


def expected(compared: Any) -> list[Any]:
    """Return the table of what to expect of each mechanism."""
    names = dpselect.forecast.UNKNOWN_TITLES
    table = _table(*names.values())
    for outlook in compared.outlooks:
        table.add_row(outlook.mechanism.name, *(_cell(name, figure) for name, figure in outlook.figures().items()))
    title = f"Top {compared.k} of an unknown domain at epsilon = {compared.epsilon:g}, delta = {compared.delta:g}"
    return [Text(title, style="bold"), table, *_drawn([compared])]


def _drawn(compared: list[Any]) -> list[Text]:
    """Return how simulated figures were made, if there are any."""
    figures = [figure for each in compared for outlook in each.outlooks for figure in outlook.figures().values()]
    if all(figure is None or figure.exact for figure in figures):
        return []
    return [Text(f"≈: estimated from {compared[0].draws} draws; --format json has 95% intervals.")]


def plan_text(
    k: int,
    epsilon: float | None,
    delta: float,
    like: dpselect.Scores | None,
    expect: float | None,
    form: Format,
    **asked: Any,
) -> str:
    """Return what an epsilon can do from public facts or a look-alike, or which epsilon returns so many items."""
    if like is None:
        if epsilon is None or expect is not None:
            argument, given, what = (
                ("epsilon", epsilon, "stated") if epsilon is None else ("expect", expect, "left out")
            )
            raise dpselect.InvalidInput(argument, given, f"must be {what} for an unknown domain without --like")
        return _facts_text(dpselect.forecast.plan_unknown(k, epsilon=epsilon, delta=delta, **asked), form)
    if (epsilon is None) == (expect is None):
        raise dpselect.InvalidInput(
            "epsilon", epsilon, "must be stated for an unknown domain with --like, or --expect for the epsilon needed"
        )
    if epsilon is not None:
        compared = dpselect.forecast.compare_unknown(like, k, epsilon=epsilon, delta=delta, **asked)
        if form is Format.table:
            listed = discovered(like, epsilon, delta, asked.get("max_items_per_person"))
            model = Text("If the items have the scores of the look-alike.")
            return as_text(*expected(compared), *discovery_lines(listed), model)
        data = {key: value for key, value in compared.to_dict().items() if key != "private"}
        return as_json(data) if form is Format.json else as_csv(_rows(compared))
    return _needs_text(like, k, delta, expect, form, **asked)


def _facts_text(facts: list[Any], form: Format) -> str:
    if form is Format.json:
        return as_json({"mechanisms": [each.to_dict() for each in facts]})
    if form is Format.csv:
        rows = [each.to_dict() for each in facts]
        return as_csv([{**row, "mechanism": row["mechanism"]["name"]} for row in rows])
    table = _table("lead for 0.5", "lead for 0.99", "gap for all", "of epsilon")
    for each in facts:
        numbers = (f"{math.ceil(number):,}" for number in (each.half, each.likely, each.full))
        table.add_row(each.mechanism.name, *numbers, f"{each.for_tests:.0%}")
    first = facts[0].mechanism
    claim = f"epsilon = {first.epsilon:g}, delta = {first.guarantee.delta:g}"
    return as_text(
        Text(f"What it takes to release items of an unknown domain: top {first.k}, {claim}", style="bold"),
        table,
        Text(
            f"Lead: by how many people an item must lead rank {first.pool + 1} to be released, once chosen, with that "
            f"probability. Gap for all: between ranks {first.pool} and {first.pool + 1}, enough for all {first.k} with "
            "probability 0.99 (real data need less). Of epsilon: the share that hides which items exist. For "
            "top-stable, lead and gap are those behind the last item of its answer; for discovered, which needs "
            "--max-items-per-person, they are the people of an item, each with as many items as allowed."
        ),
    )


def _needs_text(like: dpselect.Scores, k: int, delta: float, expect: Any, form: Format, **asked: Any) -> str:
    ordered = asked.pop("ordered")
    names = ("restricted", "limited") if ordered else ("restricted", "limited", "top-stable")
    needs = {name: dpselect.forecast.epsilon_for_items(like, name, k, expect, delta=delta, **asked) for name in names}
    if form is not Format.table:
        rows = [{"label": name, "epsilon": None if math.isinf(need) else need} for name, need in needs.items()]
        return (
            as_json({"k": k, "delta": delta, "expect": expect, "mechanisms": rows})
            if form is Format.json
            else as_csv(rows)
        )
    table = _table("epsilon")
    for name, need in needs.items():
        table.add_row(name, "none is enough" if math.isinf(need) else f"{'≈' if name == 'restricted' else ''}{need:g}")
    title = f"Epsilon needed for {expect:g} of {k} items on average, unknown domain, delta = {delta:g}"
    model = "If the items have the scores of the look-alike. ≈: estimated from 1000 draws."
    return as_text(Text(title, style="bold"), table, Text(model))


def _table(*columns: str) -> Table:
    """Return a table with a column of mechanisms and right-aligned columns of numbers."""
    table = Table(pad_edge=False)
    table.add_column("mechanism")
    for heading in columns:
        table.add_column(heading, justify="right", no_wrap=True)
    return table


def _cell(name: str, figure: Any) -> str:
    """Return a figure for the table: empty if unknown, marked with ≈ if simulated."""
    if figure is None:
        return ""
    if not figure.exact:
        return f"≈{three_digits(figure.value)}"
    return shown_probability(figure.value) if name == "full" else three_digits(figure.value)
