"""Counts to experiment with: real ones from a folder, and generated ones."""

from __future__ import annotations

import csv
import gzip
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Counts = npt.NDArray[Any]


class MissingData(Exception):
    """A data set that the folder does not hold."""


def real(folder: Path, name: str) -> Counts:
    """Return the counts of a data set, highest first."""
    flat = folder / f"{name}.csv.gz"
    path = flat if flat.exists() else folder / name / "counts.csv.gz"
    if path.is_file():
        counts = [int(row["count"]) for row in _rows(path)]
    else:
        counts = list(Counter(row["item"] for row in _rows(_pairs(folder, name))).values())
    return np.sort(np.array(counts, dtype=np.int64))[::-1]


def people(folder: Path, name: str) -> int:
    """Return how many people a data set of pairs holds."""
    return len({row["user"] for row in _rows(_pairs(folder, name))})


def _pairs(folder: Path, name: str) -> Path:
    path = folder / name / "pairs.csv.gz"
    if not path.is_file():
        raise MissingData(f"{folder} holds no {name}.csv.gz, {name}/counts.csv.gz or {name}/pairs.csv.gz")
    return path


def _rows(path: Path) -> Iterator[dict[str, str]]:
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        yield from csv.DictReader(file)


def zipf(size: int, exponent: float, total: float = 1.5e8) -> Counts:
    """Counts by Zipf's law: `round(total · i**−s / Σ_j j**−s)` (canonical, section 7.2, where they are not rounded)."""
    shares = np.arange(1, size + 1) ** -exponent
    counts: Counts = np.round(total * shares / shares.sum()).astype(np.int64)
    return counts


def long_tail(size: int, highest: float) -> Counts:
    """Counts `round(highest / i**0.7)`."""
    return np.round(highest / np.arange(1, size + 1) ** 0.7).astype(np.int64)


def flat(size: int, mean: float) -> Counts:
    """Counts of items that people like about equally: Poisson with a fixed seed, highest first."""
    return np.sort(np.random.default_rng(0).poisson(mean, size))[::-1]
