"""race has the law of independent noise on every alternative, for any blocks and any number of bits.

The chi-square tests have a fixed seed; a sound sampler fails one for at most 1e-6 of the seeds.
"""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import chisquare

from dpselect.mechanisms import Canonical, Joint
from dpselect.mechanisms.canonical import SubsetBlocks
from dpselect.mechanisms.joint import SequenceBlocks
from dpselect.sampling import NOISES, SeededBits
from dpselect.sampling.bounds import SLACK
from dpselect.sampling.laws import single_law
from dpselect.sampling.race import race, races
from dpselect.sampling.uniform import uniform_integer
from dpselect.scores import Ranking, Scores
from dpselect.verify.enumeration import contradictions, count_exactly
from dpselect.verify.exact import ALLOWED, WORDS, Border, GivenWords, NoisyValue

SMALLEST_P = 1e-7
SMALLEST_CELL = 5.0

both_noises = pytest.mark.parametrize("noise", ["exponential", pytest.param("gumbel", marks=pytest.mark.long)])
"""Exponential noise in every run; gumbel noise, through the same code, in long runs."""

raced_noises = pytest.mark.parametrize(
    "noise", ["exponential", "laplace", pytest.param("gumbel", marks=pytest.mark.long)]
)
"""Laplace noise too, whose lower half has bounds of its own."""

coarse_and_fine = pytest.mark.parametrize("widest", [0.01, 1e9], ids=["cut to pieces", "not cut"])


class Listed:
    """Blocks whose alternatives are listed by location; `loose` moves the bounds away from them."""

    def __init__(self, blocks, loose=0.0):
        self._blocks = [[Fraction(location) for location in block] for block in blocks]
        self.floor = np.array([float(min(block)) for block in self._blocks]) - loose - SLACK * 10
        self.ceiling = np.array([float(max(block)) for block in self._blocks]) + loose + SLACK * 10
        self.log_size = np.log([len(block) for block in self._blocks])
        self.log_size_error = np.full(len(self._blocks), 1e-12)

    def size(self, block):
        return len(self._blocks[block])

    def draw(self, block, bits):
        return block, uniform_integer(len(self._blocks[block]), bits)

    def location(self, alternative):
        block, place = alternative
        return self._blocks[block][place]

    def law(self, noise):
        keys = [(block, place) for block, members in enumerate(self._blocks) for place in range(len(members))]
        locations = [float(location) for members in self._blocks for location in members]
        return dict(zip(keys, single_law(locations, noise).tolist(), strict=True))


class Tied:
    """Blocks of any number of alternatives, all of one location; a key is only the block and a serial number."""

    def __init__(self, locations, sizes, error=1e-9):
        self._locations, self._sizes = [Fraction(location) for location in locations], sizes
        self.floor = np.array([float(location) * (1 + SLACK) - SLACK for location in locations])
        self.ceiling = np.array([float(location) * (1 - SLACK) + SLACK for location in locations])
        self.log_size = np.array([math.log(size) for size in sizes])
        self.log_size_error = np.full(len(sizes), error)

    def size(self, block):
        return self._sizes[block]

    def draw(self, block, bits):
        return block, uniform_integer(self._sizes[block], bits)

    def location(self, alternative):
        return self._locations[alternative[0]]


def agreement(counts, law):
    """Return the p-value of counts under a law, after pooling the rarest outcomes."""
    assert set(counts) <= set(law)
    observed, expected = [0], [0.0]
    for outcome in sorted(law, key=law.__getitem__):
        if expected[-1] >= SMALLEST_CELL:
            observed.append(0)
            expected.append(0.0)
        observed[-1] += counts[outcome]
        expected[-1] += counts.total() * law[outcome]
    return chisquare(observed, np.array(expected) * sum(observed) / sum(expected)).pvalue


def winners(blocks, noise, draws, width=64, seed=1):
    bits = SeededBits(seed)
    return Counter(race(blocks, NOISES[noise], bits, width=width) for _ in range(draws))


