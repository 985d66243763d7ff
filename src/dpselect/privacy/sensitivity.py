"""How far one person can move the scores."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from dpselect._numbers import Number, finite_number, float_below
from dpselect.errors import InvalidInput


@dataclass(frozen=True)
class Sensitivity:
    """Adding one person moves every score by an amount in [low, high].

    Selection looks only at differences of scores, so all it needs is the spread `w = high − low`
    (mathematics, section 1). Counts have [0, 1] and spread 1; scores that move either way by at most s
    have [−s, s] and spread 2s. Bounds that no float holds are moved outwards to the next one.
    """

    low: float
    high: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "low", _plain_below(finite_number("sensitivity.low", self.low)))
        object.__setattr__(self, "high", -_plain_below(-finite_number("sensitivity.high", self.high)))
        if not self.low < self.high:
            raise InvalidInput(
                "sensitivity",
                (self.low, self.high),
                "low must be smaller than high, as in Sensitivity(-1, 1)",
            )
        if not math.isfinite(self.spread):
            raise InvalidInput("sensitivity", (self.low, self.high), "high - low must be finite")

    @cached_property
    def spread(self) -> float:
        """`high − low` as a float, rounded up: noise follows it, and more noise is more private."""
        exact = Fraction(self.high) - Fraction(self.low)
        try:
            spread = float(exact)
        except OverflowError:
            return math.inf
        return spread if Fraction(spread) >= exact else math.nextafter(spread, math.inf)

    @property
    def reach(self) -> Fraction:
        """`max(|low|, |high|)`, the most that one score can move; noise on the scores themselves follows it."""
        return max(abs(Fraction(self.low)), abs(Fraction(self.high)))

    def __str__(self) -> str:
        """Say what one person can do to a score."""
        return f"adding a person moves each score by {self.low:g} to {self.high:g}"


def _plain_below(bound: Number) -> float:
    """Return the largest int or float that does not exceed `bound`."""
    return bound if isinstance(bound, int | float) else float_below(bound)


COUNTS = Sensitivity(0, 1)
"""Each person is counted at most once per item, so that adding a person moves each score by 0 to 1."""
