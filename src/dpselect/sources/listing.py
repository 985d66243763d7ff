"""A listed domain in the engine: each item once, in the type of the table's column of items. The list is public."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

from dpselect.errors import InvalidInput, SourceError, plain
from dpselect.items import digest_of
from dpselect.sources.domain import Domain
from dpselect.sources.duckdb import EmbeddedEngine
from dpselect.sources.engine import Engine
from dpselect.sources.files import FileTable, shown_line
from dpselect.sources.frames import arrow_table, check_columns, frame_columns, is_frame
from dpselect.sources.identity import check_not_origin
from dpselect.sources.rows import Source, is_spark
from dpselect.sources.spark import SparkEngine
from dpselect.sources.values import is_single_value, type_name, with_exact_text, without_nulls

_NAME_COLUMN = "name the column of items with --domain-column (in Python, domain_column)"


def listed_items(
    stack: contextlib.ExitStack,
    embedded: Callable[[], EmbeddedEngine],
    source: Source,
    domain: Domain,
    item: str,
    kind: Any,
) -> tuple[Any, int]:
    """Return the table (key, text, position) of the distinct items that are not null, and their number.

    `key` is the item in the type of the column. An item that the column cannot hold, if that is allowed, has a null key
    and its `text`. `position` is its place in the caller's list, if there is one. A table in the engine of the rows
    stays there if its type fits; any other list is converted by the embedded engine and then uploaded.
    """
    engine = source.engine
    there = _in_engine_of_rows(stack, source, domain)
    check_not_origin(source, domain, there)
    if there is not None:
        keys = _keys(engine, there, domain.column, item)
        if _comparable(keys.key.type(), kind):
            unique = _distinct(keys)
            return unique, _size(engine, unique, domain, item)
        domain = Domain(table=_fetched(engine, keys), column="key")
    converting = embedded()
    unique = _converted(stack, converting, domain, item, kind)
    size = _size(converting, unique, domain, item)
    if engine is not converting:
        rows = converting.run(lambda: converting.backend.to_pyarrow(unique))
        unique = stack.enter_context(engine.uploaded(rows))
        if unique.key.type() != kind:  # DuckDB turns Arrow's times into times in nanoseconds
            unique = unique.mutate(key=unique.key.cast(kind))
    return unique, size


def items_digest(engine: Engine, listed: Any) -> str:
    """Return a hash of the items in the table of `listed_items`, whatever their order and wherever the list is."""
    import ibis

    name = ibis.coalesce(listed.key.cast("string"), listed.text)
    return digest_of(engine.columns(listed.select(mixed=engine.digest(name))).column("mixed").to_pylist())


def _size(engine: Engine, unique: Any, domain: Domain, item: str) -> int:
    """Return the number of items; refuse an empty list."""
    size = engine.scalar(unique.count())
    if not size and domain.path is not None and _file(domain).is_json:
        field = domain.column or item
        raise InvalidInput("domain", domain.path.name, f"no record has a field {field!r}; {_NAME_COLUMN}")
    if not size:
        raise InvalidInput("domain", plain("an empty list"), "must have at least one item")
    return size


def _file(domain: Domain) -> FileTable:
    assert domain.path is not None
    return FileTable.at("domain", domain.path, public=True, advice=_NAME_COLUMN)


def _converted(stack: contextlib.ExitStack, embedded: EmbeddedEngine, domain: Domain, item: str, kind: Any) -> Any:
    try:
        return stack.enter_context(embedded.materialised(_unique(embedded, domain, item, kind)))
    except SourceError:
        pass
    if domain.path is not None:
        raise _file(domain).unreadable()
    raise InvalidInput(
        "domain",
        plain("a list" if domain.labels is not None else "a table"),
        "must have items that can be compared with those of the table; check their types",
    )


def _in_engine_of_rows(stack: contextlib.ExitStack, source: Source, domain: Domain) -> Any:
    """Return the table of the list if it is in the engine of the rows, and otherwise None."""
    import ibis
    import ibis.expr.operations as operations

    engine, table, name = source.engine, domain.table, domain.table_name
    if name is not None:
        if source.named is None:
            raise InvalidInput("domain", f"table:{name}", "the rows are not in a database; name a file of items")
        try:
            return source.named(name)
        except InvalidInput as error:
            problem = error.accepted
        raise InvalidInput("domain", f"table:{name}", problem)
    if isinstance(engine, SparkEngine) and is_spark(table) and table.sparkSession is engine.session:
        return engine.named(table, stack)
    is_stored = isinstance(table, ibis.Table) and any(True for _ in table.op().find(operations.DatabaseTable))
    return table if is_stored and table.get_backend() is engine.backend else None


def _keys(engine: Engine, table: Any, column: str | None, item: str) -> Any:
    """Return the list as a table (key) in the engine of the rows."""
    column = _column(list(table.columns), column, item)
    _check_single(table[column].type())
    return with_exact_text(engine, table.select(key=table[column]), "key")


def _comparable(source: Any, kind: Any) -> bool:
    """Whether an engine compares two types by value without a conversion."""
    return bool(
        (source.is_string() and kind.is_string())
        or (source.is_integer() and kind.is_integer())
        or source.copy(nullable=True) == kind.copy(nullable=True)
    )


def _distinct(keys: Any) -> Any:
    import ibis

    return without_nulls(keys, "key").distinct().mutate(text=ibis.literal(""), position=ibis.literal(0, "int64"))


def _fetched(engine: Engine, keys: Any) -> Any:
    """Return a public list in the engine as an Arrow table, for types that need converting."""
    import pyarrow
    from ibis.formats.pyarrow import PyArrowType

    items = [row["key"] for row in engine.fetch(keys.distinct())]
    return pyarrow.table({"key": pyarrow.array(items, PyArrowType.from_ibis(keys.key.type()))})


def _unique(embedded: EmbeddedEngine, domain: Domain, item: str, kind: Any) -> Any:
    """Return the expression of the distinct items in the type of the item column; refuse items that do not fit."""
    given = without_nulls(_given(embedded, domain, item, kind), "key")
    source = given.key.type()
    typed = given.mutate(typed=given.key if source == kind else given.key.try_cast(kind))
    # pandas gives the type float64 to a column without any value, so text is accepted there: nobody has such an item.
    if source != kind and not (kind.is_floating() and source.is_string()):
        does_not_fit = typed.typed.isnull() | _is_rounded(typed.key, typed.typed)
        count = embedded.scalar(typed.filter(does_not_fit).count())
        if count:
            raise InvalidInput(
                "domain",
                plain("a list" if domain.labels is not None else f"a list of type {source}"),
                f"must have items of type {kind}, as the table's column {item!r} has; {count} of them do not fit",
            )
    text = typed.typed.isnull().ifelse(typed.key.cast("string"), "")
    typed = typed.select(key=typed.typed, text=text, position=typed.position)
    return typed.group_by("key", "text").aggregate(position=typed.position.min())


def _is_rounded(key: Any, typed: Any) -> Any:
    """Whether a conversion to a number rounded: 3.7 cannot be an item of a column of integers."""
    import ibis

    if not typed.type().is_numeric() or typed.type().is_floating() or key.type().is_boolean():
        return ibis.literal(False)
    return key.try_cast("float64") != typed.try_cast("float64")


def _given(embedded: EmbeddedEngine, domain: Domain, item: str, kind: Any) -> Any:
    """Return the list as it was given, as a table (key, position)."""
    import ibis

    given = domain.table
    if domain.labels is not None:
        return ibis.memtable(_label_table(domain.labels, as_text=kind.is_string()))
    if domain.path is not None:
        table = _in_file(embedded, _file(domain), domain, item)
    elif isinstance(given, ibis.Table) or is_spark(given):
        rows = given.select(_column(list(given.columns), domain.column, item))
        table = ibis.memtable(embedded.run(rows.to_pyarrow if isinstance(given, ibis.Table) else rows.toArrow))
    elif is_frame(given):
        column = _column(frame_columns(given), domain.column, item)
        table = ibis.memtable(arrow_table("domain", given, [column]))
    else:
        raise InvalidInput("domain", plain(f"an object of type {type(given).__name__}"), "must be a list of items")
    [column] = table.columns
    _check_single(table[column].type())
    return table.select(key=table[column], position=ibis.literal(0, "int64"))


def _label_table(labels: list[Any], *, as_text: bool) -> Any:
    import pyarrow

    positions = pyarrow.array(range(len(labels)), type=pyarrow.int64())
    try:
        keys = pyarrow.array(labels, from_pandas=True)
    except (pyarrow.ArrowException, TypeError, ValueError, OverflowError):
        keys = None
    if keys is None or (as_text and not pyarrow.types.is_string(keys.type)):
        try:
            keys = pyarrow.array([str(label) for label in labels], type=pyarrow.string())
        except (pyarrow.ArrowException, ValueError):
            raise InvalidInput("domain", plain("a list"), "must have items that are valid text") from None
    return pyarrow.table({"key": keys, "position": positions})


def _in_file(embedded: EmbeddedEngine, file: FileTable, domain: Domain, item: str) -> Any:
    """Return the column of a file that lists the items; refuse a text file whose first line may be an item."""
    if not domain.header:
        if not file.is_text:
            raise InvalidInput(
                "domain_header",
                file.path.name,
                "only CSV and text files have a header; leave --domain-no-header (domain_header=False) out",
            )
        return file.bind_lines(embedded)
    column = domain.column or file.only_column(item)
    if file.is_text and column != (domain.column or item):
        shown = shown_line(column)
        raise InvalidInput(
            "domain",
            file.path.name,
            f"its first line is {shown} instead of {item!r}, the column of the rows; if that is the header, write "
            f"--domain-column {shown} (in Python, domain_column); if it is an item, write --domain-no-header "
            "(domain_header=False)",
        )
    bound = file.bind(embedded, [column])
    bound.load()
    return bound.table


def _column(columns: list[Any], named: str | None, item: str) -> str:
    """Return the column of items: the named one, the one called like the item column, or the only one."""
    if named is not None:
        check_columns("domain_column", [named], columns)
        return named
    if item in columns:
        return item
    if len(columns) == 1:
        return str(columns[0])
    raise InvalidInput(
        "domain",
        plain("a table"),
        f"it has several columns and none is called {item!r} as in the table of rows; {_NAME_COLUMN}",
    )


def _check_single(kind: Any) -> None:
    if not is_single_value(kind):
        raise InvalidInput(
            "domain", plain(f"a list of type {type_name(kind)}"), "must hold text, numbers, dates, times or booleans"
        )
