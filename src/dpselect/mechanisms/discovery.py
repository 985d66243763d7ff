"""Discovery: publish which items exist, by a noisy weight for each and a threshold."""

from __future__ import annotations

from collections.abc import Mapping, Sized
from dataclasses import asdict, dataclass, fields
from fractions import Fraction
from functools import cached_property
from itertools import product
from math import ceil, isqrt, prod
from typing import Any, ClassVar

import numpy as np

from dpselect._arrays import Array, FloatArray
from dpselect._numbers import float_below, positive_integer, positive_number, seed_or_none
from dpselect.errors import InvalidInput, plain
from dpselect.mechanisms.base import LARGEST_LAW, Law
from dpselect.mechanisms.unknown import NOTHING, positive_delta
from dpselect.privacy.calibration import unit_sigma
from dpselect.privacy.conversion import float_above, upper_bound
from dpselect.privacy.guarantee import Guarantee
from dpselect.sampling import BitSource, bit_source, shuffled, uniform_subset
from dpselect.sampling.balls import ball
from dpselect.sampling.noise import NORMAL
from dpselect.sampling.threshold import MeasuredField, passing
from dpselect.scores import Grouping, Members, Scores

RARELY = Fraction(1, 10**6)
"""The probability, at most, that an item with fewer than `at_least` people is listed."""

FINENESS = 128
"""The least weight is at least this many units, so that rounding down loses less than 1 % of a weight."""

LARGEST_THRESHOLD = 1 << 60
"""Thresholds and weights are whole numbers of 64 bits."""


