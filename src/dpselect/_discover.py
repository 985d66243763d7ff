"""discover(): publish which items exist, to be used as a public domain afterwards."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from dpselect._format import shown_cost
from dpselect._numbers import seed_or_none
from dpselect._printed import Printed, frame_of
from dpselect.charging import ChargeTarget
from dpselect.errors import InvalidInput
from dpselect.items import item_of, plain_item
from dpselect.mechanisms import Discovered, Discovery
from dpselect.periods import Period, protected_unit
from dpselect.privacy.guarantee import Guarantee
from dpselect.release import UNKNOWN, Release, StatedDomain
from dpselect.request import ReleasePlan, plain_argument
from dpselect.sampling import BitSource, bit_source
from dpselect.scores import Scores
from dpselect.sources import Contribution, PeriodFilter, Weights, fresh_key, open_weights, public_name

if TYPE_CHECKING:
    import pandas
    from rich.console import RenderableType

    from dpselect.ledger import Ledger


@dataclass(frozen=True)
class DomainRelease(Printed):
    """The items that exist, as far as they may be published, with the guarantee; everything in it may be published.

    `print` and notebooks show it as the table that the command line prints.

    Parameters
    ----------
    items
        The items, sorted by name.
    column
        The column that they are from.
    guarantee
        What the release costs.
    mechanism
        The `Discovery`, with its noise and threshold.
    secure
        False if a seed was given: whoever knows the seed can undo the noise, so the release protects nobody.
    period
        The day, week or month whose rows were read; None if all were.
    repeated
        Whether this is the stored answer to a question that was asked before under the same key (`once`).

    Examples
    --------
    >>> import dpselect as dps
    >>> import pandas
    >>> rows = pandas.DataFrame({"word": ["tea"] * 90 + ["ann's tea"], "user": range(91)})
    >>> found = dps.discover(
    ...     rows, item="word", person="user", epsilon=1.0, delta=1e-6, max_items_per_person=1, seed=1
    ... )
    >>> found.items, found.guarantee.epsilon
    (['tea'], 1.0)
    """

    items: list[Any]
    column: str
    guarantee: Guarantee
    mechanism: Discovery
    secure: bool
    period: str | None = None
    repeated: bool = field(default=False, compare=False)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> DomainRelease:
        """Return the release of the plain data that `to_dict` returned.

        Parameters
        ----------
        data
            The plain data. Items are as JSON holds them: a date is its text, for example.

        Returns
        -------
        A release whose `to_dict` returns the same data.
        """
        return cls(
            items=[item_of(item) for item in data["items"]],
            column=data["column"],
            guarantee=Guarantee(**data["guarantee"]),
            mechanism=Discovery.described(data["mechanism"]),
            secure=data["secure"],
            period=data.get("period"),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the release as plain data that json.dumps accepts."""
        return {
            "items": [plain_item(item) for item in self.items],
            "column": self.column,
            "mechanism": self.mechanism.describe(),
            "guarantee": self.guarantee.to_dict(),
            "secure": self.secure,
            **({} if self.period is None else {"period": self.period}),
        }

    def to_frame(self) -> pandas.DataFrame:
        """Return the items as a pandas DataFrame, in the column that they are from.

        Returns
        -------
        pandas.DataFrame
            One column, with the name `column`; `top` takes it as a domain.

        Raises
        ------
        InvalidInput
            If pandas is not installed.
        """
        return frame_of([{self.column: item} for item in self.items], [self.column])

    def __repr__(self) -> str:
        """Say in one line what was released, without the items."""
        insecure = "" if self.secure else ", not secure"
        found = f"{len(self.items):,} of column {self.column!r}"
        return f"<DomainRelease: {found}, {shown_cost(self.guarantee.epsilon, self.guarantee.delta)}{insecure}>"

    def _tables(self) -> list[RenderableType]:
        from dpselect._release_text import domain_tables

        return domain_tables(self)


@dataclass(frozen=True)
class DiscoveryPlan:
    """A discovery that is settled and not yet drawn."""

    mechanism: Discovery
    protects: str
    period: Period | None

    @property
    def guarantee(self) -> Guarantee:
        """What the release costs, with its unit of protection."""
        unit = self.protects if self.period is None else protected_unit(self.protects, self.period.unit)
        return replace(self.mechanism.guarantee, protects=unit)

    @property
    def budget(self) -> tuple[float, float]:
        """The epsilon and delta that were asked for."""
        return self.mechanism.epsilon, self.mechanism.delta

    def with_budget(self, epsilon: float, delta: float) -> DiscoveryPlan:
        """Return the plan of the same request for another epsilon and delta."""
        return replace(self, mechanism=replace(self.mechanism, epsilon=epsilon, delta=delta))

    def describe(self) -> dict[str, Any]:
        """Return the parameters of the release as plain data."""
        return {**self.mechanism.describe(), **({} if self.period is None else {"period": self.period.name})}

    def question(self) -> dict[str, Any]:
        """Return what identifies the request as plain data; noise and threshold follow from it."""
        asked = {**asdict(self.mechanism), "protects": self.protects}
        if self.period is not None:
            asked["period"] = self.period.name
        return {name: plain_argument(value) for name, value in asked.items()}

    def answer_of(self, data: Mapping[str, Any], *, repeated: bool = True) -> DomainRelease:
        """Return the release that a ledger stored as plain data."""
        return replace(DomainRelease.from_dict(data), repeated=repeated)


