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

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.polynomial import chebyshev

from dpselect.forecast.chances import FloatArray
from dpselect.forecast.panels import chebyshev_points

Array = npt.NDArray[Any]

_WIDTH, _POINTS, _MANY = 0.75, 14, 28
_ALL = slice(None)


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
        # Scores that differ may be at the same location.
        middle, half = (high + low) / 2, (high - low) / 2 or 1.0
        spots, to_terms = chebyshev_points(_POINTS)
        terms = chebyshev.chebvander((locations - middle) / half, _POINTS - 1)
        return cls(sizes, middle + half * spots, terms @ to_terms)

    def weights(self, each: FloatArray) -> FloatArray:
        """Return the weights of points from those of groups."""
        return each if self.polynomials is None else each @ self.polynomials

    def behind(self, values: FloatArray, further: FloatArray, groups: slice | Array = _ALL) -> FloatArray:
        """Return sums [kind, group, z] of functions [kind, point, z] over the items behind each of some groups.

        What is further below adds [kind, 1, z] to each of them.
        """
        if self._weights is None:
            terms = np.concatenate([further, (self.sizes[1:, None] * values[:, 1:])[:, ::-1]], axis=1)
            return np.cumsum(terms, axis=1)[:, ::-1][:, groups]
        # The weight of what is further below is 1.
        result: FloatArray = self._weights[1:][groups] @ np.concatenate([values, further], axis=1)
        return result

    def whole(self, values: FloatArray) -> FloatArray:
        """Return the sums [kind, 1, z] over all items."""
        sums: FloatArray = self.weights(self.sizes) @ values
        return sums[:, None]

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
        crowded = np.diff(np.append(starts, len(bins))) > _MANY
        # Neighbouring cells of few groups are one.
        first = crowded | np.append(True, crowded)[:-1]
        borders = pairwise([*starts[first].tolist(), len(bins)])
        pairs = zip((slice(*pair) for pair in borders), crowded[first].tolist(), strict=True)
        return cls(locations, sizes, [Cell.of(locations[own], sizes[own], crowded=many) for own, many in pairs])

    def since(self, first: int) -> CloseItems:
        """Return the groups from one on."""
        return self._between(first, len(self.sizes))

    def upto(self, end: int) -> CloseItems:
        """Return the groups before one."""
        return self._between(0, end)

    def _between(self, first: int, end: int) -> CloseItems:
        place, last = bisect_right(self._ends, first), bisect_left(self._ends, end) + 1
        cells = self.cells[place:last]
        for side in {0, len(cells) - 1} if cells else ():
            cell, stop = cells[side], self._ends[place + side]
            own = slice(max(first, stop - len(cell.sizes)), min(end, stop))
            count = own.stop - own.start
            if count < len(cell.sizes):
                crowded = cell.polynomials is not None and count > _MANY
                cells[side] = Cell.of(self.locations[own], self.sizes[own], crowded=crowded)
        return CloseItems(self.locations[first:end], self.sizes[first:end], cells)

    @cached_property
    def _ends(self) -> list[int]:
        """How many groups there are up to the end of each cell."""
        return list(accumulate(len(cell.sizes) for cell in self.cells))

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

    def from_last(self) -> Iterator[tuple[slice, slice, Cell]]:
        """Yield which groups and which points each cell has, from the last to the first."""
        end, last = len(self.sizes), sum(len(cell.points) for cell in self.cells)
        for cell in reversed(self.cells):
            groups, points = slice(end - len(cell.sizes), end), slice(last - len(cell.points), last)
            yield groups, points, cell
            end, last = groups.start, points.start
