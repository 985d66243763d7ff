"""The same work done by several packages, each in an interpreter of its own: `python peer_work.py CASE SIZE K LIMIT`.

`benchmarks.peers` runs this file in environments in which dpselect is not installed, so it imports nothing of the
repository, and each package where it is used. It prints the seconds of the best run as JSON.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

EPSILON, DELTA = 1.0, 1e-6
MOST_ITEMS = 5
"""Items that a person counts for, when counting rows."""


def counts(size: int) -> Any:
    """The counts of `benchmarks.baseline.long_tail`."""
    scores = 150_000 / np.arange(1, size + 1) ** 0.7
    np.random.default_rng(1).shuffle(scores)
    return np.round(scores).astype(np.int64)


def viewings(size: int) -> tuple[Any, Any, int]:
    """Rows (viewer, film), five for each viewer, and the number of films; a few films have most rows."""
    films = 1000
    drawn = 3 * np.random.default_rng(1).pareto(0.8, size=size)
    return np.arange(size) // 5, np.minimum(drawn, films - 1).astype(np.int64), films


def dpselect_peeling(size: int, k: int, noise: str) -> Callable[[], Any]:
    """Rounds at ε/k each; with Gumbel noise the k largest of one noisy vector, which is the same law."""
    import dpselect

    data, mechanism = counts(size), dpselect.Peeling(k=k, epsilon=EPSILON, noise=noise)
    return lambda: dpselect.select(data, mechanism=mechanism)


def opendp_top_k(size: int, k: int, noise: str) -> Callable[[], Any]:
    """`make_noisy_top_k` with noise of scale k/ε: permute-and-flip for pure ε, Gumbel noise for zCDP."""
    import opendp.prelude as opendp

    opendp.enable_features("contrib")
    measure = opendp.max_divergence() if noise == "exponential" else opendp.zero_concentrated_divergence()
    space = opendp.vector_domain(opendp.atom_domain(T="i64")), opendp.linf_distance(T="i64", monotonic=True)
    measurement = opendp.m.make_noisy_top_k(*space, measure, k=k, scale=k / EPSILON)
    data = counts(size).tolist()
    return lambda: measurement(data)


def diffprivlib_rounds(size: int, k: int, noise: str) -> Callable[[], Any]:
    """Rounds of `PermuteAndFlip` or `Exponential`, each on the items that are left."""
    from diffprivlib.mechanisms import Exponential, PermuteAndFlip

    kind = PermuteAndFlip if noise == "exponential" else Exponential
    data = counts(size).tolist()

    def work() -> list[int]:
        left, items, chosen = list(data), list(range(size)), []
        for _ in range(k):
            place = kind(epsilon=EPSILON / k, sensitivity=1, utility=left, monotonic=True).randomise()
            left.pop(place)
            chosen.append(items.pop(place))
        return chosen

    return work


def dpselect_rows(size: int, k: int) -> Callable[[], Any]:
    """`top` of a DataFrame with Laplace noise on the count of every listed item."""
    import pandas

    import dpselect

    viewers, films, many = viewings(size)
    frame = pandas.DataFrame({"viewer": viewers, "film": films})
    mechanism = dpselect.Laplace(k=k, epsilon=EPSILON, max_items_per_person=MOST_ITEMS)
    return lambda: dpselect.top(
        frame,
        item="film",
        person="viewer",
        domain=list(range(many)),
        mechanism=mechanism,
        max_items_per_person=MOST_ITEMS,
    )


def pipeline_dp_rows(size: int, k: int) -> Callable[[], Any]:
    """Noisy counts of all listed items on the local backend, then the k largest."""
    import pipeline_dp

    viewers, films, many = viewings(size)
    rows = list(zip(viewers.tolist(), films.tolist(), strict=True))
    extractors = pipeline_dp.DataExtractors(
        privacy_id_extractor=lambda row: row[0], partition_extractor=lambda row: row[1], value_extractor=lambda row: 0
    )
    parameters = pipeline_dp.AggregateParams(
        metrics=[pipeline_dp.Metrics.PRIVACY_ID_COUNT],
        noise_kind=pipeline_dp.NoiseKind.LAPLACE,
        max_partitions_contributed=MOST_ITEMS,
        max_contributions_per_partition=1,
    )

    def work() -> list[Any]:
        budget = pipeline_dp.NaiveBudgetAccountant(total_epsilon=EPSILON, total_delta=DELTA)
        engine = pipeline_dp.DPEngine(budget, pipeline_dp.LocalBackend())
        noisy = engine.aggregate(rows, parameters, extractors, public_partitions=list(range(many)))
        budget.compute_budgets()
        return sorted(noisy, key=lambda entry: -entry[1].privacy_id_count)[:k]

    return work


def smartnoise_rows(size: int, k: int) -> Callable[[], Any]:
    """Noisy counts by SQL on a DataFrame, with the k largest first; rare items are left out by its own threshold."""
    import pandas
    from snsql import Privacy, from_df

    viewers, films, _ = viewings(size)
    frame = pandas.DataFrame({"viewer": viewers, "film": films.astype(str)})
    columns = {"viewer": {"type": "int", "private_id": True}, "film": {"type": "string"}}
    metadata = {"": {"db": {"rows": {"max_ids": MOST_ITEMS, **columns}}}}
    query = f"SELECT film, COUNT(DISTINCT viewer) AS n FROM db.rows GROUP BY film ORDER BY n DESC LIMIT {k}"
    return lambda: from_df(frame, privacy=Privacy(epsilon=EPSILON, delta=DELTA), metadata=metadata).execute(query)


JAVA_17 = ("--add-opens=java.base/java.nio=ALL-UNNAMED", "-Dio.netty.tryReflectionSetAccessible=true")
"""What Arrow in Spark 3.5 needs from Java 17 on."""


def tumult_rows(size: int, k: int) -> Callable[[], Any]:
    """Noisy counts of all listed items on Spark with one core, then the k largest."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    import pandas
    import tmlt.analytics as tumult
    from pyspark.sql import SparkSession

    settings = {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "1",
        "spark.log.level": "ERROR",
        "spark.driver.extraJavaOptions": " ".join(JAVA_17),
    }
    spark = SparkSession.builder.master("local[1]").config(map=settings).getOrCreate()
    viewers, films, many = viewings(size)
    frame = spark.createDataFrame(pandas.DataFrame({"viewer": viewers, "film": films})).cache()
    frame.count()
    budget = tumult.PureDPBudget(EPSILON)

    def work() -> list[Any]:
        session = tumult.Session.from_dataframe(
            budget, "rows", frame, protected_change=tumult.AddRowsWithID("viewer", "viewers")
        )
        query = (
            tumult.QueryBuilder("rows")
            .enforce(tumult.MaxGroupsPerID("film", MOST_ITEMS))
            .enforce(tumult.MaxRowsPerGroupPerID("film", 1))
            .groupby(tumult.KeySet.from_dict({"film": list(range(many))}))
            .count()
        )
        noisy = session.evaluate(query, budget)
        return list(noisy.orderBy("count", ascending=False).limit(k).collect())

    return work


