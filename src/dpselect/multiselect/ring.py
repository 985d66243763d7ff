"""Multi-selection on a ring, where the best noise is not Laplace noise: its law, its answers and its privacy.

The best noise for given answers is the solution of a linear program; the answers are searched for. The proofs are in
ring.md.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import combinations
from typing import Any

import numpy as np

from dpselect._arrays import FloatArray, IntArray
from dpselect._numbers import finite_number, float_below, positive_integer, positive_number, seed_or_none
from dpselect.errors import DpSelectError, InvalidInput, plain
from dpselect.multiselect.disutility import Disutility, as_disutility
from dpselect.multiselect.noise import PRIVATE_VALUE, DistanceGuarantee
from dpselect.sampling import BitSource, bit_source
from dpselect.sampling.discrete import bernoulli_exp
from dpselect.sampling.uniform import uniform_integer

RingAnswers = tuple[int, ...]

CIRCUMFERENCE = 2 * math.pi
MOST_RESULTS = 4
MOST_PLACES = 2000

COARSEST_RING = 12
"""Least number of places of the coarsest ring of the search, on which all answers are tried."""

CANDIDATES = 6
"""Number of sets of answers that the search carries from one ring to the next finer one."""

SMALLEST_RATIO = 1e-6
"""Probabilities below this fraction of the largest are within the solver's tolerance and are ignored."""

LARGEST_RATE = 12.0
"""Rates above this are solved as this: one step then already lowers the probability by a factor e^12."""


@dataclass(frozen=True, kw_only=True)
class Ring:
    """A client and a server on a ring of n public places, r = circumference/n apart.

    A user at place u draws y with probability `exp(−ε r h(y)) / Σ_z exp(−ε r h(z))` and sends s = u − y. The server
    answers with the places `s + a_1 … s + a_k`, and the user keeps the nearest. The heights h change by at most 1 from
    place to place, so the probability of any signal changes by a factor of at most `exp(ε d)` between two places at
    distance d along the ring. Source: multi-selection, appendix A.2; ring.md.

    Parameters
    ----------
    epsilon
        Privacy loss of one signal per unit of distance.
    heights
        A whole number for each place; the lower, the more likely. They are shifted so that the least is 0.
    answers
        Places of the k answers relative to the signal.
    circumference
        Length of the ring.
    disutility
        What a distance costs: see `as_disutility`.

    Raises
    ------
    InvalidInput
        If heights change by more than 1 between neighbouring places, or another argument is out of range.

    Examples
    --------
    >>> from dpselect.multiselect import Ring
    >>> ring = Ring(epsilon=1.0, heights=(0, 1, 2, 1), answers=(0, 2), circumference=4.0)
    >>> ring.answer(3), ring.choose(2.9, [1, 3])
    ([3, 1], 3)
    """

    epsilon: float
    heights: tuple[int, ...]
    answers: tuple[int, ...]
    circumference: float = CIRCUMFERENCE
    disutility: Any = "linear"

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", positive_number("epsilon", self.epsilon))
        object.__setattr__(self, "circumference", positive_number("circumference", self.circumference))
        object.__setattr__(self, "disutility", as_disutility(self.disutility))
        heights = _whole_numbers(self.heights)
        if len(heights) < 2 or max(abs(heights[y] - heights[y - 1]) for y in range(len(heights))) > 1:
            requirement = "must be at least two whole numbers that change by at most 1 from place to place"
            raise InvalidInput("heights", plain("something else"), requirement)
        object.__setattr__(self, "heights", tuple(height - min(heights) for height in heights))
        answers = self._checked_places("answers", self.answers)
        if len(set(answers)) < len(answers):
            raise InvalidInput("answers", plain("equal ones"), "must be different places")
        object.__setattr__(self, "answers", tuple(sorted(answers)))

    @property
    def places(self) -> int:
        """The number of public places of the ring."""
        return len(self.heights)

    @property
    def k(self) -> int:
        """The number of answers."""
        return len(self.answers)

    @property
    def step(self) -> float:
        """The distance between neighbouring places, r, rounded down."""
        return float_below(Fraction(self.circumference) / self.places)

    @property
    def rate(self) -> Fraction:
        """The largest privacy loss between neighbouring places, `ρ = ε r`, exactly."""
        return Fraction(self.epsilon) * Fraction(self.step)

    @property
    def guarantee(self) -> DistanceGuarantee:
        """The guarantee of one signal; distances are measured along the ring."""
        return DistanceGuarantee(self.epsilon, self.step)

    @cached_property
    def noise(self) -> FloatArray:
        """The probability of each y = u − s, the position of the user relative to the signal."""
        return ring_law(np.array(self.heights), float(self.rate))

    @cached_property
    def cost(self) -> float:
        """The expected disutility of the nearest answer, `Σ_y p(y) min_i h(d(y, a_i))`, the same for every user."""
        return float(self.noise @ _costs(self.places, self.answers, self.step, self.disutility))

    def law(self, place: int) -> dict[int, float]:
        """Return the probability of every signal of a user at a place."""
        return {(place - y) % self.places: float(probability) for y, probability in enumerate(self.noise)}

    def place_of(self, position: float) -> int:
        """Return the place nearest to a position, which is measured along the ring from place 0."""
        try:
            exact = Fraction(finite_number("position", position))
        except InvalidInput:
            raise InvalidInput("position", PRIVATE_VALUE, "must be a finite number") from None
        return math.floor(exact / Fraction(self.step) + Fraction(1, 2)) % self.places

    def signal(self, position: float, *, seed: int | None = None) -> int:
        """Return the place that a user at a position sends; a seed is for tests and protects nobody.

        No budget is kept: m signals cost m times the guarantee of one.
        """
        return self.draw(self.place_of(position), bit_source(seed_or_none(seed)))

    def draw(self, place: int, bits: BitSource) -> int:
        """Draw a signal of a user at a place exactly: uniform y, accepted with probability exp(−ρ h(y))."""
        rate = self.rate
        while True:
            y = uniform_integer(self.places, bits)
            if bernoulli_exp(rate * self.heights[y], bits):
                return (place - y) % self.places

    def answer(self, signal: int) -> list[int]:
        """Return the k places that the server answers with."""
        (signal,) = self._checked_places("signal", [signal])
        return [(signal + answer) % self.places for answer in self.answers]

    def choose(self, position: float, results: list[int]) -> int:
        """Return the result nearest to the position; this happens on the user's side."""
        apart = steps_between(self.places, [self.place_of(position)])
        return min(self._checked_places("results", results), key=lambda result: int(apart[result]))

    def _checked_places(self, argument: str, given: Any) -> RingAnswers:
        """Return places of the ring, at least one."""
        places = _whole_numbers(given)
        if not places or not all(0 <= place < self.places for place in places):
            numbers = "a whole number" if argument == "signal" else "whole numbers"
            raise InvalidInput(argument, plain("something else"), f"must be {numbers} from 0 to {self.places - 1}")
        return places


