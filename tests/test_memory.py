"""Memory of a release beside its scores: 16 bytes per item for OneShot, 64 MB for Canonical and Joint."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

import dpselect as dps

SIZE = 1_000_000
LONG_TAIL = 150_000 / np.arange(1, SIZE + 1) ** 0.7

SCORES = {
    "counts with ties": np.round(LONG_TAIL).astype(np.int64),
    "short counts": np.round(LONG_TAIL).astype(np.int32),
    "distinct floats": LONG_TAIL,
    "equal floats": np.zeros(SIZE),
    "distinct integers": np.arange(SIZE),
    "distinct negative integers": -np.arange(SIZE),
    "few negative integers": -np.arange(SIZE) // 40,
    "integers a few apart": np.arange(SIZE) * 10,
    "integers of a wide range": np.arange(SIZE) * 10**6,
    "integers with few ties": np.arange(SIZE) // 4,
    "negative integers": -np.round(LONG_TAIL).astype(np.int64),
}


MOST_BYTES = {
    dps.OneShot(k=100, epsilon=1.0): 16 * SIZE,
    dps.Canonical(k=100, epsilon=1.0): 64_000_000,
    dps.Joint(k=100, epsilon=1.0): 64_000_000,
}


@pytest.mark.slow
@pytest.mark.parametrize("scores", SCORES.values(), ids=SCORES.keys())
def test_a_release_needs_little_memory_beside_its_scores(scores: np.ndarray) -> None:
    for mechanism, most in MOST_BYTES.items():
        mechanism.select(scores[:1000], seed=1)
        tracemalloc.start()
        try:
            mechanism.select(scores, seed=1)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert peak <= most, mechanism.name
