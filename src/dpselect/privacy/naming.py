"""What it costs to name chosen items by the rows, if only the number of possible items is public; proof: naming.md."""

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

    m: items of one person. A mechanism of ε that favours higher scores chooses k of d items, and nobody's share of a
    score is negative.
    """
    return upper_bound(lambda: ball(Fraction(max_items_per_person * k, size)) * ball(epsilon).exp(), epsilon)


@dataclass(frozen=True)
class Naming:
    """The δ that naming the items costs, and whether people who alone have an item are covered."""

    delta: float
    covers_all: bool

    @classmethod
    def of(cls, epsilon: Any, delta: Any, *, k: Any, size: int, max_items_per_person: int | None, low: float) -> Naming:
        """Settle the naming of k of `size` items, chosen with ε, within an allowed δ.

        It is covered only with a δ, with a bound on the items of one person, and if nobody lowers a score (low >= 0).
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
        """Return the δ that choice and values may take; the δ of the choice counts twice."""
        return float_below((Fraction(allowed) - Fraction(self.delta)) / 2) if self.delta else allowed

    def added_to(self, guarantee: Guarantee, delta_of_choice: float) -> Guarantee:
        """Return the guarantee of an answer in which the items are named."""
        if not self.covers_all:
            return replace(guarantee, neighbours=WHERE_OTHERS_HAVE_THE_SAME)
        if not self.delta:
            return guarantee
        delta = float_above(Fraction(guarantee.delta) + Fraction(delta_of_choice) + Fraction(self.delta))
        return Guarantee(guarantee.epsilon, delta, guarantee.protects, guarantee.neighbours)
