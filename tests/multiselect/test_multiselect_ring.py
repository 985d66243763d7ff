"""The ring: private between all pairs of places, no private noise costs less, and signals follow their law."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.integrate import quad
from scipy.optimize import linprog, minimize
from scipy.stats import chi2

import dpselect as dps
from dpselect.multiselect import Ring, laplace_ring, optimal_ring
from dpselect.multiselect.ring import _all_answers, _constraints, best_noise, lipschitz, steps_between
from dpselect.sampling import bit_source

RINGS = {
    "two peaks": optimal_ring(2, 3 / 8, places=24),
    "squares": optimal_ring(3, 2.0, places=15, circumference=10.0, disutility="square"),
    "laplace": laplace_ring(2, 1.0, places=16),
    "irregular": Ring(epsilon=1.0, heights=(0, 1, 1, 2, 1, 0, 1), answers=(0, 3)),
}
RING = RINGS["two peaks"]
HALF = math.pi


def worst_excess(laws: list[np.ndarray], epsilon: float, step: float) -> float:
    """Return the most by which the loss between two places exceeds ε times their distance, over all pairs."""
    size = len(laws)
    return max(
        float(np.abs(np.log(laws[u] / laws[v])).max()) - epsilon * step * int(steps_between(size, [u])[v])
        for u, v in combinations(range(size), 2)
    )


def laws_of(noise: np.ndarray) -> list[np.ndarray]:
    """Return the probabilities of all signals, for a user at each place."""
    return [np.roll(noise[::-1], place + 1) for place in range(len(noise))]


@pytest.mark.parametrize("name", RINGS)
def test_no_signal_costs_more_than_epsilon_per_unit_of_distance(name: str) -> None:
    ring = RINGS[name]
    laws = [np.array([ring.law(u)[s] for s in range(ring.places)]) for u in range(ring.places)]
    assert np.allclose([law.sum() for law in laws], 1)
    assert np.allclose(laws, laws_of(ring.noise))
    assert worst_excess(laws, ring.epsilon, ring.step) <= 1e-12
    for u, v in combinations(range(ring.places), 2):
        apart = int(steps_between(ring.places, [u])[v])
        for s in range(ring.places):
            change = ring.heights[(u - s) % ring.places] - ring.heights[(v - s) % ring.places]
            assert abs(change) <= apart, "the same with whole numbers, without any rounding"


def test_positions_between_places_lose_at_most_the_guarantee() -> None:
    ring = RING
    around = ring.places * ring.step
    positions = [around * number / 37 for number in range(37)]
    noise = np.log(ring.noise)
    for one, other in combinations(positions, 2):
        places = [(ring.place_of(position) - np.arange(ring.places)) % ring.places for position in (one, other)]
        loss = np.abs(noise[places[0]] - noise[places[1]]).max()
        assert loss <= ring.guarantee.loss(min(other - one, around - (other - one))) + 1e-12
    assert ring.place_of(around - ring.step / 3) == ring.place_of(-ring.step / 3) == 0


@pytest.mark.parametrize("row", [0, 40])
def test_noise_of_a_program_that_lacks_one_constraint_is_refused(row: int) -> None:
    """The broken twin: without any one row, the noise found exceeds ε somewhere, and a ring refuses it."""
    places, epsilon = 24, 1.0
    step = 2 * math.pi / places
    matrix = _constraints(places, epsilon * step)
    short = sparse.vstack([matrix[:row], matrix[row + 1 :]])
    excesses = []
    for turn in range(places):
        costs = np.roll(steps_between(places, [0, 7]) * step, turn)
        broken, sound = (
            linprog(costs, A_ub=rows, b_ub=np.zeros(rows.shape[0]), A_eq=np.ones((1, places)), b_eq=[1.0]).x
            for rows in (short, matrix)
        )
        assert worst_excess(laws_of(sound), epsilon, step) <= 1e-9
        if broken.min() > 1e-9:
            excesses.append((worst_excess(laws_of(broken), epsilon, step), broken))
    excess, broken = max(excesses, key=lambda pair: pair[0])
    assert excess > 0.1
    heights = np.round(np.log(broken.max() / broken) / (epsilon * step)).astype(int)
    with pytest.raises(dps.InvalidInput, match="heights must be at least two whole numbers that change by at most 1"):
        Ring(epsilon=epsilon, heights=tuple(heights.tolist()), answers=(0, 7))
    Ring(epsilon=epsilon, heights=tuple(lipschitz(heights).tolist()), answers=(0, 7))


@given(st.lists(st.integers(0, 50), min_size=2, max_size=40))
def test_heights_become_private_whatever_the_solver_returns(numbers: list[int]) -> None:
    lowered = lipschitz(np.array(numbers))
    assert np.abs(lowered - np.roll(lowered, 1)).max() <= 1
    assert (lowered <= numbers - np.min(numbers)).all()
    assert (lipschitz(lowered) == lowered).all()


@pytest.mark.parametrize("answers", [(0,), (0, 5), (0, 1, 5)], ids=str)
def test_no_heights_cost_less_than_those_of_the_program(answers: tuple[int, ...]) -> None:
    """All walks of steps −1, 0, 1 around a ring of 10 places."""
    costs = steps_between(10, answers).astype(float)
    steps = np.array(list(product((-1, 0, 1), repeat=9)))
    walks = np.concatenate([np.zeros((len(steps), 1), dtype=int), np.cumsum(steps, axis=1)], axis=1)
    walks = walks[np.abs(walks[:, -1]) <= 1]
    for rate in (0.1, 0.6, 2.0):
        closed = np.exp(-rate * walks)
        least = float((closed @ costs / closed.sum(axis=1)).min())
        heights, bound = best_noise(costs, rate)
        weights = np.exp(-rate * heights)
        assert bound == pytest.approx(least, abs=1e-9)
        assert weights @ costs / weights.sum() == pytest.approx(least, abs=1e-9)


@pytest.mark.parametrize(("places", "k"), [(7, 1), (8, 2), (7, 3)])
def test_no_private_mechanism_costs_its_worst_user_less(places: int, k: int) -> None:
    """The full program: a probability of every set of k results for every user, without assuming symmetry."""
    step = 2 * math.pi / places
    sets = list(combinations(range(places), k))
    costs = np.array([steps_between(places, chosen) for chosen in sets]) * step
    for epsilon in (0.375, 1.0):
        number, ratio = len(sets), math.exp(epsilon * step)
        variables = places * number
        users = sparse.kron(sparse.identity(places), np.ones((1, number)))
        per_user = sparse.block_diag([sparse.coo_array(costs[:, [u]].T) for u in range(places)])
        worst = sparse.hstack([per_user, -np.ones((places, 1))])
        following = sparse.kron(np.roll(np.eye(places), 1, axis=1), sparse.identity(number))
        same = sparse.identity(variables)
        private = sparse.vstack([same - ratio * following, following - ratio * same])
        rows = sparse.vstack([worst, sparse.hstack([private, sparse.csr_matrix((2 * variables, 1))])])
        solved = linprog(
            [*np.zeros(variables), 1.0],
            A_ub=rows.tocsr(),
            b_ub=np.zeros(rows.shape[0]),
            A_eq=sparse.hstack([users, sparse.csr_matrix((places, 1))]).tocsr(),
            b_eq=np.ones(places),
        )
        assert optimal_ring(k, epsilon, places=places).cost == pytest.approx(solved.fun, abs=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize(("k", "places"), [(1, 40), (2, 60), (3, 24), pytest.param(4, 24, marks=pytest.mark.long)])
def test_the_search_finds_the_best_of_all_answers(k: int, places: int) -> None:
    step = 2 * math.pi / places
    for epsilon in (0.375, 1.0):
        every = _all_answers(k, places)
        least = min(best_noise(steps_between(places, answers) * step, epsilon * step)[1] for answers in every)
        assert optimal_ring(k, epsilon, places=places).cost == pytest.approx(least, abs=1e-9)


def test_at_epsilon_three_eighths_laplace_noise_costs_more_than_the_best() -> None:
    """Mathematics, section 9: 0.743 for Laplace with its best answers, 0.709 at the antipodal pair."""
    best, laplace = (make(2, 3 / 8, places=240) for make in (optimal_ring, laplace_ring))
    assert (round(best.cost, 3), round(laplace.cost, 3)) == (0.709, 0.743)
    assert best.answers[1] - best.answers[0] == pytest.approx(120, abs=1)
    width = math.pi / 2
    assert best.cost == pytest.approx(8 / 3 - width / math.expm1(3 / 8 * width), abs=1e-4)
    peaks = [y for y in range(240) if best.heights[y] < min(best.heights[y - 1], best.heights[(y + 1) % 240])]
    assert peaks == list(best.answers)


def test_at_epsilon_1_laplace_noise_costs_little_more_than_the_best() -> None:
    """The paper calls it optimal there; heights are private by construction, so a smaller cost refutes that."""
    best, laplace = (make(2, 1.0, places=240) for make in (optimal_ring, laplace_ring))
    assert (round(best.cost, 4), round(laplace.cost, 4)) == (0.5664, 0.5677)
    assert worst_excess(laws_of(best.noise), 1.0, best.step) <= 1e-12


def test_with_little_noise_laplace_noise_is_nearly_the_best() -> None:
    for epsilon in (3.0, 1000.0):
        best, laplace = (make(2, epsilon, places=60) for make in (optimal_ring, laplace_ring))
        assert best.cost <= laplace.cost + 1e-9
        if epsilon == 3.0:
            assert best.cost == pytest.approx(laplace.cost, rel=1e-3)


def test_on_a_large_fine_ring_costs_are_those_of_the_line() -> None:
    for k, cost in ((1, 1.0), (2, math.log(2)), (3, 0.5)):
        assert laplace_ring(k, 1.0, circumference=40.0, places=800).cost == pytest.approx(cost, rel=5e-3)


def counted(draw: Any, size: int, draws: int) -> np.ndarray:
    return np.bincount([draw() for _ in range(draws)], minlength=size)


def statistic(counts: np.ndarray, law: np.ndarray) -> float:
    """Return Pearson's statistic; a correct sampler exceeds its quantile with a probability of 1e-6."""
    expected = law * counts.sum()
    return float(((counts - expected) ** 2 / expected).sum())


