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

from dpselect._arrays import Array
from dpselect._numbers import float_below, positive_number
from dpselect.errors import BudgetExceeded, InvalidInput, plain
from dpselect.mechanisms import (
    FOR_UNKNOWN_DOMAINS,
    MECHANISMS,
    Gaussian,
    Laplace,
    Mechanism,
    NoisyVector,
    UnknownDomain,
    check_options,
    mechanism_for,
)
from dpselect.mechanisms.auto import noisy_vectors, resolution
from dpselect.privacy.composition import compose
from dpselect.privacy.guarantee import Guarantee, probability_of_failure
from dpselect.privacy.naming import Naming
from dpselect.privacy.sensitivity import Sensitivity
from dpselect.sampling import BitSource
from dpselect.scores import Members, Scores
from dpselect.values import (
    IncludedValues,
    NoisyValues,
    ValueNoise,
    epsilon_beside,
    included_values,
    split_epsilon,
    value_noise,
)

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
        False if a seed was given: whoever knows the seed can undo the noise, so the release protects nobody. Also if
        the caller brought noise or a mechanism that does not draw exactly.
    values, intervals, confidence
        If noisy scores were asked for: a score for each item, a pair (low, high) for each that holds the true score
        with probability `confidence`, and that probability (docs/values.md).
    domain
        What was stated about the possible items.
    lowest
        Whether the lowest scores were asked for. The mechanism then chose the highest of the negated scores, and its
        sensitivity is that of these; the values have the sign of the scores.

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
    lowest: bool = False

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
        from dpselect.forecast.reach import reach

        items = None if self.domain is None else self.domain.items
        mechanism = on_negated_scores(self.mechanism) if self.lowest else self.mechanism
        return None if items is None else reach(mechanism, items, protects=self.guarantee.protects)

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
        if self.lowest:
            data["lowest"] = True
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
    pool: how many items a mechanism for unknown domains considers. options: further arguments of a named mechanism.
    lowest: whether the lowest scores are asked for. details: further parameters for the ledger.
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
    options: Mapping[str, Any] | None = None
    lowest: bool = False
    details: Mapping[str, Any] = field(default_factory=dict)

    def plan(self) -> ReleasePlan:
        """Choose mechanism and noise. With a share as `values`, ε is split by it and δ in half, rounded down.

        A mechanism object states what the choice costs, and the values cost their share of the total beside it. They
        use the rest of δ if a total is given.
        """
        if not (isinstance(self.protects, str) and self.protects.strip() and self.protects.isprintable()):
            raise InvalidInput(
                "protects", self.protects, "must be the unit of protection, such as 'one person' or 'one household'"
            )
        self._check_lowest()
        check_options(self.mechanism, self.options or {})
        allowed = 0.0 if self.delta is None else self.delta
        stated_by_object = Naming(0.0, covers_all=self.number_of_items is None)
        if self.values is None or self.values is True:
            if isinstance(self.mechanism, Mechanism):
                naming = stated_by_object
                chosen = self._choose(self.epsilon, self.delta)
            else:
                naming = self._naming(self.epsilon, allowed)
                chosen = self._choose(self.epsilon, naming.left_of(allowed))
            included = included_values(chosen, negated=self.lowest) if self.values else None
            return ReleasePlan(self, chosen, included, self._stated(chosen.guarantee, chosen, naming))
        if isinstance(self.mechanism, NoisyVector) or self.mechanism in (Laplace.name, Gaussian.name):
            raise InvalidInput(
                "values",
                self.values,
                "must be True (--values included) with laplace and gaussian, whose release includes the values",
            )
        if isinstance(self.mechanism, Mechanism):
            naming = stated_by_object
            chosen = self._choose(None, self.delta)
            for_values = epsilon_beside(chosen.guarantee.epsilon, self.values)
            rest = 0.0 if self.delta is None else float_below(Fraction(allowed) - Fraction(chosen.guarantee.delta))
        else:
            for_choice, for_values = split_epsilon(positive_number("epsilon", self.epsilon), self.values)
            naming = self._naming(for_choice, allowed)
            rest = float_below(Fraction(probability_of_failure(naming.left_of(allowed))) / 2)
            chosen = self._choose(for_choice, rest)
        noise = value_noise(
            k=chosen.k,
            epsilon=for_values,
            delta=rest,
            sensitivity=chosen.sensitivity.negated() if self.lowest else chosen.sensitivity,
            max_items_per_person=self.max_items_per_person,
        )
        together = compose([chosen.guarantee, noise.guarantee], route="basic")
        if isinstance(self.mechanism, Mechanism):
            self._check_total(together.epsilon)
        return ReleasePlan(self, chosen, noise, self._stated(together, chosen, naming))

    def _check_lowest(self) -> None:
        if not isinstance(self.lowest, bool):
            raise InvalidInput("lowest", self.lowest, "must be True or False")
        named = isinstance(self.mechanism, str) and self.mechanism in FOR_UNKNOWN_DOMAINS
        unlisted = named or isinstance(self.mechanism, UnknownDomain) or self.number_of_items is not None
        if self.lowest and unlisted:
            raise InvalidInput(
                "lowest",
                True,
                "must be left out unless the possible items are listed; if they are unknown or only their number is "
                "stated, the lowest scores are those of items that nobody has",
            )

    def _check_total(self, stated: float) -> None:
        """Refuse an epsilon that is not the sum of what the mechanism object and the values cost."""
        if self.epsilon is None or math.isclose(positive_number("epsilon", self.epsilon), stated, rel_tol=1e-12):
            return
        raise InvalidInput(
            "epsilon",
            self.epsilon,
            f"must be {stated:.17g} (that of the mechanism object and the values); leave it out",
        )

    def _choose(self, epsilon: float | None, delta: float | None) -> Mechanism:
        """Return the mechanism for a share of the budget; if the lowest are asked for, for the negated scores."""
        more: dict[str, Any] = dict(self.options or {})
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
        chosen = mechanism_for(
            mechanism,
            k=self.k,
            epsilon=epsilon,
            delta=delta,
            sensitivity=self.sensitivity,
            ordered=self.ordered,
            aim=self.aim,
            **more,
        )
        return on_negated_scores(chosen) if self.lowest else chosen

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
        """Return the guarantee with its unit of protection, its promise, and the cost of naming the items."""
        stated = replace(guarantee, protects=self.protects, neighbours=self.neighbours)
        named = naming.added_to(stated, chosen.guarantee.delta)
        promised = f", if the promise holds that {chosen.promise}" if chosen.promise else ""
        return replace(named, neighbours=named.neighbours + promised)


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
        if self.request.lowest:
            described["lowest"] = True
        return described if self.noise is None else {**described, "values": self.noise.noise}

    def charge(self, target: ChargeTarget, *, secure: bool) -> ReleasePlan:
        """Charge the plan and return it; if only a rounding error is missing, charge and return a smaller plan.

        Ten times the float 0.1 is slightly more than 1: the tenth release of a total of 1 is made with what is left,
        which is public, and states the smaller epsilon. The second charge is a transaction of its own, and is refused
        if another process was faster.
        """
        if target.ledger is not None and not self.mechanism.exact:
            raise InvalidInput(
                "mechanism", self.mechanism.name, "must draw exactly by its law if a ledger is charged; use another one"
            )
        try:
            self._record(target, secure)
            return self
        except BudgetExceeded as refusal:
            fitting = self._within(refusal)
            if fitting is None:
                raise
        fitting._record(target, secure)
        return fitting

    def _record(self, target: ChargeTarget, secure: bool) -> None:
        """Charge the plan. What it takes on trust is recorded with the mechanism, as it does not change the unit."""
        unit = self.guarantee.neighbours.partition(", if the promise holds")[0]
        charged = replace(self.guarantee, neighbours=unit) if self.mechanism.promise else self.guarantee
        target.record(charged, self.describe(), secure=secure)

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

    def seen(self, scores: Scores) -> Scores:
        """Return the scores as the mechanism sees them: negated if the lowest are asked for."""
        return scores.negated() if self.request.lowest else scores

    def scores_of(self, members: Members) -> Array:
        """Return the scores of the chosen items, with their own sign. They are private."""
        return -members.values if self.request.lowest else members.values

    def draw(self, scores: Scores, bits: BitSource) -> tuple[Members, NoisyValues | None]:
        """Return the chosen items among scores as seen, and their noisy scores if the answer includes them."""
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
            secure=bits.secure and self.mechanism.exact,
            domain=domain,
            lowest=self.request.lowest,
        )
        if isinstance(self.noise, ValueNoise):
            noisy = self.noise.release(scores, bits)
        if noisy is None:
            return release
        return replace(release, values=noisy.values, intervals=noisy.intervals, confidence=noisy.confidence)


