"""Broken twins of signals of feature vectors and of signals on a ring."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpselect.multiselect.features import FeatureClient, VectorNoise
from dpselect.multiselect.ring import ring_law
from dpselect.privacy import Guarantee
from dpselect.scores import Scores
from dpselect.verify.broken.signals import BrokenSignals
from dpselect.verify.domain import Domain
from dpselect.verify.vectors import TWO_PEAKS, RingSignals, VectorSignals


@dataclass(frozen=True, kw_only=True)
class BrokenVectors(BrokenSignals):
    """Signals of two features with one mistake, which claim what the sound ones claim."""

    noise: str = "geometric, two features"
    places_are_items = False
    shown_on = (1.0, 0.5)  # type: ignore[assignment]

    @property
    def sound(self) -> VectorSignals:  # type: ignore[override]
        return VectorSignals(epsilon=self.epsilon, step=0.5)

    @property
    def domain(self) -> Domain:
        return Domain(2, 1, self.sensitivity, step=0.5)

    @property
    def guarantee(self) -> Guarantee:
        return self.sound.guarantee


@dataclass(frozen=True, kw_only=True)
class OneNoiseForAll(BrokenVectors):
    """One noise for all features: their difference shows as it is."""

    name = "one noise for all features"
    flaw = "the features share one noise"

    def law(self, scores: Any) -> dict[Any, float]:
        values = [float(value) for value in Scores.of(scores).exact()]
        noise = VectorNoise(self.epsilon, 2, 0.5)
        first, second = noise.nearest(values)
        single = noise.single.law(values[0], VectorSignals.low, VectorSignals.high)
        return {(place, place + second - first): chance for place, chance in single.items()}


@dataclass(frozen=True, kw_only=True)
class EuclideanNoise(BrokenVectors):
    """Noise for the Euclidean distance, which is smaller than the ℓ1 distance that the claim is about."""

    name = "noise for Euclidean distances"
    flaw = "the noise is smaller by the root of the number of features"

    def law(self, scores: Any) -> dict[Any, float]:
        values = [float(value) for value in Scores.of(scores).exact()]
        noise = VectorNoise(self.epsilon * math.sqrt(2), 2, 0.5)
        return dict(noise.law(values, VectorSignals.low, VectorSignals.high))


@dataclass(frozen=True, kw_only=True)
class SwappedFeatures(BrokenVectors):
    """The signal has its features in the wrong order."""

    name = "features swapped"
    flaw = "the two noisy features change places"
    rejected_by = "sampler"

    def select(self, scores: Any, *, seed: int | None = None) -> Any:
        values = [float(value) for value in Scores.of(scores).exact()]
        signal = FeatureClient(self.epsilon, 2, grid=0.5, seed=seed).signal(values[::-1])
        return np.clip(np.round(signal / 0.5).astype(np.int64), VectorSignals.low, VectorSignals.high)


@dataclass(frozen=True, kw_only=True)
class RowLeftOut(BrokenSignals):
    """Noise on a ring from a linear program that forgot one of its rows: the height jumps by 2 there."""

    name = "row of the program left out"
    flaw = "two neighbouring places are not compared"
    noise: str = "heights on a ring"

    @property
    def sound(self) -> RingSignals:  # type: ignore[override]
        return RingSignals(epsilon=self.epsilon, heights=TWO_PEAKS)

    @property
    def domain(self) -> Domain:
        return Domain(1, 5.5, self.sensitivity, step=0.5)

    @property
    def guarantee(self) -> Guarantee:
        return self.sound.guarantee

    def law(self, scores: Any) -> dict[Any, float]:
        ring = self.sound.ring
        jumping = np.array([*TWO_PEAKS[:3], TWO_PEAKS[3] + 1, TWO_PEAKS[4] + 1, *TWO_PEAKS[5:]])
        chances = ring_law(jumping, float(ring.rate))
        place = ring.place_of(float(Scores.of(scores).exact()[0]))
        return {((place - y) % ring.places,): float(chance) for y, chance in enumerate(chances)}
