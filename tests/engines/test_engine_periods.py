"""Every engine reads the rows of one period: dates, times with and without a zone, ISO text, and no other cells."""

from __future__ import annotations

import re
from collections import Counter
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import pytest
from engine_places import Place, PostgreSqlDatabase, SparkSession, rows_of

import dpselect as dps
from dpselect.periods import Period

pytestmark = pytest.mark.slow

MONDAY, SUNDAY = date(2024, 11, 11), date(2024, 11, 17)
TICK = timedelta(microseconds=1)
WEEK = "2024-W46"

DAYS = [date(1, 1, 1), MONDAY - timedelta(1), MONDAY, SUNDAY, SUNDAY + timedelta(1), date(9999, 12, 31), None]
_MIDNIGHT = datetime(2024, 11, 11)
TIMES = [
    *(edge + step for edge in (_MIDNIGHT, _MIDNIGHT + timedelta(7)) for step in (-TICK, timedelta(), TICK)),
    datetime(1970, 1, 1),
    None,
]
TEXTS = [
    *("2024-11-10", "2024-11-11", "2024-11-17", "2024-11-18", "2024-11-31", "2024-02-30"),
    *(
        "2024-11-10T23:59",
        "2024-11-11 00:00",
        "2024-11-17T23:59:59.999999",
        "2024-11-17 24:00:00",
        "2024-11-18T00:00:00",
    ),
    *("2024-11-11T00:00:00Z", "2024-11-11T00:59:59+01:00", "2024-11-11T01:00:00+01:00", "2024-11-17T23:30:00-01:00"),
    *("2024-11-10T20:00:00-0400", "2024-11-10 19:59:59-0400", "2024-11-18T05:29:59+05:30", "2024-11-18T13:59:59+14"),
    *("2024-11-12T10:00:00+18:00", "2024-11-12T10:00:00 Europe/Berlin", "2024-11-12T10", "2024-11-12T10:61:00"),
    *(
        "20241112",
        "12.11.2024",
        "11/12/2024",
        "2024-W46-2",
        " 2024-11-12",
        "2024-11-12 ",
        "2024-11-12\n",
        "12024-11-12",
    ),
    *("today", "now", "epoch", "infinity", "null", "", "1731369600", "２０２４-11-12", None),
]
_ISO = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
    r"([T ]([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9](\.[0-9]+)?(Z|[+-](0[0-9]|1[0-7])(:?[0-5][0-9])?)?)?)?"
)


def read(cell: Any) -> datetime | None:
    """Return the instant that a cell stands for as the manual says: ISO text, in UTC unless it names a zone."""
    if isinstance(cell, str):
        try:
            cell = datetime.fromisoformat(cell) if _ISO.fullmatch(cell) else None
        except ValueError:
            return None
    if isinstance(cell, date) and not isinstance(cell, datetime):
        cell = datetime(cell.year, cell.month, cell.day)
    return cell if cell is None or cell.tzinfo else cell.replace(tzinfo=UTC)


def within(cell: Any, period: Period) -> bool:
    instant = read(cell)
    start = datetime(period.start.year, period.start.month, period.start.day, tzinfo=UTC)
    return instant is not None and start <= instant < start + (period.end - period.start)


CELLS = {
    "dates": DAYS,
    "times": TIMES,
    "times with a zone": [time and time.replace(tzinfo=timezone(timedelta(hours=0))) for time in TIMES],
    "text": TEXTS,
}


def kept(place: Place, cells: list[Any], period: str) -> set[int]:
    """Return the numbers of the rows that an engine counts; every row has an item and a person of its own."""
    numbers = list(range(len(cells)))
    place.put("visits", rows_of(item=numbers, person=numbers, at=cells))
    source = place.source("visits")
    asked: dict[str, Any] = {"item": "item", "person": "person", "time": "at", "period": period, "seed": 1}
    release = dps.top(source.pop("table"), **source, **asked, k=len(cells), epsilon=1e9, values=0.5, domain=numbers)
    assert release.values is not None
    return {item for item, value in zip(release.items, release.values, strict=True) if value}


@pytest.mark.parametrize("kind", CELLS)
def test_the_rows_of_a_week_are_read_and_no_others(place: Place, kind: str) -> None:
    cells = CELLS[kind]
    expected = {number for number, cell in enumerate(cells) if within(cell, Period.of(WEEK))}
    assert 1 < len(expected) < len(cells) - 2
    if kind == "text" and place.name == "postgresql":
        with pytest.raises(dps.InvalidInput, match="time must be a column of dates or timestamps"):
            kept(place, cells, WEEK)
    else:
        assert kept(place, cells, WEEK) == expected


@pytest.mark.parametrize("period", ["2024-11", "2024-02", "2024-11-10", "2024-11-17", "9998-12", "0001-01"])
def test_days_and_months_have_their_own_rows(quick_place: Place, period: str) -> None:
    for kind in ("dates", "times", "times with a zone", "text"):
        if kind == "text" and quick_place.name == "postgresql":
            continue
        if Period.of(period).start.year > 9000:
            with pytest.raises(dps.InvalidInput, match="has not begun"):
                kept(quick_place, CELLS[kind], period)
            continue
        expected = {number for number, cell in enumerate(CELLS[kind]) if within(cell, Period.of(period))}
        assert kept(quick_place, CELLS[kind], period) == expected, kind


