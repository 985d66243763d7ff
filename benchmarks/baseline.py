"""The scores that are selected from, and what people write by hand to select from them."""

from __future__ import annotations

import numpy as np

from dpselect._arrays import Array

K, EPSILON = 200, 1.0


def long_tail(size: int) -> Array:
    """Counts with a long tail and many ties, `round(150000 / i**0.7)`, in random order."""
    return np.round(distinct_floats(size)).astype(np.int64)


def distinct_floats(size: int) -> Array:
    """Scores with a long tail of which no two are equal, in random order."""
    scores = 150_000 / np.arange(1, size + 1) ** 0.7
    np.random.default_rng(1).shuffle(scores)
    return scores


def noisy_argpartition(scores: Array, k: int, noise: str = "gumbel") -> Array:
    """The baseline: the positions of the k largest of score + noise of scale k/ε."""
    draw = getattr(np.random.default_rng(), noise)
    noisy = scores + draw(scale=k / EPSILON, size=len(scores))
    return np.argpartition(noisy, -k)[-k:]
