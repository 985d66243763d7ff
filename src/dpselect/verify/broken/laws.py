"""Broken mechanisms whose law is wrong: the exact privacy check must reject them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import permutations
from typing import Any

import numpy as np

from dpselect.privacy import Sensitivity
from dpselect.sampling.laws import sequence_law, set_law
from dpselect.sampling.noise import NOISES
from dpselect.verify.broken.base import Broken, Lipschitz
from dpselect.verify.broken.noises import EVERY_NOISE
from dpselect.verify.privacy import Subject

BOTH_WAYS = Sensitivity(-1, 1)
LOWEST_SHOWN, HIGHEST_SHOWN = -2, 8


@dataclass(frozen=True, kw_only=True)
class HalvedNoise(Broken):
    """Noise of half the scale that the claim needs."""

    name = "halved noise"
    flaw = "the noise scale is half of k w / epsilon"

    @property
    def rate(self) -> Fraction:
        return 2 * super().rate


@dataclass(frozen=True, kw_only=True)
class ForgottenK(Broken):
    """Noise of scale w/ε for k items, as if one were chosen."""

    name = "forgotten k"
    flaw = "the noise scale is w / epsilon, for k items"

    @property
    def rate(self) -> Fraction:
        return super().rate * self.k


@dataclass(frozen=True, kw_only=True)
class ForgottenFactorTwo(Broken):
    """Scores that move both ways by s, with noise for a spread of s instead of 2s."""

    name = "forgotten factor 2"
    flaw = "scores move both ways by s, the noise is scaled for a spread of s"
    sensitivity: Sensitivity = BOTH_WAYS

    @property
    def rate(self) -> Fraction:
        return Fraction(self.epsilon) / Fraction(self.sensitivity.high) / self.k


@dataclass(frozen=True, kw_only=True)
class SwappedExtremes(Broken):
    """The extreme-value law of minima in place of that of maxima, whose log survival −e^z is not Lipschitz."""

    name = "min for max"
    flaw = "the noise follows the extreme-value law of the minimum"
    noise: str = "gumbel"

    def law(self, scores: Any) -> dict[Any, float]:
        return dict(set_law(self.locations(scores), self.k, EVERY_NOISE["minimum"]))


@dataclass(frozen=True, kw_only=True)
class LeakedOrder(Broken):
    """The set of the one-shot mechanism, listed from the highest true score to the lowest.

    Tied scores come in any order with equal chance, so each order that the scores allow has an equal part of P(set).
    """

    name = "leaked order"
    flaw = "the set is listed by true score"
    ordered = True

    def law(self, scores: Any) -> dict[Any, float]:
        locations = self.locations(scores)
        law: dict[Any, float] = {}
        for chosen, probability in set_law(locations, self.k, NOISES[self.noise]).items():
            descending = sorted((locations[item] for item in chosen), reverse=True)
            allowed = [order for order in permutations(chosen) if [locations[item] for item in order] == descending]
            law.update((order, probability / len(allowed)) for order in allowed)
        return law


@dataclass(frozen=True, kw_only=True)
class LeakedNoisyOrder(Broken):
    """The set of the one-shot mechanism, listed from the highest noisy score to the lowest.

    A set needs noise whose survival function falls by at most e^{−s} over any length s, which STEPS meets. The
    order shows the noise itself, and needs the same of the density, which STEPS does not meet.
    """

    name = "leaked noisy order"
    flaw = "the set is listed by noisy score, with noise fit for sets only"
    ordered = True
    noise: str = "steps"

    @property
    def sound(self) -> Subject:
        return Lipschitz(k=self.k, epsilon=self.epsilon, sensitivity=self.sensitivity, noise=self.noise)

    def law(self, scores: Any) -> dict[Any, float]:
        return dict(sequence_law(self.locations(scores), self.k, EVERY_NOISE[self.noise]))


@dataclass(frozen=True, kw_only=True)
class ShownValue(Broken):
    """The winner with its noisy score, rounded down to a whole score and cut to LOWEST_SHOWN..HIGHEST_SHOWN; k = 1.

    `P(i, b) = ∫_b f_i Π_{l ≠ i} F_l` over the noisy values z that are shown as b. An outcome is ((item, value),).
    """

    name = "shown value"
    flaw = "the winner's noisy score is shown with it"
    ordered = True

    def law(self, scores: Any) -> dict[Any, float]:
        noise, rate = NOISES[self.noise], float(self.rate)
        values = np.array([float(score) for score in scores])
        nodes, weights = np.polynomial.legendre.leggauss(20)
        reach = math.ceil(40 / rate)
        # Scores are whole, so that every kink of a density lies on the border of a bin.
        bins = np.arange(LOWEST_SHOWN - reach, HIGHEST_SHOWN + reach)
        shifted = rate * (bins[:, None] + (nodes + 1) / 2 - values[:, None, None])
        with np.errstate(over="ignore", under="ignore"):
            cdf, density = noise.cdf(shifted), noise.density(shifted)
        shown = np.clip(bins, LOWEST_SHOWN, HIGHEST_SHOWN).astype(float).tolist()
        law: dict[Any, float] = {}
        for item in range(len(values)):
            integrand = density[item] * np.delete(cdf, item, axis=0).prod(axis=0)
            for value, chance in zip(shown, (integrand @ weights * rate / 2).tolist(), strict=True):
                outcome = ((item, value),)
                law[outcome] = law.get(outcome, 0.0) + chance
        return law
