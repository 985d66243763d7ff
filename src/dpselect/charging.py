"""Charging a release to a ledger before it is drawn, and, under a key, answering it once.

The order is: settle the plan, charge it, draw, and only then publish. With a key the ledger also keeps the answer, and
everybody who asks the same question under the key gets that answer, whoever drew it.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Generic, Protocol, Self, TypeVar

from dpselect._format import shown_cost
from dpselect._numbers import float_below
from dpselect.errors import BudgetExceeded, InvalidInput, plain
from dpselect.mechanisms import Discovery, Mechanism, described_mechanism
from dpselect.privacy.guarantee import Guarantee

if TYPE_CHECKING:
    from dpselect.ledger import Budget, Entry, Ledger

ROUNDING_ALLOWANCE = Fraction(1, 10**9)
"""A release that exceeds the remaining budget by at most this share of its cost is reduced to the remaining budget."""

REDUCED = "reduced_to"
"""The parameter of an entry with a key that holds the epsilon and delta to which the request was reduced."""

Asked = Callable[[], Mapping[str, Any]]
"""What is asked besides the request itself, as plain data; called only if the release has a key."""


class Plan(Protocol):
    """A release that is settled and not yet drawn: what is charged, and how its stored answer is read."""

    @property
    def mechanism(self) -> Mechanism | Discovery:
        """What draws the answer."""

    @property
    def guarantee(self) -> Guarantee:
        """What the release costs."""

    @property
    def budget(self) -> tuple[float, float] | None:
        """The epsilon and delta that were asked for; None if a mechanism object states its own cost."""

    def with_budget(self, epsilon: float, delta: float) -> Self:
        """Return the plan of the same request for another epsilon and delta."""

    def describe(self) -> dict[str, Any]:
        """Return the parameters that the ledger records, as plain data."""

    def question(self) -> dict[str, Any]:
        """Return what identifies the request, as plain data."""

    def answer_of(self, data: Mapping[str, Any], *, repeated: bool = True) -> Any:
        """Return the answer that is stored as plain data."""


PlanType = TypeVar("PlanType", bound=Plan)
Answer = TypeVar("Answer", bound="PublicAnswer")


_log = logging.getLogger("dpselect")
_rehearsing: ContextVar[bool] = ContextVar("rehearsing", default=False)


@dataclass(frozen=True)
class Rehearsed:
    """A release within `rehearsal`, as it was about to be charged.

    `left` is what the charge would leave of each data set; `repeated`, whether the question was asked under the key
    before, so that it costs nothing more.
    """

    plan: Plan
    question: Mapping[str, Any]
    left: Mapping[str, Budget]
    repeated: bool


class _RehearsalEnds(Exception):
    """Ends a release within `rehearsal`, where it would be charged."""

    def __init__(self, rehearsed: Rehearsed) -> None:
        super().__init__("a release within rehearsal() ends before it is charged")
        self.rehearsed = rehearsed


@contextlib.contextmanager
def rehearsal() -> Iterator[list[Rehearsed]]:
    """End the release of the block where it would be charged, so that no row is read, and append it to the list."""
    found: list[Rehearsed] = []
    token = _rehearsing.set(True)
    try:
        yield found
    except _RehearsalEnds as end:
        found.append(end.rehearsed)  # the exception itself would keep the engine in memory
    finally:
        _rehearsing.reset(token)


def is_rehearsal() -> bool:
    """Whether this is within `rehearsal`, where no row may be read."""
    return _rehearsing.get()


class PublicAnswer(Protocol):
    """An answer that a ledger can keep."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain data that json.dumps accepts."""


@dataclass(frozen=True)
class Charge(Generic[PlanType]):
    """A plan that is charged, or need not be; with a key, its entry and the data of an answer stored already."""

    plan: PlanType
    target: ChargeTarget
    entry: Entry | None = None
    stored: Mapping[str, Any] | None = None

    def published(self, drawn: Answer) -> Answer:
        """Return what may leave: what was drawn, or, with a key, the answer that was stored first."""
        _log.info("the answer is drawn")
        if self.entry is None:
            return drawn
        data = json.loads(json.dumps(drawn.to_dict()))
        with self.target.opened() as ledger:
            stored = ledger.keep_answer(self.entry, data)
        # By identity: whether an equal answer was stored before would tell what was drawn here, which is not charged.
        answer: Answer = self.plan.answer_of(stored, repeated=stored is not data)
        return answer


