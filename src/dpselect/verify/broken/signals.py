"""Broken twins of the client of multi-selection."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from typing import Any

from dpselect.multiselect.client import Client
from dpselect.multiselect.noise import GridNoise
from dpselect.privacy import Guarantee, Sensitivity
from dpselect.sampling import SeededBits
from dpselect.sampling.discrete import discrete_laplace
from dpselect.scores import Scores
from dpselect.verify.broken.base import Broken
from dpselect.verify.domain import Domain
from dpselect.verify.signals import MovingSignals, Signals

BOTH_WAYS = Sensitivity(-1, 1)
HALF_A_UNIT = Sensitivity(-0.5, 0.5)


@dataclass(frozen=True, kw_only=True)
class BrokenSignals(Broken):
    """A client with one mistake, which claims what the sound one claims, on a grid of half units."""

    ordered = True
    noise: str = "geometric"
    sensitivity: Sensitivity = BOTH_WAYS
    shown_on = (1.0,)

    @property
    def sound(self) -> Signals:
        return Signals(epsilon=self.epsilon, step=0.5, k=self.k)

    @property
    def domain(self) -> Domain:
        return Domain(1, 2, self.sensitivity, step=0.125)

    @property
    def guarantee(self) -> Guarantee:
        return self.sound.guarantee

    def law(self, scores: Any) -> dict[Any, float]:
        return self.sound.law(scores)


@dataclass(frozen=True, kw_only=True)
class WrongRatio(BrokenSignals):
    """Noise for a unit of distance per step: the ratio is exp(−ε) in place of exp(−ε r)."""

    name = "wrong ratio"
    flaw = "the step is left out of the ratio"

    def law(self, scores: Any) -> dict[Any, float]:
        [value] = Scores.of(scores).exact()
        steep = GridNoise(2 * self.epsilon, 0.5)
        return {(place,): chance for place, chance in steep.law(value, Signals.low, Signals.high).items()}


@dataclass(frozen=True, kw_only=True)
class UnroundedPosition(BrokenSignals):
    """Noise on the grid added to a position that is not on it: the remainder shows."""

    name = "position not rounded"
    flaw = "noise is added to the position as it is"

    def law(self, scores: Any) -> dict[Any, float]:
        [value] = Scores.of(scores).exact()
        sound = self.sound.single_law(value)
        remainder = value - Fraction(0.5) * GridNoise(self.epsilon, 0.5).nearest(value)
        return {(0.5 * place + float(remainder),): chance for place, chance in sound.items()}


@dataclass(frozen=True, kw_only=True)
class FloatNoise(BrokenSignals):
    """Laplace noise as `±log(U)/ε` in floating point: which floats can come out depends on the position.

    U is one of 64 numbers here, so that the law can be listed; with 2⁵³ of them the holes are finer, not fewer.
    """

    name = "floating-point noise"
    flaw = "noise and sum are floats off any grid"

    def law(self, scores: Any) -> dict[Any, float]:
        [value] = Scores.of(scores).exact()
        law: dict[Any, float] = {}
        for number, sign in product(range(1, 65), (1, -1)):
            sent = float(value) + sign * math.log(number / 64) / self.epsilon
            law[(sent,)] = law.get((sent,), 0.0) + 1 / 128
        return law


@dataclass(frozen=True, kw_only=True)
class ForgottenMemory(BrokenSignals):
    """Fresh noise for every signal after the budget is gone: many of them average out."""

    name = "memory forgotten"
    flaw = "every signal gets new noise although the budget pays for one"

    @property
    def sound(self) -> Signals:
        return Signals(epsilon=self.epsilon, step=0.5, k=self.k, reuse=True)

    def law(self, scores: Any) -> dict[Any, float]:
        return replace(self.sound, drawn=self.k).law(scores)

    @property
    def domain(self) -> Domain:
        return Domain(1, 1, self.sensitivity, step=0.5)


@dataclass(frozen=True, kw_only=True)
class PremiseForgotten(BrokenSignals):
    """Signals sent again at earlier places, with the claim for users who move: a refusal shows a new place."""

    name = "reuse without its premise"
    flaw = "the user moves, and only earlier places are answered after the budget is spent"
    noise: str = "geometric, moving user"
    places_are_items = False
    sensitivity: Sensitivity = HALF_A_UNIT

    @property
    def sound(self) -> MovingSignals:
        return MovingSignals(epsilon=self.epsilon, step=0.5, distance=0.5, k=self.k, drawn=self.k - 1)

    def law(self, scores: Any) -> dict[Any, float]:
        return replace(self.sound, reuse=True).law(scores)

    @property
    def domain(self) -> Domain:
        return Domain(self.k, 1, self.sensitivity, step=0.5)


@dataclass(frozen=True, kw_only=True)
class ZeroTwice(BrokenSignals):
    """A magnitude with a random sign where +0 and −0 are both kept, so that no noise is too likely."""

    name = "zero counted twice"
    flaw = "minus zero is kept instead of being drawn again"
    rejected_by = "sampler"

    def select(self, scores: Any, *, seed: int | None = None) -> Any:
        [value] = Scores.of(scores).exact()
        bits = SeededBits(0 if seed is None else seed)
        noise = GridNoise(self.epsilon, 0.5)
        drawn = discrete_laplace(noise.scale, bits)
        while drawn < 0:
            # Given a sign, the magnitude is geometric: one-sided draws are kept, 0 among them with its full share.
            drawn = discrete_laplace(noise.scale, bits)
        sign = -1 if int(bits.integers(1, 1)[0]) else 1
        place = noise.nearest(value) + sign * drawn
        return [min(max(place, Signals.low), Signals.high)]


@dataclass(frozen=True, kw_only=True)
class SameNoise(BrokenSignals):
    """One noise for all positions of a session: the difference of two signals is that of the positions."""

    name = "noise drawn once"
    flaw = "two signals share one noise"
    rejected_by = "sampler"
    shown_on = (1.0,)

    @property
    def sound(self) -> Signals:
        return Signals(epsilon=self.epsilon, step=0.5, k=2, drawn=2)

    def select(self, scores: Any, *, seed: int | None = None) -> Any:
        [value] = Scores.of(scores).exact()
        client = Client(self.epsilon, 0.5, seed=seed)
        place = min(max(round(client.signal(value) / 0.5), Signals.low), Signals.high)
        return [place, place]
