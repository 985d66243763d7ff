"""What a release promises: (ε, δ)-differential privacy, and what else is known for composition."""

from __future__ import annotations

import math
import operator
import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dpselect._format import factor_above, shown_above
from dpselect._numbers import finite_number, float_below, positive_number
from dpselect.errors import InvalidInput
from dpselect.privacy.conversion import epsilon_of_zcdp, float_above, rho_of_pure, rho_of_range

Ranges = tuple[tuple[float, int], ...]
"""Pairs (r, n): n rounds of bounded range r."""

ONE_COMPARISON = "one comparison"
"""The unit of protection of a ranking without a column of persons."""

WHERE_OTHERS_HAVE_THE_SAME = "add or remove, where others have the same items"
"""Neighbours with the same items: a person who alone has an item is not covered, since only their rows can name it."""


@dataclass(frozen=True)
class Guarantee:
    """(ε, δ)-differential privacy: for all neighbours D, D' and all sets of outputs S,
    `P[M(D) ∈ S] <= exp(ε) · P[M(D') ∈ S] + δ`.

    All numbers are claims, so one that is not a float is rounded up. Round a total or target down beforehand.

    Parameters
    ----------
    epsilon, delta
        ε and δ.
    protects
        The unit of protection.
    neighbours
        How two data sets differ by one such unit.
    rho
        If known: M is ρ-zero-concentrated, so its Rényi divergences of order α are at most ρ α.
    ranges
        If known: pairs (r, n) such that M consists of rounds, n of them of bounded range r for each pair. The privacy
        loss of such a round lies in an interval of length r.

    Raises
    ------
    InvalidInput
        If a number is out of its range.

    Examples
    --------
    >>> Guarantee(epsilon=1.0).to_approximate(1e-6).delta
    1e-06
    """

    epsilon: float
    delta: float = 0.0
    protects: str = "one person"
    neighbours: str = "add or remove"
    rho: float | None = None
    ranges: Ranges = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", _positive_above("epsilon", self.epsilon))
        object.__setattr__(self, "delta", _failure_above(self.delta))
        if self.rho is not None:
            object.__setattr__(self, "rho", _positive_above("rho", self.rho))
        object.__setattr__(self, "ranges", _merged(self.ranges))

    @classmethod
    def zcdp(
        cls, rho: float, *, delta: float, protects: str = "one person", neighbours: str = "add or remove"
    ) -> Guarantee:
        """Return the guarantee of a ρ-zero-concentrated mechanism, stated as (ε, δ) for the given δ."""
        rho, delta = _positive_above("rho", rho), _positive_delta(delta)
        epsilon = epsilon_of_zcdp(Fraction(rho), Fraction(delta))
        return cls(epsilon, delta, protects, neighbours, rho=rho)

    @classmethod
    def bounded_range(
        cls, width: float, *, rounds: int = 1, protects: str = "one person", neighbours: str = "add or remove"
    ) -> Guarantee:
        """Return the pure guarantee of rounds of bounded range r: the exponential mechanism, not permute-and-flip."""
        ranges = _merged([(width, rounds)])
        return cls(float_above(sum_of_ranges(ranges)), 0.0, protects, neighbours, ranges=ranges)

    @property
    def strength(self) -> str:
        """How strong the protection is by its ε: "strong" up to 1, "moderate" up to 5, "weak" above."""
        return "strong" if self.epsilon <= 1 else "moderate" if self.epsilon <= 5 else "weak"

    @property
    def known_rho(self) -> Fraction | None:
        """The least ρ that follows from what is stated, or None if none does."""
        found = []
        if self.rho is not None:
            found.append(Fraction(self.rho))
        if self.ranges:
            found.append(sum((rounds * rho_of_range(Fraction(width)) for width, rounds in self.ranges), Fraction()))
        if not self.delta:
            found.append(rho_of_pure(Fraction(self.epsilon)))
        return min(found, default=None)

    @property
    def known_ranges(self) -> Ranges:
        """The rounds of bounded range, empty if not known; a pure loss, between −ε and ε, has range 2ε."""
        doubled = 2 * self.epsilon
        return self.ranges or (() if self.delta or math.isinf(doubled) else ((doubled, 1),))

    def to_approximate(self, delta: float) -> Guarantee:
        """Return the guarantee restated for another δ, with the smallest ε that follows."""
        delta = _positive_delta(delta)
        rho = self.known_rho
        found = [self.epsilon] if self.delta <= delta else []
        if rho is not None:
            found.append(epsilon_of_zcdp(rho, Fraction(delta)))
        if not found:
            raise InvalidInput(
                "delta",
                delta,
                f"must be at least {shown_above(self.delta)}, the delta of this guarantee, which carries no rho",
            )
        known = self.rho if rho is None else float_above(rho)
        return Guarantee(min(found), delta, self.protects, self.neighbours, known, self.ranges)

    def to_dict(self) -> dict[str, Any]:
        """Return the guarantee as plain data, with rho and ranges if they are known."""
        data: dict[str, Any] = {
            "epsilon": self.epsilon,
            "delta": self.delta,
            "protects": self.protects,
            "neighbours": self.neighbours,
        }
        if self.rho is not None:
            data["rho"] = self.rho
        if self.ranges:
            data["ranges"] = [list(pair) for pair in self.ranges]
        return data

    def __str__(self) -> str:
        """Say the guarantee in words, with every number rounded up."""
        label = f"epsilon = {shown_above(self.epsilon)}"
        unit, them = f"{self.protects} with all they contributed", "them"
        if self.protects == ONE_COMPARISON:
            unit, them = ONE_COMPARISON, "it"
        elif re.search("'s (day|week|month)$", self.protects):
            unit, them = f"{self.protects} with all they contributed in it", "it"
        promise = (
            f"protects {unit}; {_changing(self.neighbours, them)} changes the probability of any answer by "
            f"{factor_above(self.epsilon)}"
        )
        if self.delta:
            delta = shown_above(self.delta)
            label += f", delta = {delta}"
            promise += f", and by at most {delta} beyond that"
            if self.rho is not None:
                promise += f"; many such releases add up slowly (rho = {shown_above(self.rho, 3)})"
        return f"{label}: {promise}"


