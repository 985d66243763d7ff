"""Broken twins of the mechanisms for unknown domains.

Scores of 0 are items that do not exist, so neighbours in the box differ in which items there are.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, ClassVar

import numpy as np

from dpselect._arrays import Array, FloatArray
from dpselect.mechanisms import Canonical, Joint
from dpselect.mechanisms.base import Law
from dpselect.mechanisms.limited import LimitedDomain
from dpselect.mechanisms.restricted import Restricted
from dpselect.mechanisms.top_stable import TopStable
from dpselect.privacy import COUNTS, Guarantee, Sensitivity
from dpselect.privacy.calibration import laplace_threshold
from dpselect.sampling.laws import threshold_probability
from dpselect.verify.boxes import KnownBox, UnshuffledBox, favouring_box
from dpselect.verify.broken.base import Twin, by_privacy
from dpselect.verify.domain import Chosen, Domain


class WithoutSpread(Restricted):
    """`x_i − x_[pool+1]` in place of `x_i − x_[pool+1] − w`: an item brought by one person passes too often."""

    def height(self) -> Fraction:
        return laplace_threshold(Fraction(self.test_delta))


class FreshNoise(Restricted):
    """New noise of the threshold for each test, so that every item that is kept costs again.

    It shows if several items are kept although each is unlikely to be: four well below the threshold.
    """

    def ranked_law(self, scores: tuple[Fraction, ...], named: int, following: Fraction) -> Law:
        passes = [
            threshold_probability([margin], []) if margin > -math.inf else 0.0
            for margin in _margins(self, scores, named, following)
        ]
        law: Law = {}
        for chosen, probability in self.inner.law(list(scores)).items():
            for place, rank in enumerate(chosen):
                law[chosen[:place]] = law.get(chosen[:place], 0.0) + probability * (1 - passes[rank])
                probability *= passes[rank]
            law[chosen] = law.get(chosen, 0.0) + probability
        return {answer: probability for answer, probability in law.items() if probability}


class ByTrueScore(Restricted):
    """A set that is tested by descending true score: of two items only the better one can be kept alone."""

    def ranked_law(self, scores: tuple[Fraction, ...], named: int, following: Fraction) -> Law:
        margins = _margins(self, scores, named, following)
        law: Law = {}
        for chosen, probability in self.inner.law(list(scores)).items():
            for walk, share in _walks_down(sorted(chosen, key=lambda rank: -scores[rank]), scores):
                for kept in range(len(walk) + 1):
                    passed = [margins[rank] for rank in walk[:kept]]
                    mass = threshold_probability(passed, [margins[rank] for rank in walk[kept : kept + 1]])
                    answer = frozenset(walk[:kept])
                    law[answer] = law.get(answer, 0.0) + probability * share * mass
        return {answer: probability for answer, probability in law.items() if probability}


def _margins(mechanism: Restricted, scores: tuple[Fraction, ...], named: int, following: Fraction) -> list[float]:
    """Return by how much each item is above the threshold, in units of noise; −∞ for items without a name."""
    rate, height = mechanism.rate(), mechanism.height()
    above = [float(rate * (score - following) - height) for score in scores[:named]]
    return above + [-math.inf] * (len(scores) - named)


def _walks_down(ranks: list[int], scores: tuple[Fraction, ...]) -> Iterator[tuple[list[int], float]]:
    """Yield the orders of one or two ranks by descending score; a tie may be broken either way."""
    if len(ranks) == 2 and scores[ranks[0]] == scores[ranks[1]]:
        yield ranks, 0.5
        yield ranks[::-1], 0.5
    else:
        yield ranks, 1.0


class PoolAtTheGap(Restricted):
    """The pool ends where the scores drop most, so one person can change how many items compete."""

    def law(self, scores: Any) -> Law:
        ranked = sorted(scores, reverse=True)
        sizes = range(self.inner.k, min(self.pool_size, len(ranked) - 1) + 1)
        size = max(sizes, key=lambda size: ranked[size - 1] - ranked[size])
        fixed = Restricted(inner=self.inner, pool=size, test_epsilon=self.test_epsilon, test_delta=self.test_delta)
        return fixed.law(scores)


class LowDummy(LimitedDomain):
    """The dummy at `x_[pool+1] + u` in place of `x_[pool+1] + w + u`."""

    def lead(self) -> Fraction:
        return super().lead() - Fraction(self.sensitivity.spread)


class LowestDummy(LimitedDomain):
    """The pool with the lowest dummy, without noise: one person can change which items compete at no cost."""

    def choice_law(self, heights: list[Fraction]) -> Law:
        return {frozenset({heights.index(max(heights))}): 1.0}


class GapBelow(TopStable):
    """Top-stable as in its authors' program: the gap after rank i + 1 is tested, the top i are answered."""

    def law(self, scores: Any) -> Law:
        return _law_of_gap_below(self, tuple(scores))


@lru_cache(maxsize=4096)
def _law_of_gap_below(mechanism: TopStable, scores: tuple[float, ...]) -> Law:
    """Return the law for k = pool = 1: the gap after rank 2 is tested, and the first item is answered."""
    ranked = sorted((Fraction(score) for score in scores), reverse=True)
    gap = max(ranked[1] - ranked[2], Fraction(mechanism.sensitivity.spread))
    return _best_or_nothing(scores, threshold_probability([float(mechanism.rate() * gap - mechanism.height())], []))


