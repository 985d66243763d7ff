"""Noisy scores of chosen items: what they cost, how far off they are, and that their law is what was promised."""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpselect as dps
from dpselect.mechanisms import OneShot, Peeling
from dpselect.privacy.conversion import largest_rho
from dpselect.sampling import SeededBits
from dpselect.values import GAUSSIAN, LAPLACE, NoisyValues, ValueNoise, split_epsilon, value_noise
from dpselect.verify import Domain, check_privacy
from values_law import WithValues

BOTH_WAYS = dps.Sensitivity(-1, 1)


def noisy(scores: Any, sensitivity: dps.Sensitivity = dps.COUNTS, epsilon: float = 1.0, seed: int = 1) -> NoisyValues:
    """Return noisy scores of two items."""
    return value_noise(k=2, epsilon=epsilon, sensitivity=sensitivity).release(scores, SeededBits(seed))


@given(epsilon=st.floats(min_value=1e-300, max_value=1e300), share=st.floats(min_value=1e-6, max_value=1 - 2.0**-53))
def test_the_parts_never_exceed_the_whole_and_hardly_fall_short_of_it(epsilon: float, share: float) -> None:
    selection, values = split_epsilon(epsilon, share)
    assert selection > 0
    assert values > 0
    assert Fraction(selection) + Fraction(values) <= Fraction(epsilon)
    assert selection + values >= epsilon * (1 - 1e-15)
    assert values == pytest.approx(share * epsilon, rel=1e-15)


def test_a_share_outside_the_unit_interval_is_refused() -> None:
    for share in (0, 1, -0.5, 1.5, math.nan, "half", True, None):
        with pytest.raises(dps.InvalidInput, match="share of epsilon"):
            split_epsilon(1.0, share)  # type: ignore[arg-type]


def test_a_part_that_vanishes_is_refused() -> None:
    with pytest.raises(dps.InvalidInput, match="positive part"):
        split_epsilon(5e-324, 0.5)


def test_pure_noise_for_counts_has_the_scale_of_all_scores_together() -> None:
    noise = value_noise(k=5, epsilon=0.5, sensitivity=dps.COUNTS)
    assert (noise.noise, noise.grid, noise.steps) == (LAPLACE, 1, 1)
    assert noise.spread == Fraction(5) / Fraction(1, 2)
    assert noise.guarantee == dps.Guarantee(epsilon=0.5)


def test_approximate_noise_has_the_variance_of_all_scores_together() -> None:
    noise = value_noise(k=50, epsilon=0.5, delta=1e-6, sensitivity=dps.Sensitivity(0, 3))
    assert (noise.noise, noise.grid, noise.steps) == (GAUSSIAN, 1, 3)
    assert noise.spread == Fraction(50 * 9) / (2 * Fraction(largest_rho(0.5, 1e-6)))
    assert (noise.guarantee.epsilon, noise.guarantee.delta) == (0.5, 1e-6)
    assert noise.guarantee.rho == largest_rho(0.5, 1e-6)


def test_the_narrower_noise_is_taken_and_states_its_own_guarantee() -> None:
    """A tiny delta does not pay for one score: the release then stays pure."""
    assert value_noise(k=1, epsilon=1.0, delta=1e-9, sensitivity=dps.COUNTS).guarantee == dps.Guarantee(epsilon=1.0)
    for k in (1, 3, 10, 100):
        pure = value_noise(k=k, epsilon=1.0, sensitivity=dps.COUNTS)
        allowed = value_noise(k=k, epsilon=1.0, delta=1e-6, sensitivity=dps.COUNTS)
        assert allowed.half_width(0.95) <= pure.half_width(0.95)
    assert allowed.noise == GAUSSIAN


def test_a_bound_on_items_per_person_bounds_how_many_scores_move() -> None:
    assert value_noise(k=10, epsilon=1.0, sensitivity=dps.COUNTS, max_items_per_person=3).spread == 3
    assert value_noise(k=2, epsilon=1.0, sensitivity=dps.COUNTS, max_items_per_person=3).spread == 2


@pytest.mark.parametrize(
    ("sensitivity", "epsilon"),
    [(BOTH_WAYS, 1e-3), (dps.Sensitivity(0, 0.3), 1.0), (dps.Sensitivity(-1e-200, 3e-200), 1e5)],
    ids=["both-ways", "fraction", "tiny"],
)
def test_a_fine_grid_costs_next_to_nothing(sensitivity: dps.Sensitivity, epsilon: float) -> None:
    noise = value_noise(k=4, epsilon=epsilon, sensitivity=sensitivity)
    reach = max(abs(Fraction(sensitivity.low)), abs(Fraction(sensitivity.high)))
    assert (noise.grid.numerator & (noise.grid.numerator - 1)) == 0
    assert (noise.grid.denominator & (noise.grid.denominator - 1)) == 0
    assert reach <= noise.steps * noise.grid <= reach * (1 + Fraction(1, 2**20))
    assert noise.spread * noise.grid >= 4 * reach / Fraction(epsilon)
    assert noise.spread >= 2**20


