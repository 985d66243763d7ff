"""Which values can be items, and one form for each: engines treat some values as equal that are shown differently.

Which form is shown would depend on who has it: -0.0 instead of 0.0 in an answer reveals that someone has -0.0. The same
holds for 1.0 and 1.00 in PostgreSQL, and for texts in a collation that ignores case. A value that cannot be fetched or
converted would make the release fail, which reveals that someone has it; such values are nulls.
"""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

from dpselect.errors import InvalidInput, plain
from dpselect.sources.engine import Engine

_EXACT_TEXTS = {
    "duckdb": 'CAST({} AS TEXT) COLLATE "C"',
    "postgres": 'CAST({} AS TEXT) COLLATE "C"',
    # Spark's texts can hold bytes that are not UTF-8; fetching such an item would fail.
    "pyspark": "try_validate_utf8(CAST({} AS STRING))",
}

# A time zone can shift an instant by most of a day.
_FIRST_INSTANT, _LAST_INSTANT = datetime(1, 1, 2, tzinfo=UTC), datetime(9999, 12, 31, tzinfo=UTC)


def check_type(argument: str, name: str, kind: Any) -> None:
    """Refuse a column whose type has no single values that can be compared and shown."""
    if not is_single_value(kind):
        raise InvalidInput(
            argument,
            plain(f"column {name!r} of type {type_name(kind)}"),
            "must be text, numbers, dates, times or booleans; convert it first",
        )


def check_person(engine: Engine, name: str, table: Any, column: str) -> None:
    """Refuse a column of people of unsuitable type, or in which different texts are equal; no row is read.

    An engine keeps any one of equal texts, so the rows of others could decide which of a person's items are kept.
    """
    check_type("person", name, table[column].type())
    reason = engine.loose_equality(table, column) if table[column].type().is_string() else None
    if reason is not None:
        collation = "UTF8_BINARY" if engine.backend.name == "pyspark" else '"C"'
        raise InvalidInput(
            "person",
            plain(f"column {name!r} with {reason}"),
            "must be text that is compared byte by byte; use a view in which each person has one spelling, such as "
            f"CAST(lower({name}) AS {'STRING' if engine.backend.name == 'pyspark' else 'TEXT'}) COLLATE {collation}",
        )


def is_single_value(kind: Any) -> bool:
    """Whether the values of an Ibis type can be compared and shown, as text and numbers can."""
    return not (
        kind.is_nested()
        or kind.is_interval()
        or kind.is_unknown()
        or kind.is_geospatial()
        or kind.is_json()
        or kind.is_binary()
    )


def type_name(kind: Any) -> str:
    """Return the name of an Ibis type for messages; a type unknown to Ibis by the engine's name."""
    return str(kind.raw_type.sql()) if kind.is_unknown() and kind.raw_type is not None else str(kind)


def without_nulls(rows: Any, *columns: str) -> Any:
    """Return the rows of an Ibis table with a value in each of these columns; NaN is a null."""
    for column in columns:
        rows = rows.filter(rows[column].notnull())
        if rows[column].type().is_floating():
            rows = rows.filter(~rows[column].isnan())
    return rows


def with_items(engine: Engine, rows: Any, column: str) -> Any:
    """Return the rows whose item in this column can be fetched and shown, each item in one form."""
    for condition in (_in_calendar(rows[column]), _is_representable(engine, rows[column])):
        if condition is not None:
            rows = rows.filter(condition)
    return rows.mutate(**{column: _in_one_form(engine, rows[column])})


def with_exact_text(engine: Engine, table: Any, name: str) -> Any:
    """Return an Ibis table whose column of that name, if it is text, is compared byte by byte."""
    import ibis.expr.operations as operations
    import sqlglot

    form = _EXACT_TEXTS.get(engine.backend.name)
    if form is None or not table[name].type().is_string():
        return table
    engine.prepare(table)
    dialect = engine.backend.dialect
    quoted = {column: sqlglot.to_identifier(column, quoted=True).sql(dialect) for column in table.columns}
    exact = {**quoted, name: f"{form.format(quoted[name])} AS {quoted[name]}"}
    query = f"SELECT {', '.join(exact.values())} FROM ({engine.backend.compile(table)}) AS source"
    return operations.SQLQueryResult(query, table.schema(), engine.backend).to_expr()


def _in_calendar(column: Any) -> Any:
    """Return the condition that a date or time is one that Python can hold, or None for other types."""
    kind = column.type()
    if kind.is_date():
        return column.between(date.min, date.max)
    if kind.is_time():
        # PostgreSQL and DuckDB have 24:00:00. As text, because Ibis cannot compare times in nanoseconds.
        return column.cast("string") < "24"
    if not kind.is_timestamp() or kind.scale == 9:
        return None
    if kind.timezone is not None:
        return column.between(_FIRST_INSTANT, _LAST_INSTANT)
    return column.between(datetime.min, datetime.max)


def _is_representable(engine: Engine, column: Any) -> Any:
    """Return the condition that a decimal can be fetched and is not NaN, or None if that is certain."""
    kind = column.type()
    if not kind.is_decimal():
        return None
    if engine.backend.name == "postgres":
        return column.cast("string") != "NaN"
    if engine.backend.name == "duckdb" and (kind.precision, kind.scale) == (38, 0):
        # Ibis gives this type to integers of 128 bits, which can have 39 digits.
        return column.cast("string").replace("-", "").length() <= 38
    return None


def _in_one_form(engine: Engine, column: Any) -> Any:
    """Return a column of numbers without negative zeros, and without zeros at the end of PostgreSQL's decimals."""
    import ibis

    kind = column.type()
    if kind.is_floating():
        return (column == 0).ifelse(ibis.literal(0.0, kind), column)
    if kind.is_decimal() and kind.scale is None and engine.backend.name == "postgres":
        return ibis.udf.scalar.builtin(_trim_scale, name="trim_scale", signature=((kind,), kind))(column)
    return column


def _trim_scale(number: Any) -> Any:
    """Stand for the database's function of this name; Ibis needs a Python function."""
