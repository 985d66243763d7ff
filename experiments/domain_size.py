"""A huge known domain or an unknown one: the exponential mechanism over all items against Restricted over the top.

Restricted, appendix D: items of count 1 are added to the domain, 10^8 to 10^10 of them. The full domain is run exactly:
its items of count 1 are one tied group. Items below the pool cannot change the answer of Restricted.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import dpselect as dps
from dpselect._arrays import Array
from dpselect.forecast import score_ratio
from dpselect.sampling import bit_source
from experiments.data import real
from experiments.unknown import delta_of, measured, pool_of

TITLE = "score ratio of the exponential mechanism over a domain with added items of count 1, and of Restricted"
DATA_SET = "epinions"
LENGTHS = (10, 50, 100)
EPSILONS = (0.1, 0.2, 0.4, 0.7, 1.0)
ADDED = (0, 10**8, 10**9, 10**10)
POOL = 50
DRAWS = 20


def full_domain(counts: Array, added: int) -> dps.Scores:
    """Return the scores of all items and of `added` further items of count 1."""
    values, sizes = np.unique(counts, return_counts=True)
    histogram = dict(zip(values.tolist(), sizes.tolist(), strict=True))
    histogram[1] = histogram.get(1, 0) + added
    return dps.Scores.from_histogram(list(histogram.items()))


def rows(data: Path, draws: int = DRAWS) -> Iterator[dict[str, Any]]:
    """Yield for each k and ε the mean score ratio of both."""
    counts = real(data, DATA_SET)
    delta = delta_of(data, DATA_SET, counts)
    domains = {added: full_domain(counts, added) for added in ADDED}
    for k in LENGTHS:
        top, pool = counts[:k], pool_of(counts, POOL * k)
        for epsilon in EPSILONS:
            restricted = dps.RestrictedGumbel(k=k, epsilon=epsilon, delta=delta, pool=POOL * k)
            row: dict[str, Any] = {"data": DATA_SET, "k": k, "ε": epsilon}
            row["Restricted"] = measured(restricted, pool, top, draws)[1]
            for added, scores in domains.items():
                mechanism, bits = dps.Peeling(k=k, epsilon=epsilon, noise="gumbel", delta=delta), bit_source(1)
                ratios = [score_ratio(top, mechanism.draw(scores, bits).values) for _ in range(draws)]
                row[f"+{added:.0e}" if added else "all items"] = float(np.mean(ratios))
            yield row
