"""Joint or Peeling: which ε returns exactly the top sequence with probability 0.99, from the laws themselves."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import dpselect as dps
from dpselect.forecast.chances import chance_of_best, least_epsilon
from experiments.data import Counts, flat, long_tail, real

TITLE = "ε needed to return exactly the top sequence with probability 0.99, exponential noise"
WANTED = 0.99
LENGTHS = (1, 2, 3, 5, 10, 50)


def data_sets(folder: Path) -> dict[str, Counts]:
    """Return the counts to compare on, highest first."""
    return {
        "games_steam": real(folder, "games_steam"),
        "books_goodreads": real(folder, "books_goodreads"),
        "netflix": real(folder, "netflix"),
        "long tail to 150,000": long_tail(10_000, 150_000),
        "long tail to 500": long_tail(10_000, 500),
        "Poisson, mean 100": flat(10_000, 100),
    }


def joint_epsilon(counts: Counts, k: int) -> float:
    """Return the ε that Joint needs; its levels and their losses do not depend on ε."""
    levels = dps.Joint(k=k, epsilon=1.0).levels(counts)
    return least_epsilon(
        lambda epsilon: chance_of_best(
            float(levels.log_sizes[0]), levels.log_sizes[1:], epsilon / 2 * levels.losses[1:], "exponential"
        ),
        WANTED,
        near=1.0,
    )


def peeling_chance(counts: Counts, k: int, epsilon: float, noise: str = "exponential") -> float:
    """Return the probability that Peeling returns the top sequence, up to ties: a product of k rounds."""
    values, sizes = np.unique(counts, return_counts=True)
    values, left = values[::-1], sizes[::-1].astype(np.float64)
    chance, group = 1.0, 0
    for _ in range(k):
        lower = slice(group + 1, None)
        if group + 1 < len(values):
            below = epsilon / k * (values[group] - values[lower])
            chance *= chance_of_best(float(np.log(left[group])), np.log(left[lower]), below, noise)
        left[group] -= 1
        group += int(left[group] == 0)
    return chance


def rows(data: Path) -> Iterator[dict[str, Any]]:
    """Yield for each data set and length the ε of both, and their ratio."""
    for name, counts in data_sets(data).items():
        for k in LENGTHS:
            joint = joint_epsilon(counts, k)
            peeling = least_epsilon(lambda epsilon: peeling_chance(counts, k, epsilon), WANTED, near=joint)  # noqa: B023
            yield {
                "data": name,
                "d": len(counts),
                "k": k,
                "Joint": joint,
                "Peeling": peeling,
                "Joint / Peeling": joint / peeling,
            }