CASES: dict[str, Callable[[int, int], Callable[[], Any]]] = {
    "dpselect permute-and-flip": lambda size, k: dpselect_peeling(size, k, "exponential"),
    "dpselect gumbel": lambda size, k: dpselect_peeling(size, k, "gumbel"),
    "opendp permute-and-flip": lambda size, k: opendp_top_k(size, k, "exponential"),
    "opendp gumbel": lambda size, k: opendp_top_k(size, k, "gumbel"),
    "diffprivlib permute-and-flip": lambda size, k: diffprivlib_rounds(size, k, "exponential"),
    "diffprivlib gumbel": lambda size, k: diffprivlib_rounds(size, k, "gumbel"),
    "dpselect rows": dpselect_rows,
    "pipeline-dp rows": pipeline_dp_rows,
    "smartnoise-sql rows": smartnoise_rows,
    "tmlt.analytics rows": tumult_rows,
}


def best_seconds(work: Callable[[], Any], limit: float, clock: Callable[[], float], most_runs: int = 7) -> float:
    """Return the shortest time of several runs after a first one; of that one if no other fits in the limit."""
    start = time.perf_counter()
    found = [_seconds(work, clock)]
    while len(found) < most_runs and time.perf_counter() - start + min(found) < limit / 2:
        found.append(_seconds(work, clock))
    return min(found[1:] or found)


def _seconds(work: Callable[[], Any], clock: Callable[[], float]) -> float:
    start = clock()
    work()
    return clock() - start


def main(case: str, size: int, k: int, limit: float) -> None:
    """Print the seconds of one case: of the processor, or of the clock on the wall if other processes take part."""
    clock = time.perf_counter if case.endswith("rows") else time.process_time
    print("\n" + json.dumps(best_seconds(CASES[case](size, k), limit, clock)))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4]))
