"""discover(): publish which items exist, to be used as a public domain afterwards."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from dpselect._numbers import seed_or_none
from dpselect.charging import ChargeTarget
from dpselect.errors import InvalidInput
from dpselect.items import plain_item
from dpselect.mechanisms import Discovery
from dpselect.privacy.guarantee import Guarantee
from dpselect.sampling import bit_source
from dpselect.scores import Scores
from dpselect.sources import fresh_key, open_weights

if TYPE_CHECKING:
    from dpselect.ledger import Ledger


@dataclass(frozen=True)
class DomainRelease:
    """The items that exist, as far as they may be published, with the guarantee; everything in it may be published.

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

    def to_dict(self) -> dict[str, Any]:
        """Return the release as plain data that json.dumps accepts."""
        return {
            "items": [plain_item(item) for item in self.items],
            "column": self.column,
            "mechanism": self.mechanism.describe(),
            "guarantee": self.guarantee.to_dict(),
            "secure": self.secure,
        }


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
    ledger: Ledger | str | os.PathLike[str] | None = None,
    dataset: str | None = None,
    purpose: str = "",
    progress: Callable[[float | None], None] | None = None,
) -> DomainRelease:
    """Publish which items exist, as far as enough people have them, without revealing any one person.

    The items may then be stated as the domain of any number of releases on the same rows. An item that few people have
    is listed with a very small probability, one that many have is listed almost surely (docs/discovery.md).

    Parameters
    ----------
    table, item, person, protects, seed, table_name, where, progress
        As in `top`.
    epsilon, delta
        The cost of the release; delta must be above 0 and well below 1/n for n people.
    max_items_per_person
        Keep at most that many items of each person, chosen at random. A person's items count less the more there are:
        each of n items has the weight 1/√n.
    at_least
        List an item that fewer people have with a probability of at most one in a million. Their true number is never
        looked at, so an item with more people may be missing.
    ledger, dataset, purpose
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
    mechanism = Discovery(epsilon=epsilon, delta=delta, max_items_per_person=max_items_per_person, at_least=at_least)
    if not (isinstance(protects, str) and protects.strip() and protects.isprintable()):
        raise InvalidInput("protects", protects, "must be the unit of protection, such as 'one person'")
    guarantee = replace(mechanism.guarantee, protects=protects)
    target = ChargeTarget.of(ledger, dataset, purpose)
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
        progress=progress,
    ) as weights:
        # Everything that needs no row is checked, and no row is read yet.
        if target.ledger is not None:
            target.record(guarantee, mechanism.describe(), secure=bits.secure)
        members = mechanism.draw(Scores(None, weights.histogram(), int), bits)
        items = weights.fetch(members.values, members.indexes)
    return DomainRelease(_by_name(items), item, guarantee, mechanism, bits.secure)


def _by_name(items: list[Any]) -> list[Any]:
    """Return items in an order that depends on nothing but themselves."""
    try:
        return sorted(items)
    except TypeError:
        return sorted(items, key=str)
