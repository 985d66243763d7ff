"""Noisy scores of the chosen items (docs/values.md).

`ValueNoise` makes a second release, with fresh noise and its own cost. `IncludedValues` shows the noisy scores by which
Laplace or Gaussian chose, rounded to a public grid, which costs nothing more.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor
from typing import Any, ClassVar

import numpy as np

from dpselect._format import shown_above
from dpselect._numbers import finite_number, float_below, positive_integer, positive_number
from dpselect.errors import InvalidInput
from dpselect.mechanisms import Mechanism, NoisyVector
from dpselect.privacy.conversion import float_above, largest_rho
from dpselect.privacy.guarantee import Guarantee, probability_of_failure
from dpselect.privacy.sensitivity import Sensitivity
from dpselect.sampling import BitSource
from dpselect.sampling.discrete import discrete_gaussian, discrete_laplace, gaussian_half_width, laplace_half_width
from dpselect.scores import Members, Scores

LAPLACE = "discrete laplace"
GAUSSIAN = "discrete gaussian"

CONFIDENCE = 0.95
"""The probability with which each published interval holds the true score."""

_GRID_FINENESS = 2**20
"""Scores that are not counts are rounded to a grid finer by this factor than one person's reach and the noise."""

_INTEGERS_FROM = 2**1000
"""Values of at least this magnitude are shown as integers, because they are close to the largest float."""

Value = int | float
Interval = tuple[Value, Value]


@dataclass(frozen=True)
class NoisyValues:
    """Noisy scores in the order of the items, each with an interval that holds the score with probability `confidence`.

    All of it may be published. `ValueNoise`: the probability is over the noise, for each interval by itself, given the
    chosen items. If the sensitivity is that of counts, the interval is for the score rounded to a whole number; counts
    are whole. `IncludedValues`: all intervals hold together with that probability, over noise and choice; given that
    a certain item was chosen, nothing is promised.
    """

    values: list[Value]
    intervals: list[Interval]
    confidence: float

    @classmethod
    def around(
        cls, exact: list[Fraction], below: Fraction, above: Fraction, *, whole: bool, confidence: float
    ) -> NoisyValues:
        """Return values with intervals that reach that far below and above them, rounded outwards.

        Numbers are ints if `whole` or if they are huge, otherwise floats, so that JSON can hold them. The values are
        private output already, so the form may depend on them.
        """

        def shown(value: Fraction, to_int: Callable[[Fraction], int], to_float: Callable[[Fraction], float]) -> Value:
            return to_int(value) if whole or abs(value) >= _INTEGERS_FROM else to_float(value)

        return cls(
            [shown(value, floor, float) for value in exact],
            [(shown(value - below, floor, float_below), shown(value + above, ceil, float_above)) for value in exact],
            confidence,
        )


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

    def __str__(self) -> str:
        """Say how far a published value may be from the true one."""
        most = shown_above(float_above(self.half_width(CONFIDENCE)))
        return f"noisy; each is off by at most {most} with probability {CONFIDENCE}"

    def half_width(self, confidence: float) -> Fraction:
        """Return the distance between noisy value and score that is exceeded with probability at most 1 − confidence.

        The quantile of the noise, plus half a step for rounding on a grid finer than the whole numbers. On the whole
        numbers it is the distance from the rounded score, so nothing is added.
        """
        failure = 1 - Fraction(confidence)
        tail = laplace_half_width if self.noise == LAPLACE else gaussian_half_width
        return (tail(self.spread, failure) + (0 if self.grid == 1 else Fraction(1, 2))) * self.grid

    def release(self, scores: Iterable[Any], bits: BitSource, *, confidence: float = CONFIDENCE) -> NoisyValues:
        """Return the scores with fresh noise. `bits` may have served the selection: no bit is used twice."""
        half_width = self.half_width(confidence)
        exact = [self.grid * (step + self._draw(bits)) for step in self.rounded(scores)]
        return NoisyValues.around(exact, half_width, half_width, whole=self.grid == 1, confidence=confidence)

    def rounded(self, scores: Iterable[Any]) -> list[int]:
        """Return the scores in whole steps of the grid."""
        return [floor(_fraction(score) / self.grid + Fraction(1, 2)) for score in scores]

    def _draw(self, bits: BitSource) -> int:
        draw = discrete_laplace if self.noise == LAPLACE else discrete_gaussian
        return draw(self.spread, bits)


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
            "must be dpselect.COUNTS or dpselect.Sensitivity(low, high), not a bare number",
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
    return min((laplace, gaussian), key=lambda noise: noise.half_width(CONFIDENCE))


