"""Joint or Peeling: how far the scores of the chosen sequence are from the true ones, in seeded draws."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import dpselect as dps
from dpselect._arrays import Array
from dpselect.forecast import largest_error, relative_error
from dpselect.sampling import bit_source
from experiments.ordered import data_sets

TITLE = "mean errors of the chosen sequence (joint, Definition 2.2), exponential noise"
LENGTHS = (1, 5, 10, 50, 200)
EPSILONS = (0.1, 1.0, 10.0)
DRAWS = 40


def mean(judge: Callable[[Array, Array], float], true: Array, chosen: Array) -> float:
    """Return the mean of a measure over all draws."""
    return float(np.mean([judge(true, answer) for answer in chosen]))


def draws(mechanism: dps.Mechanism, counts: Array, number: int) -> Array:
    """Return the scores of the chosen sequences, one row per draw; seeded, so never for a release."""
    bits, scores = bit_source(1), dps.Scores.of(counts)
    return np.array([mechanism.draw(scores, bits).values for _ in range(number)])


def rows(data: Path) -> Iterator[dict[str, Any]]:
    """Yield for each data set, length and ε both errors and the share of exact answers of both mechanisms."""
    for name, counts in data_sets(data).items():
        for k in LENGTHS:
            for epsilon in EPSILONS:
                joint = draws(dps.Joint(k=k, epsilon=epsilon), counts, DRAWS)
                peeling = draws(dps.Peeling(k=k, epsilon=epsilon), counts, DRAWS)
                true = counts[:k]
                yield {
                    "data": name,
                    "k": k,
                    "ε": epsilon,
                    "ℓ∞ Joint": mean(largest_error, true, joint),
                    "ℓ∞ Peeling": mean(largest_error, true, peeling),
                    "k-relative Joint": mean(relative_error, true, joint),
                    "k-relative Peeling": mean(relative_error, true, peeling),
                    "exact Joint": float((joint == true).all(axis=1).mean()),
                    "exact Peeling": float((peeling == true).all(axis=1).mean()),
                }
