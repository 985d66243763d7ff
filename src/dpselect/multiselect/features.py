"""Multi-selection with feature vectors, the user's side: noise on every coordinate, ε per unit of ℓ1 distance.

The server's side is in feature_server.py; the proofs of both are in features.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np

from dpselect._arrays import FloatArray
from dpselect._format import shown_above
from dpselect._numbers import finite_number, positive_integer, seed_or_none
from dpselect.errors import BudgetExceeded, InvalidInput, plain
from dpselect.multiselect.account import Account
from dpselect.multiselect.grid import GridNoise
from dpselect.privacy.conversion import float_above
from dpselect.sampling import BitSource, bit_source

Places = tuple[int, ...]

FARTHEST = 1e100
"""Numbers beyond this are refused: squares of distances between them might not be floats."""


@dataclass(frozen=True)
class VectorGuarantee:
    """ε-geographic differential privacy of vectors: ε per unit of ℓ1 distance.

    For vectors v and v' with grid step r, and for every set of signals S,
    `P[S | v] <= exp(ε r Σ_i ⌈|v_i − v'_i| / r⌉) · P[S | v']`: ε times the ℓ1 distance, each coordinate of which is
    rounded up to whole steps.
    """

    epsilon: float
    step: float
    dimensions: int

    delta = 0.0
    protects = "one feature vector"
    neighbours = "per unit of l1 distance"

    def loss(self, difference: Sequence[float]) -> float:
        """Return the most that a signal can tell between two vectors with this difference, rounded up."""
        if len(difference) != self.dimensions:
            given = plain(f"{len(difference)} numbers")
            raise InvalidInput("difference", given, f"{self.dimensions} are needed, one a coordinate")
        step = Fraction(self.step)
        steps = sum(math.ceil(abs(Fraction(finite_number("difference", part))) / step) for part in difference)
        return float_above(Fraction(self.epsilon) * step * steps)

    def to_dict(self) -> dict[str, Any]:
        """Return the guarantee as plain data."""
        names = ("epsilon", "delta", "protects", "neighbours", "step", "dimensions")
        return {name: getattr(self, name) for name in names}

    def __str__(self) -> str:
        """Say the guarantee in words."""
        epsilon = shown_above(self.epsilon)
        return (
            f"epsilon = {epsilon} per unit of l1 distance: protects {self.protects}; a vector at distance t in its "
            f"place changes the chance of any signal by a factor of at most exp({epsilon} t), every coordinate rounded "
            f"up to whole steps of {self.step:g}"
        )


@dataclass(frozen=True)
class VectorNoise:
    """Independent two-sided geometric noise on every coordinate, each on the multiples of a public step (grid.md)."""

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
    def guarantee(self) -> VectorGuarantee:
        """What a signal promises, before any vector is seen."""
        return VectorGuarantee(self.epsilon, self.step, self.dimensions)

    def nearest(self, vector: Any) -> Places:
        """Return the grid point nearest to a vector; no error shows the vector."""
        return tuple(self.single.nearest(part) for part in checked_vector("vector", vector, self.dimensions))

    def draw(self, places: Places, bits: BitSource) -> Places:
        """Return a grid point drawn from the law around another."""
        single = self.single
        return tuple(single.draw(place, bits) for place in places)

    def position(self, places: Places) -> FloatArray:
        """Return where a grid point is."""
        return np.array([self.single.position(place) for place in places])

    def law(self, vector: Any, low: int, high: int) -> dict[Places, float]:
        """Return the product of the laws of the coordinates, each cut to low..high as in `GridNoise.law`."""
        laws = [self.single.law(part, low, high) for part in vector]
        return {
            places: math.prod(law[place] for law, place in zip(laws, places, strict=True))
            for places in product(range(low, high + 1), repeat=self.dimensions)
        }


class FeatureClient:
    """Sends noisy feature vectors, keeps account of what they tell, and chooses among the answers.

    One signal costs ε per unit of ℓ1 distance (`guarantee`), m of them at most m ε. When the next one would exceed the
    budget, the client refuses with BudgetExceeded, whatever the vector. A seed is for tests; `secure` is then False.
    """

    def __init__(
        self,
        epsilon: float,
        dimensions: int,
        grid: float | None = None,
        budget: float | None = None,
        seed: int | None = None,
    ) -> None:
        self._noise = VectorNoise(epsilon, dimensions, grid)
        self._account = Account(budget)
        self._bits = bit_source(seed_or_none(seed))
        self._vector: FloatArray | None = None

    @property
    def guarantee(self) -> VectorGuarantee:
        """What one signal promises."""
        return self._noise.guarantee

    @property
    def secure(self) -> bool:
        """False when a seed was given."""
        return self._bits.secure

    @property
    def spent(self) -> float:
        """What all signals together cost per unit of ℓ1 distance, rounded up."""
        return self._account.spent

    def signal(self, vector: Any) -> FloatArray:
        """Return what to send in place of a private vector: multiples of the grid step, with noise.

        The vector stays here, for `choose`. The cost is written down before the noise is drawn.
        """
        private = checked_vector("vector", vector, self._noise.dimensions)
        places = self._noise.nearest(private)
        if not self._account.charge(self._noise.epsilon):
            raise BudgetExceeded(self._noise.epsilon, self._account.remaining or 0.0)
        self._vector = private
        return self._noise.position(self._noise.draw(places, self._bits))

    def choose(self, results: Any) -> Any:
        """Return the result whose vector is nearest to the last private one, the first of equals; nothing is sent."""
        vector = self._vector
        if vector is None:
            raise InvalidInput("results", plain("an answer"), "ask for a signal first: the choice is about its vector")
        answers = results.get("results") if isinstance(results, Mapping) else results
        if not isinstance(answers, Sequence) or isinstance(answers, str | bytes) or not answers:
            raise InvalidInput("results", results, "the answer of a server is needed: at least one result")
        return min(answers, key=lambda result: float(np.linalg.norm(_vector_of(result, len(vector)) - vector)))

    def __repr__(self) -> str:
        """Show what is public; vectors and signals are not."""
        noise = self._noise
        return f"FeatureClient(epsilon={noise.epsilon!r}, dimensions={noise.dimensions}, grid={noise.step!r})"


def checked_vector(argument: str, vector: Any, dimensions: int) -> FloatArray:
    """Return a copy of a vector of so many numbers, all within ±FARTHEST; no error shows what it holds."""
    try:
        numbers = np.array(vector, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        numbers = np.array(math.nan)
    if numbers.shape != (dimensions,) or not (np.abs(numbers) <= FARTHEST).all():
        given = plain("something else (it is not shown)")
        raise InvalidInput(argument, given, f"{dimensions} finite numbers are needed, none beyond {FARTHEST:g}")
    return numbers


def _vector_of(result: Any, dimensions: int) -> FloatArray:
    vector = result.get("vector") if isinstance(result, Mapping) else getattr(result, "vector", None)
    return checked_vector("results", vector, dimensions)
