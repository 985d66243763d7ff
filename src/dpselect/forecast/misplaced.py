"""How much score stands at wrong ranks among the k largest of `a_i + Z_i` in order, as integrals over one value z.

Notation: `x_1 >= x_2 >= …` are the scores by rank, y_r the score at rank r of the answer. As
`Σ_r |x_r − y_r| = Σ_r (x_r − y_r) + 2 Σ_r (y_r − x_r)+`, the ℓ1 error is the loss and twice

`Σ_{j<k} (x_j − x_{j+1}) (W_j − M_j)`, `W_j = Σ_{i<=j} P[i is behind rank j]`, `M_j = Σ_{i<=j} P[i is behind rank k]`.

What M_j adds is the cost of what is missing (noisy_expectations.py). With N the number of items above z, i left out,
`W_j = ∫ Σ_{i<=j} f_i P[N >= j] dz`, whose integrand is computed in misplaced_at.py. At each z only a window of groups
is looked at: those above it are certain, those below it out of reach.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpselect._arrays import Array, BoolArray, FloatArray
from dpselect.forecast.misplaced_at import Ranked
from dpselect.forecast.noise_values import deepest, farthest, merged
from dpselect.forecast.noisy import NoisyGroups
from dpselect.forecast.panels import SMALL, and_neighbours, batches, least_near, paced
from dpselect.forecast.radii import tilted

_REACH, _MARGIN, _DEPTH = 45.0, 2.0, 26.0
_NEVER, _SURE = 31.0, 20.0
_PANEL, _STEP, _STEP_NORMAL, _DENSE = 2.6, 0.145, 0.19, 2.0
_FINER = 0.85
_CELL, _ACROSS = 1.0, 9
_FEW = 3
_MANY, _ABOUT = 24, 0.9
_FAINT, _NOTHING, _WITHIN = 11.0, 30.0, 40.0
"""Where all that might be lost is more e-folds above what is lost at most, digits get lost for r = 1."""
_MOST_WORK = 2_000_000
_POINTS, _FOR_EACH, _SEEN = 11.0, 6.5, 2.5
"""About how far a number of items may be from its mean (contour.py), with each deviation; which angles are seen."""
_TOGETHER, _MOST_NODES = 200_000, 256
_BATCH, _FEWEST = 2_000, 4


@dataclass(frozen=True, repr=False)
class Order:
    """All groups; the costs of those up to rank k's, `border`, are the distances of their scores from it."""

    noisy: NoisyGroups
    costs: FloatArray
    border: int

    @cached_property
    def _ranked(self) -> Ranked:
        return Ranked(self.noisy, -np.diff(self.costs[: self.border + 1]))

    def misplaced(self) -> float | None:
        """Return `Σ_j (x_j − x_{j+1}) W_j`, or None if that is too much work."""
        if not self.border:
            return 0.0
        with np.errstate(over="ignore", under="ignore", divide="ignore", invalid="ignore"):
            cells, inside = self._cells()
            if not len(inside):
                return 0.0
            if len(inside) * self._rough.around((cells[1:] + cells[:-1]) / 2)[1] > _MOST_WORK:
                return None
            spots = self._spots(cells, inside)
            settled, plain = spots.only(spots.settled), spots.only(~spots.settled & ~spots.faint)
            faint = spots.only(~spots.settled & spots.faint)
            log_radius = self._log_radius(faint.z)
            windows = self._windows(plain.z, np.zeros_like(plain.z), plain.highest)
            faint_windows = self._windows(faint.z, log_radius)
            if sum(int((last - first).sum()) for first, last, _ in (windows, faint_windows)) > _MOST_WORK:
                return None
            found = self._ranked.settled(settled.z) @ settled.weights
            return float(found + self._plainly(plain, *windows) + self._faintly(faint, log_radius, *faint_windows))

    def _plainly(self, spots: Spots, first: Array, last: Array, rare: Array) -> float:
        """Return the integral over nodes for which r = 1 will do, neighbouring ones together."""
        total, locations = 0.0, np.append(self.noisy.locations, -np.inf)
        for part in _neighbours(first, last, spots.mean, spots.points):
            window = slice(int(first[part].min()), int(last[part].max()))
            # Where rare items are too far for power sums, they are out of reach.
            behind = bool(rare[part].any()) and float(locations[window.stop]) > -_REACH
            values = self._ranked.plainly(spots.z[part], window, spots.nothing, rare=behind)
            total += float(spots.weights[part] @ values)
        return total

    def _faintly(self, spots: Spots, log_radius: FloatArray, first: Array, last: Array, rare: Array) -> float:
        """Return the integral over nodes that need circles of their own."""
        total, z = 0.0, spots.z
        for part in batches(last - first, _BATCH, _FEWEST):
            windows = first[part], last[part], rare[part]
            values, worse = self._ranked.on_circles(z[part], log_radius[part], *windows, spots.nothing)
            if worse.any():
                plain = np.zeros(int(worse.sum()))
                windows = self._windows(z[part][worse], plain)
                values[worse], _ = self._ranked.on_circles(z[part][worse], plain, *windows, spots.nothing)
            total += float(spots.weights[part] @ values)
        return total

    @cached_property
    def _swaps(self) -> FloatArray:
        """The largest logarithm of f of a group times S of the next."""
        noise, locations = self.noisy.noise, self.noisy.locations[: self.border + 1]
        high, low = locations[:-1], locations[1:]
        across = low + np.linspace(0, 1, _ACROSS)[:, None] * (high - low)
        result: FloatArray = np.log((noise.density(across - high) * noise.survival(across - low)).max(axis=0))
        return result

    @cached_property
    def _lost(self) -> FloatArray:
        """About the logarithm of what each gap costs on average: all pairs may swap, but each item once at most."""
        sizes = np.log(self.noisy.sizes[: self.border + 1])
        result: FloatArray = np.log(self._ranked.gaps) + sizes[:-1] + np.minimum(self._swaps + sizes[1:], 0.0)
        return result

    def _cells(self) -> tuple[FloatArray, Array]:
        """Return cells around those pairs of neighbouring groups that may swap, and which of them are not between."""
        locations, lost = self.noisy.locations[: self.border + 1], self._lost
        near = np.isfinite(lost) & (lost > lost.max() - _DEPTH)
        if not near.any():
            return np.zeros(1), np.zeros(0, dtype=bool)
        down, up = (min(_REACH, part(self.noisy.noise) + _MARGIN) for part in (deepest, farthest))
        starts, ends = (locations[1:][near] - down)[::-1], (locations[:-1][near] + up)[::-1]
        apart = np.append(True, starts[1:] > np.maximum.accumulate(ends)[:-1])
        starts, ends = starts[apart], np.maximum.accumulate(ends)[np.append(apart[1:], True)]
        parts = [np.linspace(x, y, int((y - x) / _CELL) + 2) for x, y in zip(starts, ends, strict=True)]
        inside = np.concatenate([np.append(np.ones(len(part) - 1, dtype=bool), False) for part in parts])[:-1]
        return np.concatenate(parts), inside

    def _spots(self, cells: FloatArray, inside: BoolArray) -> Spots:
        """Return nodes where some item may stand at z with one of lower score above it.

        More than k items are above z in any case where their mean m is large enough: by Bernstein's bound the number is
        below k with a chance of at most `exp(−t^2 / (2 v + 2 t / 3))`, `t = m − k`, v its variance.
        """
        z = (cells[1:] + cells[:-1]) / 2
        rough = self._rough
        groups, sizes = rough.window(*rough.around(z))
        cdf, survival, density = rough.values(z, groups)
        at_z, above = sizes * density, sizes * survival
        log_mean = np.log(rough.before[groups[0]] + above.sum(axis=0))
        variances = (above * cdf).sum(axis=0)
        unsettled = ~self._surely_more(np.exp(log_mean), variances)
        behind = np.zeros_like(above)
        behind[:-1] = np.cumsum(above[:0:-1], axis=0)[::-1]
        whole = rough.steps[groups] * np.cumsum(at_z, axis=0)
        possible = whole * np.minimum(behind, 1.0)
        bound = np.log(possible.sum(axis=0))
        most = float(bound[inside].max())
        # Gaps across which next to nothing can be lost are left out; within a cell that may change by many e-folds.
        log_whole = np.log(np.where(np.log(possible) > most - _NOTHING - _WITHIN, whole, 0.0).sum(axis=0))
        kept = and_neighbours(inside & (bound > most - _DEPTH)) & inside
        # The number of items above z varies by its deviation, which is how finely z has to be cut.
        spread = _DENSE * np.sqrt(variances) / at_z.sum(axis=0)
        paces = _PANEL * least_near(np.where(and_neighbours(unsettled) & (spread < 1), spread, 1.0))
        noise, step = self.noisy.noise, _STEP
        if noise.name == "normal":
            step = _STEP_NORMAL * (_FINER if len(self.noisy.sizes) <= SMALL else 1.0)
        nodes, weights = paced(cells, kept, paces, self.noisy.kinks, smooth=not noise.kinks, step=step)
        mean = np.exp(np.interp(nodes, z, log_mean))
        about = np.interp(nodes, z, variances)
        settled = self._surely_more(mean, about)
        faint = np.interp(nodes, z, log_whole) > most + _FAINT
        # Of the points on a circle those are left out at which the law is next to nothing.
        reach = _POINTS + _FOR_EACH * np.sqrt(about)
        points, highest = reach * np.minimum(1.0, _SEEN / np.sqrt(np.maximum(about, 1.0))), mean + reach / _ABOUT
        return Spots(nodes, weights, mean, points, highest, settled, faint, float(np.exp(most - _NOTHING)))

    def _surely_more(self, mean: FloatArray, variances: FloatArray) -> Array:
        """Return where more than k items are above z in any case, for about such a mean and variance."""
        more = _ABOUT * mean - self.noisy.k
        result: Array = (more > 0) & (more**2 > 2 * _SURE * (variances / _ABOUT + more / 3))
        return result

    @cached_property
    def _rough(self) -> Ranked:
        """The groups, those below rank k's merged for rough sums."""
        noisy, first = self.noisy, self.border + 1
        low, sizes, _ = merged(noisy.noise, noisy.locations[first:], noisy.sizes[first:], noisy.sizes[first:])
        locations, sizes = np.append(noisy.locations[:first], low), np.append(noisy.sizes[:first], sizes)
        return Ranked(NoisyGroups(locations, sizes, noisy.k, noisy.noise), self._ranked.gaps)

    def _log_radius(self, z: FloatArray) -> FloatArray:
        """Return log r for each z, such that the sum on the circle is not much larger than its result.

        It is at most `Σ_j (x_j − x_{j+1}) Σ_{i<=j} f_i / (F_i + S_i r) · G(r) r^{1 − j} / max(r, 1)`, which is least
        where about half an item more than those of a few groups is above z. Only the nearest groups are looked at here;
        `on_circles` tells where others make r worse than 1.
        """
        ranked, result = self._ranked, np.zeros(len(z))
        if not len(z):
            return result
        nearest = np.searchsorted(-self.noisy.locations, -z)
        first = np.maximum(nearest - _FEW, 0)
        groups, sizes = ranked.window(first, 2 * _FEW + 1)
        cdf, survival, density = ranked.values(z, groups)
        number, ends = sizes.sum(axis=0), np.cumsum(sizes, axis=0)
        usual = np.floor((sizes * survival).sum(axis=0))
        least = np.full(len(z), np.inf)
        # At the top of the table fewer groups are before the nearest.
        around = [ends[np.maximum(nearest - first - back, 0), np.arange(len(z))] + 0.5 for back in (2, 1, 0)]
        for wanted in (None, usual + 0.5, usual + 1.5, *around):
            log_radius = np.zeros(len(z)) if wanted is None else tilted(cdf, survival, sizes, wanted)
            scale = cdf + survival * np.exp(log_radius)
            log_law = (sizes * np.log(scale)).sum(axis=0) - np.maximum(log_radius, 0.0)
            log_terms = np.log(ranked.steps[groups] * np.cumsum(sizes * density / scale, axis=0))
            bound = log_law + (log_terms + (1 - ends) * log_radius).max(axis=0)
            # A window may hold too few items for so many to be above z.
            better = (bound < least) & (wanted is None or wanted < number)
            result[better], least[better] = log_radius[better], bound[better]
        return result

    def _windows(
        self, z: FloatArray, log_radius: FloatArray, ranks: FloatArray | float = np.inf
    ) -> tuple[Array, Array, Array]:
        """Return from which group on items may be below z, and from which on none can be above it, or all are rare.

        Then where they are rare: behind all ranks up to k that so many items above z may reach, not too far for power
        sums, and many.
        """
        noise, places = self.noisy.noise, -self.noisy.locations
        if not len(z):
            nothing = np.zeros(0, dtype=np.intp)
            return nothing, nothing, nothing.astype(bool)
        # The rarer the swap is that costs most on average, the rarer items matter.
        never = _NEVER - float(self._swaps[np.argmax(self._lost)])
        distances = np.linspace(0.0, 4 * never, 16 * int(never) + 1)
        above = float(distances[min(int((noise.cdf(-distances) > np.exp(-never)).sum()), len(distances) - 1)])
        rarity = -np.log(noise.survival(distances))
        below = np.interp(never + np.maximum(log_radius, 0.0), rarity, distances)
        first, last = np.searchsorted(places, -z - above), np.searchsorted(places, below - z)
        starts = self._ranked.first_rare(z, log_radius)
        reached = np.searchsorted(self.noisy.ends, np.minimum(ranks, self.noisy.k)) + 1
        starts = np.maximum(starts, np.maximum(reached, self._ranked.first_summed))
        rare = (last - starts > _MANY) & (places[np.minimum(starts, len(places) - 1)] < _REACH)
        return np.where(rare, np.minimum(first, starts), first), np.where(rare, starts, last), rare


