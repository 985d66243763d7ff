"""Numerical integration: adaptive Gauss-Kronrod panels, and sums over many items from few grid points."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from dpselect._arrays import FloatArray

Integrand = Callable[[FloatArray], FloatArray]
"""Maps nodes z [n] to the values, or their logarithms, of several integrands [integrand, n]."""

_HALF_RULE = np.array(
    [
        [0.991455371120812639, 0.022935322010529225, 0.0],
        [0.949107912342758525, 0.063092092629978553, 0.129484966168869693],
        [0.864864423359769073, 0.104790010322250184, 0.0],
        [0.741531185599394440, 0.140653259715525919, 0.279705391489276668],
        [0.586087235467691130, 0.169004726639267903, 0.0],
        [0.405845151377397167, 0.190350578064785410, 0.381830050505118945],
        [0.207784955007898468, 0.204432940075298892, 0.0],
    ]
)
_MIDDLE_RULE = np.array([[0.0, 0.209482141084727828, 0.417959183673469388]])
_NODES, _KRONROD, _GAUSS = np.concatenate([_HALF_RULE * [-1, 1, 1], _MIDDLE_RULE, _HALF_RULE[::-1]]).T
"""The nodes of the Gauss-Kronrod rule 7/15 on [-1, 1], with the weights of both rules."""

PANEL = len(_NODES)
"""The number of nodes in a panel; they are passed to an integrand panel by panel."""

_HALVINGS, _LOCAL = 30, 0.02
"""Panels are halved up to 30 times; each may contribute a fiftieth of the tolerance."""
_PANELS = 12
"""Number of first panels in the range of an integrand."""

_CELLS = 64
"""Cells of the grid on which the range of an integrand is searched."""

_DEPTH = 45.0
"""An integrand counts as zero where it is e^-45 (3e-20) times its maximum or less."""

_STEP, _ORDER, _BLOCK = 0.1, 8, 8.0
"""Grid step, interpolation points per weight, and width of the blocks that are put on a grid at a time."""


def integrate(function: Integrand, edges: FloatArray, tolerance: float, *, absolute: float = 0.0) -> FloatArray:
    """Return the integrals over panels between sorted edges, halving panels until both rules agree.

    In each panel they must agree to a fiftieth of the tolerance times the integral, or to `absolute`.
    """
    low, high = edges[:-1], edges[1:]
    total: FloatArray | None = None
    for halving in range(_HALVINGS):
        half = (high - low) / 2
        nodes = ((high + low) / 2)[:, None] + half[:, None] * _NODES
        values = function(nodes.ravel()).reshape(-1, *nodes.shape)
        fine, coarse = (values @ _KRONROD) * half, (values @ _GAUSS) * half
        total = np.zeros(len(values)) if total is None else total
        whole = np.abs(total + fine.sum(axis=1))
        too_rough = (np.abs(fine - coarse) > (_LOCAL * tolerance * whole + absolute)[:, None]).any(axis=0)
        # A panel as narrow as the spacing of floating-point numbers cannot be halved.
        too_rough &= (half > 1e-14 * (1 + np.abs(low))) & (halving + 1 < _HALVINGS)
        total = total + fine[:, ~too_rough].sum(axis=1)
        if not too_rough.any():
            break
        middle = ((low + high) / 2)[too_rough]
        low, high = np.concatenate([low[too_rough], middle]), np.concatenate([middle, high[too_rough]])
    assert total is not None
    return total


class Range(NamedTuple):
    """Where an integrand matters, and the logarithm of its maximum."""

    low: float
    high: float
    peak: float


def integrate_exp(logs: Integrand, ranges: list[Range | None], kinks: FloatArray, tolerance: float) -> FloatArray:
    """Return the integrals of `exp(logs)` over the ranges of `support`, however narrow or small they are."""
    integrals = np.zeros(len(ranges))
    found = [place for place, each in enumerate(ranges) if each is not None]
    if not found:
        return integrals
    peaks = np.array([each.peak for each in ranges if each is not None])

    def values(z: FloatArray) -> FloatArray:
        result: FloatArray = np.exp(logs(z)[found] - peaks[:, None])
        return result

    integrals[found] = integrate(values, panel_edges(ranges, kinks), tolerance) * np.exp(peaks)
    return integrals


def support(logs: Integrand, low: float, high: float, depth: float = _DEPTH) -> list[Range | None]:
    """Return for each integrand the range where it matters; None if it is zero.

    A grid locates the maximum of each; the range around it is scanned again until it fills a quarter of the grid.
    """
    grid = np.linspace(low, high, _CELLS + 1)
    first = logs(grid)
    return [_narrowed(logs, row, grid, first[row], depth) for row in range(len(first))]


def _narrowed(logs: Integrand, row: int, grid: FloatArray, values: FloatArray, depth: float) -> Range | None:
    """Return the range of one integrand, from its values on a grid."""
    peak = -math.inf
    while True:
        peak = max(peak, float(values.max()))
        if peak == -math.inf:
            return None
        kept = np.flatnonzero(values > peak - depth)
        kept = kept if len(kept) else np.array([int(values.argmax())])
        first, last = max(int(kept[0]) - 1, 0), min(int(kept[-1]) + 1, _CELLS)
        low, high = float(grid[first]), float(grid[last])
        if last - first > _CELLS // 4 or high - low < 1e-9 * (1 + abs(low)):
            return Range(low, high, peak)
        grid = np.linspace(low, high, _CELLS + 1)
        values = logs(grid)[row]


def panel_edges(ranges: list[Range | None], kinks: FloatArray) -> FloatArray:
    """Return the edges of the first panels: even ones in each range, cut at the kinks inside."""
    even = np.concatenate([np.linspace(each.low, each.high, _PANELS + 1) for each in ranges if each is not None])
    inside = kinks[(kinks > even.min()) & (kinks < even.max())]
    return np.unique(np.concatenate([even, inside]))


def on_grid(locations: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return few locations and weights [row, location] with the same sums `Σ w g(a)` for every smooth g.

    Each weight is spread over the 8 nearest points of an even grid with Lagrange's coefficients, which leaves out
    about `0.1^8 g⁽⁸⁾/8!`. Locations descend; few of them are returned as they are.
    """
    if not len(locations):
        return locations, weights
    first = math.floor(locations[-1] / _STEP) - _ORDER
    places = locations / _STEP - first
    base = np.floor(places).astype(np.intp) - _ORDER // 2 + 1
    count = int(base[0]) + _ORDER
    if 2 * count > len(locations):
        return locations, weights
    result = np.zeros((len(weights), count))
    for point in range(_ORDER):
        coefficient = np.ones(len(locations))
        for other in range(_ORDER):
            if other != point:
                coefficient *= (places - base - other) / (point - other)
        for row, weight in zip(result, weights, strict=True):
            row += np.bincount(base + point, coefficient * weight, minlength=count)
    return _STEP * (first + np.arange(count)), result


class Gridded:
    """Descending locations with rows of weights; each block is replaced by few grid points on first use."""

    def __init__(self, locations: FloatArray, weights: FloatArray) -> None:
        self._locations, self._weights = locations, weights
        blocks = np.floor(locations / _BLOCK)
        self._starts = np.append(np.flatnonzero(np.diff(blocks, prepend=np.inf)), len(locations))
        self._blocks: dict[int, tuple[FloatArray, FloatArray]] = {}

    def since(self, first: int) -> tuple[FloatArray, FloatArray]:
        """Return fewer locations and weights with the same sums of smooth functions as those from index `first` on."""
        block = int(np.searchsorted(self._starts, first))
        parts = [self._part(first, int(self._starts[block]))] if first < len(self._locations) else []
        for number in range(block, len(self._starts) - 1):
            if number not in self._blocks:
                self._blocks[number] = self._part(int(self._starts[number]), int(self._starts[number + 1]))
            parts.append(self._blocks[number])
        if not parts:
            return self._locations[:0], self._weights[:, :0]
        return np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts], axis=1)

    def _part(self, start: int, stop: int) -> tuple[FloatArray, FloatArray]:
        return on_grid(self._locations[start:stop], self._weights[:, start:stop])
