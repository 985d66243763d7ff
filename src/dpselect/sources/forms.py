"""One form for each item: engines take values for equal that look different, and show any one of them.

Which one would depend on who has it: -0.0 in the answer in place of 0.0 tells that someone has it. The same goes for
1.0 and 1.00 in PostgreSQL, and for texts in a collation that ignores case.
"""

from __future__ import annotations

from typing import Any

from dpselect.sources.engine import Engine

_TEXTS = {
    "duckdb": 'CAST({} AS TEXT) COLLATE "C"',
    "postgres": 'CAST({} AS TEXT) COLLATE "C"',
    # Spark's texts can hold bytes that are not UTF-8, and to fetch such an item would fail.
    "pyspark": "try_validate_utf8(CAST({} AS STRING))",
}


def with_exact_text(engine: Engine, table: Any, name: str) -> Any:
    """Return an Ibis table whose column of that name, if it is text, is compared byte by byte."""
    import ibis.expr.operations as operations
    import sqlglot

    form = _TEXTS.get(engine.backend.name)
    if form is None or not table[name].type().is_string():
        return table
    engine.prepare(table)
    dialect = engine.backend.dialect
    quoted = {column: sqlglot.to_identifier(column, quoted=True).sql(dialect) for column in table.columns}
    exact = {**quoted, name: f"{form.format(quoted[name])} AS {quoted[name]}"}
    query = f"SELECT {', '.join(exact.values())} FROM ({engine.backend.compile(table)}) AS source"
    return operations.SQLQueryResult(query, table.schema(), engine.backend).to_expr()


def in_one_form(engine: Engine, column: Any) -> Any:
    """Return an Ibis column of numbers without a second form of zero, and without zeros at the end of decimals."""
    import ibis

    kind = column.type()
    if kind.is_floating():
        return (column == 0).ifelse(ibis.literal(0.0, kind), column)
    if kind.is_decimal() and kind.scale is None and engine.backend.name == "postgres":
        return ibis.udf.scalar.builtin(_trim_scale, name="trim_scale", signature=((kind,), kind))(column)
    return column


def is_shown(engine: Engine, column: Any) -> Any:
    """Return the condition that a number can be fetched and means something, or None where that is certain."""
    kind = column.type()
    if kind.is_floating():
        return ~column.isnan()
    if not kind.is_decimal():
        return None
    if engine.backend.name == "postgres":
        return column.cast("string") != "NaN"
    if engine.backend.name == "duckdb" and (kind.precision, kind.scale) == (38, 0):
        # So Ibis calls whole numbers of 128 bits, which can have 39 digits.
        return column.cast("string").replace("-", "").length() <= 38
    return None


def _trim_scale(number: Any) -> Any:
    """Name the function of the database."""


def type_name(kind: Any) -> str:
    """Return what a type is called, for messages; one that Ibis does not know as the engine calls it."""
    return str(kind.raw_type.sql()) if kind.is_unknown() and kind.raw_type is not None else str(kind)
