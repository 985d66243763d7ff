"""Counts that were made elsewhere: a file with one row per item, whose counts are private.

How a cell is read depends on that cell alone, and no cell is an error, because an error would say something about a
count. The rules keep the caller's promise of sensitivity: if one person moves each count of the file by 0 to 1, they
also move the score of each item by 0 to 1, since cutting off at a bound and taking the higher of two counts never moves
a score further than its counts moved.
"""

from __future__ import annotations

import contextlib
import os
from typing import Any

import numpy as np

from dpselect._numbers import FLOAT_INTEGERS
from dpselect.errors import InvalidInput, SourceError, plain
from dpselect.sources.domain import Domain
from dpselect.sources.duckdb import EmbeddedEngine, embedded_when_needed
from dpselect.sources.files import FileTable, as_number
from dpselect.sources.frames import neutral_name
from dpselect.sources.listing import listed_items
from dpselect.sources.rows import Source
from dpselect.sources.values import check_type, with_items, without_nulls


def read_counts(
    path: str | os.PathLike[str],
    *,
    item: str = "item",
    count: str = "count",
    domain: Domain | None = None,
    negative: bool = False,
    curator: bool = False,
    header_only: bool = False,
) -> dict[Any, Any]:
    r"""Read a file with one row per item and its count, as scores for `dpselect.select`.

    The file is read as `top` reads one: CSV, JSON lines, a JSON array or Parquet. A count that is missing or is not a
    finite number counts as 0; one below 0 counts as 0, and one above 2⁵³ as 2⁵³. If an item is listed twice, its
    higher count is used. Rows without an item and lines that cannot be parsed are dropped.

    Parameters
    ----------
    path : str or PathLike
        The file.
    item, count : str
        The columns with the items and the counts.
    domain : Domain or None
        The possible items: those outside it are dropped, and those without a count have 0. None for the items that the
        file lists; `select` takes these as public, unless its mechanism is one for unknown domains.
    negative : bool
        Whether scores below 0 are allowed. They are if they are not counts.
    curator : bool
        Whether the caller may know the counts: a line that cannot be parsed or a count that is not one is then an
        error.
    header_only : bool
        Whether to read no row: every listed item then has 0. What is checked before a row is read is checked.

    Returns
    -------
    dict
        The score of each item; empty if the file lists none and no domain was given.

    Raises
    ------
    InvalidInput
        If the file, a column or the domain cannot be used; with `curator`, also if a cell cannot be read.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp(), "counts.csv")
    >>> _ = file.write_text("item,count\nHeat,3\nUp,many\nHer,7\n")
    >>> read_counts(file, domain=Domain.of(["Heat", "Up", "Big"]))
    {'Big': 0, 'Heat': 3, 'Up': 0}
    """
    if item == count:
        raise InvalidInput("count", count, "must be another column than the items'")
    advice = "name the columns with --item and --count" + (", or state --person for people's rows" if curator else "")
    file = FileTable.at("file", path, public=curator, advice=advice)
    with contextlib.ExitStack() as stack:
        embedded = embedded_when_needed(stack, None)
        engine = embedded()
        bound = file.bind(engine, [item, count])
        rows = bound.table.select(item=bound.table[neutral_name(0)], given=bound.table[neutral_name(1)])
        check_type("item", item, rows.item.type())
        rows = rows.mutate(number=as_number("count", count, rows.given))
        listed = None
        if domain is not None:
            listed, _ = listed_items(stack, embedded, Source(engine, rows), domain, item, rows.item.type())
        if header_only:
            rows = rows.limit(0)
        else:
            bound.load()
        found = _fetched(engine, file, rows, listed, negative=negative, curator=curator)
    scores = found.column("score").to_numpy()
    if (scores == np.round(scores)).all():
        scores = scores.astype(np.int64)
    return dict(zip(_labels(found, domain), scores.tolist(), strict=True))


def _fetched(engine: EmbeddedEngine, file: FileTable, rows: Any, listed: Any, *, negative: bool, curator: bool) -> Any:
    """Return the Arrow table (item, text, position, score)."""
    rows = with_items(engine, without_nulls(rows, "item"), "item")
    try:
        if curator and engine.scalar(rows.filter(~_is_count(rows.number, negative)).count()):
            wanted = "finite numbers" if negative else "finite numbers of at least 0"
            raise InvalidInput("count", plain("a cell that is not a count"), f"must be {wanted} in every row")
        scored = _scored(rows, listed, negative)
        return engine.columns(scored.order_by([scored.item.cast("string"), scored.text]))
    except SourceError:
        pass
    raise file.unreadable()


def _is_count(number: Any, negative: bool) -> Any:
    finite = number.notnull() & ~(number.isnan() | number.isinf())
    return finite if negative else finite & (number >= 0)


def _scored(rows: Any, listed: Any, negative: bool) -> Any:
    """Return the expression (item, text, position, score), with every listed item if there is a list."""
    import ibis

    bounded = rows.number.clip(-FLOAT_INTEGERS if negative else 0.0, FLOAT_INTEGERS)
    read = rows.select(item=rows.item, score=_is_count(rows.number, negative=True).ifelse(bounded, 0.0))
    highest = read.group_by("item").aggregate(score=read.score.max())
    if listed is None:
        return highest.mutate(text=ibis.literal(""), position=ibis.literal(0, "int64"))
    joined = listed.left_join(highest, listed.key == highest.item)
    score = ibis.coalesce(joined.score, ibis.literal(0.0))
    return joined.select(item=joined.key, text=joined.text, position=joined.position, score=score)


def _labels(found: Any, domain: Domain | None) -> list[Any]:
    """Return the items, or the caller's own objects for them."""
    if domain is not None and domain.labels is not None:
        return [domain.labels[position] for position in found.column("position").to_pylist()]
    items, texts = (found.column(name).to_pylist() for name in ("item", "text"))
    return [text if value is None else value for value, text in zip(items, texts, strict=True)]
