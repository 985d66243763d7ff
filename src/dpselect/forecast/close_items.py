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
    """Neighbouring groups of some sizes, their points, and Lagrange polynomials [group, point], if they are many."""

    sizes: FloatArray
    points: FloatArray
    polynomials: FloatArray | None

    @classmethod
    def of(cls, locations: FloatArray, sizes: FloatArray, *, crowded: bool) -> Cell:
        """Return a cell whose points are its groups, or Chebyshev points."""
        if not crowded:
            return cls(sizes, locations, None)
        high, low = float(locations[0]), float(locations[-1])
        middle, half = (high + low) / 2, (high - low) / 2
        terms = chebyshev.chebvander((locations - middle) / half, _POINTS - 1)
        return cls(sizes, middle + half * _SPOTS, terms @ _TO_TERMS)

    def weights(self, each: FloatArray) -> FloatArray:
        """Return the weights of points from those of groups."""
        return each if self.polynomials is None else each @ self.polynomials

    def add_up(self, values: FloatArray, further: FloatArray, result: FloatArray) -> FloatArray:
        """Find sums [kind, group, z] of functions [kind, point, z] over the items behind each group, and `further`.

        Return the sums over all of the cell's items and the further ones, [kind, 1, z].
        """
        if self._weights is None:
            sums = np.cumsum(np.concatenate([further, (self.sizes[:, None] * values)[:, ::-1]], axis=1), axis=1)
            result[:] = sums[:, -2::-1]
            return sums[:, -1:]
        # The weights of what is further below are 1.
        every = np.concatenate([values, further], axis=1)
        np.matmul(self._weights[1:], every, out=result)
        return self._weights[:1] @ every

    @cached_property
    def _weights(self) -> FloatArray | None:
        """The weights of points for the items from each group on, and at last for none; and 1."""
        if self.polynomials is None:
            return None
        result = np.zeros((len(self.sizes) + 1, len(self.points) + 1))
        np.cumsum((self.sizes[:, None] * self.polynomials)[::-1], axis=0, out=result[-2::-1, :-1])
        result[:, -1] = 1.0
        return result


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
        return cls(locations, sizes, [Cell.of(locations[slice(*ends)], sizes[slice(*ends)], crowded=many) for ends, many in pairs])

    def since(self, first: int) -> CloseItems:
        """Return the groups from one on."""
        return self._between(first, len(self.sizes))

    def upto(self, end: int) -> CloseItems:
        """Return the groups before one."""
        return self._between(0, end)

    def _between(self, first: int, end: int) -> CloseItems:
        cells, place = [], 0
        for cell in self.cells:
            own = slice(max(place, first), min(place + len(cell.sizes), end))
            count = own.stop - own.start
            if count == len(cell.sizes):
                cells.append(cell)
            elif count > 0:
                crowded = cell.polynomials is not None and count > _POINTS
                cells.append(Cell.of(self.locations[own], self.sizes[own], crowded=crowded))
            place += len(cell.sizes)
        return CloseItems(self.locations[first:end], self.sizes[first:end], cells)

    @cached_property
    def points(self) -> FloatArray:
        """Where functions have to be known."""
        return np.concatenate([np.empty(0), *(cell.points for cell in self.cells)])

    def weights(self, each: FloatArray) -> FloatArray:
        """Return the weights of points for sums over groups, of which each has a weight."""
        parts, start = [np.empty(0)], 0
        for cell in self.cells:
            parts.append(cell.weights(each[start : start + len(cell.sizes)]))
            start += len(cell.sizes)
        return np.concatenate(parts)

    def behind(self, values: FloatArray) -> FloatArray:
        """Return sums of functions [kind, point, z] over all items behind each group, as [kind, group, z]."""
        kinds, last, count = values.shape
        result, total, end = np.empty((kinds, len(self.sizes), count)), np.zeros((kinds, 1, count)), len(self.sizes)
        for cell in reversed(self.cells):
            start, first = end - len(cell.sizes), last - len(cell.points)
            total = cell.add_up(values[:, first:last], total, result[:, start:end])
            end, last = start, first
        return result
