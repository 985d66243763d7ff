"""The base class of mechanisms: a frozen value that states its guarantee before it sees any data."""

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
"""Probability of each outcome: a frozenset of positions, or a tuple if the order is part of the outcome."""

LARGEST_LAW = 10_000
"""Maximum number of outcomes that `law` enumerates."""

FARTHEST = Fraction(10**300)
"""Locations below −FARTHEST are cut there: their probability is zero in float64."""

SCALE_RANGE = 1e250
"""Noise scales must lie between 1/SCALE_RANGE and SCALE_RANGE, where the float64 bounds are proven."""


@dataclass(frozen=True, kw_only=True)
class Mechanism(ABC):
    """A private choice of k items: the base class of all mechanisms.

    Mechanisms are frozen dataclasses with keyword arguments.

    Parameters
    ----------
    k
        How many items to choose.
    epsilon
        The total privacy cost of one release.
    sensitivity
        How far one person can move each score; COUNTS if each person counts at most once per item.

    Raises
    ------
    InvalidInput
        If an argument is out of range.

    Examples
    --------
    >>> import dpselect as dps
    >>> mechanism: Mechanism = dps.OneShot(k=2, epsilon=1.0)
    >>> mechanism.guarantee.epsilon, mechanism.ordered
    (1.0, False)
    >>> sorted(mechanism.select([900, 5, 700], seed=1).tolist())
    [0, 2]
    """

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
                "must be dpselect.COUNTS or dpselect.Sensitivity(low, high); a number does not say whether scores can "
                "move both ways",
            )
        rate = Fraction(self.epsilon) / (self.k * Fraction(self.sensitivity.spread))
        if not Fraction(1) / Fraction(SCALE_RANGE) <= rate <= Fraction(SCALE_RANGE):
            raise InvalidInput("epsilon", self.epsilon, "must be such that epsilon / (k * spread) is in 1e-250..1e250")

    @property
    @abstractmethod
    def ordered(self) -> bool:
        """Whether the order of the answer is part of the private output."""

    @property
    def guarantee(self) -> Guarantee:
        """The privacy guarantee of a release, whatever the data."""
        return Guarantee(epsilon=self.epsilon)

    @property
    def promise(self) -> str:
        """What the guarantee takes on trust from the caller, such as "F is 1-Lipschitz"; empty if nothing."""
        return ""

    @property
    def exact(self) -> bool:
        """Whether draws follow the stated law exactly; if not, a release is not secure and no ledger takes it."""
        return True

    @abstractmethod
    def draw(self, scores: Scores, bits: BitSource) -> Members:
        """Return the chosen items: a sequence in its private order, a set in uniformly random order."""

    def law(self, scores: Any) -> Law:
        """Return the probability of every outcome, for small domains.

        Parameters
        ----------
        scores
            Scores as for `select`.

        Returns
        -------
        dict
            Probabilities by outcome: a frozenset of positions, or a tuple if `ordered`.

        Raises
        ------
        InvalidInput
            If there are more than 10,000 outcomes, or the mechanism cannot state its law.
        """
        raise InvalidInput("mechanism", self.name, "must be one that states its law")

    def select(self, scores: Any, *, seed: int | None = None) -> Array:
        """Return the positions of the chosen items: k of them, or fewer if `may_stop`.

        Parameters
        ----------
        scores
            A mapping item → score, a Series, an array or list, or `Scores`.
        seed
            A whole number for reproducible draws, which are not secure; None for the operating system's randomness.
        """
        scores = self.table(scores)
        self.check_size(scores.size)
        return self.draw(scores, bit_source(seed_or_none(seed))).positions()

    def table(self, scores: Any) -> Scores:
        """Return `Scores` for scores in any accepted form."""
        return Scores.of(scores)

    def describe(self) -> dict[str, Any]:
        """Return the name and all parameters as plain data; a delta of 0 is left out."""
        parameters = {key: value for key, value in asdict(self).items() if key != "delta" or value}
        return {"name": self.name, **parameters, **({"promise": self.promise} if self.promise else {})}

    def check_size(self, size: int) -> None:
        """Raise InvalidInput for a domain with fewer than k items; its size is public."""
        if size < self.k:
            raise InvalidInput("k", self.k, f"must be at most {size} (the number of items)")

    def exact_rate(self) -> Fraction:
        """Return ε/w, the privacy loss per unit of score; w is the spread of the sensitivity."""
        return Fraction(self.epsilon) / Fraction(self.sensitivity.spread)

    def small_domain(self, scores: Any) -> Scores:
        """Return `Scores` if every outcome can be enumerated."""
        table = Scores.of(scores)
        self.check_size(table.size)
        few = table.size <= LARGEST_LAW and (self.k <= 20 or table.size <= 40)
        if not few or (perm if self.ordered else comb)(table.size, self.k) > LARGEST_LAW:
            raise InvalidInput(
                "scores",
                plain(f"k = {self.k} of {table.size} items"),
                f"must allow at most {LARGEST_LAW} outcomes for law; use fewer items or a smaller k",
            )
        return table


def check_noise(given: str, accepted: Iterable[str]) -> None:
    """Raise InvalidInput for a noise that a mechanism does not support."""
    names = list(accepted)
    if given not in names or given not in NOISES:
        raise InvalidInput("noise", given, "must be one of " + ", ".join(names))


def check_margin(given: Any) -> None:
    """Raise InvalidInput for a margin that is neither True nor False."""
    if not isinstance(given, bool):
        raise InvalidInput("margin", given, "must be True or False")


def check_agreement(argument: str, given: Any, stated: Any, owner: str) -> None:
    """Raise InvalidInput if an argument is given and differs from what a mechanism object states."""
    if given is not None and given != stated:
        raise InvalidInput(argument, given, f"must be {stated}, as the {owner} states; leave it out or make them agree")


def scaled_locations(scores: Scores, rate: Fraction) -> list[float]:
    """Return rate · (score − highest score) for each item of a small domain, computed exactly and then rounded."""
    values = scores.exact()
    highest = max(values)
    return [float(max(rate * (value - highest), -FARTHEST)) for value in values]


def spread_over_members(grouping: Grouping, groups: Array, bits: BitSource) -> Members:
    """Assign each win of a tied group to one of its members, uniformly and without replacement.

    Items with equal scores are exchangeable, so this completes a draw that only decided how often each group wins.
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
    """Return the winners shuffled, so that the order of a set carries no information."""
    return groups[shuffled(len(groups), bits)]