@dataclass(frozen=True)
class IncludedValues:
    """The noisy scores by which a mechanism chose; they are part of its answer and of its guarantee."""

    mechanism: NoisyVector
    negated: bool = False
    """Whether the mechanism sees negated scores; the values have the sign of the scores themselves."""
    noise: ClassVar[str] = "included"

    def __str__(self) -> str:
        """Say where the values come from."""
        return "noisy; those by which the mechanism chooses, at no further cost"

    @property
    def grid(self) -> Fraction:
        """The public grid: whole numbers for counts, otherwise a power of two far below the noise."""
        sensitivity = self.mechanism.sensitivity.negated() if self.negated else self.mechanism.sensitivity
        if _counting(sensitivity):
            return Fraction(1)
        return _fine_grid(min(sensitivity.reach, 1 / self.mechanism.rate()))

    def draw(self, scores: Scores, bits: BitSource, *, confidence: float = CONFIDENCE) -> tuple[Members, NoisyValues]:
        """Return the chosen items with their noisy scores and intervals.

        A noisy score tends to be too high, because high ones are chosen, so an interval reaches down by what one of
        all d noises exceeds, and up by what one of k noises exceeds, each with half the failure probability (proof in
        docs/values.md), plus half a step of the grid.
        """
        members, steps = self.mechanism.draw_rounded(scores, self.grid, bits)
        half = (1 - Fraction(confidence)) / 2
        below, above = (
            self.mechanism.tail(half / number) + self.grid / 2 for number in (scores.size, self.mechanism.k)
        )
        exact = [self.grid * step for step in steps]
        if self.negated:
            exact, below, above = [-value for value in exact], above, below
        return members, NoisyValues.around(exact, below, above, whole=self.grid == 1, confidence=confidence)


def included_values(mechanism: Mechanism, *, negated: bool = False) -> IncludedValues:
    """Return the values that the answer of a mechanism includes; only Laplace and Gaussian include them."""
    if isinstance(mechanism, NoisyVector):
        return IncludedValues(mechanism, negated)
    raise InvalidInput(
        "values",
        True,
        f"must be a share of epsilon, such as 0.3, with {mechanism.name}; laplace and gaussian include their values",
    )


def split_epsilon(epsilon: float, share: float) -> tuple[float, float]:
    """Return the parts of ε for the selection and for the values: `(1 − share) ε` and `share ε`.

    Both are rounded down, the first from what the second leaves, so that their exact sum never exceeds ε.
    """
    total = positive_number("epsilon", epsilon)
    part = Fraction(_inside_unit(share))
    for_values = float_below(part * Fraction(total))
    for_selection = float_below(Fraction(total) - Fraction(for_values))
    if not (for_values > 0 and for_selection > 0):
        raise InvalidInput("values", share, "must leave a positive part of epsilon to the selection and to the values")
    return for_selection, for_values


def epsilon_beside(epsilon: float, share: float) -> float:
    """Return the ε of values that are to be that share of the total, `share/(1 − share) ε`, rounded down.

    ε is the cost of the selection, as a mechanism object states it.
    """
    part = Fraction(_inside_unit(share))
    exact = part / (1 - part) * Fraction(epsilon)
    if not Fraction(5e-324) <= exact < 2**1023:
        raise InvalidInput("values", share, "must leave a positive part of epsilon to the selection and to the values")
    return float_below(exact)


def _inside_unit(share: Any) -> float:
    """Return the share of ε for the values if it lies in (0, 1)."""
    with contextlib.suppress(InvalidInput):
        number = float(finite_number("values", share))
        if 0 < number < 1:
            return number
    raise InvalidInput("values", share, "must be a share of epsilon above 0 and below 1, or True (--values included)")


def _counting(sensitivity: Sensitivity) -> bool:
    """Whether scores are counts: low is 0 and high a whole number. The scores, being private, do not decide."""
    return sensitivity.low == 0 and Fraction(sensitivity.high).denominator == 1


def _fine_grid(size: Fraction) -> Fraction:
    """Return the largest power of two that is at most `size / 2^20`."""
    exact = size / _GRID_FINENESS
    exponent = exact.numerator.bit_length() - exact.denominator.bit_length()
    power = Fraction(2) ** exponent
    return power if power <= exact else power / 2


def _fraction(score: Any) -> Fraction:
    return Fraction(score.item()) if isinstance(score, np.generic) else Fraction(score)
