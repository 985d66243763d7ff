"""Broken twins of canonical and joint: a loss, a scale or a count is not what the proof needs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from itertools import combinations, pairwise, permutations
from typing import Any

import numpy as np

from dpselect.mechanisms import Canonical, Joint
from dpselect.sampling.laws import single_law
from dpselect.sampling.noise import NOISES
from dpselect.scores import Scores
from dpselect.verify.broken.base import Draw, Law, Twin, altered, by_sampler
from dpselect.verify.domain import Domain

Extremes = Callable[[Sequence[Fraction], tuple[int, ...]], tuple[Fraction, Fraction]]
"""Maps scores and a subset to the two scores of its loss."""

Rounding = Callable[[Fraction, Sequence[Fraction]], Fraction]
"""Maps a loss and the scores to the loss that is used."""


def extremes(values: Sequence[Fraction], subset: tuple[int, ...]) -> tuple[Fraction, Fraction]:
    """Return the best missing and the worst included score, as is right."""
    missing = [value for item, value in enumerate(values) if item not in subset]
    return max(missing), min(values[item] for item in subset)


def margin_too_far(values: Sequence[Fraction], subset: tuple[int, ...]) -> tuple[Fraction, Fraction]:
    """Measure the margin of the top set to rank k + 2; its loss is then not a function of missing and included.

    When scores tied at rank k part, the top set loses its margin on one side and keeps it on the other.
    """
    missing, included = extremes(values, subset)
    if missing <= included and len(subset) + 1 < len(values):
        missing = sorted(values, reverse=True)[len(subset) + 1]
    return missing, included


def margin_too_near(values: Sequence[Fraction], subset: tuple[int, ...]) -> tuple[Fraction, Fraction]:
    """Measure the margin of the top set from rank k − 1."""
    missing, included = extremes(values, subset)
    if missing <= included and len(subset) > 1:
        included = sorted(values, reverse=True)[len(subset) - 2]
    return missing, included


def swapped_extremes(values: Sequence[Fraction], subset: tuple[int, ...]) -> tuple[Fraction, Fraction]:
    """Return the worst missing and the best included score: as private as the right ones, and useless.

    That loss moves within the same bounds, so no privacy check can object; and for scores that are their own mirror
    image, such as (2, 1, 1, 1, 0), the law is even the same.
    """
    missing = [value for item, value in enumerate(values) if item not in subset]
    return min(missing), max(values[item] for item in subset)


def as_it_is(loss: Fraction, values: Sequence[Fraction]) -> Fraction:
    """Do not round."""
    return loss


def canonical_law(
    mechanism: Canonical, loss_of: Extremes = extremes, weight: int = 1, rounding: Rounding = as_it_is
) -> Law:
    """Return the law of noise on `−ε · loss(y) / w`, where the loss is `weight ((1 − γ) missing − γ included)`."""
    rate = weight * Fraction(mechanism.epsilon) / Fraction(mechanism.sensitivity.spread)
    gamma = Fraction(mechanism.gamma)

    def law(scores: Any) -> dict[Any, float]:
        values = Scores.of(scores).exact()
        subsets = list(combinations(range(len(values)), mechanism.k))
        pairs = [loss_of(values, subset) for subset in subsets]
        losses = [rounding((1 - gamma) * missing - gamma * included, values) for missing, included in pairs]
        locations = [float(rate * (min(losses) - loss)) for loss in losses]
        masses = single_law(locations, NOISES[mechanism.noise]).tolist()
        return {frozenset(subset): mass for subset, mass in zip(subsets, masses, strict=True)}

    return law


def to_whole_spreads(loss: Fraction, values: Sequence[Fraction]) -> Fraction:
    """Round up to a multiple of w = 1, twice the right step: a change of w/2 may cost w."""
    return Fraction(math.ceil(loss))


def half_to_even(loss: Fraction, values: Sequence[Fraction]) -> Fraction:
    """Round to the nearest multiple of w/2, from half-way to the even one: from ½ to 1½ it is two steps."""
    return Fraction(round(2 * loss), 2)


def step_off_the_data(loss: Fraction, values: Sequence[Fraction]) -> Fraction:
    """Round up to a multiple of half the smallest gap between two scores, at most ½, which neighbours do not share."""
    step = min([Fraction(1), *(high - low for low, high in pairwise(sorted(set(values))))]) / 2
    return step * math.ceil(loss / step)


def overcount(ranks: Sequence[int], k: int) -> float:
    """Return the factor by which the printed recursion overcounts the class of a subset, given by its ranks from 0.

    It has (t − (h+1)) / (k − (h+1)) in place of (t − (h+2)) / (k − (h+1)), so that a class (h, t) counts
    `Π_{j=h}^{k−2} (t − j − 1)/(k − 1 − j)` members in place of C(t−h−2, k−1−h). Mathematics, section 10.
    """
    tail = max(ranks) + 1
    head = next(rank for rank in range(k + 1) if rank not in ranks)
    return math.prod((tail - place - 1) / (tail - place - 2) for place in range(head, k - 1))


def miscounted_law(mechanism: Canonical) -> Law:
    """Return the law with class sizes by the printed recursion; the members of a class share its weight evenly."""
    right = canonical_law(mechanism)

    def law(scores: Any) -> dict[Any, float]:
        values = Scores.of(scores).exact()
        order = sorted(range(len(values)), key=lambda item: -values[item])
        weights = {
            subset: mass * overcount([order.index(item) for item in subset], mechanism.k)
            for subset, mass in right(scores).items()
        }
        total = sum(weights.values())
        return {subset: weight / total for subset, weight in weights.items()}

    return law


def draw_from(law: Law) -> Draw:
    """Return a sampler of sets that draws from a law with NumPy."""
    cached = lru_cache(maxsize=8)(law)

    def draw(scores: Any, seed: int | None) -> Any:
        generator = np.random.default_rng(seed)
        subsets, masses = zip(*cached(Scores.of(scores)).items(), strict=True)
        return generator.permutation(list(subsets[generator.choice(len(subsets), p=np.array(masses) / sum(masses))]))

    return draw


def narrow_joint(k: int = 2, noise: str = "exponential") -> Twin:
    """Return joint scaled for a loss that moves by w; it moves by 2w, as x_[i] and x_{s_i} may move in opposition."""
    sound = Joint(k=k, epsilon=1.0, noise=noise, margin=False)
    flaw = "the loss of a sequence is scaled by w in place of 2 w"
    return altered("joint, width w", flaw, sound, replace(sound, epsilon=2.0).law)


def joint_margin(name: str, flaw: str, margin: Callable[[list[Fraction]], Fraction], noise: str) -> Twin:
    """Return joint with another location of the sequences without loss: rate times a margin of the gaps up to k + 1."""
    sound = Joint(k=2, epsilon=1.0, noise=noise)

    def law(scores: Any) -> dict[Any, float]:
        values = Scores.of(scores).exact()
        top = sorted(values, reverse=True)
        gaps = [high - low for high, low in pairwise(top[: sound.k + 1])]
        sequences = list(permutations(range(len(values)), sound.k))
        losses = [max(top[row] - values[item] for row, item in enumerate(sequence)) for sequence in sequences]
        locations = [float(sound.rate * (-loss if loss else margin(gaps))) for loss in losses]
        return dict(zip(sequences, single_law(locations, NOISES[noise]).tolist(), strict=True))

    return altered(name, flaw, sound, law)


SUBSETS = Canonical(k=2, epsilon=1.0)
ROUNDED = Canonical(k=2, epsilon=1.0, rounded=True)
RACED = Canonical(k=2, epsilon=1.0, noise="gumbel")

TWINS = [
    *[
        altered(name, flaw, SUBSETS, law, parameters="gamma 0.5")
        for name, flaw, law in (
            (
                "weights not normalised",
                "the loss is max missing - min included, without the halves",
                canonical_law(SUBSETS, weight=2),
            ),
            (
                "margin one rank too far",
                "the margin of the top set is measured to rank k + 2",
                canonical_law(SUBSETS, margin_too_far),
            ),
            (
                "margin from rank k - 1",
                "the margin of the top set is measured from rank k - 1",
                canonical_law(SUBSETS, margin_too_near),
            ),
        )
    ],
    *[
        altered(
            name,
            flaw,
            ROUNDED,
            canonical_law(ROUNDED, rounding=rounding),
            parameters="gamma 0.5, rounded",
            domain=Domain(3, 2, step=0.25),
        )
        for name, flaw, rounding in (
            ("loss rounded to multiples of w", "a step is w in place of w / 2", to_whole_spreads),
            ("loss rounded to nearest", "halves go to the even multiple of w / 2", half_to_even),
            ("step read off the scores", "a step is half the smallest gap between scores", step_off_the_data),
        )
    ],
    narrow_joint(),
    narrow_joint(noise="gumbel"),
    *[
        joint_margin(*wrong, noise)
        for noise in ("exponential", "gumbel")
        for wrong in (
            (
                "joint, margin in spite of a tie",
                "the margin is the smallest positive gap, also where others are tied",
                lambda gaps: min((gap for gap in gaps if gap), default=Fraction(0)),
            ),
            ("joint, margin at rate epsilon / w", "the top sequence gets twice its margin", lambda gaps: 2 * min(gaps)),
        )
    ],
    *[
        by_sampler(name, flaw, draw_from(law), RACED, (3, 2, 1, 0, 0), draws=2000, parameters="gamma 0.5")
        for name, flaw, law in (
            (
                "extremes of the loss swapped",
                "the loss is made of min missing and max included",
                canonical_law(RACED, swapped_extremes),
            ),
            ("classes miscounted", "class sizes by the published recursion, off by one", miscounted_law(RACED)),
        )
    ],
]
