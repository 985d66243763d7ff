"""Privacy that fades with distance otherwise, other noises, and users and results in different sets."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import minimize

import dpselect as dps
from dpselect.multiselect import (
    Client,
    Geographic,
    Noise,
    Server,
    catalogue_cost,
    expected_cost,
    noise_cost,
    optimal_offsets,
    quantile_bound,
    quantile_offsets,
    shift_needed,
)

CONVEX: dict[str, Callable[[float], float]] = {
    "linear": lambda distance: 0.3 * distance,
    "bent": lambda distance: 0.3 * distance + 2 * distance**2,
    "exponential": lambda distance: math.expm1(0.3 * distance),
}


@pytest.mark.parametrize("shape", CONVEX)
@pytest.mark.parametrize("threshold", [math.inf, 2.0])
def test_grid_noise_at_the_rate_keeps_below_g_everywhere(shape: str, threshold: float) -> None:
    """Two-sided geometric noise loses ε r n between grid points n apart: exactly, for all pairs and signals."""
    wanted, step = Geographic(CONVEX[shape], threshold), 0.25
    rate = wanted.rate(step)
    assert _worst_excess(wanted, rate, step) <= 0
    assert rate == pytest.approx(CONVEX[shape](step) / step)
    assert _worst_excess(wanted, rate * 1.001, step) > 0


@pytest.mark.parametrize("shape", CONVEX)
def test_a_client_at_the_rate_promises_no_more_loss_than_g(shape: str) -> None:
    wanted, step = Geographic(CONVEX[shape], 30.0), 0.25
    guarantee = Client(wanted.rate(step), grid=step).guarantee
    assert all(guarantee.loss(count * step) <= wanted.loss(count * step) for count in range(1, 200))
    assert guarantee.loss(0.3) <= wanted.loss(2 * step)


@pytest.mark.parametrize("shape", ["bent", "exponential"])
def test_a_rate_read_off_a_longer_distance_is_rejected(shape: str) -> None:
    wanted, step = Geographic(CONVEX[shape]), 0.25
    far = wanted.loss(8 * step) / (8 * step)
    assert _worst_excess(wanted, far, step) > 0


def test_without_a_grid_the_rate_is_the_slope_at_zero() -> None:
    assert Geographic(CONVEX["exponential"], slope=0.3).rate() == 0.3
    assert Geographic(CONVEX["bent"], 5.0, slope=0.3).rate() == 0.3
    assert Geographic(lambda distance: math.expm1(9 * distance), slope=9.0).rate() == 9.0
    finer = [Geographic(CONVEX["bent"]).rate(2.0**-power) for power in (4, 8, 12)]
    assert finer == sorted(finer, reverse=True)
    assert finer[-1] == pytest.approx(0.3, rel=1e-2)


def test_beyond_the_threshold_nothing_is_asked() -> None:
    wanted = Geographic(CONVEX["linear"], 2.0)
    assert wanted.loss(2.0) == pytest.approx(0.6)
    assert wanted.loss(2.01) == math.inf


@pytest.mark.parametrize(
    "settings",
    [
        {"function": lambda distance: 0.3 * math.sqrt(distance)},
        {"function": lambda distance: distance + 1},
        {"function": lambda distance: -distance},
        {"function": lambda distance: distance**2, "slope": 0.5},
        {"function": lambda distance: 0.3 * distance, "slope": 0.31},
        {"function": lambda distance: 0.3 * distance, "slope": -1},
        {"function": lambda distance: 0.3 * distance, "threshold": 0},
        {"function": lambda distance: 0.3 * distance, "threshold": math.nan},
        {"function": lambda distance: {}[distance]},
        {"function": lambda distance: math.nan * distance},
        {"function": lambda distance: math.inf * (distance > 0)},
    ],
)
def test_what_is_no_g_is_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(dps.InvalidInput):
        Geographic(**settings)


def test_a_rate_needs_a_slope_or_a_grid_within_the_threshold() -> None:
    with pytest.raises(dps.InvalidInput, match="slope"):
        Geographic(CONVEX["linear"]).rate()
    with pytest.raises(dps.InvalidInput, match="grid"):
        Geographic(CONVEX["linear"], 2.0).rate(3.0)


@pytest.mark.parametrize("noise", ["laplace", "gaussian:3", "logistic:0.5", "secant"])
@pytest.mark.parametrize("k", [1, 2, 3, 4, 9, 30])
def test_quantile_answers_cost_no_more_than_the_theorem_says(noise: str, k: int) -> None:
    offsets = quantile_offsets(k, noise)
    assert len(offsets) == k
    assert np.all(np.diff(offsets) > 0)
    np.testing.assert_allclose(offsets, -offsets[::-1], atol=1e-12)
    assert noise_cost(k, noise) <= quantile_bound(k, noise)


def test_quantile_answers_to_laplace_noise_are_near_the_best() -> None:
    for k in (1, 2, 3, 8, 21):
        assert noise_cost(optimal_offsets(k, 1.0), "laplace") == pytest.approx(expected_cost(k, 1.0), rel=1e-6)
        assert expected_cost(k, 1.0) * (1 - 1e-9) <= expected_cost(quantile_offsets(k, "laplace"), 1.0)
    np.testing.assert_allclose(quantile_offsets(3, "laplace:2"), [-2 * math.log(2), 0, 2 * math.log(2)], atol=1e-12)


def test_quantile_answers_to_gaussian_noise_against_direct_optimisation() -> None:
    """Three answers at quantiles cost at most a fifth more than the best three."""
    places = np.linspace(-8, 8, 3201)
    weights = stats.norm.pdf(places) / stats.norm.pdf(places).sum()

    def coarse(offsets: np.ndarray) -> float:
        return float(weights @ np.abs(places[:, None] - offsets).min(axis=1))

    best = noise_cost(minimize(coarse, [-1, 0.1, 1], method="Nelder-Mead").x, "gaussian")
    assert best <= noise_cost(3, "gaussian") <= 1.2 * best


def test_the_bound_falls_like_log_k_over_k() -> None:
    ratios = [quantile_bound(k, "gaussian") * k / math.log(k) for k in (9, 99, 999)]
    assert max(ratios) <= 2 * min(ratios)
    assert noise_cost(99, "gaussian") < noise_cost(9, "gaussian") / 4


@pytest.mark.parametrize(("name", "mean"), [("laplace", 2.0), ("gaussian", 2 * math.sqrt(2 / math.pi))])
def test_the_spread_is_the_mean_distance(name: str, mean: float) -> None:
    assert Noise(name, 2.0).spread == pytest.approx(mean, rel=1e-7)
    assert noise_cost(1, Noise(name, 2.0)) == pytest.approx(mean, rel=1e-7)


@pytest.mark.parametrize("name", ["laplace", "logistic", "secant"])
def test_a_rate_bounds_how_fast_the_log_density_changes(name: str) -> None:
    noise = Noise(name, 0.5)
    places = np.linspace(-5, 5, 1001)
    slopes = np.abs(np.diff(noise.distribution.logpdf(places))) / 0.01
    assert noise.rate == 2.0
    assert 0.99 * 2 <= slopes.max() <= 2 * (1 + 1e-9)
    assert Noise("gaussian").rate == math.inf


def test_a_name_with_the_rate_of_another_distribution_is_refused() -> None:
    with pytest.raises(dps.InvalidInput, match="noise: laplace with a distribution of its own"):
        Noise("laplace", 1.0, stats.norm())
    assert noise_cost(1, stats.norm()) == pytest.approx(math.sqrt(2 / math.pi), rel=1e-7)


@pytest.mark.parametrize("growth", [1.0, 2.0])
def test_a_cost_without_an_expected_value_is_refused(growth: float) -> None:
    with pytest.raises(dps.InvalidInput, match="disutility: a function that grows about as fast as the noise falls"):
        noise_cost(3, "laplace", lambda distance: np.expm1(growth * distance))
    assert noise_cost(3, "laplace", "square") == pytest.approx(
        expected_cost(quantile_offsets(3, "laplace"), 1.0, "square"), rel=1e-6
    )


def test_a_distribution_of_ones_own() -> None:
    np.testing.assert_allclose(
        quantile_offsets(4, stats.norm(scale=2)), quantile_offsets(4, "gaussian:2"), rtol=1e-12, atol=1e-12
    )


@pytest.mark.parametrize(
    "noise", ["cauchy", "laplace:0", "laplace:x", 3, stats.norm(loc=1), stats.cauchy(), stats.t(3), stats.expon()]
)
def test_noise_that_does_not_qualify_is_refused(noise: Any) -> None:
    with pytest.raises(dps.InvalidInput, match="noise"):
        quantile_offsets(3, noise)


@pytest.mark.parametrize("disutility", ["linear", "square", "root", "capped:1"])
@pytest.mark.parametrize("k", [1, 2, 3])
def test_fewer_results_than_users_never_cost_more(disutility: str, k: int) -> None:
    """Theorem 25, exactly, for 40 sets of results and users of each kind."""
    generator = np.random.default_rng(k)
    limit = expected_cost(k, 0.7, disutility)
    for _ in range(40):
        results = generator.normal(0, 3, generator.integers(1, 12))
        user = generator.normal(0, 4)
        assert catalogue_cost(user, results, k, 0.7, disutility) <= limit * (1 + 1e-9)


def test_results_everywhere_cost_what_theory_says() -> None:
    dense = np.arange(-30, 30, 0.02)
    assert catalogue_cost(0.003, dense, 3, 1.0) == pytest.approx(0.5, rel=0.03)
    shifted = optimal_offsets(3, 1.0) + 0.5
    assert catalogue_cost(0.003, dense, shifted, 1.0) > 1.05 * expected_cost(3, 1.0)


def test_the_cost_in_a_catalogue_is_what_trials_meet() -> None:
    """Mean of 200,000 trials within 5.2 standard errors: fails by chance with a probability of 2e-7."""
    results, user, k = np.array([-2.0, -0.3, 0.4, 3.0, 5.0]), 0.9, 2
    signals = user + np.random.default_rng(1).laplace(size=200_000)
    nearest = np.abs(np.add.outer(signals, optimal_offsets(k, 1.0))[..., None] - results).argmin(axis=-1)
    costs = shift_needed(user, results)[nearest].min(axis=1)
    error = 5.2 * costs.std() / math.sqrt(len(costs))
    assert abs(costs.mean() - catalogue_cost(user, results, k, 1.0)) <= error
    assert abs(costs.mean() - catalogue_cost(user + 0.3, results, k, 1.0)) > error


def test_a_single_result_costs_nothing_since_it_is_always_the_best() -> None:
    assert catalogue_cost(100.0, [3.0], 2, 1.0) == 0.0


def test_the_shift_bounds_half_of_what_is_lost_in_distance() -> None:
    """Example 4 of the paper: a result that a shift of t makes the best is at most 2t further away than the best."""
    generator = np.random.default_rng(4)
    for _ in range(200):
        results = np.sort(generator.normal(0, 3, 8))
        user = generator.normal(0, 4)
        distances = np.abs(results - user)
        assert np.all(distances - distances.min() <= 2 * shift_needed(user, results) + 1e-12)


def test_a_server_returns_the_result_nearest_to_each_answer() -> None:
    """What it adds, so that all k differ, can only help; so the bound holds for it as well."""
    generator = np.random.default_rng(5)
    for _ in range(200):
        results = np.sort(generator.normal(0, 3, 9))
        server, signal = Server(results.tolist(), 3, 1.0), float(generator.normal(0, 4))
        nearest = {float(results[np.abs(results - place).argmin()]) for place in signal + optimal_offsets(3, 1.0)}
        assert nearest <= {result.position for result in server.answer(signal)}


@pytest.mark.parametrize("results", [[], [math.nan], ["a"]])
def test_results_that_are_none_are_refused(results: Any) -> None:
    with pytest.raises(dps.InvalidInput, match="results"):
        catalogue_cost(0.0, results, 2, 1.0)


def _worst_excess(wanted: Geographic, rate: float, step: float) -> float:
    """Return the largest amount by which the loss between two grid points exceeds g, over 40 points and their signals.

    With `P[s | n] ∝ q^|s − n|`, `q = e^{−ε r}`, the log ratio of the chances of s is `ε r (|s − m| − |s − n|)`.
    """
    exact = Fraction(rate) * Fraction(step)
    worst = -math.inf
    for apart in range(1, 41):
        loss = max(exact * (abs(signal - apart) - abs(signal)) for signal in range(-60, 61))
        allowed = wanted.loss(apart * step)
        if math.isfinite(allowed):
            worst = max(worst, float(loss - Fraction(allowed)))
    return worst
