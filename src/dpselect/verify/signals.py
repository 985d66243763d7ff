"""Multi-selection as a mechanism under test: the signals of a client, whose only scores are private positions."""

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
from dpselect.multiselect.features import FeatureClient
from dpselect.multiselect.noise import GridNoise
from dpselect.multiselect.ring import Ring
from dpselect.multiselect.vectors import GaussianVectorNoise, VectorNoise
from dpselect.privacy import Guarantee, Sensitivity
from dpselect.sampling import BitSource
from dpselect.scores import Scores
from dpselect.verify.domain import Domain
from dpselect.verify.privacy import Subject

NAME = "multiselect"

REFUSED = 99
"""The outcome of a request that the client refuses: nothing is sent, which a listener can observe."""


class SignalSubject:
    """What all kinds of signals share: neighbours are positions at most `distance` apart, outcomes are tuples."""

    name: ClassVar[str] = NAME
    ordered: ClassVar[bool] = True

    distance: float

    @property
    def sensitivity(self) -> Sensitivity:
        """The bounds on the distance between neighbouring positions."""
        return Sensitivity(-self.distance, self.distance)

    @property
    def guarantee(self) -> Guarantee:
        """The claim for neighbouring positions."""
        return Guarantee(self.stated_loss(), protects="one position", neighbours="positions nearby")

    def stated_loss(self) -> float:
        """Return the privacy loss claimed for neighbours."""
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class Signals(SignalSubject):
    """The k requests of a user who stays at one position; the budget pays for `drawn` signals.

    An outcome is all that can be observed: the grid point sent for each request, or REFUSED. Grid points beyond `low`
    or `high` count as that bound, since beyond all positions every grid point has the same privacy loss.
    """

    noise: ClassVar[str] = "geometric"
    low: ClassVar[int] = -8
    high: ClassVar[int] = 16

    epsilon: float
    step: float
    distance: float = 1.0
    k: int = 1
    drawn: int = 1
    reuse: bool = False

    def stated_loss(self) -> float:
        """Return the privacy loss claimed for all signals together."""
        return float(self.drawn * Fraction(GridNoise(self.epsilon, self.step).guarantee.loss(self.distance)))

    def positions(self, scores: Any) -> list[Any]:
        """Return the position of the user at each request."""
        [value] = Scores.of(scores).exact()
        return [value] * self.k

    def client(self, seed: int | None = None) -> Client:
        """Return the client under test."""
        return Client(self.epsilon, self.step, budget=self.drawn * self.epsilon, seed=seed, reuse=self.reuse)

    def law(self, scores: Any) -> dict[Any, float]:
        """Return the probability of every observation, by running the client on every noise."""
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
    """The requests of a user who moves: the scores are the k positions, one per request.

    Neighbours are two journeys that are at most `distance` apart at every request.
    """

    noise: ClassVar[str] = "geometric, moving user"
    places_are_items: ClassVar[bool] = False
    low: ClassVar[int] = -3
    high: ClassVar[int] = 5

    def positions(self, scores: Any) -> list[Any]:
        """Return the position of the user at each request."""
        return list(Scores.of(scores).exact())


@dataclass(frozen=True, kw_only=True)
class VectorSignals(SignalSubject):
    """One signal about two features; outcomes are pairs of grid points, those beyond low or high counted as the bound.

    Neighbours are vectors at most `distance` apart in each feature.
    """

    noise: ClassVar[str] = "geometric, two features"
    places_are_items: ClassVar[bool] = False
    k: ClassVar[int] = 2
    low: ClassVar[int] = -4
    high: ClassVar[int] = 8

    epsilon: float
    step: float
    distance: float = 1.0

    def stated_loss(self) -> float:
        """Return the privacy loss claimed for one signal."""
        return VectorNoise(self.epsilon, 2, self.step).guarantee.loss([self.distance] * 2)

    def law(self, scores: Any) -> dict[Any, float]:
        """Return the probability of every pair of grid points."""
        return dict(VectorNoise(self.epsilon, 2, self.step).law(floats(scores), self.low, self.high))

    def select(self, scores: Any, *, seed: int | None = None) -> Array:
        """Let a client send the signal."""
        signal = FeatureClient(self.epsilon, 2, grid=self.step, seed=seed).signal(floats(scores))
        return np.clip(np.round(signal / self.step).astype(np.int64), self.low, self.high)


