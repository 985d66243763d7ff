"""The rows of one period, chosen where they are: by dates, by times with or without a zone, or by ISO text.

Whether a row is kept depends on its own cell and the type of the column alone. A cell that is no time is dropped.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from typing import Any

from dpselect.errors import InvalidInput, plain
from dpselect.periods import Period, asked_period
from dpselect.sources.engine import Engine
from dpselect.sources.values import type_name

_DATE = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
_MINUTE = f"{_DATE}[T ]([01][0-9]|2[0-3]):[0-5][0-9]"
_SECOND = f"{_MINUTE}:[0-5][0-9]([.][0-9]+)?"
_ZONE = "(Z|[+-](0[0-9]|1[0-7])(:?[0-5][0-9])?)"

_COMPLETED = {_DATE: "T00:00:00+00:00", _MINUTE: ":00+00:00", _SECOND: "+00:00", f"{_SECOND}{_ZONE}": ""}
"""Forms of ISO text that all engines read alike, and what makes each an instant; without a zone it is in UTC."""

_NANOSECONDS_A_DAY = 86_400 * 10**9


@dataclass(frozen=True)
class PeriodFilter:
    """The column that says when a row happened, and the period whose rows are read, also if it is not over.

    Examples
    --------
    >>> print(PeriodFilter.of("day", "2024-W46").period)
    2024-W46 (2024-11-11 to 2024-11-17, UTC)
    """

    column: str
    period: Period
    unfinished: bool = False

    @classmethod
    def of(cls, time: Any, period: Any, *, unfinished: bool = False) -> PeriodFilter | None:
        """Check the arguments `time`, `period` and `unfinished` of `dpselect.top`; None without a period."""
        if (time is None) != (period is None):
            missing, other = ("time", "period") if time is None else ("period", "time")
            raise InvalidInput(
                missing, None, f"must be given together with {other}: the column, and a period such as 2026-W46"
            )
        if time is not None and (not isinstance(time, str) or not time):
            raise InvalidInput("time", time, "must be the name of a column of dates or times")
        found = asked_period(period, unfinished)
        return None if found is None or time is None else cls(time, found, bool(unfinished))

    def kept(self, engine: Engine, rows: Any, column: str) -> Any:
        """Return the rows of the period; `column` is the engine's name of the column."""
        return rows.filter(_is_within(engine, rows[column], self.column, self.period))


def _is_within(engine: Engine, column: Any, name: str, period: Period) -> Any:
    """Return the condition that a cell of the column, which the user calls `name`, is a time in the period."""
    kind = column.type()
    if kind.is_date():
        return (column >= period.start) & (column < period.end)
    if _has_nanoseconds(engine, kind):
        return _is_within_nanoseconds(column, period)
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


def _has_nanoseconds(engine: Engine, kind: Any) -> bool:
    """Whether these are DuckDB's times in nanoseconds. Ibis does not know the type of those with a zone."""
    if engine.backend.name != "duckdb":
        return False
    return type_name(kind) == "TIMESTAMPTZ_NS" or (kind.is_timestamp() and kind.scale == 9)


def _is_within_nanoseconds(column: Any, period: Period) -> Any:
    """Return the condition for times in nanoseconds. They are counted from 1970, since a cast would round them."""
    import ibis

    counted = ibis.udf.scalar.builtin(_epoch_ns, name="epoch_ns", signature=((column.type(),), "int64"))(column)
    days = ((day - date(1970, 1, 1)).days for day in (period.start, period.end))
    start, end = (min(max(day * _NANOSECONDS_A_DAY, -(2**63)), 2**63 - 1) for day in days)
    return (counted >= start) & (counted < end)


def _epoch_ns(time: Any) -> Any:
    """Stand for the engine's function of this name; Ibis needs a Python function."""


def _instant(text: Any) -> Any:
    """Return text as an instant, or null if it is not a time in one of the accepted forms."""
    import ibis

    # Java's $ also matches before a line feed at the end, so the end is marked by a character of our own.
    marked = text + "|"
    cases = [(marked.re_search(f"^{form}[|]$"), text + ending) for form, ending in _COMPLETED.items()]
    return ibis.cases(*cases, else_=ibis.null("string")).try_cast("timestamp('UTC')")
