"""A listed domain in the engine: each item once, in the type of the table's item column."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

from dpselect.errors import InvalidInput, SourceError, plain
from dpselect.sources.connect import Source, is_spark
from dpselect.sources.domain import Domain
from dpselect.sources.embedded import EmbeddedEngine
from dpselect.sources.engine import Engine
from dpselect.sources.files import FileTable, shown_line
from dpselect.sources.forms import type_name, with_exact_text
from dpselect.sources.frames import arrow_table, check_columns, frame_columns, is_frame
from dpselect.sources.identity import check_not_origin
from dpselect.sources.spark import SparkEngine


def listed_items(
    stack: contextlib.ExitStack,
    embedded: Callable[[], EmbeddedEngine],
    source: Source,
    domain: Domain,
    item: str,
    kind: Any,
) -> tuple[Any, int]:
    """Return the table (key, text, position) of the distinct items that are not null, and how many they are.

    An item that the column cannot hold, where that is allowed, has a null key and its `text`. Positions point into the
    caller's list when there is one. The list is public. A table beside the rows stays where it is if its type fits;
    anything else is read and converted by the embedded engine, and handed over when the rows live elsewhere.
    """
    engine = source.engine
    there = _there(stack, source, domain)
    check_not_origin(source, domain, there)
    beside = None if there is None else _beside(engine, there, domain.column, item)
    if beside is not None and _comparable(beside.key.type(), kind):
        unique = _distinct(beside)
        return unique, _size(engine, unique, domain, item)
    if beside is not None:
        domain = Domain(table=_brought(engine, beside), column="key")
    converting = embedded()
    unique = _converted(stack, converting, domain, item, kind)
    size = _size(converting, unique, domain, item)
    if engine is not converting:
        rows = converting.run(lambda: converting.backend.to_pyarrow(unique))
        unique = stack.enter_context(engine.uploaded(rows))
        if unique.key.type() != kind:  # DuckDB makes times in nanoseconds of Arrow's
            unique = unique.mutate(key=unique.key.cast(kind))
    return unique, size


def _size(engine: Engine, unique: Any, domain: Domain, item: str) -> int:
    """Return how many items there are; none is a mistake."""
    size = engine.scalar(unique.count())
    if not size and domain.path is not None and FileTable.at("domain", domain.path).is_json:
        field = domain.column or item
        raise InvalidInput(
            "domain",
            domain.path.name,
            f"records with a field {field!r} are needed, and it has none; name another field with --domain-column "
            "(in Python, domain_column)",
        )
    if not size:
        raise InvalidInput("domain", plain("an empty list"), "at least one possible item is needed")
    return size


def _converted(stack: contextlib.ExitStack, embedded: EmbeddedEngine, domain: Domain, item: str, kind: Any) -> Any:
    try:
        return stack.enter_context(embedded.materialised(_unique(embedded, domain, item, kind)))
    except SourceError:
        pass
    if domain.path is None:
        raise InvalidInput(
            "domain",
            plain("a list" if domain.labels is not None else "a table"),
            "its items cannot be compared with those of the table; check their types",
        )
    raise InvalidInput(
        "domain",
        str(domain.path),
        "it cannot be read; in a CSV every line needs as many fields as the first, with quotes around an item that "
        "contains the delimiter",
    )


def _there(stack: contextlib.ExitStack, source: Source, domain: Domain) -> Any:
    """Return the table of the list in the engine that holds the rows, or None if it is not there."""
    import ibis

    engine, table = source.engine, domain.table
    if domain.table_name is not None:
        if source.named is None:
            raise InvalidInput(
                "domain", f"table:{domain.table_name}", "it needs rows in a database; name a file of items instead"
            )
        return _named(source.named, domain.table_name)
    if isinstance(engine, SparkEngine) and is_spark(table) and table.sparkSession is engine.session:
        return engine.named(table, stack)
    return table if isinstance(table, ibis.Table) and _is_on(table, engine) else None


def _beside(engine: Engine, table: Any, column: str | None, item: str) -> Any:
    """Return the list as a table (key) in the engine that holds the rows."""
    column = _column(list(table.columns), column, item)
    _check_single(table[column].type())
    return with_exact_text(engine, table.select(key=table[column]), "key")


def _named(named: Callable[[str], Any], name: str) -> Any:
    try:
        return named(name)
    except InvalidInput as error:
        accepted = error.accepted
    raise InvalidInput("domain", f"table:{name}", accepted)


def _is_on(table: Any, engine: Engine) -> bool:
    import ibis.expr.operations as operations

    return any(True for _ in table.op().find(operations.DatabaseTable)) and table.get_backend() is engine.backend


def _comparable(source: Any, kind: Any) -> bool:
    """Tell whether an engine compares two types by value without any conversion of ours."""
    return bool(
        (source.is_string() and kind.is_string())
        or (source.is_integer() and kind.is_integer())
        or source.copy(nullable=True) == kind.copy(nullable=True)
    )


def _distinct(given: Any) -> Any:
    import ibis

    given = given.filter(given.key.notnull())
    if given.key.type().is_floating():
        given = given.filter(~given.key.isnan())
    return given.distinct().mutate(text=ibis.literal(""), position=ibis.literal(0, "int64"))


def _brought(engine: Engine, beside: Any) -> Any:
    """Bring a public list into Python as an Arrow table, for types that need converting."""
    import pyarrow
    from ibis.formats.pyarrow import PyArrowType

    keys = [row["key"] for row in engine.fetch(beside.distinct())]
    return pyarrow.table({"key": pyarrow.array(keys, PyArrowType.from_ibis(beside.key.type()))})


def _unique(embedded: EmbeddedEngine, domain: Domain, item: str, kind: Any) -> Any:
    """Return the expression of the distinct items in the type of the item column; refuse what has no place in it."""
    given = _given(embedded, domain, item, kind)
    given = given.filter(given.key.notnull())
    if given.key.type().is_floating():
        given = given.filter(~given.key.isnan())
    source = given.key.type()
    typed = given.mutate(typed=given.key if source == kind else given.key.try_cast(kind))
    is_strange = typed.typed.isnull() | _is_changed(typed.key, typed.typed)
    # pandas calls a column without any value float64, so text is no mistake there: it is what nobody has.
    if source != kind and not (kind.is_floating() and source.is_string()):
        count = embedded.scalar(typed.filter(is_strange).count())
        if count:
            raise InvalidInput(
                "domain",
                plain("a list" if domain.labels is not None else f"a list of type {source}"),
                f"{count} of its items cannot be read as {kind}, the type of the table's column {item!r}",
            )
    text = typed.typed.isnull().ifelse(typed.key.cast("string"), "")
    typed = typed.select(key=typed.typed, text=text, position=typed.position)
    return typed.group_by("key", "text").aggregate(position=typed.position.min())


def is_single_value(kind: Any) -> bool:
    """Tell whether a column of that type holds values that can be compared and shown, such as text or numbers."""
    return not (
        kind.is_nested()
        or kind.is_interval()
        or kind.is_unknown()
        or kind.is_geospatial()
        or kind.is_json()
        or kind.is_binary()
    )


def _given(embedded: EmbeddedEngine, domain: Domain, item: str, kind: Any) -> Any:
    """Return the list as it was given: a table (key, position)."""
    import ibis

    if domain.labels is not None:
        return ibis.memtable(_label_table(domain.labels, as_text=kind.is_string()))
    if domain.path is not None:
        table = _in_file(embedded, FileTable.at("domain", domain.path), domain, item)
    elif isinstance(domain.table, ibis.Table):
        column = _column(list(domain.table.columns), domain.column, item)
        table = ibis.memtable(embedded.run(domain.table.select(column).to_pyarrow))
    elif is_spark(domain.table):
        column = _column(list(domain.table.columns), domain.column, item)
        table = ibis.memtable(embedded.run(domain.table.select(column).toArrow))
    elif is_frame(domain.table):
        column = _column(frame_columns(domain.table), domain.column, item)
        table = ibis.memtable(arrow_table("domain", domain.table, [column]))
    else:
        raise InvalidInput(
            "domain", plain(f"an object of type {type(domain.table).__name__}"), "a list of items is needed"
        )
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
            raise InvalidInput("domain", plain("a list"), "some of its items are not valid text") from None
    return pyarrow.table({"key": keys, "position": positions})


def _in_file(embedded: EmbeddedEngine, file: FileTable, domain: Domain, item: str) -> Any:
    """Return the column of a file that lists the items; the first line of a text file must be known to be no item."""
    if not domain.header:
        if not file.is_text:
            raise InvalidInput(
                "domain_header",
                file.path.name,
                "only CSV and text files have a header line; leave --domain-no-header (domain_header=False) out",
            )
        return file.bind_lines(embedded)
    column = domain.column or file.only_column(item, embedded)
    if file.is_text and column != (domain.column or item):
        shown = shown_line(column)
        raise InvalidInput(
            "domain",
            file.path.name,
            f"its first line is {shown}, not {item!r} like the column of the rows. If it names the column, write "
            f"--domain-column {shown} (in Python, domain_column); if it is an item, --domain-no-header "
            "(domain_header=False)",
        )
    bound = file.bind(embedded, [column])
    bound.load()
    return bound.table


def _column(columns: list[Any], named: str | None, item: str) -> str:
    """Return which column lists the items: the one that was named, that of the item's name, or the only one."""
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
        f"a column {item!r}, as in the table of rows, or a single column is needed; name another with --domain-column "
        "(in Python, domain_column)",
    )


def _is_changed(key: Any, typed: Any) -> Any:
    """Tell whether a conversion to a number rounded: 3.7 is no item of a column of whole numbers."""
    import ibis

    if not typed.type().is_numeric() or typed.type().is_floating() or key.type().is_boolean():
        return ibis.literal(False)
    return key.try_cast("float64") != typed.try_cast("float64")


def _check_single(kind: Any) -> None:
    if not is_single_value(kind):
        raise InvalidInput("domain", plain(f"a list of type {type_name(kind)}"), "single values are needed")