@dataclass(frozen=True, kw_only=True)
class GaussianSignals(SignalSubject):
    """One signal about two features with Gaussian noise; outcomes and neighbours as in `VectorSignals`.

    Counting grid points beyond low and high as the bound can only hide a loss, so the bounds are far out.
    """

    noise: ClassVar[str] = "discrete Gaussian, two features"
    places_are_items: ClassVar[bool] = False
    k: ClassVar[int] = 2
    low: ClassVar[int] = -9
    high: ClassVar[int] = 11

    epsilon: float
    delta: float
    step: float
    distance: float = 0.5

    @property
    def added(self) -> GaussianVectorNoise:
        """The noise under test."""
        return GaussianVectorNoise(self.epsilon, self.delta, 2, self.step)

    @property
    def guarantee(self) -> Guarantee:
        """The claim for neighbouring vectors."""
        return Guarantee(self.stated_loss(), self.delta, protects="one position", neighbours="positions nearby")

    def stated_loss(self) -> float:
        """Return the privacy loss claimed for one signal, at the stated δ."""
        return self.added.guarantee.loss([self.distance] * 2)

    def law(self, scores: Any) -> dict[Any, float]:
        """Return the probability of every pair of grid points."""
        return dict(self.added.law(floats(scores), self.low, self.high))

    def select(self, scores: Any, *, seed: int | None = None) -> Array:
        """Let a client send the signal."""
        client = FeatureClient(self.epsilon, 2, grid=self.step, seed=seed, noise="gaussian", delta=self.delta)
        return np.clip(np.round(client.signal(floats(scores)) / self.step).astype(np.int64), self.low, self.high)


@dataclass(frozen=True, kw_only=True)
class RingSignals(SignalSubject):
    """One signal about a position on a ring; neighbours are at most `distance` apart along the ring."""

    noise: ClassVar[str] = "heights on a ring"
    k: ClassVar[int] = 1

    epsilon: float
    heights: tuple[int, ...]
    step: float = 0.5
    distance: float = 1.0

    @property
    def ring(self) -> Ring:
        """The ring of these heights; signals do not depend on which places have answers."""
        around = self.step * len(self.heights)
        return Ring(epsilon=self.epsilon, heights=self.heights, answers=(0,), circumference=around)

    def stated_loss(self) -> float:
        """Return the privacy loss claimed for one signal."""
        return self.ring.guarantee.loss(self.distance)

    def law(self, scores: Any) -> dict[Any, float]:
        """Return the probability of every place."""
        ring = self.ring
        return {(place,): share for place, share in ring.law(ring.place_of(floats(scores)[0])).items()}

    def select(self, scores: Any, *, seed: int | None = None) -> Array:
        """Send the signal."""
        return np.array([self.ring.signal(floats(scores)[0], seed=seed)])


def floats(scores: Any) -> list[float]:
    """Return scores as floats."""
    return [float(value) for value in Scores.of(scores).exact()]


def observed(client: Client, positions: Sequence[Any], step: float) -> list[int]:
    """Return what a listener observes of the requests at these positions: the grid point sent, or REFUSED."""
    places = []
    for position in positions:
        try:
            places.append(round(client.signal(position) / step))
        except BudgetExceeded:
            places.append(REFUSED)
    return places


def observed_law(make_client: Callable[[], Client], positions: Sequence[Any], low: int, high: int) -> dict[Any, float]:
    """Return the exact law of `observed`, by running the client once for every sequence of noisy grid points."""
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
            law[outcome] = law.get(outcome, 0.0) + noise.probability
    return law


class _MoreNoise(Exception):
    """The client draws more often than the script provides for."""


