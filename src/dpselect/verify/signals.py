"""Multi-selection under test: what a client sends, as a mechanism whose only scores are private positions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from dpselect._arrays import Array
from dpselect.errors import BudgetExceeded
from dpselect.multiselect.client import Client
from dpselect.multiselect.noise import GridNoise
from dpselect.privacy import Guarantee, Sensitivity
from dpselect.sampling import BitSource
from dpselect.scores import Scores
from dpselect.verify import vectors
from dpselect.verify.domain import Domain
from dpselect.verify.privacy import Subject

NAME = "multiselect"

REFUSED = 99
"""Shown in place of a grid point when the client refuses, so that nothing is sent: whoever listens sees that."""


@dataclass(frozen=True, kw_only=True)
class Signals:
    """The k requests of a user who stays at one position; the budget pays for `drawn` signals.

    Outcomes are what can be observed: a tuple of the grid points that are sent, with REFUSED where nothing is. Grid
    points beyond `low` or `high` are shown as that bound; beyond all positions every grid point has the same privacy
    loss as the bound. Neighbours are positions at most `distance` apart.
    """

    name: ClassVar[str] = NAME
    noise: ClassVar[str] = "geometric"
    ordered: ClassVar[bool] = True
    low: ClassVar[int] = -8
    high: ClassVar[int] = 16

    epsilon: float
    step: float
    distance: float = 1.0
    k: int = 1
    drawn: int = 1
    reuse: bool = False

    @property
    def sensitivity(self) -> Sensitivity:
        """How far a position moves between neighbours."""
        return Sensitivity(-self.distance, self.distance)

    @property
    def guarantee(self) -> Guarantee:
        """What all signals together claim for neighbours."""
        loss = Fraction(GridNoise(self.epsilon, self.step).guarantee.loss(self.distance))
        return Guarantee(float(self.drawn * loss), protects="one position", neighbours="positions nearby")

    def positions(self, scores: Any) -> list[Any]:
        """Return the position of the user at each request."""
        [value] = Scores.of(scores).exact()
        return [value] * self.k

    def client(self, seed: int | None = None) -> Client:
        """Return the client under test."""
        return Client(self.epsilon, self.step, budget=self.drawn * self.epsilon, seed=seed, reuse=self.reuse)

    def law(self, scores: Any) -> dict[Any, float]:
        """Return the probability of everything that can be observed, by running the client on every noise."""
        return observed_law(self.client, self.positions(scores), self.low, self.high)

    def single_law(self, value: Any) -> dict[Any, float]:
        """Return the law of one signal, as grid points."""
        return GridNoise(self.epsilon, self.step).law(value, self.low, self.high)

    def select(self, scores: Any, *, seed: int | None = None) -> Array:
        """Let a client answer the requests."""
        places = observed(self.client(seed), self.positions(scores), self.step)
        return np.array([place if place == REFUSED else min(max(place, self.low), self.high) for place in places])


@dataclass(frozen=True, kw_only=True)
class MovingSignals(Signals):
    """The requests of a user who moves: the scores are the k positions, one for each request.

    Neighbours are two journeys of which each position is at most `distance` from that of the other.
    """

    noise: ClassVar[str] = "geometric, moving user"
    places_are_items: ClassVar[bool] = False
    low: ClassVar[int] = -3
    high: ClassVar[int] = 5

    def positions(self, scores: Any) -> list[Any]:
        """Return the position of the user at each request."""
        return list(Scores.of(scores).exact())


def observed(client: Client, positions: Sequence[Any], step: float) -> list[int]:
    """Return what a listener sees of a user who asks at these positions: the grid point sent, or REFUSED."""
    places = []
    for position in positions:
        try:
            places.append(round(client.signal(position) / step))
        except BudgetExceeded:
            places.append(REFUSED)
    return places


def observed_law(make_client: Callable[[], Client], positions: Sequence[Any], low: int, high: int) -> dict[Any, float]:
    """Return the exact law of `observed`: the client itself runs once for every sequence of noisy grid points."""
    law: dict[Any, float] = {}
    scripts: list[tuple[int, ...]] = [()]
    while scripts:
        script = scripts.pop()
        client = make_client()
        noise = _ScriptedNoise(client.epsilon, client.grid, iter(script), low, high)
        client._noise = noise
        try:
            outcome = tuple(observed(client, positions, client.grid))
        except _MoreNoise:
            scripts.extend((*script, place) for place in range(low, high + 1))
        else:
            law[outcome] = law.get(outcome, 0.0) + noise.chance
    return law


class _MoreNoise(Exception):
    """The client draws more often than the script foresees."""


class _ScriptedNoise(GridNoise):
    """Noise that follows a script of grid points and multiplies up their probabilities."""

    def __init__(self, epsilon: float, step: float, script: Iterator[int], low: int, high: int) -> None:
        super().__init__(epsilon, step)
        self._script, self._low, self._high = script, low, high
        self.chance = 1.0

    def draw(self, place: int, bits: BitSource) -> int:
        for sent in self._script:
            self.chance *= _law_around(self.epsilon, self.step, place, self._low, self._high)[sent]
            return sent
        raise _MoreNoise


@lru_cache(maxsize=1024)
def _law_around(epsilon: float, step: float, place: int, low: int, high: int) -> dict[int, float]:
    return GridNoise(epsilon, step).law(Fraction(step) * place, low, high)


def _line(distance: float, by: float, highest: float = 2) -> Domain:
    return Domain(1, highest, Sensitivity(-distance, distance), step=by)


def _journeys(requests: int, distance: float, by: float, highest: float = 1) -> Domain:
    return Domain(requests, highest, Sensitivity(-distance, distance), step=by)


PAIRS: list[tuple[Signals, Domain]] = [
    (Signals(epsilon=1.0, step=0.5), _line(1, 0.125)),
    (Signals(epsilon=0.5, step=1.0, k=4, drawn=2, reuse=True), _line(1, 0.25)),
    (MovingSignals(epsilon=1.0, step=0.5, distance=0.5, k=3, drawn=2), _journeys(3, 0.5, 0.5)),
    (Signals(epsilon=2.0, step=0.25, distance=0.125), _line(0.125, 0.0625)),
    (Signals(epsilon=1.0, step=0.75), _line(1, 0.125)),
    (Signals(epsilon=0.25, step=0.5, distance=2.0, k=3, drawn=1, reuse=True), _line(2, 0.125)),
    (Signals(epsilon=0.5, step=1.0, k=4, drawn=2), _line(1, 0.25)),
    (MovingSignals(epsilon=2.0, step=0.5, distance=0.25, k=3, drawn=1), _journeys(3, 0.25, 0.25)),
    (MovingSignals(epsilon=0.5, step=0.5, distance=1.0, k=2, drawn=2), _journeys(2, 1, 0.25)),
]
"""Positions on and between grid points, distances that are whole steps and that are not; users who stay, with the
memory that this allows and without, and users who move."""

SAMPLES: list[tuple[Signals, list[float]]] = [
    (Signals(epsilon=1.0, step=0.5), [1.3125]),
    (Signals(epsilon=0.5, step=1.0, k=3, drawn=2, reuse=True), [2]),
    (MovingSignals(epsilon=1.0, step=0.5, k=3, drawn=2), [1, 0, 1]),
]


def signal_pairs(name: str | None, quick: bool) -> list[tuple[Subject, Domain]]:
    """Return clients and domains to check: positions on a line, then vectors and positions on a ring."""
    if name not in (None, NAME):
        return []
    return [*PAIRS[:3], *vectors.PAIRS[:2]] if quick else [*PAIRS, *vectors.PAIRS]


def signal_samples(name: str | None) -> list[tuple[Subject, list[float]]]:
    """Return clients and positions to draw for."""
    return [*SAMPLES, *vectors.SAMPLES] if name in (None, NAME) else []
