"""Broken twins of the Gaussian mechanism."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dpselect.mechanisms.base import scaled_locations
from dpselect.mechanisms.gaussian import Gaussian
from dpselect.privacy import Guarantee, Sensitivity
from dpselect.privacy.calibration import unit_sigma
from dpselect.sampling.laws import sequence_law
from dpselect.sampling.noise import NORMAL
from dpselect.scores import Scores
from dpselect.verify.broken.base import Broken
from dpselect.verify.privacy import Subject

BOTH_WAYS = Sensitivity(-1, 1)


@dataclass(frozen=True, kw_only=True)
class BrokenGaussian(Broken, ABC):
    """Normal noise of the wrong size. Two items that move against each other show all of it."""

    ordered = True
    box = (2, 2)

    noise: str = "normal"
    sensitivity: Sensitivity = BOTH_WAYS
    delta: float = 0.1
    max_items_per_person: int = 2

    @property
    def guarantee(self) -> Guarantee:
        return Guarantee(epsilon=self.epsilon, delta=self.delta)

    @property
    def sound(self) -> Subject:
        return Gaussian(
            k=self.k,
            epsilon=self.epsilon,
            delta=self.delta,
            sensitivity=self.sensitivity,
            max_items_per_person=self.max_items_per_person,
        )

    @property
    @abstractmethod
    def sigma(self) -> float:
        """The standard deviation of the noise."""

    def law(self, scores: Any) -> dict[Any, float]:
        return dict(sequence_law(scaled_locations(Scores.of(scores), 1 / Fraction(self.sigma)), self.k, NORMAL))


@dataclass(frozen=True, kw_only=True)
class ForgottenRoot(BrokenGaussian):
    """The L2 sensitivity of one score in place of that of m scores."""

    name = "forgotten root of m"
    flaw = "the noise is made for one item per person, where a person touches several"

    @property
    def sigma(self) -> float:
        return unit_sigma(self.epsilon, self.delta)


@dataclass(frozen=True, kw_only=True)
class ClassicalSigma(BrokenGaussian):
    """`σ₁ = √(2 ln(1.25/δ))/ε` for an ε beyond 1, where it was never proven."""

    name = "classical sigma"
    flaw = "the classical formula for the noise is used beyond its range, at a large epsilon"

    @property
    def sigma(self) -> float:
        return math.sqrt(self.max_items_per_person * 2.0 * math.log(1.25 / self.delta)) / self.epsilon
