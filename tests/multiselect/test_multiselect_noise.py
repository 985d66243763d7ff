"""Signals keep their guarantee for all positions, on the grid and between its points, and follow their law."""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from itertools import combinations
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import dpselect as dps
from dpselect.multiselect import Client, Geographic, GridNoise
from dpselect.multiselect.noise import DistanceGuarantee
from dpselect.sampling import SeededBits

POSITIONS = [Fraction(number, 16) for number in range(-40, 41)]
LOW, HIGH = -20, 20


@pytest.mark.parametrize(("epsilon", "step"), [(1.0, 0.5), (0.1, 0.3)])
def test_the_worst_loss_of_all_pairs_of_positions_is_the_claim(epsilon: float, step: float) -> None:
    """No pair exceeds the claim for its distance, and some pair attains it, so no smaller claim would hold."""
    noise = GridNoise(epsilon, step)
    laws = {value: noise.law(value, LOW, HIGH) for value in POSITIONS}
    headroom = math.inf
    for here, there in combinations(POSITIONS, 2):
        claim = noise.guarantee.loss(abs(here - there))
        worst = max(abs(math.log(laws[here][place] / laws[there][place])) for place in laws[here])
        assert worst <= claim + 1e-12
        headroom = min(headroom, claim - worst)
    assert headroom < 1e-12


@pytest.mark.parametrize(("epsilon", "step"), [(1.0, 0.5), (2.0, 0.01), (700.0, 1.0)])
def test_a_law_adds_up_to_one_and_is_the_stated_formula(epsilon: float, step: float) -> None:
    law = GridNoise(epsilon, step).law(0, -2000, 2000)
    assert math.fsum(law.values()) == pytest.approx(1, abs=1e-12)
    ratio = math.exp(-epsilon * step)
    for place in (-7, 0, 1, 12):
        assert law[place] == pytest.approx((1 - ratio) / (1 + ratio) * ratio ** abs(place), rel=1e-11)


def test_probabilities_beyond_an_end_are_counted_there() -> None:
    noise = GridNoise(1.0, 0.5)
    wide, narrow = noise.law(3, -200, 200), noise.law(3, 2, 9)
    assert narrow[2] == pytest.approx(math.fsum(wide[place] for place in range(-200, 3)))
    assert narrow[9] == pytest.approx(math.fsum(wide[place] for place in range(9, 201)))
    assert noise.law(3, 7, 9)[7] == pytest.approx(math.fsum(wide[place] for place in range(-200, 8)))


@given(value=st.fractions(-50, 50), distance=st.fractions(0, 5), step=st.sampled_from([0.5, 0.1, 0.75, 3.0]))
@example(value=Fraction(1, 4), distance=Fraction(1, 2), step=0.5)
def test_rounding_moves_no_further_than_the_distance_in_whole_steps(
    value: Fraction, distance: Fraction, step: float
) -> None:
    noise = GridNoise(1.0, step)
    moved = noise.nearest(value + distance) - noise.nearest(value)
    assert 0 <= moved <= math.ceil(distance / Fraction(step))
    assert abs(noise.nearest(value) * Fraction(step) - value) <= Fraction(step) / 2


def test_draws_follow_the_law() -> None:
    """6000 draws are off by 0.06 in total variation with a probability below 1e-6; wrong laws are off by more."""
    noise, bits = GridNoise(2.0, 0.125), SeededBits(4)
    drawn = Counter(min(max(noise.draw(3, bits), -30), 36) for _ in range(6000))
    assert total_variation(drawn, noise.law(0.375, -30, 36)) < 0.06
    assert total_variation(drawn, noise.law(0.5, -30, 36)) > 0.06
    assert total_variation(drawn, GridNoise(2.8, 0.125).law(0.375, -30, 36)) > 0.06


def total_variation(counts: Counter[int], law: dict[int, float]) -> float:
    total = counts.total()
    return sum(abs(counts[place] / total - probability) for place, probability in law.items()) / 2


def test_a_default_grid_is_a_power_of_two_and_fine_compared_with_the_noise() -> None:
    for epsilon in (1e-300, 1e-3, 0.5, 1.0, 3.0, 1e6, 1e300):
        step = GridNoise(epsilon).step
        assert math.frexp(step)[0] == 0.5
        assert not 1e-200 < epsilon < 1e200 or 1 / 256 <= epsilon * step < 1 / 128


def test_the_guarantee_states_its_loss() -> None:
    guarantee = GridNoise(0.5, 0.25).guarantee
    assert guarantee == DistanceGuarantee(0.5, 0.25)
    assert str(guarantee).startswith("epsilon = 0.5 per unit of distance: protects one position")
    assert [guarantee.loss(distance) for distance in (2, 0, 0.1)] == [1.0, 0.0, 0.125]
    assert guarantee.to_dict()["neighbours"] == "per unit of distance"
    with pytest.raises(dps.InvalidInput, match="distance must be at least 0, got -1"):
        guarantee.loss(-1)


