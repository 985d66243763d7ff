"""The rows of a table, wherever they are, under neutral names and without those that a filter leaves out."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from dpselect.errors import InvalidInput, plain
from dpselect.sources.conditions import Condition
from dpselect.sources.connect import Source, is_spark, is_url, open_backend, open_spark, open_url
from dpselect.sources.embedded import Bound, EmbeddedEngine
from dpselect.sources.engine import Progress
from dpselect.sources.files import FileTable
from dpselect.sources.filters import filtered
from dpselect.sources.forms import with_exact_text
from dpselect.sources.frames import arrow_table, check_columns, is_frame, neutral_name, opened, renamed, without_rows


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
        rows = _local_rows(stack, embedded(), table, wanted, where)
        return Source(embedded(), rows.table, load=rows.load)
    rows = elsewhere.engine.barrier(stack, elsewhere.table)
    check_columns("table", wanted, list(rows.columns))
    if where is not None:
        rows = filtered(stack, elsewhere.engine, rows, where)
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


def _local_rows(
    stack: contextlib.ExitStack, embedded: EmbeddedEngine, table: Any, columns: list[str], where: str | None
) -> Bound:
    """Return rows of a file or of a table in memory; a filter can look at other columns too."""
    table = embedded.run(lambda: opened(table))
    rows = _bound(stack, embedded, table, columns)
    if where is None:
        return rows
    needed = list(dict.fromkeys([*columns, *Condition.of(where, embedded.backend.dialect).columns]))
    try:
        rows = _bound(stack, embedded, table, needed)
    except InvalidInput as error:
        # The other columns are there, so this is a mistake in the filter.
        given, accepted = error.given, error.accepted
    else:
        kept = filtered(
            stack, embedded, rows.table, where, {name: neutral_name(place) for place, name in enumerate(needed)}
        )
        return Bound(kept, rows.load)
    raise InvalidInput("where", given, accepted)


def _bound(stack: contextlib.ExitStack, embedded: EmbeddedEngine, table: Any, columns: list[str]) -> Bound:
    """Return the named columns under neutral names; the rows of a frame are read when they are loaded."""
    import ibis

    if isinstance(table, str | os.PathLike):
        return FileTable.at("table", table).bind(embedded, columns)
    if isinstance(table, ibis.Table):
        check_columns("table", columns, list(table.columns))
        return Bound(embedded.barrier(stack, renamed(table, columns)))
    if is_frame(table):
        empty = embedded.run(lambda: arrow_table("table", without_rows(table), columns))
        return embedded.registered(empty, lambda: arrow_table("table", table, columns).cast(empty.schema))
    raise InvalidInput(
        "table",
        plain(f"an object of type {type(table).__name__}"),
        "the path of a file, the URL of an engine, an Ibis table, or a pandas, polars, Arrow or Spark table is needed",
    )
