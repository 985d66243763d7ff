"""Simulated comparisons follow their model, and estimated strengths maximise the likelihood."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

import dpselect as dps
from dpselect.ranking import Bounds
from dpselect.ranking.simulate import (
    Contests,
    ergodicity_coefficient,
    ladder,
    simulate_comparisons,
    stationary_distribution,
    strengths_of_greatest_likelihood,
    transition_matrix,
)


def test_every_pair_meets_as_often_as_asked() -> None:
    contests = simulate_comparisons(ladder(7, ratio=3.0), comparisons_per_pair=4, seed=1)
    met = list(zip(contests.first.tolist(), contests.second.tolist(), strict=True))
    assert met == list(combinations(range(7), 2))
    assert (contests.wins + contests.losses == 4).all()
    assert contests.size == 84


def test_a_share_of_the_pairs_meets_and_every_pair_may() -> None:
    """1,225 pairs with probability 0.3 in 200 draws; six standard errors, exceeded with probability below 1e-8."""
    draws = [
        simulate_comparisons(ladder(50, ratio=3.0), comparisons_per_pair=1, share_of_pairs=0.3, seed=seed)
        for seed in range(200)
    ]
    sizes = np.array([contests.size for contests in draws])
    assert abs(sizes.mean() - 367.5) < 6 * np.sqrt(1225 * 0.21 / 200)
    seen = {pair for contests in draws for pair in zip(contests.first.tolist(), contests.second.tolist(), strict=True)}
    assert seen == set(combinations(range(50), 2))
    for contests in draws:
        assert len(set(zip(contests.first.tolist(), contests.second.tolist(), strict=True))) == len(contests.first)


def wins_of_the_first(strengths: list[float]) -> float:
    contests = simulate_comparisons(strengths, comparisons_per_pair=1_000_000, seed=3)
    return float(contests.wins[0]) / 1_000_000


def test_the_stronger_item_wins_in_proportion_to_its_strength() -> None:
    """Within six standard errors of 3/4, 0.0026, exceeded with probability below 1e-8. A wrong law is far outside."""
    assert abs(wins_of_the_first([3.0, 1.0]) - 0.75) < 0.0026
    assert abs(wins_of_the_first([2.9, 1.0]) - 0.75) > 0.0026


def test_rows_name_winner_and_loser() -> None:
    contests = Contests(3, np.array([0, 0]), np.array([1, 2]), np.array([2, 0]), np.array([1, 1]))
    assert contests.rows().tolist() == [[0, 1], [0, 1], [1, 0], [2, 0]]


def test_a_ladder_has_even_steps_and_a_gap() -> None:
    assert ladder(3, ratio=4.0) == pytest.approx([4.0, 2.0, 1.0])
    assert ladder(4, ratio=8.0, k=2, gap=3.0) == pytest.approx([24.0, 12.0, 2.0, 1.0])


def test_bad_strengths_and_shares_are_refused() -> None:
    for strengths in ([1.0], [1.0, 0.0], [1.0, float("nan")], [[1.0, 2.0]]):
        with pytest.raises(dps.InvalidInput, match="strengths must be at least two positive numbers"):
            simulate_comparisons(strengths, comparisons_per_pair=1)
    with pytest.raises(dps.InvalidInput, match="share_of_pairs must be above 0 and at most 1"):
        simulate_comparisons([1.0, 2.0], comparisons_per_pair=1, share_of_pairs=1.5)


def log_likelihood(contests: Contests, strengths: np.ndarray, prior: float) -> float:
    probability = strengths[contests.first] / (strengths[contests.first] + strengths[contests.second])
    own = strengths / (strengths + 1)
    return float(
        contests.wins @ np.log(probability)
        + contests.losses @ np.log(1 - probability)
        + prior * (np.log(own) + np.log(1 - own)).sum()
    )


def test_no_other_strengths_have_a_larger_likelihood() -> None:
    contests = simulate_comparisons(ladder(8, ratio=10.0), comparisons_per_pair=5, share_of_pairs=0.7, seed=2)
    best = strengths_of_greatest_likelihood(contests, prior=0.3)
    likelihood = log_likelihood(contests, best, 0.3)
    generator = np.random.default_rng(5)
    for size in (1e-3, 1e-2, 0.1, 1.0):
        for _ in range(50):
            other = best * np.exp(size * generator.standard_normal(8))
            assert log_likelihood(contests, other, 0.3) < likelihood


def test_estimates_from_many_comparisons_are_near_the_true_strengths() -> None:
    """Standard errors are about 0.007; eight of them are exceeded with probability below 1e-8."""
    true = ladder(6, ratio=5.0)
    found = strengths_of_greatest_likelihood(simulate_comparisons(true, comparisons_per_pair=20_000, seed=4))
    assert np.abs(np.log(found / found[0]) - np.log(true / true[0])).max() < 0.06


def test_strengths_exist_also_for_items_that_never_met_or_never_lost() -> None:
    nobody = np.array([], dtype=np.int64)
    assert strengths_of_greatest_likelihood(Contests(3, nobody, nobody, nobody, nobody)) == pytest.approx([1, 1, 1])
    always = Contests(3, np.array([0]), np.array([1]), np.array([9]), np.array([0]))
    first, second, alone = strengths_of_greatest_likelihood(always)
    assert first > alone > second > 0


def test_the_spectral_method_is_that_of_rank_without_damping_and_noise() -> None:
    """`rank` takes a promise in place of the damping; its own check of the stationary distribution is in ranking.md."""
    contests = simulate_comparisons(ladder(6, ratio=5.0), comparisons_per_pair=50, share_of_pairs=0.8, seed=4)
    matrix = transition_matrix(contests, 5)
    found = stationary_distribution(matrix)
    assert found @ matrix == pytest.approx(found)
    assert found.sum() == pytest.approx(1)
    sure = dps.rank(
        contests.rows().tolist(),
        k=3,
        mechanism=dps.Canonical(
            k=3, epsilon=1e6, sensitivity=Bounds(50, 5, promised_rho=ergodicity_coefficient(matrix)).sensitivity(6)
        ),
        comparisons_per_pair=50,
        max_degree=5,
        promised_rho=ergodicity_coefficient(matrix),
        domain=list(range(6)),
        seed=1,
    )
    assert set(sure.items) == set(np.argsort(-found)[:3].tolist())


def test_strengths_are_the_stationary_distribution_of_their_own_walk() -> None:
    """If y_ij = ω_j / (ω_i + ω_j) exactly, then π is proportional to ω (oneshot, section 3)."""
    strengths = [6, 3, 1]
    pairs = list(combinations(range(3), 2))
    wins = [strengths[i] * 252 // (strengths[i] + strengths[j]) for i, j in pairs]
    first, second = (np.array(column) for column in zip(*pairs, strict=True))
    contests = Contests(3, first, second, np.array(wins), 252 - np.array(wins))
    assert stationary_distribution(transition_matrix(contests, 2)) == pytest.approx([0.6, 0.3, 0.1])


def test_the_ergodicity_coefficient_bounds_how_far_the_distribution_moves() -> None:
    """Lemma 3.3, on random walks; the coefficient is 0 for rank one and 1 for two walks that never meet."""
    generator = np.random.default_rng(5)
    for _ in range(200):
        walk, other = (generator.dirichlet(np.full(4, 0.5), size=4) for _ in range(2))
        moved = np.abs(stationary_distribution(walk) - stationary_distribution(other)).sum()
        coefficient = ergodicity_coefficient(walk)
        assert 0 <= coefficient < 1
        assert moved <= np.abs(walk - other).sum(axis=1).max() / (1 - coefficient) + 1e-12
    assert ergodicity_coefficient(np.tile([0.2, 0.3, 0.5], (3, 1))) == 0
    assert ergodicity_coefficient(np.eye(2)) == 1


def test_a_degree_below_that_of_the_graph_is_refused() -> None:
    contests = simulate_comparisons(ladder(4, ratio=2.0), comparisons_per_pair=2, seed=1)
    with pytest.raises(dps.InvalidInput, match="max_degree must be at least 3"):
        transition_matrix(contests, 2)
