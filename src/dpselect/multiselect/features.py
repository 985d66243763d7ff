"""Multi-selection with feature vectors: noise on every coordinate, and k results in a few dimensions.

The client adds noise to every coordinate. The server looks at the directions in which its catalogue varies most, where
less of the noise is left. The proofs are in features.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from copy import copy
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from dpselect._arrays import FloatArray, IntArray
from dpselect._numbers import positive_integer
from dpselect.errors import InvalidInput, plain
from dpselect.multiselect.client import SignalClient
from dpselect.multiselect.disutility import checked_rate
from dpselect.multiselect.vectors import LARGEST_FEATURE, checked_vector, floats_or_nan, vector_noise
from dpselect.privacy.conversion import float_above

SAMPLES = 20_000
"""Number of draws of the noise from which offsets are computed."""

ROUNDS = 60
"""Number of rounds in which offsets are improved."""

SHORTEST_DISTANCE = 0.1
"""Shorter distances, in units of the scale, count as this, so that no offset gets stuck at a sample."""

STRIDE = 1.9
"""Step length of an offset, as a multiple of Weiszfeld's step, which alone converges too slowly."""


class FeatureClient(SignalClient[FloatArray]):
    """Sends noisy feature vectors, adds up their privacy loss, and chooses among the answers.

    With Laplace noise one signal costs ε per unit of ℓ1 distance, m signals at most m ε. With Gaussian noise one signal
    is (ε, δ)-private for vectors at Euclidean distance at most 1, m signals (m ε, m δ); `guarantee` states either. A
    signal that would exceed the budget is refused with BudgetExceeded, whatever the vector.

    Parameters
    ----------
    epsilon
        Privacy loss of one signal, per unit of ℓ1 distance or at Euclidean distance 1.
    dimensions
        Number of coordinates.
    grid
        Step of the public grid that signals lie on. Default: less than 1/128 of the scale of the noise.
    budget
        Largest sum of the epsilons of all signals; unlimited by default.
    seed
        Makes signals reproducible, for tests and examples; `secure` is then False.
    noise
        "laplace" (two-sided geometric on the grid, pure) or "gaussian" (discrete Gaussian on the grid).
    delta
        The δ of Gaussian noise, above 0.

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
    >>> FeatureClient(epsilon=4.0, dimensions=2, noise="gaussian", delta=1e-6).guarantee.neighbours
    'Euclidean distance at most 1'
    """

    def __init__(
        self,
        epsilon: float,
        dimensions: int,
        grid: float | None = None,
        budget: float | None = None,
        seed: int | None = None,
        *,
        noise: str = "laplace",
        delta: float = 0.0,
    ) -> None:
        super().__init__(vector_noise(noise, epsilon, dimensions, grid, delta), budget, seed)

    @property
    def spent_delta(self) -> float:
        """The sum of the deltas of all signals, rounded up; 0 with Laplace noise."""
        return float_above(Fraction(self.guarantee.delta) * self.signals)

    @property
    def scale(self) -> float:
        """The scale of the noise on each coordinate: 1/ε for Laplace noise, the standard deviation σ for Gaussian."""
        return float(1 / self._noise.rate)

    def _checked(self, value: Any) -> FloatArray:
        private = checked_vector("vector", value, self._noise.dimensions)
        private.setflags(write=False)
        return private

    def _distance(self, value: FloatArray, result: Any) -> float:
        return float(np.linalg.norm(_vector_of(result, len(value)) - value))

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
    `z = Wᵀ(s − μ)`. The noise of the coordinates is independent, so it has the same variance in every direction (2/ε²
    or σ²), and less of it is left than in R^n. The answers are the results nearest to `z + a_1, …, z + a_k`, all
    different; the offsets a are those at which k points serve the projected noise best (`feature_offsets`).

    The privacy loss is that of the signal; computing answers from it adds nothing. The catalogue, and the data it was
    learnt from, are not protected.

    Parameters
    ----------
    vectors
        A feature vector for each result.
    k
        Number of results in an answer.
    epsilon
        The epsilon of the clients.
    dimensions
        d', the number of directions.
    items
        What each result is; by default results are numbered.
    noise, delta
        The noise of the clients, as in `FeatureClient`.

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
        self,
        vectors: Any,
        k: int,
        epsilon: float,
        *,
        dimensions: int = 2,
        items: Sequence[Any] | None = None,
        noise: str = "laplace",
        delta: float = 0.0,
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
        self._noise, self._delta = noise, delta
        self.offsets = self._best_offsets()
        self._reduced = self.reduce(self._vectors)
        self._tree = cKDTree(self._reduced)

    def __len__(self) -> int:
        """Return the number of results."""
        return len(self._vectors)

    def resized(self, k: int, epsilon: float) -> FeatureServer:
        """Return a server of the same results for another number of answers and another epsilon."""
        if positive_integer("k", k) > len(self):
            raise InvalidInput("k", k, f"must be at most {len(self)} (the number of results)")
        other = copy(self)
        other.k, other.epsilon = k, checked_rate(epsilon)
        other.offsets = other._best_offsets()
        return other

    def _best_offsets(self) -> FloatArray:
        rate = vector_noise(self._noise, self.epsilon, len(self.mean), None, self._delta).rate
        return feature_offsets(self.k, rate, self.directions, self._noise)

    def reduce(self, vectors: FloatArray) -> FloatArray:
        """Return vectors in the d' dimensions of the server: `Wᵀ(v − μ)`."""
        return np.asarray((vectors - self.mean) @ self.directions)

    def answer(self, signal: Any) -> list[FeatureResult]:
        """Return k different results for a signal."""
        received = checked_vector("signal", signal, len(self.mean))
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


