"""Tests against one noisy threshold have exactly their law, and all agree with one threshold."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dpselect.privacy.calibration import STEP, gumbel_threshold, laplace_threshold
from dpselect.sampling import SeededBits
from dpselect.sampling.balls import ball, working_precision
from dpselect.sampling.laws import threshold_probability
from dpselect.sampling.noise import NORMAL
from dpselect.sampling.threshold import MeasuredField, first_exceeding, passing, passing_at_first
from dpselect.verify.exact import ALLOWED, CLOSED_FORMS, WORDS, Border, GivenWords, NoisyValue, last_win


def field(values: list[Any], *, scale: Fraction = Fraction(1), origin: Any = 0) -> MeasuredField:
    return MeasuredField(np.array(values), scale, None, 1, origin=origin)


@pytest.mark.slow
@pytest.mark.parametrize("width", [1, pytest.param(3, marks=pytest.mark.long), 64])
def test_the_number_that_pass_has_its_law_for_any_number_of_bits(width: int) -> None:
    """χ² with 3 degrees of freedom exceeds 34 with probability 2e-7; one bit at a time sends most tests to balls."""
    margins = [1.5, 0.5, 1.0]
    entrants, draws = field(margins), 4000 if width == 64 else 1000
    bits = SeededBits(width)
    counts = Counter(passing_at_first(entrants, Fraction(0), bits, width=width) for _ in range(draws))
    expected = [draws * threshold_probability(margins[:passed], margins[passed : passed + 1]) for passed in range(4)]
    assert sum((counts[passed] - wanted) ** 2 / wanted for passed, wanted in enumerate(expected)) < 34


PASSES = {
    "passing at first": lambda entrants, bits: passing_at_first(entrants, Fraction(3), bits) == 1,
    "first exceeding": lambda entrants, bits: first_exceeding([entrants], Fraction(3), bits) == 0,
}


@pytest.mark.parametrize("passes", PASSES.values(), ids=PASSES)
@pytest.mark.parametrize("value", [0, 3, 5.5])
def test_a_test_passes_up_to_the_exact_word_at_which_both_sides_are_equal(passes: Any, value: float) -> None:
    """The threshold's word is fixed and the word of the test varies, so any shift of the comparison shows."""
    entrants = field([value])
    for shared in (WORDS // 9, WORDS // 2 + 12345, WORDS - (1 << 40)):
        border = Border(
            lambda words: passes(entrants, GivenWords(words)),
            "laplace",
            (NoisyValue(Fraction(value), ((1, 1),)), NoisyValue(Fraction(3), ((0, 1),))),
            (shared, 0),
        )
        assert abs(border.off_by()) < ALLOWED


STEPS = [-0.5, -1.0, 0.5, -0.5]


def distance_from_the_first(counts: Counter[int | None], draws: int) -> float:
    """Return χ² (4 degrees of freedom) of which of STEPS came first, or None; above 36 with probability 3e-7."""
    law: dict[int | None, float] = {place: threshold_probability([STEPS[place]], STEPS[:place]) for place in range(4)}
    law[None] = threshold_probability([], STEPS)
    return sum((counts[place] - draws * probability) ** 2 / (draws * probability) for place, probability in law.items())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("width", "block"),
    [(64, 1), *(pytest.param(*pair, marks=pytest.mark.long) for pair in [(1, 2), (3, 1), (64, 100)])],
)
def test_the_first_that_passes_has_its_law_for_any_blocks(width: int, block: int) -> None:
    fields, bits = [field(STEPS[:3]), field([]), field(STEPS[3:])], SeededBits(width + block)
    draws = 4000 if width == 64 else 1500
    counts = Counter(first_exceeding(fields, Fraction(0), bits, width=width, block=block) for _ in range(draws))
    assert distance_from_the_first(counts, draws) < 36


@pytest.mark.slow
def test_fresh_thresholds_are_told_apart() -> None:
    bits, draws = SeededBits(1), 4000
    counts: Counter[int | None] = Counter()
    for _ in range(draws):
        passed = (place for place in range(4) if first_exceeding([field([STEPS[place]])], Fraction(0), bits) == 0)
        counts[next(passed, None)] += 1
    assert distance_from_the_first(counts, draws) > 36


def test_one_threshold_is_shared_by_all_tests() -> None:
    """Two even tests both pass with probability 1/3 (the threshold is the least of three), not 1/4.

    4000 draws: 1/4 is 11 standard deviations away, and the bound is at 5.5 of them.
    """
    bits = SeededBits(1)
    both = sum(passing_at_first(field([0, 0]), Fraction(0), bits) == 2 for _ in range(4000))
    assert abs(both / 4000 - 1 / 3) < 0.041
    assert threshold_probability([0, 0], []) == pytest.approx(1 / 3, abs=1e-12)


