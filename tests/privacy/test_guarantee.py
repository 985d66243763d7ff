"""A guarantee states epsilon, delta and what is protected, in numbers and in words."""

from __future__ import annotations

import json
import math
from dataclasses import FrozenInstanceError
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpselect import COUNTS, Guarantee, InvalidInput
from dpselect.ledger.rules import rule_named
from dpselect.privacy.calibration import unit_sigma
from dpselect.values import value_noise


def test_the_unit_of_protection_is_one_person_added_or_removed() -> None:
    guarantee = Guarantee(epsilon=1.0)
    assert guarantee.to_dict() == {
        "epsilon": 1.0,
        "delta": 0.0,
        "protects": "one person",
        "neighbours": "add or remove",
    }


def test_the_words_state_the_factor_and_delta() -> None:
    words = (
        "epsilon = 1: protects one person with all they contributed; adding or removing them changes the probability "
        "of any answer by a factor of at most 2.72"
    )
    assert str(Guarantee(epsilon=1.0)) == words
    assert str(Guarantee(epsilon=1.0, delta=1e-6)).endswith("2.72, and by at most 1e-06 beyond that")
    assert "one household" in str(Guarantee(1.0, protects="one household", neighbours="change one"))
    assert "(change one)" in str(Guarantee(1.0, protects="one household", neighbours="change one"))
    single = str(Guarantee(1.0, protects="one comparison", neighbours="add or remove, if the promise holds"))
    assert "protects one comparison; if the promise holds, adding or removing it changes" in single


STATED = [
    (Guarantee(0.2), "at most 1.23"),  # e^0.2 = 1.2214
    (Guarantee(1e-12), "at most 1.01e-10 percent"),
    (Guarantee(20.0), "at most 10^9"),  # 4.9e8
    (Guarantee(2100.0), "at most 10^913"),
    (Guarantee(1e300), "at most 10^4.35e+299"),
    (Guarantee(0.12345678), "epsilon = 0.123457:"),
    (Guarantee(1.0, 1.2345671e-7), "delta = 1.23457e-07:"),
    (Guarantee(1.0, 1e-6, rho=0.01231), "(rho = 0.0124)"),
]


def test_the_words_round_every_number_up() -> None:
    for guarantee, stated in STATED:
        assert stated in str(guarantee)


def test_the_words_of_a_pure_guarantee_are_the_same_whatever_else_is_known() -> None:
    assert str(Guarantee(1.0, rho=0.3, ranges=((0.5, 2),))) == str(Guarantee(1.0))


def refused(argument: str, given: object) -> None:
    with pytest.raises(InvalidInput, match=argument):
        Guarantee(**{"epsilon": 1.0, "delta": 0.1, argument: given})


def test_numbers_out_of_their_range_are_refused() -> None:
    for number in (0, -1, math.inf, math.nan, "1", True, 1j, 10**400, np.array([1.0])):
        refused("epsilon", number)
        refused("rho", number)
    refused("epsilon", None)
    for delta in (-1e-9, 1, 2, math.nan, math.inf, "0", None, True, 1j, 1 - Fraction(1, 10**30)):
        refused("delta", delta)


def test_ranges_must_be_pairs_of_a_number_and_a_count() -> None:
    for ranges in ([(0.1, 0)], [(0.1, -1)], [(0, 1)], [(0.1, 1.5)], [0.1], 3, [("a", 1)], "ab"):
        refused("ranges", ranges)


@given(st.fractions(min_value=Fraction(1, 10**6)))
def test_a_claim_of_a_fraction_is_never_rounded_down(epsilon: Fraction) -> None:
    stated = Guarantee(epsilon=epsilon).epsilon
    assert isinstance(stated, float)
    assert Fraction(math.nextafter(stated, 0.0)) < epsilon <= Fraction(stated)


@given(st.fractions(min_value=0, max_value=1 - Fraction(1, 10**6)))
def test_a_claimed_delta_is_never_rounded_down(delta: Fraction) -> None:
    stated = Guarantee(epsilon=1.0, delta=delta).delta
    assert isinstance(stated, float)
    assert delta <= Fraction(stated)
    assert not stated or Fraction(math.nextafter(stated, 0.0)) < delta


@pytest.mark.parametrize("number", [Fraction(1, 3), Decimal("0.1")], ids=str)
def test_totals_and_targets_are_rounded_down_where_claims_are_rounded_up(number: Fraction | Decimal) -> None:
    exact = Fraction(number)
    total = rule_named("basic").total(number, number)
    assert Fraction(total.epsilon) <= exact
    assert Fraction(total.delta) <= exact
    noise = value_noise(k=1, epsilon=number, sensitivity=COUNTS)
    assert Fraction(noise.guarantee.epsilon) <= exact
    assert unit_sigma(number, number) == unit_sigma(total.epsilon, total.delta)
    approximate = value_noise(k=50, epsilon=number, delta=number, sensitivity=COUNTS)
    assert approximate == value_noise(k=50, epsilon=total.epsilon, delta=total.delta, sensitivity=COUNTS)


def test_numbers_of_any_library_become_plain_data() -> None:
    for number in (np.float32(0.5), np.float64(0.5), Fraction(1, 2), Decimal("0.5")):
        guarantee = Guarantee(epsilon=number, delta=number)
        assert json.loads(json.dumps(guarantee.to_dict()))["epsilon"] == 0.5
        assert guarantee == Guarantee(epsilon=0.5, delta=0.5)


