"""The Lipschitz mechanism in plain floating point, from which every broken one departs by one mistake."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar, Literal

import numpy as np

from dpselect._arrays import Array
from dpselect.mechanisms import OneShot
from dpselect.mechanisms.base import scaled_locations
from dpselect.privacy import COUNTS, Guarantee, Sensitivity
from dpselect.sampling.laws import set_law
from dpselect.scores import Scores
from dpselect.verify.broken.noises import EVERY_NOISE
from dpselect.verify.domain import Domain
from dpselect.verify.privacy import Subject


@dataclass(frozen=True, kw_only=True)
class Lipschitz:
    """The set of the k largest of `x_i · ε/(k w) + Z_i` (mathematics, section 2), for any noise with a law.

    It draws from its law with NumPy: good enough for a check, not for people's data.
    """

    name: ClassVar[str] = "lipschitz"
    ordered: ClassVar[bool] = False

    k: int
    epsilon: float
    sensitivity: Sensitivity = COUNTS
    noise: str = "exponential"

    @property
    def guarantee(self) -> Guarantee:
        """What is claimed."""
        return Guarantee(epsilon=self.epsilon)

    @property
    def rate(self) -> Fraction:
        """What the scores are multiplied by before standard noise is added: ε / (k w)."""
        return Fraction(self.epsilon) / Fraction(self.sensitivity.spread) / self.k

    def locations(self, scores: Any) -> list[float]:
        """Return what the noise is added to."""
        return _locations(Scores.of(scores), self.rate)

    def law(self, scores: Any) -> dict[Any, float]:
        """Return the probability of every outcome."""
        return dict(set_law(self.locations(scores), self.k, EVERY_NOISE[self.noise]))

    def select(self, scores: Any, *, seed: int | None = None) -> Array:
        """Draw an outcome from the law, a set in random order."""
        generator = np.random.default_rng(seed)
        outcomes, chances = zip(*self.law(scores).items(), strict=True)
        outcome = outcomes[generator.choice(len(outcomes), p=np.array(chances) / sum(chances))]
        return np.array(outcome) if self.ordered else generator.permutation(list(outcome))


@dataclass(frozen=True, kw_only=True)
class Broken(Lipschitz):
    """A mechanism with one mistake, which makes the same claim as without.

    A privacy check goes through `box[0]` items with scores up to `box[1]`; a sampler check draws `draws` times for the
    scores `shown_on`, where the mistake shows.
    """

    flaw: ClassVar[str]
    rejected_by: ClassVar[Literal["privacy", "sampler"]] = "privacy"
    box: ClassVar[tuple[int, int]] = (4, 3)
    shown_on: ClassVar[tuple[float, ...]] = (2, 1, 0, 1, 1)
    draws: ClassVar[int] = 3000

    @property
    def domain(self) -> Domain:
        """What a privacy check goes through."""
        return Domain(*self.box, self.sensitivity)

    @property
    def sound(self) -> Subject:
        """The mechanism without the mistake."""
        return OneShot(k=self.k, epsilon=self.epsilon, sensitivity=self.sensitivity, noise=self.noise)


# A sampler check draws thousands of times from the same Scores object.
@lru_cache(maxsize=64)
def _locations(scores: Scores, rate: Fraction) -> list[float]:
    return scaled_locations(scores, rate)
