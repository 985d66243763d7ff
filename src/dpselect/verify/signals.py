"""Multi-selection under test: what a client sends, as a mechanism whose only score is a private position."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpselect.multiselect.client import Client
from dpselect.multiselect.grid import GridNoise
from dpselect.privacy import Guarantee, Sensitivity
from dpselect.scores import Scores
from dpselect.verify import vectors
from dpselect.verify.domain import Domain
from dpselect.verify.privacy import Subject

NAME = "multiselect"


@dataclass(frozen=True, kw_only=True)
class Signals:
    """The signals that a user who stays at one position sends, k of them, of which the budget pays for `drawn`.

    Outcomes are tuples of grid points. Those beyond `low` or `high` are shown as that bound; beyond all positions every
    grid point has the same privacy loss as the bound. Neighbours are positions at most `distance` apart.
    """

    name: ClassVar[str] = NAME
    noise: ClassVar[str] = "geometric"
    ordered: ClassVar[bool] = True
    low: ClassVar[int] = -8
    high: ClassVar[int] = 16

    epsilon: float
    step: float
    distance: float = 1.0
    k: int = 1
    drawn: int = 1

    @property
    def sensitivity(self) -> Sensitivity:
        """How far the position moves between neighbours."""
        return Sensitivity(-self.distance, self.distance)

    @property
    def guarantee(self) -> Guarantee:
        """What all signals together claim for neighbours."""
        loss = Fraction(GridNoise(self.epsilon, self.step).guarantee.loss(self.distance))
        return Guarantee(float(self.drawn * loss), protects="one position", neighbours="positions nearby")

    def law(self, scores: Any) -> dict[Any, float]:
        """Return the probability of every list of signals: the drawn ones, and the last of them again and again."""
        [value] = Scores.of(scores).exact()
        single = self.single_law(value)
        law: dict[Any, float] = {}
        for signals in product(single, repeat=self.drawn):
            sent = (*signals, *[signals[-1]] * (self.k - self.drawn))
            law[sent] = float(np.prod([single[signal] for signal in signals]))
        return law

    def single_law(self, value: Any) -> dict[Any, float]:
        """Return the law of one signal, as grid points."""
        return GridNoise(self.epsilon, self.step).law(value, self.low, self.high)

    def select(self, scores: Any, *, seed: int | None = None) -> NDArray[Any]:
        """Let a client send the signals."""
        [value] = Scores.of(scores).exact()
        client = Client(self.epsilon, self.step, budget=self.drawn * self.epsilon, seed=seed)
        places = [round(client.signal(value) / self.step) for _ in range(self.k)]
        return np.clip(places, self.low, self.high)


def _line(distance: float, by: float, highest: float = 2) -> Domain:
    return Domain(1, highest, Sensitivity(-distance, distance), step=by)


PAIRS: list[tuple[Signals, Domain]] = [
    (Signals(epsilon=1.0, step=0.5), _line(1, 0.125)),
    (Signals(epsilon=0.5, step=1.0, k=4, drawn=2), _line(1, 0.25)),
    (Signals(epsilon=2.0, step=0.25, distance=0.125), _line(0.125, 0.0625)),
    (Signals(epsilon=1.0, step=0.75), _line(1, 0.125)),
    (Signals(epsilon=0.25, step=0.5, distance=2.0, k=3, drawn=1), _line(2, 0.125)),
]
"""Positions on and between grid points, distances that are whole steps and that are not, memory and none."""

SAMPLES: list[tuple[Signals, list[float]]] = [
    (Signals(epsilon=1.0, step=0.5), [1.3125]),
    (Signals(epsilon=0.5, step=1.0, k=3, drawn=2), [2]),
]


def signal_pairs(name: str | None, quick: bool) -> list[tuple[Subject, Domain]]:
    """Return clients and domains to check: positions on a line, then vectors and positions on a ring."""
    most = 2 if quick else None
    return [*PAIRS[:most], *vectors.PAIRS[:most]] if name in (None, NAME) else []


def signal_samples(name: str | None) -> list[tuple[Subject, list[float]]]:
    """Return clients and positions to draw for."""
    return [*SAMPLES, *vectors.SAMPLES] if name in (None, NAME) else []