@pytest.mark.slow
def test_signals_follow_the_law_and_a_wrong_sampler_does_not() -> None:
    ring = Ring(epsilon=0.8, heights=(0, 1, 2, 3, 2, 1, 1, 0), answers=(0, 3))
    bits, place, draws = bit_source(5), 2, 3000
    law = np.array([ring.law(place)[signal] for signal in range(ring.places)])
    limit = float(chi2.isf(1e-6, ring.places - 1))
    assert statistic(counted(lambda: ring.draw(place, bits), ring.places, draws), law) < limit
    mirrored = counted(lambda: (2 * place - ring.draw(place, bits)) % ring.places, ring.places, draws)
    assert statistic(mirrored, law) > limit, "s = u + y in place of u − y"
    narrow = Ring(epsilon=1.1, heights=ring.heights, answers=ring.answers)
    assert statistic(counted(lambda: narrow.draw(place, bits), ring.places, draws), law) > limit


def test_the_cost_is_the_mean_over_users() -> None:
    """Within 4.9 standard errors, exceeded with a probability below 1e-6."""
    ring = optimal_ring(2, 0.75, places=48)
    bits, draws, place = bit_source(3), 1000, 17
    position = place * ring.step
    met = []
    for _ in range(draws):
        chosen = ring.choose(position, ring.answer(ring.draw(place, bits)))
        met.append(ring.step * int(steps_between(ring.places, [chosen])[place]))
    assert abs(np.mean(met) - ring.cost) <= 4.9 * np.std(met) / math.sqrt(draws)


