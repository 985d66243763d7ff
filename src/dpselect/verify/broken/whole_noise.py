"""The tests of an unknown domain with noise on whole numbers, where `>` and `>=` differ."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from dpselect._arrays import Array, FloatArray
from dpselect.privacy import COUNTS, Guarantee, Sensitivity

_REACH = 400


@dataclass(frozen=True)
class WholeNoise:
    """The best item is answered if `x_[1] − x_[2] − 1 + ν > T + ρ`, ν and ρ discrete Laplace of scale 2/ε.

    T = 3, and the claim is (ε, P[ν − ρ > T]): restricted.md with k = pool = 1, where there is nothing to choose.
    """

    name: ClassVar[str] = "whole noise"
    k: ClassVar[int] = 1
    ordered: ClassVar[bool] = False
    may_stop: ClassVar[bool] = True
    sensitivity: ClassVar[Sensitivity] = COUNTS
    threshold: ClassVar[int] = 3

    epsilon: float
    passes_at_threshold: bool

    @property
    def guarantee(self) -> Guarantee:
        """What is claimed."""
        return Guarantee(self.epsilon, self._tail(self.threshold + 1) * (1 + 1e-12))

    @cached_property
    def _differences(self) -> FloatArray:
        """Probabilities of ν − ρ = −2·REACH … 2·REACH."""
        ratio = math.exp(-self.epsilon / 2)
        single = (1 - ratio) / (1 + ratio) * ratio ** np.abs(np.arange(-_REACH, _REACH + 1))
        differences: FloatArray = np.convolve(single, single)
        return differences

    def _tail(self, least: int) -> float:
        """Return P[ν − ρ >= least]."""
        return math.fsum(self._differences[2 * _REACH + least :])

    def law(self, scores: Any) -> dict[Any, float]:
        """Return the probability of the best item, ties broken evenly, and of no answer."""
        ranked = sorted(scores, reverse=True)
        if ranked[0] <= 0:
            return {frozenset(): 1.0}
        needed = self.threshold + 1 - (ranked[0] - ranked[1])
        passes = self._tail(int(needed + (0 if self.passes_at_threshold else 1)))
        best = [place for place, score in enumerate(scores) if score == ranked[0]]
        law: dict[Any, float] = {frozenset({place}): passes / len(best) for place in best}
        law[frozenset()] = 1 - passes
        return law

    def select(self, scores: Any, *, seed: int | None = None) -> Array:
        """Draw an outcome from the law."""
        outcomes, chances = zip(*self.law(scores).items(), strict=True)
        chosen = np.random.default_rng(seed).choice(len(outcomes), p=np.array(chances) / sum(chances))
        return np.array(list(outcomes[chosen]), dtype=np.int64)
