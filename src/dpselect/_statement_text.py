"""Statements of a ledger as people read them, every number rounded towards privacy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from dpselect._format import shown_above, shown_below
from dpselect._text import facts_table, item_text
from dpselect.periods import UNITS

if TYPE_CHECKING:
    from dpselect.ledger import Account, Budget, Entry, Statement

_BAR_WIDTH = 30
ENTRY_COLUMNS = [
    "dataset",
    "sequence",
    "time",
    "epsilon",
    "delta",
    "mechanism",
    "k",
    "secure",
    "period",
    "once",
    "purpose",
    "hash",
]


def statement_tables(statement: Statement) -> list[RenderableType]:
    """Return what is spent and left, what that would buy, and the last entries."""
    account = statement.account
    parts: list[RenderableType] = [
        Text.assemble((item_text(account.dataset).plain, "bold"), f": protects {account.protects}"),
        _bars(statement),
    ]
    if statement.entries:
        parts.append(_entries(statement.entries))
        hidden = statement.releases - len(statement.entries)
        if hidden > 0:
            parts.append(Text(f"{hidden:,} earlier entries are left out", "dim"))
    return parts


def entry_rows(entries: list[Entry]) -> list[dict[str, Any]]:
    """Return a row of plain data for each entry, in the columns `ENTRY_COLUMNS`."""
    return [
        {
            "dataset": entry.dataset,
            "sequence": entry.sequence,
            "time": entry.time,
            "epsilon": entry.guarantee.epsilon,
            "delta": entry.guarantee.delta,
            "mechanism": _named(entry, "name"),
            "k": _named(entry, "k"),
            "secure": entry.secure,
            "period": entry.period or "",
            "once": entry.once or "",
            "purpose": entry.purpose,
            "hash": entry.hash,
        }
        for entry in entries
    ]


def _bars(statement: Statement) -> Table:
    account = statement.account
    grid = facts_table([])
    if account.every:
        for name, (spent, left) in statement.in_periods().items():
            _add_bars(grid, account, account.total, spent, left, f"{name} ")
        _add_sum(grid, statement)
    else:
        _add_bars(grid, account, account.total, statement.spent, statement.remaining)
    buys = f"a new {account.every} buys" if account.every else "buys"
    for place, offer in enumerate(statement.offers()):
        grid.add_row("" if place else buys, str(offer))
    return grid


def _add_bars(grid: Table, account: Account, total: Budget, spent: Budget, left: Budget, label: str = "") -> None:
    """Add a bar for what is spent of a total, in the terms in which costs add up."""
    if account.composition == "zcdp":
        grid.add_row(f"{label}rho", _bar(spent.rho, left.rho, total.rho, figures=3))
        grid.add_row(
            "",
            f"epsilon {shown_above(spent.epsilon)} of {shown_below(total.epsilon)} at delta {shown_below(total.delta)}",
        )
        return
    grid.add_row(f"{label}epsilon", _bar(spent.epsilon, left.epsilon, total.epsilon))
    if total.delta:
        grid.add_row(f"{label}delta", _bar(spent.delta, left.delta, total.delta))


def _add_sum(grid: Table, statement: Statement) -> None:
    """Add what all periods cost together somebody who is in all of them."""
    account, spent, a_year = statement.account, statement.spent, statement.a_year
    if account.lifetime is not None:
        _add_bars(grid, account, account.lifetime, spent, statement.lifetime_left, "lifetime ")
        return
    assert a_year is not None
    if spent.epsilon:
        grid.add_row("sum so far", f"{_cost_text(spent)}, for a person in every {account.every}")
    number = UNITS[account.every].a_year
    everyone = f"for a person in all {number} {account.every}s"
    grid.add_row("a year", f"{_cost_text(a_year)}, {everyone}; no lifetime limits it")


def _cost_text(cost: Budget) -> str:
    return f"epsilon {shown_above(cost.epsilon)}" + (f", delta {shown_above(cost.delta)}" if cost.delta else "")


def _bar(spent: float, left: float, total: float, figures: int = 6) -> Text:
    """Draw what is spent; a full bar means that nothing is left, an empty one that nothing is spent."""
    filled = round(_BAR_WIDTH * spent / total)
    filled = min(max(filled, 1 if spent else 0), _BAR_WIDTH - (1 if left else 0))
    colour = "red" if left < total / 10 else "yellow" if left < total / 2 else "green"
    bar = Text("█" * filled, colour).append("░" * (_BAR_WIDTH - filled), "dim")
    whole, rest = shown_below(total, figures), shown_below(left, figures)
    return bar.append(f"  {shown_above(spent, figures)} of {whole} spent, {rest} left", "")


def _entries(entries: list[Entry]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    table.add_column("#", justify="right", no_wrap=True)
    table.add_column("time (UTC)", no_wrap=True)
    table.add_column("epsilon", justify="right", no_wrap=True)
    with_delta = any(entry.guarantee.delta for entry in entries)
    if with_delta:
        table.add_column("delta", justify="right", no_wrap=True)
    table.add_column("release", no_wrap=True)
    with_period = any(entry.period is not None for entry in entries)
    if with_period:
        table.add_column("period", no_wrap=True)
    with_key = any(entry.once is not None for entry in entries)
    if with_key:
        table.add_column("once", overflow="fold")
    with_purpose = any(entry.purpose for entry in entries) or not (with_period or with_key)
    if with_purpose:
        table.add_column("purpose", overflow="fold")
    for entry in entries:
        cells = [str(entry.sequence), f"{entry.time:%Y-%m-%d %H:%M:%S}", shown_above(entry.guarantee.epsilon)]
        if with_delta:
            cells.append(shown_above(entry.guarantee.delta))
        release = " ".join(filter(None, [_named(entry, "name"), _named(entry, "k") and f"top {_named(entry, 'k')}"]))
        seeded = "" if entry.secure else " (seeded)"
        texts = [Text(release + seeded)]
        if with_period:
            texts.append(Text(entry.period or ""))
        if with_key:
            texts.append(_key_text(entry))
        if with_purpose:
            texts.append(item_text(entry.purpose) if entry.purpose else Text(""))
        table.add_row(*cells, *texts)
    return table


def _key_text(entry: Entry) -> Text:
    """Return the key of an entry, and whether its answer is missing: the same question under the key then draws it."""
    if entry.once is None:
        return Text("")
    return item_text(entry.once).append("" if entry.answered else " (no answer yet)")


def _named(entry: Entry, parameter: str) -> str:
    return str(entry.parameters.get(parameter, ""))