CUTS = [
    pytest.param([[0], [-1]], id="singles", marks=pytest.mark.long),
    pytest.param([[0], [-1, -1]], id="tied"),
    pytest.param([[0, -2]], id="wide", marks=pytest.mark.long),
    pytest.param([[0, -1], [Fraction(-1, 2)]], id="overlapping"),
]


@pytest.mark.slow
@raced_noises
@pytest.mark.parametrize("cut", CUTS)
def test_the_law_by_counting_bits(noise, cut):
    """With two bits per noise nearly every comparison is contested at first."""
    blocks = Listed(cut)
    decided, undecided = count_exactly(lambda bits: race(blocks, NOISES[noise], bits, width=2), depth=14)
    assert undecided < 0.35
    assert contradictions(blocks.law(NOISES[noise]), decided, undecided) == []


@raced_noises
@pytest.mark.parametrize("size", [2, 3])
def test_the_second_noise_of_a_block_changes_the_winner_at_the_right_word(noise, size):
    """Words: the block's largest noise, and the next; two bits say who holds the first, and then the second.

    The lowest alternative holds the largest noise, the highest the second, with exponents e_1/M + e_2/(M − 1).
    """
    blocks = Listed([[0, Fraction(-1, 2), Fraction(-1, 2)][:size]])
    low, high = NoisyValue(Fraction(-1, 2), ((0, size),)), NoisyValue(Fraction(0), ((0, size), (1, size - 1)))
    # A third alternative gets a noise that is far too small.
    border = Border(
        lambda words: race(blocks, NOISES[noise], GivenWords([*words, WORDS - 1], [1, 0, 2])) == (0, 0),
        noise,
        (high, low),
        (WORDS // 20, 0),
    )
    assert abs(border.off_by()) < ALLOWED


@pytest.mark.slow
def test_counting_rejects_a_law_with_one_alternative_more():
    decided, undecided = count_exactly(
        lambda bits: race(Listed([[0], [-1, -1]]), NOISES["gumbel"], bits, width=2), depth=12
    )
    wrong = Listed([[0], [-1, -1], [0]]).law(NOISES["gumbel"])
    assert contradictions(wrong, decided, undecided) != []


@pytest.mark.slow
@raced_noises
@pytest.mark.parametrize("loose", [pytest.param(0.0, marks=pytest.mark.long), 3.0], ids=["tight", "loose"])
@pytest.mark.parametrize("width", [2, 64])
def test_bounds_and_widths_do_not_change_the_law(noise, loose, width):
    blocks = Listed([[0, -1, -1], [Fraction(-1, 3)] * 4, [-3, Fraction(1, 2), -2]], loose)
    counts = winners(blocks, noise, 300 if width == 2 else 1500, width)
    assert agreement(counts, blocks.law(NOISES[noise])) > SMALLEST_P


@pytest.mark.slow
def test_chi_square_rejects_a_block_with_a_wrong_size():
    """The twin: a block that claims one alternative more than it has wins too often."""

    class Overstated(Listed):
        def __init__(self, blocks):
            super().__init__(blocks)
            self.log_size[1] = np.log(len(blocks[1]) + 1)

        def size(self, block):
            return super().size(block) + (block == 1)

    cut = [[0, 0, 0], [0, 0]]
    counts = winners(Overstated(cut), "gumbel", 1500)
    assert agreement(counts, Listed(cut).law(NOISES["gumbel"])) < SMALLEST_P


@pytest.mark.slow
@pytest.mark.parametrize(
    "size",
    [*(pytest.param(10**power, marks=pytest.mark.long) for power in (6, 30, 300)), 10**3000],
    ids=["10^6", "10^30", "10^300", "10^3000"],
)
def test_a_huge_block_against_one_alternative(size):
    """Gumbel: P[block] ∝ M exp(location). Exponential with M p = c at a large M: P[single] = (1 − e^{−c})/c."""
    locations = [Fraction(0), -Fraction(math.log(size))]
    gumbel = winners_of_blocks(Tied(locations, [1, size]), "gumbel")
    assert agreement(gumbel, {0: 0.5, 1: 0.5}) > SMALLEST_P
    exponential = winners_of_blocks(Tied(locations, [1, size]), "exponential")
    alone = 1 - math.exp(-1)
    assert agreement(exponential, {0: alone, 1: 1 - alone}) > SMALLEST_P


def winners_of_blocks(blocks, noise):
    counts = Counter()
    for (block, _), count in winners(blocks, noise, 1000).items():
        counts[block] += count
    return counts


@pytest.mark.slow
def test_log_sizes_as_rough_as_their_error_are_settled_by_exact_sizes():
    size = 10**60
    blocks = Tied([0, 0], [size, 3 * size], error=0.003)
    blocks.log_size += np.array([0.0029, -0.0029])
    assert agreement(winners_of_blocks(blocks, "gumbel"), {0: 0.25, 1: 0.75}) > SMALLEST_P


@pytest.mark.slow
def test_a_block_may_run_out_of_alternatives():
    """All three lie far ahead and close together: all are met, and each may win."""
    blocks = Listed([[0, 0, 0], [-500]], loose=400.0)
    counts = winners(blocks, "exponential", 600)
    assert agreement(counts, blocks.law(NOISES["exponential"])) > SMALLEST_P


SCORES = Scores.from_histogram([5, 4, 2, 0], [1, 2, 1, 2])
UNTIED = Scores.from_histogram([5, 4, 2, 0], [1, 1, 2, 2])
"""The margin of the top two is 1."""


def subsets_drawn(mechanism, widest, draws, width=64):
    ranking = Ranking.of(SCORES.distinct)
    blocks = SubsetBlocks(mechanism.geometry(ranking), widest=widest)
    bits = SeededBits(5)
    counts = Counter()
    for _ in range(draws):
        key = race(blocks, NOISES[mechanism.noise], bits, width=width)
        held, further = (mechanism.k, ()) if key is None else key
        counts[frozenset([*range(held), *further])] += 1
    return counts


def sequences_drawn(mechanism, widest, draws, width=64):
    ranking = Ranking.of(UNTIED.distinct)
    blocks = SequenceBlocks(ranking, mechanism.k, mechanism.rate, mechanism.smallest_gap(ranking), widest=widest)
    bits = SeededBits(6)
    return Counter(race(blocks, NOISES[mechanism.noise], bits, width=width) for _ in range(draws))


@pytest.mark.slow
@both_noises
@coarse_and_fine
@pytest.mark.parametrize("gamma", [0.5, 1])
def test_subsets_have_one_law_for_any_blocks(noise, widest, gamma):
    mechanism = Canonical(k=3, epsilon=0.5, gamma=gamma, noise=noise)
    assert agreement(subsets_drawn(mechanism, widest, 500), mechanism.law(SCORES)) > SMALLEST_P


@pytest.mark.slow
@both_noises
@coarse_and_fine
def test_sequences_have_one_law_for_any_blocks(noise, widest):
    mechanism = Joint(k=2, epsilon=1.0, noise=noise)
    assert agreement(sequences_drawn(mechanism, widest, 500), mechanism.law(UNTIED)) > SMALLEST_P


@pytest.mark.long
@pytest.mark.parametrize("noise", ["exponential", "gumbel"])
@coarse_and_fine
@pytest.mark.parametrize("margin", [True, False], ids=["margin", "published"])
@pytest.mark.parametrize("gamma", [0, 0.25, 0.5, 1])
def test_subsets_have_one_law_with_two_bits_per_noise(noise, widest, gamma, margin):
    mechanism = Canonical(k=3, epsilon=0.5, gamma=gamma, noise=noise, margin=margin)
    assert agreement(subsets_drawn(mechanism, widest, 300, width=2), mechanism.law(SCORES)) > SMALLEST_P


@pytest.mark.long
@pytest.mark.parametrize("noise", ["exponential", "gumbel"])
@coarse_and_fine
def test_sequences_have_one_law_with_two_bits_per_noise(noise, widest):
    mechanism = Joint(k=2, epsilon=1.0, noise=noise)
    assert agreement(sequences_drawn(mechanism, widest, 300, width=2), mechanism.law(UNTIED)) > SMALLEST_P


@pytest.mark.slow
def test_chi_square_rejects_sequences_drawn_without_the_margin():
    drawn = sequences_drawn(Joint(k=2, epsilon=2.0, margin=False), 1.0, 500)
    assert agreement(drawn, Joint(k=2, epsilon=2.0).law(UNTIED)) < SMALLEST_P


@pytest.mark.slow
def test_chi_square_rejects_another_epsilon():
    drawn = subsets_drawn(Canonical(k=3, epsilon=1.0), 1.0, 1000)
    assert agreement(drawn, Canonical(k=3, epsilon=0.5).law(SCORES)) < SMALLEST_P


class Loose(Tied):
    """Blocks whose alternatives lie far below the ceiling; counts how many are drawn."""

    def __init__(self, locations, sizes, ceiling):
        super().__init__(locations, sizes)
        self.ceiling = np.array(ceiling)
        self.drawn = 0

    def draw(self, block, bits):
        self.drawn += 1
        return super().draw(block, bits)


@pytest.mark.parametrize("noise", ["exponential", "gumbel"])
def test_a_block_with_loose_bounds_is_left_once_another_leads(noise):
    """A block that might have won by its bounds, but all of whose alternatives are far behind."""
    blocks = Loose([0, -1000], [1, 10**300], [0.0, -690.0])
    bits = SeededBits(1)
    assert {race(blocks, NOISES[noise], bits)[0] for _ in range(300)} == {0}
    assert 300 < blocks.drawn < 30_000


def rounds_law(blocks, noise, count):
    """The law of races one after another: each is a race of fresh noises among the alternatives that are left."""
    law = {(): 1.0}
    for _ in range(count):
        law = {
            (*winners, key): probability * share
            for winners, probability in law.items()
            for key, share in left_law(blocks, noise, winners).items()
        }
    return law


def left_law(blocks, noise, without):
    left = [key for key in blocks.law(noise) if key not in without]
    locations = [float(blocks.location(key)) for key in left]
    return dict(zip(left, single_law(locations, noise).tolist(), strict=True))


@pytest.mark.slow
@raced_noises
@pytest.mark.parametrize("width", [2, 64])
def test_races_have_the_law_of_rounds(noise, width):
    blocks = Listed([[0, -1, -1], [Fraction(-1, 3)] * 2], 0.5)
    bits = SeededBits(1)
    draws = range(300 if width == 2 else 1200)
    counts = Counter(tuple(races(blocks, NOISES[noise], bits, 3, width=width)) for _ in draws)
    assert agreement(counts, rounds_law(blocks, NOISES[noise], 3)) > SMALLEST_P


def test_races_go_on_until_every_alternative_has_won():
    blocks = Listed([[0], [0, -50], [-100]])
    assert len(set(races(blocks, NOISES["exponential"], SeededBits(1), 4))) == 4


@pytest.mark.slow
def test_chi_square_rejects_the_order_of_one_vector_of_noises():
    """The twin: rounds without fresh noise have another law, except with Gumbel noise."""
    blocks = Listed([[0], [-1], [-1]])
    noisy = -np.log(np.random.default_rng(1).random((40_000, 3))) + [0, -1, -1]
    once = Counter(tuple((int(block), 0) for block in row) for row in np.argsort(-noisy, axis=1)[:, :2])
    assert agreement(once, rounds_law(blocks, NOISES["exponential"], 2)) < SMALLEST_P
