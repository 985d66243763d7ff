"""Dates and times that Python has room for: others are taken as nulls, since to fetch or convert one would fail.

Such a failure would tell that someone has such a row.
"""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

_FIRST_SECOND, _AFTER_LAST_SECOND = -62_135_596_800, 253_402_300_800
"""The years 1 to 9999, in seconds from 1970."""

# A time zone can move an instant by most of a day.
_FIRST_INSTANT, _LAST_INSTANT = datetime(1, 1, 2, tzinfo=UTC), datetime(9999, 12, 31, tzinfo=UTC)


def in_calendar(column: Any) -> Any:
    """Return the condition that Python has room for the value of an Ibis column, or None where that is certain."""
    kind = column.type()
    if kind.is_date():
        return column.between(date.min, date.max)
    if kind.is_time():
        # PostgreSQL and DuckDB have 24:00:00. As text, because a time in nanoseconds cannot be compared with another.
        return column.cast("string") < "24"
    if not kind.is_timestamp() or kind.scale == 9:
        return None
    if kind.timezone is not None:
        return column.between(_FIRST_INSTANT, _LAST_INSTANT)
    return column.between(datetime.min, datetime.max)


def without_strange_times(column: Any) -> Any:
    """Return an Arrow column with nulls for what the engine, which counts days or microseconds, cannot convert."""
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
