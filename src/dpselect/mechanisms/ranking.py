"""Scores by rank: the k highest one by one, the rest as runs of equal scores."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from dpselect._arrays import Array, FloatArray
from dpselect.sampling.field import SATURATED
from dpselect.sampling.race import SLACK
from dpselect.scores import Grouping, Members


@dataclass(frozen=True)
class Ranking:
    """Scores in descending order. Ranks count from 0; equal scores hold consecutive ranks in a fixed order.

    `ends[g]` is the number of items in groups 0..g. Members of a group are exchangeable, so a law that depends on
    scores alone does not see which of them holds which rank.
    """

    grouping: Grouping
    ends: Array

    @classmethod
    def of(cls, grouping: Grouping) -> Ranking:
        """Return the ranking of a grouping by distinct scores."""
        assert grouping.multiplicities is not None
        return cls(grouping, np.cumsum(grouping.multiplicities))

    def groups(self, ranks: Any) -> Array:
        """Return the group of each rank."""
        found: Array = np.searchsorted(self.ends, ranks, side="right")
        return found

    def scores(self, ranks: Any) -> Array:
        """Return the score of each rank."""
        found: Array = self.grouping.values[self.groups(ranks)]
        return found

    def exact_score(self, rank: int) -> Fraction:
        """Return the score of one rank without error."""
        return exact(self.grouping.values[int(self.groups(rank))])

    def members(self, ranks: Array) -> Members:
        """Return the items that hold the ranks."""
        groups = self.groups(ranks)
        starts = self.ends[groups] - self.grouping.multiplicities[groups]  # type: ignore[index]
        return self.grouping.members(groups, ranks - starts)


def exact(value: Any) -> Fraction:
    """Return a score as the fraction of the same value."""
    return Fraction(value.item()) if isinstance(value, np.generic) else Fraction(value)


def scaled(differences: Array, rate: Fraction) -> FloatArray:
    """Return rate · difference in float64 with a relative error of a few units in the last place, cut at ±SATURATED."""
    if differences.dtype == object:
        return np.array([rounded(rate * exact(difference)) for difference in differences], dtype=np.float64)
    with np.errstate(over="ignore"):
        return np.clip(differences * float(rate), -SATURATED, SATURATED)


def rounded(number: Fraction) -> float:
    """Return a number as a float, cut at ±SATURATED."""
    if abs(number) >= SATURATED:
        return SATURATED if number > 0 else -SATURATED
    return float(number)


def location_bounds(near: FloatArray, far: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return floor and ceiling of locations whose penalties, as `scaled` gives them, lie between two values.

    A penalty that was cut is only known to be at least that large.
    """
    floor = np.where(far >= SATURATED, -np.inf, -far - SLACK * (1 + far))
    return floor, -near + SLACK * (1 + near)
