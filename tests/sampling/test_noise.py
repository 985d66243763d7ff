"""Normal noise: its float64 values are as accurate as the proof assumes, and draws have exactly their law."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from dpselect.sampling import Field, SeededBits, top_k
from dpselect.sampling.laws import sequence_law, set_law
from dpselect.sampling.noise import NORMAL
from dpselect.sampling.topk import Widths
from dpselect.verify.enumeration import contradictions, count_exactly

COARSE = Widths(screen=1, word=2, step=1, screen_from=2)


def exponents():
    """From the largest of 10^18 noises to the smallest of one, and close to the border between the two branches."""
    generator = np.random.default_rng(7)
    border = math.log(2) * (1 + 1e-15 * generator.normal(size=50))
    return np.concatenate([generator.exponential(size=300), 10.0 ** generator.uniform(-38, 1.7, size=300), border])


def test_float_values_hold_the_exact_noise_with_a_thousandfold_margin():
    import flint

    allowed = Field(np.array([0]), Fraction(1), None, winners=1).slack / 2000
    given = exponents()
    with flint.ctx.workprec(400):
        for exponent, value in zip(given.tolist(), NORMAL.quantile(given).tolist(), strict=True):
            exact = NORMAL.ball_quantile(flint.arb(exponent))
            assert abs(exact - flint.arb(value)) < allowed * (1 + abs(exact))


def test_the_ends_of_the_range():
    assert NORMAL.quantile(np.array([0.0, np.inf])).tolist() == [np.inf, -np.inf]


def test_both_forms_in_ball_arithmetic_solve_the_defining_equation():
    import flint

    with flint.ctx.workprec(300):
        for exponent in ("1e-40", "0.25", "1", "1.0000001", "40", "3000"):
            exact = flint.arb(exponent)
            z = NORMAL.ball_quantile(exact)
            below = (-z / flint.arb(2).sqrt()).erfc() / 2
            assert abs(below.log() + exact) < exact * flint.arb(2) ** -100


def test_the_noise_answers_to_its_exponent_as_the_proof_says():
    """|E dz/dE| = −log Φ(z) · Φ(z)/φ(z) stays below 2 (1 + |z|); a quarter of that would be too little."""
    from scipy.special import log_ndtr

    z = np.linspace(-60, 30, 4001)
    log_cdf = log_ndtr(z)
    condition = -log_cdf * np.exp(log_cdf + z * z / 2 + math.log(2 * math.pi) / 2)
    assert (condition <= 2 * (1 + np.abs(z))).all()
    assert not (condition <= (1 + np.abs(z)) / 2).all()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("values", "most_undecided"), [([1, 1], 0.05), pytest.param([2, 1, 0], 0.3, marks=pytest.mark.long)]
)
def test_the_largest_by_counting_bits(values, most_undecided):
    field = Field(np.array(values), Fraction(1, 2), None, winners=1)
    decided, undecided = count_exactly(
        lambda bits: frozenset(top_k(field, NORMAL, bits, widths=COARSE).tolist()), depth=13
    )
    assert undecided < most_undecided
    assert contradictions(set_law([value / 2 for value in values], 1, NORMAL), decided, undecided) == []


@pytest.mark.slow
def test_tied_groups_by_counting_bits():
    field = Field(np.array([1, 0]), Fraction(1), np.array([2, 1]), winners=1)
    decided, undecided = count_exactly(lambda bits: top_k(field, NORMAL, bits, widths=COARSE)[0], depth=13)
    single = set_law([1.0, 1.0, 0.0], 1, NORMAL)
    law = {0: single[frozenset({0})] + single[frozenset({1})], 1: single[frozenset({2})]}
    assert undecided < 0.1
    assert contradictions(law, decided, undecided) == []
    assert contradictions({0: law[1], 1: law[0]}, decided, undecided) != []


@pytest.mark.parametrize("gap", [0.0, 30.0])
def test_the_law_of_two_is_that_of_their_difference(gap):
    """The difference of two normal noises is normal with variance 2."""
    law = sequence_law([0.0, -gap], 1, NORMAL)
    upset = 0.5 * math.erfc(gap / 2)
    assert law[(1,)] == pytest.approx(upset, rel=1e-10)
    assert law[(0,)] == pytest.approx(1 - upset, rel=1e-10)


def test_extreme_locations():
    for values in (np.array([10**18, 0, 0, 0]), np.array([2.0**1020, 1.0, 0.0, -(2.0**1020)])):
        for scale in (Fraction(1, 10**200), Fraction(1), Fraction(10**200)):
            chosen = top_k(Field(values, scale, None, winners=2), NORMAL, SeededBits(3), ordered=True)
            assert len(set(chosen.tolist())) == 2
