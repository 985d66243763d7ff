"""Answers at the quantiles of other noises cost at most what the theorem says."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import minimize

import dpselect as dps
from dpselect.multiselect import Noise, expected_cost, noise_cost, optimal_offsets, quantile_bound, quantile_offsets


@pytest.mark.parametrize("noise", ["laplace", "gaussian:3", "logistic:0.5", "secant"])
def test_quantile_answers_cost_at_most_the_bound(noise: str) -> None:
    for k in (1, 2, 3, 4, 9):
        offsets = quantile_offsets(k, noise)
        assert len(offsets) == k
        assert np.all(np.diff(offsets) > 0)
        np.testing.assert_allclose(offsets, -offsets[::-1], atol=1e-12)
        assert noise_cost(k, noise) <= quantile_bound(k, noise)


def test_quantile_answers_to_laplace_noise_cost_at_least_the_best() -> None:
    for k in (1, 2, 3, 8):
        assert noise_cost(optimal_offsets(k, 1.0), "laplace") == pytest.approx(expected_cost(k, 1.0), rel=1e-6)
        assert expected_cost(k, 1.0) * (1 - 1e-9) <= expected_cost(quantile_offsets(k, "laplace"), 1.0)
    np.testing.assert_allclose(quantile_offsets(3, "laplace:2"), [-2 * math.log(2), 0, 2 * math.log(2)], atol=1e-12)


def test_three_quantile_answers_to_gaussian_noise_cost_at_most_a_fifth_more_than_the_best_three() -> None:
    places = np.linspace(-8, 8, 3201)
    weights = stats.norm.pdf(places) / stats.norm.pdf(places).sum()

    def coarse(offsets: np.ndarray) -> float:
        return float(weights @ np.abs(places[:, None] - offsets).min(axis=1))

    best = noise_cost(minimize(coarse, [-1, 0.1, 1], method="Nelder-Mead").x, "gaussian")
    assert best <= noise_cost(3, "gaussian") <= 1.2 * best


def test_the_bound_falls_like_log_k_over_k() -> None:
    ratios = [quantile_bound(k, "gaussian") * k / math.log(k) for k in (9, 99, 999)]
    assert max(ratios) <= 2 * min(ratios)


@pytest.mark.parametrize(("name", "mean"), [("laplace", 2.0), ("gaussian", 2 * math.sqrt(2 / math.pi))])
def test_the_spread_is_the_mean_distance(name: str, mean: float) -> None:
    assert Noise(name, 2.0).spread == pytest.approx(mean, rel=1e-7)
    assert noise_cost(1, Noise(name, 2.0)) == pytest.approx(mean, rel=1e-7)


@pytest.mark.parametrize("name", ["laplace", "logistic", "secant"])
def test_the_rate_bounds_the_slope_of_the_log_density(name: str) -> None:
    noise = Noise(name, 0.5)
    slopes = np.abs(np.diff(noise.distribution.logpdf(np.linspace(-5, 5, 1001)))) / 0.01
    assert noise.rate == 2.0
    assert 0.99 * 2 <= slopes.max() <= 2 * (1 + 1e-9)


def test_gaussian_noise_has_no_rate() -> None:
    assert Noise("gaussian").rate == math.inf


def test_a_scipy_distribution_can_be_passed_but_not_under_the_name_of_another() -> None:
    offsets = quantile_offsets(4, stats.norm(scale=2))
    np.testing.assert_allclose(offsets, quantile_offsets(4, "gaussian:2"), rtol=1e-12, atol=1e-12)
    assert noise_cost(1, stats.norm()) == pytest.approx(math.sqrt(2 / math.pi), rel=1e-7)
    with pytest.raises(dps.InvalidInput, match="noise must be only the name 'laplace', got a distribution as well"):
        Noise("laplace", 1.0, stats.norm())


def test_a_cost_without_a_finite_expected_value_is_refused() -> None:
    for growth in (1.0, 2.0):
        with pytest.raises(dps.InvalidInput, match="disutility must have a finite expected value"):
            noise_cost(3, "laplace", lambda distance, growth=growth: np.expm1(growth * distance))
    assert noise_cost(3, "laplace", "square") == pytest.approx(
        expected_cost(quantile_offsets(3, "laplace"), 1.0, "square"), rel=1e-6
    )


@pytest.mark.parametrize(
    "noise",
    ["cauchy", "laplace:0", "laplace:x", 3, stats.norm(loc=1), stats.cauchy(), stats.expon()],
    ids=["name", "zero", "text", "number", "shifted", "cauchy", "one-sided"],
)
def test_noise_that_does_not_qualify_is_refused(noise: Any) -> None:
    with pytest.raises(dps.InvalidInput, match="noise must be one of laplace, gaussian, logistic, secant"):
        quantile_offsets(3, noise)
