"""Laplace and Gaussian with their values, as mechanisms under test: outcomes are items with rounded noisy scores."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from dpselect.mechanisms import Gaussian, Laplace, NoisyVector
from dpselect.sampling import bit_source
from dpselect.sampling.laws import rounded_sequence_law
from dpselect.scores import Scores

GRID = Fraction(1)
"""The public grid. Real ones are finer for scores that are not counts, too fine to enumerate."""


class ValuesShown(NoisyVector):
    """A mechanism whose outcomes are pairs (item, value).

    Values beyond `low` or `high` count as that bound, so that a law is a finite list; with Laplace noise this hides
    nothing, since beyond all scores every value has the same privacy loss as the bound.
    """

    noise: ClassVar[str] = "with values"
    low: ClassVar[int] = -3
    high: ClassVar[int] = 6

    def law(self, scores: Any) -> dict[Any, float]:
        """Return the probability of every outcome."""
        locations = [float(self.rate() * score) for score in Scores.of(scores).exact()]
        edges = [float(self.rate() * GRID * (step + Fraction(1, 2))) for step in range(self.low, self.high)]
        law = rounded_sequence_law(locations, self.k, self.distribution, edges)
        return {tuple((item, float(self.low + cell)) for item, cell in outcome): p for outcome, p in law.items()}

    def select(self, scores: Any, *, seed: int | None = None) -> Any:
        """Draw an outcome."""
        members, steps = self.draw_rounded(Scores.of(scores), GRID, bit_source(seed))
        shown = np.clip(steps, self.low, self.high).astype(float).tolist()
        return list(zip(members.positions().tolist(), shown, strict=True))


@dataclass(frozen=True, kw_only=True)
class LaplaceShown(ValuesShown, Laplace):
    """Laplace with its values."""


@dataclass(frozen=True, kw_only=True)
class GaussianShown(ValuesShown, Gaussian):
    """Gaussian with its values."""
