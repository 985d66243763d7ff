"""The whole of `top` where the rows are, against the same engine's own query without privacy.

    SELECT item FROM rows GROUP BY item ORDER BY COUNT(DISTINCT person) DESC LIMIT k

and, where each person keeps at most m random items, what one would write by hand (`bounded_query`). Both are sent in
the same run, alternately. Each generated row has one of two million people and one of half a million items, the i-th
most popular with probability proportional to 1/i.

On DuckDB whole processes are compared, the start of Python included, by processor time: the command `dpselect top`
with a program that imports duckdb and sends the query. PostgreSQL and Spark are compared by time, warm, over the same
driver.
"""

from __future__ import annotations

import contextlib
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any

from tests.servers import postgresql, spark

import dpselect as dps
from benchmarks.startup import COMMAND
from benchmarks.timing import Result, best_times

EMBEDDED_LIMIT = 1.2
SERVER_LIMIT = 1.5
BOUNDED_LIMIT = 2.0
"""Multiples of the time of the engine's own query."""

BOUNDED_MEMORY_LIMIT = 1.5
"""Multiple of the peak memory of a process that sends the engine's own query."""

PYTHON_MEMORY_LIMIT = 150.0
"""Peak memory in MB beyond that of a process in which the engine counts without the statistics of files, as ours."""

K, ITEMS, PEOPLE, MOST = 10, 500_000, 2_000_000, 5
ASKED: dict[str, Any] = {"item": "item", "person": "person", "k": K, "epsilon": 1.0, "domain": ITEMS}
OPTIONS = ["--item", "item", "--person", "person", "-k", str(K), "--epsilon", "1", "--domain", str(ITEMS)]

QUERY = """
import duckdb, sys
connection = duckdb.connect()
for statement in ["SET enable_progress_bar = false", *sys.argv[1:]]:
    connection.execute(statement).fetchall()
"""

WITHOUT_STATISTICS = "SET disabled_optimizers = 'statistics_propagation,join_filter_pushdown,row_group_pruner'"

PEAK = """
import atexit, resource, sys
def peak():
    if sys.platform != "linux":
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # getrusage would count the memory of the process that started this one.
    status = dict(line.split(":", 1) for line in open("/proc/self/status"))
    return 1024 * int(status["VmHWM"].split()[0])
atexit.register(lambda: print(peak(), file=sys.stderr))
"""


def measurements(quick: bool) -> Iterator[Result]:
    """Yield times and memory on DuckDB, and times on PostgreSQL and Spark."""
    with tempfile.TemporaryDirectory(prefix="dpselect-bench-") as folder:
        large, small = Path(folder, "large.parquet"), Path(folder, "small.parquet")
        rows = 2_000 if quick else 20_000_000
        make_rows(large, rows)
        yield from _embedded(large, rows, quick)
        rows = 1_000 if quick else 1_000_000
        make_rows(small, rows)
        for name, opened in (("PostgreSQL", _postgresql), ("Spark", _spark)):
            with opened(small) as engine:
                yield from _on_server(name, engine, rows, quick)


def make_rows(file: Path, count: int, **more: str) -> None:
    """Write rows (item, person): the item has rank ⌊d^u⌋ for u uniform in [0, 1) and d items, the person is uniform.

    Further columns are SQL expressions, which may use these two.
    """
    import duckdb

    with contextlib.closing(duckdb.connect()) as connection:
        connection.execute("SET enable_progress_bar = false")
        connection.execute("SELECT setseed(0.5)")
        connection.execute(
            f"""
            COPY (
                SELECT *{"".join(f", {expression} AS {name}" for name, expression in more.items())} FROM (
                SELECT 'item ' || CAST(floor(pow({ITEMS}, share)) AS BIGINT) AS item,
                       CAST(floor({PEOPLE} * other) AS BIGINT) AS person
                FROM (SELECT random() AS share, random() AS other FROM range({count})))
            ) TO '{file}' (FORMAT parquet)
            """
        )


def own_query(rows: str) -> str:
    """Return the engine's own query, in the SQL that all three engines share."""
    return f"SELECT item FROM {rows} GROUP BY item ORDER BY COUNT(DISTINCT person) DESC LIMIT {K}"


def bounded_query(rows: str) -> str:
    """Return the query in which each person keeps at most MOST items, chosen by the engine's own random numbers."""
    return f"""
        SELECT item FROM (
            SELECT item, ROW_NUMBER() OVER (PARTITION BY person ORDER BY chance) AS place
            FROM (
                SELECT item, person, random() AS chance FROM (SELECT DISTINCT item, person FROM {rows}) AS pairs
            ) AS drawn
        ) AS numbered
        WHERE place <= {MOST} GROUP BY item ORDER BY COUNT(*) DESC LIMIT {K}
    """


