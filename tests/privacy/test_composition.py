"""What is added up always holds: against another program, and against all ways of composing small mechanisms."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from typing import Any

import dp_accounting
import numpy as np
import pytest
from dp_accounting.pld import pld_privacy_accountant
from dp_accounting.rdp import rdp_privacy_accountant
from hypothesis import given
from hypothesis import strategies as st

from dpselect import Guarantee, InvalidInput
from dpselect._arrays import FloatArray
from dpselect.privacy import compose
from dpselect.privacy.conversion import epsilon_of_ranges, mean_of_range
from dpselect.sampling.laws import single_law
from dpselect.sampling.noise import NOISES

Pair = tuple[FloatArray, FloatArray]

ROUNDING = 1e-12
"""What a divergence computed in floating point may be off by; it matters where the cost is pure and met exactly."""

epsilons = st.floats(1e-3, 5.0)


def pairs_of(noise: str, rate: float, items: int) -> list[Pair]:
    """Return the laws of the one-item mechanism on all neighbours of {0, 1}^items, in both directions, each once."""
    laws = {
        scores: np.asarray(single_law([rate * score for score in scores], NOISES[noise]), dtype=float)
        for scores in product((0, 1, 2), repeat=items)
    }
    found: dict[tuple[float, ...], Pair] = {}
    for scores in product((0, 1), repeat=items):
        for move in product((0, 1), repeat=items):
            moved = tuple(score + step for score, step in zip(scores, move, strict=True))
            for one, other in ((laws[scores], laws[moved]), (laws[moved], laws[scores])):
                found[tuple(np.round(sorted(zip(one, other, strict=True)), 12).ravel())] = (one, other)
    return list(found.values())


def adaptive_divergence(pairs: Sequence[Pair], rounds: int, epsilon: float) -> float:
    """Return the least δ for ε of `rounds` rounds, each chosen in view of earlier answers so as to harm most.

    `F_0(s) = max(0, 1 − e^{ε − s})`, `F_n(s) = max over pairs of Σ_y P(y) F_{n−1}(s + log P(y)/P'(y))`; δ is F(0).
    """

    def worst(left: int, spent: FloatArray) -> FloatArray:
        if not left:
            return np.maximum(0.0, -np.expm1(epsilon - spent))
        best = np.zeros_like(spent)
        for one, other in pairs:
            losses = np.log(one) - np.log(other)
            after = worst(left - 1, spent[..., None] + losses)
            best = np.maximum(best, after @ one)
        return best

    return float(worst(rounds, np.zeros(1))[0])


@pytest.mark.slow
@pytest.mark.parametrize("delta", [1e-3, 0.05])
@pytest.mark.parametrize(("width", "items", "rounds"), [(0.1, 2, 5), (0.5, 3, 3), (2.0, 2, 2)])
def test_rounds_of_the_exponential_mechanism_keep_what_is_composed(
    width: float, items: int, rounds: int, delta: float
) -> None:
    pairs = pairs_of("gumbel", width, items)
    for route in ("least", "zcdp", "ranges"):
        total = compose([Guarantee.bounded_range(width)] * rounds, delta=delta, route=route)
        assert adaptive_divergence(pairs, rounds, total.epsilon) <= total.delta + ROUNDING


@pytest.mark.slow
@pytest.mark.parametrize("delta", [1e-3, 0.05])
@pytest.mark.parametrize(("epsilon", "items", "rounds"), [(0.1, 2, 5), (0.5, 3, 3), (2.0, 2, 2)])
def test_rounds_of_permute_and_flip_keep_what_is_composed_from_pure_parts(
    epsilon: float, items: int, rounds: int, delta: float
) -> None:
    pairs = pairs_of("exponential", epsilon, items)
    for route in ("least", "zcdp", "ranges"):
        total = compose([Guarantee(epsilon)] * rounds, delta=delta, route=route)
        assert adaptive_divergence(pairs, rounds, total.epsilon) <= total.delta + ROUNDING


def test_permute_and_flip_has_not_the_range_of_the_exponential_mechanism() -> None:
    """The classical mistake; 8 rounds of 0.4 on the same two neighbours show it."""
    total = compose([Guarantee.bounded_range(0.4)] * 8, delta=0.05)

    def worst(noise: str) -> float:
        return max(adaptive_divergence([pair], 8, total.epsilon) for pair in pairs_of(noise, 0.4, 2))

    assert worst("gumbel") <= total.delta == 0.05
    assert worst("exponential") > 0.05


def test_different_parts_keep_what_is_composed() -> None:
    """One pure part, one of bounded range, and a randomised response that fails with probability 0.02."""
    pure, ranged = pairs_of("exponential", 0.5, 2), pairs_of("gumbel", 1.0, 2)
    leaky: Pair = (np.array([0.02, 0.98 * 0.6, 0.98 * 0.4, 1e-300]), np.array([1e-300, 0.98 * 0.4, 0.98 * 0.6, 0.02]))
    parts = [Guarantee(0.5), Guarantee.bounded_range(1.0), Guarantee(math.log(1.5) + 1e-12, 0.02)]
    total = compose(parts, delta=0.1)
    worst = max(
        float(np.maximum(0, one - math.exp(total.epsilon) * other).sum())
        for first, second in product(pure, ranged)
        for one, other in [
            (
                np.multiply.outer(np.multiply.outer(first[0], second[0]), leaky[0]),
                np.multiply.outer(np.multiply.outer(first[1], second[1]), leaky[1]),
            )
        ]
    )
    assert 0 < worst <= total.delta == 0.1


@pytest.mark.parametrize(("rho", "delta"), [(1e-4, 0.05), (0.01, 1e-6), (5.0, 1e-9)])
def test_zcdp_converts_as_in_dp_accounting(rho: float, delta: float) -> None:
    """That program minimises over orders on a grid; on a fine one both agree to a relative 1e-5."""
    accountant = rdp_privacy_accountant.RdpAccountant(orders=(1 + np.exp(np.linspace(-7, 11, 4001))).tolist())
    accountant.compose(dp_accounting.ZCDpEvent(rho), 4)
    ours = compose([Guarantee.zcdp(rho, delta=delta)] * 4, delta=delta, route="zcdp").epsilon
    theirs = accountant.get_epsilon(delta)
    if theirs == 0:
        assert ours < 1e-300
    else:
        assert ours == pytest.approx(theirs, rel=1e-5)


@pytest.mark.parametrize(("epsilon", "count"), [(0.05, 100), (0.3, 10), (1.0, 1)])
def test_pure_parts_never_cost_less_than_randomised_response_or_laplace_noise_do(epsilon: float, count: int) -> None:
    """The tight cost of both, by numerical convolution, which rounds up on a grid of 1e-4."""
    ours = compose([Guarantee(epsilon)] * count, delta=1e-5).epsilon
    chance = 2 / (math.exp(epsilon) + 1)
    for event in (dp_accounting.RandomizedResponseDpEvent(chance, 2), dp_accounting.LaplaceDpEvent(1 / epsilon)):
        accountant = pld_privacy_accountant.PLDAccountant(
            dp_accounting.NeighboringRelation.REPLACE_ONE
            if isinstance(event, dp_accounting.RandomizedResponseDpEvent)
            else dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE
        )
        accountant.compose(event, count)
        assert accountant.get_epsilon(1e-5) <= ours + 2e-4


@pytest.mark.slow
@given(st.lists(epsilons, min_size=1, max_size=8), st.sampled_from([1e-6, 0.01]))
def test_no_route_beats_least_and_each_is_rounded_up(sizes: list[float], delta: float) -> None:
    parts = [Guarantee(size) if size > 1 else Guarantee.bounded_range(size) for size in sizes]
    least = compose(parts, delta=delta)
    exact = sum(map(Fraction, sizes), Fraction())
    assert Fraction(compose(parts, route="basic").epsilon) >= exact
    for route in ("basic", "zcdp", "ranges"):
        assert least.epsilon <= compose(parts, delta=delta, route=route).epsilon


def test_rounds_cost_the_formulas_of_the_page() -> None:
    widths, rounds, delta = (0.1, 0.11), 100, 1e-6
    ratios = [width / (1 - math.exp(-width)) for width in widths]
    squares = rounds * sum(width**2 for width in widths)
    written = rounds * sum(ratio - 1 - math.log(ratio) for ratio in ratios) + math.sqrt(squares / 2 * -math.log(delta))
    parts = [Guarantee.bounded_range(width) for width in widths for _ in range(rounds)]
    assert compose(parts, delta=delta, route="ranges").epsilon == pytest.approx(written, rel=1e-12)
    by_rho = Guarantee.zcdp(squares / 8, delta=delta).epsilon
    assert compose(parts, delta=delta, route="zcdp").epsilon == pytest.approx(by_rho, rel=1e-12)
    assert compose(parts, delta=delta).epsilon == pytest.approx(min(written, by_rho), rel=1e-12)
    assert compose(parts, delta=delta, route="basic").epsilon == pytest.approx(21.0)
    equal = [Guarantee.bounded_range(max(widths))] * 2 * rounds
    assert compose(equal, delta=delta).epsilon == compose(equal, delta=delta, route="ranges").epsilon < by_rho


def test_tiny_and_huge_ranges_are_bounded_without_cancellation() -> None:
    assert float(mean_of_range(Fraction(1e-9))) == pytest.approx(1e-18 / 8, rel=1e-6)
    assert float(mean_of_range(Fraction(10**200))) == pytest.approx(1e200)
    assert epsilon_of_ranges(Fraction(1), Fraction(1), Fraction(0)) == math.inf


def test_a_large_part_among_small_ones_is_added_plainly() -> None:
    small = [Guarantee.bounded_range(0.01)] * 1000
    total = compose([*small, Guarantee(2.0)], delta=1e-6)
    assert total.epsilon == pytest.approx(compose(small, delta=1e-6).epsilon + 2.0)
    assert total.epsilon < compose([*small, Guarantee(2.0)], delta=1e-6, route="zcdp").epsilon


def test_approximate_parts_use_up_their_own_delta() -> None:
    small = [Guarantee.bounded_range(0.01)] * 1000
    total = compose([*small, Guarantee(0.5, 4e-7)], delta=1e-6)
    assert total.delta == 1e-6
    assert total.epsilon == pytest.approx(compose(small, delta=6e-7).epsilon + 0.5, rel=1e-9)
    assert total.rho is None
    assert total.ranges == ()


def test_the_whole_carries_what_all_parts_carry() -> None:
    first, second = Guarantee.bounded_range(0.1, rounds=3), Guarantee.bounded_range(0.2)
    total = compose([first, second, first])
    assert total.ranges == ((0.1, 6), (0.2, 1))
    assert total.rho == pytest.approx((6 * 0.01 + 0.04) / 8)
    nested = compose([compose([first, second], delta=1e-6), first], delta=1e-6)
    assert nested.epsilon == compose([first, second, first], delta=1e-6).epsilon


def test_without_a_delta_the_parts_determine_it() -> None:
    assert compose([Guarantee(0.5), Guarantee(0.25)]).delta == 0
    total = compose([Guarantee(0.1, 1e-7)] * 3)
    assert Fraction(total.delta) >= 3 * Fraction(1e-7)
    assert total.delta == pytest.approx(3e-7)
    assert Fraction(total.epsilon) >= 3 * Fraction(0.1)


def test_an_unused_delta_is_not_claimed() -> None:
    assert compose([Guarantee(0.5)] * 2, delta=1e-6).delta == 0


REFUSED: list[tuple[list[Any], dict[str, Any], str, str]] = [
    ([], {}, "guarantees", "at least one"),
    ([Guarantee(1.0), 0.5], {}, "guarantees", "part 2"),
    ([Guarantee(1.0), Guarantee(1.0, protects="one visit")], {}, "guarantees", "one visit"),
    ([Guarantee(1.0), Guarantee(1.0, neighbours="replace")], {}, "guarantees", "'replace'"),
    ([Guarantee(1.0, 1e-6)], {"delta": 1e-7}, "delta", "at least 1e-06"),
    ([Guarantee(1.0, 1e-6)], {"route": "zcdp"}, "guarantees", "epsilon 1, delta 1e-06"),
    ([Guarantee(1.0, 1e-6)], {"route": "ranges"}, "guarantees", "epsilon 1, delta 1e-06"),
    ([Guarantee(1.0)], {"route": "zcdp"}, "delta", "above 0"),
    ([Guarantee(1.0)], {"route": "optimal"}, "route", "least, basic, zcdp, ranges"),
    ([Guarantee(1.0, 0.6)] * 2, {}, "guarantees", "less than 1"),
    ([Guarantee(1.0)], {"delta": 1.5}, "delta", "below 1"),
    ([Guarantee(1.7e308)] * 2, {}, "guarantees", "smaller"),
    ([Guarantee(1.7e308)] * 2, {"delta": 1e-6}, "guarantees", "smaller"),
    ([Guarantee(8e307)] * 3, {"delta": 1e-6}, "guarantees", "smaller"),
]


def test_what_cannot_be_added_is_refused_by_name() -> None:
    for parts, keywords, argument, says in REFUSED:
        with pytest.raises(InvalidInput, match=says) as caught:
            compose(parts, **keywords)
        assert caught.value.argument == argument


def test_a_part_with_rho_may_be_restated_for_a_smaller_delta() -> None:
    part = Guarantee.zcdp(0.01, delta=1e-3)
    total = compose([part], delta=1e-6)
    assert total.epsilon == Guarantee.zcdp(0.01, delta=1e-6).epsilon > part.epsilon
