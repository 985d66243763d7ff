"""A release holds at most 16 bytes for each item beyond the scores it was given."""

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
    "integers of a wide range": np.arange(SIZE) * 10**6,
    "integers with few ties": np.arange(SIZE) // 4,
    "negative integers": -np.round(LONG_TAIL).astype(np.int64),
}


@pytest.mark.parametrize("scores", SCORES.values(), ids=SCORES.keys())
def test_a_release_needs_at_most_sixteen_bytes_an_item(scores: np.ndarray) -> None:
    dps.select(scores[:1000], k=100, epsilon=1.0, seed=1)
    tracemalloc.start()
    try:
        dps.select(scores, k=100, epsilon=1.0, seed=1)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak <= 16 * SIZE
