"""Broken twins of the ranking from comparisons."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

from dpselect.privacy import Sensitivity
from dpselect.ranking.bounds import Bounds
from dpselect.verify.broken.base import Broken
from dpselect.verify.domain import Domain
from dpselect.verify.ranking import Ranked, Units, comparisons_of


@dataclass(frozen=True, kw_only=True)
class BrokenRanking(Broken, ABC):
    """A ranking with one mistake: `twin` has it, and claims what `sound` claims."""

    places_are_items: ClassVar[bool] = False
    comparisons_per_pair: ClassVar[int] = 2

    @property
    @abstractmethod
    def twin(self) -> Any:
        """The ranking with the mistake."""

    @property
    def domain(self) -> Domain:
        return comparisons_of(3, 2)

    @property
    def sound(self) -> Ranked:
        return self.with_rank(Ranked)

    def with_rank(self, kind: type[Ranked], **more: Any) -> Ranked:
        """Return a ranking of that kind with the parameters of this one."""
        parameters = {"comparisons_per_pair": self.comparisons_per_pair, "max_degree": 2, "damping": 0.9, **more}
        return kind(k=self.k, epsilon=self.epsilon, **parameters)

    def law(self, scores: Any) -> dict[Any, float]:
        return dict(self.twin.law(scores))


class _WithPromise(Ranked):
    @property
    def bounds(self) -> Bounds:
        return replace(super().bounds, promised_rho=0.5)


@dataclass(frozen=True, kw_only=True)
class PromiseNotKept(BrokenRanking):
    """The published form with ρ = ½, on data that may fall apart: τ₁ is 1 there, and a vote moves a third of π."""

    name = "promise not kept"
    flaw = "noise for a walk with rho = 0.5, on data that have none"
    comparisons_per_pair = 8

    @property
    def twin(self) -> Ranked:
        return self.with_rank(_WithPromise)

    @property
    def domain(self) -> Domain:
        return comparisons_of(3, 1)


@dataclass(frozen=True, kw_only=True)
class VotesNotCapped(BrokenRanking):
    """Noise for one vote per person, where nobody makes sure that a person has but one."""

    name = "votes not capped"
    flaw = "people with several votes keep them all, the noise is for one"
    comparisons_per_pair = 8

    @property
    def twin(self) -> Ranked:
        return self.with_rank(Ranked)

    @property
    def sound(self) -> Ranked:
        return self.with_rank(Ranked, votes=3)

    @property
    def domain(self) -> Domain:
        return Domain(6, 1, Sensitivity(0, 3), items_per_person=1)


class _DenominatorFromTheData(Ranked):
    def kept(self, size: int, results: Sequence[Units]) -> dict[Units, Fraction]:
        """Return shares of wins in place of numbers of them: y_ij by the comparisons that the pair has."""
        most = self.comparisons_per_pair
        law: dict[Units, Fraction] = {}
        for units, chance in super().kept(size, results).items():
            pairs = [units[start : start + 2] for start in range(0, len(units), 2)]
            shares = [2 * most * part // max(sum(pair), 1) for pair in pairs for part in pair]
            law[tuple(shares)] = law.get(tuple(shares), Fraction(0)) + chance
        return law


@dataclass(frozen=True, kw_only=True)
class DenominatorFromTheData(BrokenRanking):
    """Shares of the comparisons that a pair happens to have: with one of them a single vote is worth L."""

    name = "denominator from the data"
    flaw = "wins are divided by the comparisons that a pair has, not by L"
    comparisons_per_pair = 4

    @property
    def twin(self) -> Ranked:
        return self.with_rank(_DenominatorFromTheData)

    @property
    def domain(self) -> Domain:
        return comparisons_of(3, 1)


class _ErrorNotAdded(Ranked):
    def scores(self, size: int, units: Units) -> list[float]:
        return [round(score, 1) for score in super().scores(size, units)]


@dataclass(frozen=True, kw_only=True)
class ErrorNotAdded(BrokenRanking):
    """Scores with an error of up to 0.05, for which the sensitivity has no room."""

    name = "error not added"
    flaw = "scores are kept to one digit, the error is left out of the sensitivity"

    @property
    def twin(self) -> Ranked:
        return self.with_rank(_ErrorNotAdded)
