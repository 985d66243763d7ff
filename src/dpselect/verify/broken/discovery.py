"""Broken twins of discovery, which publishes which items exist."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, partial
from typing import Any

import numpy as np

from dpselect._arrays import Array
from dpselect.mechanisms import OneShot
from dpselect.mechanisms.discovered import Discovered
from dpselect.mechanisms.discovery import Discovery
from dpselect.privacy import Guarantee
from dpselect.privacy.calibration import unit_sigma
from dpselect.scores import Scores
from dpselect.verify.broken.base import Twin, by_privacy, by_sampler
from dpselect.verify.discovery import SAMPLED, SAMPLES, Listing, People, few_people, own_items, threshold_words
from dpselect.verify.domain import Chosen
from dpselect.verify.privacy import check_privacy, shared_privacy_check


@dataclass(frozen=True, kw_only=True)
class WholeWeights(Listing):
    """Every item of a person gets the weight 1, however many there are."""

    def weight(self, items: int) -> int:
        """Return U."""
        return self.units


@dataclass(frozen=True, kw_only=True)
class WeightsRoundedUp(Listing):
    """Weights are rounded up on a grid of ½."""

    def weight(self, items: int) -> int:
        """Return `⌈2/√n⌉/2`, in units."""
        return math.ceil(2 / math.sqrt(items)) * self.units // 2


@dataclass(frozen=True, kw_only=True)
class SingleItemThreshold(Listing):
    """The threshold is that of a person with one own item."""

    @cached_property
    def threshold(self) -> int:
        """Return the threshold for m = 1."""
        return _threshold_of_one(self)


@dataclass(frozen=True, kw_only=True)
class SingleItemCalibration(Discovery):
    """The same mistake, for the exact check."""

    @cached_property
    def threshold(self) -> int:
        """Return the threshold for m = 1."""
        return _threshold_of_one(self)


def _threshold_of_one(mechanism: Discovery) -> int:
    single = Discovery(epsilon=mechanism.epsilon, delta=mechanism.delta, max_items_per_person=1)
    return math.ceil(Fraction(single.threshold, single.units) * mechanism.units)


@dataclass(frozen=True, kw_only=True)
class HalfTheNorm(Listing):
    """The noise is that for weights of norm ½."""

    @property
    def sigma(self) -> float:
        """Return half of σ."""
        return unit_sigma(self.epsilon, self.delta / 2) / 2


@dataclass(frozen=True, kw_only=True)
class ThresholdOfPeople(Discovery):
    """The threshold is `at_least` itself, if that is larger, without a margin for the noise."""

    @cached_property
    def threshold(self) -> int:
        """Return the larger of the threshold and `at_least`."""
        plain = Discovery(epsilon=self.epsilon, delta=self.delta, max_items_per_person=self.max_items_per_person)
        return max(plain.threshold, self.at_least * self.units)


@dataclass(frozen=True, kw_only=True)
class SmallerNoise(Discovery):
    """The draws use a noise that is smaller by a millionth."""

    @cached_property
    def _scale(self) -> Fraction:
        return (1 + Fraction(1, 10**6)) / (Fraction(self.sigma) * self.units)


@dataclass(frozen=True, kw_only=True)
class SpentTwice(Discovered):
    """Both steps get the ε that is claimed for both together."""

    @property
    def guarantee(self) -> Guarantee:
        """Return the claim: the cost of the discovery alone."""
        return self.discovery.guarantee


def _spent_twice() -> Twin:
    found = Discovery(epsilon=2.0, delta=1e-3, max_items_per_person=3)
    broken = SpentTwice(inner=OneShot(k=1, epsilon=2.0), discovery=found)
    sound = Discovered(inner=OneShot(k=1, epsilon=1.0), discovery=replace(found, epsilon=1.0))
    near = Chosen(4, vectors=((13, 13, 13, 13),), items_per_person=3)
    flaw = "discovery and choice each spend the whole epsilon"
    return by_privacy("epsilon spent twice", flaw, broken, sound, noise="normal", domain=near)


def one_noise_for_ties(scores: Any, seed: int | None) -> Array:
    """List all items of a weight or none of them, in random order."""
    table = Scores.of(scores)
    distinct = Scores.from_histogram(table.values.tolist(), [1] * len(table.values))
    passed = set(table.values[SAMPLED.select(distinct, seed=seed)].tolist())
    listed = [place for place, weight in enumerate(table.exact()) if weight in passed]
    return np.random.default_rng(seed).permutation(listed)


def _twin(name: str, flaw: str, kind: type[Listing], delta: float, most: int, items: int, *leads: float) -> Twin:
    """Return a twin that the privacy check must reject, at ε = ½, with the weights that each gives to a person."""
    broken, sound = (each(epsilon=0.5, delta=delta, max_items_per_person=most, k=items) for each in (kind, Listing))
    return Twin(
        name,
        flaw,
        "normal",
        "privacy",
        partial(check_privacy, broken, People.around(broken, *leads)),
        partial(shared_privacy_check, sound, People.around(sound, *leads)),
        items,
    )


TWINS = [
    _twin("weight 1 for each item", "a person adds 1 to each item, not 1/√n", WholeWeights, 0.1, 3, 4, -1.0, -0.5),
    _twin(
        "weights rounded up",
        "1/√n is rounded up on a grid of ½, so that three items get weight 1",
        WeightsRoundedUp,
        0.05,
        3,
        3,
        -0.5,
        0.0,
    ),
    _twin(
        "threshold for one own item",
        "the threshold has its term for t = 1 only, though a person may have m own items",
        SingleItemThreshold,
        0.05,
        4,
        4,
        0.0,
    ),
    _twin("noise for half the norm", "the noise is that for weights of norm ½", HalfTheNorm, 0.05, 4, 4, -1.0, -0.5),
    _spent_twice(),
    by_sampler(
        "one noise for tied items",
        "items of equal weight share their noise",
        one_noise_for_ties,
        SAMPLED,
        tuple(SAMPLES[1][1]),
    ),
    Twin(
        "noise too small by a millionth",
        "σ is smaller by a millionth when items are drawn",
        "normal",
        "exact",
        partial(threshold_words, "discovery", SmallerNoise),
        partial(threshold_words, "discovery"),
    ),
    Twin(
        "threshold for one own item, all t",
        "the threshold has its term for t = 1 only",
        "normal",
        "exact",
        partial(own_items, "discovery", SingleItemCalibration),
        partial(own_items, "discovery"),
    ),
    Twin(
        "at least as a threshold",
        "the threshold is at_least itself, without a margin for the noise",
        "normal",
        "exact",
        partial(few_people, "discovery", ThresholdOfPeople),
        partial(few_people, "discovery"),
    ),
]
