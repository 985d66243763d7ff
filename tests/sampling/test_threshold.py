"""Noisy values against one noisy threshold: exact answers that agree with one real number."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dpselect.privacy.thresholds import STEP, gumbel_threshold, laplace_threshold
from dpselect.sampling import SeededBits
from dpselect.sampling.threshold import MeasuredField, exceeds, first_exceeding, passing_at_first
from dpselect.sampling.threshold_law import chance_of
from dpselect.verify.exact import ALLOWED, WORDS, Border, GivenWords, NoisyValue


def field(values: list[Any], *, scale: Fraction = Fraction(1), origin: Any = 0) -> MeasuredField:
    return MeasuredField(np.array(values), scale, None, 1, origin=origin)


@pytest.mark.parametrize("width", [1, 3, 64])
def test_answers_follow_the_law_however_few_bits_are_drawn_at_a_time(width: int) -> None:
    """χ² with 7 degrees of freedom exceeds 44 with probability 2e-7; one bit at a time sends most tests to balls."""
    margins = [0.5, -1.0, 2.0]
    entrants, draws = field(margins), 4000 if width == 64 else 1500
    bits = SeededBits(width)
    counts = Counter(tuple(exceeds(entrants, Fraction(0), bits, width=width)) for _ in range(draws))
    statistic = 0.0
    for answers in np.ndindex(2, 2, 2):
        passed = [margin for margin, answer in zip(margins, answers, strict=True) if answer]
        failed = [margin for margin, answer in zip(margins, answers, strict=True) if not answer]
        expected = draws * chance_of(passed, failed)
        statistic += (counts[tuple(map(bool, answers))] - expected) ** 2 / expected
    assert statistic < 44


PASSES = {
    "exceeds": lambda entrants, bits: next(exceeds(entrants, Fraction(3), bits)),
    "passing at first": lambda entrants, bits: passing_at_first(entrants, Fraction(3), bits) == 1,
    "first exceeding": lambda entrants, bits: first_exceeding([entrants], Fraction(3), bits) == 0,
}


@pytest.mark.parametrize("passes", PASSES.values(), ids=PASSES)
@pytest.mark.parametrize("shared", [WORDS // 9, WORDS // 2 + 12345, WORDS - (1 << 40)])
@pytest.mark.parametrize("value", [0, 3, 5.5])
def test_a_test_passes_up_to_the_very_word_at_which_both_sides_are_even(passes: Any, shared: int, value: float) -> None:
    """The threshold's word is held, and the word of the test is varied: no shift of the comparison can hide."""
    entrants = field([value])
    border = Border(
        lambda words: passes(entrants, GivenWords(words)),
        "laplace",
        (NoisyValue(Fraction(value), ((1, 1),)), NoisyValue(Fraction(3), ((0, 1),))),
        (shared, 0),
    )
    assert abs(border.off_by()) < ALLOWED


STEPS = [-0.5, -1.0, 0.5, -0.5]


def distance_from_the_first(counts: Counter[int | None], draws: int) -> float:
    """Return χ², with 4 degrees of freedom, of which one of STEPS came first or None; above 36 with chance 3e-7."""
    chances: dict[int | None, float] = {place: chance_of([STEPS[place]], STEPS[:place]) for place in range(4)}
    chances[None] = chance_of([], STEPS)
    return sum((counts[place] - draws * chance) ** 2 / (draws * chance) for place, chance in chances.items())


@pytest.mark.parametrize(("width", "block"), [(1, 2), (3, 1), (64, 1), (64, 100)])
def test_the_first_that_exceeds_follows_the_law_in_whatever_parts_it_is_looked_for(width: int, block: int) -> None:
    fields, bits = [field(STEPS[:3]), field([]), field(STEPS[3:])], SeededBits(width + block)
    draws = 4000 if width == 64 else 1500
    counts = Counter(first_exceeding(fields, Fraction(0), bits, width=width, block=block) for _ in range(draws))
    assert distance_from_the_first(counts, draws) < 36


def test_the_first_that_exceeds_is_told_from_that_of_fresh_thresholds() -> None:
    bits, draws = SeededBits(1), 4000
    counts: Counter[int | None] = Counter()
    for _ in range(draws):
        passed = (place for place in range(4) if first_exceeding([field([STEPS[place]])], Fraction(0), bits) == 0)
        counts[next(passed, None)] += 1
    assert distance_from_the_first(counts, draws) > 36


def test_one_threshold_is_shared_by_all_tests() -> None:
    """Two even tests agree with probability 2/3 (the threshold is the middle of three with probability 1/3), not 1/2.

    4000 draws: 2/3 lies 11 standard deviations from what must fail, and the bound at 2/3 − 5.5 of them.
    """
    bits = SeededBits(1)
    answers = [tuple(exceeds(field([0, 0]), Fraction(0), bits)) for _ in range(4000)]
    share = sum(first == second for first, second in answers) / len(answers)
    assert abs(share - 2 / 3) < 0.041
    assert chance_of([0, 0], []) + chance_of([], [0, 0]) == pytest.approx(2 / 3, abs=1e-12)


def test_a_test_is_of_the_exact_numbers_given() -> None:
    huge = 10**400
    entrants = field([huge + 100, huge - 100], scale=Fraction(10), origin=huge)
    assert list(exceeds(entrants, Fraction(1, 3), SeededBits(0))) == [True, False]
    assert list(exceeds(field([1.5e300, -1.5e300], scale=Fraction(10**9)), Fraction(5), SeededBits(0))) == [True, False]
    assert list(exceeds(field([]), Fraction(5), SeededBits(0))) == []


def test_answers_are_lazy_and_the_same_whether_all_are_asked_for_or_not() -> None:
    for seed in range(50):
        everything = list(exceeds(field([1, 0, -1]), Fraction(0), SeededBits(seed)))
        first = next(exceeds(field([1, 0, -1]), Fraction(0), SeededBits(seed)))
        assert everything[0] == first


@pytest.mark.parametrize("delta", [0.4, 0.05, 1e-3, 1e-6, 1e-12, 1e-300])
def test_thresholds_are_the_least_that_are_high_enough(delta: float) -> None:
    q = laplace_threshold(Fraction(delta))
    assert math.log(2 + q) - q - math.log(4) <= math.log(delta) + 1e-12
    lower = q - 4 * STEP
    assert math.log(2 + lower) - lower - math.log(4) > math.log(delta)
    assert chance_of([-float(q)], []) <= delta * (1 + 1e-9) or delta < 1e-290
    u = gumbel_threshold(Fraction(delta))
    assert 0 <= u + Fraction(math.log(delta)) < 1e-6


def test_a_probability_that_needs_no_threshold_gets_none() -> None:
    assert laplace_threshold(Fraction(1, 2)) == laplace_threshold(Fraction(9, 10)) == 0
    assert laplace_threshold(Fraction(1, 2) - STEP) > 0


def test_chances_of_all_answers_add_up_to_one() -> None:
    margins = [3.0, -40.0, 0.25]
    both = [
        chance_of(
            [m for m, a in zip(margins, answers, strict=True) if a],
            [m for m, a in zip(margins, answers, strict=True) if not a],
        )
        for answers in np.ndindex(2, 2, 2)
    ]
    assert math.fsum(both) == pytest.approx(1.0, abs=1e-12)
    assert chance_of([-np.inf], []) == 0.0
    assert chance_of([1.0], [-np.inf]) == chance_of([1.0], [])
    assert chance_of([5000.0], []) == pytest.approx(1.0, abs=1e-12)