def test_a_seed_repeats_a_signal_and_none_is_secure() -> None:
    ring = RING
    assert ring.signal(1.0, seed=4) == ring.signal(1.0, seed=4)
    assert len({ring.signal(1.0) for _ in range(60)}) > 1
    assert ring.guarantee.epsilon == ring.epsilon
    assert Fraction(ring.step) * ring.places <= Fraction(ring.circumference)


BAD_ARGUMENTS: list[Any] = [
    ({"k": 0}, "k"),
    ({"k": 5}, "k must be at most 4 on a ring, got 5"),
    ({"epsilon": 0}, "epsilon"),
    ({"places": 4}, "places must be from 5 (2k + 1) to 2000, got 4"),
    ({"places": 2001}, "places must be from 5 (2k + 1) to 2000, got 2001"),
    ({"circumference": -1}, "circumference"),
    ({"disutility": "steep"}, "disutility must be linear"),
]


def test_bad_arguments_are_refused() -> None:
    for arguments, message in BAD_ARGUMENTS:
        for make in (optimal_ring, laplace_ring):
            with pytest.raises(dps.InvalidInput) as error:
                make(**{"k": 2, "epsilon": 1.0, **arguments})
            assert str(error.value).startswith(message)


def test_heights_that_are_not_private_are_refused() -> None:
    for heights in ((0,), (0, 2, 1), (0, 1, 2), (0.5, 0, 0), "abc", None):
        with pytest.raises(dps.InvalidInput, match="heights must be at least two whole numbers"):
            Ring(epsilon=1.0, heights=heights, answers=(0,))  # type: ignore[arg-type]


