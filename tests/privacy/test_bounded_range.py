"""Optimal composition of bounded range: no rounds need a larger δ, hardly any smaller one would do."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest

import dpselect as dps
from dpselect._arrays import FloatArray
from dpselect.privacy import compose
from dpselect.privacy.bounded_range import MOST_WORK, Grid, epsilon_of_equal_rounds
from dpselect.privacy.calibration import range_per_round
from dpselect.privacy.composition import epsilon_of_rounds, simple_epsilon_of_rounds
from dpselect.privacy.conversion import largest_rho
from dpselect.sampling.balls import ball, working_precision
from dpselect.verify.calibration import composed_delta


def bound(epsilon: float, width: float, rounds: int) -> float:
    """Return the δ that is stated for ε."""
    return float(Grid.of(width, rounds, epsilon).deltas(epsilon)[0])


class OnlySteps(Grid):
    """The worst rounds of those on the grid: a lower bound."""

    def worst(self, up: FloatArray, down: FloatArray) -> FloatArray:
        rise, fall, _ = self._weights
        return np.max(rise * up + fall * down, axis=0)


def divergence(one: Any, other: Any, epsilon: float) -> float:
    """Return the least δ for ε of two laws, in the worse direction."""
    return max(
        float(np.maximum(0, first - math.exp(epsilon) * second).sum()) for first, second in ((one, other), (other, one))
    )


@pytest.mark.parametrize(("items", "k"), [(4, 2), (4, 3), (3, 3)])
def test_enumerated_peelings_never_need_more(items: int, k: int) -> None:
    """All neighbours of {0, 1, 2}^items, one person in any set of items."""
    highest = 0.0
    for width in (0.2, 1.0):
        mechanism = dps.Peeling(k=k, epsilon=k * width, noise="gumbel")
        table = {scores: mechanism.law(scores) for scores in product(range(4), repeat=items)}
        laws = {scores: np.array([law[key] for key in sorted(law)]) for scores, law in table.items()}
        for share in (0.1, 0.4, 0.7):
            epsilon = share * k * width
            needed = max(
                divergence(laws[scores], laws[tuple(map(sum, zip(scores, move, strict=True)))], epsilon)
                for scores in product(range(3), repeat=items)
                for move in product((0, 1), repeat=items)
            )
            assert needed <= bound(epsilon, width, k)
            highest = max(highest, needed / bound(epsilon, width, k))
    assert highest > 0.5


@pytest.mark.slow
@pytest.mark.parametrize("rounds", [2, 3, 5])
def test_random_adaptive_rounds_never_need_more(rounds: int) -> None:
    """Rounds of two and of three answers, chosen anew after every history; both directions."""
    generator = np.random.default_rng(rounds)
    highest = 0.0
    for _ in range(150):
        width, answers = float(generator.choice([0.1, 0.7, 3.0])), int(generator.integers(2, 4))
        one, other = np.ones(1), np.ones(1)
        for _ in range(rounds):
            t = width * generator.beta(2, 2, (len(one), 1))
            losses = np.concatenate([t, t - width, t - width * generator.random((len(one), answers - 2))], axis=1)
            # Weights of the reversed law that make the first one sum to 1: the ends balance what lies between them.
            inner = generator.random((len(one), answers - 2)) / 4
            total, ratio = 1 - inner.sum(axis=1), 1 - (inner * np.exp(losses[:, 2:])).sum(axis=1)
            high, low = np.exp(losses[:, 0]), np.exp(losses[:, 1])
            first = (ratio - total * low) / (high - low)
            kept = (first >= 0) & (first <= total)
            inner = inner * kept[:, None]
            first = np.where(kept, first, (1 - low) / (high - low))
            reverse = np.column_stack([first, 1 - inner.sum(axis=1) - first, inner])
            one, other = (one[:, None] * reverse * np.exp(losses)).ravel(), (other[:, None] * reverse).ravel()
        assert one.sum() == pytest.approx(1)
        epsilon = rounds * width * generator.uniform(0.1, 0.9)
        used = divergence(one, other, epsilon) / bound(epsilon, width, rounds)
        assert used <= 1
        highest = max(highest, used)
    assert highest > 0.5


def test_one_round_needs_what_the_formula_says() -> None:
    """The worst t is (ε + r)/2: `δ = (1 − e^{−(r−ε)/2})² / (1 − e^{−r})`."""
    for epsilon, width in ((0.1, 0.2), (0.5, 2.0), (3.0, 4.0), (1e-9, 1e-8)):
        exact = math.expm1((epsilon - width) / 2) ** 2 / -math.expm1(-width)
        assert exact <= bound(epsilon, width, 1) <= 1.001 * exact


@pytest.mark.parametrize(("epsilon", "width", "rounds"), [(1.0, 0.05, 100), (1.5, 0.1, 100), (2.0, 0.3, 30)])
def test_independent_rounds_need_nearly_as_much(epsilon: float, width: float, rounds: int) -> None:
    """The closed form of Dong, Durfee and Rogers for one t in all rounds, a sum of binomial probabilities."""
    assert 0.8 < composed_delta(epsilon, width, rounds) / bound(epsilon, width, rounds) <= 1


@pytest.mark.parametrize(("epsilon", "width", "rounds"), [(0.05, 0.03, 4), (1.0, 0.5, 5), (20.0, 6.0, 7)])
def test_floating_point_never_understates_the_recursion(epsilon: float, width: float, rounds: int) -> None:
    """The same recursion in ball arithmetic, with its parabolas at 33 points."""
    grid = Grid(width, rounds, 4, 4 * rounds, 8 * rounds)
    with working_precision(256):
        r = ball(width)
        step = r / 4
        fall = [(step * i).expm1() / r.expm1() for i in range(5)]

        def worst(left: int, place: int) -> Any:
            if (left, place) not in known:
                known[left, place] = value(left, place)
            return known[left, place]

        def value(left: int, place: int) -> Any:
            if not left:
                return -(ball(epsilon) - step * place).expm1() if place * width / 4 > epsilon else ball(0)
            up, down = ([worst(left - 1, place + i - shift) for i in range(5)] for shift in (0, 4))
            steps = [(1 - q) * high + q * low for q, high, low in zip(fall, up, down, strict=True)]
            found = steps[0]
            for i in range(4):
                bend = (fall[i + 1] - fall[i]) * (step.exp() * (up[i + 1] - down[i + 1]) - (up[i] - down[i]))
                for parts in range(33):
                    x = ball(Fraction(parts, 32))
                    parabola = steps[i] + x * (steps[i + 1] - steps[i]) + x * (1 - x) * bend
                    found = parabola if parabola > found else found
            return min(found, ball(1))

        known: dict[tuple[int, int], Any] = {}
        exact = [float(worst(rounds, place)) for place in range(3)]
    ratios = grid.deltas(epsilon)[:3] / exact
    assert np.all(ratios >= 1)
    assert np.all(ratios < 1.003)


@pytest.mark.parametrize("delta", [1e-12, 1e-6, 0.01])
@pytest.mark.parametrize(("epsilon", "k"), [(0.1, 20), (1.0, 100), (5.0, 50)])
def test_less_than_half_a_percent_is_lost(epsilon: float, k: int, delta: float) -> None:
    """Half a percent more would be too much even for the rounds on a finer grid."""
    width = float(range_per_round(epsilon, delta, k)) * 1.005
    grid = Grid.of(width, k, epsilon)
    fine = OnlySteps(width, k, 48, grid.low // grid.steps * 48, grid.high // grid.steps * 48)
    assert bound(epsilon, width / 1.005, k) < delta * 1.05
    assert fine.deltas(epsilon)[0] > delta


def test_the_bound_grows_with_the_range_and_the_rounds_and_falls_with_epsilon() -> None:
    for wider in ([bound(1.0, width, 20) for width in np.linspace(0.06, 1.0, 40)],
                  [bound(1.0, 0.1, rounds) for rounds in range(11, 60)],
                  [bound(epsilon, 0.1, 20) for epsilon in np.linspace(1.9, 0.01, 40)]):  # fmt: skip
        assert all(0 < low < high for low, high in pairwise(wider))


@pytest.mark.parametrize(("delta", "least", "most"), [(1e-6, 1.07, 1.10), (1e-12, 1.04, 1.055)])
def test_rounds_gain_on_the_zcdp_route(delta: float, least: float, most: float) -> None:
    for epsilon in (0.03, 0.1, 1.0):
        by_rho = math.sqrt(8 * largest_rho(epsilon, delta) / 100)
        assert least < float(range_per_round(epsilon, delta, 100)) / by_rho < most


@pytest.mark.parametrize("k", [1, 2, 40, 100_000])
def test_at_the_extremes_the_result_is_finite_and_no_worse_than_formulas(k: int) -> None:
    for epsilon, delta in product((1e-6, 0.5, 50.0), (1e-300, 1e-12, 0.5)):
        width = range_per_round(epsilon, delta, k)
        assert width >= Fraction(epsilon) / k
        assert simple_epsilon_of_rounds(((float(width) * (1 + 1e-12), k),), Fraction(delta)) > epsilon


def test_what_takes_too_long_or_gains_too_little_keeps_the_known_epsilon() -> None:
    assert Grid.of(0.01, 10_000, 1.0).work > MOST_WORK
    slow, little, others = (
        [(0.01, 10_000, 1e-6), (0.01, 10**9, 1e-6)],
        [(0.5, 2, 1e-6)],
        [(99.0, 3, 0.1), (1.0, 9, 0.0)],
    )
    for width, rounds, delta in slow + little + others:
        assert epsilon_of_equal_rounds(width, rounds, delta, 7.25) == 7.25
    known = simple_epsilon_of_rounds(((0.05, 100),), Fraction(1e-6))
    assert 1 < epsilon_of_equal_rounds(0.05, 100, 1e-6, known) < 0.95 * known


def test_a_release_never_counts_for_more_than_it_states_and_several_count_for_less() -> None:
    one = dps.Peeling(k=50, epsilon=0.5, delta=1e-6, noise="gumbel").guarantee
    assert 0.4999 < compose([one]).epsilon <= one.epsilon == 0.5
    [(width, rounds)] = one.ranges
    assert 0.4999 < epsilon_of_rounds(((width, rounds),), Fraction(1e-6)) <= 0.5
    four = compose([one] * 4)
    assert four.delta == 4e-6
    assert 0.9 < four.epsilon < 1.1
    assert bound(four.epsilon, width, 200) <= 4e-6
    mixed = compose([one, one, dps.Guarantee(0.25), dps.Guarantee.bounded_range(0.125)], delta=4e-6)
    assert mixed.epsilon == pytest.approx(compose([one] * 2, delta=4e-6).epsilon + 0.375, rel=1e-9)
