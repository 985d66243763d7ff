"""Discovered: discover which items exist, and choose k of them; for people with few items and large k."""

from __future__ import annotations

from dataclasses import InitVar, dataclass, replace
from fractions import Fraction
from math import isclose
from typing import Any, ClassVar

import numpy as np

from dpselect._arrays import Array
from dpselect._numbers import exact_array, float_below, positive_integer, positive_number
from dpselect.errors import InvalidInput, plain
from dpselect.mechanisms.base import LARGEST_LAW, Law, Mechanism, check_agreement
from dpselect.mechanisms.discovery import Discovery
from dpselect.mechanisms.unknown import UnknownDomain, positive_delta, total
from dpselect.privacy.guarantee import Guarantee
from dpselect.privacy.sensitivity import COUNTS, Sensitivity
from dpselect.sampling import BitSource
from dpselect.scores import Members, Scores

FOR_DISCOVERY = 0.5
"""The share of ε for the discovery, unless stated (docs/discovery.md)."""


@dataclass(frozen=True, kw_only=True)
class Discovered(UnknownDomain):
    """A mechanism for unknown domains in two steps: `discovery` lists items, and `inner` chooses k of the listed ones.

    If fewer than k items are listed, all of them are the answer. The guarantee is the sum of both. Counts only.

    In `top` the weights are those of the rows: 1/√n for a person with n items. `select` does not know n, so everybody
    is taken to have `max_items_per_person` items, which is valid but finds less. Proof in discovered.md.

    Parameters
    ----------
    inner
        A mechanism for known domains, with the sensitivity of counts.
    discovery
        The `Discovery`. **The caller must enforce** its max_items_per_person, as `top` does.
    k, epsilon, sensitivity
        They follow from `inner` and `discovery` (epsilon is the sum); if given, they must agree.

    Raises
    ------
    InvalidInput
        If an argument is out of range, or the two do not agree.

    Examples
    --------
    >>> import dpselect as dps
    >>> found = dps.Discovery(epsilon=0.5, delta=1e-6, max_items_per_person=1)
    >>> mechanism = dps.Discovered(inner=dps.Canonical(k=2, epsilon=0.5), discovery=found)
    >>> mechanism.guarantee.epsilon, mechanism.guarantee.delta
    (1.0, 1e-06)
    >>> sorted(mechanism.select({"tea": 900, "coffee": 700, "milk": 1}, seed=1).tolist())
    [0, 1]
    """

    name: ClassVar[str] = "discovered"

    k: InitVar[int | None] = None
    epsilon: InitVar[float | None] = None
    sensitivity: InitVar[Sensitivity | None] = None
    inner: Mechanism
    discovery: Discovery

    def __post_init__(self, k: int | None, epsilon: float | None, sensitivity: Sensitivity | None) -> None:
        if not isinstance(self.inner, Mechanism) or isinstance(self.inner, UnknownDomain):
            raise InvalidInput("inner", self.inner, "must be a mechanism for known domains, such as Canonical or Joint")
        if not isinstance(self.discovery, Discovery):
            raise InvalidInput("discovery", self.discovery, "must be a Discovery")
        if self.inner.sensitivity != COUNTS:
            raise InvalidInput("sensitivity", self.inner.sensitivity, "must be COUNTS; a discovery only counts people")
        object.__setattr__(self, "k", self.inner.k)
        object.__setattr__(self, "sensitivity", self.inner.sensitivity)
        object.__setattr__(self, "epsilon", self.guarantee.epsilon)
        limit = getattr(self.inner, "max_items_per_person", None)
        check_agreement("max_items_per_person", limit, self.max_items_per_person, "discovery")
        check_agreement("k", k, self.inner.k, "inner mechanism")
        check_agreement("sensitivity", sensitivity, self.inner.sensitivity, "inner mechanism")
        stated = self.guarantee.epsilon
        if epsilon is not None and not isclose(positive_number("epsilon", epsilon), stated, rel_tol=1e-12):
            raise InvalidInput(
                "epsilon", epsilon, f"must be {stated:g} (the sum of those of inner and discovery); leave it out"
            )

    @property
    def ordered(self) -> bool:
        """Whether the answer of the inner mechanism is a sequence."""
        return self.inner.ordered

    @property
    def guarantee(self) -> Guarantee:
        """The sum of the costs of the discovery and the choice."""
        parts = self.discovery.guarantee, self.inner.guarantee
        return Guarantee(total(*(part.epsilon for part in parts)), total(*(part.delta for part in parts)))

    @property
    def promise(self) -> str:
        """What the guarantee of the inner mechanism takes on trust."""
        return self.inner.promise

    @property
    def exact(self) -> bool:
        """Whether the inner mechanism draws exactly; the discovery does."""
        return self.inner.exact

    @property
    def max_items_per_person(self) -> int:
        """The maximum number of items per person, on which the discovery rests."""
        return self.discovery.max_items_per_person

    def describe(self) -> dict[str, Any]:
        """Return the name and all parameters as plain data."""
        inner = self.inner.describe()
        return {
            "name": self.name,
            "k": self.inner.k,
            "epsilon": self.guarantee.epsilon,
            "sensitivity": inner["sensitivity"],
            "inner": inner,
            "discovery": self.discovery.describe(),
            **({"promise": self.promise} if self.promise else {}),
        }

    def weights(self, counts: Scores) -> Scores:
        """Return the weights, in units, of items with these counts if everybody has as many items as allowed."""
        least = self.discovery.weight(self.max_items_per_person)
        weights = exact_array("scores", [max(int(count), 0) * least for count in counts.values.tolist()])
        return Scores(None, (weights, counts.multiplicities), int)

    def choose(self, counts: Array, bits: BitSource) -> Array:
        """Return the places of the answer among listed items with these counts, fewer than k if there are fewer."""
        if not len(counts):
            return np.zeros(0, dtype=np.int64)
        return self._for(len(counts)).draw(Scores.of(counts), bits).positions()

    def _for(self, listed: int) -> Mechanism:
        """Return the inner mechanism for a number of listed items."""
        return self.inner if listed >= self.inner.k else replace(self.inner, k=listed)

    def draw(self, scores: Scores, bits: BitSource) -> Members:
        """Return the answer for all counts."""
        listed = self.discovery.draw(self.weights(scores), bits)
        counts = scores.distinct.values[listed.groups]
        chosen = self.choose(counts, bits)
        return scores.distinct.members(listed.groups[chosen], listed.indexes[chosen])

    def law(self, scores: Any) -> Law:
        """Return the probability of every outcome: the law of the listed items, then that of the choice among them."""
        table = self.table(scores)
        if table.size > 13 or 2**table.size > LARGEST_LAW:
            raise InvalidInput("scores", plain(f"{table.size} items"), "must be at most 13 items for law")
        counts = table.exact()
        least = self.discovery.weight(self.max_items_per_person)
        law: Law = {}
        for listed, probability in self.discovery.law([max(int(count), 0) * least for count in counts]).items():
            places = sorted(listed)
            chosen = self._for(len(places)).law([counts[place] for place in places]) if places else {frozenset(): 1.0}
            for ranks, conditional in chosen.items():
                kind = tuple if self.ordered else frozenset
                outcome = kind(places[rank] for rank in ranks)
                law[outcome] = law.get(outcome, 0.0) + probability * conditional
        return law


