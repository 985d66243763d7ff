"""Broken twins of peeling with a delta: each allows its rounds more than composition does."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from dpselect.mechanisms import Peeling
from dpselect.privacy import Guarantee
from dpselect.privacy.calibration import range_per_round
from dpselect.verify.broken.base import Broken
from dpselect.verify.privacy import Subject


@dataclass(frozen=True, kw_only=True)
class _BrokenRounds(Broken):
    """k rounds of the one-item mechanism at a share ε₀ that is too large for the claimed (ε, δ)."""

    ordered = True
    noise: str = "gumbel"
    delta: float = 0.05

    @property
    def guarantee(self) -> Guarantee:
        return Guarantee(epsilon=self.epsilon, delta=self.delta)

    @property
    def sound(self) -> Subject:
        return Peeling(k=self.k, epsilon=self.epsilon, sensitivity=self.sensitivity, noise=self.noise, delta=self.delta)

    @property
    def share(self) -> float:
        """What a round is allowed, with the mistake in it."""
        raise NotImplementedError

    def law(self, scores: Any) -> dict[Any, float]:
        rounds = Peeling(k=self.k, epsilon=self.k * self.share, sensitivity=self.sensitivity, noise=self.noise)
        return dict(rounds.law(scores))


@dataclass(frozen=True, kw_only=True)
class RoundsNotAdded(_BrokenRounds):
    """ε₀ = ε: as if δ made the rounds free."""

    name = "rounds not added"
    flaw = "each round gets the whole epsilon"

    @property
    def share(self) -> float:
        return self.epsilon


@dataclass(frozen=True, kw_only=True)
class ForgottenConversion(_BrokenRounds):
    """ρ = k ε₀²/8 = ε: zero-concentration taken for ε itself, without the term in δ."""

    name = "rho taken for epsilon"
    flaw = "the term with log(1 / delta) is left out of the conversion"

    @property
    def share(self) -> float:
        return math.sqrt(8 * self.epsilon / self.k)


@dataclass(frozen=True, kw_only=True)
class WrongSign(_BrokenRounds):
    """`ε = ρ − 2 √(ρ log(1/δ))` in place of ρ + …, so that `√ρ = √log(1/δ) + √(log(1/δ) + ε)`."""

    name = "conversion, wrong sign"
    flaw = "the term with log(1 / delta) is subtracted in the conversion"

    @property
    def share(self) -> float:
        tail = -math.log(self.delta)
        return math.sqrt(8 / self.k) * (math.sqrt(tail) + math.sqrt(tail + self.epsilon))


@dataclass(frozen=True, kw_only=True)
class PermuteAndFlipAsRange(_BrokenRounds):
    """Permute-and-flip with the share of the exponential mechanism, whose range it does not have.

    Its privacy loss on two nearly tied items ranges over almost 2ε₀, twice what bounded range ε₀ would be.
    """

    name = "permute-and-flip as bounded range"
    flaw = "rounds with exponential noise get the share that needs gumbel noise"
    noise: str = "exponential"

    @property
    def share(self) -> float:
        return float(range_per_round(self.epsilon, self.delta, self.k))
