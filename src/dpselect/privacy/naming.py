"""What it costs to name chosen items by the rows, where a domain is known by its number only; proof: naming.md."""

from __future__ import annotations

from fractions import Fraction

from dpselect.privacy.conversion import upper_bound
from dpselect.sampling.balls import ball

WHERE_OTHERS_HAVE_THE_SAME = "add or remove, where others have the same items"
"""Neighbours with the same items: who alone has an item is not covered, since only their rows can name it."""


def delta_of_naming(epsilon: Fraction, *, k: int, size: int, max_items_per_person: int) -> float:
    """Return `δ = m k e^ε / d`, from above: how likely an item is named that only one person has.

    m: items of one person. k of d items are chosen by a mechanism of ε that favours higher scores; nobody's share of
    a score is negative.
    """
    return upper_bound(lambda: ball(Fraction(max_items_per_person * k, size)) * ball(epsilon).exp(), epsilon)
