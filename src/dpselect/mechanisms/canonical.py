"""The canonical mechanism: a k-subset in one draw."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import Any, ClassVar

import numpy as np

from dpselect._numbers import finite_number
from dpselect.errors import InvalidInput
from dpselect.mechanisms.base import FARTHEST, Law, Mechanism, check_noise, in_random_order
from dpselect.mechanisms.canonical_blocks import Geometry, SubsetBlocks
from dpselect.mechanisms.class_law import winner_law
from dpselect.mechanisms.classes import Classes, classes_of
from dpselect.mechanisms.ranking import Ranking
from dpselect.sampling import NOISES, BitSource
from dpselect.sampling.race import race
from dpselect.sampling.sequences import whole_numbers
from dpselect.scores import Members, Scores


@dataclass(frozen=True, kw_only=True)
class Canonical(Mechanism):
    """Every k-subset y competes with `−ε · loss(y) / w + noise`, and the largest wins.

    `loss(y) = (1 − γ) · max_{j ∉ y} x_j − γ · min_{j ∈ y} x_j` moves within a window of width w when a person is
    added, the same window for every y. Gumbel noise gives the exponential mechanism over subsets, exponential noise
    permute-and-flip, which is never worse. margin=False uses x_[k] in place of x_[k+1] in the loss of the top set, as
    published: it forgoes the gap behind rank k. Canonical, section 3; mathematics, section 3; proof in canonical.md.
    """

    name: ClassVar[str] = "canonical"

    gamma: float = 0.5
    noise: str = "exponential"
    margin: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_noise(self.noise, ("exponential", "gumbel"))
        object.__setattr__(self, "gamma", float(finite_number("gamma", self.gamma)))
        if not 0 <= self.gamma <= 1:
            raise InvalidInput("gamma", self.gamma, "a number from 0 to 1 is needed")
        if not isinstance(self.margin, bool):
            raise InvalidInput("margin", self.margin, "True or False is needed")

    @property
    def ordered(self) -> bool:
        """A set: its order is random."""
        return False

    def draw(self, scores: Scores, bits: BitSource) -> Members:
        """Return the chosen set, in uniformly random order."""
        self.check_size(scores.size)
        ranking = Ranking.of(scores.distinct)
        ranks = np.arange(self.k)
        if scores.size > self.k:
            winner: Any = race(SubsetBlocks(self.geometry(ranking)), NOISES[self.noise], bits).key
            if winner is not None:
                held, further = winner
                ranks = whole_numbers([*range(held), *further])
        return ranking.members(in_random_order(ranks, bits))

    def geometry(self, ranking: Ranking) -> Geometry:
        """Return where all subsets stand."""
        rate, gamma = self.exact_rate(), Fraction(self.gamma)
        return Geometry(ranking, self.k, (1 - gamma) * rate, gamma * rate, self.k if self.margin else self.k - 1)

    def classes(self, scores: Any) -> Classes:
        """Return every (head, tail) class with its size and probability, without sampling; not private."""
        return classes_of(self, scores)

    def law(self, scores: Any) -> Law:
        """Return the probability of every k-subset."""
        table = self.small_domain(scores)
        values = table.exact()
        subsets = [frozenset(subset) for subset in combinations(range(table.size), self.k)]
        losses = [self._loss(values, subset) for subset in subsets]
        locations = [float(max(self.exact_rate() * (min(losses) - loss), -FARTHEST)) for loss in losses]
        return dict(zip(subsets, winner_law(locations, self.noise).tolist(), strict=True))

    def _loss(self, values: list[Fraction], subset: frozenset[int]) -> Fraction:
        """Return the loss of one subset, straight from its definition."""
        inside = min(values[item] for item in subset)
        outside = [values[item] for item in range(len(values)) if item not in subset]
        if not outside:
            return Fraction(0)
        gamma = Fraction(self.gamma)
        missing = max(outside)
        if not self.margin and missing <= inside:
            missing = inside
        return (1 - gamma) * missing - gamma * inside
