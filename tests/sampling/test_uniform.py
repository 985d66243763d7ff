"""Uniform integers, sequences and subsets are exactly uniform."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, permutations

import pytest

from dpselect.sampling import SeededBits, shuffled, uniform, uniform_integer, uniform_sequence, uniform_subset
from dpselect.verify.enumeration import contradictions, count_exactly


@pytest.mark.parametrize("high", [1, 3, 7])
def test_integers_by_counting_bits(high):
    decided, undecided = count_exactly(lambda bits: uniform_integer(high, bits), depth=16)
    assert undecided < 0.01
    assert contradictions(dict.fromkeys(range(high), 1 / high), decided, undecided) == []


def test_sparse_sequences_by_counting_bits():
    decided, undecided = count_exactly(lambda bits: tuple(uniform_sequence(5, 2, bits)), depth=15)
    assert undecided < 0.15
    assert contradictions(dict.fromkeys(permutations(range(5), 2), 1 / 20), decided, undecided) == []


@pytest.mark.long
def test_dense_sequences_by_counting_bits(monkeypatch):
    monkeypatch.setattr(uniform, "WORD", 3)
    decided, undecided = count_exactly(lambda bits: tuple(uniform_sequence(3, 2, bits)), depth=18)
    assert undecided < 0.2
    assert contradictions(dict.fromkeys(permutations(range(3), 2), 1 / 6), decided, undecided) == []


@pytest.mark.parametrize(("high", "count"), [(4, 1), (4, 3), (5, 2)])
def test_subsets_by_counting_bits(high, count):
    decided, undecided = count_exactly(lambda bits: tuple(uniform_subset(high, count, bits)), depth=15)
    subsets = list(combinations(range(high), count))
    assert undecided < 0.15
    assert contradictions(dict.fromkeys(subsets, 1 / len(subsets)), decided, undecided) == []


def test_counting_rejects_a_biased_integer():
    decided, undecided = count_exactly(lambda bits: int(bits.integers(1, 3)[0]) % 3, depth=15)
    assert contradictions(dict.fromkeys(range(3), 1 / 3), decided, undecided) != []


@pytest.mark.slow
def test_shuffles_draw_again_when_keys_collide(monkeypatch):
    monkeypatch.setattr(uniform, "WORD", 2)
    decided, undecided = count_exactly(lambda bits: tuple(shuffled(3, bits).tolist()), depth=18)
    assert undecided == Fraction(5, 8) ** 3
    assert contradictions(dict.fromkeys(permutations(range(3)), 1 / 6), decided, undecided) == []


@pytest.mark.parametrize("high", [10**18, 2**64, 2**64 + 1, 10**40], ids=["10^18", "2^64", "2^64+1", "10^40"])
def test_huge_ranges(high):
    bits = SeededBits(1)
    drawn = uniform_sequence(high, 200, bits)
    assert len(set(drawn)) == 200
    assert min(drawn) >= 0
    assert high // 2 < max(drawn) < high


@pytest.mark.parametrize(("high", "count"), [(10, 0), (10, 10), (10, 9), (1, 1), (1000, 999)])
def test_subsets_have_the_right_size(high, count):
    chosen = uniform_subset(high, count, SeededBits(2))
    assert len(chosen) == len(set(chosen)) == count
    assert chosen == sorted(chosen)
    assert all(0 <= member < high for member in chosen)
