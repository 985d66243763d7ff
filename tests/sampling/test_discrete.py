"""Discrete noise has exactly its law: by counting bits, by chi-square, and a wrong one is told apart."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from functools import partial

import pytest
from scipy.stats import chi2

from dpselect.sampling import SeededBits, discrete
from dpselect.sampling.discrete import (
    bernoulli_exp,
    discrete_gaussian,
    discrete_laplace,
    gaussian_half_width,
    laplace_half_width,
)
from dpselect.sampling.uniform import uniform_integer
from dpselect.verify.enumeration import contradictions, count_exactly

FAILURE = 1e-7
"""The smallest p-value that passes; with cells of at least 25 expected draws a sound one fails with at most 1e-6."""


@pytest.fixture
def single_bits(monkeypatch):
    """Compare one bit at a time, so that every string of bits can be listed."""
    monkeypatch.setattr(discrete, "WORD", 1)


def laplace_law(scale, reach=200):
    ratio = math.exp(-1 / scale)
    return {y: (1 - ratio) / (1 + ratio) * ratio ** abs(y) for y in range(-reach, reach + 1)}


def gaussian_law(variance, reach=200):
    weights = {y: math.exp(-y * y / (2 * variance)) for y in range(-reach, reach + 1)}
    total = math.fsum(weights.values())
    return {y: weight / total for y, weight in weights.items()}


@pytest.mark.usefixtures("single_bits")
def test_rational_probabilities_by_counting_bits():
    for numerator, denominator in [(0, 1), (1, 3), (5, 8), (6, 7), (1, 1)]:
        probability = numerator / denominator
        decided, undecided = count_exactly(partial(discrete._less_than, numerator, denominator), depth=14)
        assert undecided < 1e-4
        assert contradictions({True: probability, False: 1 - probability}, decided, undecided) == []


@pytest.mark.usefixtures("single_bits")
@pytest.mark.parametrize("exponent", [Fraction(0), Fraction(1, 3), Fraction(1), Fraction(5, 2)])
def test_exponential_probabilities_by_counting_bits(exponent):
    decided, undecided = count_exactly(lambda bits: bernoulli_exp(exponent, bits), depth=16)
    probability = math.exp(-exponent)
    assert undecided < 0.01
    assert contradictions({True: probability, False: 1 - probability}, decided, undecided) == []


@pytest.mark.parametrize("exponent", [Fraction(0), Fraction(7), Fraction(300, 7)])
def test_an_exponential_probability_is_a_product_of_factors_for_the_whole_exponent(exponent, monkeypatch):
    """Counting bits cannot reach the tails of the discrete Gaussian, where exponents are large."""
    factors = []

    def survives(numerator, denominator, bits):
        factors.append(Fraction(numerator, denominator))
        return True

    monkeypatch.setattr(discrete, "_survives", survives)
    assert bernoulli_exp(exponent, SeededBits(1))
    assert sum(factors) == exponent
    assert max(factors) <= 1


@pytest.mark.slow
@pytest.mark.usefixtures("single_bits")
@pytest.mark.parametrize(
    ("scale", "most_undecided"),
    [
        pytest.param(Fraction(1, 2), 0.15, marks=pytest.mark.long),
        pytest.param(Fraction(1), 0.15, marks=pytest.mark.long),
        (Fraction(2), 0.15),
        (Fraction(3, 2), 0.4),
    ],
)
def test_laplace_by_counting_bits(scale, most_undecided):
    decided, undecided = count_exactly(lambda bits: discrete_laplace(scale, bits), depth=16)
    assert undecided < most_undecided
    assert contradictions(laplace_law(scale), decided, undecided) == []


@pytest.mark.slow
@pytest.mark.usefixtures("single_bits")
def test_gaussian_by_counting_bits():
    decided, undecided = count_exactly(lambda bits: discrete_gaussian(Fraction(1, 2), bits), depth=15)
    assert undecided < 0.4
    assert contradictions(gaussian_law(0.5), decided, undecided) == []


def laplace_with_two_zeros(scale, bits):
    """The mistake of keeping minus zero, which gives zero twice its share."""
    numerator = scale.numerator
    while True:
        remainder = uniform_integer(numerator, bits)
        if bernoulli_exp(Fraction(remainder, numerator), bits):
            break
    quotient = 0
    while bernoulli_exp(Fraction(1), bits):
        quotient += 1
    magnitude = (remainder + numerator * quotient) // scale.denominator
    return -magnitude if bits.integers(1, 1)[0] else magnitude


@pytest.mark.slow
@pytest.mark.usefixtures("single_bits")
def test_counting_rejects_a_laplace_that_keeps_minus_zero():
    decided, undecided = count_exactly(lambda bits: laplace_with_two_zeros(Fraction(1), bits), depth=17)
    assert contradictions(laplace_law(1), decided, undecided) != []


def p_value(draws, law):
    """Return the chi-square p-value of draws under a law; outcomes that expect fewer than 25 share one cell."""
    counts = Counter(draws)
    kept = [outcome for outcome, probability in law.items() if probability * len(draws) >= 25]
    expected = [law[outcome] * len(draws) for outcome in kept]
    observed = [counts[outcome] for outcome in kept]
    rest = len(draws) - sum(expected)
    if rest >= 25:
        expected.append(rest)
        observed.append(len(draws) - sum(observed))
    statistic = sum((seen - wanted) ** 2 / wanted for seen, wanted in zip(observed, expected, strict=True))
    return chi2.sf(statistic, len(expected) - 1)


@pytest.mark.parametrize("scale", [pytest.param(Fraction(1, 3), marks=pytest.mark.long), Fraction(31, 7)])
def test_laplace_by_chi_square(scale):
    bits = SeededBits(1)
    assert p_value([discrete_laplace(scale, bits) for _ in range(3000)], laplace_law(scale)) >= FAILURE


@pytest.mark.slow
@pytest.mark.parametrize("variance", [pytest.param(Fraction(1, 5), marks=pytest.mark.long), Fraction(7, 2)])
def test_gaussian_by_chi_square(variance):
    bits = SeededBits(2)
    assert p_value([discrete_gaussian(variance, bits) for _ in range(3000)], gaussian_law(variance)) >= FAILURE


@pytest.mark.slow
def test_chi_square_rejects_a_wrong_scale_and_a_rounded_gaussian():
    bits = SeededBits(3)
    draws = [discrete_laplace(Fraction(2), bits) for _ in range(3000)]
    assert p_value(draws, laplace_law(2.5)) < FAILURE
    rounded = gaussian_law(Fraction(1, 5))
    edge = 0.5 * math.erfc(0.5 / math.sqrt(0.4))
    draws = [discrete_gaussian(Fraction(1, 5), bits) for _ in range(3000)]
    assert p_value(draws, {**rounded, 0: 1 - 2 * edge, 1: edge, -1: edge}) < FAILURE


@pytest.mark.parametrize("size", [10**30, Fraction(10**40 + 1, 3 * 10**6)], ids=["whole", "fraction"])
def test_any_size_of_noise(size):
    """|Y|/scale is Exp(1) to 30 digits; the mean of 300 strays from 1 by 0.4 with probability below 1e-9."""
    bits = SeededBits(4)
    scale = Fraction(size)
    laplace = [abs(discrete_laplace(scale, bits)) / scale for _ in range(300)]
    assert 0.6 < sum(laplace) / 300 < 1.4
    gaussian = [Fraction(discrete_gaussian(scale**2, bits)) ** 2 / scale**2 for _ in range(300)]
    assert 0.6 < sum(gaussian) / 300 < 1.5


FAILURES = pytest.mark.parametrize("failure", [Fraction(1, 2), Fraction(1, 20), Fraction(1, 10**6)], ids=str)


@FAILURES
def test_half_widths_are_the_smallest_that_contain_laplace_noise(failure):
    for scale in (Fraction(1, 100), Fraction(1, 2), Fraction(7, 3), Fraction(50)):
        half_width = laplace_half_width(scale, failure)
        assert two_sided_tail(laplace_law(scale, 2000), half_width) <= failure
        assert half_width == 0 or two_sided_tail(laplace_law(scale, 2000), half_width - 1) > failure


@pytest.mark.slow
@FAILURES
def test_half_widths_contain_gaussian_noise(failure):
    """The smallest ones for σ <= 64; beyond, one more is allowed."""
    for variance in (Fraction(1, 100), Fraction(1, 2), Fraction(7, 3), Fraction(2500), Fraction(5000)):
        half_width = gaussian_half_width(variance, failure)
        law = gaussian_law(variance, 2000)
        assert two_sided_tail(law, half_width) <= failure
        shorter = half_width - (1 if variance <= 64**2 else 2)
        assert half_width == 0 or two_sided_tail(law, shorter) > failure


def two_sided_tail(law, half_width):
    return math.fsum(probability for y, probability in law.items() if abs(y) > half_width)


def test_half_widths_of_huge_noise():
    """σ = 10^20: 1.959963984540054 σ on either side for 95 %."""
    assert gaussian_half_width(Fraction(10**40), Fraction(1, 20)) == pytest.approx(1.959963984540054e20, rel=1e-15)
    assert laplace_half_width(Fraction(10**40), Fraction(1, 20)) == pytest.approx(math.log(20) * 1e40, rel=1e-15)
