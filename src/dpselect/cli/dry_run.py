"""`--dry-run`: what would be asked, charged and promised, without reading a row."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Annotated, Any

import typer
from rich.text import Text

from dpselect import Guarantee
from dpselect._format import shown_below, shown_cost
from dpselect._text import facts_table
from dpselect.charging import Rehearsed, rehearsal
from dpselect.cli.options import OUTPUT
from dpselect.cli.output import Format, as_csv, as_json, as_text, publish
from dpselect.cli.stdin import COPY

DryRun = Annotated[
    bool,
    typer.Option(
        "--dry-run",
        help="Show what would be asked, charged and promised, and stop before a row is read.",
        rich_help_panel=OUTPUT,
    ),
]
_HASHES = ("domain", "groups")
"""What a question holds as a hash."""


@contextlib.contextmanager
def stopped_before_charge(dry_run: bool, form: Format) -> Iterator[None]:
    """With --dry-run, end the release of the block where it would be charged, show it, and exit.

    The release takes its usual path up to there, so all that is checked before a row is read is checked.
    """
    if not dry_run:
        yield
        return
    with rehearsal() as found:
        yield
    publish(_text(found[0], form), None)
    raise typer.Exit()


def _text(rehearsed: Rehearsed, form: Format) -> str:
    plan = rehearsed.plan
    asked = {name: value for name, value in rehearsed.question.items() if name not in plan.question()}
    if asked.get("table") == COPY:
        asked["table"] = "standard input"
    described = plan.describe()
    if _needs_rows(asked):
        described.pop("sensitivity")
    if form is Format.json:
        return as_json(
            {
                "dry_run": True,
                "asked": asked,
                "mechanism": described,
                "guarantee": plan.guarantee.to_dict(),
                "repeated": rehearsed.repeated,
                "left": {name: left.to_dict() for name, left in rehearsed.left.items()},
            }
        )
    facts = _facts(rehearsed, asked)
    if form is Format.csv:
        return as_csv([{"fact": name, "text": text} for name, text in facts])
    return as_text(Text("Dry run: no row was read, nothing was charged", style="bold"), facts_table(facts))


def _facts(rehearsed: Rehearsed, asked: dict[str, Any]) -> list[tuple[str, str]]:
    from dpselect._release_text import mechanism_words, protection
    from dpselect.request import ReleasePlan

    plan = rehearsed.plan
    described = plan.describe()
    command = f"{asked['command']} {described.get('k', '')}".rstrip()
    named = [f"{name} {value}" for name, value in asked.items() if name not in ("command", *_HASHES)]
    facts = [("Asked", "; ".join([command, *named]))]
    if "period" in described:
        facts.append(("Period", described["period"]))
    if isinstance(plan, ReleasePlan) and plan.noise is not None:
        unknown = "noisy; how much, follows from the number of items, which only the rows say"
        facts.append(("Values", unknown if _needs_rows(asked) else str(plan.noise)))
    facts += [
        ("Mechanism", mechanism_words(plan.mechanism)),
        ("Guarantee", str(plan.guarantee)),
        ("Protection", protection(plan.guarantee)),
    ]
    return facts + _charges(rehearsed, plan.guarantee)


def _needs_rows(asked: dict[str, Any]) -> bool:
    """Whether the sensitivity follows from the number of items, and only the rows say how many there are."""
    return bool(asked["command"] == "rank" and "domain" not in asked)


def _charges(rehearsed: Rehearsed, guarantee: Guarantee) -> list[tuple[str, str]]:
    if not rehearsed.left:
        return [("Charge", "none, because no data set of a ledger is named")]
    cost = shown_cost(guarantee.epsilon, guarantee.delta)
    if rehearsed.repeated:
        cost = "nothing more, because this question was asked under this key before"
    return [
        ("Charge", f"{name!r}: {cost}; epsilon {shown_below(left.epsilon)} left after it")
        for name, left in rehearsed.left.items()
    ]