def _share(requested: float, remaining: float) -> Fraction:
    """Return the share of a request that is left, at most 1."""
    return Fraction(1) if requested <= remaining else Fraction(remaining) / Fraction(requested)


def on_negated_scores(mechanism: Mechanism) -> Mechanism:
    """Return a mechanism with the sensitivity of the negated scores."""
    return replace(mechanism, sensitivity=mechanism.sensitivity.negated())


def check_covers(
    mechanism: Mechanism,
    needed: Sensitivity,
    max_items_per_person: int | None = None,
    *,
    values: float | bool | None = None,
) -> None:
    """Refuse a mechanism object whose noise is too small for the sensitivity or the items per person.

    Choosing needs the spread only; noise on the scores themselves, as on published values, needs both bounds.
    """
    stated = mechanism.sensitivity
    relies_on = getattr(mechanism, "max_items_per_person", None)
    covered = stated.spread >= needed.spread
    # What is promised for some moves says nothing of others, nor does the noise on values.
    if relies_on is not None or values is not None or mechanism.promise:
        covered = stated.low <= needed.low and needed.high <= stated.high
    if not covered:
        raise InvalidInput("mechanism", stated, f"must have sensitivity={needed!r}")
    if relies_on is not None and relies_on != max_items_per_person:
        raise InvalidInput(
            "max_items_per_person",
            max_items_per_person,
            f"must be {relies_on}, the limit that the noise of the mechanism assumes; state it here too, to enforce it",
        )
