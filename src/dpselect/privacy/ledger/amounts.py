"""Exact sums of costs: nothing is lost in adding, and what is shown is rounded towards privacy."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from fractions import Fraction

from dpselect._numbers import float_below


@dataclass(frozen=True)
class Budget:
    """An amount of privacy cost; unlike a guarantee it may be nothing at all. `rho` is used by zCDP accounts only."""

    epsilon: float
    delta: float = 0.0
    rho: float = 0.0

    def to_dict(self) -> dict[str, float]:
        """Return the amount as plain data, with rho where it is used."""
        return {name: part for name, part in asdict(self).items() if name != "rho" or part}


@dataclass(frozen=True)
class Amount:
    """The exact sum of the costs of releases, part by part; a rule of composition says which parts it counts.

    FloatArray are the binary numbers they are, so that ten times 0.1 is a little more than 1.
    """

    epsilon: Fraction = Fraction(0)
    delta: Fraction = Fraction(0)
    rho: Fraction = Fraction(0)

    @staticmethod
    def parse(epsilon: str, delta: str, rho: str) -> Amount:
        """Return the amount that `text` wrote."""
        return Amount(Fraction(epsilon), Fraction(delta), Fraction(rho))

    def text(self) -> tuple[str, str, str]:
        """Return the parts as texts that lose nothing, such as 1/2."""
        return str(self.epsilon), str(self.delta), str(self.rho)

    def __add__(self, other: Amount) -> Amount:
        return Amount(self.epsilon + other.epsilon, self.delta + other.delta, self.rho + other.rho)

    def __sub__(self, other: Amount) -> Amount:
        return Amount(self.epsilon - other.epsilon, self.delta - other.delta, self.rho - other.rho)

    def __truediv__(self, number: int) -> Amount:
        return Amount(self.epsilon / number, self.delta / number, self.rho / number)

    def within(self, total: Amount) -> bool:
        """Whether no part exceeds that of `total`."""
        return self.epsilon <= total.epsilon and self.delta <= total.delta and self.rho <= total.rho

    def rounded_up(self) -> Budget:
        """Return what has been spent: never less than the truth."""
        return Budget(*(0.0 - float_below(-part) for part in self._parts()))

    def rounded_down(self) -> Budget:
        """Return what is left: never more than the truth, and never less than nothing."""
        return Budget(*(float_below(max(part, Fraction(0))) for part in self._parts()))

    def buys(self, cost: Amount) -> int:
        """Return how many releases of a positive cost fit into this amount."""
        pairs = zip(self._parts(), cost._parts(), strict=True)
        return max(0, min(math.floor(available / price) for available, price in pairs if price > 0))

    def _parts(self) -> tuple[Fraction, Fraction, Fraction]:
        return self.epsilon, self.delta, self.rho
