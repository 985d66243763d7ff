"""The rows of a table, wherever they are, under neutral names and without those that a filter leaves out."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from dpselect.errors import InvalidInput, plain
from dpselect.sources.connect import Source, is_spark, is_url, open_backend, open_spark, open_url
from dpselect.sources.embedded import EmbeddedEngine
from dpselect.sources.engine import Progress
from dpselect.sources.files import FileTable
from dpselect.sources.filters import columns_in, filtered, parsed
from dpselect.sources.forms import with_exact_text
from dpselect.sources.frames import arrow_table, check_columns, is_frame, neutral_name, renamed


def open_rows(
    stack: contextlib.ExitStack,
    embedded: Callable[[], EmbeddedEngine],
    table: Any,
    columns: Sequence[str],
    *,
    table_name: str | None = None,
    where: str | None = None,
    progress: Progress | None = None,
) -> Source:
    """Return the rows with the named columns under neutral names, the i-th of which is `neutral_name(i)`.

    The first one is the item. No row is read, and whatever can be found out without one is.
    """
    import ibis

    wanted = list(columns)
    elsewhere = _elsewhere(stack, embedded, table, table_name, progress)
    if elsewhere is None:
        return Source(embedded(), _local_rows(embedded(), table, wanted, where))
    rows = elsewhere.table
    check_columns("table", wanted, list(rows.columns))
    if where is not None:
        rows = filtered(elsewhere.engine, rows, where, parsed(elsewhere.engine, where))
    rows = with_exact_text(elsewhere.engine, renamed(rows, wanted), neutral_name(0))
    # Without the columns: some types have no place in Python, and are refused by name later.
    elsewhere.engine.check(rows.select(column=ibis.literal(1)))
    return replace(elsewhere, table=rows)


def _elsewhere(
    stack: contextlib.ExitStack,
    embedded: Callable[[], EmbeddedEngine],
    table: Any,
    table_name: str | None,
    progress: Progress | None,
) -> Source | None:
    """Return a table that an engine holds already, or None for what the embedded one reads itself."""
    import ibis
    import ibis.expr.operations as operations

    if is_url(table):
        return open_url(stack, embedded, table, table_name, progress)
    if table_name is not None:
        raise InvalidInput(
            "table_name", table_name, "only with the URL of an engine can a table be named; leave it out"
        )
    if is_spark(table):
        return open_spark(stack, table, progress)
    if isinstance(table, ibis.Table) and any(True for _ in table.op().find(operations.DatabaseTable)):
        return open_backend(stack, table, progress)
    return None


def _local_rows(embedded: EmbeddedEngine, table: Any, columns: list[str], where: str | None) -> Any:
    """Return rows of a file or of a table in memory; a filter can look at other columns too."""
    if where is None:
        return _bound(embedded, table, columns)
    condition = parsed(embedded, where)
    needed = list(dict.fromkeys([*columns, *columns_in(condition)]))
    rows = _with_more(embedded, table, columns, needed)
    rows = rows.select(**{name: rows[neutral_name(place)] for place, name in enumerate(needed)})
    return renamed(filtered(embedded, rows, where, condition), columns)


def _with_more(embedded: EmbeddedEngine, table: Any, columns: list[str], needed: list[str]) -> Any:
    """Return rows with the columns that a filter needs; that one of those is missing is the filter's mistake."""
    _bound(embedded, table, columns)
    try:
        return _bound(embedded, table, needed)
    except InvalidInput as error:
        given, accepted = error.given, error.accepted
    raise InvalidInput("where", given, accepted)


def _bound(embedded: EmbeddedEngine, table: Any, columns: list[str]) -> Any:
    import ibis

    if isinstance(table, str | os.PathLike):
        return FileTable.at("table", table).bind(embedded, columns)
    if isinstance(table, ibis.Table):
        check_columns("table", columns, list(table.columns))
        return renamed(table, columns)
    if is_frame(table):
        return ibis.memtable(arrow_table("table", table, columns))
    raise InvalidInput(
        "table",
        plain(f"an object of type {type(table).__name__}"),
        "the path of a file, the URL of an engine, an Ibis table, or a pandas, polars, Arrow or Spark table is needed",
    )
