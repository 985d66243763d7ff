"""Signals keep their guarantee for all positions, on the grid and between its points, and follow their law."""

from __future__ import annotations

import math
import sys
from collections import Counter
from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpselect as dps
from dpselect.multiselect.grid import DistanceGuarantee, GridNoise
from dpselect.sampling import SeededBits
from dpselect.verify import check_privacy, check_sampler
from dpselect.verify.signals import PAIRS, SAMPLES, Signals

POSITIONS = [Fraction(number, 16) for number in range(-40, 41)]
LOW, HIGH = -20, 20


@pytest.mark.parametrize(("epsilon", "step"), [(1.0, 0.5), (0.3, 0.75), (4.0, 0.25), (0.1, 0.3)], ids=str)
def test_the_worst_loss_of_all_pairs_of_positions_is_what_is_claimed(epsilon: float, step: float) -> None:
    """Each pair against the claim for its own distance; some pair meets it, so that nothing less could be claimed."""
    noise = GridNoise(epsilon, step)
    laws = {value: noise.law(value, LOW, HIGH) for value in POSITIONS}
    headroom = math.inf
    for here, there in product(POSITIONS, repeat=2):
        claim = noise.guarantee.loss(abs(here - there))
        worst = max(abs(math.log(laws[here][place] / laws[there][place])) for place in laws[here])
        assert worst <= claim + 1e-12
        if here != there:
            headroom = min(headroom, claim - worst)
    assert headroom < 1e-12


@pytest.mark.parametrize(("epsilon", "step"), [(1.0, 0.5), (2.0, 0.01), (700.0, 1.0)])
def test_a_law_adds_up_to_one_and_is_the_stated_formula(epsilon: float, step: float) -> None:
    noise = GridNoise(epsilon, step)
    law = noise.law(0, -2000, 2000)
    assert math.fsum(law.values()) == pytest.approx(1, abs=1e-12)
    ratio = math.exp(-epsilon * step)
    for place in (-7, 0, 1, 12):
        assert law[place] == pytest.approx((1 - ratio) / (1 + ratio) * ratio ** abs(place), rel=1e-11)


def test_probabilities_beyond_an_end_are_counted_there() -> None:
    noise = GridNoise(1.0, 0.5)
    wide, narrow = noise.law(3, -200, 200), noise.law(3, 2, 9)
    assert narrow[2] == pytest.approx(math.fsum(chance for place, chance in wide.items() if place <= 2))
    assert narrow[9] == pytest.approx(math.fsum(chance for place, chance in wide.items() if place >= 9))
    assert noise.law(3, 7, 9)[7] == pytest.approx(math.fsum(chance for place, chance in wide.items() if place <= 7))


@given(value=st.fractions(-50, 50), distance=st.fractions(0, 5), step=st.sampled_from([0.5, 0.1, 0.75, 3.0]))
def test_rounding_moves_no_further_than_the_distance_in_whole_steps(
    value: Fraction, distance: Fraction, step: float
) -> None:
    noise = GridNoise(1.0, step)
    moved = noise.nearest(value + distance) - noise.nearest(value)
    assert 0 <= moved <= math.ceil(distance / Fraction(step))
    assert abs(noise.nearest(value) * Fraction(step) - value) <= Fraction(step) / 2


def test_draws_follow_the_law() -> None:
    """6000 draws stray by 0.06 in total variation with a probability below 1e-6; a tenth more noise exceeds that."""
    noise, bits = GridNoise(2.0, 0.125), SeededBits(4)
    drawn = Counter(min(max(noise.draw(3, bits), -30), 36) for _ in range(6000))
    assert distance(drawn, noise.law(0.375, -30, 36)) < 0.06
    assert distance(drawn, noise.law(0.5, -30, 36)) > 0.06
    assert distance(drawn, GridNoise(2.8, 0.125).law(0.375, -30, 36)) > 0.06


def distance(counts: Counter[int], law: dict[int, float]) -> float:
    total = counts.total()
    return sum(abs(counts[place] / total - chance) for place, chance in law.items()) / 2


@pytest.mark.parametrize("pair", [pair for pair in PAIRS if isinstance(pair[0], Signals)], ids=str)
def test_clients_keep_their_claim_with_and_without_memory(pair: tuple[object, object]) -> None:
    check = check_privacy(*pair)  # type: ignore[arg-type]
    assert check.passed
    assert check.worst_loss == pytest.approx(check.epsilon)


@pytest.mark.parametrize("sample", SAMPLES, ids=str)
def test_clients_send_what_their_law_says(sample: tuple[object, object]) -> None:
    """Fails by chance once in a million: see verify.sampler."""
    assert check_sampler(*sample, draws=2000).passed  # type: ignore[arg-type]


@pytest.mark.parametrize("epsilon", [1e-300, 1e-3, 0.5, 1.0, 3.0, 1e6, 1e300])
def test_a_grid_is_chosen_that_is_fine_beside_the_noise(epsilon: float) -> None:
    noise = GridNoise(epsilon)
    assert math.frexp(noise.step)[0] == 0.5
    if 1e-200 < epsilon < 1e200:
        assert 1 / 256 <= epsilon * noise.step < 1 / 128


def test_the_guarantee_says_what_it_is() -> None:
    guarantee = GridNoise(0.5, 0.25).guarantee
    assert guarantee == DistanceGuarantee(0.5, 0.25)
    assert str(guarantee).startswith("epsilon = 0.5 per unit of distance: protects one position")
    assert guarantee.loss(2) == 1.0
    assert guarantee.loss(0) == 0.0
    assert guarantee.loss(0.1) == 0.125
    assert guarantee.to_dict()["neighbours"] == "per unit of distance"
    with pytest.raises(dps.InvalidInput, match="distance"):
        guarantee.loss(-1)


@pytest.mark.parametrize("value", [math.nan, math.inf, "12.345", None, True], ids=str)
def test_a_bad_position_is_refused_without_being_shown(value: object) -> None:
    with pytest.raises(dps.InvalidInput) as caught:
        GridNoise(1.0, 1e-6).nearest(value)
    assert caught.value.argument == "value"
    assert str(value).strip("-")[:4] not in str(caught.value).replace("True", "").replace("None", "")


def test_no_finite_position_is_too_far_to_be_rounded() -> None:
    """A refusal beyond some border would show on which side of it the user is."""
    noise = GridNoise(1.0, 2.0**-20)
    for value in (2.0**33, 2.0**33 + 1, -1.5e30, sys.float_info.max):
        assert noise.position(noise.nearest(value)) == value


@pytest.mark.parametrize("epsilon", [0, -1, math.nan, math.inf, "1"])
def test_bad_settings_are_refused(epsilon: float) -> None:
    with pytest.raises(dps.InvalidInput, match="epsilon"):
        GridNoise(epsilon, 1.0)
    with pytest.raises(dps.InvalidInput, match="grid"):
        GridNoise(1.0, epsilon)