def feature_offsets(k: int, rate: float, directions: FloatArray, noise: str = "laplace") -> FloatArray:
    """Return k offsets a_i with a small `E min_i ‖Wᵀ x − a_i‖`, x with independent coordinates of scale 1/rate.

    Each sample of noise is assigned to its nearest offset, each offset moves towards the geometric median of its
    samples (Weiszfeld's step, lengthened), and so on. This is a local optimum from a fixed seed, so it is public, as is
    the law of the noise. Offsets nearest to the signal come first. By Zador's theorem the best k points cost
    O(k^{−1/d'}/rate) in d' dimensions.
    """
    return _unit_offsets(positive_integer("k", k), directions.tobytes(), directions.shape, noise) / rate


def offset_cost(
    offsets: FloatArray, rate: float, directions: FloatArray, draws: int = SAMPLES, noise: str = "laplace"
) -> float:
    """Return the mean distance of projected noise to the nearest offset, over new draws from another fixed seed."""
    drawn = _unit_draws(noise, np.random.default_rng(1), (draws, len(directions))) @ directions
    return float(_nearest_offsets(drawn, offsets * rate)[0].mean() / rate)


def _unit_draws(noise: str, generator: np.random.Generator, size: tuple[int, int]) -> FloatArray:
    """Return draws of noise of scale 1 from NumPy; they are for offsets and never sent."""
    return generator.standard_normal(size) if noise == "gaussian" else generator.laplace(size=size)


@lru_cache(maxsize=64)
def _unit_offsets(k: int, content: bytes, shape: tuple[int, int], kind: str) -> FloatArray:
    """Return the offsets for noise of scale 1."""
    directions = np.frombuffer(content).reshape(shape)
    generator = np.random.default_rng(0)
    noise = _unit_draws(kind, generator, (SAMPLES, shape[0])) @ directions
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


def _checked_catalogue(vectors: Any) -> FloatArray:
    numbers = floats_or_nan(vectors)
    if numbers.ndim != 2 or not numbers.size or not (np.abs(numbers) <= LARGEST_FEATURE).all():
        requirement = f"must be vectors of the same length, at least one, with numbers within ±{LARGEST_FEATURE:g}"
        raise InvalidInput("vectors", plain("something else"), requirement)
    return numbers


def _vector_of(result: Any, dimensions: int) -> FloatArray:
    vector = result.get("vector") if isinstance(result, Mapping) else getattr(result, "vector", None)
    return checked_vector("results", vector, dimensions)
