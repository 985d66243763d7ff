"""Multi-selection with feature vectors: ε per unit of ℓ1 distance, and k results in a few dimensions.

The client adds noise to every coordinate. The server looks at the directions in which its catalogue varies most, where
less of the noise is left. The proofs are in features.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from dpselect._arrays import FloatArray, IntArray
from dpselect._format import shown_above
from dpselect._numbers import finite_number, positive_integer, seed_or_none
from dpselect.errors import BudgetExceeded, InvalidInput, plain
from dpselect.multiselect.account import SignalBudget
from dpselect.multiselect.client import listed_results
from dpselect.multiselect.disutility import checked_rate
from dpselect.multiselect.noise import GridNoise
from dpselect.privacy.conversion import float_above
from dpselect.sampling import BitSource, bit_source

GridPoint = tuple[int, ...]

LARGEST_FEATURE = 1e100
"""Larger numbers are refused: squares of distances between them might not be floats."""

SAMPLES = 20_000
"""Number of draws of the noise from which offsets are computed."""

ROUNDS = 60
"""Number of rounds in which offsets are improved."""

SHORTEST_DISTANCE = 0.1
"""Shorter distances, in units of 1/ε, count as this, so that no offset gets stuck at a sample."""

STRIDE = 1.9
"""Step length of an offset, as a multiple of Weiszfeld's step, which alone converges too slowly."""


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
        if len(difference) != self.dimensions:
            given = plain(f"{len(difference)} numbers")
            raise InvalidInput("difference", given, f"must be {self.dimensions} numbers, one for each coordinate")
        step = Fraction(self.step)
        steps = sum(math.ceil(abs(Fraction(finite_number("difference", part))) / step) for part in difference)
        return float_above(Fraction(self.epsilon) * step * steps)

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
class VectorNoise:
    """Independent two-sided geometric noise on every coordinate, each on the multiples of a public step (noise.md)."""

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
        """The guarantee of one signal; it depends on no vector."""
        return VectorGuarantee(self.epsilon, self.step, self.dimensions)

    def nearest(self, vector: Any) -> GridPoint:
        """Return the grid point nearest to a vector; no error shows the vector."""
        return tuple(self.single.nearest(part) for part in _checked_vector("vector", vector, self.dimensions))

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


class FeatureClient:
    """Sends noisy feature vectors, adds up their privacy loss, and chooses among the answers.

    One signal costs ε per unit of ℓ1 distance (`guarantee`), m signals at most m ε. A signal that would exceed the
    budget is refused with BudgetExceeded, whatever the vector.

    Parameters
    ----------
    epsilon
        Privacy loss of one signal per unit of ℓ1 distance.
    dimensions
        Number of coordinates.
    grid
        Step of the public grid that signals lie on; see `GridNoise` for the default.
    budget
        Largest sum of the epsilons of all signals; unlimited by default.
    seed
        Makes signals reproducible, for tests and examples; `secure` is then False.

    Raises
    ------
    InvalidInput
        If an argument is out of range.

    Examples
    --------
    >>> from dpselect.multiselect import FeatureClient, FeatureServer
    >>> server = FeatureServer([[0.0, 1.0], [1.0, 0.0], [2.0, 2.0]], k=2, epsilon=4.0)
    >>> client = FeatureClient(epsilon=4.0, dimensions=2)
    >>> results = server.answer(client.signal([0.9, 0.2]))
    >>> client.choose(results).item in [result.item for result in results]
    True
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
        self._account = SignalBudget(budget)
        self._bits = bit_source(seed_or_none(seed))
        self._vector: FloatArray | None = None

    @property
    def guarantee(self) -> VectorGuarantee:
        """The guarantee of one signal."""
        return self._noise.guarantee

    @property
    def secure(self) -> bool:
        """False if a seed was given."""
        return self._bits.secure

    @property
    def spent(self) -> float:
        """The cost of all signals together per unit of ℓ1 distance, rounded up."""
        return self._account.spent

    def signal(self, vector: Any) -> FloatArray:
        """Return what to send in place of a private vector: multiples of the grid step, with noise.

        The vector stays in the client, for `choose`. The cost is charged before the noise is drawn.
        """
        private = _checked_vector("vector", vector, self._noise.dimensions)
        places = self._noise.nearest(private)
        if not self._account.charge(self._noise.epsilon):
            raise BudgetExceeded(self._noise.epsilon, self._account.remaining or 0.0)
        self._vector = private
        return self._noise.position(self._noise.draw(places, self._bits))

    def choose(self, results: Any) -> Any:
        """Return the result whose vector is nearest to the latest private one, the first of equals. Nothing is sent."""
        vector = self._vector
        if vector is None:
            raise InvalidInput("results", plain("an answer"), "must follow a signal; call signal() first")
        return min(
            listed_results(results),
            key=lambda result: float(np.linalg.norm(_vector_of(result, len(vector)) - vector)),
        )

    def __repr__(self) -> str:
        """Show public settings only; vectors and signals are private."""
        noise = self._noise
        return f"FeatureClient(epsilon={noise.epsilon!r}, dimensions={noise.dimensions}, grid={noise.step!r})"


class FeatureResult(NamedTuple):
    """A result and the feature vector that it is best for.

    Attributes
    ----------
    item
        What the result is: a name, or a number if the server has no items.
    vector
        The feature vector it is best for.

    Examples
    --------
    >>> import numpy as np
    >>> from dpselect.multiselect import FeatureResult
    >>> FeatureResult("film", np.array([0.5, 2.0])).to_dict()
    {'item': 'film', 'vector': [0.5, 2.0]}
    """

    item: Any
    vector: FloatArray

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain data."""
        return {"item": self.item, "vector": self.vector.tolist()}


