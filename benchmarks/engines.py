"""The whole of `top` where the rows are, against the same engine's own query without privacy.

    SELECT item FROM rows GROUP BY item ORDER BY COUNT(DISTINCT person) DESC LIMIT k

Both are sent by the same driver in the same run, alternately. Each generated row has one of two million people and one
of half a million items, the i-th most popular with probability proportional to 1/i.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.servers import postgresql, spark

import dpselect as dps
from benchmarks.timing import Result, best_times

EMBEDDED_LIMIT = 1.3
SERVER_LIMIT = 1.5
"""Multiples of the time of the engine's own query."""

MEMORY_LIMIT = 300.0
"""Peak memory in MB beyond that of a process that sends the engine's own query."""

K, ITEMS, PEOPLE = 10, 500_000, 2_000_000
ASKED: dict[str, Any] = {"item": "item", "person": "person", "k": K, "epsilon": 1.0, "domain": ITEMS}

MEMORY_PROGRAM = """
import json, resource, sys
file, how = sys.argv[1:]
if how.startswith("{"):
    import dpselect
    dpselect.top(file, **json.loads(how))
else:
    import duckdb
    connection = duckdb.connect()
    connection.execute("SET enable_progress_bar = false")
    connection.execute(how).fetchall()
if sys.platform == "linux":
    # getrusage would count the memory of the process that started this one.
    status = dict(line.split(":", 1) for line in open("/proc/self/status"))
    print(1024 * int(status["VmHWM"].split()[0]))
else:
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def measurements(quick: bool) -> Iterator[Result]:
    """Yield times on DuckDB, PostgreSQL and Spark, and the memory beyond DuckDB's."""
    with tempfile.TemporaryDirectory(prefix="dpselect-bench-") as folder:
        large, small = Path(folder, "large.parquet"), Path(folder, "small.parquet")
        rows = 2_000 if quick else 20_000_000
        make_rows(large, rows)
        yield from _embedded(large, rows, quick)
        rows = 1_000 if quick else 1_000_000
        make_rows(small, rows)
        for name, opened in (("PostgreSQL", _postgresql), ("Spark", _spark)):
            with opened(small) as (own, ours):
                yield _compared(name, own, ours, rows, None if quick else SERVER_LIMIT, 1 if quick else 5)


def make_rows(file: Path, count: int) -> None:
    """Write rows (item, person): the item has rank ⌊d^u⌋ for u uniform in [0, 1) and d items, the person is uniform."""
    import duckdb

    with contextlib.closing(duckdb.connect()) as connection:
        connection.execute("SELECT setseed(0.5)")
        connection.execute(
            f"""
            COPY (
                SELECT 'item ' || CAST(floor(pow({ITEMS}, share)) AS BIGINT) AS item,
                       CAST(floor({PEOPLE} * other) AS BIGINT) AS person
                FROM (SELECT random() AS share, random() AS other FROM range({count}))
            ) TO '{file}' (FORMAT parquet)
            """
        )


def own_query(rows: str) -> str:
    """Return the engine's own query, in the SQL that all three engines share."""
    return f"SELECT item FROM {rows} GROUP BY item ORDER BY COUNT(DISTINCT person) DESC LIMIT {K}"


def _embedded(file: Path, rows: int, quick: bool) -> Iterator[Result]:
    import duckdb

    query = own_query(f"'{file}'")

    def own() -> None:
        with contextlib.closing(duckdb.connect()) as connection:
            connection.execute(query).fetchall()

    limit = None if quick else EMBEDDED_LIMIT
    yield _compared("DuckDB", own, lambda: dps.top(str(file), **ASKED), rows, limit, 1 if quick else 3)
    rounds = range(1 if quick else 2)
    alone, with_ours = (min(_peak(file, how) for _ in rounds) for how in (query, json.dumps(ASKED)))
    yield Result(
        "engines",
        "DuckDB, memory beyond the engine's",
        (with_ours - alone) / 1e6,
        " MB",
        limit=None if quick else MEMORY_LIMIT,
        size=rows,
        k=K,
        note=f"peaks: {alone / 1e6:,.0f} MB with the engine's own query, {with_ours / 1e6:,.0f} MB with top",
    )


def _compared(
    name: str, own: Callable[[], object], ours: Callable[[], object], rows: int, limit: float | None, rounds: int
) -> Result:
    baseline, seconds = best_times(own, ours, rounds)
    return Result(
        "engines",
        f"{name}, top of a table",
        seconds / baseline,
        "x",
        limit=limit,
        size=rows,
        k=K,
        baseline_seconds=baseline,
        our_seconds=seconds,
        note="d: rows; base: the engine's own query, without privacy",
    )


def _peak(file: Path, how: str) -> int:
    """Return the peak memory of a new process in bytes."""
    line = [sys.executable, "-c", MEMORY_PROGRAM, str(file), how]
    finished = subprocess.run(line, check=True, capture_output=True, text=True)
    return int(finished.stdout)


Pair = tuple[Callable[[], object], Callable[[], object]]


@contextlib.contextmanager
def _postgresql(file: Path) -> Iterator[Pair]:
    import psycopg
    import pyarrow.parquet

    with postgresql() as url, psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TABLE orders (item text, person bigint)")
        with connection.cursor().copy("COPY orders FROM STDIN") as copy:
            for batch in pyarrow.parquet.ParquetFile(file).iter_batches():
                columns = (column.to_pylist() for column in batch.columns)
                copy.write("".join(f"{item}\t{person}\n" for item, person in zip(*columns, strict=True)))
        connection.execute("VACUUM ANALYZE orders")
        yield (
            lambda: connection.execute(own_query("orders")).fetchall(),
            lambda: dps.top(url, table_name="orders", **ASKED),
        )


@contextlib.contextmanager
def _spark(file: Path) -> Iterator[Pair]:
    with spark() as session:
        frame = session.read.parquet(str(file))
        frame.createOrReplaceTempView("orders")
        pair = lambda: session.sql(own_query("orders")).collect(), lambda: dps.top(frame, **ASKED)
        for work in 2 * pair:
            work()  # Java compiles what runs often
        yield pair
