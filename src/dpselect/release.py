"""What a release will do and cost, settled before any data is seen, and what it published.

`ReleaseRequest` holds what the caller asked for, `ReleasePlan` the mechanism, the noise on published scores and the
cost that follow from it, and `Release` the answer.
"""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, time
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from dpselect._numbers import float_below, positive_number
from dpselect.errors import BudgetExceeded, InvalidInput, plain
from dpselect.mechanisms import (
    FOR_UNKNOWN_DOMAINS,
    MECHANISMS,
    Gaussian,
    Laplace,
    Mechanism,
    NoisyVector,
    mechanism_for,
)
from dpselect.mechanisms.auto import noisy_vectors, resolution
from dpselect.privacy.composition import compose
from dpselect.privacy.guarantee import Guarantee, probability_of_failure
from dpselect.privacy.naming import Naming
from dpselect.privacy.sensitivity import Sensitivity
from dpselect.sampling import BitSource
from dpselect.scores import Members, Scores
from dpselect.values import IncludedValues, NoisyValues, ValueNoise, included_values, split_epsilon, value_noise

if TYPE_CHECKING:
    from dpselect.forecast import Reach
    from dpselect.ledger import Ledger

PUBLIC, NUMBER, UNKNOWN, ROWS = "public", "number", "unknown", "rows"

ROUNDING_ALLOWANCE = Fraction(1, 10**9)
"""A release that exceeds the remaining budget by at most this share of its cost is reduced to the remaining budget."""


@dataclass(frozen=True)
class StatedDomain:
    """What the caller stated about the possible items, on which the guarantee rests.

    `stated` is "public" if the items were listed, "number" if only their number was given, "unknown" if it is private
    which items exist, and "rows" if the rows name the items. `items` is the number of items if that is public.
    """

    items: int | None
    stated: str

    def __str__(self) -> str:
        """Say it in words."""
        if self.items is None:
            return "named by the rows" if self.stated == ROWS else "unknown; which items exist is private"
        number = f"{self.items:,}" if self.items < 10**15 else f"{self.items:.0e}"
        items = f"{number} item{'' if self.items == 1 else 's'}"
        return f"{items}, stated as public" if self.stated == PUBLIC else f"{items}, only their number stated as public"

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return {"items": self.items, "stated": self.stated}


@dataclass(frozen=True)
class Release:
    """The chosen items with their guarantee; everything in it may be published.

    Parameters
    ----------
    items
        The chosen items: k of them, or fewer from an unknown domain.
    ordered
        Whether the order of `items` is part of the private output; if not, it is random.
    guarantee
        What the release costs, published scores included.
    mechanism
        The mechanism that chose, with its parameters.
    secure
        False if a seed was given: whoever knows the seed can undo the noise, so the release protects nobody.
    values, intervals, confidence
        If noisy scores were asked for: a score for each item, a pair (low, high) for each that holds the true score
        with probability `confidence`, and that probability (docs/values.md).
    domain
        What was stated about the possible items.

    Examples
    --------
    >>> import dpselect as dps
    >>> release = dps.select({"tea": 90, "coffee": 80, "milk": 3}, k=2, epsilon=1.0, seed=1)
    >>> release.k, release.guarantee.epsilon, release.secure
    (2, 1.0, False)
    """

    items: list[Any]
    ordered: bool
    guarantee: Guarantee
    mechanism: Mechanism
    secure: bool
    values: list[Any] | None = None
    intervals: list[tuple[Any, Any]] | None = None
    confidence: float | None = None
    domain: StatedDomain | None = None

    @property
    def k(self) -> int:
        """How many items were asked for."""
        return self.mechanism.k

    @property
    def stopped(self) -> bool:
        """Whether the mechanism returned fewer than k items to protect privacy; only from an unknown domain."""
        return len(self.items) < self.k

    @property
    def reach(self) -> Reach | None:
        """What the mechanism could tell apart, from public facts; None if the number of items is not public."""
        from dpselect.forecast import reach

        items = None if self.domain is None else self.domain.items
        return None if items is None else reach(self.mechanism, items, protects=self.guarantee.protects)

    def to_dict(self) -> dict[str, Any]:
        """Return the release as plain data that json.dumps accepts."""
        reach = self.reach
        data = {
            "items": [_plain(item) for item in self.items],
            "ordered": self.ordered,
            "values": self.values,
            "mechanism": self.mechanism.describe(),
            "guarantee": self.guarantee.to_dict(),
            "domain": None if self.domain is None else self.domain.to_dict(),
            "reach": None if reach is None else reach.to_dict(),
            "secure": self.secure,
            "k": self.k,
        }
        if self.mechanism.may_stop:
            data["stopped"] = self.stopped
        if self.intervals is not None:
            data["intervals"] = [list(interval) for interval in self.intervals]
            data["confidence"] = self.confidence
        return data


