"""The exact law of a release with values, for privacy checks: items and noisy scores together."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np

from dpselect._arrays import Array
from dpselect.mechanisms.base import Mechanism
from dpselect.privacy import Guarantee, Sensitivity, compose
from dpselect.scores import Scores
from dpselect.values import LAPLACE, ValueNoise


@dataclass(frozen=True)
class WithValues:
    """A mechanism followed by noisy scores of its items, as one mechanism whose outcomes are (item, value) pairs.

    Values beyond `low` or `high` steps of the grid count as that bound, so that a law is a finite list. With discrete
    Laplace noise this hides nothing: beyond all scores every value has the same privacy loss as the bound.
    """

    mechanism: Mechanism
    noise: ValueNoise
    low: int = -4
    high: int = 8

    @property
    def k(self) -> int:
        """How many items are returned."""
        return self.mechanism.k

    @property
    def sensitivity(self) -> Sensitivity:
        """How far one person can move the scores."""
        return self.mechanism.sensitivity

    @property
    def ordered(self) -> bool:
        """Whether the order of the items is part of the outcome."""
        return self.mechanism.ordered

    @property
    def guarantee(self) -> Guarantee:
        """The sum of both costs, exact and rounded up."""
        return compose([self.mechanism.guarantee, self.noise.guarantee], route="basic")

    def law(self, scores: Any) -> dict[Any, float]:
        """Return `P(items) · Π P(value of i | score of i)` for every outcome."""
        steps = self.noise.rounded(Scores.of(scores).exact())
        return {
            type(items)(zip(items, map(float, values), strict=True)): mass * math.prod(masses)
            for items, mass in self.mechanism.law(scores).items()
            for values, masses in self._values([steps[item] for item in items])
        }

    def select(self, scores: Any, *, seed: int | None = None) -> Array:
        """Draw the items."""
        return self.mechanism.select(scores, seed=seed)

    def _values(self, steps: list[int]) -> Iterator[tuple[tuple[int, ...], tuple[float, ...]]]:
        shown = range(self.low, self.high + 1)
        laws = [_clipped_law(self.noise.noise, self.noise.spread, self.low - step, self.high - step) for step in steps]
        for places in product(range(len(shown)), repeat=len(steps)):
            masses = tuple(law[place] for law, place in zip(laws, places, strict=True))
            yield tuple(shown[place] for place in places), masses


@lru_cache(maxsize=1024)
def _clipped_law(noise: str, spread: Fraction, low: int, high: int) -> tuple[float, ...]:
    """Return the law of noise that is cut to low..high, low < high; every sum is of positive terms."""
    size = float(spread)
    reach = max(abs(low), abs(high)) + math.ceil(750 * size if noise == LAPLACE else 39 * math.sqrt(size)) + 2
    numbers = np.arange(-reach, reach + 1)
    exponents = -np.abs(numbers) / size if noise == LAPLACE else -(numbers.astype(float) ** 2) / (2 * size)
    weights = np.exp(exponents) / math.fsum(np.exp(exponents))
    inside = weights[(numbers > low) & (numbers < high)].tolist()
    ends = (math.fsum(weights[numbers <= low]), math.fsum(weights[numbers >= high]))
    return (ends[0], *inside, ends[1])