@dataclass(frozen=True)
class ChargeTarget:
    """The ledger and data set that a release is charged to, and its key; without a ledger nothing is charged.

    `also` names further data sets of the ledger that are charged the same, all or none.
    """

    ledger: Ledger | str | os.PathLike[str] | None
    dataset: str = ""
    purpose: str = ""
    once: str | None = None
    period: str | None = None
    also: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        ledger: Any,
        dataset: str | Sequence[str] | None,
        purpose: str,
        once: str | None = None,
        *,
        seed: int | None = None,
        period: str | None = None,
    ) -> ChargeTarget:
        """Check these arguments of the functions that release; the period is that of the release, checked."""
        if ledger is None:
            for argument, given in (("dataset", dataset), ("purpose", purpose), ("once", once)):
                if given:
                    raise InvalidInput(argument, given, "must be left out without a ledger; name the ledger too")
            return cls(None)
        from dpselect.ledger import Ledger

        if not isinstance(ledger, Ledger | str | os.PathLike):
            given = plain(f"an object of type {type(ledger).__name__}")
            raise InvalidInput("ledger", given, "must be a dpselect.privacy.Ledger, or the path or URL of one")
        names = (dataset,) if isinstance(dataset, str) else tuple(dataset or ())
        if not names or not all(names) or len(set(names)) < len(names):
            raise InvalidInput(
                "dataset", dataset, "must name the data set of the ledger that is charged, or several, each once"
            )
        if once is not None and seed is not None:
            raise InvalidInput(
                "seed", seed, "must be left out with once: the stored answer is published, and a seed protects nobody"
            )
        return cls(ledger, names[0], purpose, once, period, names[1:])

    def charge(self, plan: PlanType, *, secure: bool, asked: Asked = dict) -> Charge[PlanType]:
        """Charge the plan; if only a rounding error is missing, charge a smaller plan.

        When this returns, the record is on the disk and the answer may be drawn, unless it is stored already.

        Ten times the float 0.1 is slightly more than 1: the tenth release of a total of 1 is made with what is left,
        which is public, and states the smaller epsilon. The second charge is a transaction of its own, and is refused
        if another process was faster.
        """
        cost = shown_cost(plan.guarantee.epsilon, plan.guarantee.delta)
        _log.info("settled: %s, %s; no row was read so far", plan.mechanism.name, cost)
        if self.ledger is not None and not plan.mechanism.exact:
            raise InvalidInput(
                "mechanism", plan.mechanism.name, "must draw exactly by its law if a ledger is charged; use another one"
            )
        if self.once is not None:
            _check_rebuilds(plan.mechanism)
        if is_rehearsal():
            raise _RehearsalEnds(self._rehearsed(plan, {**plan.question(), **_asked_for(asked())}))
        if self.ledger is None:
            _log.info("no ledger is named, so nothing is charged")
            return Charge(plan, self)
        charge = self._recorded(plan, secure=secure, asked=asked)
        if charge.stored is not None:
            _log.info("answered before under this key; nothing more is charged")
        else:
            _log.info("charged to %s, and the record is on the disk", ", ".join(map(repr, self._datasets)))
        return charge

    @property
    def _datasets(self) -> tuple[str, ...]:
        return (self.dataset, *self.also)

    def _rehearsed(self, plan: Plan, question: Mapping[str, Any]) -> Rehearsed:
        """Return the plan as it would be charged, and what that would leave; raise if it would be refused."""
        if self.ledger is None:
            return Rehearsed(plan, question, {}, repeated=False)
        with self.opened() as ledger:
            if self.once is not None and ledger.find(self.dataset, self.once, question, also=self.also) is not None:
                left = {name: ledger.remaining(name, self.period) for name in self._datasets}
                return Rehearsed(plan, question, left, repeated=True)
            try:
                left = self._left_after(ledger, plan)
            except BudgetExceeded as refusal:
                fitting = _within(plan, refusal)
                if fitting is None:
                    raise
                plan, left = fitting, self._left_after(ledger, fitting)
            return Rehearsed(plan, question, left, repeated=False)

    def _left_after(self, ledger: Ledger, plan: Plan) -> dict[str, Budget]:
        return {name: ledger.rehearse(name, _charged(plan), period=self.period) for name in self._datasets}

    def _recorded(self, plan: PlanType, *, secure: bool, asked: Asked) -> Charge[PlanType]:
        if self.once is not None:
            return self._charge_once(plan, {**plan.question(), **_asked_for(asked())})
        try:
            self.record(_charged(plan), plan.describe(), secure=secure)
            return Charge(plan, self)
        except BudgetExceeded as refusal:
            fitting = _within(plan, refusal)
            if fitting is None:
                raise
        self.record(_charged(fitting), fitting.describe(), secure=secure)
        return Charge(fitting, self)

    def record(self, guarantee: Guarantee, parameters: Mapping[str, Any], *, secure: bool) -> None:
        """Record a release in the ledger.

        A later failure gives nothing back: it can depend on the data, and a process that dies cannot tell whether its
        answer was seen. A record without an answer costs budget; an answer without a record costs privacy.
        """
        with self.opened() as ledger:
            ledger.spend(
                self.dataset,
                guarantee,
                self.purpose,
                parameters,
                secure=secure,
                period=self.period,
                also=self.also,
            )

    def _charge_once(self, plan: PlanType, question: Mapping[str, Any]) -> Charge[PlanType]:
        """Charge a plan under the key, unless that was done before; find the answer if there is one."""
        assert self.once is not None
        arguments = (self.once, question, self.purpose)
        where: dict[str, Any] = {"period": self.period, "also": self.also}
        with self.opened() as ledger:
            try:
                found = ledger.spend_once(self.dataset, _charged(plan), *arguments, plan.describe(), **where)
            except BudgetExceeded as refusal:
                fitting = _within(plan, refusal)
                if fitting is None:
                    raise
                assert fitting.budget is not None
                reduced = dict(zip(("epsilon", "delta"), fitting.budget, strict=True))
                parameters = {**fitting.describe(), REDUCED: reduced}
                found = ledger.spend_once(self.dataset, _charged(fitting), *arguments, parameters, **where)
        if found.answer is not None:
            return Charge(plan, self, found.entry, found.answer)
        return Charge(_plan_of(plan, found.entry), self, found.entry)

    @contextlib.contextmanager
    def opened(self) -> Iterator[Ledger]:
        """Open the ledger, or use the one that the caller has open."""
        from dpselect.ledger import Ledger

        if isinstance(self.ledger, Ledger):
            yield self.ledger
            return
        assert self.ledger is not None
        with Ledger(self.ledger) as ledger:
            yield ledger