def _best_or_nothing(scores: Any, passes: float) -> Law:
    """Return the law of the best item, ties broken evenly, with probability `passes`, and of no answer."""
    if max(scores) <= 0:
        return {frozenset(): 1.0}
    best = [place for place, score in enumerate(scores) if score == max(scores)]
    return {frozenset(): 1 - passes, **{frozenset({place}): passes / len(best) for place in best}}


_REACH = 400


@dataclass(frozen=True)
class WholeNoise:
    """The best item is answered if `x_[1] − x_[2] − 1 + ν > T + ρ`, ν and ρ discrete Laplace of scale 2/ε.

    T = 3, and the claim is (ε, P[ν − ρ > T]): restricted.md with k = pool = 1. On integers `>` and `>=` differ.
    """

    k: ClassVar[int] = 1
    ordered: ClassVar[bool] = False
    may_stop: ClassVar[bool] = True
    sensitivity: ClassVar[Sensitivity] = COUNTS
    threshold: ClassVar[int] = 3

    epsilon: float
    passes_at_threshold: bool

    @property
    def guarantee(self) -> Guarantee:
        """The claim."""
        return Guarantee(self.epsilon, self._tail(self.threshold + 1) * (1 + 1e-12))

    @cached_property
    def _differences(self) -> FloatArray:
        """Probabilities of ν − ρ = −2·REACH … 2·REACH."""
        ratio = math.exp(-self.epsilon / 2)
        single = (1 - ratio) / (1 + ratio) * ratio ** np.abs(np.arange(-_REACH, _REACH + 1))
        differences: FloatArray = np.convolve(single, single)
        return differences

    def _tail(self, least: int) -> float:
        """Return P[ν − ρ >= least]."""
        return math.fsum(self._differences[2 * _REACH + least :])

    def law(self, scores: Any) -> dict[Any, float]:
        """Return the probability of the best item, ties broken evenly, and of no answer."""
        first, second, *_ = sorted(scores, reverse=True)
        needed = self.threshold + 1 - (first - second)
        return _best_or_nothing(scores, self._tail(int(needed + (0 if self.passes_at_threshold else 1))))

    def select(self, scores: Any, *, seed: int | None = None) -> Array:
        """Refuse: only the law is under test."""
        raise NotImplementedError


def _restricted(
    name: str,
    flaw: str,
    kind: type[Restricted],
    *,
    k: int,
    pool: int,
    epsilon: float = 4.0,
    delta: float = 0.05,
    ordered: bool = False,
    domain: Domain | None = None,
) -> Twin:
    """Return the twin of a restricted mechanism that spends a quarter of ε on the choice."""
    inner = (Joint if ordered else Canonical)(k=k, epsilon=epsilon / 4)
    broken, sound = (
        each(inner=inner, pool=pool, test_epsilon=3 * epsilon / 4, test_delta=delta) for each in (kind, Restricted)
    )
    return by_privacy(name, flaw, broken, sound, noise="laplace", domain=domain)


TWINS = [
    _restricted(
        "threshold without the spread",
        "the lead over the next score is not reduced by what one person can add",
        WithoutSpread,
        k=2,
        pool=2,
    ),
    by_privacy(
        "at least for above",
        "a test on whole numbers passes at the threshold, not only above it",
        WholeNoise(2.0, passes_at_threshold=True),
        WholeNoise(2.0, passes_at_threshold=False),
        noise="laplace",
    ),
    _restricted(
        "fresh threshold noise",
        "the threshold gets new noise for each test",
        FreshNoise,
        k=4,
        pool=4,
        epsilon=5.0,
        delta=1e-12,
        ordered=True,
        domain=Chosen(5, vectors=((14, 14, 14, 14, 0),)),
    ),
    _restricted(
        "walk by true score", "the chosen set is tested in the order of the true scores", ByTrueScore, k=2, pool=2
    ),
    _restricted(
        "pool from the data",
        "the size of the pool is chosen by the largest gap between the scores",
        PoolAtTheGap,
        k=1,
        pool=3,
    ),
    by_privacy(
        "black box that knows the order",
        "a function that prefers the first position gets the pool in the order of its scores",
        *(
            Restricted(inner=favouring_box(kind, 1.0), pool=3, test_epsilon=2.0, test_delta=0.1)
            for kind in (UnshuffledBox, KnownBox)
        ),
    ),
    by_privacy(
        "dummy without the spread",
        "the dummy stands lower by what one person can add to an item",
        LowDummy(k=1, epsilon=2.0, delta=0.05, pool=1),
        LimitedDomain(k=1, epsilon=2.0, delta=0.05, pool=1),
    ),
    by_privacy(
        "lowest dummy",
        "the pool with the lowest dummy is taken without noise",
        *(kind(k=1, epsilon=2.0, delta=1e-3, pool=3, pool_epsilon=1.0) for kind in (LowestDummy, LimitedDomain)),
    ),
    by_privacy(
        "gap one rank too far",
        "the gap behind the next rank is tested in place of the gap behind the answer",
        GapBelow(k=1, epsilon=6.0, delta=0.05, pool=1),
        TopStable(k=1, epsilon=6.0, delta=0.05, pool=1),
        noise="laplace",
        domain=Domain(3, 6),
    ),
]
