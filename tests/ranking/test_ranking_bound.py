"""The sensitivity of a ranking, by brute force: all neighbouring comparisons of a few items, and the worst of many."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from itertools import combinations, product
from math import lcm
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_flow

from dpselect.ranking import Bounds
from dpselect.ranking.stationary import stationary
from dpselect.verify import check_privacy, check_sampler
from dpselect.verify.domain import Domain, neighbours
from dpselect.verify.ranking import RANKED, SAMPLES, Ranked, Units, comparisons_of, results_of, walk_of

Law = dict[Units, Fraction]

CASES = [
    (1, 1, 0.5, comparisons_of(3, 1, ties=True)),
    (1, 2, 0.2, comparisons_of(3, 1)),
    (2, 1, 0.9, comparisons_of(3, 2)),
    (2, 1, 0.1, comparisons_of(2, 4, ties=True)),
]


@cache
def exact_scores(size: int, units: Units, denominator: int, damping: float) -> Any:
    """Solve π = (1 − α) π P + α/d directly."""
    walk = walk_of(size, units, denominator)
    matrix = (walk.into_winners.toarray().T + np.diag(denominator - walk.lost)) / denominator
    return np.linalg.solve((np.eye(size) - (1 - damping) * matrix).T, np.full(size, damping / size))


def coupled_share(first: Law, second: Law, ranked: Ranked, size: int, spread: float) -> Fraction:
    """Return how much of two laws of kept units a coupling can match such that no two scores part by more than spread.

    By Strassen's theorem this is a maximal flow; all chances are fractions, so it is exact.
    """
    scale = lcm(*(chance.denominator for law in (first, second) for chance in law.values()))
    nodes = 2 + len(first) + len(second)
    capacity = np.zeros((nodes, nodes), dtype=np.int32)
    denominator = ranked.bounds.units(size)
    for row, (one, chance) in enumerate(first.items(), start=1):
        capacity[0, row] = chance * scale
        for column, (other, other_chance) in enumerate(second.items(), start=1 + len(first)):
            capacity[column, nodes - 1] = other_chance * scale
            moved = exact_scores(size, other, denominator, ranked.damping) - exact_scores(
                size, one, denominator, ranked.damping
            )
            if moved.max() - moved.min() <= spread * (1 + 1e-9):
                capacity[row, column] = scale
    return Fraction(int(maximum_flow(csr_array(capacity), 0, nodes - 1).flow_value), scale)


def pairs_of_laws(ranked: Ranked, domain: Domain) -> Any:
    kept = cache(lambda vector: ranked.kept(*results_of(list(vector))))
    return ((kept(one), kept(other)) for one, other in neighbours(domain) if one != other)


@pytest.mark.slow
@pytest.mark.parametrize(("most", "degree", "damping", "domain"), CASES, ids=str)
def test_no_comparison_moves_two_scores_apart_by_more_than_the_bound(
    most: int, degree: int, damping: float, domain: Domain
) -> None:
    ranked = Ranked(k=1, epsilon=1.0, comparisons_per_pair=most, max_degree=degree, damping=damping)
    size, _ = results_of(domain.score_vectors()[0])
    spread = float(ranked.bounds.spread(size))
    for first, second in pairs_of_laws(ranked, domain):
        assert coupled_share(first, second, ranked, size, spread) == 1


def test_a_smaller_bound_would_not_hold() -> None:
    """Items 0 and 1 won all they could against 2, and 1 now beats 0, which pushes out one of its wins against 1."""
    ranked = Ranked(k=1, epsilon=1.0, comparisons_per_pair=2, max_degree=2, damping=0.9)
    first, second = (ranked.kept(*results_of([2, reply, 2, 0, 2, 0])) for reply in (0, 1))
    spread = float(ranked.bounds.spread(3))
    assert coupled_share(first, second, ranked, 3, spread) == 1
    assert coupled_share(first, second, ranked, 3, 0.8 * spread) < 1


@pytest.mark.slow
@pytest.mark.parametrize(("ranked", "domain"), RANKED, ids=str)
def test_rankings_keep_their_guarantee_on_all_neighbours(ranked: Ranked, domain: Domain) -> None:
    assert check_privacy(ranked, domain).passed


@pytest.mark.parametrize(("ranked", "results"), SAMPLES, ids=str)
def test_draws_follow_the_law(ranked: Ranked, results: list[int]) -> None:
    """χ² at 1e-7, with a fixed seed."""
    assert check_sampler(ranked, results, draws=300).passed


def star(size: int, most: int, extra: int) -> Units:
    """Return the units when all items lose all they may to the last two, and then the last to the one before."""
    last = (size - 2, size - 1)
    units = []
    for low, high in combinations(range(size), 2):
        to_high = 2 * most if high in last and low not in last else 0
        back = 2 * extra if (low, high) == last else 0
        units += [to_high, back]
    return tuple(units)


@pytest.mark.parametrize("damping", [0.1, 0.5, 0.8])
@pytest.mark.parametrize(("size", "most", "degree"), [(12, 3, 11), (30, 2, 10), (30, 40, 29)])
def test_two_items_reach_their_largest_weight_and_no_more(size: int, most: int, degree: int, damping: float) -> None:
    bounds = Bounds(most, degree, damping)
    denominator = bounds.units(size)
    scores = exact_scores(size, star(size, most, 0), denominator, damping)
    assert np.sort(scores)[-2:].sum() == pytest.approx(float(bounds.weight_of_a_pair(size)))
    moved = exact_scores(size, star(size, most, 1), denominator, damping) - scores
    assert moved.max() - moved.min() <= float(bounds.spread(size))


def test_without_the_cap_on_pairs_a_comparison_moves_more() -> None:
    """All items lose all of D·L comparisons to one, which then loses once: the bound needs the cap on pairs."""
    size, most, degree, damping = 30, 2, 10, 0.8
    bounds = Bounds(most, degree, damping)
    denominator = bounds.units(size)

    def scores(lost: int) -> Any:
        units = [
            unit
            for low, high in combinations(range(size), 2)
            for unit in (denominator if high == size - 1 else 0, 2 * lost if (low, high) == (0, size - 1) else 0)
        ]
        return exact_scores(size, tuple(units), denominator, damping)

    moved = scores(1) - scores(0)
    assert moved.max() - moved.min() > float(bounds.spread(size))


@pytest.mark.parametrize("promised", [None, 0.9])
def test_computed_scores_are_within_the_tolerance(promised: float | None) -> None:
    rng = np.random.default_rng(1)
    size = 40
    bounds = Bounds(5, size - 1, 0.2, promised)
    units = tuple(int(unit) for pair in range(size * (size - 1) // 2) for unit in _split(rng))
    walk = walk_of(size, units, bounds.units(size))
    matrix = (walk.into_winners.toarray().T + np.diag(walk.denominator - walk.lost)) / walk.denominator
    if promised is None:
        exact = exact_scores(size, units, walk.denominator, 0.2)
    else:
        largest = max(np.abs(one - other).sum() / 2 for one, other in product(matrix, repeat=2))
        assert largest <= promised
        system = np.vstack([matrix.T - np.eye(size), np.ones(size)])
        exact = np.linalg.lstsq(system, np.append(np.zeros(size), 1.0), rcond=None)[0]
    assert np.abs(stationary(walk, bounds) - exact).sum() <= float(bounds.tolerance(size)) + 1e-12


def _split(rng: np.random.Generator) -> tuple[int, int]:
    units = int(rng.integers(11))
    return units, 10 - units


def test_the_error_is_part_of_the_sensitivity_and_rounded_towards_privacy() -> None:
    for bounds in (Bounds(3, 7), Bounds(3, 7, 0.1, votes=5), Bounds(3, 7, promised_rho=0.7), Bounds(10**6, 10**6)):
        for size in (2, 9, 10**5):
            needed = bounds.spread(size) + 2 * bounds.tolerance(size)
            assert Fraction(bounds.sensitivity(size).spread) >= needed
            assert bounds.sensitivity(size).reach >= bounds.spread(size) / 2 + 2 * bounds.tolerance(size)
            assert bounds.tolerance(size) * bounds.contraction > bounds.rounding(size)
            assert bounds.largest_residual(size) > 0


def test_the_published_form_is_that_of_the_paper() -> None:
    """The paper has s = 2/(d L (1 − ρ)) of theorem 3.5, of which the noise takes twice; here one spread is enough."""
    assert Bounds(5, 4, promised_rho=0.5).spread(10) == Fraction(2) / (4 * 5 * Fraction(1, 2))
    assert Bounds(5, 4, promised_rho=0.5, votes=3).spread(10) == 3 * Bounds(5, 4, promised_rho=0.5).spread(10)
