"""Unknown domains: the selection on a pool against NumPy, and the whole of top() against the engine's own top rows."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import dpselect as dps
from benchmarks.selection import long_tail, noisy_argpartition
from benchmarks.timing import Result, best_times
from dpselect.mechanisms import UnknownDomain, mechanism_for
from dpselect.mechanisms.pool import Pool
from dpselect.sampling import SystemBits

SELECTION_LIMIT = 5.0
"""Times the NumPy baseline on as many items as the pool has; all is counted that follows once the rows are here."""

ENGINE_LIMIT = 1.2
"""Times the engine's own ORDER BY … LIMIT pool + 1."""

DELTA = 1e-6


def measurements(quick: bool) -> Iterator[Result]:
    """Yield the ratios of the selection for several pools, then of the whole path."""
    for k, size in ((10, 100), (100, 1000), (100, 5000)):
        yield _selection(k, size, None if quick else SELECTION_LIMIT, rounds=3 if quick else 400)
    yield _end_to_end(quick)


def _selection(k: int, size: int, limit: float | None, *, rounds: int) -> Result:
    scores = long_tail(size + 1)
    ranked = sorted(scores.tolist(), reverse=True)
    mechanism = mechanism_for("restricted", k=k, epsilon=1.0, delta=DELTA, pool=size)
    assert isinstance(mechanism, UnknownDomain)
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


def _end_to_end(quick: bool) -> Result:
    import duckdb

    rows = 20_000 if quick else 4_000_000
    with tempfile.TemporaryDirectory() as folder, duckdb.connect() as connection:
        path = Path(folder) / "rows.parquet"
        connection.execute(
            "COPY (SELECT 'item ' || floor(1000000 * pow(random(), 3))::INT AS item, floor(random() * 200000)::INT "
            f"AS person FROM range({rows})) TO '{path}'"
        )
        query = (
            f"SELECT item, count(DISTINCT person) AS score FROM '{path}' GROUP BY item ORDER BY score DESC LIMIT 101"
        )
        baseline, ours = best_times(
            lambda: connection.execute(query).fetchall(),
            lambda: dps.top(path, item="item", person="person", k=10, epsilon=1.0, delta=DELTA, domain=dps.UNKNOWN),
            rounds=1 if quick else 5,
        )
    return Result(
        suite="unknown",
        case="top() against the engine's top rows",
        measured=ours / baseline,
        unit="x",
        limit=None if quick else ENGINE_LIMIT,
        size=rows,
        k=10,
        baseline_seconds=baseline,
        our_seconds=ours,
    )
