"""A listed domain in the engine: each item once, in the type of the table's item column."""

from __future__ import annotations

import contextlib
from typing import Any

from dpselect.errors import InvalidInput, SourceError, plain
from dpselect.sources.domain import Domain
from dpselect.sources.engine import EmbeddedEngine, Engine
from dpselect.sources.files import FileTable
from dpselect.sources.frames import arrow_table, frame_columns, is_frame


def listed_items(
    stack: contextlib.ExitStack, embedded: EmbeddedEngine, engine: Engine, domain: Domain, item: str, kind: Any
) -> tuple[Any, int]:
    """Return the table (key, text, position) of the distinct items that are not null, and how many they are.

    An item that the column cannot hold, where that is allowed, has a null key and its `text`. Positions point into the
    caller's list when there is one. The list is public, so it is read and converted by the embedded engine, and handed
    over when the rows live elsewhere.
    """
    import ibis

    try:
        unique = stack.enter_context(embedded.materialised(_unique(embedded, domain, item, kind)))
    except SourceError:
        raise InvalidInput(
            "domain",
            str(domain.path or "a table"),
            "it cannot be read; in a CSV every line needs as many fields as the first, with quotes around an item that "
            "contains the delimiter",
        ) from None
    size = _number(embedded, unique.count())
    if not size:
        raise InvalidInput("domain", plain("an empty list"), "at least one possible item is needed")
    if engine is not embedded:
        unique = ibis.memtable(embedded.run(lambda: embedded.backend.to_pyarrow(unique)))
    return unique, size


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
        count = _number(embedded, typed.filter(is_strange).count())
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
        file = FileTable.at("domain", domain.path)
        column = file.only_column(item, embedded)
        table = file.bind(embedded, [column])
    elif isinstance(domain.table, ibis.Table):
        column = _column(list(domain.table.columns), item)
        table = ibis.memtable(embedded.run(domain.table.select(column).to_pyarrow))
    elif is_frame(domain.table):
        column = _column(frame_columns(domain.table), item)
        table = ibis.memtable(arrow_table("domain", domain.table, [column]))
    else:
        raise InvalidInput(
            "domain", plain(f"an object of type {type(domain.table).__name__}"), "a list of items is needed"
        )
    [column] = table.columns
    if not is_single_value(table[column].type()):
        raise InvalidInput("domain", plain(f"a list of type {table[column].type()}"), "single values are needed")
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


def _column(columns: list[Any], item: str) -> str:
    if item in columns:
        return item
    if len(columns) == 1:
        return str(columns[0])
    raise InvalidInput(
        "domain", plain("a table"), f"a column {item!r}, as in the table of rows, or a single column is needed"
    )


def _is_changed(key: Any, typed: Any) -> Any:
    """Tell whether a conversion to a number rounded: 3.7 is no item of a column of whole numbers."""
    import ibis

    if not typed.type().is_numeric() or typed.type().is_floating() or key.type().is_boolean():
        return ibis.literal(False)
    return key.try_cast("float64") != typed.try_cast("float64")


def _number(engine: Engine, count: Any) -> int:
    return int(engine.fetch(count.as_table())[0][count.get_name()])
