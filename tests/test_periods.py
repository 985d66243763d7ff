"""Days, weeks and months: their names, their rows, what a release about one protects, and when it may be asked for."""

from __future__ import annotations

import contextlib
import json
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as some

import dpselect as dps
from dpselect import periods
from dpselect.ledger import Budget, Ledger
from dpselect.periods import UNITS, Period


@given(some.dates(max_value=date(9998, 12, 31)))
def test_every_day_is_in_one_period_of_each_kind(day: date) -> None:
    year, week, _ = day.isocalendar()
    names = {"day": day.isoformat(), "week": f"{year:04}-W{week:02}", "month": f"{day.year:04}-{day.month:02}"}
    for unit, name in names.items():
        period = Period.of(name)
        assert (period.name, period.unit) == (name, unit)
        assert period.start <= day < period.end
        assert 0 < (period.end - period.start).days <= 31
        if unit == "week":
            assert (period.start.weekday(), (period.end - period.start).days) == (0, 7)


@given(some.text(alphabet="0123456789-W w", max_size=11) | some.none() | some.integers())
def test_other_names_are_refused_or_are_periods(name: Any) -> None:
    try:
        period = Period.of(name)
    except dps.InvalidInput:
        return
    assert period.name == name
    assert period.start < period.end


@pytest.mark.parametrize(
    "name",
    ["2026-W54", "2025-W53", "2026-W00", "2026-13", "2026-00", "2026-02-29", "0000-01", "2026", "2026-w46", "2026-W46 ",
     "2026W46", "٢٠٢٦-11", "2026-W46-1", "9999-12-31", "9999-W52", ""],
)  # fmt: skip
def test_what_the_calendar_does_not_have_is_refused(name: str) -> None:
    with pytest.raises(dps.InvalidInput, match="period must be a day"):
        Period.of(name)


def test_units_are_those_of_a_usual_year() -> None:
    assert {name: unit.a_year for name, unit in UNITS.items()} == {"day": 365, "week": 52, "month": 12}
    assert all(Period.of(unit.example).unit == name for name, unit in UNITS.items())
    assert str(Period.of("2026-11-18")) == "2026-11-18 (2026-11-18, UTC)"
    assert str(Period.of("2024-02")) == "2024-02 (2024-02-01 to 2024-02-29, UTC)"


