"""bounded_sequence is exactly uniform, and by_size exactly proportional.

The chi-square tests have a fixed seed; a sound sampler fails one for at most 1e-6 of the seeds.
"""

from __future__ import annotations

from collections import Counter
from itertools import permutations, product
from math import log, perm, prod

import numpy as np
import pytest
from scipy.stats import chisquare

from dpselect.sampling import SeededBits
from dpselect.sampling.race import by_size
from dpselect.sampling.sequences import bounded_sequence
from dpselect.verify.enumeration import contradictions, count_exactly

SMALLEST_P = 1e-7

BOUNDS = {
    "nothing inside": ([0, 0], [2, 3]),
    "one inside": ([1, 1, 1], [2, 3, 4]),
    "equal rows": ([3, 3, 3], [5, 5, 5]),
    "rows that cannot exceed": ([2, 2, 3], [2, 3, 3]),
    "one row exceeds": ([1, 2, 3], [1, 2, 5]),
    "no sequence inside": ([1, 1, 4], [3, 3, 4]),
    "rising": ([1, 2, 4], [2, 4, 5]),
    "one row": ([2], [6]),
}
every_bounds = pytest.mark.parametrize(("inner", "outer"), BOUNDS.values(), ids=BOUNDS)


def listed(inner, outer):
    """Return every sequence within outer and not within inner, by definition."""
    return {
        ranks
        for ranks in permutations(range(max(outer)), len(outer))
        if all(rank < bound for rank, bound in zip(ranks, outer, strict=True))
        and not all(rank < bound for rank, bound in zip(ranks, inner, strict=True))
    }


def weight(inner, outer, row):
    before = prod(max(bound - place, 0) for place, bound in enumerate(inner[:row]))
    behind = prod(outer[place] - place for place in range(row + 1, len(outer)))
    return before * (outer[row] - inner[row]) * behind


class Words:
    """64-bit words given one by one: a small word is the offset itself, whatever the range."""

    secure = False

    def __init__(self, words):
        self._words = list(words)

    def integers(self, count, width):
        assert width == 64
        words, self._words = self._words[:count], self._words[count:]
        assert len(words) == count
        return np.array(words, dtype=np.uint64)


@every_bounds
def test_every_sequence_comes_from_exactly_one_choice_of_row_and_offsets(inner, outer):
    """Each first row has as many offsets as its weight says, all equally likely, and no two lead to one sequence.

    by_size picks the row in proportion to its weight (below); so every sequence is equally likely.
    """
    rows = [row for row in range(len(outer)) if weight(inner, outer, row)]
    found = Counter()
    for row in rows:
        # The smallest exponent is the largest noise: enough to beat weights of a few dozen.
        turn = [1 if other == row else 1 << 63 for other in rows] if len(rows) > 1 else []
        upper = [*inner[:row], *outer[row:]]
        ranges = [upper[place] - (inner[row] if place == row else place) for place in range(len(upper))]
        before = found.total()
        for offsets in product(*map(range, ranges)):
            found[tuple(bounded_sequence(np.array(inner), np.array(outer), Words([*turn, *offsets])))] += 1
        assert found.total() - before == weight(inner, outer, row)
    assert set(found) == listed(inner, outer)
    assert set(found.values()) == {1}


def test_words_beyond_the_last_full_round_are_not_used():
    """2^64 is 1 modulo 3, so the largest word would favour offset 0; it is drawn again, two bits at a time."""

    class Recording(Words):
        def integers(self, count, width):
            if width == 64:
                return super().integers(count, width)
            assert width == 2
            return np.array([2], dtype=np.uint64)

    assert bounded_sequence(np.array([0]), np.array([3]), Recording([2**64 - 1])) == [2]
    assert bounded_sequence(np.array([0]), np.array([3]), Recording([2**64 - 2])) == [2]
    assert bounded_sequence(np.array([0]), np.array([3]), Recording([2**64 - 4])) == [0]


