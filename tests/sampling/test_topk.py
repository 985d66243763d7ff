"""top_k has exactly the law of real-valued noise, also where float64 cannot decide."""

from __future__ import annotations

import importlib
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
import scipy.stats

from dpselect.sampling import NOISES, Field, SeededBits, categorical, rounded_top_k, top_k
from dpselect.sampling.balls import Draw, Entrant, rational
from dpselect.sampling.bounds import exponential_bounds
from dpselect.sampling.laws import rounded_sequence_law, sequence_law, set_law
from dpselect.sampling.noise import NORMAL
from dpselect.sampling.topk import Widths
from dpselect.verify.enumeration import contradictions, count_exactly
from dpselect.verify.exact import ALLOWED, WORDS, Border, GivenWords, NoisyValue

topk_module = importlib.import_module("dpselect.sampling.topk")

COARSE = Widths(screen=1, word=2, step=1, screen_from=2)
"""Two bits a draw, then one at a time: nearly every comparison is contested at first."""

ALL_NOISES = pytest.mark.parametrize("noise", NOISES.values(), ids=NOISES)
ONE_NOISE = pytest.mark.parametrize(
    "noise",
    [pytest.param(noise, marks=[] if name == "laplace" else [pytest.mark.long]) for name, noise in NOISES.items()],
    ids=NOISES,
)
"""Laplace noise in every run; the others, through the same code, in long runs."""


def set_of_single_entrants(values, k, noise, widths=COARSE):
    field = Field(np.array(values), Fraction(1, 2), None, winners=k)
    return lambda bits: frozenset(top_k(field, noise, bits, widths=widths).tolist())


@pytest.mark.slow
@ONE_NOISE
@pytest.mark.parametrize(
    ("values", "most_undecided"),
    [([1, 1], 0.05), pytest.param([1, 1, 1], 0.3, marks=pytest.mark.long), ([2, 1, 0], 0.3)],
    ids=["two tied", "three tied", "steps"],
)
def test_set_law_by_counting_bits(noise, values, most_undecided):
    decided, undecided = count_exactly(set_of_single_entrants(values, 1, noise), depth=13)
    law = set_law([value / 2 for value in values], 1, noise)
    assert undecided < most_undecided
    assert contradictions(law, decided, undecided) == []


@pytest.mark.long
@ALL_NOISES
def test_pair_out_of_three_by_counting_bits(noise):
    decided, undecided = count_exactly(set_of_single_entrants([2.5, 2.0, 2.0], 2, noise), depth=13)
    assert undecided < 0.2
    assert contradictions(set_law([1.25, 1.0, 1.0], 2, noise), decided, undecided) == []


@pytest.mark.slow
@ONE_NOISE
def test_tied_groups_by_counting_bits(noise):
    field = Field(np.array([1, 0]), Fraction(1), np.array([2, 1]), winners=1)
    decided, undecided = count_exactly(lambda bits: top_k(field, noise, bits, widths=COARSE)[0], depth=13)
    single = set_law([1.0, 1.0, 0.0], 1, noise)
    law = {0: single[frozenset({0})] + single[frozenset({1})], 1: single[frozenset({2})]}
    assert undecided < 0.1
    assert contradictions(law, decided, undecided) == []


@pytest.mark.long
def test_order_statistics_of_a_tied_group_by_counting_bits():
    """Two winners from a group of three against a single one: the second order statistic is drawn as well."""
    noise = NOISES["exponential"]
    field = Field(np.array([1, 0]), Fraction(1), np.array([3, 1]), winners=2)

    def wins_of_the_first_group(bits):
        return int((top_k(field, noise, bits, widths=Widths(word=2, step=1)) == 0).sum())

    decided, undecided = count_exactly(wins_of_the_first_group, depth=14)
    law = dict.fromkeys((1, 2), 0.0)
    for chosen, probability in set_law([1.0, 1.0, 1.0, 0.0], 2, noise).items():
        law[2 - (3 in chosen)] += probability
    assert undecided < 0.16
    assert contradictions(law, decided, undecided) == []


