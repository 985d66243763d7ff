"""Noisy scores of chosen items: a second release, with fresh noise and a cost of its own (docs/values.md)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from math import floor
from typing import Any

import numpy as np

from dpselect._numbers import finite_number, float_below, positive_integer, positive_number
from dpselect.errors import InvalidInput
from dpselect.privacy.conversion import float_above, largest_rho
from dpselect.privacy.guarantee import Guarantee, probability_of_failure
from dpselect.privacy.sensitivity import Sensitivity
from dpselect.sampling import BitSource
from dpselect.sampling.discrete import discrete_gaussian, discrete_laplace, gaussian_half_width, laplace_half_width

LAPLACE = "discrete laplace"
GAUSSIAN = "discrete gaussian"

FINENESS = 2**20
"""Scores that are not counted are rounded to a grid this much finer than what one person can do and than the noise."""

FLOAT_LIMIT = 2**1000
"""Magnitude from which values are shown as whole numbers, since floats end soon after."""

Value = int | float
Interval = tuple[Value, Value]


@dataclass(frozen=True)
class NoisyValues:
    """Noisy scores in the order of the items, each with an interval that holds the score with probability `confidence`.

    All of it may be published. The probability is that of the noise, for each interval by itself, given which items
    were chosen. With a sensitivity that counts, the score is the one rounded to a whole number, as counts already are.
    """

    values: list[Value]
    intervals: list[Interval]
    confidence: float
    half_width: Value
    guarantee: Guarantee
    noise: str


@dataclass(frozen=True, kw_only=True)
class ValueNoise:
    """Noise for k scores, fixed before any data is seen.

    Scores x become whole numbers `q = ⌊x/grid + ½⌋`, and independent integer noise is added to each. One person moves q
    by at most `steps = ⌈s/grid⌉`, s = max(|low|, |high|) of the sensitivity: the rounding is monotone and commutes
    with whole shifts. `spread` is the scale b of discrete Laplace noise, or the variance σ² of discrete Gaussian noise.
    Proof in sampling/discrete.md and docs/values.md.
    """

    noise: str
    grid: Fraction
    steps: int
    spread: Fraction
    guarantee: Guarantee

    def half_width(self, confidence: float) -> Fraction:
        """Return how far a noisy value may be from the score, except with probability 1 − confidence.

        Noise as far out as its tail says, and half a step for rounding to a grid finer than the whole numbers. On the
        whole numbers it is the distance from the rounded score: counts are whole, and nothing is added for others.
        """
        failure = 1 - Fraction(confidence)
        tail = laplace_half_width if self.noise == LAPLACE else gaussian_half_width
        return (tail(self.spread, failure) + (0 if self.grid == 1 else Fraction(1, 2))) * self.grid

    def release(self, scores: Iterable[Any], bits: BitSource, *, confidence: float = 0.95) -> NoisyValues:
        """Return the scores with fresh noise from `bits`."""
        confidence = check_confidence(confidence)
        half_width = self.half_width(confidence)
        exact = [self.grid * (step + self._draw(bits)) for step in self.rounded(scores)]
        return NoisyValues(
            values=[self._shown(value, float) for value in exact],
            intervals=[
                (self._shown(value - half_width, float_below), self._shown(value + half_width, float_above))
                for value in exact
            ],
            confidence=confidence,
            half_width=self._shown(half_width, float_above),
            guarantee=self.guarantee,
            noise=self.noise,
        )

    def rounded(self, scores: Iterable[Any]) -> list[int]:
        """Return the scores in whole steps of the grid."""
        return [floor(_fraction(score) / self.grid + Fraction(1, 2)) for score in scores]

    def _shown(self, value: Fraction, rounded: Callable[[Fraction], float]) -> Value:
        """Return a number that JSON knows: a whole one of the whole numbers, a float of a finer grid if one holds it.

        Any function of a private result may be shown, so its size may decide.
        """
        whole = self.grid == 1 or abs(value) >= FLOAT_LIMIT
        return floor(value) if whole else rounded(value)

    def _draw(self, bits: BitSource) -> int:
        draw = discrete_laplace if self.noise == LAPLACE else discrete_gaussian
        return draw(self.spread, bits)


def noisy_values(
    scores_of_chosen: Iterable[Any],
    *,
    k: int,
    epsilon: float,
    delta: float = 0.0,
    sensitivity: Sensitivity,
    bits: BitSource,
    max_items_per_person: int | None = None,
    confidence: float = 0.95,
) -> NoisyValues:
    """Return the scores of at most k chosen items with fresh noise, at a cost of (ε, δ) on top of choosing them.

    `bits` may be the source that served the selection, since it hands out every bit once. `max_items_per_person`, where
    the caller enforces it, bounds how many of the k scores one person can move.
    """
    noise = value_noise(
        k=k, epsilon=epsilon, delta=delta, sensitivity=sensitivity, max_items_per_person=max_items_per_person
    )
    scores = list(scores_of_chosen)
    if len(scores) > k:
        raise InvalidInput("k", k, "at least as many as there are chosen items is needed")
    return noise.release(scores, bits, confidence=confidence)


def value_noise(
    *,
    k: int,
    epsilon: float,
    delta: float = 0.0,
    sensitivity: Sensitivity,
    max_items_per_person: int | None = None,
) -> ValueNoise:
    """Return the least noise for k scores that costs no more than (ε, δ).

    With j = min(k, max_items_per_person) scores moved by at most S steps: discrete Laplace of scale `j S / ε`, which is
    ε-DP, or, where δ allows and its intervals are narrower, discrete Gaussian of variance `j S² / (2ρ)`, which is
    ρ-zCDP. Public facts decide.
    """
    moved = positive_integer("k", k)
    if max_items_per_person is not None:
        moved = min(moved, positive_integer("max_items_per_person", max_items_per_person))
    target = Guarantee(epsilon=positive_number("epsilon", epsilon), delta=probability_of_failure(delta))
    if not isinstance(sensitivity, Sensitivity):
        raise InvalidInput(
            "sensitivity",
            sensitivity,
            "dpselect.COUNTS or dpselect.Sensitivity(low, high) is needed, not a bare number",
        )
    reach = sensitivity.reach
    grid = Fraction(1) if _counting(sensitivity) else _fine_grid(min(reach, moved * reach / Fraction(target.epsilon)))
    steps = -(-reach // grid)
    laplace = ValueNoise(
        noise=LAPLACE,
        grid=grid,
        steps=steps,
        spread=moved * steps / Fraction(target.epsilon),
        guarantee=Guarantee(epsilon=target.epsilon),
    )
    rho = largest_rho(target.epsilon, target.delta) if target.delta else 0.0
    if not rho:
        return laplace
    gaussian = ValueNoise(
        noise=GAUSSIAN,
        grid=grid,
        steps=steps,
        spread=moved * steps**2 / (2 * Fraction(rho)),
        guarantee=Guarantee(epsilon=target.epsilon, delta=target.delta, rho=rho),
    )
    return min((laplace, gaussian), key=lambda noise: noise.half_width(0.95))


def split_epsilon(epsilon: float, share: float) -> tuple[float, float]:
    """Return what of ε goes to the selection and what to the values: `(1 − share) ε` and `share ε`.

    Both are rounded down, the first from what the second leaves, so that their exact sum never exceeds ε.
    """
    total = positive_number("epsilon", epsilon)
    part = Fraction(finite_number("values", check_share(share)))
    for_values = float_below(part * Fraction(total))
    for_selection = float_below(Fraction(total) - Fraction(for_values))
    if not (for_values > 0 and for_selection > 0):
        raise InvalidInput("values", share, "both the selection and the values need a positive part of epsilon")
    return for_selection, for_values


def check_share(share: Any) -> float:
    """Return the share of ε for the values if it lies in (0, 1)."""
    return _inside_unit("values", share, "None or a share of epsilon between 0 and 1, both excluded, is needed")


def check_confidence(confidence: Any) -> float:
    """Return the probability that an interval holds its score if it lies in (0, 1)."""
    return _inside_unit("confidence", confidence, "a probability between 0 and 1, both excluded, is needed")


def _inside_unit(argument: str, value: Any, accepted: str) -> float:
    try:
        number = float(finite_number(argument, value))
        if 0 < number < 1:
            return number
    except InvalidInput:
        pass
    raise InvalidInput(argument, value, accepted)


def _counting(sensitivity: Sensitivity) -> bool:
    """Whether scores are counts: a person adds nothing or a whole number. The scores themselves must not decide."""
    return sensitivity.low == 0 and Fraction(sensitivity.high).denominator == 1


def _fine_grid(size: Fraction) -> Fraction:
    """Return the largest power of two that is at most size / FINENESS."""
    exact = size / FINENESS
    exponent = exact.numerator.bit_length() - exact.denominator.bit_length()
    power = Fraction(2) ** exponent
    return power if power <= exact else power / 2


def _fraction(score: Any) -> Fraction:
    return Fraction(score.item()) if isinstance(score, np.generic) else Fraction(score)
