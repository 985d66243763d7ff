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

_ACCOUNT_COLUMNS = ("dataset", "total", "spent", "left", "delta", "entries", "protects")


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
        }
        for statement in statements
    ]
    if form is Format.json:
        return as_json({"datasets": rows})
    if form is Format.csv:
        return as_csv(rows) if rows else ",".join(_ACCOUNT_COLUMNS) + "\n"
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for column in _ACCOUNT_COLUMNS:
        heading = "delta left" if column == "delta" else column
        table.add_column(heading, justify="left" if column in ("dataset", "protects") else "right")
    for row in rows:
        table.add_row(*(item_text(_figure(column, value)) for column, value in row.items()))
    return as_text(table)


def _figure(column: str, value: Any) -> str:
    """Return a cell: what is spent is rounded up, and what is left down."""
    if not isinstance(value, float):
        return str(value)
    return shown_above(value) if column == "spent" else shown_below(value)
