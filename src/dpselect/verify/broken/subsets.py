"""Broken twins of the canonical and the joint mechanism: a loss, a scale or a count is not what the proof needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import combinations
from math import prod
from typing import Any

import numpy as np

from dpselect._arrays import Array
from dpselect.mechanisms import Canonical, Joint
from dpselect.sampling.laws import single_law
from dpselect.sampling.noise import NOISES
from dpselect.scores import Scores
from dpselect.verify.broken.base import Broken
from dpselect.verify.privacy import Subject


@dataclass(frozen=True, kw_only=True)
class _BrokenCanonical(Broken):
    """Noise on `−ε · loss(y) / w` for every k-subset y, where something is wrong with the loss."""

    gamma: float = 0.5

    @property
    def sound(self) -> Subject:
        return Canonical(
            k=self.k, epsilon=self.epsilon, sensitivity=self.sensitivity, gamma=self.gamma, noise=self.noise
        )

    @property
    def rate(self) -> Fraction:
        return Fraction(self.epsilon) / Fraction(self.sensitivity.spread)

    def law(self, scores: Any) -> dict[Any, float]:
        return self.law_of_losses(scores)

    def law_of_losses(self, scores: Any) -> dict[Any, float]:
        """Return the law with the mistake in it."""
        values = Scores.of(scores).exact()
        subsets = list(combinations(range(len(values)), self.k))
        losses = [self.weighed(*self.extremes(values, subset)) for subset in subsets]
        locations = [float(self.rate * (min(losses) - loss)) for loss in losses]
        chances = single_law(locations, NOISES[self.noise]).tolist()
        return {frozenset(subset): chance for subset, chance in zip(subsets, chances, strict=True)}

    def extremes(self, values: Sequence[Fraction], subset: tuple[int, ...]) -> tuple[Fraction, Fraction]:
        """Return the best missing and the worst included score."""
        missing = [value for item, value in enumerate(values) if item not in subset]
        return max(missing), min(values[item] for item in subset)

    def weighed(self, missing: Fraction, included: Fraction) -> Fraction:
        """Return (1 − γ) · missing − γ · included."""
        gamma = Fraction(self.gamma)
        return (1 - gamma) * missing - gamma * included


@dataclass(frozen=True, kw_only=True)
class UnnormalisedWeights(_BrokenCanonical):
    """Weights 2 (1 − γ) and 2 γ, which are 1 and 1 at γ = ½: the loss moves within 2w."""

    name = "weights not normalised"
    flaw = "the loss is max missing - min included, without the halves"

    def weighed(self, missing: Fraction, included: Fraction) -> Fraction:
        return 2 * super().weighed(missing, included)


@dataclass(frozen=True, kw_only=True)
class MarginOneRankTooFar(_BrokenCanonical):
    """x_[k+2] in place of x_[k+1] in the loss of the top set, which is then no function of missing and included.

    When scores tied at rank k part, the top set's loss loses its margin for one neighbour and keeps it for the other.
    """

    name = "margin one rank too far"
    flaw = "the margin of the top set is measured to rank k + 2"

    def extremes(self, values: Sequence[Fraction], subset: tuple[int, ...]) -> tuple[Fraction, Fraction]:
        missing, included = super().extremes(values, subset)
        ranked = sorted(values, reverse=True)
        if missing <= included and self.k + 1 < len(ranked):
            missing = ranked[self.k + 1]
        return missing, included


@dataclass(frozen=True, kw_only=True)
class MarginOneRankTooNear(_BrokenCanonical):
    """x_[k−1] in place of x_[k] as the worst included score of the top set."""

    name = "margin from rank k - 1"
    flaw = "the margin of the top set is measured from rank k - 1"

    def extremes(self, values: Sequence[Fraction], subset: tuple[int, ...]) -> tuple[Fraction, Fraction]:
        missing, included = super().extremes(values, subset)
        if missing <= included and self.k > 1:
            included = sorted(values, reverse=True)[self.k - 2]
        return missing, included


@dataclass(frozen=True, kw_only=True)
class _WrongCanonicalSampler(_BrokenCanonical):
    """The law of the canonical mechanism, stated; another one, drawn."""

    rejected_by = "sampler"
    shown_on = (3, 2, 1, 0, 0)
    draws = 2000

    def law(self, scores: Any) -> dict[Any, float]:
        return dict(self.sound.law(scores))

    def select(self, scores: Any, *, seed: int | None = None) -> Array:
        generator = np.random.default_rng(seed)
        subsets, chances = zip(*_drawn_law(self, Scores.of(scores)).items(), strict=True)
        return generator.permutation(list(subsets[generator.choice(len(subsets), p=np.array(chances) / sum(chances))]))


# A sampler check draws thousands of times from the same Scores object.
@lru_cache(maxsize=8)
def _drawn_law(mechanism: _WrongCanonicalSampler, scores: Scores) -> dict[Any, float]:
    return mechanism.law_of_losses(scores)


@dataclass(frozen=True, kw_only=True)
class SwappedLoss(_WrongCanonicalSampler):
    """Min over the missing and max over the included: as private as the right one, and of no use.

    That loss moves within the same window, so no privacy check can object; and for scores that are their own mirror
    image, such as (2, 1, 1, 1, 0), even the law is the same.
    """

    name = "extremes of the loss swapped"
    flaw = "the loss is made of min missing and max included"

    def extremes(self, values: Sequence[Fraction], subset: tuple[int, ...]) -> tuple[Fraction, Fraction]:
        missing = [value for item, value in enumerate(values) if item not in subset]
        return min(missing), max(values[item] for item in subset)


@dataclass(frozen=True, kw_only=True)
class MiscountedClasses(_WrongCanonicalSampler):
    """Class sizes by the recursion as printed: (t − (h+1)) / (k − (h+1)) in place of (t − (h+2)) / (k − (h+1)).

    A class (h, t) then counts `Π_{j=h}^{k−2} (t − j − 1)/(k − 1 − j)` members in place of C(t−h−2, k−1−h); its members
    share its weight evenly. Gumbel noise: weights are `size · exp(−ε · loss / w)`. Mathematics, section 10.
    """

    name = "classes miscounted"
    flaw = "class sizes by the published recursion, off by one"

    def law_of_losses(self, scores: Any) -> dict[Any, float]:
        law = super().law_of_losses(scores)
        values = Scores.of(scores).exact()
        order = sorted(range(len(values)), key=lambda item: -values[item])
        weights = {
            subset: chance * self.overcount([order.index(item) for item in subset]) for subset, chance in law.items()
        }
        total = sum(weights.values())
        return {subset: weight / total for subset, weight in weights.items()}

    def overcount(self, ranks: Sequence[int]) -> float:
        """Return by which factor the class of a subset, given by its ranks from 0, is counted too large."""
        tail = max(ranks) + 1
        head = next(rank for rank in range(self.k + 1) if rank not in ranks)
        return prod((tail - place - 1) / (tail - place - 2) for place in range(head, self.k - 1))


@dataclass(frozen=True, kw_only=True)
class NarrowJoint(Broken):
    """The joint mechanism scaled for a window of w, where its loss moves within 2w.

    `x_[i]` and `x_{s_i}` may move against each other, and which row is worst may change as well.
    """

    name = "joint, width w"
    flaw = "the loss of a sequence is scaled by w in place of 2 w"
    ordered = True

    @property
    def sound(self) -> Subject:
        return self._joint(self.epsilon)

    def law(self, scores: Any) -> dict[Any, float]:
        return self._joint(2 * self.epsilon).law(scores)

    def _joint(self, epsilon: float) -> Joint:
        return Joint(k=self.k, epsilon=epsilon, sensitivity=self.sensitivity, noise=self.noise)