@dataclass(frozen=True, kw_only=True)
class Discovery:
    """Which items exist: those whose weight plus normal noise is above a threshold.

    A person with n items, at most m, adds `1/√n` to the weight of each, rounded down to whole units of 1/U. Every item
    that somebody has gets noise N(0, σ²), and is listed if its noisy weight is above ρ:
    `Φ(1/(2σ) − εσ) − e^ε Φ(−1/(2σ) − εσ) <= δ/2` and `ρ = max_{1<=t<=m} (1/√t + σ Φ⁻¹((1 − δ/2)^{1/t}))`, both rounded
    up. Gopi et al. 2020, "Differentially Private Set Union"; mathematics, section 7; proof in discovery.md.

    Parameters
    ----------
    epsilon, delta
        The cost of a release.
    max_items_per_person
        m. **It cannot be checked here**: the caller must drop surplus items of a person before computing the weights.
    at_least
        Raises the threshold so that an item with fewer people is listed with a probability of at most one in a million.
        The number of people is never compared with it, so an item with more people may be missing.

    Raises
    ------
    InvalidInput
        If an argument is out of range.

    Examples
    --------
    >>> import dpselect as dps
    >>> mechanism = dps.Discovery(epsilon=1.0, delta=1e-7, max_items_per_person=20)
    >>> 4.8 < mechanism.sigma < 4.81, 28.3 < mechanism.threshold / mechanism.units < 28.4
    (True, True)
    >>> alone = mechanism.weight(1)
    >>> sorted(mechanism.select([90 * alone, alone, 70 * alone], seed=1).tolist())
    [0, 2]
    """

    name: ClassVar[str] = "discovery"
    exact: ClassVar[bool] = True
    promise: ClassVar[str] = ""

    epsilon: float
    delta: float
    max_items_per_person: int
    at_least: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", positive_number("epsilon", self.epsilon))
        object.__setattr__(self, "delta", positive_delta("delta", self.delta))
        for argument in ("max_items_per_person", "at_least"):
            object.__setattr__(self, argument, positive_integer(argument, getattr(self, argument)))
        if not self._half:
            raise InvalidInput("delta", self.delta, "must be larger; half of it is 0 in floating point")
        if max(self.at_least * self.units, self.units**2) > LARGEST_THRESHOLD:
            argument = "at_least" if self.units**2 <= LARGEST_THRESHOLD else "max_items_per_person"
            raise InvalidInput(argument, getattr(self, argument), "must be smaller; weights are numbers of 64 bits")
        if self.threshold > LARGEST_THRESHOLD:
            raise InvalidInput("epsilon", self.epsilon, "must be larger; the threshold would exceed 64 bits")

    @property
    def guarantee(self) -> Guarantee:
        """(ε, δ)."""
        return Guarantee(self.epsilon, self.delta)

    @property
    def _half(self) -> float:
        """δ/2, rounded down."""
        return float_below(Fraction(self.delta) / 2)

    @property
    def units(self) -> int:
        """U, the units of a weight of 1: a power of two of at least 128 √m."""
        return 1 << (isqrt(FINENESS**2 * self.max_items_per_person - 1)).bit_length()

    def weight(self, items: int) -> int:
        """Return what a person with so many items adds to each of them, `⌊U/√n⌋` units."""
        return isqrt(self.units**2 // items)

    @property
    def sigma(self) -> float:
        """The standard deviation of the noise on a weight, where one person's weights have the norm 1; rounded up."""
        return unit_sigma(self.epsilon, self._half)

    @cached_property
    def threshold(self) -> int:
        """⌈ρ U⌉, or more for `at_least`, in units.

        The maximum over t is attained at t = 1 or t = m (discovery.md, "The threshold").
        """
        half, sigma = Fraction(self._half), Fraction(self.sigma)

        def height(items: int) -> float:
            """Return `1/√t + σ Φ⁻¹((1 − δ/2)^{1/t})` for t own items, rounded up."""

            def formula() -> Any:
                tail = -((-ball(half)).log1p() / items).expm1()
                return 1 / ball(items).sqrt() + ball(sigma) * _quantile_above(tail)

            return upper_bound(formula, half)

        heights = [height(1), height(self.max_items_per_person)]
        if self.at_least > 1:
            few = self.at_least - 1
            heights.append(upper_bound(lambda: few + ball(sigma) * _quantile_above(ball(RARELY)), RARELY))
        return ceil(Fraction(max(heights)) * self.units)

    def describe(self) -> dict[str, Any]:
        """Return the name and all parameters as plain data, with the noise and the threshold that follow from them."""
        threshold = float_above(Fraction(self.threshold, self.units))
        stated = {"sigma": self.sigma, "threshold": threshold}
        return {"name": self.name, **asdict(self), **stated}

    @classmethod
    def described(cls, described: Mapping[str, Any]) -> Discovery:
        """Return the discovery that `describe` described."""
        return cls(**{each.name: described[each.name] for each in fields(cls)})

    def draw(self, weights: Scores, bits: BitSource) -> Members:
        """Return the listed items for weights in units, in uniformly random order. Weights of 0 are no items."""
        grouping = weights.distinct
        assert grouping.multiplicities is not None
        existing = int(np.count_nonzero(grouping.values > 0))
        values, sizes = grouping.values[:existing], grouping.multiplicities[:existing]
        entrants = MeasuredField(values, self._scale, sizes, 1, origin=self.threshold)
        return _members(grouping, sizes, passing(entrants, NORMAL, bits), bits)

    @cached_property
    def _scale(self) -> Fraction:
        """1/(σU): converts units to standard deviations of the noise."""
        return 1 / (Fraction(self.sigma) * self.units)

    def select(self, weights: Any, *, seed: int | None = None) -> Array:
        """Return the positions of the listed items for the weights of all items, in units, in random order."""
        return self.draw(_table(weights), bit_source(seed_or_none(seed))).positions()

    def probabilities(self, weights: Array) -> FloatArray:
        """Return the probability that an item of each weight, in units, is listed: `Φ((w − ρ)/σ)`, or 0 for no item."""
        distances = (np.asarray(weights, dtype=np.float64) - self.threshold) * float(self._scale)
        return np.where(np.asarray(weights) > 0, NORMAL.cdf(distances), 0.0)

    def law(self, weights: Any) -> Law:
        """Return the probability of every set of listed items, for few items with weights in units."""
        exact = _table(weights).exact()
        listed = self.probabilities(np.array([int(weight) for weight in exact], dtype=np.int64)).tolist()
        if 2 ** min(len(listed), 20) > LARGEST_LAW:
            raise InvalidInput("weights", plain(f"{len(listed)} items"), "must be at most 13 items for law")
        law: Law = {}
        for taken in product((False, True), repeat=len(listed)):
            probability = prod(p if yes else 1 - p for p, yes in zip(listed, taken, strict=True))
            if probability:
                law[frozenset(place for place, yes in enumerate(taken) if yes)] = probability
        return law


def _table(weights: Any) -> Scores:
    """Return `Scores`; an empty table is accepted, since it must not be revealed that there is no item."""
    return NOTHING if isinstance(weights, Sized) and not len(weights) else Scores.of(weights)


def _quantile_above(tail: Any) -> Any:
    """Return `Φ⁻¹(1 − tail)` as a ball: `tail = ½ erfc(z/√2)`."""
    return ball(2).sqrt() * (2 * tail).erfcinv()


def _members(grouping: Grouping, sizes: Array, passed: Array, bits: BitSource) -> Members:
    """Return as many members of each group as passed, drawn uniformly without replacement, in random order."""
    groups = np.repeat(np.arange(len(passed)), passed)
    starts = np.cumsum(passed) - passed
    indexes = np.arange(len(groups)) - starts[groups]  # right for groups that passed as a whole
    for group in np.flatnonzero((passed > 0) & (passed < sizes)).tolist():
        chosen = uniform_subset(int(sizes[group]), int(passed[group]), bits)
        indexes[starts[group] : starts[group] + passed[group]] = chosen
    # The order of groups is that of the weights, which are private.
    order = shuffled(len(groups), bits)
    return grouping.members(groups[order], indexes[order])
