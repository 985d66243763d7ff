"""Small data sets in the shape of the papers': long tails, a few hundred items, written as the real ones are."""

from __future__ import annotations

import csv
import gzip
from pathlib import Path

import numpy as np

from dpselect.reproduce.data import look_alike

COUNTS = {
    "books_goodreads": look_alike(400, 50_000, 5, 0.8),
    "games_steam": look_alike(400, 900, 5, 1.2),
    "netflix": look_alike(1600, 40_000, 50, 1.5),
    **{
        f"dpbench/{name}": look_alike(1550 + place, 3000 * (place + 1), 20, 1.0)
        for place, name in enumerate(("PATENT", "SEARCHLOGS", "MEDCOST", "INCOME", "HEPTH"))
    },
}
PAIRS = {"epinions": (120, 300), "foursquare_lbsn_Jakarta": (90, 200), "games_steam": (80, 200)}
"""Data sets of pairs: how many people and how many items."""


def write_sets(folder: Path) -> Path:
    """Write every data set into a folder and return it."""
    for name, counts in COUNTS.items():
        path = folder / (f"{name}.csv.gz" if "/" in name else f"{name}/counts.csv.gz")
        write_rows(path, ["item", "count"], [(f"item {i}", int(count)) for i, count in enumerate(counts)])
    generator = np.random.default_rng(0)
    for name, (people, items) in PAIRS.items():
        pairs = {
            (person, int(item))
            for person in range(people)
            for item in np.minimum(generator.geometric(0.03, size=20), items)
        }
        write_rows(folder / name / "pairs.csv.gz", ["user", "item"], sorted(pairs))
    return folder


def write_rows(path: Path, columns: list[str], rows: list[tuple[object, ...]]) -> None:
    """Write a gzipped CSV file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with gzip.open(path, "wt", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(rows)
