"""Broken mechanisms that state a sound law and draw from another: the sampler check must reject them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dpselect._arrays import Array, FloatArray
from dpselect.sampling.noise import NOISES
from dpselect.verify.broken.base import Broken


class _WrongSampler(Broken):
    """A sampler that does not draw from the sound law it states."""

    rejected_by = "sampler"

    def select(self, scores: Any, *, seed: int | None = None) -> Array:
        generator = np.random.default_rng(seed)
        locations = np.array(self.locations(scores))
        noises = NOISES[self.noise].quantile(generator.exponential(size=len(locations)))
        chosen = np.argsort(-self.noisy(locations, noises))[: self.k]
        return generator.permutation(chosen)

    def noisy(self, locations: FloatArray, noises: FloatArray) -> FloatArray:
        """Return the noisy values, with the mistake in them."""
        return locations + noises


@dataclass(frozen=True, kw_only=True)
class SwappedOrderStatistics(_WrongSampler):
    """Tied items that get the smallest noises of their group where they should get the largest."""

    name = "order statistics swapped"
    flaw = "a group of ties competes with its smallest noises"

    def noisy(self, locations: FloatArray, noises: FloatArray) -> FloatArray:
        result = np.full(len(locations), -np.inf)
        for location in np.unique(locations):
            group = np.flatnonzero(locations == location)
            places = group[np.argsort(noises[group])][: self.k]
            result[places] = location + noises[places]
        return result


@dataclass(frozen=True, kw_only=True)
class FavouredMembers(_WrongSampler):
    """Tied items that win in the order in which they were listed."""

    name = "members not uniform"
    flaw = "of a group of ties, the first listed win"

    def noisy(self, locations: FloatArray, noises: FloatArray) -> FloatArray:
        result = locations.copy()
        for location in np.unique(locations):
            group = np.flatnonzero(locations == location)
            result[group] += -np.sort(-noises[group])
        return result


@dataclass(frozen=True, kw_only=True)
class ReusedNoise(_WrongSampler):
    """Two items that share one noise."""

    name = "noise reused"
    flaw = "two items get the same noise"

    def noisy(self, locations: FloatArray, noises: FloatArray) -> FloatArray:
        shared = noises.copy()
        shared[1] = shared[0]
        return locations + shared


@dataclass(frozen=True, kw_only=True)
class SortedSet(_WrongSampler):
    """A set that is returned in the order of its noisy values, though it is said to be unordered."""

    name = "set not shuffled"
    flaw = "the set is returned in the order of its noisy scores"

    def select(self, scores: Any, *, seed: int | None = None) -> Array:
        generator = np.random.default_rng(seed)
        locations = np.array(self.locations(scores))
        noises = NOISES[self.noise].quantile(generator.exponential(size=len(locations)))
        return np.argsort(-(locations + noises))[: self.k]


@dataclass(frozen=True, kw_only=True)
class SlightlyWrongScale(_WrongSampler):
    """Noise a little smaller than the law says."""

    name = "scale slightly off"
    flaw = "the noise drawn is a sixth smaller than stated"

    def noisy(self, locations: FloatArray, noises: FloatArray) -> FloatArray:
        return 1.2 * locations + noises