def discover(
    table: Any,
    *,
    item: str,
    person: str,
    epsilon: float,
    delta: float,
    max_items_per_person: int,
    at_least: int = 1,
    protects: str = "one person",
    seed: int | None = None,
    table_name: str | None = None,
    where: str | None = None,
    time: str | None = None,
    period: str | None = None,
    unfinished: bool = False,
    ledger: Ledger | str | os.PathLike[str] | None = None,
    dataset: str | Sequence[str] | None = None,
    purpose: str = "",
    once: str | None = None,
    progress: Callable[[float | None], None] | None = None,
) -> DomainRelease:
    """Publish which items exist, as far as enough people have them, without revealing any one person.

    The items may then be stated as the domain of any number of releases on the same rows. An item that few people have
    is listed with a very small probability, one that many have is listed almost surely (docs/discovery.md).

    Parameters
    ----------
    table, item, person, protects, seed, table_name, where, time, period, unfinished, progress
        As in `top`.
    epsilon, delta
        The cost of the release; delta must be above 0 and well below 1/n for n people.
    max_items_per_person
        Keep at most that many items of each person, chosen at random. A person's items count less the more there are:
        each of n items has the weight 1/√n.
    at_least
        List an item that fewer people have with a probability of at most one in a million. Their true number is never
        looked at, so an item with more people may be missing.
    ledger, dataset, purpose, once
        As in `select`; the release is charged before any row is read.

    Returns
    -------
    DomainRelease
        The items, sorted by name, and the guarantee.

    Raises
    ------
    InvalidInput, BudgetExceeded, SourceError
        As in `top`.

    Examples
    --------
    >>> import dpselect as dps
    >>> import pandas
    >>> rows = pandas.DataFrame({"word": ["tea", "rum"] * 80 + ["ann's rum"], "user": range(161)})
    >>> question = {"item": "word", "person": "user", "epsilon": 1.0, "seed": 1}
    >>> words = dps.discover(rows, **question, delta=1e-6, max_items_per_person=3).items
    >>> words
    ['rum', 'tea']
    >>> dps.top(rows, **question, k=1, domain=words).k
    1
    """
    during = PeriodFilter.of(time, period, unfinished=unfinished)
    mechanism = Discovery(epsilon=epsilon, delta=delta, max_items_per_person=max_items_per_person, at_least=at_least)
    if not (isinstance(protects, str) and protects.strip() and protects.isprintable()):
        raise InvalidInput("protects", protects, "must be the unit of protection, such as 'one person'")
    plan = DiscoveryPlan(mechanism, protects, None if during is None else during.period)
    name = None if during is None else during.period.name
    target = ChargeTarget.of(ledger, dataset, purpose, once, seed=seed, period=name)
    bits = bit_source(seed_or_none(seed))
    with open_weights(
        table,
        item=item,
        person=person,
        max_items_per_person=mechanism.max_items_per_person,
        units=mechanism.units,
        key=fresh_key(bits),
        table_name=table_name,
        where=where,
        during=during,
        progress=progress,
    ) as weights:
        # Everything that needs no row is checked, and no row is read yet.
        charge = target.charge(
            plan,
            secure=bits.secure,
            asked=lambda: {
                "command": "discover",
                "table": public_name(table, table_name),
                "item": item,
                "person": person,
                "where": where,
                "time": time,
                "unfinished": unfinished,
            },
        )
        if charge.stored is not None:
            return plan.answer_of(charge.stored)
        plan = charge.plan
        listed = _listed(plan.mechanism, weights, bits)
    items = [each for each, _ in listed]
    return charge.published(DomainRelease(items, item, plan.guarantee, plan.mechanism, bits.secure, name))


def _listed(mechanism: Discovery, weights: Weights, bits: BitSource) -> list[tuple[Any, int]]:
    """Return the items that the discovery lists, sorted by name, each with the number of people who kept it.

    The order depends on nothing but the items.
    """
    members = mechanism.draw(Scores(None, weights.histogram(), int), bits)
    listed = weights.fetch(members.values, members.indexes)
    try:
        return sorted(listed, key=lambda pair: pair[0])
    except TypeError:
        return sorted(listed, key=lambda pair: str(pair[0]))


def top_of_discovered(
    plan: ReleasePlan,
    target: ChargeTarget,
    contribution: Contribution,
    bits: BitSource,
    table: Any,
    *,
    item: str,
    person: str,
    table_name: str | None,
    where: str | None,
    during: PeriodFilter | None,
    progress: Callable[[float | None], None] | None,
) -> Release:
    """Return the release of `top` on an unknown domain whose items are discovered first."""
    if not contribution.counts:
        raise InvalidInput("mechanism", Discovered.name, "must be another one with value or weight: it counts people")
    mechanism = plan.mechanism
    assert isinstance(mechanism, Discovered)
    asked: dict[str, Any] = {"command": "top", "table": public_name(table, table_name), "item": item, "person": person}
    asked["where"] = where
    if during is not None:
        asked |= {"time": during.column, "unfinished": during.unfinished}
    with open_weights(
        table,
        item=item,
        person=person,
        max_items_per_person=mechanism.max_items_per_person,
        units=mechanism.discovery.units,
        key=fresh_key(bits),
        table_name=table_name,
        where=where,
        during=during,
        progress=progress,
    ) as weights:
        charge = target.charge(plan, secure=bits.secure, asked=lambda: {**asked, "domain": UNKNOWN})
        if charge.stored is not None:
            return charge.plan.answer_of(charge.stored)
        mechanism = charge.plan.mechanism
        assert isinstance(mechanism, Discovered)
        listed = _listed(mechanism.discovery, weights, bits)
    counts = np.array([people for _, people in listed], dtype=np.int64)
    chosen = mechanism.choose(counts, bits)
    items = [listed[place][0] for place in chosen.tolist()]
    return charge.published(charge.plan.release(items, counts[chosen], bits, StatedDomain(None, UNKNOWN)))
