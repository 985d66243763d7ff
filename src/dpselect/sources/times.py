"""The rows of one period, chosen where they are: by dates, by times with or without a zone, or by ISO text.

Whether a row is kept depends on its own cell and the type of the column alone. A cell that is no time is dropped.
"""

from __future__ import annotations

from datetime import UTC, datetime, time
from typing import Any

from dpselect.errors import InvalidInput, plain
from dpselect.periods import Period
from dpselect.sources.engine import Engine
from dpselect.sources.values import type_name

_DATE = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
_MINUTE = f"{_DATE}[T ]([01][0-9]|2[0-3]):[0-5][0-9]"
_SECOND = f"{_MINUTE}:[0-5][0-9]([.][0-9]+)?"
_ZONE = "(Z|[+-](0[0-9]|1[0-7])(:?[0-5][0-9])?)"

_COMPLETED = {_DATE: "T00:00:00+00:00", _MINUTE: ":00+00:00", _SECOND: "+00:00", f"{_SECOND}{_ZONE}": ""}
"""Forms of ISO text that all engines read alike, and what makes each an instant; without a zone it is in UTC."""


def within_period(engine: Engine, column: Any, name: str, period: Period) -> Any:
    """Return the condition that a cell of the column, which the user calls `name`, is a time in the period."""
    kind = column.type()
    if kind.is_date():
        return (column >= period.start) & (column < period.end)
    if kind.is_string() and engine.casts_text_safely:
        column = _instant(column)
    elif not kind.is_timestamp():
        raise InvalidInput(
            "time",
            plain(f"column {name!r} of type {type_name(kind)}"),
            "must be a column of dates or timestamps, or, except in PostgreSQL, of ISO text such as "
            "2026-11-18T10:30:00Z; convert it first",
        )
    elif kind.scale == 9:
        column = column.cast(kind.copy(scale=6))  # Ibis cannot compare times in nanoseconds
    zone = UTC if column.type().timezone is not None else None
    start, end = (datetime.combine(day, time(), zone) for day in (period.start, period.end))
    return (column >= start) & (column < end)


def _instant(text: Any) -> Any:
    """Return text as an instant, or null if it is not a time in one of the accepted forms."""
    import ibis

    # Java's $ also matches before a line feed at the end, so the end is marked by a character of our own.
    marked = text + "|"
    cases = [(marked.re_search(f"^{form}[|]$"), text + ending) for form, ending in _COMPLETED.items()]
    return ibis.cases(*cases, else_=ibis.null("string")).try_cast("timestamp('UTC')")
