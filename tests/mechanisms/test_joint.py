"""The joint mechanism: its law, its limits, and how it treats ties.

Chi-square tests have a fixed seed; a sound sampler fails one for at most 1e-6 of the seeds.
"""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from scipy.stats import chisquare

import dpselect as dps
from dpselect.mechanisms import Joint, OneShot
from dpselect.scores import Ranking, Scores

SMALLEST_P = 1e-7

both_noises = pytest.mark.parametrize("noise", ["exponential", "gumbel"])
MARGINS = (True, False)
both_margins = pytest.mark.parametrize("margin", MARGINS, ids=["margin", "published"])

EXAMPLES = {
    "uneven": [9, 7, 4, 4, 1],
    "tied top": [3, 3, 1, 0, 0],
    "steps": [4, 3, 2, 1, 0],
    "equal": [1, 1, 1, 1, 1],
    "floats": [2.5, -1.0, 0.5, 8.0, 0.5],
}
every_example = pytest.mark.parametrize("scores", EXAMPLES.values(), ids=EXAMPLES)


def loss(scores: list[float], sequence: tuple[int, ...], margin: bool = True) -> float:
    """By ranks: minus the smallest gap for the top sequence, unless any of its gaps is 0."""
    ranked, k = sorted(scores, reverse=True), len(sequence)
    worst = max(ranked[row] - scores[item] for row, item in enumerate(sequence))
    gaps = [ranked[rank] - ranked[rank + 1] for rank in range(min(k, len(scores) - 1))]
    return -min(gaps) if margin and worst == 0 else worst


@both_margins
@every_example
def test_gumbel_noise_weighs_sequences_by_their_loss(scores: list[float], margin: bool) -> None:
    for k in (1, 2, 3, 5):
        losses = {sequence: loss(scores, sequence, margin) for sequence in permutations(range(5), k)}
        weights = {sequence: math.exp(-1.4 * lost / 2) for sequence, lost in losses.items()}
        total = sum(weights.values())
        law = Joint(k=k, epsilon=1.4, noise="gumbel", margin=margin).law(scores)
        assert law == pytest.approx({sequence: weight / total for sequence, weight in weights.items()}, rel=1e-10)


LEADS: dict[str, tuple[Any, int, Any]] = {
    "whole numbers": ([9, 1, 4, 6], 2, 2),
    "one item of several": ([9, 1, 4, 6], 1, 3),
    "all items": ([9, 2, 4, 6], 4, 2),
    "a tie": ([9, 4, 4, 6], 3, 0),
    "a tie behind rank k + 1": ([9, 4, 4, 6], 2, 2),
    "one item": ([9], 1, 0),
    "one tied group": (Scores.from_histogram([7], [10**18]), 2, 0),
    "a huge group behind rank k": (Scores.from_histogram([9, 7, 0], [1, 1, 10**25]), 2, 2),
    "huge integers": ([10**400, 0, -(10**400) - 1], 2, 10**400),
    "beyond int64": ([2**61, -(2**61), -(2**61) - 3], 1, 2**62),
    "fractions": ([Fraction(1, 3), Fraction(1, 7), 0], 2, Fraction(1, 7)),
    "floats": ([0.3, 0.1, 0.2], 2, Fraction(0.3) - Fraction(0.2)),
    "gaps equal but for rounding": ([1.0, 0.3, -0.4], 2, min(1 - Fraction(0.3), Fraction(0.3) + Fraction(0.4))),
    "subnormal": ([5e-324, 0.0, -1e300], 2, Fraction(5e-324)),
}


@pytest.mark.parametrize("name", LEADS)
def test_the_margin_is_the_smallest_gap_without_rounding(name: str) -> None:
    scores, k, gap = LEADS[name]
    ranking = Ranking.of(Scores.of(scores).distinct)
    assert Joint(k=k, epsilon=1.0).smallest_gap(ranking) == gap
    assert Joint(k=k, epsilon=1.0, margin=False).smallest_gap(ranking) == 0


def test_the_top_sequence_far_ahead_is_certain_also_where_locations_leave_float64() -> None:
    for scores in ([10**400, 0, -(10**400)], [1e300, 0.0, -1e300]):
        mechanism = Joint(k=2, epsilon=1e6)
        assert mechanism.law(scores)[0, 1] == 1.0
        assert mechanism.select(scores, seed=1).tolist() == [0, 1]


@both_noises
def test_the_margin_makes_the_top_sequence_likelier_and_with_gumbel_noise_scales_the_others(noise: str) -> None:
    scores = [9, 7, 4, 3, 1]
    with_margin, published = (Joint(k=2, epsilon=0.6, noise=noise, margin=margin).law(scores) for margin in MARGINS)
    assert with_margin.pop((0, 1)) > published.pop((0, 1)) + 0.1
    if noise == "gumbel":
        share = sum(with_margin.values()) / sum(published.values())
        assert with_margin == pytest.approx({one: value * share for one, value in published.items()}, rel=1e-10)


