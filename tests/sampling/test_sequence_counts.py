"""Log-counts have at most their stated errors, compared with exact integers in ball arithmetic."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import comb, perm

import flint
import numpy as np
import pytest
from flint import arb

from dpselect.mechanisms import Canonical
from dpselect.mechanisms.canonical import SubsetBlocks
from dpselect.mechanisms.joint import SequenceBlocks
from dpselect.sampling.sequences import log_difference, log_falling, log_falling_error
from dpselect.scores import Ranking, Scores


def log_of(number):
    return arb(number).log()


def assert_log_falling(n, r, *, share):
    """Compare with the logarithm of the exact integer, in units of the stated error."""
    with flint.ctx.workprec(160):
        error = abs(log_of(perm(n, r)) - arb(float(log_falling(n, r))))
        assert error <= arb(share * float(log_falling_error(n, r))), (n, r)


def test_small_counts_stay_ten_times_under_the_stated_error():
    for n in range(100):
        for r in range(n + 1):
            assert_log_falling(n, r, share=0.1)


def test_large_counts_stay_ten_times_under_the_stated_error():
    for n in (10**3, 10**4, 10**6, 2**31, 2**53 - 1, 2**53, 2**53 + 1, 10**16, 10**18, 10**25):
        for r in (0, 1, 2, 31, 32, 33, 100, 1000):
            assert_log_falling(n, r, share=0.1)


def test_ten_thousand_factors():
    for n in (10**4, 10**4 + 1, 10**4 + 31, 10**4 + 32, 10**6, 10**12, 10**18):
        assert_log_falling(n, 10**4, share=0.1)


def test_all_members_and_all_but_a_few():
    for n in (31, 32, 33, 64, 1000):
        for left in (0, 1, 2, 30, 31):
            assert_log_falling(n, n - left, share=0.1)


def test_more_members_than_there_are_cannot_be_chosen():
    assert log_falling([0, 3, 31, 10**18], [1, 4, 33, 2 * 10**18]).tolist() == [-np.inf] * 4


def test_choosing_nothing_is_one_way():
    assert log_falling([0, 1, 31, 32, 10**18], 0).tolist() == [0.0] * 5


def test_a_wrong_number_of_factors_would_be_noticed():
    """The twin: one factor more or less differs by far more than the stated error, even at 10^18."""
    for r in (99, 101):
        with flint.ctx.workprec(160):
            error = abs(log_of(perm(10**18, r)) - arb(float(log_falling(10**18, 100))))
            assert error > arb(1e6 * float(log_falling_error(10**18, 100)))


@pytest.mark.parametrize(("larger", "smaller"), [(10, 3), (10**9, 10**9 - 1), (10**300, 1), (7, 0)])
def test_log_difference(larger, smaller):
    with flint.ctx.workprec(160):
        ratio = float(arb(flint.fmpq(smaller, larger)).log()) if smaller else -np.inf
        found = float(log_difference(np.float64(float(log_of(larger))), np.float64(ratio)))
        assert abs(arb(found) - log_of(larger - smaller)) < arb(1e-6)


def random_ranking(seed):
    """Scores with ties, single leaders, and now and then a group beyond what float64 can count."""
    generator = np.random.default_rng(seed)
    groups = int(generator.integers(2, 12))
    kind = ("whole", "float", "fraction")[seed % 3]
    values = generator.choice(60, size=groups, replace=False).tolist()
    if kind == "float":
        values = [value + 0.1 for value in values]
    if kind == "fraction":
        values = [Fraction(value, 7) for value in values]
    sizes = [10 ** int(power) for power in generator.integers(0, 4, size=groups)]
    if seed % 2:
        sizes[int(np.argmin(values))] = (10**9, 10**17, 10**18, 10**24)[seed // 2 % 4]
    return Ranking.of(Scores.from_histogram(values, sizes).distinct), sum(sizes)


def subset_blocks(ranking, k, gamma, widest):
    return SubsetBlocks(Canonical(k=k, epsilon=0.3, gamma=gamma).geometry(ranking), widest=widest)


def assert_sizes(blocks):
    exact = [blocks.size(block) for block in range(len(blocks.log_size))]
    with flint.ctx.workprec(200):
        for size, found, error in zip(exact, blocks.log_size.tolist(), blocks.log_size_error.tolist(), strict=True):
            assert size >= 1
            assert error >= 0
            assert abs(log_of(size) - arb(found)) <= arb(error)
    return sum(exact)


SEEDS = pytest.mark.parametrize(
    "seeds", [range(start, start + 8) for start in (0, 8, 16)], ids=["0-7", "8-15", "16-23"]
)
WIDEST = (0.05, 1.0, 1e9)


@pytest.mark.slow
@SEEDS
def test_sizes_of_blocks_of_subsets_and_their_total(seeds):
    for seed in seeds:
        ranking, total = random_ranking(seed)
        k = min(1 + seed * 3, total - 1)
        for widest, gamma in product(WIDEST, (0, 0.5, 1)):
            assert assert_sizes(subset_blocks(ranking, k, gamma, widest)) == comb(total, k)


@SEEDS
def test_sizes_of_blocks_of_sequences_and_their_total(seeds):
    for seed in seeds:
        ranking, total = random_ranking(seed)
        k = min(1 + seed * 3, total)
        for widest in WIDEST:
            assert assert_sizes(SequenceBlocks(ranking, k, Fraction(1, 6), widest=widest)) == perm(total, k)
