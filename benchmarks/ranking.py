"""A ranking of many comparisons against its unavoidable parts: the engine's grouping and SciPy's eigenvector.

    SELECT winner, loser, count(*) FROM rows GROUP BY winner, loser
    scipy.sparse.linalg.eigs(Pᵀ, k=1)

Both use the same rows; P is the walk that `rank` builds from them, without damping.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.timing import Result, best_times
from dpselect.ranking import Bounds, rank
from dpselect.ranking.simulate import Contests, ladder, simulate_comparisons
from dpselect.ranking.walk import Pairs, Walk
from dpselect.sampling import bit_source

LIMIT = 3.0
"""Multiple of the time of SciPy's eigenvector plus the engine's grouping."""

PER_PAIR, K = 10, 10


def measurements(quick: bool) -> Iterator[Result]:
    """Yield the ratio for 10,000 items and 10 million comparisons."""
    import duckdb
    import pyarrow
    import pyarrow.parquet

    items, share = (100, 0.2) if quick else (10_000, 0.02)
    contests = simulate_comparisons(
        ladder(items, ratio=20.0), comparisons_per_pair=PER_PAIR, share_of_pairs=share, seed=1
    )
    bounds = Bounds(comparisons_per_pair=PER_PAIR, max_degree=round(1.5 * share * items))
    rows = contests.rows()
    np.random.default_rng(2).shuffle(rows)
    with tempfile.TemporaryDirectory(prefix="dpselect-bench-") as folder, duckdb.connect() as connection:
        file = Path(folder, "rows.parquet")
        table = pyarrow.table({"winner": rows[:, 0], "loser": rows[:, 1]})
        pyarrow.parquet.write_table(table, file)
        query = f"SELECT winner, loser, count(*) AS times FROM '{file}' GROUP BY winner, loser"
        eigenvector = _eigenvector(contests, bounds)

        def baseline() -> None:
            connection.execute(query).fetchnumpy()
            eigenvector()

        def ours() -> None:
            rank(
                file,
                k=K,
                epsilon=1.0,
                comparisons_per_pair=bounds.comparisons_per_pair,
                max_degree=bounds.max_degree,
                domain=np.arange(items),
            )

        seconds = best_times(baseline, ours, rounds=1 if quick else 3)
    yield Result(
        "ranking",
        "rank() of comparisons in a file",
        seconds[1] / seconds[0],
        "x",
        limit=None if quick else LIMIT,
        size=contests.size,
        k=K,
        baseline_seconds=seconds[0],
        our_seconds=seconds[1],
        note=f"d: comparisons of {items:,} items; base: the engine's grouping, SciPy's eigs",
    )


def _eigenvector(contests: Contests, bounds: Bounds) -> Callable[[], Any]:
    """Return a function that computes the stationary distribution of the walk with SciPy."""
    from scipy.sparse import diags_array
    from scipy.sparse.linalg import eigs

    never = np.zeros_like(contests.wins)
    pairs = Pairs(contests.items, contests.first, contests.second, contests.wins, contests.losses, never)
    walk = Walk.of(pairs, bounds, bit_source(1))
    matrix = (walk.into_winners / walk.denominator + diags_array(1 - walk.lost / walk.denominator)).tocsr()
    return lambda: eigs(matrix, k=1, which="LM")