def test_a_bad_position_is_refused_without_being_shown() -> None:
    for value in (math.nan, math.inf, "12.345", None, True):
        with pytest.raises(dps.InvalidInput) as caught:
            GridNoise(1.0, 1e-6).nearest(value)
        assert str(caught.value) == "value must be a finite number, got another value (private, so not shown)"


def test_no_finite_position_is_too_far_to_be_rounded() -> None:
    """A refusal beyond some border would show on which side of it the user is."""
    noise = GridNoise(1.0, 2.0**-20)
    for value in (2.0**33, 2.0**33 + 1, -1.5e30, sys.float_info.max):
        assert noise.position(noise.nearest(value)) == value


CONVEX: dict[str, Callable[[float], float]] = {
    "linear": lambda distance: 0.3 * distance,
    "bent": lambda distance: 0.3 * distance + 2 * distance**2,
    "exponential": lambda distance: math.expm1(0.3 * distance),
}


def worst_excess(wanted: Geographic, rate: float, step: float) -> float:
    """Return the largest excess of the loss between two grid points over g, over 40 points and their signals.

    With `P[s | n] ∝ q^|s − n|`, `q = e^{−ε r}`, the log ratio of the probabilities of s is `ε r (|s − m| − |s − n|)`.
    """
    exact = Fraction(rate) * Fraction(step)
    worst = -math.inf
    for apart in range(1, 41):
        loss = max(exact * (abs(signal - apart) - abs(signal)) for signal in range(-60, 61))
        allowed = wanted.loss(apart * step)
        if math.isfinite(allowed):
            worst = max(worst, float(loss - Fraction(allowed)))
    return worst


@pytest.mark.parametrize("shape", CONVEX)
def test_noise_at_the_rate_of_g_loses_at_most_g_everywhere(shape: str) -> None:
    """Exactly, for all pairs and signals, with and without a threshold; a larger rate loses more."""
    for threshold in (math.inf, 2.0):
        wanted, step = Geographic(CONVEX[shape], threshold), 0.25
        rate = wanted.rate(step)
        assert rate == pytest.approx(CONVEX[shape](step) / step)
        assert worst_excess(wanted, rate, step) <= 0 < worst_excess(wanted, rate * 1.001, step)
        guarantee = Client(rate, grid=step).guarantee
        assert all(guarantee.loss(count * step) <= wanted.loss(count * step) for count in range(1, 100))
    if shape != "linear":
        assert worst_excess(wanted, wanted.loss(8 * step) / (8 * step), step) > 0


def test_without_a_grid_the_rate_is_the_slope_at_zero() -> None:
    assert Geographic(CONVEX["exponential"], slope=0.3).rate() == 0.3
    assert Geographic(CONVEX["bent"], 5.0, slope=0.3).rate() == 0.3
    finer = [Geographic(CONVEX["bent"]).rate(2.0**-power) for power in (4, 8, 12)]
    assert finer == sorted(finer, reverse=True)
    assert finer[-1] == pytest.approx(0.3, rel=1e-2)


def test_beyond_the_threshold_any_loss_is_allowed() -> None:
    wanted = Geographic(CONVEX["linear"], 2.0)
    assert wanted.loss(2.0) == pytest.approx(0.6)
    assert wanted.loss(2.01) == math.inf


BAD_FUNCTIONS: list[Any] = [
    lambda distance: 0.3 * math.sqrt(distance),
    lambda distance: distance + 1,
    lambda distance: -distance,
    lambda distance: {}[distance],
    lambda distance: math.nan * distance,
    lambda distance: math.inf * (distance > 0),
]


def test_a_function_that_is_not_increasing_and_convex_from_0_is_refused() -> None:
    for function in BAD_FUNCTIONS:
        with pytest.raises(dps.InvalidInput, match="function must be an increasing convex function"):
            Geographic(function)


def test_a_slope_or_threshold_that_g_contradicts_is_refused() -> None:
    for slope in (0.31, -1):
        with pytest.raises(dps.InvalidInput, match="slope"):
            Geographic(CONVEX["linear"], slope=slope)
    for threshold in (0, math.nan):
        with pytest.raises(dps.InvalidInput, match="threshold must be a positive number"):
            Geographic(CONVEX["linear"], threshold)


def test_a_rate_needs_a_slope_or_a_grid_within_the_threshold() -> None:
    with pytest.raises(dps.InvalidInput, match="slope must be g'\\(0\\), got None; or pass the grid"):
        Geographic(CONVEX["linear"]).rate()
    with pytest.raises(dps.InvalidInput, match=r"grid must be at most 2 \(the threshold\), got 3\.0"):
        Geographic(CONVEX["linear"], 2.0).rate(3.0)
