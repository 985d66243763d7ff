"""Which ε the canonical mechanism needs to return exactly the top k with probability 0.99 (mathematics, section 3)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import dpselect as dps
from dpselect.forecast.chances import chance_of_best, least_epsilon
from experiments.data import Counts, real, zipf
from experiments.oneshot import oneshot_epsilon

TITLE = "ε needed to return exactly the top k with probability 0.99"
WANTED = 0.99
ITEMS = 4096
"""The real sets are cut to their highest counts."""

CASES = [
    ("netflix", 1),
    ("netflix", 10),
    ("netflix", 100),
    ("dpbench/PATENT", 10),
    ("dpbench/INCOME", 100),
    ("books_goodreads", 100),
    ("Zipf s=0.04", 1000),
]

VARIANTS: dict[str, tuple[float, bool, str]] = {
    "published γ=½, gumbel": (0.5, False, "gumbel"),
    "published γ=½, exponential": (0.5, False, "exponential"),
    "published γ=1, gumbel": (1.0, False, "gumbel"),
    "published γ=1, exponential": (1.0, False, "exponential"),
    "margin γ=½, gumbel": (0.5, True, "gumbel"),
    "margin γ=½, exponential": (0.5, True, "exponential"),
}
"""What is compared, as gamma, margin and noise; with γ = 1 the margin changes nothing."""

_NEGLIGIBLE = 1e-20


def epsilon_for_top(counts: Counts, k: int, gamma: float, margin: bool, noise: str) -> float:
    """Return the ε at which P[exact top-k] = 0.99.

    Which classes there are, and their losses, does not depend on ε. Weights fall as ε grows, and no ε below the gap
    limit will do, so classes that weigh next to nothing there are left out.
    """
    classes = dps.Canonical(k=k, epsilon=1.0, gamma=gamma, noise=noise, margin=margin).classes(counts)
    smallest = gap_limit(counts, k)
    others = classes.heads < k
    others &= classes.log_sizes - smallest * classes.losses > np.log(_NEGLIGIBLE / len(classes))
    log_sizes, losses = classes.log_sizes[others], classes.losses[others]
    return least_epsilon(lambda epsilon: chance_of_best(0.0, log_sizes, epsilon * losses, noise), WANTED, smallest)


def gap_limit(counts: Counts, k: int) -> float:
    """Return the ε that any symmetric mechanism needs: `ln(1 / (2 (1 − p))) / (x_[k] − x_[k+1])`."""
    return float(-np.log(2 * (1 - WANTED)) / (counts[k - 1] - counts[k]))


def swap_limit(counts: Counts, k: int) -> float:
    """Return the ε at which `½ Σ_{a<=k<b} e^{−ε (x_[a] − x_[b])} = 1 − p`: a yardstick, not a theorem."""
    inside, outside = counts[:k] - counts[k - 1], counts[k] - counts[k:]

    def chance(epsilon: float) -> float:
        swaps = np.exp(-epsilon * inside).sum() * np.exp(-epsilon * outside).sum()
        return float(1 - 0.5 * swaps * np.exp(-epsilon * (counts[k - 1] - counts[k])))

    return least_epsilon(chance, WANTED, gap_limit(counts, k))


def counts_of(name: str, folder: Path) -> Counts:
    """Return the counts of a case, highest first."""
    return zipf(10_000, 0.04) if name.startswith("Zipf") else real(folder, name)[:ITEMS]


def rows(data: Path) -> Iterator[dict[str, Any]]:
    """Yield for each case the ε of every variant, both limits, and how far from them the mechanisms are."""
    sets = {name: counts_of(name, data) for name, _ in CASES}
    for name, k in CASES:
        counts = sets[name]
        needed = {variant: epsilon_for_top(counts, k, *settings) for variant, settings in VARIANTS.items()}
        one_shot = oneshot_epsilon(counts, k, WANTED, near=k * gap_limit(counts, k))
        limits = {"swap limit": swap_limit(counts, k), "gap limit": gap_limit(counts, k)}
        published = min(needed["published γ=½, gumbel"], needed["published γ=1, gumbel"])
        with_margin = needed["margin γ=½, exponential"]
        yield {
            "data": name,
            "d": len(counts),
            "k": k,
            "one-shot, exponential": one_shot,
            **needed,
            **limits,
            "published / swap limit": published / limits["swap limit"],
            "margin / swap limit": with_margin / limits["swap limit"],
            "margin / gap limit": with_margin / limits["gap limit"],
        }
