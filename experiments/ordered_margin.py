"""How much ε the margin of Joint saves, and how far its figures are from the table of mathematics, section 4."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import dpselect as dps
from dpselect._arrays import Array
from dpselect.forecast import gap_limit, smallest_epsilon
from dpselect.forecast.curves import solve_epsilon
from experiments.data import real

TITLE = "ε needed to return exactly the top sequence with probability 0.99, exponential noise; % from the table"
WANTED = 0.99

TABLE = {
    ("netflix", 10): (0.1347, 0.0674, 0.0674),
    ("netflix", 50): (1.953, 0.978, 0.978),
    ("books_goodreads", 10): (6.14e-4, 3.39e-4, 2.81e-4),
    ("games_steam", 10): (2.604, 1.315, 1.304),
    ("dpbench/INCOME", 50): (0.0587, 0.0368, 0.0277),
    ("dpbench/MEDCOST", 10): (8.06, 4.80, 3.95),
    ("dpbench/NETTRACE", 10): (0.392, 0.218, 0.172),
}
"""ε without the margin, with it, and by the swap yardstick."""


def swap_yardstick(counts: Array, k: int) -> float:
    """Return the ε at which `½ Σ_{a<=k, b>a} e^{−ε (x_[a] − x_[b])} = 0.01`: a yardstick, not a bound."""
    gaps = np.concatenate([counts[place] - counts[place + 1 :] for place in range(k)]).astype(np.float64)

    def probabilities(epsilon: float) -> tuple[float, float]:
        failure = float(np.exp(-epsilon * gaps).sum()) / 2
        return 1 - failure, failure

    return solve_epsilon(probabilities, WANTED, gap_limit(counts, dps.Joint(k=k, epsilon=1.0), WANTED))


def rows(data: Path) -> Iterator[dict[str, Any]]:
    """Yield for each case of the table its three figures, and by how many percent each differs from the table."""
    for (name, k), printed in TABLE.items():
        counts = real(data, name)
        without, with_margin = (
            smallest_epsilon(counts, dps.Joint(k=k, epsilon=1.0, margin=margin), WANTED) for margin in (False, True)
        )
        found = {"without": without, "with": with_margin, "swap yardstick": swap_yardstick(counts, k)}
        off = {
            f"{label}, %": 100 * (value / shown - 1)
            for (label, value), shown in zip(found.items(), printed, strict=True)
        }
        yield {"data": name, "d": len(counts), "k": k, **found, **off}