def test_answers_results_and_signals_must_be_places_of_the_ring() -> None:
    for answers in ((), (3,), (-1,), None):
        with pytest.raises(dps.InvalidInput, match="answers must be whole numbers from 0 to 2"):
            Ring(epsilon=1.0, heights=(0, 1, 1), answers=answers)  # type: ignore[arg-type]
    with pytest.raises(dps.InvalidInput, match="answers must be different places, got equal ones"):
        Ring(epsilon=1.0, heights=(0, 1, 1), answers=(0, 0))
    for places in ([], None, ["a"], [2.5], [24], [-1]):
        with pytest.raises(dps.InvalidInput, match="results must be whole numbers from 0 to 23"):
            RING.choose(1.0, places)  # type: ignore[arg-type]
        for signal in places or [None]:
            with pytest.raises(dps.InvalidInput, match="signal must be a whole number from 0 to 23"):
                RING.answer(signal)  # type: ignore[arg-type]


def test_a_bad_position_is_refused_without_being_shown() -> None:
    for position in (math.nan, math.inf, "12.3456", None):
        with pytest.raises(dps.InvalidInput) as error:
            RING.signal(position)  # type: ignore[arg-type]
        assert str(error.value) == "position must be a finite number, got another value (private, so not shown)"


def test_only_distance_times_epsilon_counts() -> None:
    usual, *scaled = (
        optimal_ring(2, 0.375 / scale, circumference=2 * math.pi * scale, places=60) for scale in (1, 1e-9, 1e9)
    )
    assert [ring.cost for ring in scaled] == pytest.approx([usual.cost * 1e-9, usual.cost * 1e9], rel=1e-9)


def test_costs_may_be_0_everywhere_but_not_infinite() -> None:
    assert optimal_ring(2, 1.0, places=12, disutility=lambda distance: np.maximum(distance - 9, 0)).cost == 0
    assert optimal_ring(2, 1e-320, places=12).cost == pytest.approx(2 * math.pi / 12 * 1.5)
    with pytest.raises(dps.InvalidInput, match="disutility must be finite everywhere on the ring"):
        optimal_ring(2, 1.0, places=12, circumference=1e5, disutility=np.expm1)


def two_peaks(epsilon: float, peak: float, answer: float) -> float:
    """Return the cost of noise with peaks at ±c and answers at ±a, 0 <= c <= a, on a continuous ring (ring.md)."""
    half, c, a = epsilon * HALF, epsilon * peak, epsilon * answer
    before = (a - c) * -math.expm1(-c) + 1 - (1 + c) * math.exp(-c)
    after = a - c - 1 + 2 * math.exp(c - a) - (half - a + 1) * math.exp(c - half)
    return (before + after) / (2 - math.exp(-c) - math.exp(c - half)) / epsilon


