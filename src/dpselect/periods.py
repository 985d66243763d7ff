"""Calendar periods: days, ISO weeks and months in UTC, by which a data set can have a budget each.

A row belongs to the period that its time, in UTC, falls into: a week from Monday to Sunday (ISO 8601), a calendar
month, or a day. A time without a zone is taken as UTC.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any, NamedTuple

from dpselect.errors import InvalidInput


class PeriodUnit(NamedTuple):
    """A kind of period: how its names look, which day one begins, and how many a year has."""

    form: re.Pattern[str]
    example: str
    first_day: Callable[..., date]
    a_year: int


UNITS = {
    "day": PeriodUnit(re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})"), "2026-11-18", date, 365),
    "week": PeriodUnit(
        re.compile(r"([0-9]{4})-W([0-9]{2})"), "2026-W46", lambda year, week: date.fromisocalendar(year, week, 1), 52
    ),
    "month": PeriodUnit(re.compile(r"([0-9]{4})-([0-9]{2})"), "2026-11", lambda year, month: date(year, month, 1), 12),
}
"""The kinds of periods. A year of 366 days or 53 weeks is counted as the usual one."""

_FORMS = "must be a day (2026-11-18), an ISO week (2026-W46) or a month (2026-11) of the calendar"


@dataclass(frozen=True)
class Period:
    """A day, week or month of the calendar in UTC, from `start` up to but not including `end`.

    Examples
    --------
    >>> week = Period.of("2026-W46")
    >>> print(week.start, week.end, week)
    2026-11-09 2026-11-16 2026-W46 (2026-11-09 to 2026-11-15, UTC)
    """

    name: str
    unit: str
    start: date
    end: date

    @classmethod
    def of(cls, name: Any) -> Period:
        """Return the period of a name; refuse one that the calendar does not have."""
        for unit, kind in UNITS.items():
            match = kind.form.fullmatch(name) if isinstance(name, str) else None
            if match is None:
                continue
            try:
                start = kind.first_day(*map(int, match.groups()))
                return cls(name, unit, start, _next(start, unit))
            except (ValueError, OverflowError):
                break
        raise InvalidInput("period", name, _FORMS)

    def __str__(self) -> str:
        """Say which days it has."""
        last = self.end - timedelta(days=1)
        days = str(self.start) if last == self.start else f"{self.start} to {last}"
        return f"{self.name} ({days}, UTC)"

    def check_over(self, *, unfinished: bool = False) -> None:
        """Refuse a period that has not begun, or, unless `unfinished`, one that is not over, by this machine's clock.

        A clock that was set back can only refuse a period: what is charged goes by the name of the period.
        """
        today = utc_now().date()
        if today < self.start:
            raise InvalidInput(
                "period", self.name, f"it has not begun: today is {today} in UTC; name a period that is over"
            )
        if today < self.end and not unfinished:
            raise InvalidInput(
                "period",
                self.name,
                f"it is not over before {self.end}, and today is {today} in UTC; wait, or write --unfinished (in "
                "Python, unfinished=True) to ask about a part of it",
            )


def asked_period(period: Any, unfinished: Any) -> Period | None:
    """Check the arguments `period` and `unfinished` of a release; return the period, None if none is given."""
    if not isinstance(unfinished, bool):
        raise InvalidInput("unfinished", unfinished, "must be True or False")
    if period is None:
        if unfinished:
            raise InvalidInput("unfinished", unfinished, "must be left out without a period")
        return None
    found = Period.of(period)
    found.check_over(unfinished=unfinished)
    return found


def protected_unit(protects: str, unit: str) -> str:
    """Return what is protected if each period counts by itself: "one person's week"."""
    return f"{protects}'s {unit}"


def unit_named(every: Any) -> str:
    """Return the kind of period, if there is one of that name."""
    if not isinstance(every, str) or every not in UNITS:
        raise InvalidInput("every", every, f"must be one of {', '.join(UNITS)}")
    return every


def utc_now() -> datetime:
    """Return the time by the clock of this machine, in UTC."""
    return datetime.now(UTC)


def _next(start: date, unit: str) -> date:
    """Return the first day of the next period."""
    if unit == "month":
        return date(start.year + start.month // 12, start.month % 12 + 1, 1)
    return start + timedelta(days=7 if unit == "week" else 1)
