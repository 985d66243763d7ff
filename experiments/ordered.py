"""Joint or Peeling: which ε returns exactly the top sequence with probability 0.99, from the laws themselves."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dpselect as dps
from dpselect._arrays import Array
from dpselect.forecast import smallest_epsilon
from experiments.data import flat, long_tail, real

TITLE = "ε needed to return exactly the top sequence with probability 0.99, exponential noise"
WANTED = 0.99
LENGTHS = (1, 2, 3, 5, 10, 50)


def data_sets(folder: Path) -> dict[str, Array]:
    """Return the counts to compare on, highest first."""
    return {
        "games_steam": real(folder, "games_steam"),
        "books_goodreads": real(folder, "books_goodreads"),
        "netflix": real(folder, "netflix"),
        "long tail to 150,000": long_tail(10_000, 150_000),
        "long tail to 500": long_tail(10_000, 500),
        "Poisson, mean 100": flat(10_000, 100),
    }


def rows(data: Path) -> Iterator[dict[str, Any]]:
    """Yield for each data set and length the ε of both, and their ratio."""
    for name, counts in data_sets(data).items():
        for k in LENGTHS:
            joint = smallest_epsilon(counts, dps.Joint(k=k, epsilon=1.0), WANTED)
            peeling = smallest_epsilon(counts, dps.Peeling(k=k, epsilon=1.0), WANTED)
            yield {
                "data": name,
                "d": len(counts),
                "k": k,
                "Joint": joint,
                "Peeling": peeling,
                "Joint / Peeling": joint / peeling,
            }
