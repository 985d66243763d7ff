"""Noise distributions for the broken corpus: one that the proofs do not cover, one that they cover for sets only."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dpselect._arrays import FloatArray
from dpselect.sampling.laws import Distribution
from dpselect.sampling.noise import NOISES


@dataclass(frozen=True)
class Law:
    """A distribution that is known by its law only: no one draws from it."""

    name: str
    cdf: Callable[[FloatArray], FloatArray]
    survival: Callable[[FloatArray], FloatArray]
    density: Callable[[FloatArray], FloatArray]
    kinks: tuple[float, ...] = ()


MINIMUM = Law(
    "minimum",
    cdf=lambda z: -np.expm1(-np.exp(z)),
    survival=lambda z: np.exp(-np.exp(z)),
    density=lambda z: np.exp(z - np.exp(z)),
)
"""The extreme-value law of minima, −Gumbel: its log survival −e^z is not Lipschitz."""

_START, _END, _LOW = 1.0, 3.0, 0.01


def _hazard(z: FloatArray) -> FloatArray:
    return np.where(z < 0, 0.0, np.where((z < _START) | (z >= _END), 1.0, _LOW))


def _total_hazard(z: FloatArray) -> FloatArray:
    low_part = np.clip(z, _START, _END) - _START
    total: FloatArray = np.maximum(z, 0.0) - (1.0 - _LOW) * low_part
    return total


STEPS = Law(
    "steps",
    cdf=lambda z: -np.expm1(-_total_hazard(z)),
    survival=lambda z: np.exp(-_total_hazard(z)),
    density=lambda z: _hazard(z) * np.exp(-_total_hazard(z)),
    kinks=(0.0, _START, _END),
)
"""Hazard 1, then 0.01 between 1 and 3, then 1: log(1 − F) is 1-Lipschitz, but the density falls by a factor 100."""

EVERY_NOISE: dict[str, Distribution] = {**NOISES, MINIMUM.name: MINIMUM, STEPS.name: STEPS}
