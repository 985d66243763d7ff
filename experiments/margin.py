"""Which ε the canonical mechanism needs to return exactly the top k with probability 0.99 (mathematics, section 3)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dpselect as dps
from dpselect._arrays import Array
from dpselect.forecast import proven_limit, smallest_epsilon, swap_yardstick
from experiments.data import real, zipf

TITLE = "ε needed to return exactly the top k with probability 0.99"
WANTED = 0.99
ITEMS = 4096
"""The real sets are cut to their highest counts."""

CASES = [
    ("netflix", 1),
    ("netflix", 10),
    ("netflix", 100),
    ("dpbench/PATENT", 10),
    ("dpbench/SEARCHLOGS", 100),
    ("dpbench/INCOME", 100),
    ("games_steam", 10),
    ("books_goodreads", 100),
    ("dpbench/MEDCOST", 100),
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


def epsilon_for_top(counts: Array, k: int, gamma: float, margin: bool, noise: str) -> float:
    """Return the ε at which P[exact top-k] = 0.99."""
    mechanism = dps.Canonical(k=k, epsilon=1.0, gamma=gamma, noise=noise, margin=margin)
    return smallest_epsilon(counts, mechanism, WANTED)


def counts_of(name: str, folder: Path) -> Array:
    """Return the counts of a case, highest first."""
    return zipf(10_000, 0.04) if name.startswith("Zipf") else real(folder, name)[:ITEMS]


def rows(data: Path) -> Iterator[dict[str, Any]]:
    """Yield for each case the ε of every variant, the yardstick and the limit, and how far from them it is."""
    sets = {name: counts_of(name, data) for name, _ in CASES}
    for name, k in CASES:
        counts = sets[name]
        needed = {variant: epsilon_for_top(counts, k, *settings) for variant, settings in VARIANTS.items()}
        one_shot = smallest_epsilon(counts, dps.OneShot(k=k, epsilon=1.0), WANTED)
        yardstick = swap_yardstick(counts, dps.Canonical(k=k, epsilon=1.0), WANTED)
        limit = proven_limit(counts, k, WANTED)
        published = min(needed["published γ=½, gumbel"], needed["published γ=1, gumbel"])
        with_margin = needed["margin γ=½, exponential"]
        yield {
            "data": name,
            "d": len(counts),
            "k": k,
            "one-shot, exponential": one_shot,
            **needed,
            "swap yardstick": yardstick,
            "proven limit": limit,
            "published / swap yardstick": published / yardstick,
            "margin / swap yardstick": with_margin / yardstick,
            "margin / proven limit": with_margin / limit,
        }