@pytest.mark.slow
@ALL_NOISES
@pytest.mark.parametrize("place", [2, 3])
def test_order_statistics_of_a_tied_group_change_the_answer_at_the_right_word(noise, place):
    """Counting leaves too much undecided to tell a divisor m − j from m; the word of one order statistic does not.

    Words: the largest noise of a group of five and of a single item; the group's second and third largest.
    """
    field = Field(np.array([1, 0]), Fraction(1), np.array([5, 1]), winners=place)
    drawn = [0, 2, 3][:place]
    border = Border(
        lambda words: 1 not in top_k(field, noise, GivenWords(words)).tolist(),
        noise.name,
        (NoisyValue(Fraction(1), tuple(zip(drawn, (5, 4, 3), strict=False))), NoisyValue(Fraction(0), ((1, 1),))),
        (WORDS // 50, WORDS // 17, WORDS // 40, 0)[: place + 1],
    )
    assert abs(border.off_by()) < ALLOWED


@pytest.mark.slow
def test_sequence_law_by_counting_bits():
    noise = NOISES["gumbel"]
    field = Field(np.array([1, 0]), Fraction(1, 2), None, winners=2)
    decided, undecided = count_exactly(
        lambda bits: tuple(top_k(field, noise, bits, ordered=True, widths=COARSE).tolist()), depth=14
    )
    assert undecided < 0.02
    assert contradictions(sequence_law([0.5, 0.0], 2, noise), decided, undecided) == []


@pytest.mark.slow
@pytest.mark.parametrize("noise", [NOISES["laplace"], NORMAL], ids=["laplace", "normal"])
@pytest.mark.parametrize("sizes", [None, [1, 1]], ids=["single", "tied"])
def test_law_of_rounded_values_by_counting_bits(noise, sizes):
    """A grid as coarse as the noise, counted in steps from −1 to 1; a score of 1/4 lies off the grid."""
    field = Field(np.array([1, 0.25]), Fraction(2, 3), sizes and np.array(sizes), winners=1)

    def drawn(bits):
        [winner], [steps] = rounded_top_k(field, noise, Fraction(3), bits, widths=COARSE)
        return ((int(winner), min(max(steps, -1), 1) + 1),)

    decided, undecided = count_exactly(drawn, depth=14)
    law = rounded_sequence_law([2 / 3, 1 / 6], 1, noise, [-1.0, 1.0])
    assert undecided < 0.1
    assert contradictions(law, decided, undecided) == []


@pytest.mark.parametrize("noise", [NOISES["laplace"], NORMAL], ids=["laplace", "normal"])
def test_rounded_values_are_the_same_whether_floats_or_balls_decide(noise, monkeypatch):
    """The words are fixed: 64 bits at once, or the float bounds made useless, must give the same steps."""
    sizes = np.array([1, 10**9, 10**18], dtype=object)
    for values, multiplicities in (
        (np.array([9, 7.5, 3, 1e9]), None),
        (np.array([10**400, 3, -(10**400)], dtype=object), None),
        (np.array([60, 21, 0]), sizes),
    ):
        for grid in (Fraction(1), Fraction(1, 2**20), Fraction(7, 3)):
            field = Field(values, Fraction(1, 3), multiplicities, winners=3)
            groups, steps = rounded_top_k(field, noise, grid, SeededBits(5))
            with monkeypatch.context() as patch:
                patch.setattr(topk_module, "isfinite", lambda end: False)
                again = rounded_top_k(field, noise, grid, SeededBits(5))
            assert (groups.tolist(), steps) == (again[0].tolist(), again[1])
            assert groups.tolist() == top_k(field, noise, SeededBits(5), ordered=True).tolist()
            assert steps == sorted(steps, reverse=True)


@pytest.mark.slow
def test_categorical_law_by_counting_bits():
    decided, undecided = count_exactly(
        lambda bits: categorical(np.array([0.0, 1.0]), bits, scale=Fraction(3, 2), widths=COARSE), depth=14
    )
    weight = np.exp(1.5)
    assert undecided < 0.02
    assert contradictions({0: 1 / (1 + weight), 1: weight / (1 + weight)}, decided, undecided) == []


def test_counting_rejects_a_sampler_that_settles_contested_comparisons_by_index(monkeypatch):
    monkeypatch.setattr(topk_module, "sort_exactly", lambda entrants, bits, step: entrants)
    noise = NOISES["exponential"]
    decided, undecided = count_exactly(set_of_single_entrants([1, 1, 1], 1, noise), depth=13)
    assert contradictions(set_law([0.5, 0.5, 0.5], 1, noise), decided, undecided) != []


def test_contested_comparisons_reach_ball_arithmetic(monkeypatch):
    """Equal scores and few bits: the path that counting relies on is really taken."""
    calls = []
    exact = topk_module.sort_exactly

    def spy(entrants, bits, step):
        calls.append(len(entrants))
        return exact(entrants, bits, step)

    monkeypatch.setattr(topk_module, "sort_exactly", spy)
    field = Field(np.zeros(50), Fraction(1), None, winners=10)
    top_k(field, NOISES["laplace"], SeededBits(0), widths=Widths(screen=2, word=3, step=2, screen_from=10))
    assert calls
    assert max(calls) > 2


@ALL_NOISES
@pytest.mark.parametrize("widths", [Widths(), COARSE], ids=["full", "coarse"])
@pytest.mark.parametrize("ordered", [pytest.param(False, marks=pytest.mark.long), True], ids=["set", "sequence"])
def test_the_winners_are_those_of_one_fixed_noise(noise, widths, ordered):
    """Bits decide the noise; evaluating all of it in ball arithmetic gives the same winners as the stages do."""
    import flint

    values = np.array([5, 3, 3, 2, 0, -4])
    field = Field(values, Fraction(1, 3), None, winners=3)
    for seed in range(20):
        recorder = RecordingBits(seed)
        chosen = top_k(field, noise, recorder, ordered=ordered, widths=Widths(word=widths.word, step=widths.step))
        with flint.ctx.workprec(300):
            noisy = []
            for group, known in enumerate(recorder.first):
                entrant = Entrant(
                    group,
                    rational(field.exact_location(group)),
                    [Draw(int(known), widths.word)],
                    [rational(1)],
                    noise,
                )
                entrant.sharpen(widths.word, recorder)
                noisy.append((entrant.low, entrant.high))
        for winner in chosen:
            for loser in set(range(6)) - set(chosen.tolist()):
                assert not noisy[winner][1] < noisy[loser][0]
        if ordered:
            for above, below in pairwise(chosen):
                assert not noisy[above][1] < noisy[below][0]


class RecordingBits(SeededBits):
    """Remembers the first batch of bits."""

    def __init__(self, seed):
        super().__init__(seed)
        self.first = None

    def integers(self, count, width):
        drawn = super().integers(count, width)
        if self.first is None:
            self.first = drawn
        return drawn


@pytest.mark.parametrize(
    "values",
    [
        np.array([10**18, 0, 0, 0]),
        np.array([2.0**1020, 1.0, 0.0, -(2.0**1020)]),
        np.array([10**400, 10**400 - 1, 0, -(10**500)], dtype=object),
        np.array([Fraction(1, 3), Fraction(1, 7), Fraction(-1, 9), Fraction(0)], dtype=object),
    ],
    ids=["far-ahead", "float-extremes", "huge", "fractions"],
)
def test_extreme_scores_and_scales(values):
    for scale in (Fraction(1, 10**200), Fraction(1), Fraction(10**200)):
        for noise in NOISES.values():
            chosen = top_k(Field(values, scale, None, winners=2), noise, SeededBits(3), ordered=True)
            assert len(set(chosen.tolist())) == 2


def test_a_certain_winner_wins():
    values = np.array([10**6, 0, 0])
    for noise in NOISES.values():
        assert top_k(Field(values, Fraction(1), None, winners=1), noise, SeededBits(1)).tolist() == [0]


QUANTILES = {
    "exponential": scipy.stats.expon.ppf,
    "gumbel": scipy.stats.gumbel_r.ppf,
    "laplace": scipy.stats.laplace.ppf,
    "logistic": scipy.stats.logistic.ppf,
    "half-logistic": scipy.stats.halflogistic.ppf,
}


class RememberingBits(SeededBits):
    """Remembers all bits that were drawn."""

    def __init__(self, seed):
        super().__init__(seed)
        self.drawn = []

    def integers(self, count, width):
        self.drawn.append(super().integers(count, width))
        return self.drawn[-1]


def screened(values, winners, noise, seed):
    """Return who is left after eight bits at scale 1/10, their bits, and the bits of all."""
    bits = RememberingBits(seed)
    with np.errstate(divide="ignore", over="ignore"):
        groups, kept = topk_module._screen(Field(values, Fraction(1, 10), None, winners), noise, bits, 8)
    return groups, kept, np.concatenate(bits.drawn)


def possible_winners(values, winners, noise, cells, tolerance=0.0):
    """Who can reach the κ-th largest lower bound.

    The noise of cell c lies between F⁻¹ of 1 − (c + 1)/2⁸ and of 1 − c/2⁸.
    """
    quantile = QUANTILES[noise.name]
    low, high = (quantile(1 - (cells.astype(float) + end) / 256) + values / 10 for end in (1, 0))
    return set(np.flatnonzero(high >= np.sort(low)[-winners] - tolerance).tolist())


SCREENED = {
    "mixed": np.arange(150_000) % 97,
    "rising": np.arange(150_000) // 1000,
    "falling": -(np.arange(150_000) // 1000),
    "tied": np.zeros(150_000, dtype=np.int64),
}
"""More than two blocks, with the likely winners everywhere, in the last or in the first."""


@pytest.mark.slow
@ONE_NOISE
@pytest.mark.parametrize("order", SCREENED)
@pytest.mark.parametrize("winners", [pytest.param(1, marks=pytest.mark.long), 40, 3000])
def test_screening_keeps_every_possible_winner_and_few_others(noise, order, winners):
    values = SCREENED[order]
    groups, kept, cells = screened(values, winners, noise, seed=winners)
    assert kept.tolist() == cells[groups].tolist()
    assert possible_winners(values, winners, noise, cells) <= set(groups.tolist())
    assert set(groups.tolist()) <= possible_winners(values, winners, noise, cells, tolerance=1e-4)
    assert len(groups) < len(values)


@pytest.mark.parametrize("order", ["mixed", "falling"])
def test_the_check_of_screening_rejects_one_that_drops_an_entrant(order, monkeypatch):
    whole = np.flatnonzero
    monkeypatch.setattr(np, "flatnonzero", lambda possible: whole(possible)[1:])
    values, noise = SCREENED[order], NOISES["gumbel"]
    groups, _, cells = screened(values, 40, noise, seed=1)
    monkeypatch.undo()
    assert not possible_winners(values, 40, noise, cells) <= set(groups.tolist())


def test_float_bounds_hold_the_exact_noise_with_a_thousandfold_margin():
    """The error of float64 is at most a thousandth of what the comparisons allow for."""
    import flint

    generator = np.random.default_rng(7)
    known = np.concatenate(
        [
            generator.integers(0, 2**64, size=60, dtype=np.uint64),
            np.array([1, 2, 3, 2**10, 2**40, 2**63 - 1, 2**63, 2**63 + 1, 2**64 - 2], dtype=np.uint64),
        ]
    )
    sizes = [1, 2, 7, 10**6, 10**18]
    allowed = Field(np.array([0]), Fraction(1), None, winners=1).slack / 2000
    smallest, _ = exponential_bounds(known, 64)
    with flint.ctx.workprec(400):
        for noise in NOISES.values():
            for size in sizes:
                rough = noise.quantile(smallest / size)
                for bits, value in zip(known.tolist(), rough.tolist(), strict=True):
                    exponent = Draw(bits, 64).exponential(upper=False) / size
                    exact = noise.ball_quantile(exponent)
                    assert abs(exact - flint.arb(value)) < allowed * (1 + abs(exact))


def test_one_huge_group():
    field = Field(np.array([3]), Fraction(1), np.array([10**18]), winners=1000)
    assert top_k(field, NOISES["gumbel"], SeededBits(1), ordered=True).tolist() == [0] * 1000
