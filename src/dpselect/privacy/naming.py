"""The δ of taking the names of chosen items from the rows, if only the number of items is public (proof: naming.md)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from dpselect._format import shown_above
from dpselect._numbers import float_below, positive_integer, positive_number
from dpselect.errors import InvalidInput
from dpselect.privacy.conversion import float_above, upper_bound
from dpselect.privacy.guarantee import WHERE_OTHERS_HAVE_THE_SAME, Guarantee, probability_of_failure
from dpselect.sampling.balls import ball


def delta_of_naming(epsilon: Fraction, *, k: int, size: int, max_items_per_person: int) -> float:
    """Return `δ = m k e^ε / d`, rounded up: a bound on the probability to name an item that only one person has.

    m is max_items_per_person, d is size. It holds for an ε-DP mechanism that chooses k of d items and prefers higher
    scores, if nobody lowers a score.
    """
    return upper_bound(lambda: ball(Fraction(max_items_per_person * k, size)) * ball(epsilon).exp(), epsilon)


@dataclass(frozen=True)
class Naming:
    """The δ that naming the items costs, and whether people who alone have an item are covered."""

    delta: float
    covers_all: bool

    @classmethod
    def of(cls, epsilon: Any, delta: Any, *, k: Any, size: int, max_items_per_person: int | None, low: float) -> Naming:
        """Return the cost of naming k of `size` items that are chosen with ε; refuse it if it exceeds the allowed δ.

        People who alone have an item are covered only if δ > 0, max_items_per_person is given, and low >= 0.
        """
        if max_items_per_person is None or not probability_of_failure(delta) or low < 0:
            return cls(0.0, covers_all=False)
        needed = delta_of_naming(
            Fraction(positive_number("epsilon", epsilon)),
            k=positive_integer("k", k),
            size=size,
            max_items_per_person=max_items_per_person,
        )
        if needed > delta:
            raise InvalidInput(
                "delta",
                delta,
                f"must be at least {shown_above(needed)} to name the chosen items among {size} that are not listed; "
                "allow fewer items per person, or list the items",
            )
        return cls(needed, covers_all=True)

    def left_of(self, allowed: float) -> float:
        """Return the δ left for choice and values: half of the rest, as the δ of the choice counts twice."""
        return float_below((Fraction(allowed) - Fraction(self.delta)) / 2) if self.delta else allowed

    def added_to(self, guarantee: Guarantee, delta_of_choice: float) -> Guarantee:
        """Return the guarantee of an answer in which the items are named."""
        if not self.covers_all:
            return replace(guarantee, neighbours=WHERE_OTHERS_HAVE_THE_SAME)
        if not self.delta:
            return guarantee
        delta = float_above(Fraction(guarantee.delta) + Fraction(delta_of_choice) + Fraction(self.delta))
        return Guarantee(guarantee.epsilon, delta, guarantee.protects, guarantee.neighbours)