def _plain(item: Any) -> Any:
    """Return an item as JSON can hold it: dates and times as ISO text, other objects as their str()."""
    if hasattr(item, "to_json_value"):
        return item.to_json_value()
    if isinstance(item, np.datetime64 | np.timedelta64):
        return str(item)  # item() would make nanoseconds a bare number
    if hasattr(item, "item") and hasattr(item, "dtype"):
        item = item.item()
    if isinstance(item, float) and not math.isfinite(item):
        return str(item)
    if item is None or isinstance(item, str | int | float | bool):
        return item
    if isinstance(item, tuple | list):
        return [_plain(part) for part in item]
    return item.isoformat() if isinstance(item, date | time) else str(item)


@dataclass(frozen=True)
class ChargeTarget:
    """The ledger and data set that a release is charged to; without a ledger nothing is charged."""

    ledger: Ledger | str | os.PathLike[str] | None
    dataset: str = ""
    purpose: str = ""

    @classmethod
    def of(cls, ledger: Any, dataset: str | None, purpose: str) -> ChargeTarget:
        """Check the three arguments of `select`, `top` and `rank`."""
        if ledger is None:
            for argument, given in (("dataset", dataset), ("purpose", purpose)):
                if given:
                    raise InvalidInput(argument, given, "must be left out without a ledger; name the ledger too")
            return cls(None)
        from dpselect.ledger import Ledger

        if not isinstance(ledger, Ledger | str | os.PathLike):
            given = plain(f"an object of type {type(ledger).__name__}")
            raise InvalidInput("ledger", given, "must be a dpselect.privacy.Ledger, or the path or URL of one")
        if not dataset:
            raise InvalidInput("dataset", dataset, "must name the data set of the ledger that is charged")
        return cls(ledger, dataset, purpose)

    def record(self, guarantee: Guarantee, parameters: Mapping[str, Any], *, secure: bool) -> None:
        """Charge the release; when this returns, the record is on the disk and the answer may be drawn.

        A later failure gives nothing back: it can depend on the data, and a process that dies cannot tell whether its
        answer was seen. A record without an answer costs budget; an answer without a record costs privacy.
        """
        if self.ledger is None:
            return
        from dpselect.ledger import Ledger

        if isinstance(self.ledger, Ledger):
            self.ledger.spend(self.dataset, guarantee, self.purpose, parameters, secure=secure)
            return
        with Ledger(self.ledger) as opened:
            opened.spend(self.dataset, guarantee, self.purpose, parameters, secure=secure)


