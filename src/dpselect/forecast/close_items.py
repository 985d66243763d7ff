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

import numpy as np

from dpselect._arrays import Array, FloatArray
from dpselect.forecast.panels import chebyshev_points, chebyshev_terms

_WIDTH, _POINTS, _MANY = 0.75, 14, 28
_ALL = slice(None)


@dataclass(frozen=True, repr=False)
class Cell:
    """Neighbouring groups of some sizes; their points are themselves or, if the cell is crowded, Chebyshev points."""

    locations: FloatArray
    sizes: FloatArray
    crowded: bool

    @cached_property
    def _middle_and_half(self) -> tuple[float, float]:
        high, low = float(self.locations[0]), float(self.locations[-1])
        # Scores that differ may be at the same location.
        return (high + low) / 2, (high - low) / 2 or 1.0

    @cached_property
    def points(self) -> FloatArray:
        """Where functions have to be known."""
        if not self.crowded:
            return self.locations
        middle, half = self._middle_and_half
        return middle + half * chebyshev_points(_POINTS)[0]

    @cached_property
    def _terms(self) -> FloatArray:
        """Chebyshev polynomials [term, group] of a crowded cell."""
        middle, half = self._middle_and_half
        return chebyshev_terms((self.locations - middle) / half, _POINTS)

    def weights(self, each: FloatArray) -> FloatArray:
        """Return the weights of points from those of groups."""
        return self._terms @ each @ chebyshev_points(_POINTS)[1] if self.crowded else each

    def behind(self, values: FloatArray, further: FloatArray, groups: slice | Array = _ALL) -> FloatArray:
        """Return sums [kind, group, z] of functions [kind, point, z] over the items behind each of some groups.

        What is further below adds [kind, 1, z] to each of them.
        """
        if self.crowded:
            # The weight of what is further below is 1.
            result: FloatArray = self._weights_behind[groups] @ np.concatenate([values, further], axis=1)
            return result
        terms = np.concatenate([self.sizes[1:, None] * values[:, 1:], further], axis=1)
        if isinstance(groups, slice):
            return np.cumsum(terms[:, ::-1], axis=1)[:, ::-1][:, groups]
        # Between the groups asked for only whole sums are needed.
        borders, places = np.unique(groups, return_inverse=True)
        between = np.add.reduceat(terms, borders, axis=1)
        return np.cumsum(between[:, ::-1], axis=1)[:, ::-1][:, places]

    def whole(self, values: FloatArray) -> FloatArray:
        """Return the sums [kind, 1, z] over all items."""
        sums: FloatArray = self.weights_of_items @ values
        return sums[:, None]

    @cached_property
    def weights_of_items(self) -> FloatArray:
        """The weights of points for sums over all items."""
        return self.weights(self.sizes)

    @cached_property
    def _weights_behind(self) -> FloatArray:
        """The weights [group, point] of a crowded cell's points for the items behind each group; and 1."""
        behind = np.zeros((_POINTS, len(self.sizes)))
        np.cumsum((self.sizes * self._terms)[:, :0:-1], axis=1, out=behind[:, -2::-1])
        result = np.ones((len(self.sizes), _POINTS + 1))
        result[:, :-1] = behind.T @ chebyshev_points(_POINTS)[1]
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
        return cls(locations, sizes, [Cell(locations[own], sizes[own], many) for own, many in pairs])

    def since(self, first: int) -> CloseItems:
        """Return the groups from one on."""
        return self._between(first, len(self.sizes))

    def upto(self, end: int) -> CloseItems:
        """Return the groups before one."""
        return self._between(0, end)

    def down_to(self, lowest: float) -> CloseItems:
        """Return the groups at a location or above, and all in a cell with one of these."""
        count = bisect_right(self.cells, -lowest, key=lambda cell: -float(cell.locations[0]))
        return self.upto(self._ends[count - 1] if count else 0)

    def _between(self, first: int, end: int) -> CloseItems:
        place, last = bisect_right(self._ends, first), bisect_left(self._ends, end) + 1
        cells = self.cells[place:last] if first < end else []
        for side in {0, len(cells) - 1} if cells else ():
            cell, stop = cells[side], self._ends[place + side]
            own = slice(max(first, stop - len(cell.sizes)), min(end, stop))
            count = own.stop - own.start
            if count < len(cell.sizes):
                cells[side] = Cell(self.locations[own], self.sizes[own], cell.crowded and count > _MANY)
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

    @cached_property
    def weights_of_items(self) -> FloatArray:
        """The weights of points for sums over all items."""
        return np.concatenate([np.empty(0), *(cell.weights_of_items for cell in self.cells)])

    def from_last(self) -> Iterator[tuple[slice, slice, Cell]]:
        """Yield which groups and which points each cell has, from the last to the first."""
        end, last = len(self.sizes), sum(len(cell.points) for cell in self.cells)
        for cell in reversed(self.cells):
            groups, points = slice(end - len(cell.sizes), end), slice(last - len(cell.points), last)
            yield groups, points, cell
            end, last = groups.start, points.start
