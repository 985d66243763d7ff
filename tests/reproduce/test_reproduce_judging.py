"""Comparisons of draws: clear differences are decided, sampling noise is not, and the error level is kept."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom, ttest_ind

from dpselect.reproduce.judging import ERROR, Mean, Variance, is_at_most, is_more, is_more_variable, median_interval


def mean_of(values: list[float]) -> Mean:
    return Mean.of(float(np.mean(values)), float(np.std(values, ddof=1)), len(values))


def variance_of(values: list[float]) -> Variance:
    middle = np.mean(values)
    return Variance(float(np.var(values, ddof=1)), float(np.mean((values - middle) ** 4)), len(values))


def test_a_difference_within_sampling_error_is_undecided() -> None:
    """Comparing bare means would call the first of these behind."""
    first, second = mean_of([4, 5, 6, 5, 4.9]), mean_of([4, 5, 6, 5, 5.0])
    assert first.value < second.value
    assert is_more(first, second, 1) is None
    assert is_more(mean_of([9, 10, 11, 10]), second, 1) is True
    assert is_more(second, mean_of([9, 10, 11, 10]), 1) is False


def test_means_are_compared_by_welchs_test_at_the_divided_level() -> None:
    random = np.random.default_rng(1)
    for shift in np.linspace(0, 2, 41):
        first, second = random.normal(shift, 1, 12), random.normal(0, 2, 30)
        for comparisons in (1, 200):
            p = ttest_ind(first, second, equal_var=False).pvalue
            decided = is_more(mean_of(first.tolist()), mean_of(second.tolist()), comparisons)
            assert (decided is not None) == (p < ERROR / comparisons)


def test_exact_figures_are_compared_as_they_are() -> None:
    assert is_more(Mean(0.5), Mean(0.4999999), 100) is True
    assert is_more(Mean(0.5), Mean(0.5), 100) is None, "equal is not more, and not less"
    assert is_more(Mean(4.0), Mean(2.0), 1, times=3.0) is False
    assert is_more(Mean(4.0), Mean(2.0), 1, times=1.5) is True


def test_numbers_of_numpy_give_plain_answers() -> None:
    """Verdicts count by identity, and `numpy.True_ is True` is false."""
    more, less = np.float64(0.5), np.float64(0.4)
    for error in (0.0, 0.001):
        assert is_more(Mean(more, np.float64(error), 50), Mean(less), 9) is True
        assert is_more(Mean(less), Mean(more, np.float64(error), 50), 9) is False
    assert is_more_variable(Variance(more, more, 50_000), Variance(less, less, 50_000), 1) is True


def test_variances_are_compared_by_their_own_errors() -> None:
    random = np.random.default_rng(2)
    wide, narrow = random.normal(0, 3, 200).tolist(), random.normal(50, 1, 200).tolist()
    assert is_more_variable(variance_of(wide), variance_of(narrow), 200) is True
    assert is_more_variable(variance_of(narrow), variance_of(wide), 200) is False
    assert is_more_variable(variance_of(wide), variance_of(random.normal(0, 3, 200).tolist()), 200) is None
    rare, never = [0.0] * 199 + [1.0], [0.0] * 200
    assert is_more_variable(variance_of(rare), variance_of(never), 1) is None, "one draw of 200 proves nothing"


@pytest.mark.parametrize("draws", [20, 200])
@pytest.mark.parametrize(
    "law",
    [lambda random, draws: random.poisson(5, draws), lambda random, draws: random.binomial(1, 0.5, draws)],
    ids=["Poisson", "fair coin"],
)
def test_equal_distributions_are_hardly_ever_told_apart(law: Any, draws: int) -> None:
    """At a level of 0.01 more than 40 of 1,000 decided pairs would have probability below 1e-6, were it kept."""
    random = np.random.default_rng(3)
    pairs = [(law(random, draws).tolist(), law(random, draws).tolist()) for _ in range(1000)]
    assert binom.sf(40, 1000, ERROR) < 1e-6
    assert sum(is_more(mean_of(a), mean_of(b), 1) is not None for a, b in pairs) <= 40
    assert sum(is_more_variable(variance_of(a), variance_of(b), 1) is not None for a, b in pairs) <= 40


def test_a_variance_of_two_equally_frequent_values_has_an_error_too() -> None:
    """Its fourth moment is the square of its second, so that the usual error of a variance is 0."""
    even, uneven = [0.0] * 100 + [1.0] * 100, [0.0] * 99 + [1.0] * 101
    assert is_more_variable(variance_of(even), variance_of(uneven), 1) is None


@pytest.mark.parametrize(("draws", "error"), [(20, 1e-5), (50, 1e-5), (100, 1e-5), (9, 0.01)])
def test_the_interval_for_a_median_has_the_stated_error_and_is_the_shortest(draws: int, error: float) -> None:
    low, high = median_interval(list(range(1, draws + 1)), error)
    assert low + high == draws + 1
    assert 2 * binom.cdf(low - 1, draws, 0.5) <= error < 2 * binom.cdf(low, draws, 0.5)


def test_too_few_draws_tell_nothing_about_a_median() -> None:
    assert median_interval([1.0] * 9, 1e-5) == (-math.inf, math.inf)
    assert median_interval([1.0] * 20, 1e-5) == (1.0, 1.0)


def test_medians_are_compared_by_their_intervals() -> None:
    assert is_at_most((0, 0), (0, 0)) is True, "no error at all matches no error at all"
    assert is_at_most((1, 5), (5, 9)) is True
    assert is_at_most((1, 6), (5, 9)) is None
    assert is_at_most((5, 9), (1, 6)) is None
    assert is_at_most((7, 9), (1, 6)) is False