def test_a_guarantee_is_a_frozen_value() -> None:
    with pytest.raises(FrozenInstanceError):
        Guarantee(epsilon=1.0).epsilon = 2.0  # type: ignore[misc]
    assert len({Guarantee(epsilon=1), Guarantee(epsilon=1.0), Guarantee(epsilon=2)}) == 2


def test_a_zcdp_guarantee_states_an_epsilon_for_the_delta_asked_for() -> None:
    guarantee = Guarantee.zcdp(0.02, delta=1e-6)
    # min over α of 0.02 α + log(1 − 1/α) + log(1e6/α)/(α − 1), to six digits
    assert guarantee.epsilon == pytest.approx(0.899935, abs=5e-7)
    assert (guarantee.delta, guarantee.rho) == (1e-6, 0.02)
    assert guarantee.to_approximate(1e-9).epsilon == Guarantee.zcdp(0.02, delta=1e-9).epsilon > guarantee.epsilon
    assert guarantee.epsilon < 0.02 + 2 * math.sqrt(0.02 * math.log(1e6))


@pytest.mark.slow
@given(st.floats(1e-6, 1e3), st.floats(1e-12, 0.9))
def test_the_tight_conversion_never_exceeds_the_simple_one(rho: float, delta: float) -> None:
    """ρ + 2 √(ρ log(1/δ)), Bun and Steinke."""
    simple = rho + 2 * math.sqrt(rho * math.log(1 / delta))
    assert Guarantee.zcdp(rho, delta=delta).epsilon <= simple * (1 + 1e-9)


@given(st.floats(0.05, 5), st.floats(1e-9, 0.2))
def test_a_gaussian_with_this_rho_keeps_what_is_stated(rho: float, delta: float) -> None:
    """N(0, 1) against N(m, 1) is m²/2-zCDP, with the hockey-stick divergence Φ(m/2 − ε/m) − e^ε Φ(−m/2 − ε/m)."""
    epsilon, shift = Guarantee.zcdp(rho, delta=delta).epsilon, math.sqrt(2 * rho)

    def below(value: float) -> float:
        return math.erfc(-value / math.sqrt(2)) / 2

    exact = below(shift / 2 - epsilon / shift) - math.exp(epsilon) * below(-shift / 2 - epsilon / shift)
    assert exact <= delta


def test_what_follows_for_composition() -> None:
    assert Guarantee(0.5).known_rho == Fraction(1, 8)
    assert Guarantee(4.0).known_rho == 4
    assert Guarantee.bounded_range(0.5, rounds=2).known_rho == Fraction(1, 16)
    assert Guarantee(0.5, 1e-6).known_rho is None
    assert Guarantee(0.5).known_ranges == ((1.0, 1),)
    assert Guarantee.bounded_range(0.5, rounds=2).epsilon == 1.0
    assert Guarantee.zcdp(0.1, delta=0.1).known_ranges == ()


def test_a_pure_guarantee_has_a_smaller_epsilon_for_a_delta_when_its_loss_is_concentrated() -> None:
    rounds = Guarantee.bounded_range(0.1, rounds=100)
    assert rounds.epsilon == pytest.approx(10)
    assert rounds.to_approximate(1e-6).epsilon == Guarantee.zcdp(0.125, delta=1e-6).epsilon < 3
    assert Guarantee(0.5).to_approximate(1e-6).epsilon == 0.5


def test_a_delta_below_what_is_known_is_refused() -> None:
    assert Guarantee(0.5, 1e-6).to_approximate(1e-3).epsilon == 0.5
    with pytest.raises(InvalidInput, match="at least 1e-06"):
        Guarantee(0.5, 1e-6).to_approximate(1e-9)
    with pytest.raises(InvalidInput, match="above 0"):
        Guarantee.zcdp(0.5, delta=0.0)
    with pytest.raises(InvalidInput, match="above 0"):
        Guarantee(1.0).to_approximate(0)


def test_plain_data_carries_what_is_known_and_rebuilds_the_guarantee() -> None:
    for guarantee in (Guarantee.zcdp(0.1, delta=1e-6), Guarantee.bounded_range(0.1, rounds=7), Guarantee(1.0, 0.1)):
        assert Guarantee(**json.loads(json.dumps(guarantee.to_dict()))) == guarantee
    assert Guarantee.bounded_range(0.1, rounds=7).to_dict()["ranges"] == [[0.1, 7]]
    assert "rho = 0.1" in str(Guarantee.zcdp(0.1, delta=1e-6))


def test_equal_ranges_merge() -> None:
    assert Guarantee(1.0, ranges=[(0.2, 1), (0.1, 2), (0.2, 3)]).ranges == ((0.1, 2), (0.2, 4))  # type: ignore[arg-type]


@pytest.mark.slow
@given(st.fractions(min_value=Fraction(1, 10**6), max_value=10**6))
def test_rho_is_never_rounded_down(rho: Fraction) -> None:
    stated = Guarantee(1.0, 0.1, rho=rho).rho  # type: ignore[arg-type]
    assert stated is not None
    assert Fraction(stated) >= rho > Fraction(math.nextafter(stated, 0))
