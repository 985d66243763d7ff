"""LimitedDomain with a fixed pool and with one that a tenth of ε chooses privately, and Restricted, at the same (ε, δ).

The restricted paper argues against the choice (section 6.2): it costs budget, and a large pool is nearly always good.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

from dpselect.mechanisms import LimitedDomain, PooledDomain, mechanism_for
from experiments.data import real
from experiments.unknown import DATA_SETS, delta_of, measured, pool_of

TITLE = "LimitDomain's private choice of the pool: items returned and F1, means of seeded draws"
LENGTHS = (10, 50)
EPSILONS = (0.1, 0.4, 1.0)
FACTOR = 10
SHARE = 0.1
DRAWS = 300


def rows(data: Path, names: tuple[str, ...] = DATA_SETS, draws: int = DRAWS) -> Iterator[dict[str, Any]]:
    """Yield for each data set, k and ε the means of three mechanisms with pools of at most 10 k."""
    for name in names:
        counts = real(data, name)
        delta = delta_of(data, name, counts)
        for k, epsilon in product(LENGTHS, EPSILONS):
            shared: dict[str, Any] = {"k": k, "epsilon": epsilon, "delta": delta, "pool": FACTOR * k}
            restricted = mechanism_for("restricted", **shared)
            assert isinstance(restricted, PooledDomain)
            compared: dict[str, PooledDomain] = {
                "fixed": LimitedDomain(**shared),
                "chosen": LimitedDomain(**shared, pool_epsilon=SHARE * epsilon),
                "Restricted": restricted,
            }
            row: dict[str, Any] = {"data": name, "k": k, "ε": epsilon}
            for label, mechanism in compared.items():
                items, _, f1 = measured(mechanism, pool_of(counts, FACTOR * k), counts[:k], draws)
                row |= {f"items {label}": items, f"F1 {label}": f1}
            yield row
