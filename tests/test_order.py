"""The order in which a set is returned is uniformly random."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import permutations

import numpy as np
import pytest
from scipy.stats import chi2

import dpselect as dps
from dpselect.mechanisms import Mechanism
from dpselect.sampling import NOISES

TRIALS = 1200
FAILURE_RATE = 1e-6
BY_TRUE_SCORE = {f"item {rank}": 60 - 10 * rank for rank in range(6)}

Answers = Callable[[Mechanism, int], list[int]]


def order_statistic(answer: Answers, mechanism: Mechanism) -> float:
    """Chi-square of the order of the answers' true ranks, against all k! orders being equally likely."""
    seen: Counter[tuple[int, ...]] = Counter()
    for seed in range(TRIALS):
        ranks = answer(mechanism, seed)
        seen[tuple(np.argsort(np.argsort(ranks)).tolist())] += 1
    orders = list(permutations(range(mechanism.k)))
    expected = TRIALS / len(orders)
    return sum((seen[order] - expected) ** 2 / expected for order in orders)


def from_mapping(mechanism: Mechanism, seed: int) -> list[int]:
    items = dps.select(BY_TRUE_SCORE, mechanism=mechanism, seed=seed).items
    return [list(BY_TRUE_SCORE).index(item) for item in items]


def from_histogram(mechanism: Mechanism, seed: int) -> list[int]:
    scores = dps.Scores.from_histogram([(50, 2), (40, 1), (30, 3)])
    return dps.select(scores, mechanism=mechanism, seed=seed).items


def sorted_positions(mechanism: Mechanism, seed: int) -> list[int]:
    """A broken twin: the same set, shown as NumPy would sort it."""
    return sorted(from_mapping(mechanism, seed))


def by_noisy_score(mechanism: Mechanism, seed: int) -> list[int]:
    """Another broken twin: the right noise, but the winners are shown from the largest noisy score down."""
    generator = np.random.default_rng(seed)
    noisy = np.array(list(BY_TRUE_SCORE.values())) / mechanism.k + generator.exponential(size=6)
    return np.argsort(-noisy)[: mechanism.k].tolist()


def limit(k: int) -> float:
    """The statistic that a uniform order exceeds with probability 1e-6."""
    orders = len(list(permutations(range(k))))
    return float(chi2.isf(FAILURE_RATE, orders - 1))


@pytest.mark.slow
@pytest.mark.parametrize("answer", [from_mapping, from_histogram])
@pytest.mark.parametrize(
    "noise", [pytest.param(noise, marks=[] if noise == "exponential" else [pytest.mark.long]) for noise in NOISES]
)
def test_a_set_comes_in_uniformly_random_order(answer: Answers, noise: str) -> None:
    mechanism = dps.OneShot(k=3, epsilon=3.0, noise=noise)
    assert order_statistic(answer, mechanism) < limit(mechanism.k)


@pytest.mark.parametrize("answer", [sorted_positions, by_noisy_score])
def test_an_order_that_follows_the_scores_is_noticed(answer: Answers) -> None:
    mechanism = dps.OneShot(k=3, epsilon=3.0)
    assert order_statistic(answer, mechanism) > limit(mechanism.k)