@pytest.mark.slow
@every_bounds
def test_draws_are_uniform(inner, outer):
    sequences = listed(inner, outer)
    bits = SeededBits(1)
    counts = Counter(
        tuple(bounded_sequence(np.array(inner), np.array(outer), bits)) for _ in range(40 * len(sequences))
    )
    assert set(counts) == sequences
    if len(sequences) > 1:
        assert chisquare([counts[ranks] for ranks in sequences]).pvalue > SMALLEST_P


def test_chi_square_rejects_a_first_row_drawn_without_weights():
    """The twin: rows that may exceed first are not equally likely."""
    inner, outer = BOUNDS["rising"]
    sequences = listed(inner, outer)
    generator = np.random.default_rng(1)
    rows = [row for row in range(len(outer)) if weight(inner, outer, row)]
    counts = Counter()
    for _ in range(40 * len(sequences)):
        row = generator.choice(rows)
        alike = [
            ranks
            for ranks in sequences
            if ranks[row] >= inner[row] and all(ranks[place] < inner[place] for place in range(row))
        ]
        counts[alike[generator.integers(len(alike))]] += 1
    assert chisquare([counts[ranks] for ranks in sequences]).pvalue < SMALLEST_P


@pytest.mark.parametrize("size", [10**18, 10**30], ids=["64 bits", "beyond 64 bits"])
def test_huge_bounds(size):
    """Nearly all sequences have their last row beyond the inner bound, or not, as the weights say."""
    inner, outer = np.array([5, 5, size], dtype=object), np.array([5, 6, 2 * size], dtype=object)
    bits = SeededBits(2)
    draws = [bounded_sequence(inner, outer, bits) for _ in range(400)]
    for ranks in draws:
        assert len(set(ranks)) == 3
        assert all(0 <= rank < bound for rank, bound in zip(ranks, outer, strict=True))
        assert not all(rank < bound for rank, bound in zip(ranks, inner, strict=True))
    # Weights: second row beyond 5 · 1 · 2 size, third row beyond 5 · 4 · size.
    second = sum(ranks[1] == 5 for ranks in draws)
    assert chisquare([second, 400 - second], [400 / 3, 800 / 3]).pvalue > SMALLEST_P
    halves = Counter(int(ranks[2]) // (size // 4) for ranks in draws if ranks[1] != 5)
    assert set(halves) == {4, 5, 6, 7}
    assert chisquare(list(halves.values())).pvalue > SMALLEST_P


def test_as_many_rows_as_ranks():
    bits = SeededBits(3)
    ranks = bounded_sequence(np.zeros(2000, dtype=np.int64), np.full(2000, 2000), bits)
    assert sorted(ranks) == list(range(2000))


def sizes_drawn(sizes, bits, width):
    logs = np.array([log(size) for size in sizes])
    return by_size(logs, np.full(len(sizes), 1e-12), lambda option: sizes[option], bits, width=width)


@pytest.mark.parametrize(
    ("sizes", "most_undecided"),
    [([1, 2], 0.05), pytest.param([3, 1, 2], 0.2, marks=pytest.mark.long), ([7], 0.0)],
    ids=["two", "three", "one"],
)
def test_by_size_by_counting_bits(sizes, most_undecided):
    decided, undecided = count_exactly(lambda bits: sizes_drawn(sizes, bits, 2), depth=14)
    assert undecided <= most_undecided
    law = {option: size / sum(sizes) for option, size in enumerate(sizes)}
    assert contradictions(law, decided, undecided) == []


def test_counting_rejects_sizes_that_are_off_by_one():
    decided, undecided = count_exactly(lambda bits: sizes_drawn([1, 2], bits, 2), depth=14)
    assert contradictions({0: 1 / 4, 1: 3 / 4}, decided, undecided) != []


def test_by_size_with_sizes_that_no_float_can_hold():
    """Logarithms as rough as their stated error: the exact sizes decide."""
    sizes = [perm(10**6, 400), 3 * perm(10**6, 400)]
    logs = np.array([400 * log(10**6) + 2.0, 400 * log(10**6) - 2.0])
    bits = SeededBits(4)
    counts = Counter(by_size(logs, np.full(2, 4.0), lambda option: sizes[option], bits) for _ in range(400))
    assert chisquare([counts[0], counts[1]], [100, 300]).pvalue > SMALLEST_P