@dataclass(frozen=True, kw_only=True)
class ReleaseRequest:
    """What the caller asks for; all of it is public.

    delta: None means 0, or what a mechanism object states. max_items_per_person: the limit that the
    caller enforces. number_of_items: set if only the number of possible items is public; the rows then name the items.
    pool: how many items a mechanism for unknown domains considers. details: further parameters for the ledger.
    """

    mechanism: str | Mechanism
    k: int | None
    epsilon: float | None
    delta: float | None = None
    sensitivity: Sensitivity
    ordered: bool = False
    aim: str = "most"
    values: float | bool | None = None
    protects: str = "one person"
    neighbours: str = "add or remove"
    max_items_per_person: int | None = None
    number_of_items: int | None = None
    pool: int | None = None
    details: Mapping[str, Any] = field(default_factory=dict)

    def plan(self) -> ReleasePlan:
        """Choose mechanism and noise. With a share as `values`, ε is split by it and δ in half, rounded down."""
        if not (isinstance(self.protects, str) and self.protects.strip() and self.protects.isprintable()):
            raise InvalidInput(
                "protects", self.protects, "must be the unit of protection, such as 'one person' or 'one household'"
            )
        allowed = 0.0 if self.delta is None else self.delta
        if self.values is None or self.values is True:
            if isinstance(self.mechanism, Mechanism):
                naming = Naming(0.0, covers_all=self.number_of_items is None)
                chosen = self._choose(self.epsilon, self.delta)
            else:
                naming = self._naming(self.epsilon, allowed)
                chosen = self._choose(self.epsilon, naming.left_of(allowed))
            included = included_values(chosen) if self.values else None
            return ReleasePlan(self, chosen, included, self._stated(chosen.guarantee, chosen, naming))
        if isinstance(self.mechanism, NoisyVector) or self.mechanism in (Laplace.name, Gaussian.name):
            raise InvalidInput(
                "values",
                self.values,
                "must be True (--values included) with laplace and gaussian, whose release includes the values",
            )
        if isinstance(self.mechanism, Mechanism) or self.epsilon is None:
            raise InvalidInput(
                "values",
                self.values,
                "must be left out with a mechanism object or without epsilon; name the mechanism and give epsilon, the "
                "total, of which values take their share",
            )
        for_choice, for_values = split_epsilon(positive_number("epsilon", self.epsilon), self.values)
        naming = self._naming(for_choice, allowed)
        half = float_below(Fraction(probability_of_failure(naming.left_of(allowed))) / 2)
        chosen = self._choose(for_choice, half)
        noise = value_noise(
            k=chosen.k,
            epsilon=for_values,
            delta=half,
            sensitivity=chosen.sensitivity,
            max_items_per_person=self.max_items_per_person,
        )
        together = compose([chosen.guarantee, noise.guarantee], route="basic")
        return ReleasePlan(self, chosen, noise, self._stated(together, chosen, naming))

    def _choose(self, epsilon: float | None, delta: float | None) -> Mechanism:
        """Return the mechanism for a share of the budget."""
        more: dict[str, Any] = {}
        mechanism = self.mechanism
        if isinstance(mechanism, str) and mechanism == "auto" and self.values is True:
            mechanism = self._including(epsilon, delta)
        if isinstance(mechanism, str) and self.max_items_per_person is not None:
            kind = {**MECHANISMS, **FOR_UNKNOWN_DOMAINS}.get(mechanism)
            # A share of ε for the values is refused by the mechanisms that include them, so "auto" does not take these.
            if hasattr(kind, "max_items_per_person") or (mechanism == "auto" and self.values is None):
                more["max_items_per_person"] = self.max_items_per_person
        if self.pool is not None:
            more["pool"] = self.pool
        return mechanism_for(
            mechanism,
            k=self.k,
            epsilon=epsilon,
            delta=delta,
            sensitivity=self.sensitivity,
            ordered=self.ordered,
            aim=self.aim,
            **more,
        )

    def _including(self, epsilon: float | None, delta: float | None) -> Mechanism:
        """Return what "auto" means if the answer is to include its values."""
        if self.max_items_per_person is None:
            raise InvalidInput(
                "values",
                True,
                "must be a share of epsilon, such as 0.3; only laplace and gaussian include their values, and need a "
                "max_items_per_person: state it in top, or give select a mechanism object",
            )
        shared = {"k": self.k, "epsilon": epsilon, "sensitivity": self.sensitivity}
        return min(noisy_vectors(shared, self.max_items_per_person, delta or 0.0), key=resolution)

    def _naming(self, epsilon: float | None, delta: float) -> Naming:
        if self.number_of_items is None:
            return Naming(0.0, covers_all=True)
        return Naming.of(
            epsilon,
            delta,
            k=self.k,
            size=self.number_of_items,
            max_items_per_person=self.max_items_per_person,
            low=self.sensitivity.low,
        )

    def _stated(self, guarantee: Guarantee, chosen: Mechanism, naming: Naming) -> Guarantee:
        """Return the guarantee with its unit of protection and the cost of naming the items."""
        stated = replace(guarantee, protects=self.protects, neighbours=self.neighbours)
        return naming.added_to(stated, chosen.guarantee.delta)