def optimal_ring(
    k: int, epsilon: float, *, circumference: float = CIRCUMFERENCE, places: int = 240, disutility: Any = "linear"
) -> Ring:
    """Return the noise and the k answers that together cost least on a ring.

    For given gaps between the answers the noise is the optimum of a linear program: no other private way to choose k
    results with these gaps costs less on this ring. The answers are searched for (`search_answers`).

    Parameters
    ----------
    k
        Number of answers, at most 4.
    epsilon
        Privacy loss of one signal per unit of distance.
    circumference
        Length of the ring.
    places
        Number of public places, more than 2k and at most 2000.
    disutility
        What a distance costs: see `as_disutility`.

    Returns
    -------
    Ring

    Raises
    ------
    InvalidInput
        If an argument is out of range.

    Examples
    --------
    >>> from dpselect.multiselect import optimal_ring
    >>> round(optimal_ring(2, epsilon=0.375, places=60).cost, 2)
    0.71
    """
    problem = _Problem(k, epsilon, circumference, places, disutility)
    answers = search_answers(
        problem.k, places, lambda size, answers: best_noise(problem.costs(size, answers), problem.rate(size))[1]
    )
    heights, _ = best_noise(problem.costs(places, answers), problem.rate(places))
    # Rotated so that the least likely place is opposite to the signal, as for Laplace noise.
    turn = places // 2 - int(np.argmax(heights))
    return problem.ring(np.roll(heights, turn), answers, turn)