@both_noises
def test_one_item_as_published_at_twice_the_epsilon_is_the_one_shot_mechanism(noise: str) -> None:
    for scores in EXAMPLES.values():
        one = OneShot(k=1, epsilon=0.7, noise=noise).law(scores)
        joint = Joint(k=1, epsilon=1.4, noise=noise, margin=False).law(scores)
        assert {frozenset(sequence): value for sequence, value in joint.items()} == pytest.approx(one, rel=1e-9)


@both_noises
def test_spread_scales_the_loss(noise: str) -> None:
    wide = Joint(k=2, epsilon=3.0, noise=noise, sensitivity=dps.Sensitivity(-1.5, 1.5))
    narrow, scores = Joint(k=2, epsilon=1.0, noise=noise), EXAMPLES["uneven"]
    assert wide.law(scores) == pytest.approx(narrow.law(scores), rel=1e-10)


@every_example
def test_exponential_noise_never_loses_more_than_gumbel_noise(scores: list[float]) -> None:
    expected = [
        sum(
            probability * loss(scores, sequence)
            for sequence, probability in Joint(k=3, epsilon=1.0, noise=noise).law(scores).items()
        )
        for noise in ("exponential", "gumbel")
    ]
    assert expected[0] <= expected[1] + 1e-12


@both_noises
def test_a_large_epsilon_returns_the_top_in_order(noise: str) -> None:
    scores = [50, 0, 30, 10, 40, 20]
    laws = [Joint(k=3, epsilon=epsilon, noise=noise).law(scores) for epsilon in (1e-3, 0.1, 1.0, 10.0, 1e3)]
    probabilities = [law[0, 4, 2] for law in laws]
    assert probabilities == sorted(probabilities)
    assert probabilities[0] == pytest.approx(1 / 120, rel=0.05)
    assert probabilities[-1] == pytest.approx(1.0)
    for seed in range(20):
        assert Joint(k=3, epsilon=1e3, noise=noise).select(scores, seed=seed).tolist() == [0, 4, 2]


@both_noises
def test_a_tiny_epsilon_hardly_sees_the_scores(noise: str) -> None:
    law = Joint(k=2, epsilon=1e-6, noise=noise).law([10, 5, 4, 3, 2])
    assert list(law.values()) == pytest.approx([1 / 20] * 20, rel=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("as_groups", "noise"),
    [
        (True, "exponential"),
        *(pytest.param(*case, marks=pytest.mark.long) for case in [(False, "exponential"), (True, "gumbel")]),
    ],
)
def test_items_tied_across_rank_k_are_treated_alike_in_every_place(as_groups: bool, noise: str) -> None:
    """One item leads, four are tied for the next two places, one is far behind."""
    scores: Any = [900, 500, 500, 500, 500, 0]
    if as_groups:
        scores = Scores.from_histogram([900, 500, 0], [1, 4, 1])
    mechanism = Joint(k=3, epsilon=1.0, noise=noise)
    seen = Counter(tuple(mechanism.select(scores, seed=seed).tolist()) for seed in range(600))
    assert set(seen) == {(0, *pair) for pair in permutations(range(1, 5), 2)}
    assert chisquare(list(seen.values())).pvalue > SMALLEST_P


@pytest.mark.slow
@pytest.mark.parametrize("noise", ["exponential", pytest.param("gumbel", marks=pytest.mark.long)])
def test_equal_scores_make_every_order_equally_likely(noise: str) -> None:
    seen = Counter(tuple(Joint(k=4, epsilon=1.0, noise=noise).select([7, 7, 7, 7], seed=seed)) for seed in range(720))
    assert len(seen) == 24
    assert chisquare(list(seen.values())).pvalue > SMALLEST_P


@both_noises
def test_whole_real_and_fractional_scores_have_one_law(noise: str) -> None:
    """Equal numbers of three types give the same answer from the same bits."""
    whole = [50, 47, 47, 46, 40, 3, 0, 0]
    mechanism = Joint(k=4, epsilon=1.0, noise=noise)
    for seed in range(30):
        answers = [
            mechanism.select(guise, seed=seed).tolist()
            for guise in (whole, np.array(whole, dtype=np.float64), [Fraction(score) for score in whole])
        ]
        assert answers[0] == answers[1] == answers[2]


@both_noises
@both_margins
@every_example
def test_levels_add_up_to_the_law(scores: list[float], margin: bool, noise: str) -> None:
    mechanism = Joint(k=3, epsilon=0.9, noise=noise, margin=margin)
    levels, law = mechanism.levels(scores), mechanism.law(scores)
    by_loss: dict[float, float] = {}
    for sequence, probability in law.items():
        at = loss(scores, sequence, margin)
        by_loss[at] = by_loss.get(at, 0.0) + probability
    assert dict(zip(levels.losses.tolist(), levels.probabilities.tolist(), strict=True)) == pytest.approx(
        dict(sorted(by_loss.items())), rel=1e-8
    )
    assert np.exp(levels.log_sizes).sum() == pytest.approx(60)
    assert levels.probability_of_best() == pytest.approx(by_loss[min(by_loss)], rel=1e-8)
