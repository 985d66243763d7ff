"""The canonical mechanism: its law, its margin, its limits, and how it treats ties.

Chi-square tests have a fixed seed; a sound sampler fails one for at most 1e-6 of the seeds.
"""

from __future__ import annotations

import math
from collections import Counter
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from scipy.stats import chisquare

import dpselect as dps
from dpselect.mechanisms import Canonical, OneShot
from dpselect.scores import Scores

SMALLEST_P = 1e-7

both_noises = pytest.mark.parametrize("noise", ["exponential", "gumbel"])
both_margins = pytest.mark.parametrize("margin", [True, False], ids=["margin", "published"])
every_gamma = pytest.mark.parametrize("gamma", [0, 0.25, 0.5, 0.75, 1], ids=lambda gamma: f"gamma={gamma}")

EXAMPLES = [
    [9, 7, 4, 4, 1, 0],
    [3, 3, 3, 1, 0, 0],
    [5, 4, 3, 2, 1, 0],
    [1, 1, 1, 1, 1, 1],
    [2.5, -1.0, 0.5, 8.0, 0.5, 2.0],
]


def top_set(scores: list[float], k: int) -> frozenset[int]:
    return frozenset(sorted(range(len(scores)), key=lambda item: -scores[item])[:k])


@every_gamma
@both_margins
@pytest.mark.parametrize("scores", EXAMPLES, ids=str)
def test_gumbel_noise_weighs_subsets_by_their_loss(scores: list[float], gamma: float, margin: bool) -> None:
    """Written again from the papers: heads and tails by rank for all but the top set, which stands for its margin."""
    k, epsilon = 3, 1.3
    order = sorted(range(len(scores)), key=lambda item: -scores[item])
    ranked = [scores[item] for item in order]
    weights = {}
    for ranks in combinations(range(len(scores)), k):
        head = next((rank for rank in range(k) if rank not in ranks), None)
        lacking = ranked[head] if head is not None else ranked[k] if margin else ranked[k - 1]
        loss = (1 - gamma) * lacking - gamma * ranked[ranks[-1]]
        weights[frozenset(order[rank] for rank in ranks)] = math.exp(-epsilon * loss)
    total = sum(weights.values())
    law = Canonical(k=k, epsilon=epsilon, gamma=gamma, noise="gumbel", margin=margin).law(scores)
    assert law == pytest.approx({subset: weight / total for subset, weight in weights.items()}, rel=1e-10)


@both_noises
@pytest.mark.parametrize("scores", EXAMPLES, ids=str)
def test_one_item_with_gamma_1_is_the_one_shot_mechanism(scores: list[float], noise: str) -> None:
    subsets = Canonical(k=1, epsilon=0.7, gamma=1, noise=noise).law(scores)
    assert subsets == pytest.approx(OneShot(k=1, epsilon=0.7, noise=noise).law(scores), rel=1e-9)


@both_noises
def test_spread_scales_the_loss(noise: str) -> None:
    wide = Canonical(k=2, epsilon=3.0, noise=noise, sensitivity=dps.Sensitivity(-1.5, 1.5))
    assert wide.law(EXAMPLES[0]) == pytest.approx(Canonical(k=2, epsilon=1.0, noise=noise).law(EXAMPLES[0]), rel=1e-10)


@both_noises
@every_gamma
@pytest.mark.parametrize("scores", EXAMPLES, ids=str)
def test_the_margin_never_does_worse_at_the_exact_top_set(scores: list[float], gamma: float, noise: str) -> None:
    for k in (1, 2, 3, 5):
        with_margin, published = (
            Canonical(k=k, epsilon=0.8, gamma=gamma, noise=noise, margin=margin).law(scores) for margin in (True, False)
        )
        top = top_set(scores, k)
        assert with_margin[top] >= published[top] * (1 - 1e-12)
        gap = sorted(scores)[-k] - sorted(scores)[-k - 1]
        if gap > 0 and gamma < 1:
            assert with_margin[top] > published[top] * (1 + 1e-6)
        else:
            assert with_margin == pytest.approx(published, rel=1e-12)


def test_given_that_the_top_set_loses_gumbel_noise_does_not_see_the_margin() -> None:
    scores, top = EXAMPLES[0], top_set(EXAMPLES[0], 2)
    laws = [Canonical(k=2, epsilon=0.8, noise="gumbel", margin=each).law(scores) for each in (False, True)]
    assert laws[0][top] < laws[1][top] * (1 - 1e-6)
    given = [{subset: chance / (1 - law[top]) for subset, chance in law.items() if subset != top} for law in laws]
    assert given[0] == pytest.approx(given[1], rel=1e-10)


