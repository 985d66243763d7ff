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

from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from dpselect.forecast.binomials import log_of_first
from dpselect.forecast.chances import FloatArray

if TYPE_CHECKING:
    from dpselect.forecast.noisy import NoisyGroups

MOST = 100_000
"""Up to which k it is computed, in seconds, unless too many are tied."""
_STEP, _REACH = 0.05, 9.5
_CLOSE, _FEW = 1.5, 4
_POINTS = 20
_TOGETHER, _MOST_WORK = 1_000_000, 50_000_000
_LEAST = 1e-13


def chance_in_order(noisy: NoisyGroups) -> float | None:
    """P[the score at every rank up to k is right], for normal noise; None if that is too much work."""
    border = noisy.group(noisy.k)
    before = noisy.ends[: border + 1] - noisy.sizes[: border + 1]
    taken = np.minimum(noisy.sizes[: border + 1], noisy.k - before)
    # From the lowest rank up.
    locations = np.repeat(noisy.locations[: border + 1], taken.astype(np.intp))[::-1]
    pairs = zip(noisy.sizes[border::-1], taken[::-1], strict=True)
    counts = np.concatenate([np.arange(size - number, size) + 1 for size, number in pairs])
    step = _step(locations, float(taken.max()))
    near = round(_REACH / step)
    if noisy.k > MOST or noisy.k * near > _MOST_WORK:
        return None
    grid: FloatArray = step * np.arange(-near, near + 1.0)
    moves, offsets = _moves(np.diff(locations), step, len(grid))
    weights = step * _weights()
    with np.errstate(under="ignore"):
        values = _all_below(noisy, border, float(noisy.sizes[border] - taken[border]), grid)
        together = max(_TOGETHER // len(grid), 1)
        for start in range(0, len(counts), together):
            part = slice(start, start + together)
            densities = counts[part, None] * noisy.noise.density(grid + offsets[part, None])
            for move, density in zip(moves[part], densities, strict=True):
                if move:
                    values = np.concatenate([values[move:], np.full(min(move, len(values)), values[-1])])
                values = np.append(0.0, np.cumsum(np.convolve(values * density, weights, mode="same")[1:]))
                if values[-1] < _LEAST:
                    return 0.0
    return float(min(values[-1], 1.0))


def _step(locations: FloatArray, tied: float) -> float:
    """Return how far apart z are: where an item stands among many close ones varies less than each of them does."""
    close = np.searchsorted(locations, locations + _CLOSE, side="right") - np.arange(len(locations))
    return float(_STEP / np.sqrt(max(close.max() / _FEW, tied, 1.0)))


def _moves(gaps: FloatArray, step: float, most: int) -> tuple[list[int], FloatArray]:
    """Return by how many steps the grid is moved up to each item, and how far its middle then is above the item."""
    moves, offsets = [0], [0.0]
    for gap in gaps.tolist():
        move = round((gap - offsets[-1]) / step) if gap < most * step else most
        moves.append(move)
        offsets.append(offsets[-1] + move * step - gap if move < most else 0.0)
    return moves, np.array(offsets)


def _all_below(noisy: NoisyGroups, border: int, tied: float, z: FloatArray) -> FloatArray:
    """Return the chance that so many items tied with rank k, and all below them, are below each z."""
    cdf, survival = noisy.noise.cdf(z), noisy.noise.survival(z)
    result: FloatArray = np.exp(noisy.log_below(z, border + 1) + tied * log_of_first(cdf, survival))
    return result


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
