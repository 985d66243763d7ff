"""Counts to experiment with: real ones from a folder, and generated ones."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from dpselect._arrays import Array
from dpselect.reproduce.data import Data
from dpselect.reproduce.data import zipf as zipf_scores


def real(folder: Path, name: str) -> Array:
    """Return the counts of a data set, highest first."""
    return Data(folder).counts(name)


def people(folder: Path, name: str) -> int:
    """Return the number of people in a data set of pairs."""
    return Data(folder).people(name)


def zipf(size: int, exponent: float) -> Array:
    """Return counts by Zipf's law, rounded (canonical, section 7.2, has them unrounded)."""
    return np.round(zipf_scores(size, exponent)).astype(np.int64)


def long_tail(size: int, highest: float) -> Array:
    """Return counts `round(highest / i**0.7)`."""
    return np.round(highest / np.arange(1, size + 1) ** 0.7).astype(np.int64)


def flat(size: int, mean: float) -> Array:
    """Return counts of items that are about equally popular: Poisson from a fixed seed, highest first."""
    return np.sort(np.random.default_rng(0).poisson(mean, size))[::-1]