def sum_of_ranges(ranges: Ranges) -> Fraction:
    """Return Σ n r, the ε of rounds of bounded range by plain addition."""
    return sum((rounds * Fraction(width) for width, rounds in ranges), Fraction())


def probability_of_failure(delta: Any) -> float:
    """Return `delta` as a float, rounded down, if it is a probability below 1."""
    try:
        number = float_below(finite_number("delta", delta))
        if 0 <= number < 1:
            return number
    except InvalidInput:
        pass
    raise InvalidInput("delta", delta, "must be at least 0 (pure) and below 1")


def _positive_delta(delta: Any) -> float:
    number = probability_of_failure(delta)
    if not number:
        raise InvalidInput("delta", delta, "must be above 0; this conversion has no pure form")
    return number


def _failure_above(delta: Any) -> float:
    """Return a claimed δ as a float, rounded up, if it is a probability below 1."""
    probability_of_failure(delta)
    number = float_above(finite_number("delta", delta))
    if number >= 1:
        raise InvalidInput("delta", delta, "must be below 1 as a float")
    return number


def _positive_above(argument: str, value: Any) -> float:
    """Return a claim as a float, rounded up."""
    positive_number(argument, value)
    number = float_above(finite_number(argument, value))
    if math.isinf(number):
        raise InvalidInput(argument, value, "must be a positive, finite number")
    return number


def _merged(ranges: Any) -> Ranges:
    """Return pairs (r, n) with each r once, in ascending order."""
    counts: dict[float, int] = {}
    try:
        pairs = [(width, operator.index(rounds)) for width, rounds in ranges]
    except (TypeError, ValueError):
        pairs = [(None, 0)]
    for width, rounds in pairs:
        if rounds < 1:
            raise InvalidInput("ranges", ranges, "must be pairs (range, number of rounds), as in [(0.1, 20)]")
        number = _positive_above("ranges", width)
        counts[number] = counts.get(number, 0) + rounds
    return tuple(sorted(counts.items()))


def _changing(neighbours: str, them: str) -> str:
    if neighbours == WHERE_OTHERS_HAVE_THE_SAME:
        return f"as long as others have the same items, adding or removing {them}"
    change, _, condition = neighbours.partition(", ")
    if change == "add or remove":
        return f"{condition + ', ' if condition else ''}adding or removing {them}"
    return f"another choice of {them} ({neighbours})"
