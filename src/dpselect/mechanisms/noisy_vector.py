"""Mechanisms that make the whole vector of noisy scores private, for data in which each person has few items."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from dpselect._numbers import positive_integer
from dpselect.errors import InvalidInput
from dpselect.mechanisms.base import SCALE_RANGE, Law, Mechanism, scaled_locations, spread_over_members
from dpselect.sampling import BitSource, Field, Noise, rounded_top_k, top_k
from dpselect.sampling.laws import sequence_law
from dpselect.scores import Members, Scores


@dataclass(frozen=True, kw_only=True)
class NoisyVector(Mechanism):
    """The k largest of `x_i + Z_i / rate`, in order: the base class of Laplace and Gaussian.

    The proofs of the subclasses cover the vector of all noisy scores, so that the order of the answer, and its noisy
    scores rounded to a public grid, are part of the same release at no further cost.
    """

    distribution: ClassVar[Noise]
    """The law of Z."""

    max_items_per_person: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.max_items_per_person is None:
            raise InvalidInput(
                "max_items_per_person",
                None,
                "must be a whole number of at least 1, because the noise depends on it; state how many items a person "
                "has at most, which top enforces and select takes as your promise",
            )
        object.__setattr__(
            self, "max_items_per_person", positive_integer("max_items_per_person", self.max_items_per_person)
        )
        if not 1 / SCALE_RANGE <= self.scale <= SCALE_RANGE:
            raise InvalidInput("sensitivity", self.sensitivity, "must be such that the noise is in 1e-250..1e250")

    @property
    @abstractmethod
    def scale(self) -> float:
        """The scale of the noise on each score, rounded up."""

    @abstractmethod
    def rate(self) -> Fraction:
        """Return the exact inverse of the scale."""

    @abstractmethod
    def tail(self, failure: Fraction) -> Fraction:
        """Return a distance that the noise of one score exceeds, upwards, with probability at most `failure` < ½."""

    @property
    def ordered(self) -> bool:
        """True: the noisy vector is private, and so is its order."""
        return True

    def draw(self, scores: Scores, bits: BitSource) -> Members:
        """Return the chosen sequence."""
        groups = top_k(self._field(scores), self.distribution, bits, ordered=True)
        return spread_over_members(scores.entries, groups, bits)

    def draw_rounded(self, scores: Scores, grid: Fraction, bits: BitSource) -> tuple[Members, list[int]]:
        """Return the chosen sequence and its noisy scores, rounded to the nearest multiple of `grid`, in steps."""
        groups, steps = rounded_top_k(self._field(scores), self.distribution, grid, bits)
        return spread_over_members(scores.entries, groups, bits), steps

    def _field(self, scores: Scores) -> Field:
        self.check_size(scores.size)
        return Field(scores.entries.values, self.rate(), scores.entries.multiplicities, winners=self.k)

    def law(self, scores: Any) -> Law:
        """Return the probability of every k-sequence, by numerical integration."""
        table = self.small_domain(scores)
        return dict(sequence_law(scaled_locations(table, self.rate()), self.k, self.distribution))
