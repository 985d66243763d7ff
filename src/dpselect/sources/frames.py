"""Tables in memory and lazy tables: their schema before the release is charged, their columns as Arrow afterwards.

How a cell is read depends on that cell and on the column types alone, never on other rows.
"""

from __future__ import annotations

import contextlib
import difflib
from collections.abc import Callable, Iterable
from typing import Any

from dpselect.errors import InvalidInput, plain

_LISTED_COLUMNS = 20

_FIRST_SECOND, _AFTER_LAST_SECOND = -62_135_596_800, 253_402_300_800
"""The years 1 to 9999, in seconds from 1970."""


def is_frame(table: Any) -> bool:
    """Whether `table` is a pandas, polars or Arrow table, or a DuckDB relation."""
    kind = type(table)
    is_tabular = any(hasattr(kind, attribute) for attribute in ("columns", "column_names", "schema"))
    is_arrow = hasattr(kind, "__arrow_c_stream__") or hasattr(kind, "__arrow_c_array__")
    return is_tabular and (is_arrow or _module(table) in ("pandas", "polars", "duckdb"))


def is_pandas(table: Any) -> bool:
    """Whether `table` is a pandas table."""
    return _module(table) == "pandas"


def frame_columns(table: Any) -> list[Any]:
    """Return the names of a frame's columns, which are public."""
    if _module(table) == "polars" and hasattr(table, "collect_schema"):
        return list(table.collect_schema().names())
    if hasattr(type(table), "column_names"):
        return list(table.column_names)
    if hasattr(type(table), "columns"):
        return list(table.columns)
    return list(table.schema.names)


