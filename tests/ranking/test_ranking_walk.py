"""Caps keep hypergeometric random subsets of comparisons, whichever way they are drawn."""

from __future__ import annotations

from collections import Counter
from itertools import product
from math import comb, prod

import numpy as np
import pytest
from scipy.stats import chi2

from dpselect.ranking import Bounds, walk
from dpselect.ranking.walk import Pairs, Walk, thinned
from dpselect.sampling import bit_source

COUNTS, CAPACITY = (4, 1, 3), 5
DRAWS = 2000
SMALLEST_P = 1e-7


def law() -> dict[tuple[int, ...], float]:
    return {
        kept: prod(map(comb, COUNTS, kept)) / comb(sum(COUNTS), CAPACITY)
        for kept in product(*(range(count + 1) for count in COUNTS))
        if sum(kept) == CAPACITY
    }


def p_value(counts: Counter[tuple[int, ...]]) -> float:
    expected = {kept: DRAWS * probability for kept, probability in law().items()}
    assert set(counts) <= set(expected)
    statistic = sum((counts[kept] - number) ** 2 / number for kept, number in expected.items())
    return float(chi2.sf(statistic, len(expected) - 1))


@pytest.mark.slow
@pytest.mark.parametrize("block", [1, 1 << 22], ids=["one by one", "together"])
def test_each_group_keeps_a_uniformly_random_subset(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A correct sampler fails with a probability of 3e-7. A block of one draws every group by itself."""
    monkeypatch.setattr(walk, "_BLOCK", block)
    bits = bit_source(7)
    counts = np.array([*COUNTS] * 3)
    groups = np.repeat([0, 1, 2], 3)
    seen = np.array([thinned(counts, groups, CAPACITY, bits).reshape(3, 3) for _ in range(DRAWS)])
    for group in range(3):
        assert p_value(Counter(map(tuple, seen[:, group].tolist()))) > SMALLEST_P


def test_the_check_rejects_the_first_members_and_uniform_counts() -> None:
    assert p_value(Counter({(4, 1, 0): DRAWS})) < SMALLEST_P
    rng = np.random.default_rng(1)
    some = list(law())
    assert p_value(Counter(some[place] for place in rng.integers(len(some), size=DRAWS))) < SMALLEST_P


def test_groups_within_the_capacity_stay_and_no_count_grows() -> None:
    counts = np.array([3, 0, 2, 9, 9, 9, 1])
    kept = thinned(counts, np.array([0, 0, 0, 1, 1, 1, 2]), 5, bit_source(1))
    assert kept[:3].tolist() == [3, 0, 2]
    assert kept[3:6].sum() == 5
    assert kept[6] == 1
    assert (kept <= counts).all()
    assert thinned(np.array([], dtype=np.int64), np.array([], dtype=np.int64), 5, bit_source(1)).size == 0


def test_a_group_beyond_memory_is_sampled_too() -> None:
    kept = thinned(np.array([10**12, 10**12]), np.array([0, 0]), 1000, bit_source(1))
    assert kept.sum() == 1000
    assert 300 < kept[0] < 700  # twelve standard deviations
    most = thinned(np.array([10**12, 10**12]), np.array([0, 0]), 2 * 10**12 - 10, bit_source(1))
    assert most.sum() == 2 * 10**12 - 10


def test_walks_keep_both_caps() -> None:
    rng = np.random.default_rng(3)
    size = 12
    low, high = np.array([(one, two) for one in range(size) for two in range(one + 1, size)]).T
    results = rng.integers(0, 9, size=(3, len(low)))
    bounds = Bounds(comparisons_per_pair=4, max_degree=2)
    capped = Walk.of(Pairs(size, low, high, *results), bounds, bit_source(3))
    units = capped.into_winners.toarray().T
    assert (units + units.T).max() <= 8
    assert units.sum(axis=1).max() == capped.lost.max() == capped.denominator == 16
    pairs_only = Walk.of(Pairs(size, low, high, *results), Bounds(4, 11), bit_source(3)).into_winners.toarray()
    assert (pairs_only + pairs_only.T).max() == 8
    generous = Walk.of(Pairs(size, low, high, *results), Bounds(30, 11), bit_source(3))
    expected = np.zeros((size, size))
    expected[low, high], expected[high, low] = 2 * results[1] + results[2], 2 * results[0] + results[2]
    assert (expected == generous.into_winners.toarray().T).all()
