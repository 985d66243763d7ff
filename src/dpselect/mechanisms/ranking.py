"""Scores by rank: the k highest one by one, the rest as runs of equal scores."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from dpselect.scores import Grouping, Members

Array = npt.NDArray[Any]


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
        value = self.grouping.values[int(self.groups(rank))]
        return Fraction(value.item()) if isinstance(value, np.generic) else Fraction(value)

    def members(self, ranks: Array) -> Members:
        """Return the items that hold the ranks."""
        groups = self.groups(ranks)
        starts = self.ends[groups] - self.grouping.multiplicities[groups]  # type: ignore[index]
        return self.grouping.members(groups, ranks - starts)


def scaled(differences: Array, rate: Fraction) -> npt.NDArray[np.float64]:
    """Return rate · difference in float64 with a relative error of a few units in the last place."""
    if differences.dtype == object:
        return np.array([_rounded(rate * Fraction(difference)) for difference in differences], dtype=np.float64)
    with np.errstate(over="ignore"):
        return np.asarray(differences * float(rate), dtype=np.float64)


def _rounded(exact: Fraction) -> float:
    try:
        return float(exact)
    except OverflowError:
        return np.inf if exact > 0 else -np.inf
