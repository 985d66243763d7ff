"""What to put inside Restricted, and how much of ε its tests should get: F1 in seeded draws, means over pools and ε."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import dpselect as dps
from dpselect.mechanisms import PooledDomain, mechanism_for
from experiments.data import real
from experiments.unknown import DATA_SETS, LENGTHS, POOLS, delta_of, measured, pool_of

TITLE = "F1 of Restricted around several mechanisms, by the share of ε for the tests; means over pools and ε"
EPSILONS = (0.1, 0.3, 1.0)
SHARES = (0.25, 0.5, 0.75)
DRAWS = 10


def mechanisms(k: int, epsilon: float, delta: float, pool: int) -> Iterator[tuple[str, PooledDomain]]:
    """Yield the default, the alternatives, and the mechanism that it is measured against."""
    for label, name in (("default", "restricted"), ("limited", "limited")):
        chosen = mechanism_for(name, k=k, epsilon=epsilon, delta=delta, pool=pool)
        assert isinstance(chosen, PooledDomain)
        yield label, chosen
    for share in SHARES:
        left, tests = epsilon * (1 - share), {"pool": pool, "test_epsilon": epsilon * share}
        peeling = dps.Peeling(k=k, epsilon=left, noise="gumbel", delta=delta / 2)
        yield f"peeling {share}", dps.Restricted(inner=peeling, test_delta=delta / 2, **tests)  # type: ignore[arg-type]
        for kind in (dps.Joint, dps.Canonical):
            inner = kind(k=k, epsilon=left)
            yield f"{inner.name} {share}", dps.Restricted(inner=inner, test_delta=delta, **tests)  # type: ignore[arg-type]


def rows(data: Path, names: tuple[str, ...] = DATA_SETS, draws: int = DRAWS) -> Iterator[dict[str, Any]]:
    """Yield for each data set and k the mean F1 of every candidate."""
    for name in names:
        counts = real(data, name)
        delta = delta_of(data, name, counts)
        for k in LENGTHS:
            found: dict[str, list[float]] = {}
            for factor in POOLS:
                pool = pool_of(counts, factor * k)
                for epsilon in EPSILONS:
                    for label, mechanism in mechanisms(k, epsilon, delta, factor * k):
                        found.setdefault(label, []).append(measured(mechanism, pool, counts[:k], draws)[2])
            yield {"data": name, "k": k, **{label: float(np.mean(values)) for label, values in found.items()}}
