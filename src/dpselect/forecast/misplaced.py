"""How much score stands at wrong ranks among the k largest of `a_i + Z_i` in order, as integrals over one value z.

Notation: `x_1 >= x_2 >= …` are the scores by rank, y_r the score at rank r of the answer. As
`Σ_r |x_r − y_r| = Σ_r (x_r − y_r) + 2 Σ_r (y_r − x_r)+`, the ℓ1 error is the loss and twice

`Σ_{j<k} (x_j − x_{j+1}) (W_j − M_j)`, `W_j = Σ_{i<=j} P[i is behind rank j]`, `M_j = Σ_{i<=j} P[i is behind rank k]`.

What M_j adds is the cost of what is missing (noisy_expectations.py). With N the number of items above z, i left out,
`W_j = ∫ Σ_{i<=j} f_i P[N >= j] dz`; all j are summed round one circle (contour.py) of twice as many points, so that j
may be anywhere in the reach of N. Farther away P is 0 or 1. At each z only a window of groups is looked at: those above
it are certain, those below it out of reach.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from dpselect.forecast.chances import FloatArray
from dpselect.forecast.contour import Circle, log_scales, marked_upto, product, tilted, weighted
from dpselect.forecast.noise_values import merged, values_at
from dpselect.forecast.noisy import NoisyGroups, log_series
from dpselect.forecast.panels import and_neighbours, batches, paced
from dpselect.forecast.tail_segments import SIZE, TERMS, by_excess
from dpselect.forecast.tails import first_rare, series_coefficients

Array = npt.NDArray[Any]

_REACH, _DEPTH = 45.0, 26.0
_NEVER, _SURE = 31.0, 36.0
_PANEL, _STEP = 2.6, 0.155
_CELL, _ACROSS = 1.0, 9
_NEAR, _FEW = 6.0, 3
_FARTHEST, _MANY, _ABOUT = 1e4, 24, 0.9
_MOST_WORK = 2_000_000
_BATCH, _FEWEST = 2_000, 4
_NEARBY, _LIGHTER = 50, 8


@dataclass(frozen=True, repr=False)
class Order:
    """All groups; the costs of those up to rank k's, `border`, are the distances of their scores from it."""

    noisy: NoisyGroups
    costs: FloatArray
    border: int

    @cached_property
    def gaps(self) -> FloatArray:
        """How far each group above rank k's is from the next in score."""
        return -np.diff(self.costs[: self.border + 1])

    def misplaced(self) -> float | None:
        """Return `Σ_j (x_j − x_{j+1}) W_j`, or None if that is too much work."""
        if not self.border:
            return 0.0
        with np.errstate(over="ignore", under="ignore", divide="ignore", invalid="ignore"):
            cells, inside = self._cells()
            if not len(inside):
                return 0.0
            if len(inside) * self._rough._around((cells[1:] + cells[:-1]) / 2)[1] > _MOST_WORK:
                return None
            nodes, weights, variances, settled = self._nodes(cells, inside)
            result = self._settled(nodes[settled]) @ weights[settled]
            nodes, weights, variances = nodes[~settled], weights[~settled], variances[~settled]
            log_radius = self._log_radius(nodes, variances)
            first, last, rare = self._windows(nodes, log_radius)
            if (last - first).sum() > _MOST_WORK:
                return None
            # Far below rank k only the law counts.
            lightly = np.maximum(last - np.maximum(self.border + _NEARBY, first), 0)
            work = last - first - lightly * (1 - 1 / _LIGHTER)
            circles = np.round(np.log2(np.maximum(variances, 1.0)))
            for part in batches(work, circles, _BATCH, _FEWEST):
                values, worse = self._integrand(nodes[part], log_radius[part], first[part], last[part], rare[part])
                if worse.any():
                    plain = np.zeros(int(worse.sum()))
                    windows = self._windows(nodes[part][worse], plain)
                    values[worse], _ = self._integrand(nodes[part][worse], plain, *windows)
                result += weights[part] @ values
        return float(result)

    def _settled(self, z: FloatArray) -> FloatArray:
        """Return the integrand where more than k items are above z in any case."""
        border = self.border
        at_z = self.noisy.sizes[:border, None] * self.noisy.noise.density(z - self.noisy.locations[:border, None])
        result: FloatArray = self.gaps @ np.cumsum(at_z, axis=0)
        return result

    def _window(self, first: Array, width: int) -> tuple[Array, FloatArray]:
        """Return so many groups from each first one on as [group, z], and their sizes; 0 behind the last group."""
        groups = first + np.arange(width)[:, None]
        inside = groups < len(self.noisy.sizes)
        groups = np.where(inside, groups, len(self.noisy.sizes) - 1)
        return groups, np.where(inside, self.noisy.sizes[groups], 0.0)

    def _values(self, z: FloatArray, groups: Array) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return F, S and f of a window."""
        return values_at(self.noisy.noise, z - self.noisy.locations[groups])

    def _around(self, z: FloatArray) -> tuple[Array, int]:
        """Return the first groups of windows that reach to both sides of z, and how wide they are."""
        places = -self.noisy.locations
        first, last = np.searchsorted(places, -z - _NEAR), np.searchsorted(places, _NEAR - z)
        return np.maximum(first - _FEW, 0), int((last - first).max()) + 2 * _FEW

    @cached_property
    def _swaps(self) -> FloatArray:
        """The largest logarithm of f of a group times S of the next."""
        noise, locations = self.noisy.noise, self.noisy.locations[: self.border + 1]
        high, low = locations[:-1], locations[1:]
        across = low + np.linspace(0, 1, _ACROSS)[:, None] * (high - low)
        result: FloatArray = np.log((noise.density(across - high) * noise.survival(across - low)).max(axis=0))
        return result

    def _cells(self) -> tuple[FloatArray, Array]:
        """Return cells around those pairs of neighbouring groups that may swap, and which of them are not between."""
        locations, swaps = self.noisy.locations[: self.border + 1], self._swaps + np.log(self.gaps)
        near = np.isfinite(swaps) & (swaps > swaps.max() - _DEPTH)
        if not near.any():
            return np.zeros(1), np.zeros(0, dtype=bool)
        starts, ends = (locations[1:][near] - _REACH)[::-1], (locations[:-1][near] + _REACH)[::-1]
        apart = np.append(True, starts[1:] > np.maximum.accumulate(ends)[:-1])
        starts, ends = starts[apart], np.maximum.accumulate(ends)[np.append(apart[1:], True)]
        parts = [np.linspace(x, y, int((y - x) / _CELL) + 2) for x, y in zip(starts, ends, strict=True)]
        inside = np.concatenate([np.append(np.ones(len(part) - 1, dtype=bool), False) for part in parts])[:-1]
        return np.concatenate(parts), inside

    def _nodes(self, cells: FloatArray, inside: Array) -> tuple[FloatArray, FloatArray, FloatArray, Array]:
        """Return nodes and weights where some item may stand at z with one of lower score above it.

        Then about the variance of the number of items above z, and where that is more than k in any case: by Chernoff's
        bound a number of mean m is below k with a chance of at most `exp(−(m − k)^2 / 2m)`.
        """
        z = (cells[1:] + cells[:-1]) / 2
        rough = self._rough
        groups, sizes = rough._window(*rough._around(z))
        cdf, survival, density = rough._values(z, groups)
        at_z, above = sizes * density, sizes * survival
        log_mean = np.log(rough._before[groups[0]] + above.sum(axis=0))
        unsettled = ~self._surely_more(np.exp(log_mean))
        behind = np.zeros_like(above)
        behind[:-1] = np.cumsum(above[:0:-1], axis=0)[::-1]
        bound = np.log((rough._steps[groups] * np.cumsum(at_z, axis=0) * np.minimum(behind, 1.0)).sum(axis=0))
        kept = and_neighbours(inside & (bound > bound[inside].max() - _DEPTH)) & inside
        # The number of items above z varies by its deviation, which is how finely z has to be cut.
        variances = (above * cdf).sum(axis=0)
        spread = np.sqrt(variances) / at_z.sum(axis=0)
        wide = np.pad(np.where(and_neighbours(unsettled) & (spread < 1), spread, 1.0), 1, constant_values=1.0)
        paces = _PANEL * np.minimum(np.minimum(wide[:-2], wide[2:]), wide[1:-1])
        nodes, weights = paced(cells, kept, paces, self.noisy.kinks, smooth=not self.noisy.noise.kinks, step=_STEP)
        settled = self._surely_more(np.exp(np.interp(nodes, z, log_mean)))
        return nodes, weights, np.interp(nodes, z, variances), settled

    def _surely_more(self, mean: FloatArray) -> Array:
        """Return where more than k items are above z in any case, for about so many on average."""
        least, k = _ABOUT * mean, self.noisy.k
        result: Array = (least > k) & ((least - k) ** 2 > 2 * _SURE * mean)
        return result

    @cached_property
    def _rough(self) -> Order:
        """The groups, those below rank k's merged for rough sums."""
        noisy, first = self.noisy, self.border + 1
        if self._series is None:
            return self
        low, sizes, _ = merged(noisy.locations[first:], noisy.sizes[first:], noisy.sizes[first:])
        locations, sizes = np.append(noisy.locations[:first], low), np.append(noisy.sizes[:first], sizes)
        return Order(NoisyGroups(locations, sizes, noisy.k, noisy.noise), self.costs, self.border)

    @cached_property
    def _steps(self) -> FloatArray:
        """The gaps, and 0 from rank k's group on."""
        return np.append(self.gaps, np.zeros(len(self.noisy.sizes) - self.border))

    @cached_property
    def _log_steps(self) -> FloatArray:
        """Their logarithms."""
        return np.log(self._steps)

    @cached_property
    def _before(self) -> FloatArray:
        """How many items are in the groups before each."""
        return self.noisy.ends - self.noisy.sizes

    def _log_radius(self, z: FloatArray, variances: FloatArray) -> FloatArray:
        """Return log r for each z, such that the sum on the circle is not much larger than its result.

        It is at most `Σ_j (x_j − x_{j+1}) Σ_{i<=j} f_i / (F_i + S_i r) · G(r) r^{1 − j} / max(r, 1)`. Where much is
        undecided any r near 1 will do; else it is least where half an item more than a whole number is above z. Only
        the nearest groups are looked at here; `_integrand` tells where others make r worse than 1.
        """
        still = np.flatnonzero(variances < 1)
        # Then only the nearest groups matter.
        nearest = np.searchsorted(-self.noisy.locations, -z[still])
        groups, sizes = self._window(np.maximum(nearest - _FEW, 0), 2 * _FEW + 1)
        cdf, survival, density = self._values(z[still], groups)
        usual, number = np.floor((sizes * survival).sum(axis=0)), sizes.sum(axis=0)
        ranks = np.cumsum(sizes, axis=0) - usual
        result, least = np.zeros(len(z)), np.full(len(still), np.inf)
        for more in (None, 0.5, 1.5):
            log_radius = np.zeros(len(still)) if more is None else tilted(cdf, survival, sizes, usual + more)
            scale = cdf + survival * np.exp(log_radius)
            log_law = (sizes * np.log(scale)).sum(axis=0) - usual * log_radius - np.maximum(log_radius, 0.0)
            log_terms = np.log(self._steps[groups] * np.cumsum(sizes * density / scale, axis=0))
            bound = log_law + (log_terms + (1 - ranks) * log_radius).max(axis=0)
            # A window may hold too few items for so many to be above z.
            better = (bound < least) & (more is None or usual + (more or 0.0) < number)
            result[still[better]], least[better] = log_radius[better], bound[better]
        return result

    def _windows(self, z: FloatArray, log_radius: FloatArray) -> tuple[Array, Array, Array]:
        """Return from which group on items may be below z, and from which on none can be above it, or all are rare.

        Then where they are rare: below rank k, not too far for power sums, and many.
        """
        noise, places = self.noisy.noise, -self.noisy.locations
        # The rarer the swap is that costs most on average, the rarer items matter.
        never = _NEVER - float(self._swaps[np.argmax(self._swaps + np.log(self.gaps))])
        distances = np.linspace(0.0, 4 * never, 16 * int(never) + 1)
        above = float(distances[min(int((noise.cdf(-distances) > np.exp(-never)).sum()), len(distances) - 1)])
        rarity = -np.log(noise.survival(distances))
        below = np.interp(never + np.maximum(log_radius, 0.0), rarity, distances)
        first, last = np.searchsorted(places, -z - above), np.searchsorted(places, below - z)
        if self._series is None:
            return first, last, np.zeros(len(z), dtype=bool)
        starts = first_rare(self._series, self.noisy.locations, z - np.maximum(log_radius, 0.0))
        starts = np.maximum(starts, self.border + 1)
        rare = (last - starts > _MANY) & (places[np.minimum(starts, len(places) - 1)] < _REACH)
        return np.where(rare, np.minimum(first, starts), first), np.where(rare, starts, last), rare

    @cached_property
    def _series(self) -> FloatArray | None:
        return log_series(self.noisy.noise.name)

    @cached_property
    def _power_sums(self) -> FloatArray:
        """`Σ m e^{j a}` over the groups below rank k's from each on, as [group, j]."""
        below = slice(self.border + 1, None)
        terms = self.noisy.sizes[below, None] * np.exp(np.multiply.outer(self.noisy.locations[below], np.arange(SIZE)))
        sums = np.cumsum(terms[::-1], axis=0)[::-1]
        return np.concatenate([np.zeros((self.border + 1, SIZE)), sums, np.zeros((1, SIZE))])

    def _log_tail(self, z: FloatArray, log_radius: FloatArray, last: Array, rare: Array) -> FloatArray:
        """Return the coefficients [z, power] of the logarithm of `Π (F + S x)` over the rare groups from `last` on."""
        result = np.zeros((len(z), SIZE))
        if self._series is None or not rare.any():
            return result
        powers, (law, _, _) = np.arange(SIZE), series_coefficients(tuple(self._series[:TERMS]))
        coefficients = by_excess(law * self._power_sums[last[rare], None])
        found = np.einsum("zid,zd->zi", coefficients, np.exp(-np.multiply.outer(z[rare], powers)))
        result[rare] = found * np.exp(np.multiply.outer((log_radius - z)[rare], powers))
        return result

    def _integrand(
        self, z: FloatArray, log_radius: FloatArray, first: Array, last: Array, rare: Array
    ) -> tuple[FloatArray, Array]:
        """Return `Σ_j (x_j − x_{j+1}) Σ_{i<=j} f_i P[N >= j]` at each z, for windows of groups.

        Then where some term on the circle may be larger than the largest for r = 1, so that rounding is no smaller.
        """
        width = int((last - first).max())
        groups, sizes = self._window(first, width)
        # Those behind a window are rare, or out of reach.
        sizes = np.where(groups < last, sizes, 0.0)
        cdf, survival, density = self._values(z, groups)
        raised = survival * np.exp(log_radius)
        scale = cdf + raised
        shares, others = raised / scale, cdf / scale
        certain = np.where(first < len(self._before), self._before[np.minimum(first, len(self._before) - 1)], 0.0)
        tail, powers = self._log_tail(z, log_radius, last, rare), np.arange(float(SIZE))
        variances = (sizes * shares * others).sum(axis=0) + tail @ powers**2
        undecided = np.inf if tail.any() else float(sizes.sum(axis=0).max())
        circle = Circle.of(log_radius, variances, times=2, undecided=undecided)
        usual = np.round(certain + (sizes * shares).sum(axis=0) + tail @ powers)
        law = product(shares, sizes, circle) * np.exp(1j * np.multiply.outer(certain - usual, circle.angles))
        law *= np.exp(tail @ (circle.turns ** powers[:, None] - 1))
        log_scale = (sizes * log_scales(cdf, survival, log_radius, float(sizes.max(initial=0.0)))).sum(axis=0)
        log_scale += (certain - usual) * log_radius + tail.sum(axis=1)
        rows = groups.min(axis=1) < self.border
        steps, ranks = self._steps[groups[rows]], self.noisy.ends[groups[rows]] - usual
        at_z = np.where(groups[rows] < self.border, (sizes * density)[rows], 0.0)
        upto = marked_upto(shares[rows], others[rows], at_z / scale[rows], circle)
        # No more items than those of the window can be above z.
        near = (groups[rows] < last) & (
            np.abs(ranks) <= (circle.number if circle.number > undecided else circle.number / 2)
        )
        log_weights = self._log_steps[groups[rows]] + (1 - ranks) * log_radius
        most = log_weights.max(axis=0, initial=-_FARTHEST)
        weights = np.exp(log_weights - most)
        whole, plain = np.cumsum(at_z, axis=0) * steps, np.cumsum(at_z / scale[rows], axis=0)
        largest = log_scale + most + np.log((weights * plain).max(axis=0, initial=0.0)) - np.maximum(log_radius, 0.0)
        worse = (log_radius != 0) & (largest > np.log(whole.max(axis=0, initial=0.0)) + 1.0)
        weights = np.where(near, weights, 0.0)
        powers = np.exp(-1j * np.multiply.outer(np.arange(-circle.number, circle.number + 1), circle.angles))
        upto *= powers[np.clip(ranks - 1, -circle.number, circle.number).astype(np.intp) + circle.number]
        terms = law * weighted(weights, upto)
        sure = np.where(near, whole / (1 + np.exp(circle.number * log_radius)), np.where(ranks < 0, whole, 0.0))
        values: FloatArray = sure.sum(axis=0) + circle.more_than(0, terms, log_scale + most, np.zeros(len(z)))
        return values, worse