@dataclass(frozen=True, repr=False)
class Spots:
    """Nodes and weights, about how many items are above z on average, how many points a circle has, the highest rank.

    Then where more than k items are above z in any case, where r = 1 would lose digits; and what is nothing beside all.
    """

    z: FloatArray
    weights: FloatArray
    mean: FloatArray
    points: FloatArray
    highest: FloatArray
    settled: BoolArray
    faint: BoolArray
    nothing: float

    def only(self, where: BoolArray) -> Spots:
        """Return some of the nodes."""
        parts = {name: part[where] for name, part in vars(self).items() if name != "nothing"}
        return Spots(**parts, nothing=self.nothing)


def _neighbours(first: Array, last: Array, mean: FloatArray, points: FloatArray) -> Iterator[slice]:
    """Yield which nodes to take together: neighbours, with a window and a circle for all that are not too large."""
    start = 0
    while start < len(first):
        near = slice(start, start + _MOST_NODES)
        width = np.maximum.accumulate(last[near]) - np.minimum.accumulate(first[near])
        apart = np.maximum.accumulate(mean[near]) - np.minimum.accumulate(mean[near])
        # Where the mean is off the middle, a circle has as many points more.
        work = np.arange(1, len(width) + 1) * width * (np.maximum.accumulate(points[near]) + apart / 2)
        stop = start + max(int(np.searchsorted(work, _TOGETHER, side="right")), 1)
        yield slice(start, stop)
        start = stop