@dataclass(frozen=True)
class ReleasePlan:
    """The mechanism that chooses, the noise on published scores if any, and what both cost together."""

    request: ReleaseRequest
    mechanism: Mechanism
    noise: ValueNoise | IncludedValues | None
    guarantee: Guarantee

    def describe(self) -> dict[str, Any]:
        """Return the parameters of the release as plain data."""
        described = {**self.mechanism.describe(), **self.request.details}
        return described if self.noise is None else {**described, "values": self.noise.noise}

    def charge(self, target: ChargeTarget, *, secure: bool) -> ReleasePlan:
        """Charge the plan and return it; if only a rounding error is missing, charge and return a smaller plan.

        Ten times the float 0.1 is slightly more than 1: the tenth release of a total of 1 is made with what is left,
        which is public, and states the smaller epsilon. The second charge is a transaction of its own, and is refused
        if another process was faster.
        """
        try:
            target.record(self.guarantee, self.describe(), secure=secure)
            return self
        except BudgetExceeded as refusal:
            fitting = self._within(refusal)
            if fitting is None:
                raise
        target.record(fitting.guarantee, fitting.describe(), secure=secure)
        return fitting

    def _within(self, refusal: BudgetExceeded) -> ReleasePlan | None:
        """Return the request planned for the remaining budget; None if more than a rounding error is missing."""
        if isinstance(self.request.mechanism, Mechanism):  # it states its own cost
            return None
        delta = _share(refusal.requested_delta, refusal.remaining_delta)
        epsilon, most = _share(refusal.requested, refusal.remaining), refusal.remaining
        if refusal.requested_rho:
            # ρ falls at least as fast as ε. The factor 1 − 2⁻⁵⁰ covers the rounding of the parts of ρ.
            epsilon = _share(refusal.requested_rho, refusal.remaining_rho) * (1 - Fraction(1, 2**50))
            most = self.guarantee.epsilon
        if min(epsilon, delta) < 1 - ROUNDING_ALLOWANCE:
            return None
        smaller = replace(
            self.request,
            epsilon=min(float_below(epsilon * Fraction(positive_number("epsilon", self.request.epsilon))), most),
            delta=float_below(delta * Fraction(probability_of_failure(self.request.delta or 0.0))),
        )
        with contextlib.suppress(InvalidInput):  # for example, the δ that naming needs cannot be made smaller
            return smaller.plan()
        return None

    def draw(self, scores: Scores, bits: BitSource) -> tuple[Members, NoisyValues | None]:
        """Return the chosen items, and their noisy scores if the answer of the mechanism includes them."""
        if isinstance(self.noise, IncludedValues):
            return self.noise.draw(scores, bits)
        return self.mechanism.draw(scores, bits), None

    def release(
        self,
        items: list[Any],
        scores: Iterable[Any],
        bits: BitSource,
        domain: StatedDomain,
        noisy: NoisyValues | None = None,
    ) -> Release:
        """Return the release of the chosen items, with the noisy scores drawn with them, or with planned fresh ones."""
        release = Release(
            items=items,
            ordered=self.mechanism.ordered,
            guarantee=self.guarantee,
            mechanism=self.mechanism,
            secure=bits.secure,
            domain=domain,
        )
        if isinstance(self.noise, ValueNoise):
            noisy = self.noise.release(scores, bits)
        if noisy is None:
            return release
        return replace(release, values=noisy.values, intervals=noisy.intervals, confidence=noisy.confidence)


def _share(requested: float, remaining: float) -> Fraction:
    """Return the share of a request that is left, at most 1."""
    return Fraction(1) if requested <= remaining else Fraction(remaining) / Fraction(requested)


def check_covers(mechanism: Mechanism, needed: Sensitivity, max_items_per_person: int | None = None) -> None:
    """Refuse a mechanism object whose noise is too small for the sensitivity or the items per person."""
    stated = mechanism.sensitivity
    relies_on = getattr(mechanism, "max_items_per_person", None)
    covered = stated.spread >= needed.spread
    if relies_on is not None:
        covered = stated.low <= needed.low and needed.high <= stated.high
    if not covered:
        raise InvalidInput("mechanism", stated, f"must have sensitivity={needed!r}")
    if relies_on is not None and relies_on != max_items_per_person:
        raise InvalidInput(
            "max_items_per_person",
            max_items_per_person,
            f"must be {relies_on}, the limit that the noise of the mechanism assumes; state it here too, to enforce it",
        )