def test_tests_use_the_exact_numbers_given() -> None:
    huge = 10**400
    entrants = field([huge + 100, huge - 100], scale=Fraction(10), origin=huge)
    assert passing_at_first(entrants, Fraction(1, 3), SeededBits(0)) == 1
    extreme = field([1.5e300, -1.5e300], scale=Fraction(10**9))
    assert passing_at_first(extreme, Fraction(5), SeededBits(0)) == 1
    assert passing_at_first(field([]), Fraction(5), SeededBits(0)) == 0


@pytest.mark.parametrize("delta", [0.4, 1e-6, 1e-300])
def test_thresholds_are_the_least_that_are_high_enough(delta: float) -> None:
    q = laplace_threshold(Fraction(delta))
    assert math.log(2 + q) - q - math.log(4) <= math.log(delta) + 1e-12
    lower = q - 4 * STEP
    assert math.log(2 + lower) - lower - math.log(4) > math.log(delta)
    assert threshold_probability([-float(q)], []) <= delta * (1 + 1e-9) or delta < 1e-290
    u = gumbel_threshold(Fraction(delta))
    assert 0 <= u + Fraction(math.log(delta)) < 1e-6


def test_a_probability_that_needs_no_threshold_gets_none() -> None:
    assert laplace_threshold(Fraction(1, 2)) == laplace_threshold(Fraction(9, 10)) == 0
    assert laplace_threshold(Fraction(1, 2) - STEP) > 0


def test_law_of_all_answers_add_up_to_one() -> None:
    margins = [3.0, -40.0, 0.25]
    both = [
        threshold_probability(
            [m for m, a in zip(margins, answers, strict=True) if a],
            [m for m, a in zip(margins, answers, strict=True) if not a],
        )
        for answers in np.ndindex(2, 2, 2)
    ]
    assert math.fsum(both) == pytest.approx(1.0, abs=1e-12)
    assert threshold_probability([-np.inf], []) == 0.0
    assert threshold_probability([1.0], [-np.inf]) == threshold_probability([1.0], [])
    assert threshold_probability([5000.0], []) == pytest.approx(1.0, abs=1e-12)


def groups(values: list[Any], sizes: list[int], *, scale: Fraction = Fraction(1), origin: Any = 0) -> MeasuredField:
    return MeasuredField(np.array(values), scale, np.array(sizes), 1, origin=origin)


@pytest.mark.parametrize("value", [-30, -5, 0, 7, 36])
def test_an_entrant_passes_a_fixed_threshold_up_to_the_exact_word(value: int) -> None:
    entrants = groups([value], [1], scale=Fraction(1, 5), origin=2)
    last = last_win(lambda word: passing(entrants, NORMAL, GivenWords([word]))[0] == 1)
    assert last is not None
    with working_precision(256):
        expected = CLOSED_FORMS["normal"].tail(ball(Fraction(2 - value, 5))) * WORDS
        assert abs(float((last + 1 - expected).mid())) < ALLOWED


@pytest.mark.slow
@pytest.mark.parametrize(("width", "block"), [(1, 3), (3, 1), (64, 2), (64, 1 << 16)])
def test_how_many_pass_a_fixed_threshold_has_its_law_for_any_bits_and_blocks(width: int, block: int) -> None:
    """A group of 2 and one of 1; χ² with 5 degrees of freedom exceeds 38 with probability 4e-7."""
    entrants, bits, draws = groups([1, 0], [2, 1], origin=Fraction(1, 2)), SeededBits(width + block), 1500
    drawn = Counter(tuple(passing(entrants, NORMAL, bits, width=width, block=block).tolist()) for _ in range(draws))
    high, low = NORMAL.cdf(np.array([0.5, -0.5])).tolist()
    of_two, of_one = [(1 - high) ** 2, 2 * high * (1 - high), high**2], [1 - low, low]
    law = {(two, one): of_two[two] * of_one[one] for two in range(3) for one in range(2)}
    assert sum((drawn[each] - draws * p) ** 2 / (draws * p) for each, p in law.items()) < 38


def test_fixed_thresholds_use_the_exact_numbers_given() -> None:
    huge = 10**400
    entrants = groups([huge + 100, huge - 100], [3, 4], scale=Fraction(10), origin=huge)
    assert passing(entrants, NORMAL, SeededBits(0)).tolist() == [3, 0]
    assert passing(groups([], []), NORMAL, SeededBits(0)).tolist() == []
