"""The whole of `discover` against the engine's own list of items with the same bound on the items of each person.

    SELECT DISTINCT item FROM (… row_number() OVER (PARTITION BY person ORDER BY random) AS place …) WHERE place <= m

Rows as in `engines`: two million people, half a million items, the i-th most popular with probability proportional to
1/i.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dpselect as dps
from benchmarks.engines import make_rows
from benchmarks.timing import Result, best_times

LIMIT = 1.5
"""Multiple of the time of the engine's own query."""

MOST = 20
ASKED: dict[str, Any] = {
    "item": "item",
    "person": "person",
    "epsilon": 1.0,
    "delta": 1e-7,
    "max_items_per_person": MOST,
}


def measurements(quick: bool) -> Iterator[Result]:
    """Yield the ratio on DuckDB."""
    rows = 2_000 if quick else 20_000_000
    with tempfile.TemporaryDirectory(prefix="dpselect-bench-") as folder:
        file = Path(folder, "rows.parquet")
        make_rows(file, rows)
        baseline, seconds = best_times(own(file), lambda: dps.discover(file, **ASKED), 1 if quick else 2)
    yield Result(
        "discovery",
        "DuckDB, items of a table",
        seconds / baseline,
        "x",
        limit=None if quick else LIMIT,
        size=rows,
        baseline_seconds=baseline,
        our_seconds=seconds,
        note=f"d: rows; base: the engine's distinct items, {MOST} per person",
    )


def own(file: Path) -> Callable[[], object]:
    """Return the engine's own query, without privacy."""
    import duckdb

    pairs = f"SELECT *, random() AS mixed FROM (SELECT DISTINCT item, person FROM '{file}')"
    placed = f"SELECT item, row_number() OVER (PARTITION BY person ORDER BY mixed) AS place FROM ({pairs})"
    query = f"SELECT DISTINCT item FROM ({placed}) WHERE place <= {MOST}"

    def run() -> object:
        with contextlib.closing(duckdb.connect()) as connection:
            return connection.execute(query).fetchall()

    return run