@pytest.fixture
def november(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set the clock to Wednesday of week 47 of 2026, a minute before midnight in UTC."""
    monkeypatch.setattr(periods, "utc_now", lambda: datetime(2026, 11, 18, 23, 59, tzinfo=UTC))


DAYS = [date(2026, 11, 1) + timedelta(days) for days in range(30)]
ROWS = pd.DataFrame({"film": [f"film {day.day}" for day in DAYS], "viewer": range(30), "day": DAYS})
FILMS = [f"film {number}" for number in range(1, 31)]


def asked(table: Any = ROWS, **changes: Any) -> dps.Release:
    question: dict[str, Any] = {"item": "film", "person": "viewer", "k": 5, "epsilon": 0.5, "domain": FILMS, **changes}
    return dps.top(table, **question)


@pytest.mark.usefixtures("november")
class TestWhatMayBeAsked:
    @pytest.mark.parametrize("period", ["2026-W46", "2026-10", "2026-11-17", "1970-W01"])
    def test_a_period_that_is_over(self, period: str) -> None:
        release = asked(time="day", period=period, seed=1)
        assert release.period == release.to_dict()["period"] == period
        assert dps.Release.from_dict(json.loads(json.dumps(release.to_dict()))) == release

    @pytest.mark.parametrize(("period", "end"), [("2026-W47", "11-23"), ("2026-11", "12-01"), ("2026-11-18", "11-19")])
    def test_a_period_that_is_not_over_must_be_asked_for(self, period: str, end: str) -> None:
        refused = f"it is not over before 2026-{end}, and today is 2026-11-18 in UTC; wait, or write --unfinished"
        for ask in (asked_with_time, found, best, chosen):
            with pytest.raises(dps.InvalidInput, match=refused):
                ask(period=period)
            assert ask(period=period, unfinished=True).period == period

    @pytest.mark.parametrize("period", ["2026-W48", "2026-12", "2026-11-19", "9998-W01"])
    def test_a_period_that_has_not_begun_is_refused(self, period: str) -> None:
        for ask in (asked_with_time, found, best, chosen):
            for unfinished in (False, True):
                with pytest.raises(dps.InvalidInput, match="it has not begun: today is 2026-11-18 in UTC"):
                    ask(period=period, unfinished=unfinished)

    def test_a_clock_that_is_set_back_only_refuses(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        """What is charged goes by the name of the period, so that no clock can give a week a second budget."""
        with Ledger(tmp_path / "budget.sqlite") as ledger:
            ledger.create("views", epsilon=0.5, every="week")
            kept: dict[str, Any] = {"ledger": ledger, "dataset": "views", "time": "day", "period": "2026-W46"}
            asked(**kept)
            monkeypatch.setattr(periods, "utc_now", lambda: datetime(2026, 11, 12, tzinfo=UTC))
            with pytest.raises(dps.InvalidInput, match="not over"):
                asked(**kept)
            with pytest.raises(dps.BudgetExceeded):
                asked(**kept, unfinished=True)
            monkeypatch.setattr(periods, "utc_now", lambda: datetime(2026, 1, 1, tzinfo=UTC))
            with pytest.raises(dps.InvalidInput, match="not begun"):
                ledger.charge("views", epsilon=0.1, period="2026-W45")
            assert ledger.check() == []


def found(**changes: Any) -> dps.DomainRelease:
    question: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6, "max_items_per_person": 1, "time": "day", **changes}
    return dps.discover(ROWS, item="film", person="viewer", **question)


def best(**changes: Any) -> dps.Release:
    games = pd.DataFrame({"winner": ["a", "b"], "loser": ["b", "a"], "day": DAYS[:2]})
    caps: dict[str, Any] = {"comparisons_per_pair": 1, "max_degree": 1, "time": "day", **changes}
    return dps.rank(games, k=1, epsilon=1.0, domain=["a", "b"], **caps)


def chosen(**changes: Any) -> dps.Release:
    return dps.select({"a": 1, "b": 2}, k=1, epsilon=1.0, **changes)


def asked_with_time(**changes: Any) -> dps.Release:
    return asked(**{"time": "day", **changes})


@pytest.mark.slow
class TestRelease:
    def test_it_protects_a_person_in_that_period(self) -> None:
        release = asked(time="day", period="2024-W46")
        assert release.guarantee.protects == "one person's week"
        assert str(release.guarantee).startswith(
            "epsilon = 0.5: protects one person's week with all they contributed in it; adding or removing it changes"
        )
        assert (
            asked(time="day", period="2024-11", protects="one household").guarantee.protects == "one household's month"
        )
        assert best(period="2024-11-11").guarantee.protects == "one comparison's day"
        assert found(period="2024-11-11").guarantee.protects == "one person's day"
        assert chosen(period="2024-W46").guarantee.protects == "one person's week"

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"time": "day"}, "period must be given together with time"),
            ({"period": "2024-W46"}, "time must be given together with period"),
            ({"time": "", "period": "2024-W46"}, "time must be the name of a column"),
            ({"time": "when", "period": "2024-W46"}, "there is no such column"),
            ({"time": "viewer", "period": "2024-W46"}, "column 'viewer' of type int64"),
            ({"time": "day", "period": "last week"}, "period must be a day"),
            ({"unfinished": True}, "unfinished must be left out without a period"),
            ({"time": "day", "period": "2024-W46", "unfinished": 1}, "unfinished must be True or False"),
        ],
    )
    def test_bad_arguments_cost_nothing(self, arguments: dict[str, Any], message: str, tmp_path: Path) -> None:
        with Ledger(tmp_path / "budget.sqlite") as ledger:
            ledger.create("views", epsilon=0.5, every="week")
            with pytest.raises(dps.InvalidInput, match=message):
                asked(ledger=ledger, dataset="views", **arguments)
            assert ledger.entries("views") == []

    @pytest.mark.slow
    @pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
    @pytest.mark.parametrize("zone", [None, "UTC", "America/New_York"])
    def test_frames_of_every_resolution_and_zone(self, unit: str, zone: str | None) -> None:
        """Midnight in New York is five hours later in UTC, so that Sunday's last hours are of the next week."""
        hours = pd.date_range("2024-11-10 20:00", "2024-11-18 04:00", freq="h", tz=zone).as_unit(unit)
        frame = pd.DataFrame({"film": range(len(hours)), "viewer": range(len(hours)), "day": hours})
        utc = hours if zone is None else hours.tz_convert("UTC").tz_localize(None)
        expected = {n for n, hour in enumerate(utc) if datetime(2024, 11, 11) <= hour < datetime(2024, 11, 18)}
        for table in (frame, pl.from_pandas(frame)):
            release = asked(
                table,
                domain=range(len(hours)),
                k=len(hours),
                epsilon=1e9,
                values=0.5,
                time="day",
                period="2024-W46",
                seed=1,
            )
            assert release.values is not None
            assert {item for item, value in zip(release.items, release.values, strict=True) if value} == expected

    @pytest.mark.parametrize("zone", [None, "UTC", "America/New_York"])
    @pytest.mark.parametrize("kind", ["parquet", "arrow", "relation"])
    def test_times_in_nanoseconds_are_not_rounded_into_the_next_week(
        self, kind: str, zone: str | None, tmp_path: Path
    ) -> None:
        """The first and last instants of the week, those beside them, and numbers that stand for no time."""
        edges = [np.datetime64(day, "ns").astype("int64") for day in ("2024-11-11", "2024-11-18")]
        times = [edge + step for edge in edges for step in (-1, 0, 1)] + [2**63 - 1, 1 - 2**63]
        day = pa.array(times, "int64").cast(pa.timestamp("ns", zone))
        rows = pa.table({"film": [f"film {n + 1}" for n in range(8)], "viewer": range(8), "day": day})
        pq.write_table(rows, tmp_path / "views.parquet")
        with contextlib.closing(duckdb.connect()) as connection:
            relation = connection.read_parquet(str(tmp_path / "views.parquet"))
            table = {"parquet": tmp_path / "views.parquet", "arrow": rows, "relation": relation}[kind]
            release = asked(table, k=6, epsilon=1e9, values=0.5, time="day", period="2024-W46", seed=1)
        assert release.values is not None
        kept = {item for item, value in zip(release.items, release.values, strict=True) if value}
        assert kept == {"film 2", "film 3", "film 4"}

    @pytest.mark.parametrize("ending", [".csv", ".jsonl"])
    def test_text_files_hold_iso_text(self, ending: str, tmp_path: Path) -> None:
        file = tmp_path / f"views{ending}"
        cells = ["2024-11-11", "2024-11-17T23:59:59Z", "2024-11-18", "no time", "", "2024-11-12"]
        if ending == ".csv":
            file.write_text("film,viewer,day\n" + "".join(f"film {n + 1},{n},{cell}\n" for n, cell in enumerate(cells)))
        else:
            lines = [{"film": f"film {n + 1}", "viewer": n, "day": cell} for n, cell in enumerate(cells)]
            file.write_text("".join(json.dumps(line) + "\n" for line in lines))
        release = asked(file, k=4, epsilon=1e9, values=0.5, time="day", period="2024-W46", seed=1)
        assert release.values is not None
        kept = {item for item, value in zip(release.items, release.values, strict=True) if value}
        assert kept == {"film 1", "film 2", "film 6"}

    @pytest.mark.parametrize("mechanism", ["restricted", "limited", "top-stable", "discovered"])
    def test_items_of_other_weeks_do_not_exist(self, mechanism: str) -> None:
        days = [date(2024, 11, 12), date(2024, 11, 1)]
        rows = pd.DataFrame({"film": ["Up", "Heat"] * 900, "viewer": range(1800), "day": days * 900})
        release = asked(
            rows,
            k=2,
            epsilon=2.0,
            delta=1e-6,
            domain=dps.UNKNOWN,
            mechanism=mechanism,
            max_items_per_person=1 if mechanism == "discovered" else None,
            time="day",
            period="2024-W46",
            seed=1,
        )
        assert release.items == ["Up"]

    def test_the_period_comes_before_the_groups(self) -> None:
        """Each person counts in one of two groups, and has rows of the week in one: the other must not be chosen."""
        days = [date(2024, 11, 12), date(2024, 11, 1)]
        people = [person for person in range(300) for _ in range(2)]
        rows = pd.DataFrame({"film": "Up", "viewer": people, "day": days * 300, "country": ["DE", "FR"] * 300})
        release = asked(
            rows,
            k=1,
            epsilon=1e9,
            values=0.5,
            domain=["Up", "Heat"],
            by="country",
            groups=["DE", "FR"],
            time="day",
            period="2024-W46",
            seed=1,
        )
        assert release.groups is not None
        assert release.groups["DE"].values == [300]
        assert release.groups["FR"].values == [0]
        assert {part.period for part in (release, *release.groups.values())} == {"2024-W46"}
        assert release.guarantee.protects == release.groups["DE"].guarantee.protects == "one person's week"
        assert dps.Release.from_dict(json.loads(json.dumps(release.to_dict()))) == release

    def test_a_condition_and_the_column_of_items_may_be_used_too(self) -> None:
        days = pd.DataFrame({"day": DAYS * 2, "viewer": range(60), "old": [1] * 30 + [0] * 30})
        release = dps.top(
            days,
            item="day",
            person="viewer",
            k=3,
            epsilon=1e9,
            values=0.5,
            domain=DAYS,
            time="day",
            period="2026-11-02",
            unfinished=True,
            where="old = 1",
            seed=1,
        )
        assert release.values is not None
        assert sorted(release.values) == [0, 0, 1]


@pytest.mark.usefixtures("november")
class TestLedger:
    @pytest.fixture
    def ledger(self, tmp_path: Path) -> Any:
        """A ledger with a data set that has half an epsilon each week."""
        with Ledger(tmp_path / "budget.sqlite") as opened:
            opened.create("views", epsilon=0.5, every="week")
            opened.create("films", epsilon=1.0)
            yield opened

    def test_each_week_has_its_own_budget(self, ledger: Ledger) -> None:
        kept: dict[str, Any] = {"ledger": ledger, "dataset": "views", "time": "day"}
        for week in (44, 45, 46):
            asked(**kept, period=f"2026-W{week}")
            with pytest.raises(dps.BudgetExceeded, match=f"'views' for 2026-W{week} does not allow"):
                asked(**kept, period=f"2026-W{week}")
        assert ledger.spent("views") == Budget(1.5)
        assert [entry.period for entry in ledger.entries("views")] == ["2026-W44", "2026-W45", "2026-W46"]
        assert [entry.parameters["period"] for entry in ledger.entries("views")] == ["2026-W44", "2026-W45", "2026-W46"]
        assert ledger.check() == []

    def test_releases_without_a_period_are_refused_discoveries_included(self, ledger: Ledger) -> None:
        kept: dict[str, Any] = {"ledger": ledger, "dataset": "views"}
        ledger.create("deltas", epsilon=1.0, delta=1e-3, every="week")
        missing = "period must be a week such as 2026-W46, as data set '.*' has a total for each week, got None"
        with pytest.raises(dps.InvalidInput, match=missing):
            asked(**kept)
        with pytest.raises(dps.InvalidInput, match=missing):
            asked(**kept, protects="one person's week")
        with pytest.raises(dps.InvalidInput, match=missing):
            chosen(**kept)
        with pytest.raises(dps.InvalidInput, match=missing):
            dps.discover(
                ROWS,
                item="film",
                person="viewer",
                epsilon=1.0,
                delta=1e-6,
                max_items_per_person=1,
                ledger=ledger,
                dataset="deltas",
            )
        assert found(ledger=ledger, dataset="deltas", period="2026-W46").period == "2026-W46"
        assert [entry.period for entry in ledger.entries("deltas")] == ["2026-W46"]
        with pytest.raises(dps.InvalidInput, match="got '2026-10'"):
            asked(**kept, time="day", period="2026-10")
        assert ledger.entries("views") == []

    def test_a_data_set_for_all_time_refuses_a_period(self, ledger: Ledger) -> None:
        with pytest.raises(dps.InvalidInput, match=r"'films' has one total for all time; leave the period out"):
            asked(ledger=ledger, dataset="films", time="day", period="2026-W46")
        assert ledger.entries("films") == []

    def test_scores_of_a_week_may_be_charged_to_it(self, ledger: Ledger) -> None:
        release = dps.select({"a": 9, "b": 2}, k=1, epsilon=0.25, period="2026-W46", ledger=ledger, dataset="views")
        assert release.period == "2026-W46"
        assert ledger.remaining("views", "2026-W46") == Budget(0.25)

    def test_a_week_is_answered_once(self, ledger: Ledger) -> None:
        kept: dict[str, Any] = {"ledger": ledger, "dataset": "views", "time": "day", "once": "chart", "epsilon": 0.25}
        first = asked(**kept, period="2026-W46")
        assert asked(**kept, period="2026-W46") == first
        for other in ({"period": "2026-W45"}, {"period": "2026-W46", "unfinished": True}):
            with pytest.raises(dps.KeyReused):
                asked(**kept, **other)
        assert ledger.remaining("views", "2026-W46") == Budget(0.25)
        assert ledger.check() == []

    def test_an_answer_about_an_unfinished_week_is_not_that_of_the_whole_week(
        self, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        ledger.create("games", epsilon=2.0, every="week", protects="one comparison")
        kept: dict[str, Any] = {"ledger": ledger, "once": "chart", "period": "2026-W47"}
        scored: dict[str, Any] = {"k": 1, "epsilon": 0.25, "dataset": "views", **kept}
        assert not dps.select({"a": 9, "b": 2}, **scored, unfinished=True).repeated
        assert not best(**kept, dataset="games", unfinished=True).repeated
        monkeypatch.setattr(periods, "utc_now", lambda: datetime(2026, 11, 25, tzinfo=UTC))
        with pytest.raises(dps.KeyReused):
            dps.select({"a": 9, "b": 2}, **scored)
        with pytest.raises(dps.KeyReused):
            best(**kept, dataset="games")

    def test_the_last_release_of_a_week_fills_it(self, ledger: Ledger) -> None:
        ledger.create("tenths", epsilon=0.3, every="week")
        kept: dict[str, Any] = {"ledger": ledger, "dataset": "tenths", "time": "day", "period": "2026-W46"}
        releases = [asked(**kept, epsilon=0.1) for _ in range(3)]
        assert releases[2].guarantee.epsilon < 0.1
        assert ledger.remaining("tenths", "2026-W46") == Budget(0.0)
