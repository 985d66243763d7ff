"""The whole of `top` with groups against the engine's own top of each group, with the same bound on a person's groups.

    SELECT … row_number() OVER (PARTITION BY area ORDER BY people DESC) AS place … WHERE place <= k

Rows as in `engines`, each with one of fifty groups. A person has a group of their own in nine of ten rows, and any of
the groups in the others, so that most people are in several; one of their groups is kept, chosen at random.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.engines import OPTIONS, QUERY, K, Process, make_rows
from benchmarks.startup import COMMAND
from benchmarks.timing import Result

LIMIT = 1.3
"""Multiple of the processor time of the engine's own query."""

GROUPS = 50
AREA = f"CASE WHEN random() < 0.9 THEN person % {GROUPS} ELSE CAST(floor({GROUPS} * random()) AS BIGINT) END"


def measurements(quick: bool) -> Iterator[Result]:
    """Yield the ratio on DuckDB, of whole processes."""
    rows = 2_000 if quick else 20_000_000
    with tempfile.TemporaryDirectory(prefix="dpselect-bench-") as folder:
        file, listed = Path(folder, "rows.parquet"), Path(folder, "areas.csv")
        make_rows(file, rows, area=AREA)
        listed.write_text("area\n" + "".join(f"{area}\n" for area in range(GROUPS)))
        calls = {
            "own": (QUERY, own_query(f"'{file}'")),
            "ours": (COMMAND, "top", str(file), *OPTIONS, "--by", "area", "--groups", str(listed)),
        }
        rounds = [{name: Process.of(*call) for name, call in calls.items()} for _ in range(1 if quick else 3)]
    own, ours = (Process.best([found[name] for found in rounds]) for name in calls)
    yield Result(
        "groups",
        f"DuckDB, top of each of {GROUPS} groups",
        ours.seconds / own.seconds,
        "x",
        limit=None if quick else LIMIT,
        size=rows,
        k=K,
        baseline_seconds=own.seconds,
        our_seconds=ours.seconds,
        note=f"CPU time of whole processes; by the clock {ours.elapsed / own.elapsed:.3g}x",
    )


def own_query(rows: str) -> str:
    """Return the engine's own query, in which each person keeps one group by the engine's own random numbers."""
    return f"""
        WITH kept AS (
            SELECT person, area FROM (
                SELECT person, area, ROW_NUMBER() OVER (PARTITION BY person ORDER BY chance) AS place
                FROM (SELECT person, area, random() AS chance FROM (SELECT DISTINCT person, area FROM {rows}))
            ) WHERE place = 1
        ),
        counted AS (
            SELECT area, item, COUNT(DISTINCT person) AS people
            FROM {rows} JOIN kept USING (person, area) GROUP BY area, item
        )
        SELECT area, item FROM (
            SELECT area, item, ROW_NUMBER() OVER (PARTITION BY area ORDER BY people DESC) AS place FROM counted
        ) WHERE place <= {K}
    """