class _ScriptedNoise(GridNoise):
    """Noise that follows a script of grid points, and the product of their probabilities."""

    def __init__(self, epsilon: float, step: float, script: Iterator[int], low: int, high: int) -> None:
        super().__init__(epsilon, step)
        self._script, self._low, self._high = script, low, high
        self.probability = 1.0

    def draw(self, place: int, bits: BitSource) -> int:
        for sent in self._script:
            self.probability *= _law_around(self.epsilon, self.step, place, self._low, self._high)[sent]
            return sent
        raise _MoreNoise


@lru_cache(maxsize=1024)
def _law_around(epsilon: float, step: float, place: int, low: int, high: int) -> dict[int, float]:
    return GridNoise(epsilon, step).law(Fraction(step) * place, low, high)


def positions_of(count: int, distance: float, by: float, highest: float) -> Domain:
    """Return all sequences of positions on a line up to `highest`, and their neighbours up to `distance` away."""
    return Domain(count, highest, Sensitivity(-distance, distance), step=by)


TWO_PEAKS = (0, 1, 2, 3, 2, 1, 0, 1, 2, 2, 1)
"""Heights like those of the optimal noise: two peaks, and one flat step, since the number of places is odd."""

QUICK_PAIRS: list[tuple[Subject, Domain]] = [
    (Signals(epsilon=1.0, step=0.5), positions_of(1, 1, 0.125, 2)),
    (Signals(epsilon=0.5, step=1.0, k=4, drawn=2, reuse=True), positions_of(1, 1, 0.25, 2)),
    (MovingSignals(epsilon=1.0, step=0.5, distance=0.5, k=3, drawn=2), positions_of(3, 0.5, 0.5, 1)),
    (VectorSignals(epsilon=1.0, step=0.5), positions_of(2, 1, 0.25, 0.5)),
    (GaussianSignals(epsilon=2.0, delta=0.01, step=0.5), positions_of(2, 0.5, 0.25, 0.5)),
    (RingSignals(epsilon=1.0, heights=TWO_PEAKS), positions_of(1, 1, 0.125, 5.5)),
]
PAIRS: list[tuple[Subject, Domain]] = [
    *QUICK_PAIRS,
    (Signals(epsilon=2.0, step=0.25, distance=0.125), positions_of(1, 0.125, 0.0625, 2)),
    (Signals(epsilon=1.0, step=0.75), positions_of(1, 1, 0.125, 2)),
    (Signals(epsilon=0.25, step=0.5, distance=2.0, k=3, drawn=1, reuse=True), positions_of(1, 2, 0.125, 2)),
    (Signals(epsilon=0.5, step=1.0, k=4, drawn=2), positions_of(1, 1, 0.25, 2)),
    (MovingSignals(epsilon=2.0, step=0.5, distance=0.25, k=3, drawn=1), positions_of(3, 0.25, 0.25, 1)),
    (MovingSignals(epsilon=0.5, step=0.5, distance=1.0, k=2, drawn=2), positions_of(2, 1, 0.25, 1)),
    (VectorSignals(epsilon=0.5, step=0.75, distance=0.5), positions_of(2, 0.5, 0.125, 0.75)),
    (GaussianSignals(epsilon=1.0, delta=0.1, step=0.75, distance=0.75), positions_of(2, 0.75, 0.25, 0.75)),
    (RingSignals(epsilon=2.0, heights=TWO_PEAKS, distance=2.5), positions_of(1, 2.5, 0.25, 5.5)),
]
"""Positions on and between grid points, distances of whole and broken steps, users who stay (with and without reuse)
and users who move."""

SAMPLES: list[tuple[Subject, list[float]]] = [
    (Signals(epsilon=1.0, step=0.5), [1.3125]),
    (Signals(epsilon=0.5, step=1.0, k=3, drawn=2, reuse=True), [2]),
    (MovingSignals(epsilon=1.0, step=0.5, k=3, drawn=2), [1, 0, 1]),
    (VectorSignals(epsilon=4.0, step=0.5), [0.625, 1.0]),
    (GaussianSignals(epsilon=4.0, delta=0.01, step=0.5), [0.625, 1.0]),
    (RingSignals(epsilon=1.0, heights=TWO_PEAKS), [1.3125]),
]
"""Clients and the positions to draw for."""