def check_columns(argument: str, wanted: Iterable[str], present: list[Any]) -> None:
    """Refuse a column that a table with a public schema does not have, or has twice."""
    for name in wanted:
        if present.count(name) == 1:
            continue
        given = plain(f"column {name!r}")
        if name in present:
            raise InvalidInput(argument, given, "the table has several columns of this name; rename all but one")
        listed = ", ".join(repr(column) for column in present[:_LISTED_COLUMNS]) or "none"
        if len(present) > _LISTED_COLUMNS:
            listed += f" and {len(present) - _LISTED_COLUMNS} more"
        close = difflib.get_close_matches(name, [str(column) for column in present], n=1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        raise InvalidInput(argument, given, f"there is no such column; the columns are {listed}{hint}")


def opened(table: Any) -> Any:
    """Return a frame whose schema is known without reading it; a stream of Arrow data is opened here, once."""
    import pyarrow

    if not is_frame(table) or _module(table) in ("pandas", "polars", "duckdb", "pyarrow"):
        return table
    return pyarrow.RecordBatchReader.from_stream(table)


def without_rows(table: Any) -> Any:
    """Return a frame with the same column types and no rows; a lazy frame is not evaluated."""
    import pyarrow

    module = _module(table)
    if module == "pandas":
        return table.iloc[:0]
    if module == "polars":
        import polars

        return polars.DataFrame(schema=table.collect_schema())
    if module == "duckdb":
        return table.limit(0)
    schema = getattr(table, "schema", None)
    return schema.empty_table() if isinstance(schema, pyarrow.Schema) else table


def arrow_table(argument: str, table: Any, columns: list[str]) -> Any:
    """Return the named columns of a frame as an Arrow table with plain column types, under neutral names.

    The Arrow types follow from the column types of the frame, never from its rows.
    """
    import pyarrow

    check_columns(argument, columns, frame_columns(table))
    if is_pandas(table):
        return _neutral([_understood(argument, table[name], name, _pandas_column) for name in columns])
    if _module(table) == "polars":
        table = _polars_columns(argument, table, columns)
    if _module(table) == "duckdb":
        _check_one_case(argument, columns, frame_columns(table))
        table = table.select(*('"' + name.replace('"', '""') + '"' for name in columns))
    table = pyarrow.table(table).select(columns)
    return _neutral([_understood(argument, table.column(name), name, _plain_column) for name in columns])


def _check_one_case(argument: str, wanted: list[str], present: list[Any]) -> None:
    """Refuse a column of a DuckDB relation whose name differs from another one in case only."""
    for name in wanted:
        if sum(str(column).lower() == name.lower() for column in present) > 1:
            raise InvalidInput(
                argument,
                plain(f"column {name!r}"),
                "the relation has another column whose name differs in case only, which DuckDB ignores; rename one",
            )


def neutral_name(place: int) -> str:
    """Return the engine's name for the requested column at this place.

    The user's names are not used, because engines disagree on which names are equal: DuckDB ignores case.
    """
    return f"column_{place}"


def renamed(table: Any, columns: list[str]) -> Any:
    """Return the named columns of an Ibis table under neutral names."""
    return table.select(**{neutral_name(place): table[name] for place, name in enumerate(columns)})


def _neutral(columns: list[Any]) -> Any:
    import pyarrow

    return pyarrow.table({neutral_name(place): column for place, column in enumerate(columns)})


def _understood(argument: str, column: Any, name: str, convert: Callable[[Any], Any]) -> Any:
    """Return a column as Arrow in a type that the engine has, or refuse it by its type, which is public."""
    import pyarrow
    from ibis.formats.pyarrow import PyArrowType

    try:
        converted = convert(column)
        PyArrowType.to_ibis(converted.type)
        return converted
    except (pyarrow.ArrowException, NotImplementedError, KeyError, TypeError, ValueError):
        pass
    raise refused_column(argument, name, getattr(column, "dtype", None) or column.type)


def refused_column(argument: str, name: str, kind: Any) -> InvalidInput:
    """Return the error for a column of a type that is not supported; types are public."""
    return InvalidInput(
        argument,
        plain(f"column {name!r} of type {kind}"),
        "must be text, numbers of up to 64 bits, decimals, dates, times or booleans; convert it first",
    )


def _module(table: Any) -> str:
    return type(table).__module__.lstrip("_").partition(".")[0]


def _plain_column(column: Any) -> Any:
    """Return an Arrow column in a type that DuckDB has: dictionaries decoded, columns of type null as text."""
    import pyarrow

    if pyarrow.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pyarrow.types.is_null(column.type) or str(column.type).endswith("string_view"):
        column = column.cast(pyarrow.string())
    if pyarrow.types.is_float16(column.type):
        column = column.cast(pyarrow.float32())
    if pyarrow.types.is_decimal256(column.type):
        raise TypeError("DuckDB has no decimals of more than 38 digits")
    if pyarrow.types.is_string(column.type) or pyarrow.types.is_large_string(column.type):
        return _valid_text(column)
    return _times_in_range(column)


def _valid_text(column: Any) -> Any:
    """Return a column of text with nulls for what is not UTF-8; Arrow does not check this when a table is made."""
    import pyarrow

    try:
        column.validate(full=True)
        return column
    except pyarrow.ArrowInvalid:
        binary = pyarrow.large_binary() if pyarrow.types.is_large_string(column.type) else pyarrow.binary()
        return pyarrow.array([_decoded(value) for value in column.cast(binary)], type=column.type)


def _decoded(value: Any) -> str | None:
    try:
        return value.as_py().decode() if value.is_valid else None
    except UnicodeDecodeError:
        return None


def _times_in_range(column: Any) -> Any:
    """Return an Arrow column with nulls for times that DuckDB, which counts days or microseconds, cannot convert.

    Converting one would fail, which would reveal that someone has such a row.
    """
    import pyarrow
    import pyarrow.compute

    kind = column.type
    if pyarrow.types.is_date64(kind):
        units = 1000
    elif pyarrow.types.is_timestamp(kind) and kind.unit in ("s", "ms"):
        units = 1 if kind.unit == "s" else 1000
    else:
        return column
    number = column.cast(pyarrow.int64())
    inside = pyarrow.compute.and_(
        pyarrow.compute.greater_equal(number, _FIRST_SECOND * units),
        pyarrow.compute.less(number, _AFTER_LAST_SECOND * units),
    )
    return pyarrow.compute.if_else(inside, column, pyarrow.scalar(None, kind))


def _polars_columns(argument: str, table: Any, columns: list[str]) -> Any:
    """Return the named columns of a polars frame, lazy or not; types that Arrow lacks are refused before reading."""
    import polars

    table = table.select(columns)
    kinds = dict(table.collect_schema())
    for name, kind in kinds.items():
        if isinstance(kind, polars.Object) or str(kind) in ("Int128", "UInt128"):
            raise refused_column(argument, name, kind)
    named = [name for name, kind in kinds.items() if isinstance(kind, polars.Categorical | polars.Enum)]
    table = table.with_columns(polars.col(name).cast(polars.String) for name in named)
    return table.collect() if hasattr(table, "collect") else table


def _pandas_column(series: Any) -> Any:
    import pandas
    import pyarrow

    if isinstance(series.dtype, pandas.CategoricalDtype):
        return _categories_column(series)
    is_plain = pandas.api.types.is_numeric_dtype(series.dtype) or pandas.api.types.is_datetime64_any_dtype(series.dtype)
    if is_plain and not pandas.api.types.is_complex_dtype(series.dtype):
        return _plain_column(pyarrow.chunked_array(pyarrow.Array.from_pandas(series)))
    if isinstance(series.dtype, pandas.ArrowDtype):
        return _plain_column(pyarrow.chunked_array(series.array.__arrow_array__()))
    # A column of objects is read cell by cell as text. Arrow is faster and gives the same result if every cell is a
    # `str` or null; in other mixtures it would convert some cells by another rule than `text_of`.
    if isinstance(series.dtype, pandas.StringDtype) or pandas.api.types.infer_dtype(series) in ("string", "empty"):
        with contextlib.suppress(pyarrow.ArrowException, UnicodeError):
            return pyarrow.array(series, type=pyarrow.string(), from_pandas=True)
    return pyarrow.array([text_of(value) for value in series], type=pyarrow.string())


def _categories_column(series: Any) -> Any:
    """Return a column of categories in the type of these; pandas itself cannot turn it into whole numbers and nulls."""
    import pandas
    import pyarrow

    codes = series.cat.codes.to_numpy()
    categories = _pandas_column(pandas.Series(series.dtype.categories))
    return categories.take(pyarrow.array(codes, mask=codes < 0))


def text_of(value: Any) -> str | None:
    """Return the text of one cell of a column of objects, or None for a null or a value without valid text.

    A `str` is its own text, also as a member of an enumeration. The other cells of the column do not matter.
    """
    try:
        if is_null(value):
            return None
        text = str.__str__(value) if isinstance(value, str) else str(value)
        text.encode()
    except Exception:
        return None
    return text


def is_null(value: Any) -> bool:
    """Whether a Python object stands for a missing value: None, NaN, or pandas' NA and NaT."""
    if value is None:
        return True
    if isinstance(value, str):
        return False
    try:
        return bool(value != value)
    except (TypeError, ValueError):
        return type(value).__name__ == "NAType"