class FeatureServer:
    """Answers noisy vectors of R^n with k results, found in the d' directions in which the catalogue varies most.

    With W the n × d' matrix of principal directions and μ the mean of the catalogue, a signal s becomes
    `z = Wᵀ(s − μ)`. Noise of rate ε on each coordinate has variance 2/ε² in every direction, so less of it is left than
    in R^n. The answers are the results nearest to `z + a_1, …, z + a_k`, all different; the offsets a are those at
    which k points serve the projected noise best (`feature_offsets`).

    The privacy loss is that of the signal; computing answers from it adds nothing. The catalogue, and the data it was
    learnt from, are not protected.

    Parameters
    ----------
    vectors
        A feature vector for each result.
    k
        Number of results in an answer.
    epsilon
        The epsilon of the clients, per unit of ℓ1 distance.
    dimensions
        d', the number of directions.
    items
        What each result is; by default results are numbered.

    Raises
    ------
    InvalidInput
        If an argument is out of range.

    Examples
    --------
    >>> from dpselect.multiselect import FeatureServer
    >>> server = FeatureServer([[0.0, 1.0], [1.0, 0.0], [2.0, 2.0]], k=1, epsilon=4.0)
    >>> server.answer([0.9, 0.2])[0].item
    1
    """

    def __init__(
        self, vectors: Any, k: int, epsilon: float, *, dimensions: int = 2, items: Sequence[Any] | None = None
    ) -> None:
        from scipy.spatial import cKDTree

        self._vectors = _checked_catalogue(vectors)
        number, size = self._vectors.shape
        self.k = positive_integer("k", k)
        self.epsilon = checked_rate(epsilon)
        if self.k > number:
            raise InvalidInput("k", k, f"must be at most {number} (the number of results)")
        if positive_integer("dimensions", dimensions) > min(number, size):
            requirement = f"must be at most {min(number, size)} (the number of coordinates or results)"
            raise InvalidInput("dimensions", dimensions, requirement)
        if items is not None and len(items) != number:
            raise InvalidInput("items", len(items), f"must be as many as vectors ({number})")
        self._items = items
        self.mean = self._vectors.mean(axis=0)
        self.directions = principal_directions(self._vectors, dimensions)
        self.offsets = feature_offsets(self.k, self.epsilon, self.directions)
        self._reduced = self.reduce(self._vectors)
        self._tree = cKDTree(self._reduced)

    def reduce(self, vectors: FloatArray) -> FloatArray:
        """Return vectors in the d' dimensions of the server: `Wᵀ(v − μ)`."""
        return np.asarray((vectors - self.mean) @ self.directions)

    def answer(self, signal: Any) -> list[FeatureResult]:
        """Return k different results for a signal."""
        received = _checked_vector("signal", signal, len(self.mean))
        return [
            FeatureResult(place if self._items is None else self._items[place], self._vectors[place])
            for place in self.places(received)
        ]

    def places(self, signal: FloatArray) -> list[int]:
        """Return the indices of the k results: each target takes the nearest result not taken earlier."""
        targets = self.reduce(signal) + self.offsets
        taken: dict[int, None] = {}
        for target, nearest in zip(targets, self._tree.query(targets)[1].tolist(), strict=True):
            if nearest in taken:
                # Of the next len(taken) + 1 at least one is free.
                near = np.atleast_1d(self._tree.query(target, k=len(taken) + 1)[1])
                nearest = next(int(place) for place in near if int(place) not in taken)
            taken[nearest] = None
        return list(taken)


