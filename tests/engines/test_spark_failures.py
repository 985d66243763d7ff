"""What goes wrong with Spark: told plainly, paid for only if recorded, and nothing left in the session."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from engine_cases import BUYERS, GOODS
from engine_places import SparkSession
from pyspark import InheritableThread

import dpselect as dps
from dpselect.errors import SourceError

pytestmark = pytest.mark.slow


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[dps.privacy.Ledger]:
    with dps.privacy.Ledger(tmp_path / "budget.sqlite") as opened:
        opened.create("shop", epsilon=9.0, delta=0.01)
        yield opened


@pytest.fixture
def place(spark_place: SparkSession) -> Iterator[SparkSession]:
    """Yield a session with the table orders, and see at the end that it is as it was."""
    spark_place.put("orders", BUYERS)
    before = state(spark_place)
    yield spark_place
    assert state(spark_place) == before
    assert spark_place.frame("orders").count() == BUYERS.num_rows


def state(place: SparkSession) -> tuple[Any, ...]:
    """Return the names that the session knows, what it keeps, and the files beside the data."""
    context = place.session.sparkContext
    return (
        sorted(table.name for table in place.session.catalog.listTables()),
        context._jsc.getPersistentRDDs().size(),
        sorted(path.name for path in place.folder.rglob("*") if "budget" not in path.name),
        place.session.conf.get("spark.sql.shuffle.partitions"),
        place.session.conf.get("spark.sql.ansi.enabled"),
    )


def ask(table: Any, **options: Any) -> dps.Release:
    arguments = {"item": "item", "person": "person", "k": 2, "epsilon": 1.0, "domain": GOODS, "seed": 1}
    return dps.top(table, **{**arguments, **options})


def told(table: Any, kind: type[dps.DpSelectError] = SourceError, **options: Any) -> str:
    with pytest.raises(kind) as caught:
        ask(table, **options)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    assert not re.search(rf"\b({'|'.join([*GOODS, 'ann', 'bob'])})\b|Exception|java", str(caught.value))
    return str(caught.value)


def spent(ledger: dps.privacy.Ledger) -> int:
    return len(ledger.entries("shop"))


def test_all_is_well_by_frame_name_and_path(place: SparkSession) -> None:
    expected = ask(BUYERS).items
    assert ask(place.frame("orders")).items == expected
    assert ask("spark+local://", table_name="orders").items == expected
    assert ask("spark+local://", table_name=place.path("orders")).items == expected


def test_threads_share_the_session_and_leave_it_as_it_was(place: SparkSession) -> None:
    """The state includes settings: one thread must not take back what another one still needs."""
    expected, kept = ask(BUYERS).items, place.session.conf.get("spark.sql.parquet.filterPushdown")
    path = place.path("orders")
    tables: list[dict[str, Any]] = [{"table": place.frame("orders")}, {"table": "spark+local://", "table_name": path}]
    with ThreadPoolExecutor(4) as threads:
        asked = [threads.submit(ask, **table) for table in tables * 2]
        assert [each.result().items for each in asked] == [expected] * 4
    assert place.session.conf.get("spark.sql.parquet.filterPushdown") == kept


def test_a_row_that_cannot_be_converted(place: SparkSession, ledger: dps.privacy.Ledger) -> None:
    frame = place.session.sql("SELECT CAST(item AS INT) AS item, person FROM orders")
    told(frame, domain=10**12, max_items_per_person=5, delta=1e-6, ledger=ledger, dataset="shop")
    assert spent(ledger) == 1


def test_a_row_on_which_a_filter_fails_is_left_out(place: SparkSession) -> None:
    """In ANSI mode, which is the session's, Spark would stop at 2023 with a division by zero."""
    others = ask(place.frame("orders"), where="year > 2023").items
    assert ask(place.frame("orders"), where="1 / (year - 2023) > 0").items == others
    assert ask(place.frame("orders"), where="CAST(item AS INT) IS NULL AND year + 9223372036854775807 IS NULL").k == 2


def test_dates_beyond_the_calendar_leave_their_row_out_and_stop_nothing(place: SparkSession) -> None:
    days = pyarrow.array([18_000] * 9 + [2**31 - 1], pyarrow.date32())
    times = pyarrow.array([10**15] * 9 + [2**63 - 1], pyarrow.timestamp("us"))
    rows = pyarrow.table({"item": ["ham"] * 10, "person": range(10), "day": days, "moment": times})
    place.put("dated", rows)
    for where in ("day < moment", "hour(day) = 0", "CAST(day AS TIMESTAMP) IS NOT NULL", "day > DATE '2000-01-01'"):
        assert ask(place.frame("dated"), where=where).k == 2
    for where in ("(day - DATE '2000-01-01') * person IS NULL", "moment - moment IS NULL"):
        assert "differences of times" in told(place.frame("dated"), dps.InvalidInput, where=where)
    assert ask(place.frame("dated"), where="day > CURRENT_DATE - INTERVAL 30 DAY").k == 2
    place.session.catalog.dropTempView("dated")
    Path(place.path("dated")).unlink()


