"""Multi-selection with feature vectors, the server's side: k results about a noisy vector, in a few dimensions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from dpselect._arrays import FloatArray, IntArray
from dpselect._numbers import positive_integer
from dpselect.errors import InvalidInput, plain
from dpselect.multiselect.features import FARTHEST, checked_vector
from dpselect.multiselect.moments import checked_rate

SAMPLES, ROUNDS = 20_000, 60
"""How many draws of the noise stand for its law when the offsets are computed, and how often they are improved."""

TOO_NEAR = 0.1
"""Distances below this, in units of 1/ε, count as this: an offset must not stick to a sample that it lies on."""

STRIDE = 1.9
"""How far an offset moves, in lengths of Weiszfeld's step, which are too short to arrive in a few rounds."""


class FeatureResult(NamedTuple):
    """One result: what it is, and the feature vector for which it is best."""

    item: Any
    vector: FloatArray

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain data."""
        return {"item": self.item, "vector": self.vector.tolist()}


class FeatureServer:
    """Answers noisy vectors of R^n with k results, found in the d' directions in which the catalogue varies most.

    With W the n × d' matrix of principal directions and μ the mean of the catalogue, a signal s becomes
    `z = Wᵀ(s − μ)`. Noise of rate ε on each coordinate has the variance 2/ε² in every direction, so that less of it
    is left than in R^n. The answers are the results nearest to `z + a_1, …, z + a_k`, all different; the offsets a are
    those at which k points serve the projected noise best (`feature_offsets`).

    A signal has paid for its privacy: whatever is computed from it costs nothing more. The catalogue and whatever it
    was learnt from are not protected.
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
            raise InvalidInput("k", k, f"at most {number} are needed, the number of results")
        if positive_integer("dimensions", dimensions) > min(number, size):
            raise InvalidInput("dimensions", dimensions, f"at most {min(number, size)} are needed")
        if items is not None and len(items) != number:
            raise InvalidInput("items", plain(f"{len(items)} of them"), f"{number} are needed, one a vector")
        self._items = items
        self.mean = self._vectors.mean(axis=0)
        self.directions = principal_directions(self._vectors, dimensions)
        self.offsets = feature_offsets(self.k, self.epsilon, self.directions)
        self._reduced = self.reduce(self._vectors)
        self._tree = cKDTree(self._reduced)

    def reduce(self, vectors: FloatArray) -> FloatArray:
        """Return vectors in the few dimensions of the server: `Wᵀ(v − μ)`."""
        return np.asarray((vectors - self.mean) @ self.directions)

    def answer(self, signal: Any) -> list[FeatureResult]:
        """Return k different results for a signal."""
        received = checked_vector("signal", signal, len(self.mean))
        return [
            FeatureResult(place if self._items is None else self._items[place], self._vectors[place])
            for place in self.places(received)
        ]

    def places(self, signal: FloatArray) -> list[int]:
        """Return the numbers of the k results: each target takes the nearest that no earlier target has."""
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
    """Return the orthonormal directions, as columns, in which the vectors vary most; the largest entry is positive."""
    _, _, directions = np.linalg.svd(vectors - vectors.mean(axis=0), full_matrices=False)
    chosen = directions[:dimensions].T
    signs = np.sign(chosen[np.abs(chosen).argmax(axis=0), np.arange(dimensions)])
    return np.asarray(chosen * np.where(signs == 0, 1, signs))


def feature_offsets(k: int, epsilon: float, directions: FloatArray) -> FloatArray:
    """Return k offsets a_i that make `E min_i ‖Wᵀ x − a_i‖` small, x with independent Laplace(1/ε) coordinates.

    Sampled noise is assigned to its nearest offset, each offset is moved towards the geometric median of its share
    (Weiszfeld's step, lengthened), and so on: a local optimum, found from a fixed seed, which is public as the law of
    the noise is. The nearest to the signal come first. By Zador's theorem the best k points cost O(k^{−1/d'}/ε) in d'
    dimensions.
    """
    return _unit_offsets(positive_integer("k", k), directions.tobytes(), directions.shape) / epsilon


def offset_cost(offsets: FloatArray, epsilon: float, directions: FloatArray, draws: int = SAMPLES) -> float:
    """Return the mean distance of projected noise to the nearest offset, over fresh draws from another fixed seed."""
    noise = np.random.default_rng(1).laplace(size=(draws, len(directions))) @ directions
    return float(_nearest(noise, offsets * epsilon)[0].mean() / epsilon)


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
        distances, owners = _nearest(noise, offsets)
        if distances.mean() < least:
            least, best = float(distances.mean()), offsets
        weights = 1 / np.maximum(distances, TOO_NEAR)
        totals = np.bincount(owners, weights, k)[:, None]
        sums = np.stack([np.bincount(owners, weights * column, k) for column in noise.T], axis=1)
        offsets = offsets + STRIDE * np.where(totals > 0, sums / np.maximum(totals, 1e-300) - offsets, 0)
    ordered: FloatArray = best[np.argsort(np.linalg.norm(best, axis=1), kind="stable")]
    ordered.setflags(write=False)
    return ordered


def _nearest(points: FloatArray, offsets: FloatArray) -> tuple[FloatArray, IntArray]:
    """Return the distance of each point to the nearest offset, and which that is."""
    from scipy.spatial import cKDTree

    distances, owners = cKDTree(offsets).query(points)
    return distances, owners


def _checked_catalogue(vectors: Any) -> FloatArray:
    accepted = (
        f"at least one feature vector is needed, all of the same length: finite numbers, none beyond {FARTHEST:g}"
    )
    try:
        numbers = np.array(vectors, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InvalidInput("vectors", plain("something else"), accepted) from None
    if numbers.ndim != 2 or not numbers.size or not (np.abs(numbers) <= FARTHEST).all():
        raise InvalidInput("vectors", plain("something else"), accepted)
    return numbers