@given(
    score=st.fractions(-100, 100),
    change=st.fractions(-1, 1),
    grid=st.sampled_from([Fraction(1), Fraction(1, 2), Fraction(1, 8), Fraction(2), Fraction(3, 7)]),
)
def test_rounding_to_the_grid_moves_no_further_than_a_person_does(
    score: Fraction, change: Fraction, grid: Fraction
) -> None:
    noise = ValueNoise(
        noise=LAPLACE, grid=grid, steps=-(-1 // grid), spread=Fraction(1), guarantee=dps.Guarantee(epsilon=1.0)
    )
    [here], [there] = noise.rounded([score]), noise.rounded([score + change])
    assert abs(here - there) <= noise.steps
    assert abs(here * grid - score) <= grid / 2


SMALL = [
    (OneShot(k=1, epsilon=0.5), 0.0, Domain(3, 2)),
    (OneShot(k=2, epsilon=0.5), 0.0, Domain(3, 1)),
    (Peeling(k=2, epsilon=0.5), 0.0, Domain(3, 1)),
    (OneShot(k=2, epsilon=0.5), 0.01, Domain(3, 1)),
]


@pytest.mark.slow
@pytest.mark.parametrize(("mechanism", "delta", "domain"), SMALL, ids=["one", "two", "peeling", "delta"])
def test_items_and_values_together_keep_the_sum_of_both_costs(
    mechanism: dps.Mechanism, delta: float, domain: Domain
) -> None:
    noise = value_noise(k=mechanism.k, epsilon=0.5, delta=delta, sensitivity=dps.COUNTS)
    check = check_privacy(WithValues(mechanism, noise), domain)
    assert check.passed
    assert check.epsilon == 1.0
    if not delta and mechanism.name == "oneshot":
        assert check.worst_loss == pytest.approx(1.0)


@pytest.mark.parametrize("step", [1, 0.5])
def test_scores_between_grid_points_keep_the_cost(step: float) -> None:
    """A grid of 2/3 on which ±1 is not a multiple: the sensitivity is rounded up to two steps."""
    noise = ValueNoise(
        noise=LAPLACE, grid=Fraction(2, 3), steps=2, spread=Fraction(4), guarantee=dps.Guarantee(epsilon=0.5)
    )
    domain = Domain(2, 1, BOTH_WAYS, step=step)
    mechanism = OneShot(k=1, epsilon=0.5, sensitivity=BOTH_WAYS)
    assert check_privacy(WithValues(mechanism, noise), domain).passed
    forgotten = replace(noise, steps=1, spread=Fraction(2))
    assert not check_privacy(WithValues(mechanism, forgotten), domain).passed


def test_noise_for_one_score_on_two_is_rejected() -> None:
    """The mistake of forgetting that one person may move all k scores."""
    forgotten = value_noise(k=1, epsilon=0.5, sensitivity=dps.COUNTS)
    check = check_privacy(WithValues(OneShot(k=2, epsilon=0.5), forgotten), Domain(3, 1))
    assert check.worst_loss == pytest.approx(1.5)
    assert not check.passed


@pytest.mark.slow
def test_gaussian_noise_of_a_quarter_of_the_variance_is_rejected() -> None:
    """Values alone, of all three items: nothing is chosen, and the divergence of the noise itself is left."""
    noise = value_noise(k=3, epsilon=1e-3, delta=0.2, sensitivity=dps.COUNTS)
    everything = OneShot(k=3, epsilon=1e-3)
    assert noise.noise == GAUSSIAN
    assert check_privacy(WithValues(everything, noise), Domain(3, 1)).passed
    weak = replace(noise, spread=noise.spread / 4)
    assert not check_privacy(WithValues(everything, weak), Domain(3, 1)).passed


@pytest.mark.slow
@pytest.mark.parametrize("noise", [LAPLACE, GAUSSIAN])
def test_values_are_drawn_from_the_law_that_is_checked(noise: str) -> None:
    """4000 draws stray by 0.08 in total variation with a probability below 1e-6; a shift by one exceeds that."""
    plan = ValueNoise(
        noise=noise, grid=Fraction(1), steps=1, spread=Fraction(5, 2), guarantee=dps.Guarantee(epsilon=1.0)
    )
    released = plan.release([2] * 4000, SeededBits(5))
    shown = Counter(min(max(value, -4), 8) for value in released.values)
    single = WithValues(OneShot(k=1, epsilon=1.0), plan)
    law = {value: chance for outcome, chance in single.law([2]).items() for _, value in outcome}
    assert distance(shown, law) < 0.08
    assert distance(shown, {value + 1: chance for value, chance in law.items()}) > 0.08


def distance(counts: Counter[float], law: dict[float, float]) -> float:
    total = counts.total()
    return sum(abs(counts[value] / total - law.get(value, 0.0)) for value in {*counts, *law}) / 2


@pytest.mark.slow
@pytest.mark.parametrize("delta", [0.0, 1e-6], ids=["laplace", "gaussian"])
def test_intervals_hold_the_score_as_often_as_they_say(delta: float) -> None:
    """400 draws; five standard deviations below the confidence have a probability below 1e-6."""
    confidence = 0.8
    noise = value_noise(k=400, epsilon=20.0, delta=delta, sensitivity=dps.COUNTS)
    released = noise.release([1000] * 400, SeededBits(6), confidence=confidence)
    held = sum(low <= 1000 <= high for low, high in released.intervals) / 400
    deviation = math.sqrt(confidence * (1 - confidence) / 400)
    assert held >= confidence - 5 * deviation
    assert held <= confidence + 0.05 + 5 * deviation
    assert all(high - low == 2 * noise.half_width(confidence) for low, high in released.intervals)


def test_counts_give_whole_numbers_and_other_scores_floats_whatever_the_scores() -> None:
    """The kind of number follows from the sensitivity, which is public, not from the scores."""
    for scores in (np.array([10, 20]), [2.5, 3], [Fraction(1, 3), 2]):
        counted, real = noisy(scores), noisy(scores, BOTH_WAYS)
        assert all(type(number) is int for number in (*counted.values, *counted.intervals[0]))
        assert all(type(number) is float for number in (*real.values, *real.intervals[0]))
        assert all(low < value < high for value, (low, high) in zip(real.values, real.intervals, strict=True))


def test_an_interval_of_counts_is_about_the_rounded_score() -> None:
    """Noise other than 0 has a probability of about 2 exp(−200)."""
    released = noisy([0.5, 2.4], epsilon=400.0)
    assert released.values == [1, 2]
    assert released.intervals == [(1, 1), (2, 2)]


@pytest.mark.parametrize("sensitivity", [dps.COUNTS, BOTH_WAYS], ids=["counts", "both-ways"])
@pytest.mark.parametrize("scores", [[10**400, -(10**400)], [1e300, -1e300], []], ids=["huge-int", "huge-float", "none"])
def test_scores_of_any_size_are_near_their_values(scores: list[float], sensitivity: dps.Sensitivity) -> None:
    """Noise beyond 10^9 of scale 2 has a probability below e^-10^8; a float of 1e300 is exact to 1e284."""
    released = noisy(scores, sensitivity)
    assert len(released.values) == len(scores)
    for value, score in zip(released.values, scores, strict=True):
        assert abs(Fraction(value) - Fraction(score)) <= 10**9 + abs(Fraction(score)) / 2**52
    json.dumps(released.values)
    json.dumps(released.intervals)


@pytest.mark.parametrize(
    "change", [{"k": 0}, {"epsilon": 0.0}, {"delta": 1.0}, {"sensitivity": 1}, {"max_items_per_person": 0}], ids=str
)
def test_bad_arguments_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(dps.InvalidInput) as caught:
        value_noise(**{"k": 2, "epsilon": 1.0, "sensitivity": dps.COUNTS, **change})
    assert [caught.value.argument] == list(change)


def test_a_release_shows_values_and_intervals_as_plain_data() -> None:
    released = noisy([90, 80], epsilon=0.5)
    mechanism = OneShot(k=2, epsilon=0.5)
    release = dps.Release(
        items=["tea", "coffee"],
        ordered=False,
        guarantee=dps.Guarantee(epsilon=1.0),
        mechanism=mechanism,
        secure=False,
        values=released.values,
        intervals=released.intervals,
        confidence=released.confidence,
    )
    data = json.loads(json.dumps(release.to_dict()))
    assert data["values"] == released.values
    assert data["intervals"] == [list(interval) for interval in released.intervals]
    assert data["confidence"] == 0.95
