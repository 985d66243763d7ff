"""`forecast` and `plan` with --by: what the answer for each group is worth."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

import dpselect
from dpselect._text import item_text
from dpselect.cli.figures import cell
from dpselect.cli.options import domain_of
from dpselect.cli.output import Format, as_csv, as_json, as_text
from dpselect.cli.unknown import UNKNOWN
from dpselect.errors import plain
from dpselect.items import plain_item

if TYPE_CHECKING:
    from dpselect.cli.counts_file import PeoplesRows

_SHOWN = {"exact": "exact", "correct": "right", "score_ratio": "score ratio"}


def check_by(by: str | None, epsilon: Any, **given: Any) -> None:
    """Refuse options of groups without --by, options that cannot be used with it, and --by without an epsilon."""
    of_groups = ("groups", "max_groups_per_person")
    for argument, value in given.items():
        if value is None or (argument == "max_groups_per_person" and value == 1):
            continue
        if by is None and argument in of_groups:
            raise dpselect.InvalidInput(argument, value, "must be left out without --by, the column of groups")
        if by is not None and argument not in of_groups:
            raise dpselect.InvalidInput(argument, value, "must be left out with --by")
    if by is not None and epsilon is None:
        raise dpselect.InvalidInput(
            "epsilon", plain("nothing"), "must be stated with --by: that of all groups together"
        )


def scores_by_group(
    file: str,
    by: str,
    groups: str | None,
    max_groups_per_person: int,
    k: int,
    progress: Any,
    *,
    item: str | None,
    count: str,
    domain: str | None,
    negative: bool,
    rows: PeoplesRows | None,
) -> dict[Any, Any]:
    """Return the scores of each group: of people's rows, counted as `top` does, or of a file of counts."""
    from dpselect.cli.counts_file import counts_by_group, counts_of_groups
    from dpselect.sources import Groups

    if rows is None:
        for argument, given in (("groups", groups), ("domain", domain)):
            if given is not None:
                raise dpselect.InvalidInput(
                    argument, given, "must be left out with --by for a file of counts, which lists groups and items"
                )
        return counts_by_group("file", file, by, item, count, negative=negative)
    if groups is None:
        raise dpselect.InvalidInput("groups", plain("nothing"), "must be stated for people's rows with --by")
    if domain == UNKNOWN:
        raise dpselect.InvalidInput("domain", domain, "must be a list of items or their number with --by")
    listed = Groups.of(by, domain_of(groups), max_groups_per_person)
    assert listed is not None
    return counts_of_groups(rows, k, progress, groups=listed)


def group_text(found: Any, form: Format, *, model: str = "") -> str:
    """Return the figures of each group; `model` says under which assumption, if they are not those of the data."""
    if form is Format.json:
        data = found.to_dict()
        return as_json({key: value for key, value in data.items() if not (model and key == "private")})
    if form is Format.csv:
        return as_csv([_row(group, outlook) for group, outlook in found.forecasts.items()])
    table = Table(pad_edge=False)
    table.add_column("group", overflow="fold")
    for heading in ("items", *_SHOWN.values()):
        table.add_column(heading, justify="right", no_wrap=True)
    for group, outlook in found.forecasts.items():
        figures = outlook.figures()
        table.add_row(
            item_text(plain_item(group)), f"{outlook.size:,}", *(cell(name, figures[name]) for name in _SHOWN)
        )
    mechanism, most = found.mechanism, found.max_groups_per_person
    share = "" if most == 1 else f" for each group, since a person counts in up to {most}"
    drawn = [outlook.figures()[name] for outlook in found.forecasts.values() for name in _SHOWN]
    simulated = any(figure is not None and not figure.exact for figure in drawn)
    return as_text(
        Text(
            f"Top {mechanism.k} of each of {len(found.forecasts):,} groups at epsilon = {found.epsilon:g}", style="bold"
        ),
        table,
        Text(
            f"Answered by {mechanism.name} with epsilon = {mechanism.guarantee.epsilon:.3g}{share}. Exact: the "
            "probability of exactly the right answer. Right: how many of "
            f"{mechanism.k} items to expect to be right, among people who count in {_few(most)} each.{model}"
        ),
        *([Text("≈: estimated from draws; --format json has 95% intervals.")] if simulated else []),
    )


def _few(groups: int) -> str:
    return "one group" if groups == 1 else f"at most {groups} groups"


def _row(group: Any, outlook: Any) -> dict[str, Any]:
    row: dict[str, Any] = {"group": plain_item(group), "items": outlook.size}
    for name, figure in outlook.figures().items():
        values = ("", "", "") if figure is None else (figure.value, figure.low, figure.high)
        row |= dict(zip((name, f"{name}_low", f"{name}_high"), values, strict=True))
    return row
