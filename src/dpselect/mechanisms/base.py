"""What every mechanism is: a frozen value that states its guarantee before it sees any data."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from fractions import Fraction
from math import comb, perm
from typing import Any, ClassVar

import numpy as np

from dpselect._arrays import Array
from dpselect._numbers import positive_integer, positive_number, seed_or_none
from dpselect.errors import InvalidInput, plain
from dpselect.privacy.guarantee import Guarantee
from dpselect.privacy.sensitivity import COUNTS, Sensitivity
from dpselect.sampling import NOISES, BitSource, bit_source, shuffled, uniform_sequence
from dpselect.scores import Grouping, Members, Scores

Law = dict[Any, float]
"""Probability of each outcome: a frozenset of positions, or a tuple where the order counts."""

LARGEST_LAW = 10_000
"""Outcomes that `law` is willing to enumerate."""

FARTHEST = Fraction(10**300)
"""Locations farther down than this are cut: their probability is zero in float64 either way."""

SCALE_RANGE = 1e250
"""Noise scales beyond this, either way, leave the range in which float64 bounds are proven."""


@dataclass(frozen=True, kw_only=True)
class Mechanism(ABC):
    """A private choice of k items; `epsilon` is the total that one release costs."""

    name: ClassVar[str]
    may_stop: ClassVar[bool] = False
    """Whether an answer may have fewer than k items."""

    k: int
    epsilon: float
    sensitivity: Sensitivity = COUNTS

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", positive_integer("k", self.k))
        object.__setattr__(self, "epsilon", positive_number("epsilon", self.epsilon))
        if not isinstance(self.sensitivity, Sensitivity):
            raise InvalidInput(
                "sensitivity",
                self.sensitivity,
                "dpselect.COUNTS or dpselect.Sensitivity(low, high) is needed: a bare number does not say "
                "whether scores can move both ways",
            )
        rate = Fraction(self.epsilon) / (self.k * Fraction(self.sensitivity.spread))
        if not Fraction(1) / Fraction(SCALE_RANGE) <= rate <= Fraction(SCALE_RANGE):
            raise InvalidInput("epsilon", self.epsilon, "epsilon / (k * spread) must lie between 1e-250 and 1e250")

    @property
    @abstractmethod
    def ordered(self) -> bool:
        """Whether the order of the answer is part of the private output."""

    @property
    def guarantee(self) -> Guarantee:
        """What a release promises, whatever the data."""
        return Guarantee(epsilon=self.epsilon)

    @abstractmethod
    def draw(self, scores: Scores, bits: BitSource) -> Members:
        """Return the chosen members: a sequence in its private order, a set in uniformly random order."""

    @abstractmethod
    def law(self, scores: Any) -> Law:
        """Return the probability of every outcome, for small domains."""

    def select(self, scores: Any, *, seed: int | None = None) -> Array:
        """Return the positions of the chosen items: k of them, unless the mechanism may stop before."""
        scores = self.table(scores)
        self.check_size(scores.size)
        return self.draw(scores, bit_source(seed_or_none(seed))).positions()

    def table(self, scores: Any) -> Scores:
        """Return what was given as scores of this mechanism's domain."""
        return Scores.of(scores)

    def describe(self) -> dict[str, Any]:
        """Return the name and all parameters as plain data."""
        return {"name": self.name, **asdict(self)}

    def check_size(self, size: int) -> None:
        """Refuse a domain with fewer than k items; its size is public."""
        if size < self.k:
            raise InvalidInput("k", self.k, f"a number from 1 to {size}, the number of items, is needed")

    def exact_rate(self) -> Fraction:
        """ε/w, the factor that turns a difference of scores into privacy loss."""
        return Fraction(self.epsilon) / Fraction(self.sensitivity.spread)

    def small_domain(self, scores: Any) -> Scores:
        """Return the scores if every outcome can be enumerated."""
        table = Scores.of(scores)
        self.check_size(table.size)
        few = table.size <= LARGEST_LAW and (self.k <= 20 or table.size <= 40)
        if not few or (perm if self.ordered else comb)(table.size, self.k) > LARGEST_LAW:
            raise InvalidInput(
                "scores",
                plain(f"k = {self.k} of {table.size} items"),
                f"law lists every outcome, at most {LARGEST_LAW}: fewer items or a smaller k is needed",
            )
        return table


def check_noise(given: str, accepted: Iterable[str]) -> None:
    """Refuse a noise that a mechanism does not have."""
    names = list(accepted)
    if given not in names or given not in NOISES:
        raise InvalidInput("noise", given, "one of " + ", ".join(names) + " is needed")


def scaled_locations(scores: Scores, rate: Fraction) -> list[float]:
    """Return rate · score for each item of a small domain, relative to the highest.

    Differences are formed exactly, so that large scores lose nothing.
    """
    values = scores.exact()
    highest = max(values)
    return [float(max(rate * (value - highest), -FARTHEST)) for value in values]


def spread_over_members(grouping: Grouping, groups: Array, bits: BitSource) -> Members:
    """Give each win of a tied group to one of its members, uniformly and without replacement.

    Equal scores make items exchangeable, so this completes the law of a draw that only decided how often
    each group wins.
    """
    indexes = np.zeros(len(groups), dtype=np.int64)
    if grouping.multiplicities is None:
        return grouping.members(groups, indexes)
    sizes = grouping.multiplicities[groups]
    if sizes.dtype == object:
        indexes = indexes.astype(object)
    for group in np.unique(groups[sizes > 1]):
        places = np.flatnonzero(groups == group)
        indexes[places] = uniform_sequence(int(grouping.multiplicities[group]), len(places), bits)
    return grouping.members(groups, indexes)


def in_random_order(groups: Array, bits: BitSource) -> Array:
    """Shuffle winners, so that the order of a set says nothing."""
    return groups[shuffled(len(groups), bits)]
