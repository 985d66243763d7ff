"""Unknown domains: what Restricted, LimitedDomain and TopStable return at the same (ε, δ), in seeded draws.

The grid of the restricted paper, section 8: k, pool and ε, with δ = 1/(2n) for n people.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from dpselect._arrays import Array
from dpselect.forecast import f1_score, items_returned, score_ratio
from dpselect.mechanisms import PooledDomain, mechanism_for
from dpselect.mechanisms.unknown import Pool
from dpselect.sampling import bit_source
from experiments.data import people, real

TITLE = "unknown domains: items returned, score ratio and F1 at the same (ε, δ), means of seeded draws"
DATA_SETS = ("epinions", "games_steam", "words_lt", "foursquare_lbsn_Jakarta")
LENGTHS = (10, 50, 100)
POOLS = (1, 10, 50)
EPSILONS = (0.1, 0.2, 0.4, 0.7, 1.0)
MECHANISMS = {"Restricted": "restricted", "Limited": "limited", "Stable": "top-stable"}
DRAWS = 1000


def delta_of(data: Path, name: str, counts: Array) -> float:
    """Return δ = 1/(2n) for n people; without pairs, n is the highest count."""
    n = people(data, name) if (data / name / "pairs.csv.gz").is_file() else int(counts[0])
    return 1 / (2 * n)


def pool_of(counts: Array, size: int) -> Pool:
    """Return the pool as an engine would answer it, from counts in descending order."""
    return Pool.of_rows(counts[:size], size, int(counts[size]) if len(counts) > size else 0)


def settings(
    data: Path, names: tuple[str, ...] = DATA_SETS
) -> Iterator[tuple[dict[str, Any], Array, Pool, dict[str, PooledDomain]]]:
    """Yield the first columns of each row of the grid, the counts, the pool and the three mechanisms."""
    for name in names:
        counts = real(data, name)
        delta = delta_of(data, name, counts)
        for k, factor in product(LENGTHS, POOLS):
            pool = pool_of(counts, factor * k)
            for epsilon in EPSILONS:
                compared = {}
                for label, kind in MECHANISMS.items():
                    mechanism = mechanism_for(kind, k=k, epsilon=epsilon, delta=delta, pool=factor * k)
                    assert isinstance(mechanism, PooledDomain)
                    compared[label] = mechanism
                yield {"data": name, "k": k, "pool": f"{factor}k", "ε": epsilon}, counts, pool, compared


def lengths(mechanism: PooledDomain, pool: Pool, draws: int) -> Array:
    """Return the number of items of each answer, in seeded draws."""
    bits = bit_source(1)
    return np.array([len(mechanism.draw_from(pool, bits).values) for _ in range(draws)])


def measured(mechanism: PooledDomain, pool: Pool, top: Array, draws: int) -> tuple[float, float, float]:
    """Return the means of items returned, score ratio and F1, in seeded draws."""
    bits = bit_source(1)
    answers = [mechanism.draw_from(pool, bits).values for _ in range(draws)]
    metrics = (items_returned, score_ratio, f1_score)
    return tuple(float(np.mean([metric(top, answer) for answer in answers])) for metric in metrics)  # type: ignore[return-value]


def rows(data: Path, names: tuple[str, ...] = DATA_SETS, draws: int = DRAWS) -> Iterator[dict[str, Any]]:
    """Yield for each data set, k, pool and ε the three means of three mechanisms."""
    for row, counts, pool, compared in settings(data, names):
        for label, mechanism in compared.items():
            items, ratio, f1 = measured(mechanism, pool, counts[: row["k"]], draws)
            row |= {f"items {label}": items, f"ratio {label}": ratio, f"F1 {label}": f1}
        yield row
