"""The exact noise that a client adds to a feature vector, and its guarantee: two-sided geometric or discrete Gaussian.

Every coordinate is rounded to a public grid and gets noise of its own. The proofs are in features.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any, ClassVar

import numpy as np

from dpselect._arrays import FloatArray
from dpselect._format import shown_above
from dpselect._numbers import finite_number, positive_integer
from dpselect.errors import InvalidInput, plain
from dpselect.multiselect.noise import Grid, GridNoise, default_step
from dpselect.privacy.conversion import epsilon_of_zcdp, float_above, largest_rho
from dpselect.privacy.guarantee import probability_of_failure
from dpselect.sampling import BitSource
from dpselect.sampling.discrete import discrete_gaussian

GridPoint = tuple[int, ...]

LARGEST_FEATURE = 1e100
"""Larger numbers are refused: squares of distances between them might not be floats."""

VECTOR_NOISES = ("laplace", "gaussian")


@dataclass(frozen=True)
class VectorGuarantee:
    """ε-geographic differential privacy of vectors: ε per unit of ℓ1 distance.

    For vectors v and v' with grid step r, and for every set of signals S,
    `P[S | v] <= exp(ε r Σ_i ⌈|v_i − v'_i| / r⌉) · P[S | v']`: ε times the ℓ1 distance, with each coordinate rounded up
    to whole steps.
    """

    epsilon: float
    step: float
    dimensions: int

    delta = 0.0
    protects = "one feature vector"
    neighbours = "per unit of l1 distance"

    def loss(self, difference: Sequence[float]) -> float:
        """Return the largest privacy loss between two vectors with this difference, rounded up."""
        steps = sum(_whole_steps(difference, self.step, self.dimensions))
        return float_above(Fraction(self.epsilon) * Fraction(self.step) * steps)

    def to_dict(self) -> dict[str, Any]:
        """Return the guarantee as plain data."""
        names = ("epsilon", "delta", "protects", "neighbours", "step", "dimensions")
        return {name: getattr(self, name) for name in names}

    def __str__(self) -> str:
        """Return the guarantee in words."""
        epsilon = shown_above(self.epsilon)
        return (
            f"epsilon = {epsilon} per unit of l1 distance: protects {self.protects}; another at distance t changes the "
            f"probability of any signal by a factor of at most exp({epsilon} t), every coordinate rounded up to whole "
            f"steps of {self.step:g}"
        )


@dataclass(frozen=True)
class GaussianGuarantee:
    """(ε, δ)-differential privacy of vectors at Euclidean distance at most 1.

    For vectors v and v' with grid step r and `t² = r² Σ_i ⌈|v_i − v'_i| / r⌉²`, and for every set of signals S,
    `P[S | v] <= exp(ε_t) · P[S | v'] + δ` with `ε_t = loss(v − v')`, which is at most ε for t <= 1. The loss comes from
    ρ t²-zCDP, so it grows faster than t: there is no ε per unit of distance.
    """

    epsilon: float
    delta: float
    rho: float
    step: float
    dimensions: int

    protects = "one feature vector"
    neighbours = "Euclidean distance at most 1"

    def loss(self, difference: Sequence[float]) -> float:
        """Return an ε for two vectors with this difference, at the stated δ, rounded up."""
        steps = _whole_steps(difference, self.step, self.dimensions)
        square = Fraction(self.step) ** 2 * sum(count * count for count in steps)
        return epsilon_of_zcdp(Fraction(self.rho) * square, Fraction(self.delta)) if square else 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return the guarantee as plain data."""
        names = ("epsilon", "delta", "rho", "protects", "neighbours", "step", "dimensions")
        return {name: getattr(self, name) for name in names}

    def __str__(self) -> str:
        """Return the guarantee in words."""
        return (
            f"epsilon = {shown_above(self.epsilon)}, delta = {shown_above(self.delta)} for vectors at Euclidean "
            f"distance at most 1: protects {self.protects}; at distance t the signals are rho t^2-zCDP with rho = "
            f"{shown_above(self.rho)}, every coordinate rounded up to whole steps of {self.step:g}"
        )


class CoordinateNoise:
    """Independent noise on every coordinate; `single` is that of one coordinate."""

    epsilon: float
    dimensions: int
    step: float

    @property
    def single(self) -> Any:
        """The noise of one coordinate."""
        raise NotImplementedError

    def nearest(self, vector: Any) -> GridPoint:
        """Return the grid point nearest to a vector; no error shows the vector."""
        return tuple(self.single.nearest(part) for part in checked_vector("vector", vector, self.dimensions))

    def draw(self, places: GridPoint, bits: BitSource) -> GridPoint:
        """Return a grid point drawn from the law around another."""
        single = self.single
        return tuple(single.draw(place, bits) for place in places)

    def position(self, places: GridPoint) -> FloatArray:
        """Return the position of a grid point."""
        return np.array([self.single.position(place) for place in places])

    def law(self, vector: Any, low: int, high: int) -> dict[GridPoint, float]:
        """Return the product of the laws of the coordinates, each cut to low..high as in `GridNoise.law`."""
        laws = [self.single.law(part, low, high) for part in vector]
        return {
            places: math.prod(law[place] for law, place in zip(laws, places, strict=True))
            for places in product(range(low, high + 1), repeat=self.dimensions)
        }


@dataclass(frozen=True)
class VectorNoise(CoordinateNoise):
    """Independent two-sided geometric noise on every coordinate, each on the multiples of a public step (noise.md)."""

    kind: ClassVar[str] = "laplace"

    epsilon: float
    dimensions: int
    step: float

    def __init__(self, epsilon: float, dimensions: int, step: float | None = None) -> None:
        single = GridNoise(epsilon, step)
        object.__setattr__(self, "epsilon", single.epsilon)
        object.__setattr__(self, "dimensions", positive_integer("dimensions", dimensions))
        object.__setattr__(self, "step", single.step)

    @property
    def single(self) -> GridNoise:
        """The noise of one coordinate."""
        return GridNoise(self.epsilon, self.step)

    @property
    def rate(self) -> float:
        """The inverse of the scale of the noise, ε."""
        return self.epsilon

    @property
    def guarantee(self) -> VectorGuarantee:
        """The guarantee of one signal; it depends on no vector."""
        return VectorGuarantee(self.epsilon, self.step, self.dimensions)


@dataclass(frozen=True)
class GaussianVectorNoise(CoordinateNoise):
    """Independent discrete Gaussian noise of y grid steps on every coordinate, `P[y] ∝ exp(−(r y)² / (2σ²))`.

    `σ² = 1/(2ρ)`, with ρ the largest for which ρ-zCDP implies (ε, δ), rounded down. Two grid points at Euclidean
    distance t have signals that are ρ t²-zCDP.
    """

    kind: ClassVar[str] = "gaussian"

    epsilon: float
    delta: float
    dimensions: int
    step: float
    rho: float

    def __init__(self, epsilon: float, delta: float, dimensions: int, step: float | None = None) -> None:
        # The checks of ε and of the step are those of the other noise.
        checked = GridNoise(epsilon, step)
        object.__setattr__(self, "epsilon", checked.epsilon)
        object.__setattr__(self, "delta", probability_of_failure(delta))
        if not self.delta:
            raise InvalidInput("delta", delta, "must be above 0; Gaussian noise has no pure guarantee")
        object.__setattr__(self, "dimensions", positive_integer("dimensions", dimensions))
        object.__setattr__(self, "rho", largest_rho(self.epsilon, self.delta))
        if not 1e-300 < self.rho < 1e300:
            raise InvalidInput("epsilon", epsilon, "must be nearer to 1; no float holds the noise for it and delta")
        object.__setattr__(self, "step", default_step(self.rate) if step is None else checked.step)

    @property
    def single(self) -> GaussianGridNoise:
        """The noise of one coordinate."""
        return GaussianGridNoise(self.step, self.rho)

    @property
    def rate(self) -> float:
        """The inverse of the standard deviation of the noise, 1/σ."""
        return math.sqrt(2 * self.rho)

    @property
    def guarantee(self) -> GaussianGuarantee:
        """The guarantee of one signal; it depends on no vector."""
        return GaussianGuarantee(self.epsilon, self.delta, self.rho, self.step, self.dimensions)


@dataclass(frozen=True)
class GaussianGridNoise(Grid):
    """Discrete Gaussian noise on the multiples of a public step r, of variance σ²/r² in steps with `σ² = 1/(2ρ)`."""

    step: float
    rho: float

    @property
    def variance(self) -> Fraction:
        """The parameter σ² of the noise in squared steps."""
        return 1 / (2 * Fraction(self.rho) * Fraction(self.step) ** 2)

    def draw(self, place: int, bits: BitSource) -> int:
        """Return a grid point drawn from the law around another."""
        return place + discrete_gaussian(self.variance, bits)

    def law(self, value: Any, low: int, high: int) -> dict[int, float]:
        """Return the probability of each grid point from low to high; points beyond an end are counted at that end."""
        centre, variance = self.nearest(value), float(self.variance)
        # Terms beyond 40 standard deviations are zero in floating point.
        reach = math.ceil(40 * math.sqrt(variance)) + abs(centre) + max(abs(low), abs(high))
        weights = {
            y: math.exp(-((y - centre) ** 2) / (2 * variance)) for y in range(centre - reach, centre + reach + 1)
        }
        total = math.fsum(weights.values())
        law = {place: weights[place] / total for place in range(low + 1, high)}
        below = math.fsum(weight for y, weight in weights.items() if y <= low) / total
        above = math.fsum(weight for y, weight in weights.items() if y >= high) / total
        return {low: below, **law, high: above}


def vector_noise(
    noise: str, epsilon: float, dimensions: int, step: float | None, delta: float
) -> VectorNoise | GaussianVectorNoise:
    """Return the noise of a name, "laplace" (pure) or "gaussian" (with a delta)."""
    if noise not in VECTOR_NOISES:
        raise InvalidInput("noise", noise, f"must be {' or '.join(VECTOR_NOISES)}")
    if noise == "gaussian":
        return GaussianVectorNoise(epsilon, delta, dimensions, step)
    if probability_of_failure(delta):
        raise InvalidInput(
            "delta", delta, "must be 0 with Laplace noise, which needs none; or ask for noise='gaussian'"
        )
    return VectorNoise(epsilon, dimensions, step)


def checked_vector(argument: str, vector: Any, dimensions: int) -> FloatArray:
    """Return a copy of a vector with numbers within ±LARGEST_FEATURE; no error shows what it holds."""
    numbers = floats_or_nan(vector)
    if numbers.shape != (dimensions,) or not (np.abs(numbers) <= LARGEST_FEATURE).all():
        requirement = f"must be {dimensions} finite numbers within ±{LARGEST_FEATURE:g}"
        raise InvalidInput(argument, plain("something else (not shown)"), requirement)
    return numbers


def floats_or_nan(given: Any) -> FloatArray:
    """Return a copy as floats; a single NaN if it holds something else."""
    try:
        return np.array(given, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        return np.array(math.nan)


def _whole_steps(difference: Sequence[float], step: float, dimensions: int) -> list[int]:
    """Return the steps between two vectors in each coordinate, rounded up to whole ones."""
    if len(difference) != dimensions:
        given = plain(f"{len(difference)} numbers")
        raise InvalidInput("difference", given, f"must be {dimensions} numbers, one for each coordinate")
    exact = Fraction(step)
    return [math.ceil(abs(Fraction(finite_number("difference", part))) / exact) for part in difference]
