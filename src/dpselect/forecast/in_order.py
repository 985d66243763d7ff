"""How likely every rank is right among the k largest of `a_i + Z_i` with normal noise, as k integrals one in the other.

Notation: F and f are the distribution and the density of the noise at `z − a` of an item. With V_0(z) the chance that
all items below the top k are below z, and the items of the top k taken one by one, the lowest first,

`V_j(z) = c_j ∫_{−∞}^z V_{j−1} f dz`

is the chance that j of them stand in their order above all others, and below z; the chance wanted is V_k(∞). Of m tied
items of which r belong to the top k the others count in V_0, and `c = m − r + 1 … m`, for any of them may come next.

f vanishes some deviations from a, and behind that V_j stays what it is. So it is known on a grid around a, and the next
one on the same grid, moved up to the next item.

Error: the polynomial through the 20 nearest values of the grid is integrated over each step of it. With steps of 1/20,
or less where many items are close, tests find less than 1e-9 left out. A chance below 1e-13 is given as 0: no V_j is
larger than the ones before it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, cached_property
from typing import TYPE_CHECKING

import numpy as np

from dpselect.forecast.chances import FloatArray
from dpselect.forecast.noise_values import log_normal
from dpselect.sampling.normal import NORMAL

if TYPE_CHECKING:
    from dpselect.forecast.noisy import NoisyGroups

MOST = 100_000
"""Up to which k it is computed, in seconds, unless too many are tied."""
_STEP, _REACH = 0.05, 9.5
_CLOSE, _FEW = 1.5, 4
_POINTS = 20
_TOGETHER, _MOST_WORK = 16_000, 50_000_000
_LEAST = 1e-13


def chance_in_order(noisy: NoisyGroups) -> float | None:
    """P[the score at every rank up to k is right], for normal noise; None if that is too much work."""
    if noisy.k > MOST:
        return None
    chain = Chain.of(noisy)
    if noisy.k * len(chain.grid) > _MOST_WORK:
        return None
    # Where items are close but not tied, their own order is often next to impossible: a few of them tell.
    if chain.step < _STEP and chain.counts.max() == 1:
        rough = replace(chain, step=_STEP)
        if not rough.last(np.ones(len(rough.grid))):
            return 0.0
    border = noisy.group(noisy.k)
    others = float(noisy.ends[border]) - noisy.k
    with np.errstate(under="ignore"):
        return chain.last(np.exp(noisy.log_below(chain.grid, border + 1) + others * log_normal(chain.grid)))


@dataclass(frozen=True, repr=False)
class Chain:
    """The items of the top k from the lowest up: where they are, c of each, and how far apart z are."""

    locations: FloatArray
    counts: FloatArray
    step: float

    @classmethod
    def of(cls, noisy: NoisyGroups) -> Chain:
        """Return the items of the top k."""
        top = slice(noisy.group(noisy.k) + 1)
        sizes = noisy.sizes[top]
        taken = np.minimum(sizes, noisy.k - (noisy.ends[top] - sizes))
        locations = np.repeat(noisy.locations[top], taken.astype(np.intp))[::-1]
        # For each group m − r + 1 … m; in the order of ranks they fall.
        before = np.repeat(np.cumsum(taken) - taken, taken.astype(np.intp))
        counts = np.repeat(sizes, taken.astype(np.intp)) - (np.arange(len(before)) - before)
        return cls(locations, counts[::-1], _step(locations, float(taken.max())))

    @cached_property
    def grid(self) -> FloatArray:
        """Values z about the location of an item."""
        near = round(_REACH / self.step)
        return self.step * np.arange(-near, near + 1.0)

    def last(self, values: FloatArray) -> float:
        """Return V_k(∞) for V_0 on the grid about the first item, 0 if it is next to nothing."""
        grid = self.grid
        moves, offsets = self._moves(len(grid))
        weights, together = self.step * _weights(), max(_TOGETHER // len(grid), 1)
        for start in range(0, len(moves), together):
            part = slice(start, start + together)
            densities = self.counts[part, None] * NORMAL.density(grid + offsets[part, None])
            for move, density in zip(moves[part], densities, strict=True):
                if move:
                    values = np.concatenate([values[move:], np.full(min(move, len(values)), values[-1])])
                values = np.append(0.0, np.cumsum(np.convolve(values * density, weights, mode="same")[1:]))
                if values[-1] < _LEAST:
                    return 0.0
        return float(min(values[-1], 1.0))

    def _moves(self, most: int) -> tuple[list[int], FloatArray]:
        """Return by how many steps the grid is moved up to each item, and how far its middle then is above the item."""
        moves, offsets = [0], [0.0]
        for gap in np.diff(self.locations).tolist():
            move = round((gap - offsets[-1]) / self.step) if gap < most * self.step else most
            moves.append(move)
            offsets.append(offsets[-1] + move * self.step - gap if move < most else 0.0)
        return moves, np.array(offsets)


def _step(locations: FloatArray, tied: float) -> float:
    """Return how far apart z are: where an item stands among many close ones varies less than each of them does."""
    close = np.searchsorted(locations, locations + _CLOSE, side="right") - np.arange(len(locations))
    return float(_STEP / np.sqrt(max(close.max() / _FEW, tied, 1.0)))


@cache
def _weights() -> FloatArray:
    """Return the weights of neighbouring values for the integral from one to the next, in the order of `convolve`.

    They are those of the polynomial through these values, and computed exactly.
    """
    nodes, weights = range(1 - _POINTS // 2, _POINTS // 2 + 1), []
    for node in nodes:
        # The coefficients of Π (x − other) / (node − other), from x^0 on.
        basis = [Fraction(1)]
        for other in (other for other in nodes if other != node):
            shifted, scaled = [Fraction(0), *basis], [*(-other * each for each in basis), Fraction(0)]
            basis = [(each + less) / (node - other) for each, less in zip(shifted, scaled, strict=True)]
        weights.append(float(sum(each / (power + 1) for power, each in enumerate(basis))))
    return np.array(weights[::-1])
