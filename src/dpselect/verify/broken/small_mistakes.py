"""Mechanisms and figures that are wrong by little: 5 % of a rate, one rounding step, one signal, one factor."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from dpselect.mechanisms import Canonical, Gaussian, Joint, OneShot, Peeling
from dpselect.mechanisms.canonical import Geometry
from dpselect.mechanisms.limited import LimitedDomain
from dpselect.mechanisms.restricted import Restricted
from dpselect.mechanisms.top_stable import TopStable
from dpselect.multiselect.account import Account
from dpselect.multiselect.noise import DistanceGuarantee, GridNoise
from dpselect.multiselect.ring import Ring
from dpselect.privacy import Guarantee
from dpselect.privacy.calibration import guarantee_of_rounds, range_per_round
from dpselect.privacy.conversion import (
    epsilon_of_ranges,
    rate_of_oneshot_laplace,
    upper_bound,
)
from dpselect.ranking.bounds import Bounds
from dpselect.ranking.walk import Pairs, Walk, stationary, thinned
from dpselect.sampling import BitSource
from dpselect.scores import Members, Ranking, Scores


class FastSampler(Canonical):
    """Canonical with a sampler whose rate is 5 % too high; the law is right."""

    def geometry(self, ranking: Ranking) -> Geometry:
        right = super().geometry(ranking)
        faster = Fraction(21, 20)
        return replace(right, head_rate=right.head_rate * faster, tail_rate=right.tail_rate * faster)


class FastJoint(Joint):
    """Joint with a rate that is 5 % too high, in law and sampler."""

    @property
    def rate(self) -> Fraction:
        return super().rate * Fraction(21, 20)


class SlowOneShot(OneShot):
    """One-shot noise that is 5 % larger than the claim needs."""

    def rate(self, size: int) -> Fraction:
        return super().rate(size) * Fraction(19, 20)


class EarlyTests(Restricted):
    """Tests of which those that are drawn pass 0.05 units of noise too early."""

    @cached_property
    def _tests(self) -> tuple[Fraction, Fraction]:
        return self.rate(), self.height() - Fraction(1, 20)


class NarrowTests(TopStable):
    """Noise of scale 2w/ε on gaps, of which one that narrows and a threshold that shifts add up to 3w."""

    def rate(self) -> Fraction:
        return super().rate() * Fraction(3, 2)


class FirstMember(OneShot):
    """A win of a group of ties that always goes to one of its first four members."""

    def draw(self, scores: Scores, bits: BitSource) -> Members:
        chosen = super().draw(scores, bits)
        return Members(chosen.grouping, chosen.groups, chosen.indexes % 4)


class Unshuffled(OneShot):
    """A set that is listed from the highest true score to the lowest."""

    def draw(self, scores: Scores, bits: BitSource) -> Members:
        chosen = super().draw(scores, bits)
        order = np.argsort(-chosen.values)
        return Members(chosen.grouping, chosen.groups[order], chosen.indexes[order])


class OneMore(Account):
    """An account that lets the cost through that exceeds the budget."""

    def charge(self, cost: float) -> bool:
        with self._lock:
            allowed = self._budget is None or self._spent <= self._budget
            self._spent += Fraction(cost) if allowed else 0
            return allowed


class ThreeQuarters(Bounds):
    """A ranking's spread times ¾."""

    def spread(self, size: int) -> Fraction:
        return super().spread(size) * Fraction(3, 4)


class HalfRange(Peeling):
    """Rounds of permute-and-flip that state a range of ε₀."""

    @property
    def guarantee(self) -> Guarantee:
        share = self.per_round()
        return guarantee_of_rounds(self.epsilon, self.delta, self.k, share, share)


class OneRound(Peeling):
    """Rounds that state the ρ of one of them."""

    @property
    def guarantee(self) -> Guarantee:
        stated = super().guarantee
        return replace(stated, rho=(stated.rho or 0.0) / self.k)


class OneSided(Gaussian):
    """Normal noise for how far a score can rise, not for how far it can fall."""

    @property
    def sigma(self) -> float:
        return super().sigma * float(self.sensitivity.high / self.sensitivity.reach)


class DeltaTwice(LimitedDomain):
    """A dummy that takes all of δ, of which the rounds take half."""

    def lead(self) -> Fraction:
        return super().lead() - Fraction(7, 10) / self.rate()


class NarrowGrid(GridNoise):
    """Noise on a grid that is 5 % too small, and distances rounded down."""

    @property
    def scale(self) -> Fraction:
        return super().scale * Fraction(19, 20)

    @property
    def guarantee(self) -> DistanceGuarantee:
        return RoundedDown(self.epsilon, self.step)


class RoundedDown(DistanceGuarantee):
    """A guarantee that leaves a part of a step out."""

    def loss(self, distance: float) -> float:
        return super().loss(distance) if distance % self.step == 0 else super().loss(max(distance - self.step, 0))


class PeakedRing(Ring):
    """Noise on a ring that falls 5 % faster than stated."""

    @property
    def rate(self) -> Fraction:
        return super().rate * Fraction(21, 20)


def one_more(counts: Any, groups: Any, capacity: int, bits: BitSource) -> Any:
    """Keep one comparison more than the cap allows."""
    return thinned(counts, groups, capacity + 1, bits)


def uncapped(pairs: Pairs, bounds: Bounds, bits: BitSource) -> Walk:
    """Return the walk of all units of an item."""
    wide = Walk.of(pairs, Bounds(bounds.comparisons_per_pair, pairs.size), bits)
    return replace(wide, denominator=bounds.units(pairs.size))


def early_end(walk: Walk, bounds: Bounds) -> Any:
    """Stop the walk when its error is still a hundred times the tolerance."""
    found = stationary(walk, bounds)
    return found + np.array([50.0, -50.0]) * float(bounds.tolerance(walk.size))


class BeyondTheorem(OneShot):
    """Laplace noise by its theorem, also for an ε and a δ that the theorem does not cover."""

    def rate(self, size: int) -> Fraction:
        share = rate_of_oneshot_laplace(Fraction(self.epsilon), Fraction(self.delta), self.k, size)
        return max(share, Fraction(self.epsilon) / self.k) / Fraction(self.sensitivity.spread)


class InnerForgotten(Restricted):
    """Tests that state no δ but their own."""

    @property
    def guarantee(self) -> Guarantee:
        return Guarantee(super().guarantee.epsilon, self.test_delta)


def biased(high: int, bits: BitSource) -> int:
    """Return a random number modulo the range."""
    return int(bits.integers(1, high.bit_length())[0]) % high


def halved_azuma(mean: Fraction, squares: Fraction, delta: Fraction) -> float:
    """Return the ε of rounds with ¼ in place of ½ in Azuma's term."""
    return epsilon_of_ranges(mean, squares / 2, delta)


def per_round_of_range(epsilon: float, delta: float, k: int, noise: str) -> Fraction:
    """Return what a round of gumbel noise may cost, whatever the noise."""
    return range_per_round(epsilon, delta, k)


def nearest(formula: Callable[[], Any], smallest: Fraction) -> float:
    """Return a bound from above without its last rounding step."""
    return math.nextafter(upper_bound(formula, smallest), 0)