def discovered_for(
    *,
    k: int,
    epsilon: float,
    delta: float,
    sensitivity: Sensitivity = COUNTS,
    pool: int | None = None,
    max_items_per_person: int | None = None,
    ordered: bool = False,
    discovery_share: float = FOR_DISCOVERY,
) -> Discovered:
    """Return the mechanism for the name "discovered", from public facts alone.

    The discovery gets `discovery_share` of ε. The choice is what "auto" takes for a known domain, with the rest of ε
    and half of δ; the discovery gets the δ that it does not use.
    """
    from dpselect.mechanisms.registry import mechanism_for  # the registry in turn names this module

    if pool is not None:
        raise InvalidInput("pool", pool, "must be left out with the mechanism discovered, which considers every item")
    if max_items_per_person is None:
        raise InvalidInput(
            "max_items_per_person", None, "must be a whole number with the mechanism discovered; or use restricted"
        )
    epsilon, delta = positive_number("epsilon", epsilon), positive_delta("delta", delta)
    most, share = positive_integer("max_items_per_person", max_items_per_person), discovery_share
    part = positive_number("discovery_share", share)
    if part >= 1:
        raise InvalidInput("discovery_share", share, "must be above 0 and below 1: the share of epsilon for discovery")
    for_discovery = float_below(Fraction(epsilon) * Fraction(part))
    inner = mechanism_for(
        "auto",
        k=k,
        epsilon=float_below(Fraction(epsilon) - Fraction(for_discovery)),
        delta=float_below(Fraction(delta) / 2),
        sensitivity=sensitivity,
        ordered=ordered,
        max_items_per_person=most,
    )
    left = float_below(Fraction(delta) - Fraction(inner.guarantee.delta))
    found = Discovery(epsilon=for_discovery, delta=left, max_items_per_person=most)
    return Discovered(inner=inner, discovery=found)
