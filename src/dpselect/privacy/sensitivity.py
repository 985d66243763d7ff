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

    Selection depends only on differences of scores, so only the spread `w = high − low` matters (mathematics, section
    1). Counts have [0, 1] and spread 1; scores that move by at most s in either direction have [−s, s] and spread 2s.

    Parameters
    ----------
    low, high
        The bounds; one that no float holds is moved outwards to the next float.

    Raises
    ------
    InvalidInput
        If a bound is not a finite number, low is not below high, or the spread is not finite.

    Examples
    --------
    >>> Sensitivity(-1, 1).spread
    2.0
    """

    low: float
    high: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "low", _plain_below(finite_number("sensitivity.low", self.low)))
        object.__setattr__(self, "high", -_plain_below(-finite_number("sensitivity.high", self.high)))
        if not self.low < self.high:
            raise InvalidInput(
                "sensitivity", (self.low, self.high), "must have low below high, as in Sensitivity(-1, 1)"
            )
        if not math.isfinite(self.spread):
            raise InvalidInput("sensitivity", (self.low, self.high), "must have a finite high - low")

    @cached_property
    def spread(self) -> float:
        """`high − low` as a float, rounded up: the noise follows it, and more noise is more private."""
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

    def negated(self) -> Sensitivity:
        """Return the sensitivity of the negated scores, [−high, −low]."""
        return Sensitivity(0 - self.high, 0 - self.low)

    def __str__(self) -> str:
        """Say what one person can do to a score."""
        return f"adding a person moves each score by {self.low:g} to {self.high:g}"


def _plain_below(bound: Number) -> float:
    """Return the largest int or float that does not exceed `bound`."""
    return bound if isinstance(bound, int | float) else float_below(bound)


COUNTS = Sensitivity(0, 1)
"""Each person counts at most once per item, so that adding a person moves each score by 0 to 1."""
