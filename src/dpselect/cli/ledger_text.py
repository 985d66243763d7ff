"""What `dpselect ledger` prints, every number rounded towards privacy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich import box
from rich.table import Table

from dpselect._format import shown_above, shown_below
from dpselect._statement_text import ENTRY_COLUMNS, entry_rows, statement_tables
from dpselect._text import item_text
from dpselect.cli.output import Format, as_csv, as_json, as_text

if TYPE_CHECKING:
    from dpselect.ledger import Entry, Statement

_ACCOUNT_COLUMNS = ("dataset", "total", "spent", "left", "delta", "entries", "protects", "every")


def statement_text(statement: Statement, form: Format) -> str:
    """Return a statement in the format asked for."""
    if form is Format.json:
        return as_json(statement.to_dict())
    if form is Format.csv:
        return entries_csv(statement.entries)
    return as_text(*statement_tables(statement))


def entries_csv(entries: list[Entry]) -> str:
    """Return entries as CSV text with a header."""
    return as_csv([{**row, "time": row["time"].isoformat()} for row in entry_rows(entries)], ENTRY_COLUMNS)


def accounts_text(statements: list[Statement], form: Format) -> str:
    """Return the list of data sets in the format asked for."""
    rows: list[dict[str, Any]] = [
        {
            "dataset": statement.account.dataset,
            "total": statement.account.total.epsilon,
            "spent": statement.spent.epsilon,
            "left": statement.remaining.epsilon,
            "delta": statement.remaining.delta,
            "entries": statement.releases,
            "protects": statement.account.protects,
            "every": statement.account.every,
        }
        for statement in statements
    ]
    if form is Format.json:
        return as_json({"datasets": rows})
    if form is Format.csv:
        return as_csv(rows) if rows else ",".join(_ACCOUNT_COLUMNS) + "\n"
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    shown = [column for column in _ACCOUNT_COLUMNS if column != "every"]
    for column in shown:
        heading = "delta left" if column == "delta" else column
        table.add_column(heading, justify="left" if column in ("dataset", "protects") else "right")
    for row in rows:
        table.add_row(*(item_text(_figure(column, row[column], row["every"])) for column in shown))
    return as_text(table)


def _figure(column: str, value: Any, every: str) -> str:
    """Return a cell: what is spent is rounded up, and what is left down. With periods, what is left is of a new one."""
    if not isinstance(value, float):
        return str(value)
    if column == "spent":
        return shown_above(value)
    return shown_below(value) + (f" a {every}" if every and column in ("total", "left") else "")
