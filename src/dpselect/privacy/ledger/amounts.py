"""Exact sums of epsilons and deltas: nothing is lost in adding, and what is shown is rounded towards privacy."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from dpselect.privacy.guarantee import Guarantee
from dpselect.validation import float_below


@dataclass(frozen=True)
class Budget:
    """An amount of privacy cost; unlike a guarantee it may be nothing at all."""

    epsilon: float
    delta: float = 0.0

    def to_dict(self) -> dict[str, float]:
        """Return the amount as plain data."""
        return {"epsilon": self.epsilon, "delta": self.delta}


@dataclass(frozen=True)
class Amount:
    """The exact sum of the costs of releases.

    Basic composition: releases of cost (εᵢ, δᵢ) on the same people cost (Σ εᵢ, Σ δᵢ) together, also when each is
    chosen in view of the answers before it (mathematics, section 6). Floats are the binary numbers they are, so that
    ten times 0.1 is a little more than 1.
    """

    epsilon: Fraction = Fraction(0)
    delta: Fraction = Fraction(0)

    @staticmethod
    def of(cost: Guarantee | Budget) -> Amount:
        """Return a cost as exact numbers."""
        return Amount(Fraction(cost.epsilon), Fraction(cost.delta))

    @staticmethod
    def parse(epsilon: str, delta: str) -> Amount:
        """Return the amount that `text` wrote."""
        return Amount(Fraction(epsilon), Fraction(delta))

    def text(self) -> tuple[str, str]:
        """Return epsilon and delta as texts that lose nothing, such as 1/2."""
        return str(self.epsilon), str(self.delta)

    def __add__(self, other: Amount) -> Amount:
        return Amount(self.epsilon + other.epsilon, self.delta + other.delta)

    def __sub__(self, other: Amount) -> Amount:
        return Amount(self.epsilon - other.epsilon, self.delta - other.delta)

    def within(self, total: Amount) -> bool:
        """Whether neither part exceeds that of `total`."""
        return self.epsilon <= total.epsilon and self.delta <= total.delta

    def rounded_up(self) -> Budget:
        """Return what has been spent: never less than the truth."""
        return Budget(0.0 - float_below(-self.epsilon), 0.0 - float_below(-self.delta))

    def rounded_down(self) -> Budget:
        """Return what is left: never more than the truth, and never less than nothing."""
        return Budget(float_below(max(self.epsilon, Fraction(0))), float_below(max(self.delta, Fraction(0))))

    def buys(self, cost: Amount) -> int:
        """Return how many releases of a positive cost fit into this amount."""
        shares = [
            math.floor(available / price)
            for available, price in ((self.epsilon, cost.epsilon), (self.delta, cost.delta))
            if price > 0
        ]
        return max(0, min(shares))
