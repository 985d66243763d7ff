"""Sums of smooth functions over many items close to each other, from few values of the functions.

Notation: a group g of m_g items lies at a_g. In a cell of width h, with Chebyshev points `c_j` and their Lagrange
polynomials `l_j`, a function of the location is about `φ(a) = Σ_j l_j(a) φ(c_j)`, so that

`Σ_g m_g φ(a_g) = Σ_j w_j φ(c_j)`, `w_j = Σ_g m_g l_j(a_g)`,

over all groups of a cell, or those from some one on. Cells that hold few groups are left as they are.

Error: if φ is analytic and grows like `e^{βa}`, n points leave out `2 (βh/4)^n / n!` of it. For what normal noise at z
asks of an item at a (F, S, f, their logarithms and quotients) β is about z − a: with h = 3/4 and n = 14 that is 2e-10
for z − a = 6, and 1e-8 for 8, where an item is above z once in 1e15.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.polynomial import chebyshev

from dpselect.forecast.chances import FloatArray

_WIDTH, _POINTS = 0.75, 14
_SPOTS = chebyshev.chebpts1(_POINTS).astype(np.float64)
_TO_TERMS = chebyshev.chebvander(_SPOTS, _POINTS - 1).T.astype(np.float64) * (2 / _POINTS)
_TO_TERMS[0] /= 2


@dataclass(frozen=True, repr=False)
class Cell:
    """Neighbouring groups: their number, their points, and Lagrange polynomials [group, point], if they are many."""

    count: int
    points: FloatArray
    polynomials: FloatArray | None

    @classmethod
    def of(cls, locations: FloatArray, *, crowded: bool) -> Cell:
        """Return a cell whose points are its groups, or Chebyshev points."""
        if not crowded:
            return cls(len(locations), locations, None)
        high, low = float(locations[0]), float(locations[-1])
        middle, half = (high + low) / 2, (high - low) / 2
        terms = chebyshev.chebvander((locations - middle) / half, _POINTS - 1)
        return cls(len(locations), middle + half * _SPOTS, terms @ _TO_TERMS)

    def weights(self, each: FloatArray) -> FloatArray:
        """Return the weights of points from those of groups."""
        return each if self.polynomials is None else each @ self.polynomials

    def behind(self, sizes: FloatArray, values: FloatArray) -> FloatArray:
        """Return sums of functions [kind, point, z] over the items behind each group, and before them over all."""
        terms = sizes[:, None] * (values if self.polynomials is None else self.polynomials)
        sums = np.zeros((*terms.shape[:-2], self.count + 1, terms.shape[-1]))
        np.cumsum(terms[..., ::-1, :], axis=-2, out=sums[..., 1:, :])
        found = sums[..., ::-1, :]
        return found if self.polynomials is None else found @ values


@dataclass(frozen=True, repr=False)
class CloseItems:
    """Groups, highest first, and the cells they are in; locations are in deviations of the noise."""

    locations: FloatArray
    sizes: FloatArray
    cells: list[Cell]

    @classmethod
    def of(cls, locations: FloatArray, sizes: FloatArray) -> CloseItems:
        """Return groups in cells."""
        bins = np.floor((locations[:1] - locations) / _WIDTH)
        starts = np.flatnonzero(np.diff(bins, prepend=-1.0))
        crowded = np.diff(np.append(starts, len(bins))) > _POINTS
        # Neighbouring cells of few groups are one.
        first = crowded | np.append(True, crowded)[:-1]
        borders = pairwise([*starts[first].tolist(), len(bins)])
        pairs = zip(borders, crowded[first].tolist(), strict=True)
        return cls(locations, sizes, [Cell.of(locations[slice(*ends)], crowded=many) for ends, many in pairs])

    def since(self, first: int) -> CloseItems:
        """Return the groups from one on."""
        ends = np.cumsum([cell.count for cell in self.cells])
        place = int(np.searchsorted(ends, first, side="right"))
        cells = self.cells[place:]
        if cells and first > ends[place] - cells[0].count:
            own = self.locations[first : ends[place]]
            crowded = cells[0].polynomials is not None and len(own) > _POINTS
            cells = [Cell.of(own, crowded=crowded), *cells[1:]]
        return CloseItems(self.locations[first:], self.sizes[first:], cells)

    @cached_property
    def points(self) -> FloatArray:
        """Where functions have to be known."""
        return np.concatenate([np.empty(0), *(cell.points for cell in self.cells)])

    def weights(self, each: FloatArray) -> FloatArray:
        """Return the weights of points for sums over groups, of which each has a weight."""
        parts, start = [np.empty(0)], 0
        for cell in self.cells:
            parts.append(cell.weights(each[start : start + cell.count]))
            start += cell.count
        return np.concatenate(parts)

    def behind(self, values: FloatArray) -> FloatArray:
        """Return sums of functions [kind, point, z] over all items behind each group, as [kind, group, z]."""
        kinds, last, count = values.shape
        result, total, end = np.empty((kinds, len(self.sizes), count)), np.zeros((kinds, 1, count)), len(self.sizes)
        for cell in reversed(self.cells):
            start, first = end - cell.count, last - len(cell.points)
            found = cell.behind(self.sizes[start:end], values[:, first:last])
            np.add(found[:, 1:], total, out=result[:, start:end])
            total = total + found[:, :1]
            end, last = start, first
        return result
