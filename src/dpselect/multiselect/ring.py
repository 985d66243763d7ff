"""Multi-selection on a ring: noise that is better there than Laplace's, and its answers (proof in ring.md)."""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from dpselect._arrays import FloatArray, IntArray
from dpselect._numbers import finite_number, float_below, positive_integer, positive_number, seed_or_none
from dpselect.errors import InvalidInput, plain
from dpselect.multiselect.disutility import Disutility, as_disutility
from dpselect.multiselect.grid import DistanceGuarantee
from dpselect.multiselect.ring_program import Answers, best_noise, search, steps_between, weights_of
from dpselect.sampling import BitSource, bit_source
from dpselect.sampling.discrete import bernoulli_exp
from dpselect.sampling.uniform import uniform_integer

CIRCUMFERENCE = 2 * math.pi
MOST_RESULTS = 4
MOST_PLACES = 2000


@dataclass(frozen=True, kw_only=True)
class Ring:
    """A client and a server on a ring of n public places, r = circumference/n apart.

    A user at place u draws y with probability `exp(−ε r h(y)) / Σ_z exp(−ε r h(z))` and sends s = u − y; the server
    answers with the places `s + a_1 … s + a_k`, of which the user keeps the nearest. The heights h are whole numbers
    that change by at most 1 from place to place. Hence the chance of any signal changes by at most a factor
    `exp(ε d)` between two places at distance d along the ring. Multi-selection, appendix A.2; proof in ring.md.
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
        heights = _whole_numbers("heights", self.heights)
        if len(heights) < 2 or max(abs(heights[y] - heights[y - 1]) for y in range(len(heights))) > 1:
            accepted = "at least two whole numbers that change by at most 1 from place to place are needed"
            raise InvalidInput("heights", plain("something else"), accepted)
        object.__setattr__(self, "heights", tuple(height - min(heights) for height in heights))
        answers = _whole_numbers("answers", self.answers)
        if not answers or len(set(answers)) < len(answers) or not all(0 <= place < len(heights) for place in answers):
            raise InvalidInput("answers", answers[:4], f"different places from 0 to {len(heights) - 1} are needed")
        object.__setattr__(self, "answers", tuple(sorted(answers)))

    @property
    def places(self) -> int:
        """How many public places the ring has."""
        return len(self.heights)

    @property
    def k(self) -> int:
        """How many results come back."""
        return len(self.answers)

    @property
    def step(self) -> float:
        """The distance between neighbouring places, r, rounded down."""
        return float_below(Fraction(self.circumference) / self.places)

    @property
    def rate(self) -> Fraction:
        """What one step costs at most, `ρ = ε r`, exactly."""
        return Fraction(self.epsilon) * Fraction(self.step)

    @property
    def guarantee(self) -> DistanceGuarantee:
        """What a signal promises, before any position is seen; distances are those along the ring."""
        return DistanceGuarantee(self.epsilon, self.step)

    @cached_property
    def noise(self) -> FloatArray:
        """The probability of each y = u − s, where the user is as seen from the signal."""
        return weights_of(np.array(self.heights), float(self.rate))

    @cached_property
    def cost(self) -> float:
        """The expected disutility of the nearest answer, `Σ_y p(y) min_i h(d(y, a_i))`, the same for every user."""
        return float(self.noise @ _costs(self.places, self.answers, self.step, self.disutility))

    def law(self, place: int) -> dict[int, float]:
        """Return the probability of every signal of a user at a place."""
        return {(place - y) % self.places: float(chance) for y, chance in enumerate(self.noise)}

    def place_of(self, position: float) -> int:
        """Return the place nearest to a position, which is measured along the ring from place 0."""
        try:
            exact = Fraction(finite_number("position", position))
        except InvalidInput:
            given = plain("something else (it is private, so not shown)")
            raise InvalidInput("position", given, "a finite number is needed") from None
        return math.floor(exact / Fraction(self.step) + Fraction(1, 2)) % self.places

    def signal(self, position: float, *, seed: int | None = None) -> int:
        """Return the place that a user at a position sends; a seed is for tests and protects nobody.

        No account is kept: m signals tell at most m times what the guarantee states for one.
        """
        return self.draw(self.place_of(position), bit_source(seed_or_none(seed)))

    def draw(self, place: int, bits: BitSource) -> int:
        """Return a signal of a user at a place, exactly from its law: uniform y, kept with probability exp(−ρ h(y))."""
        rate = self.rate
        while True:
            y = uniform_integer(self.places, bits)
            if bernoulli_exp(rate * self.heights[y], bits):
                return (place - y) % self.places

    def answer(self, signal: int) -> list[int]:
        """Return the k places that the server answers with."""
        (signal,) = self._places("signal", [signal])
        return [(signal + answer) % self.places for answer in self.answers]

    def choose(self, position: float, results: list[int]) -> int:
        """Return the place among the results that is nearest to the position, on the user's side."""
        apart = steps_between(self.places, [self.place_of(position)])
        return min(self._places("results", results), key=lambda result: int(apart[result]))

    def _places(self, argument: str, given: Any) -> tuple[int, ...]:
        """Return places of the ring, at least one, or refuse what are none."""
        try:
            places = tuple(operator.index(place) for place in given)
        except TypeError:
            places = ()
        if not places or not all(0 <= place < self.places for place in places):
            raise InvalidInput(argument, plain("something else"), f"places from 0 to {self.places - 1} are needed")
        return places


