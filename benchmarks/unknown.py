"""Unknown domains: the selection on a pool against NumPy, and the whole of top() against the engine's own top rows."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dpselect as dps
from benchmarks.baseline import long_tail, noisy_argpartition
from benchmarks.timing import Result, best_times
from dpselect.mechanisms import PooledDomain, mechanism_for
from dpselect.mechanisms.unknown import Pool
from dpselect.sampling import SystemBits

SELECTION_LIMIT = 5.0
"""Multiple of the NumPy baseline on as many items as the pool has; counts everything after the rows are fetched."""

ENGINE_LIMIT = 1.2
"""Multiple of the time of the engine's own ORDER BY … LIMIT pool + 1."""

DELTA = 1e-6


def measurements(quick: bool) -> Iterator[Result]:
    """Yield the ratios of the selection for several pools, then of the whole path."""
    for k, size in ((10, 100), (100, 1000), (100, 5000)):
        yield _selection(k, size, None if quick else SELECTION_LIMIT, rounds=3 if quick else 400)
    yield from _end_to_end(quick)


def _selection(k: int, size: int, limit: float | None, *, rounds: int) -> Result:
    scores = long_tail(size + 1)
    ranked = sorted(scores.tolist(), reverse=True)
    mechanism = mechanism_for("restricted", k=k, epsilon=1.0, delta=DELTA, pool=size)
    assert isinstance(mechanism, PooledDomain)
    items, bits = [f"item {rank}" for rank in range(size)], SystemBits()

    def choose() -> list[str]:
        pool = Pool.of_rows(ranked[:size], size, ranked[size])
        return [items[place] for place in mechanism.draw_from(pool, bits).positions().tolist()]

    baseline, ours = best_times(lambda: noisy_argpartition(scores[:size], k), choose, rounds=rounds)
    return Result(
        suite="unknown",
        case="choice from the pool",
        measured=ours / baseline,
        unit="x",
        limit=limit,
        size=size,
        k=k,
        baseline_seconds=baseline,
        our_seconds=ours,
    )


def _end_to_end(quick: bool) -> Iterator[Result]:
    """Yield the ratio for a table in the engine, and for a file that each side opens itself."""
    import duckdb
    import ibis

    rows, rounds = (20_000, 1) if quick else (10_000_000, 5)
    columns = "SELECT item, count(DISTINCT person) AS score"
    highest = "GROUP BY item ORDER BY score DESC LIMIT 101"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        connection = ibis.duckdb.connect()
        connection.raw_sql(
            "CREATE TABLE visits AS SELECT 'item ' || floor(1000000 * pow(random(), 3))::INT AS item, "
            f"floor(random() * 200000)::INT AS person FROM range({rows})"
        )
        connection.raw_sql(f"COPY visits TO '{path}'")

        def in_table() -> object:
            return connection.raw_sql(f"{columns} FROM visits {highest}").fetchall()

        def in_file() -> object:
            with duckdb.connect() as fresh:
                return fresh.execute(f"{columns} FROM '{path}' {highest}").fetchall()

        for case, own, source in (
            ("top() on a table against the engine's top rows", in_table, connection.table("visits")),
            ("top() on a file against the engine's top rows", in_file, path),
        ):
            baseline, ours = best_times(own, lambda source=source: _top(source), rounds=rounds)
            yield Result(
                suite="unknown",
                case=case,
                measured=ours / baseline,
                unit="x",
                limit=None if quick else ENGINE_LIMIT,
                size=rows,
                k=10,
                baseline_seconds=baseline,
                our_seconds=ours,
            )
        connection.disconnect()


def _top(source: Any) -> dps.Release:
    return dps.top(source, item="item", person="person", k=10, epsilon=1.0, delta=DELTA, domain=dps.UNKNOWN)