def laplace_ring(
    k: int, epsilon: float, *, circumference: float = CIRCUMFERENCE, places: int = 240, disutility: Any = "linear"
) -> Ring:
    """Return Laplace noise on a ring, `p(y) ∝ exp(−ε d(y, 0))`, with the k answers that cost least for it.

    Parameters
    ----------
    k, epsilon, circumference, places, disutility
        As in `optimal_ring`.

    Returns
    -------
    Ring

    Raises
    ------
    InvalidInput
        If an argument is out of range.

    Examples
    --------
    >>> from dpselect.multiselect import laplace_ring
    >>> round(laplace_ring(2, epsilon=0.375, places=60).cost, 2)
    0.74
    """
    problem = _Problem(k, epsilon, circumference, places, disutility)

    def turned_costs(size: int, answers: RingAnswers) -> FloatArray:
        noise, own = ring_law(steps_between(size, [0]), problem.rate(size)), problem.costs(size, answers)
        return np.array([noise @ np.roll(own, turn) for turn in range(size)])

    answers = search_answers(problem.k, places, lambda size, answers: float(turned_costs(size, answers).min()))
    turn = int(np.argmin(turned_costs(places, answers)))
    return problem.ring(steps_between(places, [0]), answers, turn)


@dataclass(frozen=True)
class _Problem:
    """The checked arguments of a search; `size` is the number of places of the ring at hand."""

    k: int
    epsilon: float
    circumference: float
    places: int
    disutility: Any

    def __post_init__(self) -> None:
        if positive_integer("k", self.k) > MOST_RESULTS:
            raise InvalidInput("k", self.k, f"must be at most {MOST_RESULTS} on a ring")
        if not 2 * self.k < positive_integer("places", self.places) <= MOST_PLACES:
            raise InvalidInput("places", self.places, f"must be from {2 * self.k + 1} (2k + 1) to {MOST_PLACES}")
        positive_number("epsilon", self.epsilon)
        positive_number("circumference", self.circumference)
        object.__setattr__(self, "disutility", as_disutility(self.disutility))

    def rate(self, size: int) -> float:
        return self.epsilon * self.circumference / size

    def costs(self, size: int, answers: RingAnswers) -> FloatArray:
        return _costs(size, answers, self.circumference / size, self.disutility)

    def ring(self, heights: IntArray, answers: RingAnswers, turn: int) -> Ring:
        return Ring(
            epsilon=self.epsilon,
            circumference=self.circumference,
            heights=tuple(heights.tolist()),
            answers=tuple((answer + turn) % self.places for answer in answers),
            disutility=self.disutility,
        )


def steps_between(places: int, answers: Sequence[int]) -> IntArray:
    """Return the number of steps along the ring from each place to the nearest answer."""
    apart = np.abs(np.arange(places)[:, None] - np.asarray(answers, dtype=np.int64)[None, :])
    return np.asarray(np.minimum(apart, places - apart).min(axis=1), dtype=np.int64)


def ring_law(heights: IntArray, rate: float) -> FloatArray:
    """Return the probabilities `e^{−ρ h} / Σ e^{−ρ h}`."""
    weights = np.exp(-rate * heights)
    return np.asarray(weights / weights.sum(), dtype=np.float64)


def best_noise(costs: FloatArray, rate: float) -> tuple[IntArray, float]:
    """Return the heights of the private noise p with the least cost, and that cost.

    Minimise `Σ c(y) p(y)` subject to `p(y) <= e^ρ p(y ± 1)` around the ring and `Σ p = 1`, where c are the costs of the
    places and ρ = ε r. At a vertex all ratios of neighbours are e^±ρ, or one of them is 1, so `p ∝ e^{−ρ h}` with whole
    h (ring.md). The solver's solution is only a hint for h; `lipschitz` makes it private despite numerical errors.
    """
    from scipy.optimize import linprog

    rate = min(rate, LARGEST_RATE)
    # The solver's tolerances are absolute, so costs are divided by the largest.
    largest = float(costs.max()) or 1.0
    matrix = _constraints(len(costs), rate)
    solved = linprog(
        costs / largest,
        A_ub=matrix,
        b_ub=np.zeros(matrix.shape[0]),
        A_eq=np.ones((1, len(costs))),
        b_eq=[1.0],
        bounds=(0, None),
        method="highs-ds",
    )
    if solved.status != 0:
        raise DpSelectError(f"the linear program of the ring was not solved: {solved.message}")
    return _heights_of(solved.x, rate), float(solved.fun) * largest


@lru_cache(maxsize=16)
def _constraints(places: int, rate: float) -> Any:
    """Return the sparse matrix of `p(y) − e^ρ p(y+1) <= 0` and `p(y+1) − e^ρ p(y) <= 0`."""
    from scipy import sparse

    same = sparse.identity(places, format="csr")
    following = sparse.csr_matrix(np.roll(np.arange(places), -1)[:, None] == np.arange(places)[None, :], dtype=float)
    ratio = np.exp(rate)
    return sparse.vstack([same - ratio * following, following - ratio * same], format="csr")


