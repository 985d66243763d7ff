"""Mechanisms that are wrong on purpose: the checks must reject each one and accept its sound counterpart.

Each is a mistake that has been made in earnest. None of them is reachable from `select`; they exist to show that
the checks can fail.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import permutations
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from dpselect.mechanisms import OneShot
from dpselect.mechanisms.base import scaled_locations
from dpselect.privacy import COUNTS, Guarantee, Sensitivity
from dpselect.sampling.laws import set_law
from dpselect.sampling.noise import NOISES, Noise
from dpselect.scores import Scores

Floats = NDArray[np.float64]

BOTH_WAYS = Sensitivity(-1, 1)
LOWEST_SHOWN, HIGHEST_SHOWN = -2, 8


@dataclass(frozen=True, kw_only=True)
class Broken(ABC):
    """A variant of `OneShot` with one mistake, which makes the same claim."""

    name: ClassVar[str]
    flaw: ClassVar[str]
    rejected_by: ClassVar[Literal["privacy", "sampler"]]
    ordered: ClassVar[bool] = False

    k: int
    epsilon: float
    sensitivity: Sensitivity = COUNTS
    noise: str = "exponential"

    @property
    def guarantee(self) -> Guarantee:
        """What is claimed, wrongly."""
        return Guarantee(epsilon=self.epsilon)

    @property
    def sound(self) -> OneShot:
        """The mechanism without the mistake."""
        return OneShot(k=self.k, epsilon=self.epsilon, sensitivity=self.sensitivity, noise=self.noise)

    @property
    def rate(self) -> Fraction:
        """What the scores are multiplied by before standard noise is added: ε / (k w), if it were right."""
        return Fraction(self.epsilon) / Fraction(self.sensitivity.spread) / self.k

    @abstractmethod
    def law(self, scores: Any) -> dict[Any, float]:
        """Return the probability of every outcome."""

    def select(self, scores: Any, *, seed: int | None = None) -> NDArray[Any]:
        """Draw an outcome from the law: these mistakes lie in the law itself."""
        generator = np.random.default_rng(seed)
        outcomes, chances = zip(*self.law(scores).items(), strict=True)
        outcome = outcomes[generator.choice(len(outcomes), p=np.array(chances) / sum(chances))]
        return np.array(outcome) if self.ordered else generator.permutation(list(outcome))

    def locations(self, scores: Any) -> list[float]:
        """Return what the noise is added to."""
        return _locations(Scores.of(scores), self.rate)


@dataclass(frozen=True, kw_only=True)
class _WrongSet(Broken):
    """A set drawn with the wrong rate or the wrong noise."""

    rejected_by = "privacy"

    def law(self, scores: Any) -> dict[Any, float]:
        return dict(set_law(self.locations(scores), self.k, NOISES[self.noise]))


@dataclass(frozen=True, kw_only=True)
class HalvedNoise(_WrongSet):
    """Noise of half the scale that the claim needs."""

    name = "halved noise"
    flaw = "the noise scale is half of k w / epsilon"

    @property
    def rate(self) -> Fraction:
        return 2 * super().rate


@dataclass(frozen=True, kw_only=True)
class ForgottenK(_WrongSet):
    """Noise of scale w/ε for k items, as if one were chosen."""

    name = "forgotten k"
    flaw = "the noise scale is w / epsilon, for k items"

    @property
    def rate(self) -> Fraction:
        return super().rate * self.k


@dataclass(frozen=True, kw_only=True)
class ForgottenFactorTwo(_WrongSet):
    """Scores that move both ways by s, with noise for a spread of s instead of 2s."""

    name = "forgotten factor 2"
    flaw = "scores move both ways by s, the noise is scaled for a spread of s"
    sensitivity: Sensitivity = BOTH_WAYS

    @property
    def rate(self) -> Fraction:
        return Fraction(self.epsilon) / Fraction(self.sensitivity.high) / self.k


@dataclass(frozen=True, kw_only=True)
class SwappedExtremes(_WrongSet):
    """The extreme-value law of minima in place of that of maxima, whose log survival −e^z is not Lipschitz."""

    name = "min for max"
    flaw = "the noise follows the extreme-value law of the minimum"
    noise: str = "gumbel"

    def law(self, scores: Any) -> dict[Any, float]:
        return dict(set_law(self.locations(scores), self.k, MINIMUM))


@dataclass(frozen=True, kw_only=True)
class LeakedOrder(Broken):
    """The set of the one-shot mechanism, listed from the highest true score to the lowest.

    Tied scores come in any order with equal chance, so each order that the scores allow has an equal part of P(set).
    """

    name = "leaked order"
    flaw = "the set is listed by true score"
    rejected_by = "privacy"
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
class ShownValue(Broken):
    """The winner with its noisy score, rounded down to a whole score and cut to LOWEST_SHOWN..HIGHEST_SHOWN; k = 1.

    `P(i, b) = ∫_b f_i Π_{l ≠ i} F_l` over the noisy values z that are shown as b. An outcome is ((item, value),).
    """

    name = "shown value"
    flaw = "the winner's noisy score is shown with it"
    rejected_by = "privacy"
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


class _WrongSampler(Broken):
    """A sampler that does not draw from the sound law it states."""

    rejected_by = "sampler"

    def law(self, scores: Any) -> dict[Any, float]:
        return dict(self.sound.law(scores))

    def select(self, scores: Any, *, seed: int | None = None) -> NDArray[Any]:
        generator = np.random.default_rng(seed)
        locations = np.array(self.locations(scores))
        noises = NOISES[self.noise].quantile(generator.exponential(size=len(locations)))
        chosen = np.argsort(-self.noisy(locations, noises))[: self.k]
        return generator.permutation(chosen)

    def noisy(self, locations: Floats, noises: Floats) -> Floats:
        """Return the noisy values, with the mistake in them."""
        return locations + noises


@dataclass(frozen=True, kw_only=True)
class SwappedOrderStatistics(_WrongSampler):
    """Tied items that get the smallest noises of their group where they should get the largest."""

    name = "order statistics swapped"
    flaw = "a group of ties competes with its smallest noises"

    def noisy(self, locations: Floats, noises: Floats) -> Floats:
        result = np.full(len(locations), -np.inf)
        for location in np.unique(locations):
            group = np.flatnonzero(locations == location)
            places = group[np.argsort(noises[group])][: self.k]
            result[places] = location + noises[places]
        return result


@dataclass(frozen=True, kw_only=True)
class FavouredMembers(_WrongSampler):
    """Tied items that win in the order in which they were listed."""

    name = "members not uniform"
    flaw = "of a group of ties, the first listed win"

    def noisy(self, locations: Floats, noises: Floats) -> Floats:
        result = locations.copy()
        for location in np.unique(locations):
            group = np.flatnonzero(locations == location)
            result[group] += -np.sort(-noises[group])
        return result


@dataclass(frozen=True, kw_only=True)
class ReusedNoise(_WrongSampler):
    """Two items that share one noise."""

    name = "noise reused"
    flaw = "two items get the same noise"

    def noisy(self, locations: Floats, noises: Floats) -> Floats:
        shared = noises.copy()
        shared[1] = shared[0]
        return locations + shared


@dataclass(frozen=True, kw_only=True)
class SortedSet(_WrongSampler):
    """A set that is returned in the order of its noisy values, though it is said to be unordered."""

    name = "set not shuffled"
    flaw = "the set is returned in the order of its noisy scores"

    def select(self, scores: Any, *, seed: int | None = None) -> NDArray[Any]:
        generator = np.random.default_rng(seed)
        locations = np.array(self.locations(scores))
        noises = NOISES[self.noise].quantile(generator.exponential(size=len(locations)))
        return np.argsort(-(locations + noises))[: self.k]


@dataclass(frozen=True, kw_only=True)
class SlightlyWrongScale(_WrongSampler):
    """Noise a little smaller than the law says."""

    name = "scale slightly off"
    flaw = "the noise drawn is a sixth smaller than stated"

    def noisy(self, locations: Floats, noises: Floats) -> Floats:
        return 1.2 * locations + noises


@lru_cache(maxsize=64)
def _locations(scores: Scores, rate: Fraction) -> list[float]:
    """Keep the locations of a Scores object, from which a sampler check draws thousands of times."""
    return scaled_locations(scores, rate)


def _ball_minimum_quantile(exponent: Any) -> Any:
    return (-(-(-exponent).expm1()).log()).log()


MINIMUM = Noise(
    "minimum",
    quantile=lambda exponent: np.log(-np.log(-np.expm1(-exponent))),
    ball_quantile=_ball_minimum_quantile,
    cdf=lambda z: -np.expm1(-np.exp(z)),
    survival=lambda z: np.exp(-np.exp(z)),
    density=lambda z: np.exp(z - np.exp(z)),
)
