"""How far one comparison, or one person, can move the scores of a ranking; computed from public facts (ranking.md)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dpselect._numbers import finite_number, float_below, positive_integer
from dpselect.errors import InvalidInput
from dpselect.privacy.sensitivity import Sensitivity

DEFAULT_DAMPING = 0.8
"""Probability that a step of the random walk restarts at a random item. A large value needs less noise
(docs/ranking.md)."""

SMALLEST = 0.001
"""Smallest damping, and smallest 1 − ρ: below it the walk would need too many steps."""

_LARGEST_DENOMINATOR = 2**53
_SHARE_OF_SPREAD = 2**12
"""The numerical error is at most this fraction of the spread, where rounding permits."""
_ROUNDINGS = 10
_MARGIN = Fraction(102, 100)


@dataclass(frozen=True)
class Bounds:
    """The public facts on which the guarantee of a ranking rests; the caps are enforced on the data.

    Parameters
    ----------
    comparisons_per_pair
        L: each pair of items keeps at most L comparisons, a random subset.
    max_degree
        D: each item keeps at most D·L of the comparisons that it lost, a random subset.
    damping
        α: the probability that a step of the walk restarts at a random item.
    promised_rho
        ρ: in place of damping, a promise about the private data that nothing checks.
    votes
        m: the number of comparisons that are protected together, those of one person.

    Raises
    ------
    InvalidInput
        If an argument is out of range.

    Examples
    --------
    >>> from dpselect.ranking import Bounds
    >>> Bounds(comparisons_per_pair=10, max_degree=19).sensitivity(20).spread < 0.01
    True
    """

    comparisons_per_pair: int
    max_degree: int
    damping: float = DEFAULT_DAMPING
    promised_rho: float | None = None
    votes: int = 1

    def __post_init__(self) -> None:
        for name in ("comparisons_per_pair", "max_degree", "votes"):
            object.__setattr__(self, name, positive_integer(name, getattr(self, name)))
        if 2 * self.max_degree * self.comparisons_per_pair > _LARGEST_DENOMINATOR:
            most = _LARGEST_DENOMINATOR // (2 * self.comparisons_per_pair)
            raise InvalidInput("max_degree", self.max_degree, f"must be at most {most} (2^52 / comparisons_per_pair)")
        damping = float_below(finite_number("damping", self.damping))
        if not SMALLEST <= damping < 1:
            raise InvalidInput("damping", self.damping, f"must be at least {SMALLEST:g} and below 1")
        object.__setattr__(self, "damping", damping)
        if self.promised_rho is not None:
            rho = float(finite_number("promised_rho", self.promised_rho))
            if not 0 <= rho <= 1 - SMALLEST:
                raise InvalidInput("promised_rho", self.promised_rho, f"must be from 0 to {1 - SMALLEST:g}")
            object.__setattr__(self, "promised_rho", rho)

    def degree(self, size: int) -> int:
        """Return D for d items: none can be compared with more than d − 1."""
        return min(self.max_degree, max(size - 1, 1))

    def units(self, size: int) -> int:
        """Return `2 D L`, the denominator of the matrix: a win counts two units, a tie one unit for each side."""
        return 2 * self.degree(size) * self.comparisons_per_pair

    @property
    def contraction(self) -> Fraction:
        """κ: one step of the walk reduces the distance of two distributions by a factor 1 − κ; κ is α, or 1 − ρ."""
        return Fraction(self.damping) if self.promised_rho is None else 1 - Fraction(self.promised_rho)

    def weight_of_a_pair(self, size: int) -> Fraction:
        """Return the largest `π_i + π_j` of two of d items, `s = (c (1 − α) + 2α/d) / (c (1 − α) + α)`.

        c = min(1, 2/D) bounds what a third item passes on to the two in one step. s = 1 without damping.
        """
        if self.promised_rho is not None:
            return Fraction(1)
        alpha = Fraction(self.damping)
        passed_on = min(Fraction(1), Fraction(2, self.degree(size))) * (1 - alpha)
        return min(Fraction(1), (passed_on + 2 * alpha / size) / (passed_on + alpha))

    def spread(self, size: int) -> Fraction:
        """Return how far one unit of protection moves the difference of two entries of the exact π.

        `w = m · 2 (1 − α) s / (D L α)`; as published, `w = m · 2 / (D L (1 − ρ))` (mathematics, section 9; ranking.md).
        """
        moved = Fraction(4 * self.votes, self.units(size)) * self.weight_of_a_pair(size) / self.contraction
        return moved if self.promised_rho is not None else moved * (1 - Fraction(self.damping))

    def rounding(self, size: int) -> Fraction:
        """Return g, the largest L1 error of one step in floating point: `1.02 (d + 10) 2^−53`."""
        return _MARGIN * (size + _ROUNDINGS) / 2**53

    def tolerance(self, size: int) -> Fraction:
        """Return τ, the largest L1 error of a computed stationary distribution, fixed before any data is seen."""
        least = (2 if self.promised_rho is None else 100) * self.rounding(size) / self.contraction
        return max(self.spread(size) / _SHARE_OF_SPREAD, least)

    def steps(self, size: int) -> int:
        """Return a number of steps after which the error is at most τ for all data: `2 (1 − κ)^t <= τ/2`."""
        kept = float(1 - self.contraction)
        if not kept:
            return 2
        return math.ceil(math.log(float(self.tolerance(size)) / 4) / math.log(kept)) + 2

    def largest_residual(self, size: int) -> float:
        """Return the largest L1 change in one step that still certifies an error of at most τ."""
        roundings = (1 if self.promised_rho is None else 45) * self.rounding(size)
        return float_below((self.tolerance(size) * self.contraction - roundings) / _MARGIN)

    def sensitivity(self, size: int) -> Sensitivity:
        """Return how far one unit of protection moves the computed scores of d items: each by at most `w/2 + 2τ`."""
        reach = self.spread(size) / 2 + 2 * self.tolerance(size)
        return Sensitivity(-reach, reach)  # type: ignore[arg-type]

    def describe(self) -> dict[str, Any]:
        """Return the facts that a ledger records."""
        described: dict[str, Any] = {
            "comparisons_per_pair": self.comparisons_per_pair,
            "max_degree": self.max_degree,
        }
        if self.promised_rho is None:
            described["damping"] = self.damping
        else:
            described["promised_rho"] = self.promised_rho
        if self.votes > 1:
            described["max_votes_per_person"] = self.votes
        return described