def _asked_for(asked: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out what was not asked for, so that a later version with more arguments recognises the question."""
    return {name: value for name, value in asked.items() if value not in (None, False)}


def _charged(plan: Plan) -> Guarantee:
    """Return what is charged. What the plan takes on trust is recorded with the mechanism, not in the unit."""
    if not plan.mechanism.promise:
        return plan.guarantee
    return replace(plan.guarantee, neighbours=plan.guarantee.neighbours.partition(", if the promise holds")[0])


def _check_rebuilds(mechanism: Mechanism | Discovery) -> None:
    """Refuse a mechanism that cannot be rebuilt from its description, which is what a stored answer has."""
    if isinstance(mechanism, Discovery):
        return
    described = mechanism.describe()
    with contextlib.suppress(InvalidInput, TypeError, ValueError):
        if described_mechanism(json.loads(json.dumps(described))).describe() == described:
            return
    raise InvalidInput(
        "once", plain(f"a key with {mechanism.name}"), "needs a mechanism without functions of your own; leave once out"
    )


def _plan_of(plan: PlanType, entry: Entry) -> PlanType:
    """Return the plan that was charged under a key, which may be the reduced one of an earlier attempt."""
    reduced = entry.parameters.get(REDUCED)
    charged = plan if reduced is None else plan.with_budget(**reduced)
    if _charged(charged) != entry.guarantee:
        raise InvalidInput(
            "once",
            entry.once,
            "another version of dpselect charged this question with another guarantee, and stored no answer; choose "
            "another key",
        )
    return charged


def _within(plan: PlanType, refusal: BudgetExceeded) -> PlanType | None:
    """Return the request planned for the remaining budget; None if more than a rounding error is missing."""
    if plan.budget is None:
        return None
    delta = _share(refusal.requested_delta, refusal.remaining_delta)
    epsilon, most = _share(refusal.requested, refusal.remaining), refusal.remaining
    if refusal.requested_rho:
        # ρ falls at least as fast as ε. The factor 1 − 2⁻⁵⁰ covers the rounding of the parts of ρ.
        epsilon = _share(refusal.requested_rho, refusal.remaining_rho) * (1 - Fraction(1, 2**50))
        most = plan.guarantee.epsilon
    if min(epsilon, delta) < 1 - ROUNDING_ALLOWANCE:
        return None
    asked_epsilon, asked_delta = map(Fraction, plan.budget)
    with contextlib.suppress(InvalidInput):  # for example, the δ that naming needs cannot be made smaller
        return plan.with_budget(min(float_below(epsilon * asked_epsilon), most), float_below(delta * asked_delta))
    return None


def _share(requested: float, remaining: float) -> Fraction:
    """Return the share of a request that is left, at most 1."""
    return Fraction(1) if requested <= remaining else Fraction(remaining) / Fraction(requested)
