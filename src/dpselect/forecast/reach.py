"""What a mechanism can tell apart, from public facts alone: the lead with which the right items come out.

The model is the worst case (docs/forecast.md): k items lead by the same number of people and all others are tied behind
them; of an ordered answer, each of the k leads the next.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any

from dpselect._format import shown_above
from dpselect._numbers import positive_integer
from dpselect.errors import InvalidInput
from dpselect.forecast.curves import (
    has_curve,
    judged_in_order,
    smallest_epsilon,
    solve_epsilon,
    success,
    wanted_accuracy,
)
from dpselect.mechanisms import Joint, Mechanism, NoisyVector, OneShot
from dpselect.periods import UNITS, protected_unit
from dpselect.privacy.sensitivity import COUNTS
from dpselect.scores import Scores

USUAL_PROBABILITY = 0.9
"""The probability for which a release states its reach."""

_PEOPLE = frozenset({"one person", *(protected_unit("one person", unit) for unit in UNITS)})
"""The units of protection of which a count of people counts at most one for each person."""

_START, _END = 16, 32
"""In an ordered worst case P[exact] falls by the same factor with each further rank, to 12 digits from rank 16 on.

All gaps are equal, and where a long list has any chance to be right only neighbours change places. What happens from
rank 16 to rank 32 thus stands for all ranks beyond.
"""


@dataclass(frozen=True)
class Reach:
    """From which lead on the right answer comes out with a stated probability, whatever else the data are.

    Attributes
    ----------
    probability : float
        The probability of exactly the right answer.
    lead : float
        By how much the last item of the right answer has to lead the rest, or, if `ordered`, each of its items the
        next; in whole people for counts, else in units of the score. Rounded up.
    items : int
        The number of possible items.
    k, ordered, unit, lowest
        What was asked for, and what the lead counts.

    Examples
    --------
    >>> import dpselect as dps
    >>> print(dps.forecast.reach(dps.Canonical(k=10, epsilon=1.0), 10_000))
    the right 10 come out with probability 0.9 if the last of them leads the rest by 79 people or more
    """

    probability: float
    lead: float
    items: int
    k: int
    ordered: bool
    unit: str
    lowest: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return the probability, the lead and the number of items as plain data."""
        return {"probability": self.probability, "lead": self.lead, "items": self.items}

    def __str__(self) -> str:
        """Say it in words."""
        lead = f"{self.lead:,} people or more" if self.unit == "people" else f"a score of {self.lead:,} or more"
        leads = "is below" if self.lowest else "leads"
        if self.k == 1:
            return f"the right item comes out with probability {self.probability:g} if it {leads} the rest by {lead}"
        order, leader = (" in the right order", f"each of them {leads} the next") if self.ordered else ("", "")
        leader = leader or f"the last of them {leads} the rest"
        return f"the right {self.k} come out{order} with probability {self.probability:g} if {leader} by {lead}"


def reach(
    mechanism: Mechanism,
    items: int,
    probability: float = USUAL_PROBABILITY,
    *,
    ordered: bool | None = None,
    protects: str = "one person",
) -> Reach | None:
    """Return what a mechanism can tell apart among a public number of items.

    Parameters
    ----------
    mechanism : Mechanism
        The mechanism, with its ε.
    items : int
        The number of possible items.
    probability : float
        The wanted probability of an exact answer.
    ordered : bool, optional
        Whether the order has to be right; by default, whether the answer has one.
    protects : str
        The unit of protection; the lead is counted in people if that is one person, or one person's week, and scores
        are counts.

    Returns
    -------
    Reach or None
        None if the mechanism has no exact form, as for unknown domains, or has nothing to tell apart.

    Raises
    ------
    InvalidInput
        If an argument is out of range.

    Examples
    --------
    >>> import dpselect as dps
    >>> dps.forecast.reach(dps.OneShot(k=1, epsilon=0.1), 1000).lead
    85
    """
    if not isinstance(mechanism, Mechanism):
        raise InvalidInput("mechanism", mechanism, "must be a mechanism object, such as Canonical(k=10, epsilon=1.0)")
    wanted = wanted_accuracy(probability, "probability")
    in_order = bool(judged_in_order(mechanism, ordered))
    unit = "people" if mechanism.sensitivity == COUNTS and protects in _PEOPLE else "score"
    return _reach(mechanism, positive_integer("items", items), wanted, in_order, unit)


@lru_cache(maxsize=128)
def _reach(mechanism: Mechanism, items: int, wanted: float, in_order: bool, unit: str) -> Reach | None:
    """Return the reach for arguments that were checked."""
    if not has_curve(mechanism, in_order) or items < max(mechanism.k, 2) or (items == mechanism.k and not in_order):
        return None
    try:
        lead = lead_needed(mechanism, items, wanted, in_order)
    except InvalidInput:  # more classes than fit in memory
        return None
    if math.isinf(lead):
        return None
    rounded = math.ceil(lead) if mechanism.sensitivity == COUNTS else float(shown_above(lead, 3))
    return Reach(wanted, rounded, items, mechanism.k, in_order, unit)


def lead_needed(mechanism: Mechanism, items: int, probability: float, ordered: bool) -> float:
    """Return the smallest lead, in units of the score, at which an exact answer has the probability; ∞ if none has."""
    k = mechanism.k
    if ordered and k > _END and not isinstance(mechanism, Joint):
        return _long_lead_needed(mechanism, items, probability)
    if not getattr(mechanism, "delta", 0.0):
        # P[exact] depends on the lead times ε alone.
        scores = worst_case(k, 1, items, ordered)
        return smallest_epsilon(scores, mechanism, probability, ordered=ordered) / mechanism.epsilon

    def probabilities(lead: float) -> tuple[float, float]:
        return success(worst_case(k, lead, items, ordered), mechanism, ordered=ordered).probabilities(mechanism.epsilon)

    return solve_epsilon(probabilities, probability, mechanism.sensitivity.spread / mechanism.epsilon)


def _long_lead_needed(mechanism: Any, items: int, probability: float) -> float:
    """Return the lead that a long list needs, from P[exact] of two shorter lists with the same noise."""
    rate = mechanism.rate(items) if isinstance(mechanism, OneShot) else mechanism.rate()

    def log_exact(k: int, lead: float) -> float:
        if isinstance(mechanism, NoisyVector):
            shorter: Any = replace(mechanism, k=k)
        else:
            shorter = replace(
                mechanism, k=k, delta=0.0, epsilon=float(rate * k * Fraction(mechanism.sensitivity.spread))
            )
        curve = success(worst_case(k, lead, items - mechanism.k + k, True), shorter, ordered=True)
        right, wrong = curve.probabilities(shorter.epsilon)
        return math.log1p(-wrong) if wrong < 0.5 else math.log(max(right, 1e-300))

    def probabilities(lead: float) -> tuple[float, float]:
        end = log_exact(_END, lead)
        exact = end + (end - log_exact(_START, lead)) * (mechanism.k - _END) / (_END - _START)
        return math.exp(exact), -math.expm1(exact)

    return solve_epsilon(probabilities, probability, float(1 / rate))


def worst_case(k: int, lead: Any, items: int, ordered: bool) -> Scores:
    """Return the scores of the model."""
    if ordered:
        return Scores.from_histogram([*(lead * place for place in range(k, 0, -1)), 0], [1] * k + [items - k])
    return Scores.from_histogram([lead, 0], [k, items - k])
