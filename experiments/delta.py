"""What a delta of 1e-6 buys: CDP-PEEL against the pure mechanisms that "auto" chooses, in seeded draws."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import dpselect as dps
from dpselect._arrays import Array
from experiments.errors import EPSILONS, draws
from experiments.ordered import data_sets

TITLE = "mean ℓ∞ errors without a delta and with 1e-6, and shares of exact answers"
LENGTHS = (3, 10, 50, 200)
DELTA = 1e-6
DRAWS = 40


def rows(data: Path) -> Iterator[dict[str, Any]]:
    """Yield for each data set, length and ε the errors of Joint, Canonical, and CDP-PEEL with and without order."""
    for name, counts in data_sets(data).items():
        for k in LENGTHS:
            for epsilon in EPSILONS:
                mechanisms: dict[str, dps.Mechanism] = {
                    "Joint": dps.Joint(k=k, epsilon=epsilon),
                    "CDP-PEEL": dps.Peeling(k=k, epsilon=epsilon, noise="gumbel", delta=DELTA),
                    "Canonical": dps.Canonical(k=k, epsilon=epsilon),
                    "CDP set": dps.OneShot(k=k, epsilon=epsilon, noise="gumbel", delta=DELTA),
                }
                row: dict[str, Any] = {"data": name, "k": k, "ε": epsilon}
                for title, mechanism in mechanisms.items():
                    row[f"ℓ∞ {title}"], row[f"exact {title}"] = _errors(mechanism, counts)
                yield row


def _errors(mechanism: dps.Mechanism, counts: Array) -> tuple[float, float]:
    """Return the mean ℓ∞ error and the share of exact answers, of sets after sorting them by true score."""
    chosen, true = draws(mechanism, counts, DRAWS), counts[: mechanism.k]
    if not mechanism.ordered:
        chosen = -np.sort(-chosen, axis=1)
    return float(np.abs(true - chosen).max(axis=1).mean()), float((chosen == true).all(axis=1).mean())