def _heights_of(probabilities: FloatArray, rate: float) -> IntArray:
    """Return whole heights h with `p` near `e^{−ρ h}`, least height 0, and neighbours at most 1 apart."""
    top = probabilities.max()
    known = probabilities > SMALLEST_RATIO * top
    hints = np.full(len(probabilities), len(probabilities), dtype=np.int64)
    with np.errstate(over="ignore"):
        steps = np.log(top / probabilities[known]) / rate
    hints[known] = np.round(np.minimum(steps, len(probabilities))).astype(np.int64)
    return lipschitz(hints)


def lipschitz(heights: IntArray) -> IntArray:
    """Return `min_z (h(z) + steps between y and z)`: the largest heights below h that change by at most 1 a step."""
    places = len(heights)
    apart = np.abs(np.arange(places)[:, None] - np.arange(places)[None, :])
    lowered = (heights[None, :] + np.minimum(apart, places - apart)).min(axis=1)
    return np.asarray(lowered - lowered.min(), dtype=np.int64)


def search_answers(k: int, places: int, cost_of: Callable[[int, RingAnswers], float]) -> RingAnswers:
    """Return the k answers with the least cost found, the first at place 0.

    `cost_of(places, answers)` must not change when the ring is rotated or reflected. All answers are tried on a coarse
    ring. The best are carried over to rings with twice as many places, where single answers move by one place as long
    as the cost falls.
    """
    rings = [places]
    while rings[0] // 2 >= max(COARSEST_RING, 2 * k):
        rings.insert(0, rings[0] // 2)
    kept: Iterable[RingAnswers] = _all_answers(k, rings[0])
    for before, now in zip([rings[0], *rings], rings, strict=False):
        known: dict[RingAnswers, float] = {}

        def known_cost(answers: RingAnswers, known: dict[RingAnswers, float] = known, now: int = now) -> float:
            if answers not in known:
                known[answers] = cost_of(now, answers)
            return known[answers]

        if now == rings[0]:
            found = set(kept)
        else:
            carried = ({round(answer * now / before) for answer in answers} for answers in kept)
            found = {_descended(_canonical_answers(answers, now), now, known_cost) for answers in carried}
        kept = sorted(found, key=lambda answers: (known_cost(answers), answers))[:CANDIDATES]
    return next(iter(kept))


def _descended(answers: RingAnswers, places: int, cost_of: Callable[[RingAnswers], float]) -> RingAnswers:
    """Move single answers by one place as long as that lowers the cost."""
    while True:
        moved = [
            _canonical_answers(changed, places)
            for index in range(len(answers))
            for by in (-1, 1)
            for changed in [{*answers[:index], (answers[index] + by) % places, *answers[index + 1 :]}]
            if len(changed) == len(answers)
        ]
        best = min(moved, key=cost_of, default=answers)
        if cost_of(best) >= cost_of(answers) - 1e-12:
            return answers
        answers = best


def _all_answers(k: int, places: int) -> set[RingAnswers]:
    """Return every set of k places, up to rotations and reflections of the ring."""
    return {_canonical_answers((0, *others), places) for others in combinations(range(1, places), k - 1)}


def _canonical_answers(answers: Iterable[int], places: int) -> RingAnswers:
    """Return the representative of the answers under rotation and reflection, with the first at place 0."""
    ordered = sorted(answer % places for answer in answers)
    gaps = [
        (after - before) % places or places for before, after in zip(ordered, [*ordered[1:], ordered[0]], strict=True)
    ]
    turns = [way[start:] + way[:start] for way in (gaps, gaps[::-1]) for start in range(len(gaps))]
    return tuple(int(place) for place in np.cumsum([0, *min(turns)[:-1]]))


def _costs(places: int, answers: RingAnswers, step: float, disutility: Disutility) -> FloatArray:
    """Return the disutility of the nearest answer at each place."""
    costs = disutility(steps_between(places, answers) * step)
    if not np.isfinite(costs).all():
        raise InvalidInput("disutility", plain("an infinite value"), "must be finite everywhere on the ring")
    return costs


def _whole_numbers(given: Any) -> tuple[int, ...]:
    """Return a sequence of whole numbers as a tuple, and anything else as an empty one."""
    try:
        return tuple(operator.index(number) for number in given)
    except TypeError:
        return ()
