"""What a release will do and cost, settled from public facts before any data is seen."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from types import MappingProxyType
from typing import Any

from dpselect._format import shown_above
from dpselect._numbers import float_below, positive_integer, positive_number
from dpselect.errors import BudgetExceeded, InvalidInput
from dpselect.mechanisms import FOR_UNKNOWN_DOMAINS, MECHANISMS, Mechanism, mechanism_for
from dpselect.privacy.composition import compose
from dpselect.privacy.conversion import float_above
from dpselect.privacy.guarantee import Guarantee, probability_of_failure
from dpselect.privacy.ledger.reserve import Reservation
from dpselect.privacy.naming import WHERE_OTHERS_HAVE_THE_SAME, delta_of_naming
from dpselect.privacy.sensitivity import Sensitivity
from dpselect.release import Release, StatedDomain
from dpselect.sampling import BitSource
from dpselect.values import ValueNoise, split_epsilon, value_noise

NEXT_TO_NOTHING = Fraction(1, 10**9)
"""A release that exceeds what is left by no more than this share of itself is made with what is left."""


@dataclass(frozen=True)
class Plan:
    """The mechanism that chooses, the noise on the scores that are published, if any, and what both cost together.

    `again` settles the same release for another ε and δ; a mechanism object states its own, and has none.
    """

    mechanism: Mechanism
    noise: ValueNoise | None
    guarantee: Guarantee
    again: Callable[[Fraction, Fraction, float], Plan] | None = field(default=None, repr=False, compare=False)
    details: Mapping[str, Any] = field(default_factory=dict)

    def describe(self) -> dict[str, Any]:
        """Return the parameters of the release as plain data."""
        described = {**self.mechanism.describe(), **self.details}
        return described if self.noise is None else {**described, "values": self.noise.noise}

    def charge(self, reserved: Reservation, *, secure: bool) -> Plan:
        """Record the plan and return it, or one that fits, if only next to nothing is missing.

        Ten times the float 0.1 is a little more than 1; the tenth release of a total of 1 is made with what is left,
        and says so. What is left is public. The second record is a transaction of its own: it refuses if another
        process was faster.
        """
        try:
            reserved.record(self.guarantee, self.describe(), secure=secure)
            return self
        except BudgetExceeded as refusal:
            fitting = self._within(refusal)
            if fitting is None:
                raise
        reserved.record(fitting.guarantee, fitting.describe(), secure=secure)
        return fitting

    def _within(self, refusal: BudgetExceeded) -> Plan | None:
        delta = _share(refusal.requested_delta, refusal.remaining_delta)
        epsilon, most = _share(refusal.requested, refusal.remaining), refusal.remaining
        if refusal.requested_rho:
            # ρ falls at least as fast as ε; the little that is taken off covers the rounding of its parts.
            epsilon = _share(refusal.requested_rho, refusal.remaining_rho) * (1 - Fraction(1, 2**50))
            most = self.guarantee.epsilon
        if self.again is None or min(epsilon, delta) < 1 - NEXT_TO_NOTHING:
            return None
        with contextlib.suppress(InvalidInput):  # a δ that naming needs as a whole, say, cannot be made smaller
            return self.again(epsilon, delta, most)
        return None

    def release(self, items: list[Any], scores: Iterable[Any], bits: BitSource, domain: StatedDomain) -> Release:
        """Return the release of the chosen items, with noisy scores if they were planned."""
        release = Release(
            items=items,
            ordered=self.mechanism.ordered,
            guarantee=self.guarantee,
            mechanism=self.mechanism,
            secure=bits.secure,
            domain=domain,
        )
        if self.noise is None:
            return release
        noisy = self.noise.release(scores, bits)
        return replace(release, values=noisy.values, intervals=noisy.intervals, confidence=noisy.confidence)


@dataclass(frozen=True)
class Naming:
    """What naming the chosen items costs, and whether it is covered for people who alone have an item (naming.md)."""

    delta: float
    covers_all: bool

    def left_of(self, allowed: float) -> float:
        """Return the δ that choice and values may take; that of the choice is needed twice."""
        return float_below((Fraction(allowed) - Fraction(self.delta)) / 2) if self.delta else allowed

    def with_names(self, guarantee: Guarantee, chosen: Mechanism, protects: str) -> Guarantee:
        """Return the guarantee of an answer in which the items are named."""
        if not self.covers_all:
            return replace(guarantee, protects=protects, neighbours=WHERE_OTHERS_HAVE_THE_SAME)
        if not self.delta:
            return replace(guarantee, protects=protects)
        delta = float_above(Fraction(guarantee.delta) + Fraction(chosen.guarantee.delta) + Fraction(self.delta))
        return Guarantee(guarantee.epsilon, delta, protects)


def plan_release(
    mechanism: str | Mechanism,
    *,
    k: int | None,
    epsilon: float | None,
    delta: float | None = None,
    sensitivity: Sensitivity,
    ordered: bool,
    values: float | None,
    protects: str = "one person",
    max_items_per_person: int | None = None,
    number_of_items: int | None = None,
    pool: int | None = None,
    details: Mapping[str, Any] = MappingProxyType({}),
) -> Plan:
    """Settle a release. With values, ε is split by their share and δ in halves, and the costs add up to no more.

    delta: if left out, 0, or what a mechanism object states. max_items_per_person: what the caller enforces.
    number_of_items: of a domain that is known by its number only, so that the rows name the items. pool: how many items
    a mechanism for unknown domains looks at. details: what the ledger keeps beside the parameters of the mechanism.
    """
    unit = _unit(protects)
    bound = {"max_items_per_person": max_items_per_person} if _uses_bound(mechanism, max_items_per_person) else {}
    if pool is not None:
        bound["pool"] = pool
    settle = partial(mechanism_for, mechanism, k=k, sensitivity=sensitivity, ordered=ordered, **bound)
    if values is not None and (isinstance(mechanism, Mechanism) or epsilon is None):
        raise InvalidInput(
            "values", values, "name the mechanism and give epsilon: it is the total, of which values take their share"
        )
    if isinstance(mechanism, Mechanism):
        chosen = settle(epsilon=epsilon, delta=delta)
        naming = Naming(0.0, covers_all=number_of_items is None)
        return Plan(chosen, None, naming.with_names(chosen.guarantee, chosen, unit), details=details)
    allowed = 0.0 if delta is None else delta

    def again(of_epsilon: Fraction, of_delta: Fraction, most: float) -> Plan:
        return plan_release(
            mechanism,
            k=k,
            epsilon=min(float_below(of_epsilon * Fraction(positive_number("epsilon", epsilon))), most),
            delta=float_below(of_delta * Fraction(probability_of_failure(allowed))),
            sensitivity=sensitivity,
            ordered=ordered,
            values=values,
            protects=protects,
            max_items_per_person=max_items_per_person,
            number_of_items=number_of_items,
            pool=pool,
            details=details,
        )

    naming_of = partial(_naming, allowed, k, number_of_items, max_items_per_person, sensitivity)
    if values is None:
        naming = naming_of(epsilon)
        chosen = settle(epsilon=epsilon, delta=naming.left_of(allowed))
        return Plan(chosen, None, naming.with_names(chosen.guarantee, chosen, unit), again, details)
    for_choice, for_values = split_epsilon(positive_number("epsilon", epsilon), values)
    naming = naming_of(for_choice)
    half = float_below(Fraction(probability_of_failure(naming.left_of(allowed))) / 2)
    chosen = settle(epsilon=for_choice, delta=half)
    noise = value_noise(
        k=chosen.k,
        epsilon=for_values,
        delta=half,
        sensitivity=chosen.sensitivity,
        max_items_per_person=max_items_per_person,
    )
    together = compose([chosen.guarantee, noise.guarantee], route="basic")
    return Plan(chosen, noise, naming.with_names(together, chosen, unit), again, details)


def _uses_bound(mechanism: str | Mechanism, max_items_per_person: int | None) -> bool:
    """Whether a mechanism that is named has a use for a bound on the items of one person."""
    kind = {**MECHANISMS, **FOR_UNKNOWN_DOMAINS}.get(mechanism) if isinstance(mechanism, str) else None
    return max_items_per_person is not None and hasattr(kind, "max_items_per_person")


def _naming(
    delta: Any,
    k: Any,
    number_of_items: int | None,
    max_items_per_person: int | None,
    sensitivity: Sensitivity,
    epsilon: Any,
) -> Naming:
    """Settle what naming takes of δ; without a δ, or a bound on the items of one person, it cannot be covered."""
    if number_of_items is None:
        return Naming(0.0, covers_all=True)
    if max_items_per_person is None or not probability_of_failure(delta) or sensitivity.low < 0:
        return Naming(0.0, covers_all=False)
    needed = delta_of_naming(
        Fraction(positive_number("epsilon", epsilon)),
        k=positive_integer("k", k),
        size=number_of_items,
        max_items_per_person=max_items_per_person,
    )
    if needed > delta:
        raise InvalidInput(
            "delta",
            delta,
            f"at least {shown_above(needed)} is needed to name the chosen items among {number_of_items} that are not "
            "listed; allow fewer items per person, or list the items",
        )
    return Naming(needed, covers_all=True)


def _share(requested: float, remaining: float) -> Fraction:
    """Return which part of a request is left, at most all of it."""
    return Fraction(1) if requested <= remaining else Fraction(remaining) / Fraction(requested)


def _unit(protects: Any) -> str:
    if isinstance(protects, str) and protects.strip() and protects.isprintable():
        return protects
    raise InvalidInput("protects", protects, "the unit of protection is needed, as in 'one person' or 'one household'")