def optimal_ring(
    k: int, epsilon: float, *, circumference: float = CIRCUMFERENCE, places: int = 240, disutility: Any = "linear"
) -> Ring:
    """Return the noise and the k answers that together cost least on a ring, k <= 4.

    For given gaps between the answers the noise is the optimum of a linear program: no other private way to choose k
    results with these gaps costs less on this ring. The answers are searched for (`ring_program.search`).
    """
    problem = _Problem(k, epsilon, circumference, places, disutility)
    answers = search(
        problem.k, places, lambda size, answers: best_noise(problem.costs(size, answers), problem.rate(size))[1]
    )
    heights, _ = best_noise(problem.costs(places, answers), problem.rate(places))
    # Turned so that the least likely place is the one opposite to the signal, as it is for Laplace noise.
    turn = places // 2 - int(np.argmax(heights))
    return problem.ring(np.roll(heights, turn), answers, turn)


def laplace_ring(
    k: int, epsilon: float, *, circumference: float = CIRCUMFERENCE, places: int = 240, disutility: Any = "linear"
) -> Ring:
    """Return Laplace noise on a ring, `p(y) ∝ exp(−ε d(y, 0))`, with the k answers that cost least for it, k <= 4."""
    problem = _Problem(k, epsilon, circumference, places, disutility)

    def turned_costs(size: int, answers: Answers) -> FloatArray:
        noise, own = weights_of(steps_between(size, [0]), problem.rate(size)), problem.costs(size, answers)
        return np.array([noise @ np.roll(own, turn) for turn in range(size)])

    answers = search(problem.k, places, lambda size, answers: float(turned_costs(size, answers).min()))
    turn = int(np.argmin(turned_costs(places, answers)))
    return problem.ring(steps_between(places, [0]), answers, turn)


@dataclass(frozen=True)
class _Problem:
    """What is asked of a ring, checked; `size` is the number of places of the ring at hand."""

    k: int
    epsilon: float
    circumference: float
    places: int
    disutility: Any

    def __post_init__(self) -> None:
        if positive_integer("k", self.k) > MOST_RESULTS:
            raise InvalidInput("k", self.k, f"from 1 to {MOST_RESULTS} results can be searched for on a ring")
        if not 2 * self.k < positive_integer("places", self.places) <= MOST_PLACES:
            raise InvalidInput("places", self.places, f"more than 2k and at most {MOST_PLACES} places are needed")
        positive_number("epsilon", self.epsilon)
        positive_number("circumference", self.circumference)
        object.__setattr__(self, "disutility", as_disutility(self.disutility))

    def rate(self, size: int) -> float:
        return self.epsilon * self.circumference / size

    def costs(self, size: int, answers: Answers) -> FloatArray:
        return _costs(size, answers, self.circumference / size, self.disutility)

    def ring(self, heights: IntArray, answers: Answers, turn: int) -> Ring:
        return Ring(
            epsilon=self.epsilon,
            circumference=self.circumference,
            heights=tuple(heights.tolist()),
            answers=tuple((answer + turn) % self.places for answer in answers),
            disutility=self.disutility,
        )


def _costs(places: int, answers: Answers, step: float, disutility: Disutility) -> FloatArray:
    """Return the disutility of the nearest answer at each place."""
    costs = disutility(steps_between(places, answers) * step)
    if not np.isfinite(costs).all():
        raise InvalidInput("disutility", plain("a function that is infinite on the ring"), "finite costs are needed")
    return costs


def _whole_numbers(argument: str, given: Any) -> tuple[int, ...]:
    try:
        return tuple(operator.index(number) for number in given)
    except TypeError:
        raise InvalidInput(argument, given, "a sequence of whole numbers is needed") from None
