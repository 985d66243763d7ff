"""Broken twins of the mechanisms for unknown domains."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar

from dpselect.mechanisms import Canonical, Joint
from dpselect.mechanisms.base import Law
from dpselect.mechanisms.limited import LimitedDomain
from dpselect.mechanisms.restricted import Restricted
from dpselect.mechanisms.top_stable import TopStable
from dpselect.mechanisms.unknown import UnknownDomain
from dpselect.privacy import Guarantee
from dpselect.privacy.calibration import laplace_threshold
from dpselect.sampling.laws import threshold_probability
from dpselect.verify.broken.base import Broken
from dpselect.verify.broken.whole_noise import WholeNoise
from dpselect.verify.domain import Chosen, Domain


@dataclass(frozen=True, kw_only=True)
class BrokenUnknown(Broken, ABC):
    """A mechanism for unknown domains with one mistake: `twin` has it, and claims what `sound` claims.

    Scores of 0 are items that do not exist, so that neighbours in the box differ in which items there are.
    """

    may_stop: ClassVar[bool] = True
    noise: str = "laplace"

    @property
    @abstractmethod
    def twin(self) -> Any:
        """The mechanism with the mistake."""

    @property
    def ordered(self) -> bool:  # type: ignore[override]
        return bool(self.sound.ordered)

    @property
    def guarantee(self) -> Guarantee:
        return self.sound.guarantee

    def law(self, scores: Any) -> dict[Any, float]:
        return dict(self.twin.law(scores))


def _restricted(
    kind: type[Restricted], *, k: int, epsilon: float, pool: int, ordered: bool = False, delta: float = 0.05
) -> Restricted:
    """Return a restricted mechanism that spends a quarter of ε on the choice."""
    inner = (Joint if ordered else Canonical)(k=k, epsilon=epsilon / 4)
    return kind(inner=inner, pool=pool, test_epsilon=3 * epsilon / 4, test_delta=delta)


class _WithoutSpread(Restricted):
    def height(self) -> Fraction:
        return laplace_threshold(Fraction(self.test_delta))


@dataclass(frozen=True, kw_only=True)
class ThresholdWithoutSpread(BrokenUnknown):
    """`x_i − x_[pool+1]` in place of `x_i − x_[pool+1] − w`: an item that one person brought in passes too often."""

    name = "threshold without the spread"
    flaw = "the lead over the next score is not reduced by what one person can add"

    @property
    def twin(self) -> Restricted:
        return _restricted(_WithoutSpread, k=self.k, epsilon=self.epsilon, pool=2)

    @property
    def sound(self) -> Restricted:
        return _restricted(Restricted, k=self.k, epsilon=self.epsilon, pool=2)


class _FreshNoise(Restricted):
    def ranked_law(self, scores: tuple[Fraction, ...], named: int, following: Fraction) -> Law:
        rate, height = self.rate(), self.height()
        passes = [threshold_probability([float(rate * (score - following) - height)], []) for score in scores[:named]]
        passes += [0.0] * (len(scores) - named)
        law: Law = {}
        for chosen, probability in self.inner.law(list(scores)).items():
            for place, rank in enumerate(chosen):
                law[chosen[:place]] = law.get(chosen[:place], 0.0) + probability * (1 - passes[rank])
                probability *= passes[rank]
            law[chosen] = law.get(chosen, 0.0) + probability
        return {answer: probability for answer, probability in law.items() if probability}


@dataclass(frozen=True, kw_only=True)
class FreshThresholdNoise(BrokenUnknown):
    """A new noise of the threshold for each test, so that every item that is kept costs anew.

    It shows where several items are kept although each is unlikely to be: four that stand well below the threshold.
    """

    name = "fresh threshold noise"
    flaw = "the threshold gets new noise for each test"

    @property
    def domain(self) -> Domain:
        return Chosen(5, vectors=((14, 14, 14, 14, 0),))

    @property
    def twin(self) -> Restricted:
        return _restricted(_FreshNoise, k=4, epsilon=self.epsilon, pool=4, ordered=True, delta=1e-12)

    @property
    def sound(self) -> Restricted:
        return _restricted(Restricted, k=4, epsilon=self.epsilon, pool=4, ordered=True, delta=1e-12)


class _ByTrueScore(Restricted):
    def ranked_law(self, scores: tuple[Fraction, ...], named: int, following: Fraction) -> Law:
        rate, height = self.rate(), self.height()
        margins = [float(rate * (score - following) - height) for score in scores[:named]]
        margins += [-float("inf")] * (len(scores) - named)
        law: Law = {}
        for chosen, probability in self.inner.law(list(scores)).items():
            for walk, share in _walks_down(sorted(chosen, key=lambda rank: -scores[rank]), scores):
                for kept in range(len(walk) + 1):
                    passed = [margins[rank] for rank in walk[:kept]]
                    chance = threshold_probability(passed, [margins[rank] for rank in walk[kept : kept + 1]])
                    answer = frozenset(walk[:kept])
                    law[answer] = law.get(answer, 0.0) + probability * share * chance
        return {answer: probability for answer, probability in law.items() if probability}


def _walks_down(ranks: list[int], scores: tuple[Fraction, ...]) -> Iterator[tuple[list[int], float]]:
    """Yield the orders of two ranks by descending score; a tie may be broken either way."""
    if len(ranks) == 2 and scores[ranks[0]] == scores[ranks[1]]:
        yield ranks, 0.5
        yield ranks[::-1], 0.5
    else:
        yield ranks, 1.0


@dataclass(frozen=True, kw_only=True)
class WalkByTrueScore(BrokenUnknown):
    """A set that is gone through by true score: of two items only the better one can be kept alone."""

    name = "walk by true score"
    flaw = "the chosen set is tested in the order of the true scores"

    @property
    def twin(self) -> Restricted:
        return _restricted(_ByTrueScore, k=2, epsilon=self.epsilon, pool=2)

    @property
    def sound(self) -> Restricted:
        return _restricted(Restricted, k=2, epsilon=self.epsilon, pool=2)


class _PoolAtTheGap(Restricted):
    def law(self, scores: Any) -> Law:
        ranked = sorted(scores, reverse=True)
        sizes = range(self.inner.k, min(self.pool_size, len(ranked) - 1) + 1)
        size = max(sizes, key=lambda size: ranked[size - 1] - ranked[size])
        fixed = Restricted(inner=self.inner, pool=size, test_epsilon=self.test_epsilon, test_delta=self.test_delta)
        return fixed.law(scores)


@dataclass(frozen=True, kw_only=True)
class PoolFromTheData(BrokenUnknown):
    """The pool ends where the scores drop most, so that one person can change how many items compete."""

    name = "pool from the data"
    flaw = "the size of the pool is chosen by the largest gap between the scores"

    @property
    def twin(self) -> Restricted:
        return _restricted(_PoolAtTheGap, k=self.k, epsilon=self.epsilon, pool=3)

    @property
    def sound(self) -> Restricted:
        return _restricted(Restricted, k=self.k, epsilon=self.epsilon, pool=3)


@dataclass(frozen=True, kw_only=True)
class AtLeastForAbove(BrokenUnknown):
    """`>=` in place of `>`, where noise on whole numbers makes a difference: what is even with the threshold passes."""

    name = "at least for above"
    flaw = "a test on whole numbers passes at the threshold, not only above it"

    @property
    def twin(self) -> WholeNoise:
        return WholeNoise(epsilon=self.epsilon, passes_at_threshold=True)

    @property
    def sound(self) -> WholeNoise:
        return WholeNoise(epsilon=self.epsilon, passes_at_threshold=False)


class _DummyWithoutSpread(LimitedDomain):
    def lead(self) -> Fraction:
        return super().lead() - Fraction(self.sensitivity.spread)


@dataclass(frozen=True, kw_only=True)
class DummyWithoutSpread(BrokenUnknown):
    """The dummy of the limited domain at `x_[pool+1] + u` in place of `x_[pool+1] + w + u`."""

    name = "dummy without the spread"
    flaw = "the dummy stands lower by what one person can add to an item"
    noise: str = "gumbel"

    @property
    def twin(self) -> LimitedDomain:
        return _DummyWithoutSpread(k=self.k, epsilon=self.epsilon, delta=0.05, pool=1)

    @property
    def sound(self) -> LimitedDomain:
        return LimitedDomain(k=self.k, epsilon=self.epsilon, delta=0.05, pool=1)


class _GapBelow(TopStable):
    def ranked_law(self, scores: tuple[Fraction, ...], named: int, following: Fraction) -> Law:
        raise NotImplementedError

    def law(self, scores: Any) -> Law:
        return _law_of_gap_below(self, tuple(scores))


@lru_cache(maxsize=4096)
def _law_of_gap_below(mechanism: TopStable, scores: tuple[float, ...]) -> Law:
    """Return the law for k = pool = 1: the gap behind rank 2 is tested, and the first is answered."""
    ranked = sorted((Fraction(score) for score in scores), reverse=True)
    gap = max(ranked[1] - ranked[2], Fraction(mechanism.sensitivity.spread))
    passes = threshold_probability([float(mechanism.rate() * gap - mechanism.height())], [])
    best = [place for place, score in enumerate(scores) if score == ranked[0]]
    law: Law = {frozenset(): 1 - passes if ranked[0] > 0 else 1.0}
    if ranked[0] > 0:
        law.update((frozenset({place}), passes / len(best)) for place in best)
    return law


@dataclass(frozen=True, kw_only=True)
class GapOneRankTooFar(BrokenUnknown):
    """Top-stable as its authors' program has it: the gap behind rank i + 1 is tested, the top i are answered."""

    name = "gap one rank too far"
    flaw = "the gap behind the next rank is tested in place of the gap behind the answer"
    box = (3, 6)

    @property
    def twin(self) -> UnknownDomain:
        return _GapBelow(k=1, epsilon=self.epsilon, delta=0.05, pool=1)

    @property
    def sound(self) -> UnknownDomain:
        return TopStable(k=1, epsilon=self.epsilon, delta=0.05, pool=1)