def principal_directions(vectors: FloatArray, dimensions: int) -> FloatArray:
    """Return the orthonormal directions of largest variance as columns; the largest entry of each is positive."""
    _, _, directions = np.linalg.svd(vectors - vectors.mean(axis=0), full_matrices=False)
    chosen = directions[:dimensions].T
    signs = np.sign(chosen[np.abs(chosen).argmax(axis=0), np.arange(dimensions)])
    return np.asarray(chosen * np.where(signs == 0, 1, signs))


def feature_offsets(k: int, epsilon: float, directions: FloatArray) -> FloatArray:
    """Return k offsets a_i with a small `E min_i ‖Wᵀ x − a_i‖`, x with independent Laplace(1/ε) coordinates.

    Each sample of noise is assigned to its nearest offset, each offset moves towards the geometric median of its
    samples (Weiszfeld's step, lengthened), and so on. This is a local optimum from a fixed seed, so it is public, as is
    the law of the noise. Offsets nearest to the signal come first. By Zador's theorem the best k points cost
    O(k^{−1/d'}/ε) in d' dimensions.
    """
    return _unit_offsets(positive_integer("k", k), directions.tobytes(), directions.shape) / epsilon


def offset_cost(offsets: FloatArray, epsilon: float, directions: FloatArray, draws: int = SAMPLES) -> float:
    """Return the mean distance of projected noise to the nearest offset, over new draws from another fixed seed."""
    noise = np.random.default_rng(1).laplace(size=(draws, len(directions))) @ directions
    return float(_nearest_offsets(noise, offsets * epsilon)[0].mean() / epsilon)


@lru_cache(maxsize=64)
def _unit_offsets(k: int, content: bytes, shape: tuple[int, int]) -> FloatArray:
    """Return the offsets for ε = 1."""
    directions = np.frombuffer(content).reshape(shape)
    generator = np.random.default_rng(0)
    noise = generator.laplace(size=(SAMPLES, shape[0])) @ directions
    offsets = np.zeros((1, shape[1]))
    nearest = np.linalg.norm(noise, axis=1)
    for _ in range(k - 1):
        added = noise[generator.choice(SAMPLES, p=nearest / nearest.sum())]
        offsets = np.vstack([offsets, added])
        nearest = np.minimum(nearest, np.linalg.norm(noise - added, axis=1))
    least, best = math.inf, offsets
    for _ in range(ROUNDS if k > 1 else 0):
        distances, owners = _nearest_offsets(noise, offsets)
        if distances.mean() < least:
            least, best = float(distances.mean()), offsets
        weights = 1 / np.maximum(distances, SHORTEST_DISTANCE)
        totals = np.bincount(owners, weights, k)[:, None]
        sums = np.stack([np.bincount(owners, weights * column, k) for column in noise.T], axis=1)
        offsets = offsets + STRIDE * np.where(totals > 0, sums / np.maximum(totals, 1e-300) - offsets, 0)
    ordered: FloatArray = best[np.argsort(np.linalg.norm(best, axis=1), kind="stable")]
    ordered.setflags(write=False)
    return ordered


def _nearest_offsets(points: FloatArray, offsets: FloatArray) -> tuple[FloatArray, IntArray]:
    """Return the distance of each point to its nearest offset, and the index of that offset."""
    from scipy.spatial import cKDTree

    distances, owners = cKDTree(offsets).query(points)
    return distances, owners


def _floats_or_nan(given: Any) -> FloatArray:
    """Return a copy as floats; a single NaN if it holds something else."""
    try:
        return np.array(given, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        return np.array(math.nan)


def _checked_vector(argument: str, vector: Any, dimensions: int) -> FloatArray:
    """Return a copy of a vector with numbers within ±LARGEST_FEATURE; no error shows what it holds."""
    numbers = _floats_or_nan(vector)
    if numbers.shape != (dimensions,) or not (np.abs(numbers) <= LARGEST_FEATURE).all():
        requirement = f"must be {dimensions} finite numbers within ±{LARGEST_FEATURE:g}"
        raise InvalidInput(argument, plain("something else (not shown)"), requirement)
    return numbers


def _checked_catalogue(vectors: Any) -> FloatArray:
    numbers = _floats_or_nan(vectors)
    if numbers.ndim != 2 or not numbers.size or not (np.abs(numbers) <= LARGEST_FEATURE).all():
        requirement = f"must be vectors of the same length, at least one, with numbers within ±{LARGEST_FEATURE:g}"
        raise InvalidInput("vectors", plain("something else"), requirement)
    return numbers


def _vector_of(result: Any, dimensions: int) -> FloatArray:
    vector = result.get("vector") if isinstance(result, Mapping) else getattr(result, "vector", None)
    return _checked_vector("results", vector, dimensions)
