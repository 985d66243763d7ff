"""Broken twins of multi-selection and of rankings."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np

from dpselect.multiselect.client import Client
from dpselect.multiselect.features import FeatureClient
from dpselect.multiselect.noise import GridNoise
from dpselect.multiselect.ring import ring_law
from dpselect.multiselect.vectors import GaussianVectorNoise, VectorNoise
from dpselect.privacy import Sensitivity
from dpselect.ranking.bounds import Bounds
from dpselect.sampling import SeededBits
from dpselect.sampling.discrete import discrete_laplace
from dpselect.scores import Scores
from dpselect.verify.broken.base import Altered, Law, Twin, by_privacy, by_sampler
from dpselect.verify.domain import Domain
from dpselect.verify.privacy import Subject
from dpselect.verify.ranking import Ranked, Units, comparisons_of
from dpselect.verify.signals import (
    TWO_PEAKS,
    GaussianSignals,
    MovingSignals,
    RingSignals,
    Signals,
    VectorSignals,
    floats,
    positions_of,
)

STEP = 0.5
ONE = Signals(epsilon=1.0, step=STEP)
REUSED = Signals(epsilon=1.0, step=STEP, k=2, reuse=True)
MOVING = MovingSignals(epsilon=1.0, step=STEP, distance=0.5, k=3, drawn=2)
FEATURES = VectorSignals(epsilon=1.0, step=STEP)
GAUSSIAN = GaussianSignals(epsilon=2.0, delta=0.01, step=STEP)
RING = RingSignals(epsilon=1.0, heights=TWO_PEAKS)


def _clipped(place: int) -> int:
    return min(max(place, Signals.low), Signals.high)


def wrong_ratio(scores: Any) -> dict[Any, float]:
    """Return noise with the ratio exp(−ε) per step in place of exp(−ε r)."""
    [value] = Scores.of(scores).exact()
    steep = GridNoise(2 * ONE.epsilon, STEP)
    return {(place,): mass for place, mass in steep.law(value, Signals.low, Signals.high).items()}


def position_not_rounded(scores: Any) -> dict[Any, float]:
    """Add noise on the grid to a position off the grid: the remainder shows."""
    [value] = Scores.of(scores).exact()
    remainder = value - Fraction(STEP) * GridNoise(ONE.epsilon, STEP).nearest(value)
    return {(STEP * place + float(remainder),): mass for place, mass in ONE.single_law(value).items()}


def float_noise(scores: Any) -> dict[Any, float]:
    """Add Laplace noise `±log(U)/ε` in floating point: which floats can come out depends on the position.

    U is one of 64 numbers here, so that the law can be listed; with 2⁵³ of them the holes are finer, not fewer.
    """
    [value] = Scores.of(scores).exact()
    law: dict[Any, float] = {}
    for number, sign in product(range(1, 65), (1, -1)):
        sent = float(value) + sign * math.log(number / 64) / ONE.epsilon
        law[(sent,)] = law.get((sent,), 0.0) + 1 / 128
    return law


def one_noise_for_all(scores: Any) -> dict[Any, float]:
    """Add the same noise to both features: their difference shows."""
    values = floats(scores)
    noise = VectorNoise(FEATURES.epsilon, 2, STEP)
    first, second = noise.nearest(values)
    single = noise.single.law(values[0], VectorSignals.low, VectorSignals.high)
    return {(place, place + second - first): mass for place, mass in single.items()}


def noise_of_one_feature(scores: Any) -> dict[Any, float]:
    """Return Gaussian noise for the largest change of one feature, not of both."""
    added = GAUSSIAN.added
    narrow = replace_rho(added, 2 * added.rho)
    return dict(narrow.law(floats(scores), GAUSSIAN.low, GAUSSIAN.high))


def replace_rho(noise: GaussianVectorNoise, rho: float) -> GaussianVectorNoise:
    """Return Gaussian noise with another ρ than its ε and δ allow."""
    wrong = GaussianVectorNoise(noise.epsilon, noise.delta, noise.dimensions, noise.step)
    object.__setattr__(wrong, "rho", rho)
    return wrong


def row_left_out(scores: Any) -> dict[Any, float]:
    """Return ring noise of a linear program that lacks one row: the height jumps by 2 there."""
    ring = RING.ring
    jumping = np.array([*TWO_PEAKS[:3], TWO_PEAKS[3] + 1, TWO_PEAKS[4] + 1, *TWO_PEAKS[5:]])
    place = ring.place_of(floats(scores)[0])
    masses = ring_law(jumping, float(ring.rate))
    return {((place - y) % ring.places,): float(mass) for y, mass in enumerate(masses)}


def features_swapped(scores: Any, seed: int | None) -> Any:
    """Send the two features in the wrong order."""
    signal = FeatureClient(4.0, 2, grid=STEP, seed=seed).signal(floats(scores)[::-1])
    return np.clip(np.round(signal / STEP).astype(np.int64), VectorSignals.low, VectorSignals.high)


def never_rejected(scores: Any, seed: int | None) -> Any:
    """Send the proposals of the Gaussian sampler, which are Laplace draws, without rejecting any."""
    bits, noise = SeededBits(0 if seed is None else seed), GAUSSIAN.added
    scale = Fraction(math.isqrt(int(noise.single.variance)) + 1)
    places = [place + discrete_laplace(scale, bits) for place in noise.nearest(floats(scores))]
    return np.clip(places, GAUSSIAN.low, GAUSSIAN.high)


def zero_twice(scores: Any, seed: int | None) -> Any:
    """Draw a magnitude and a sign, and keep both +0 and −0, so that zero noise is too likely."""
    [value] = Scores.of(scores).exact()
    bits = SeededBits(0 if seed is None else seed)
    noise = GridNoise(ONE.epsilon, STEP)
    magnitude = discrete_laplace(noise.scale, bits)
    while magnitude < 0:
        # Given its sign, the magnitude is geometric; 0 keeps its full probability here.
        magnitude = discrete_laplace(noise.scale, bits)
    sign = -1 if int(bits.integers(1, 1)[0]) else 1
    return [_clipped(noise.nearest(value) + sign * magnitude)]


def same_noise(scores: Any, seed: int | None) -> Any:
    """Use one noise for all positions of a session: the difference of two signals is that of the positions."""
    [value] = Scores.of(scores).exact()
    place = _clipped(round(Client(ONE.epsilon, STEP, seed=seed).signal(value) / STEP))
    return [place, place]


def _signals(name: str, flaw: str, sound: Subject, law: Law, domain: Domain) -> Twin:
    return by_privacy(name, flaw, Altered(sound=sound, wrong_law=law), sound, domain=domain)


LINE = positions_of(1, 1, 0.125, 2)
PLANE = positions_of(2, 1, 0.5, 1)

SIGNALS = [
    _signals("wrong ratio", "the step is left out of the ratio", ONE, wrong_ratio, LINE),
    _signals("position not rounded", "noise is added to the position as it is", ONE, position_not_rounded, LINE),
    _signals("floating-point noise", "noise and sum are floats off any grid", ONE, float_noise, LINE),
    _signals("one noise for all features", "the features share one noise", FEATURES, one_noise_for_all, PLANE),
    _signals(
        "noise for Euclidean distances",
        "the noise is smaller by the root of the number of features",
        FEATURES,
        replace(FEATURES, epsilon=FEATURES.epsilon * math.sqrt(2)).law,
        PLANE,
    ),
    _signals(
        "Gaussian noise of one feature",
        "the noise allows for a change of one feature only",
        GAUSSIAN,
        noise_of_one_feature,
        positions_of(2, 0.5, 0.5, 0.5),
    ),
    _signals(
        "row of the program left out",
        "two neighbouring places are not compared",
        RING,
        row_left_out,
        positions_of(1, 1, 0.5, 5.5),
    ),
    by_sampler(
        "features swapped",
        "the two noisy features change places",
        features_swapped,
        replace(FEATURES, epsilon=4.0),
        (1.0, 0.5),
        draws=500,
    ),
    by_sampler(
        "Gaussian proposals",
        "proposals of the Gaussian sampler are all accepted",
        never_rejected,
        GAUSSIAN,
        (0.0, 0.5),
        draws=1000,
    ),
    _signals(
        "memory forgotten",
        "every signal gets new noise although the budget pays for one",
        REUSED,
        replace(REUSED, drawn=2).law,
        positions_of(1, 1, 0.5, 1),
    ),
    _signals(
        "reuse without its premise",
        "the user moves, and only earlier places are answered after the budget is spent",
        MOVING,
        replace(MOVING, reuse=True).law,
        positions_of(3, 0.5, 0.5, 1),
    ),
    by_sampler(
        "zero counted twice", "minus zero is kept instead of being drawn again", zero_twice, ONE, (1.0,), draws=1000
    ),
    by_sampler(
        "noise drawn once", "two signals share one noise", same_noise, replace(ONE, k=2, drawn=2), (1.0,), draws=500
    ),
]


class PromisedRho(Ranked):
    """The published form with ρ = ½ on graphs that may be disconnected: τ₁ is 1, and a vote moves a third of π."""

    @property
    def bounds(self) -> Bounds:
        return replace(super().bounds, promised_rho=0.5)


class DividedByPair(Ranked):
    """Wins divided by the comparisons that a pair happens to have: with one of them a single vote is worth L."""

    def kept(self, size: int, results: Sequence[Units]) -> dict[Units, Fraction]:
        most = self.comparisons_per_pair
        law: dict[Units, Fraction] = {}
        for units, mass in super().kept(size, results).items():
            pairs = [units[start : start + 2] for start in range(0, len(units), 2)]
            shares = tuple(2 * most * part // max(sum(pair), 1) for pair in pairs for part in pair)
            law[shares] = law.get(shares, Fraction(0)) + mass
        return law


class RoundedScores(Ranked):
    """Scores with an error of up to 0.05, which the sensitivity does not include."""

    def scores(self, size: int, units: Units) -> list[float]:
        return [round(score, 1) for score in super().scores(size, units)]


def _ranking(name: str, flaw: str, kind: type[Ranked], most: int, domain: Domain, sound_votes: int = 1) -> Twin:
    """Return the twin of a ranking of three items with at most `most` comparisons per pair."""
    broken, sound = (
        each(k=1, epsilon=1.0, comparisons_per_pair=most, max_degree=2, damping=0.9, votes=votes)
        for each, votes in ((kind, 1), (Ranked, sound_votes))
    )
    return by_privacy(name, flaw, broken, sound, noise="exponential", domain=domain)


RANKINGS = [
    _ranking(
        "promise not kept",
        "noise for a walk with rho = 0.5, on data that have none",
        PromisedRho,
        8,
        comparisons_of(3, 1),
    ),
    _ranking(
        "votes not capped",
        "people with several votes keep them all, the noise is for one",
        Ranked,
        8,
        Domain(6, 1, Sensitivity(0, 3), items_per_person=1),
        sound_votes=3,
    ),
    _ranking(
        "denominator from the data",
        "wins are divided by the comparisons that a pair has, not by L",
        DividedByPair,
        4,
        comparisons_of(3, 1),
    ),
    _ranking(
        "error not added",
        "scores are kept to one digit, the error is left out of the sensitivity",
        RoundedScores,
        2,
        comparisons_of(3, 2),
    ),
]

TWINS = [*SIGNALS, *RANKINGS]