@every_gamma
@both_margins
@pytest.mark.parametrize("scores", EXAMPLES, ids=str)
def test_exponential_noise_never_does_worse_than_gumbel_noise(scores: list[float], gamma: float, margin: bool) -> None:
    flip, gumbel = (
        Canonical(k=2, epsilon=1.0, gamma=gamma, noise=noise, margin=margin).law(scores)
        for noise in ("exponential", "gumbel")
    )
    best = max(gumbel.values())
    assert max(flip.values()) >= best * (1 - 1e-12)


@both_noises
@both_margins
@every_gamma
def test_a_large_epsilon_returns_the_top_set(gamma: float, margin: bool, noise: str) -> None:
    """γ = 0 as published does not know rank k from the ranks behind it: there the top set only ties for the best."""
    scores = [50, 0, 30, 10, 40, 20]
    chances = [
        Canonical(k=3, epsilon=epsilon, gamma=gamma, noise=noise, margin=margin).law(scores)[frozenset({0, 2, 4})]
        for epsilon in (1e-3, 0.1, 1.0, 10.0, 1e3)
    ]
    assert chances == sorted(chances)
    assert chances[0] == pytest.approx(1 / 20, rel=0.05)
    if gamma == 0 and not margin:
        assert chances[-1] == pytest.approx(1 / 4)
        return
    assert chances[-1] == pytest.approx(1.0)
    for seed in range(20):
        chosen = Canonical(k=3, epsilon=1e3, gamma=gamma, noise=noise, margin=margin).select(scores, seed=seed)
        assert set(chosen.tolist()) == {0, 2, 4}


@both_noises
def test_a_tiny_epsilon_hardly_sees_the_scores(noise: str) -> None:
    law = Canonical(k=3, epsilon=1e-6, noise=noise).law([10, 5, 4, 3, 2, 0])
    assert list(law.values()) == pytest.approx([1 / 20] * 20, rel=1e-4)


@both_noises
@pytest.mark.parametrize("as_groups", [False, True], ids=["listed", "groups"])
def test_items_tied_across_rank_k_are_treated_alike(as_groups: bool, noise: str) -> None:
    """Three items ahead, six tied for the last two places, one far behind."""
    scores: Any = [900] * 3 + [500] * 6 + [0]
    if as_groups:
        scores = Scores.from_histogram([900, 500, 0], [3, 6, 1])
    mechanism = Canonical(k=5, epsilon=1.0, noise=noise)
    pairs = Counter[frozenset[int]]()
    for seed in range(900):
        chosen = set(mechanism.select(scores, seed=seed).tolist())
        assert {0, 1, 2} <= chosen
        assert 9 not in chosen
        pairs[frozenset(chosen - {0, 1, 2})] += 1
    assert len(pairs) == 15
    assert chisquare(list(pairs.values())).pvalue > SMALLEST_P


def test_members_of_a_tie_of_10_to_the_18_are_drawn_evenly() -> None:
    scores = Scores.from_histogram([1000, 0], [2, 10**18])
    eighths = Counter(
        (position - 2) // (10**18 // 8)
        for seed in range(300)
        for position in Canonical(k=5, epsilon=1.0).select(scores, seed=seed).tolist()
        if position >= 2
    )
    assert eighths.total() == 900
    assert chisquare([eighths[part] for part in range(8)]).pvalue > SMALLEST_P


@both_noises
@both_margins
@every_gamma
@pytest.mark.parametrize("scores", EXAMPLES[:4], ids=str)
def test_classes_add_up_to_the_law(scores: list[float], gamma: float, margin: bool, noise: str) -> None:
    mechanism = Canonical(k=3, epsilon=0.9, gamma=gamma, noise=noise, margin=margin)
    classes, law = mechanism.classes(scores), mechanism.law(scores)
    assert float(classes.probabilities.sum()) == pytest.approx(1.0, abs=1e-9)
    assert np.exp(classes.log_sizes).sum() == pytest.approx(20)
    highest = sorted(scores)[-3:]
    up_to_ties = sum(chance for subset, chance in law.items() if sorted(scores[item] for item in subset) == highest)
    assert classes.probability_of_top() == pytest.approx(up_to_ties, rel=1e-8)
    ranks = {item: rank + 1 for rank, item in enumerate(sorted(range(6), key=lambda item: -scores[item]))}
    for least_head, last_tail in ((1, 4), (2, 5), (0, 4)):
        wanted = sum(
            chance
            for subset, chance in law.items()
            if set(range(1, least_head + 1)) <= {ranks[item] for item in subset}
            and max(ranks[item] for item in subset) <= last_tail
        )
        assert classes.within(least_head, last_tail) == pytest.approx(wanted, rel=1e-8)
