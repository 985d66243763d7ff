"""Filters: a condition on one row at a time, in the engine's own SQL."""

from __future__ import annotations

from typing import Any

from dpselect.errors import InvalidInput
from dpselect.sources.engine import Engine
from dpselect.sources.failures import EngineError
from dpselect.sources.frames import check_columns

_ACCEPTED = (
    "one condition on the columns of a row is needed, in the SQL of the engine, such as year >= 2020; without "
    "aggregates, windows and queries, since those look at the rows of other people"
)


def parsed(engine: Engine, where: Any) -> Any:
    """Return the condition as a syntax tree, if what it says about a row follows from that row alone.

    A condition that looks at other rows would let one person decide whether another one counts, and no bound on what
    one person can do would hold.
    """
    import sqlglot
    from sqlglot import expressions

    forbidden = (expressions.Query, expressions.AggFunc, expressions.Window, expressions.Exists, expressions.Star)
    condition = None
    if isinstance(where, str) and where.strip():
        try:
            statements = sqlglot.parse(where, read=engine.backend.dialect)
        except (sqlglot.errors.SqlglotError, RecursionError):
            statements = []
        if len(statements) == 1 and isinstance(statements[0], expressions.Condition):
            condition = statements[0]
    if condition is None or isinstance(condition, forbidden) or condition.find(*forbidden) is not None:
        raise InvalidInput("where", where, _ACCEPTED)
    return condition


def columns_in(condition: Any) -> list[str]:
    """Return the names of the columns that a condition looks at."""
    from sqlglot import expressions

    return list(dict.fromkeys(column.name for column in condition.find_all(expressions.Column)))


def filtered(engine: Engine, table: Any, where: str, condition: Any) -> Any:
    """Return the rows of an Ibis table for which the condition is true; refuse it if it does not fit the columns."""
    import ibis.expr.operations as operations
    import sqlglot

    engine.prepare(table)
    dialect = engine.backend.dialect
    source: Any = sqlglot.parse_one(engine.backend.compile(table), read=dialect)
    query = sqlglot.select("*").from_(source.subquery("source")).where(condition.copy()).sql(dialect)
    rows = operations.SQLQueryResult(query, table.schema(), engine.backend).to_expr()
    try:
        engine.check(rows)
        return rows
    except EngineError as error:
        reason = error.reason
    _check_known(condition, list(table.columns))
    raise InvalidInput("where", where, reason or "it does not fit the columns of the table; check names and types")


def _check_known(condition: Any, columns: list[str]) -> None:
    """Name a column that the table does not have, if that is why a condition does not fit."""
    known = {column.lower() for column in columns}
    check_columns("where", [name for name in columns_in(condition) if name.lower() not in known], columns)