def test_the_time_zone_of_a_postgresql_session_does_not_matter(fresh_database: PostgreSqlDatabase) -> None:
    with fresh_database.connect() as connection:
        connection.execute(f"ALTER DATABASE {fresh_database.database} SET timezone TO 'America/New_York'")
    for kind in ("dates", "times", "times with a zone"):
        expected = {number for number, cell in enumerate(CELLS[kind]) if within(cell, Period.of(WEEK))}
        assert kept(fresh_database, CELLS[kind], WEEK) == expected


def test_times_that_never_end_are_in_no_period_in_postgresql(fresh_database: PostgreSqlDatabase) -> None:
    with fresh_database.connect() as connection:
        connection.execute("CREATE TABLE visits (item text, person text, day date, at timestamp, instant timestamptz)")
        connection.execute(
            "INSERT INTO visits SELECT 'ham', each, each::date, each::timestamp, each::timestamptz "
            "FROM unnest(ARRAY['infinity', '-infinity', '2024-11-12', '0044-03-15 BC', '200000-01-01']) AS each"
        )
    for column in ("day", "at", "instant"):
        release = dps.top(
            fresh_database.url,
            table_name="visits",
            item="item",
            person="person",
            time=column,
            period=WEEK,
            k=1,
            epsilon=1e9,
            values=0.5,
            domain=["ham"],
            seed=1,
        )
        assert release.values == [1]


def test_the_time_zone_of_a_spark_session_does_not_matter(spark_place: SparkSession) -> None:
    before = spark_place.session.conf.get("spark.sql.session.timeZone")
    spark_place.session.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        for kind in ("times with a zone", "text"):
            expected = {number for number, cell in enumerate(CELLS[kind]) if within(cell, Period.of(WEEK))}
            assert kept(spark_place, CELLS[kind], WEEK) == expected
        assert spark_place.session.conf.get("spark.sql.session.timeZone") == "Asia/Tokyo"
    finally:
        spark_place.session.conf.set("spark.sql.session.timeZone", before)


@pytest.mark.parametrize("cells", [[1, 2], [1.5, 2.5], [True, False]], ids=["whole numbers", "numbers", "booleans"])
def test_a_column_without_times_is_refused_by_its_type(place: Place, cells: list[Any]) -> None:
    with pytest.raises(dps.InvalidInput, match=r"time must be a column of dates or timestamps.* column 'at' of type "):
        kept(place, cells, WEEK)


def test_the_period_comes_before_the_domain_and_the_items_of_each_person(place: Place) -> None:
    """Of each person's two items one is kept, and only one of the two is of the week."""
    people = [f"person {number}" for number in range(200)]
    rows = rows_of(
        item=["ham", "jam"] * len(people),
        person=[person for person in people for _ in range(2)],
        day=[MONDAY, MONDAY - timedelta(1)] * len(people),
    )
    place.put("orders", rows)
    source = place.source("orders")
    asked: dict[str, Any] = {"item": "item", "person": "person", "time": "day", "period": WEEK, "seed": 1}
    release = dps.top(
        source.pop("table"),
        **source,
        **asked,
        k=1,
        epsilon=1e9,
        values=0.5,
        domain=["ham", "jam", "fig"],
        max_items_per_person=1,
    )
    assert (release.items, release.values) == (["ham"], [200])
    assert release.guarantee.protects == "one person's week"
    found = dps.discover(
        place.source("orders")["table"],
        **source,
        **asked,
        epsilon=1.0,
        delta=1e-6,
        max_items_per_person=1,
    )
    assert (found.items, found.guarantee.protects, found.period) == (["ham"], "one person's week", WEEK)


@pytest.mark.parametrize("labels", [["s0", "s1"], ["Oslo", "Turku"]], ids=["labels of one length", "of two lengths"])
def test_groups_have_the_rows_of_the_period(place: Place, labels: list[str]) -> None:
    people, items = list(range(60)), ["ham", "eggs", "rice", "tea", "figs"]
    days = [SUNDAY if person % 3 else SUNDAY + timedelta(1) for person in people]
    shops = [labels[person % 2] for person in people]
    place.put("visits", rows_of(item=[items[person % 5] for person in people], person=people, at=days, shop=shops))
    source = place.source("visits")
    release = dps.top(
        source.pop("table"),
        **source,
        item="item",
        person="person",
        by="shop",
        groups=labels,
        time="at",
        period=WEEK,
        k=5,
        epsilon=1e9,
        values=0.5,
        domain=items,
        seed=1,
    )
    for group, answer in release.groups.items():
        assert answer.values is not None
        counted = Counter(items[person % 5] for person in people if person % 3 and shops[person] == group)
        assert dict(zip(answer.items, answer.values, strict=True)) == counted
