"""Exact comparisons: what is sound agrees to the last word, and what is off by little does not."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import pytest

from dpselect.errors import InvalidInput
from dpselect.mechanisms import OneShot
from dpselect.sampling.balls import ball, working_precision
from dpselect.verify import Border, ExactCheck, exact_checks
from dpselect.verify.boundaries import BORDERS, LATE, gamma_variable, oneshot_borders
from dpselect.verify.enumeration import count_exactly
from dpselect.verify.exact import CLOSED_FORMS, OFF, WORDS, GivenWords, NoisyValue
from dpselect.verify.registry import NAMES
from dpselect.verify.tightness import others_rise


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_every_mechanism_agrees_with_theory(name: str) -> None:
    found = [check() for check in exact_checks(name)]
    assert len(found) >= (1 if name == "groups" else 2)  # groups are answered by the other mechanisms
    assert [check for check in found if not check.passed] == []


def test_all_mechanisms_together_have_the_checks_of_each() -> None:
    each = sum(len(exact_checks(name)) - 1 for name in NAMES)
    assert len(exact_checks()) == each + 1 == 100
    with pytest.raises(InvalidInput, match="oneshot, peeling"):
        exact_checks("nonesuch")


@pytest.mark.parametrize("noise", CLOSED_FORMS)
def test_closed_forms_are_inverse_to_each_other(noise: str) -> None:
    form = CLOSED_FORMS[noise]
    with working_precision(200):
        for share in (Fraction(1, 10**6), Fraction(1, 3), Fraction(1, 2) + Fraction(1, 10**9), Fraction(999, 1000)):
            assert abs(form.tail(form.value(ball(share))) - ball(share)) < ball(Fraction(1, 2**150))


def test_a_boundary_is_found_to_the_word() -> None:
    """Exponential noise: W* = e^{−1} W for an entrant that stands 1 behind."""
    behind, ahead = NoisyValue(Fraction(0), ((0, 1),)), NoisyValue(Fraction(1), ((1, 1),))
    expected = math.floor(Fraction(math.exp(-1)) * LATE)

    def border(at: int) -> Border:
        return Border(lambda words: words[0] < at, "exponential", (behind, ahead), (0, LATE))

    close = border(expected).off_by()
    assert abs(close) < 2**13  # what the float of e^{−1} leaves
    assert border(expected + 10**6).off_by() == pytest.approx(close + 10**6, abs=1)
    assert border(0).off_by() == border(WORDS).off_by() == OFF


def test_a_sampler_that_is_off_by_a_millionth_of_a_millionth_is_rejected() -> None:
    [first, *_] = oneshot_borders("gumbel")
    shifted = replace(first, entrants=(replace(first.entrants[0], location=Fraction(1, 10**12)), *first.entrants[1:]))
    assert abs(first.off_by()) < 2
    assert abs(shifted.off_by()) > 10**5


def test_a_gamma_variable_solves_its_equation() -> None:
    from scipy.stats import gamma

    assert float(gamma_variable(3, Fraction(1, 4))) == pytest.approx(gamma.isf(0.25, 3), rel=1e-12)


def test_pairs_use_what_they_say_of_epsilon() -> None:
    """Exponential mechanism: n items, of which all but one rise by 1, use log((1 + (n − 1) e^ε) / n) / ε of it."""
    used = others_rise(OneShot(k=1, epsilon=1.0, noise="gumbel"), 10, 0.9).used()
    assert used == pytest.approx(math.log((1 + 9 * math.e) / 10), rel=1e-9)


def test_given_words_come_first_and_seeded_ones_after_them() -> None:
    bits = GivenWords([5, 6], [1])
    assert bits.integers(1, 64).tolist() == [5]
    assert bits.integers(2, 3).tolist()[0] == 1
    further = bits.integers(2, 64).tolist()
    assert further[0] == 6
    assert 0 < further[1] < WORDS


def test_values_that_are_not_numbers_fail_a_check() -> None:
    assert not ExactCheck("", "", (0.0, math.nan), -1, 1).passed
    assert not ExactCheck("", "", (), -1, 1).passed
    assert ExactCheck("", "", (0.9, -0.2), -1, 1).found == 0.9
    assert ExactCheck("", "", (0.9, -2), -1, 1).found == -2


def test_counting_adds_up_to_one() -> None:
    decided, undecided = count_exactly(lambda bits: int(bits.integers(1, 2)[0]) % 3 or bits.integers(1, 1)[0] > 0, 3)
    assert sum(decided.values()) + undecided == 1


@pytest.mark.slow
def test_every_boundary_lies_well_inside() -> None:
    """A boundary at the very first or last words would show little."""
    for _, _, borders in BORDERS:
        for border in borders():
            with working_precision(200):
                assert 1e-8 < float(border.expected().mid()) < 1 - 1e-8