@dataclass(frozen=True)
class Process:
    """What a process took: seconds of processor time, seconds by the clock, and bytes at the peak."""

    seconds: float
    elapsed: float
    peak: int

    @classmethod
    def of(cls, program: str, *arguments: str) -> Process:
        """Run a Python program."""
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        start = time.perf_counter()
        line = [sys.executable, "-c", PEAK + program, *arguments]
        finished = subprocess.run(line, check=True, capture_output=True, text=True)
        elapsed = time.perf_counter() - start
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        return cls(seconds, elapsed, int(finished.stderr.splitlines()[-1]))

    @classmethod
    def best(cls, runs: list[Process]) -> Process:
        """Return the smallest of each figure; other programs on the machine can only add to them."""
        return cls(*(min(getattr(run, part.name) for run in runs) for part in fields(cls)))


def _embedded(file: Path, rows: int, quick: bool) -> Iterator[Result]:
    command = (COMMAND, "top", str(file), *OPTIONS)
    calls = {
        "own": (QUERY, own_query(f"'{file}'")),
        "ours": command,
        "own, bounded": (QUERY, bounded_query(f"'{file}'")),
        "ours, bounded": (*command, "--max-items-per-person", str(MOST)),
        "without statistics": (QUERY, WITHOUT_STATISTICS, own_query(f"'{file}'")),
    }
    rounds = [{name: Process.of(*call) for name, call in calls.items()} for _ in range(1 if quick else 3)]
    best = {name: Process.best([found[name] for found in rounds]) for name in calls}
    for suffix, times in (("", EMBEDDED_LIMIT), (", bounded", BOUNDED_LIMIT)):
        own, ours = best[f"own{suffix}"], best[f"ours{suffix}"]
        limit = None if quick else times
        note = f"CPU time of whole processes; by the clock {ours.elapsed / own.elapsed:.3g}x"
        yield _compared("DuckDB", suffix, own.seconds, ours.seconds, rows, limit, note)
    yield Result(
        "engines",
        "DuckDB, bounded, peak memory",
        ours.peak / own.peak,
        "x",
        limit=None if quick else BOUNDED_MEMORY_LIMIT,
        size=rows,
        k=K,
        note=f"peak MB: own query {own.peak / 1e6:,.0f}, top {ours.peak / 1e6:,.0f}",
    )
    own, without, ours = (best[name].peak / 1e6 for name in ("own", "without statistics", "ours"))
    yield Result(
        "engines",
        "DuckDB, Python's memory beyond the engine's",
        ours - without,
        " MB",
        limit=None if quick else PYTHON_MEMORY_LIMIT,
        size=rows,
        k=K,
        note=f"peak MB: own {own:,.0f}, no statistics {without:,.0f}, top {ours:,.0f}",
    )


@dataclass(frozen=True)
class Server:
    """An engine outside this process: how a query is sent to it, and `top` with further arguments."""

    send: Callable[[str], object]
    top: Callable[..., object]


def _on_server(name: str, server: Server, rows: int, quick: bool) -> Iterator[Result]:
    note = "d: rows; base: the engine's own query, without privacy"
    cases: tuple[tuple[str, str, dict[str, int], float], ...] = (
        ("", own_query("orders"), {}, SERVER_LIMIT),
        (", bounded", bounded_query("orders"), {"max_items_per_person": MOST}, BOUNDED_LIMIT),
    )
    for suffix, query, options, times in cases:
        own, ours = partial(server.send, query), partial(server.top, **options)
        baseline, seconds = best_times(own, ours, 1 if quick else 5)
        yield _compared(name, suffix, baseline, seconds, rows, None if quick else times, note)


def _compared(
    engine: str, suffix: str, baseline: float, seconds: float, rows: int, limit: float | None, note: str
) -> Result:
    return Result(
        "engines",
        f"{engine}, top of a table{suffix}",
        seconds / baseline,
        "x",
        limit=limit,
        size=rows,
        k=K,
        baseline_seconds=baseline,
        our_seconds=seconds,
        note=note,
    )


@contextlib.contextmanager
def _postgresql(file: Path) -> Iterator[Server]:
    import psycopg
    import pyarrow.parquet

    with postgresql() as url, psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TABLE orders (item text, person bigint)")
        with connection.cursor().copy("COPY orders FROM STDIN") as copy:
            for batch in pyarrow.parquet.ParquetFile(file).iter_batches():
                columns = (column.to_pylist() for column in batch.columns)
                copy.write("".join(f"{item}\t{person}\n" for item, person in zip(*columns, strict=True)))
        connection.execute("VACUUM ANALYZE orders")
        yield Server(
            lambda query: connection.execute(query).fetchall(),
            partial(dps.top, url, table_name="orders", **ASKED),
        )


@contextlib.contextmanager
def _spark(file: Path) -> Iterator[Server]:
    with spark() as session:
        frame = session.read.parquet(str(file))
        frame.createOrReplaceTempView("orders")
        server = Server(lambda query: session.sql(query).collect(), partial(dps.top, frame, **ASKED))
        for _ in range(2):  # Java compiles what runs often
            for query, most in ((own_query("orders"), None), (bounded_query("orders"), MOST)):
                server.send(query)
                server.top(max_items_per_person=most)
        yield server
