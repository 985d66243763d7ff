"""Multi-selection under test: signals of feature vectors, and signals on a ring."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dpselect._arrays import Array
from dpselect.multiselect.features import FeatureClient, VectorNoise
from dpselect.multiselect.ring import Ring
from dpselect.privacy import Guarantee, Sensitivity
from dpselect.scores import Scores
from dpselect.verify.domain import Domain

NAME = "multiselect"


@dataclass(frozen=True, kw_only=True)
class VectorSignals:
    """One signal about a vector of two numbers; outcomes are pairs of grid points, those beyond low or high cut off.

    Neighbours are vectors of which each number is at most `distance` from the other's.
    """

    name: ClassVar[str] = NAME
    noise: ClassVar[str] = "geometric, two features"
    ordered: ClassVar[bool] = True
    places_are_items: ClassVar[bool] = False
    k: ClassVar[int] = 2
    low: ClassVar[int] = -4
    high: ClassVar[int] = 8

    epsilon: float
    step: float
    distance: float = 1.0

    @property
    def sensitivity(self) -> Sensitivity:
        """How far each number moves between neighbours."""
        return Sensitivity(-self.distance, self.distance)

    @property
    def guarantee(self) -> Guarantee:
        """What a signal claims for neighbours."""
        loss = VectorNoise(self.epsilon, 2, self.step).guarantee.loss([self.distance] * 2)
        return Guarantee(loss, protects="one feature vector", neighbours="vectors nearby")

    def law(self, scores: Any) -> dict[Any, float]:
        """Return the probability of every pair of grid points."""
        return dict(VectorNoise(self.epsilon, 2, self.step).law(_floats(scores), self.low, self.high))

    def select(self, scores: Any, *, seed: int | None = None) -> Array:
        """Let a client send the signal."""
        signal = FeatureClient(self.epsilon, 2, grid=self.step, seed=seed).signal(_floats(scores))
        return np.clip(np.round(signal / self.step).astype(np.int64), self.low, self.high)


@dataclass(frozen=True, kw_only=True)
class RingSignals:
    """One signal about a position on a ring; neighbours are at most `distance` apart, also across its beginning."""

    name: ClassVar[str] = NAME
    noise: ClassVar[str] = "heights on a ring"
    ordered: ClassVar[bool] = True
    k: ClassVar[int] = 1

    epsilon: float
    heights: tuple[int, ...]
    step: float = 0.5
    distance: float = 1.0

    @property
    def ring(self) -> Ring:
        """The ring of these heights; which places are answered makes no difference to signals."""
        return Ring(
            epsilon=self.epsilon, heights=self.heights, answers=(0,), circumference=self.step * len(self.heights)
        )

    @property
    def sensitivity(self) -> Sensitivity:
        """How far the position moves between neighbours."""
        return Sensitivity(-self.distance, self.distance)

    @property
    def guarantee(self) -> Guarantee:
        """What a signal claims for neighbours."""
        loss = self.ring.guarantee.loss(self.distance)
        return Guarantee(loss, protects="one position", neighbours="positions nearby")

    def law(self, scores: Any) -> dict[Any, float]:
        """Return the probability of every place."""
        ring = self.ring
        return {(place,): chance for place, chance in ring.law(ring.place_of(_floats(scores)[0])).items()}

    def select(self, scores: Any, *, seed: int | None = None) -> Array:
        """Send the signal."""
        return np.array([self.ring.signal(_floats(scores)[0], seed=seed)])


TWO_PEAKS = (0, 1, 2, 3, 2, 1, 0, 1, 2, 2, 1)
"""Heights as the best noise has them: two peaks, and one step without a change, as the places are odd in number."""

PAIRS: list[tuple[VectorSignals | RingSignals, Domain]] = [
    (VectorSignals(epsilon=1.0, step=0.5), Domain(2, 0.5, Sensitivity(-1, 1), step=0.25)),
    (RingSignals(epsilon=1.0, heights=TWO_PEAKS), Domain(1, 5.5, Sensitivity(-1, 1), step=0.125)),
    (
        VectorSignals(epsilon=0.5, step=0.75, distance=0.5),
        Domain(2, 0.75, Sensitivity(-0.5, 0.5), step=0.125),
    ),
    (RingSignals(epsilon=2.0, heights=TWO_PEAKS, distance=2.5), Domain(1, 5.5, Sensitivity(-2.5, 2.5), step=0.25)),
]

SAMPLES: list[tuple[VectorSignals | RingSignals, list[float]]] = [
    (VectorSignals(epsilon=4.0, step=0.5), [0.625, 1.0]),
    (RingSignals(epsilon=1.0, heights=TWO_PEAKS), [1.3125]),
]


def _floats(scores: Any) -> list[float]:
    return [float(value) for value in Scores.of(scores).exact()]
