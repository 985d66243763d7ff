"""The groups around rank k, and the values z at which mistakes with them are integrated.

Notation as in noisy_expectations.py.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpselect._arrays import BoolArray, FloatArray
from dpselect.forecast.noise_values import values_at
from dpselect.forecast.noisy import NoisyGroups
from dpselect.forecast.tilted import Tilted

_NEGLIGIBLE = 1e-13
_COUNTED = 2.0


@dataclass(frozen=True, repr=False)
class Groups:
    """All groups: what a mistake with an item of each costs, how much more one with the next does; rank k's group."""

    noisy: NoisyGroups
    costs: FloatArray
    steps: FloatArray
    border: int
    room: int

    def tilted(self, part: slice, z: FloatArray, log_radius: FloatArray) -> Tilted:
        """Return some of the groups at each z."""
        noisy = self.noisy
        return Tilted(noisy.sizes[part], log_radius, *values_at(noisy.noise, z, noisy.locations[part]))

    def first_seen(self, z: FloatArray) -> int:
        """Return the first group that may matter up to the largest z; what is above it is all but certain.

        Below the largest z its share is smaller still (log-concavity).
        """
        noisy, border = self.noisy, self.border
        near = z.max() - noisy.locations[:border]
        seen = noisy.sizes[:border] * np.maximum(noisy.noise.cdf(near), noisy.noise.density(near))
        weighted = np.stack([seen, seen * self.costs[:border]])
        return int((np.cumsum(weighted, axis=1) <= _NEGLIGIBLE * weighted.sum(axis=1, keepdims=True)).all(axis=0).sum())


@dataclass(frozen=True, repr=False)
class Nodes:
    """Values z in ascending order and their weights.

    Marked are those where something may be missing, or be chosen, and where what is there surely is missing, or chosen.
    """

    z: FloatArray
    weights: FloatArray
    missing: BoolArray
    chosen: BoolArray
    settled: BoolArray
    empty: BoolArray

    def only(self, where: BoolArray) -> Nodes:
        """Return some of the nodes."""
        return Nodes(*(part[where] for part in vars(self).values()))

    def joined(self, others: Nodes) -> Nodes:
        """Return these and others in ascending order."""
        order, parts = (
            np.argsort(np.append(self.z, others.z)),
            zip(vars(self).values(), vars(others).values(), strict=True),
        )
        return Nodes(*(np.append(own, other)[order] for own, other in parts))


def densest(z: FloatArray, log_radius: FloatArray) -> float:
    """Return the least `z − log r`, or z where x = 1 counts and that is less; elsewhere `r^M` is next to nothing.

    There most of the rare items are expected above z.
    """
    plain = z[log_radius > -_COUNTED]
    return float(min((z - log_radius).min(initial=np.inf), plain.min(initial=np.inf)))
