"""The canonical mechanism: its law, its margin, its limits, and how it treats ties.

Chi-square tests have a fixed seed; a sound sampler fails one for at most 1e-6 of the seeds.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from scipy.stats import chisquare

import dpselect as dps
from dpselect.mechanisms import Canonical, OneShot
from dpselect.mechanisms.canonical import SubsetBlocks
from dpselect.sampling import SeededBits
from dpselect.scores import Ranking, Scores
from dpselect.verify import Domain, check_privacy, check_sampler
from dpselect.verify.broken import Altered

SMALLEST_P = 1e-7

both_noises = pytest.mark.parametrize("noise", ["exponential", "gumbel"])
GAMMAS = (0, 0.25, 0.5, 0.75, 1)
MARGINS = (True, False)
NOISES = ("exponential", "gumbel")
EXAMPLES = {
    "uneven": [9, 7, 4, 4, 1, 0],
    "tied top": [3, 3, 3, 1, 0, 0],
    "steps": [5, 4, 3, 2, 1, 0],
    "equal": [1, 1, 1, 1, 1, 1],
    "floats": [2.5, -1.0, 0.5, 8.0, 0.5, 2.0],
}
every_example = pytest.mark.parametrize("scores", EXAMPLES.values(), ids=EXAMPLES)


def top_set(scores: list[float], k: int) -> frozenset[int]:
    return frozenset(sorted(range(len(scores)), key=lambda item: -scores[item])[:k])


@every_example
def test_gumbel_noise_weighs_subsets_by_their_loss(scores: list[float]) -> None:
    """An independent computation from the papers: by head and tail, and by the margin for the top set."""
    k, epsilon = 3, 1.3
    order = sorted(range(len(scores)), key=lambda item: -scores[item])
    ranked = [scores[item] for item in order]
    for gamma, margin in product(GAMMAS, MARGINS):
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
def test_one_item_with_gamma_1_is_the_one_shot_mechanism(noise: str) -> None:
    for scores in EXAMPLES.values():
        subsets = Canonical(k=1, epsilon=0.7, gamma=1, noise=noise).law(scores)
        assert subsets == pytest.approx(OneShot(k=1, epsilon=0.7, noise=noise).law(scores), rel=1e-9)


@both_noises
def test_spread_scales_the_loss(noise: str) -> None:
    wide = Canonical(k=2, epsilon=3.0, noise=noise, sensitivity=dps.Sensitivity(-1.5, 1.5))
    narrow, scores = Canonical(k=2, epsilon=1.0, noise=noise), EXAMPLES["uneven"]
    assert wide.law(scores) == pytest.approx(narrow.law(scores), rel=1e-10)


@every_example
def test_the_margin_never_does_worse_at_the_exact_top_set(scores: list[float]) -> None:
    for gamma, noise, k in product(GAMMAS, NOISES, (1, 2, 3, 5)):
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
    scores, top = EXAMPLES["uneven"], top_set(EXAMPLES["uneven"], 2)
    laws = [Canonical(k=2, epsilon=0.8, noise="gumbel", margin=each).law(scores) for each in (False, True)]
    assert laws[0][top] < laws[1][top] * (1 - 1e-6)
    given = [{subset: value / (1 - law[top]) for subset, value in law.items() if subset != top} for law in laws]
    assert given[0] == pytest.approx(given[1], rel=1e-10)


@every_example
def test_exponential_noise_never_does_worse_than_gumbel_noise(scores: list[float]) -> None:
    for gamma, margin in product(GAMMAS, MARGINS):
        flip, gumbel = (
            Canonical(k=2, epsilon=1.0, gamma=gamma, noise=noise, margin=margin).law(scores) for noise in NOISES
        )
        assert max(flip.values()) >= max(gumbel.values()) * (1 - 1e-12)


@both_noises
def test_a_large_epsilon_returns_the_top_set(noise: str) -> None:
    """γ = 0 as published does not tell rank k from the ranks behind it: there the top set only ties for the best."""
    scores, top = [50, 0, 30, 10, 40, 20], frozenset({0, 2, 4})
    for gamma, margin in product(GAMMAS, MARGINS):
        probabilities = [
            Canonical(k=3, epsilon=epsilon, gamma=gamma, noise=noise, margin=margin).law(scores)[top]
            for epsilon in (1e-3, 0.1, 1.0, 10.0, 1e3)
        ]
        assert probabilities == sorted(probabilities)
        assert probabilities[0] == pytest.approx(1 / 20, rel=0.05)
        if gamma == 0 and not margin:
            assert probabilities[-1] == pytest.approx(1 / 4)
            continue
        assert probabilities[-1] == pytest.approx(1.0)
        for seed in range(5):
            chosen = Canonical(k=3, epsilon=1e3, gamma=gamma, noise=noise, margin=margin).select(scores, seed=seed)
            assert set(chosen.tolist()) == top


@both_noises
def test_a_tiny_epsilon_hardly_sees_the_scores(noise: str) -> None:
    law = Canonical(k=3, epsilon=1e-6, noise=noise).law([10, 5, 4, 3, 2, 0])
    assert list(law.values()) == pytest.approx([1 / 20] * 20, rel=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("as_groups", "noise"),
    [
        (True, "exponential"),
        *(pytest.param(*case, marks=pytest.mark.long) for case in [(False, "exponential"), (True, "gumbel")]),
    ],
)
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


@every_example
def test_classes_add_up_to_the_law(scores: list[float]) -> None:
    for gamma, margin, noise in product(GAMMAS, MARGINS, NOISES):
        assert_classes(Canonical(k=3, epsilon=0.9, gamma=gamma, noise=noise, margin=margin), scores)


def assert_classes(mechanism: Canonical, scores: list[float]) -> None:
    classes, law = mechanism.classes(scores), mechanism.law(scores)
    assert float(classes.probabilities.sum()) == pytest.approx(1.0, abs=1e-9)
    assert np.exp(classes.log_sizes).sum() == pytest.approx(20)
    highest = sorted(scores)[-3:]
    up_to_ties = sum(value for subset, value in law.items() if sorted(scores[item] for item in subset) == highest)
    assert classes.probability_of_top() == pytest.approx(up_to_ties, rel=1e-8)
    ranks = {item: rank + 1 for rank, item in enumerate(sorted(range(6), key=lambda item: -scores[item]))}
    for least_head, last_tail in ((1, 4), (2, 5), (0, 4)):
        wanted = sum(
            probability
            for subset, probability in law.items()
            if set(range(1, least_head + 1)) <= {ranks[item] for item in subset}
            and max(ranks[item] for item in subset) <= last_tail
        )
        assert classes.within(least_head, last_tail) == pytest.approx(wanted, rel=1e-8)


FRACTIONS = [2.75, 0.25, 1.0, 1.9, 0.9]


@pytest.mark.parametrize("margin", MARGINS)
def test_rounded_losses_are_whole_numbers_of_half_spreads(margin: bool) -> None:
    """An independent computation: for γ = ½ a loss in units of w/2 is (best missing − worst included) / w."""
    ranked = sorted(FRACTIONS, reverse=True)
    for spread in (1.0, 0.4, 3.0):
        sensitivity = dps.Sensitivity(0, spread)
        mechanism = Canonical(k=2, epsilon=1.3, noise="gumbel", margin=margin, rounded=True, sensitivity=sensitivity)
        weights = {}
        for subset in combinations(range(5), 2):
            missing = max(score for item, score in enumerate(FRACTIONS) if item not in subset)
            included = min(FRACTIONS[item] for item in subset)
            if not margin and missing < included:
                missing = ranked[1]
            weights[frozenset(subset)] = math.exp(-1.3 / 2 * math.ceil((missing - included) / spread))
        total = sum(weights.values())
        assert mechanism.law(FRACTIONS) == pytest.approx({each: weights[each] / total for each in weights}, rel=1e-9)


@both_noises
def test_rounding_changes_nothing_for_whole_counts_and_something_for_fractions(noise: str) -> None:
    plain = Canonical(k=2, epsilon=1.0, noise=noise)
    rounded = Canonical(k=2, epsilon=1.0, noise=noise, rounded=True)
    for seed in range(20):
        assert rounded.select([9, 40, 3, 31], seed=seed).tolist() == plain.select([9, 40, 3, 31], seed=seed).tolist()
    assert rounded.law([9, 4, 3, 3]) == plain.law([9, 4, 3, 3])
    top = frozenset({0, 3})
    assert rounded.law(FRACTIONS)[top] != pytest.approx(plain.law(FRACTIONS)[top], rel=1e-3)


@both_noises
@pytest.mark.parametrize("margin", MARGINS)
def test_rounded_losses_keep_the_guarantee_on_fractions(noise: str, margin: bool) -> None:
    mechanism = Canonical(k=2, epsilon=1.0, noise=noise, margin=margin, rounded=True)
    assert check_privacy(mechanism, Domain(3, 1, step=0.25)).passed


@pytest.mark.slow
def test_draws_of_rounded_losses_follow_their_law_and_not_that_of_unrounded_ones() -> None:
    """A correct sampler fails a check with probability at most 1e-6."""
    mechanism = Canonical(k=2, epsilon=4.0, rounded=True)
    assert check_sampler(mechanism, Scores.from_histogram([1.5, 0.75, 0.25], [1, 3, 2]), draws=500).passed

    def unrounded(scores: Any, seed: int | None) -> Any:
        return replace(mechanism, rounded=False).select(scores, seed=seed)

    assert not check_sampler(Altered(sound=mechanism, wrong_draw=unrounded), FRACTIONS, draws=500).passed


@pytest.mark.parametrize("epsilon", [1e-200, 1e-3, 1.0, 1e200])
@pytest.mark.parametrize("scores", [[1e300, 0.0, -1e300, 5.0], [2.0**1000, 0.5, 1.25, 2.0], [1e-300, 0.0, 3e-300, 1.0]])
def test_rounded_losses_of_any_size_are_drawn_in_any_blocks(epsilon: float, scores: list[float]) -> None:
    """The float64 bounds of each block contain the exact locations of subsets drawn from it."""
    mechanism = Canonical(k=2, epsilon=epsilon, rounded=True)
    geometry = mechanism.geometry(Ranking.of(Scores.of(scores).distinct))
    for widest in (1.0, 1e-9):
        blocks = SubsetBlocks(geometry, widest=widest)
        for block in range(1, len(blocks.floor)):
            location = blocks.location(blocks.draw(block, SeededBits(block)))
            assert blocks.floor[block] == -np.inf or Fraction(blocks.floor[block]) <= location
            assert blocks.ceiling[block] == np.inf or location <= Fraction(blocks.ceiling[block])
    assert len(set(mechanism.select(scores, seed=1).tolist())) == 2


def test_rounded_losses_are_refused_where_they_are_not_proven_or_not_computed() -> None:
    for gamma in (0.25, 1.0):
        with pytest.raises(dps.InvalidInput, match=r"must be 0\.5"):
            Canonical(k=2, epsilon=1.0, gamma=gamma, rounded=True)
    with pytest.raises(dps.InvalidInput, match="True or False"):
        Canonical(k=2, epsilon=1.0, rounded=1)  # type: ignore[arg-type]
    mechanism, scores = Canonical(k=2, epsilon=1.0, rounded=True), [9.5, 4.0, 3.2]
    for compute in (
        lambda: mechanism.classes(scores),
        lambda: dps.forecast.success(scores, mechanism),
        lambda: dps.forecast.forecast(scores, mechanism).exact,
        lambda: dps.forecast.expected_leap(mechanism, 10),
        lambda: dps.forecast.tail_loss_bound(mechanism, 10),
    ):
        with pytest.raises(dps.InvalidInput, match="rounded must be False for classes and forecasts"):
            compute()
    assert dps.forecast.reach(mechanism, 10) is None
    assert dps.select(scores, 2, epsilon=1.0, mechanism="canonical", options={"rounded": True}).mechanism == mechanism