def laplace_answer(epsilon: float) -> float:
    """Return the median of Laplace noise on half of the ring."""
    return -math.log((1 + math.exp(-epsilon * HALF)) / 2) / epsilon


def least_laplace(epsilon: float, cells: int) -> tuple[float, float]:
    """Return the least cost of Laplace noise over where two answers cut the ring, and the error of that minimum.

    The cells of two answers are opposite halves, each of which is served best from its median. Rotating the cut by t
    moves mass of at most t times the largest density at each end, by at most π.
    """
    width = 2 * HALF / cells
    places = (np.arange(2 * cells) + 0.5) * width
    weights = np.exp(-epsilon * np.minimum(places % (2 * HALF), -places % (2 * HALF)))
    weights /= weights[:cells].sum()
    mass, moment = (np.concatenate([[0.0], np.cumsum(part)]) for part in (weights, weights * places))
    starts = np.arange(cells)
    ends = starts + cells // 2
    middles = np.searchsorted(mass, (mass[starts] + mass[ends]) / 2)
    medians = middles * width
    above = moment[ends] - moment[middles] - medians * (mass[ends] - mass[middles])
    below = medians * (mass[middles] - mass[starts]) - (moment[middles] - moment[starts])
    halves = above + below
    density = float(weights.max()) / width
    return float((halves + np.roll(halves, cells // 2)).min()), width / 2 * 2 * density * HALF


def test_the_closed_form_of_two_peaks_is_the_integral() -> None:
    for peak, answer in ((0.0, 0.6), (0.25, 0.7), (1.5, 1.6)):

        def density(y: float, peak: float = peak) -> float:
            return math.exp(-1.3 * abs(y - peak))

        def cost(y: float, density: Any = density, answer: float = answer) -> float:
            return float(density(y) * abs(y - answer))

        cuts = {"points": [peak, answer], "epsabs": 1e-13}
        exact = quad(cost, 0, HALF, **cuts)[0] / quad(density, 0, HALF, **cuts)[0]
        assert two_peaks(1.3, peak, answer) == pytest.approx(exact, rel=1e-10)


def test_on_a_continuous_ring_two_peaks_cost_less_than_laplace_noise_with_any_answers() -> None:
    """So what the best noise saves is not due to the finite number of places."""
    least, error = least_laplace(1.0, 40_000)
    assert least == pytest.approx(two_peaks(1.0, 0.0, laplace_answer(1.0)), abs=1e-6)
    assert two_peaks(1.0, 0.26, 0.70) < 0.56646 < 0.567 < least - error


def test_laplace_noise_is_the_best_at_no_epsilon() -> None:
    """Peaks moved by any c <= a − cost help, as ring.md proves; a − cost = q (T − 2a)/(1 − q), q = e^{−T}."""
    for epsilon in (0.1, 3 / 8, 1.0, 2.0, 3.0):
        answer = laplace_answer(epsilon)
        cost = two_peaks(epsilon, 0.0, answer)
        room = answer - cost
        assert room == pytest.approx((HALF - 2 * answer) / math.expm1(epsilon * HALF), rel=1e-6)
        assert room > 0
        for share in (0.3, 0.6, 1.0):
            assert two_peaks(epsilon, share * room, answer) < cost - 1e-15


def test_costs_converge_to_those_of_the_continuous_ring_as_places_are_added() -> None:
    for epsilon in (3 / 8, 1.0):
        limit = min(
            minimize(two_peaks_cost, start, args=(epsilon,), method="Nelder-Mead").fun
            for start in ([0.2, 0.7], [1.5, 1.6])
        )
        for make, there in (
            (optimal_ring, limit),
            (laplace_ring, two_peaks(epsilon, 0.0, laplace_answer(epsilon))),
        ):
            errors = [abs(make(2, epsilon, places=places).cost - there) for places in (60, 240)]
            assert errors[1] < min(errors[0] / 4, 1e-4)


def two_peaks_cost(at: np.ndarray, epsilon: float) -> float:
    return two_peaks(epsilon, abs(at[0]), max(at[1], abs(at[0])))