def test_a_filter_of_which_nobody_knows_whether_it_fails_is_refused(
    place: SparkSession, ledger: dps.privacy.Ledger
) -> None:
    for where in (
        "raise_error(item) IS NULL",
        "item RLIKE item",
        "item LIKE item",
        "to_timestamp(item, item) > '2020'",
    ):
        message = told(place.frame("orders"), dps.InvalidInput, where=where, ledger=ledger, dataset="shop")
        assert "would reveal it" in message
    assert spent(ledger) == 0


def test_a_row_in_memory_that_fails_is_paid_for_too(place: SparkSession, ledger: dps.privacy.Ledger) -> None:
    """Spark computes such rows while it plans; that one of them fails must not be had for nothing."""
    rows = place.session.sql("SELECT * FROM VALUES ('1', 1), ('ham', 2) AS rows (item, person)")
    told(rows.where("CAST(item AS INT) > 0"), ledger=ledger, dataset="shop")
    assert spent(ledger) == 1
    numbers = place.session.sql(
        "SELECT CAST(item AS INT) AS item, person FROM VALUES ('1', 1), ('x', 2) AS rows (item, person)"
    )
    told(numbers, domain=[1, 2], ledger=ledger, dataset="shop")
    assert spent(ledger) == 2


def test_a_file_that_is_gone_or_damaged(place: SparkSession, ledger: dps.privacy.Ledger) -> None:
    place.put("others", BUYERS)
    frame = place.frame("others")
    file = Path(place.path("others"))
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) // 2])
    told(frame, dps.DpSelectError, ledger=ledger, dataset="shop")
    file.unlink()
    told(frame, dps.DpSelectError, ledger=ledger, dataset="shop")
    told("spark+local://", dps.DpSelectError, table_name=str(file), ledger=ledger, dataset="shop")
    place.session.catalog.dropTempView("others")
    for leftover in place.folder.glob(".others*"):
        leftover.unlink()


def test_a_table_that_is_not_there(place: SparkSession, ledger: dps.privacy.Ledger) -> None:
    for name in ("nothing", "no.thing"):
        assert "table_name" in told("spark+local://", dps.InvalidInput, table_name=name, ledger=ledger, dataset="shop")
    assert spent(ledger) == 0


def test_data_that_changes_between_the_queries_does_not_change_the_answer(place: SparkSession) -> None:
    place.put("others", BUYERS)
    file = Path(place.path("others"))

    class Meanwhile(dps.Canonical):
        def draw(self, *arguments: Any) -> Any:
            file.unlink()
            return super().draw(*arguments)

    options = {"k": None, "epsilon": None}
    expected = ask(place.frame("orders"), mechanism=dps.Canonical(k=2, epsilon=1.0), **options).items
    assert ask(place.frame("others"), mechanism=Meanwhile(k=2, epsilon=1.0), **options).items == expected
    place.session.catalog.dropTempView("others")


def test_an_interrupt_stops_our_jobs_and_no_others(place: SparkSession, ledger: dps.privacy.Ledger) -> None:
    """PySpark's own answer to Ctrl-C, which cancels whatever runs, is put aside: ours must do without."""
    context = place.session.sparkContext
    tracker = context.statusTracker()
    before = set(tracker.getJobIdsForGroup(None))
    others: list[int] = []

    def work_of_others() -> None:
        context.setJobGroup("others", "work of others")
        others.append(place.session.range(1000).repartition(2).count())

    def interrupt() -> None:
        wait_until(lambda: spent(ledger) == 1 and bool(tracker.getActiveJobsIds()))
        other.start()
        wait_until(lambda: bool(others or tracker.getJobIdsForGroup("others")))
        os.kill(os.getpid(), signal.SIGINT)

    other, watcher = InheritableThread(target=work_of_others), InheritableThread(target=interrupt)
    # Without an interrupt it takes half a minute or more, and ends.
    long = place.session.sql("SELECT 'ham' AS item, id % 1000 AS person FROM range(0, 1000000000, 1, 2)")
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        watcher.start()
        with pytest.raises(KeyboardInterrupt):
            ask(long, ledger=ledger, dataset="shop")
    finally:
        signal.signal(signal.SIGINT, handler)
        watcher.join()
        other.join()
    last = max(set(tracker.getJobIdsForGroup(None)) - before)
    assert tracker.getJobInfo(last).status == "FAILED"
    assert others == [1000]
    assert spent(ledger) == 1


def wait_until(condition: Callable[[], bool]) -> None:
    while not condition():
        time.sleep(0.05)


def test_a_cluster_that_is_not_there(place: SparkSession) -> None:
    """With a session at hand another master cannot be had in the same process; either way it is told plainly."""
    told("spark://127.0.0.1:1", dps.DpSelectError, table_name="orders")
