"""A broken twin of the gamma mechanism."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dpselect.mechanisms import Gamma
from dpselect.mechanisms.gamma import gamma_law
from dpselect.scores import Scores
from dpselect.verify.broken.base import Broken
from dpselect.verify.privacy import Subject


@dataclass(frozen=True, kw_only=True)
class ShortGamma(Broken):
    """Gamma(d) in place of Gamma(d + 1): the density of the noise is unbounded at 0, and so is its log-ratio."""

    name = "shape one too small"
    flaw = "the scale is Gamma(d) instead of Gamma(d + 1)"
    ordered = True
    box = (3, 2)

    @property
    def sound(self) -> Subject:
        return Gamma(k=self.k, epsilon=self.epsilon, sensitivity=self.sensitivity)

    def law(self, scores: Any) -> dict[Any, float]:
        table = Scores.of(scores)
        return gamma_law(table, self.k, 2 * self.k * self.rate, shape=table.size)
