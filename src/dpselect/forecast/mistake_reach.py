"""Where mistakes among the k largest of `a_i + Z_i` happen: which values z to integrate over, and on which circles.

Notation as in noisy_expectations.py, and r, G(r) and "tilted" as in contour.py.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpselect._arrays import BoolArray, FloatArray
from dpselect.forecast.mistake_nodes import Nodes
from dpselect.forecast.noise_values import chances_at, deepest, farthest, merged, values_at
from dpselect.forecast.noisy import NoisyGroups, log_series
from dpselect.forecast.panels import (
    SMALL,
    and_neighbours,
    ascending,
    behind_jumps,
    highest_at,
    least_near,
    nearest,
    paced,
)
from dpselect.forecast.radii import tilted
from dpselect.forecast.tilted import Tilted

_DEPTH, _FARTHER, _LOWEST = 25.0, 35.0, 1e3
_SURE = 30.0
_VISIBLE, _SEEN = 14.0, 22.0
_PANEL, _EVEN, _EVEN_NORMAL = 2.6, 0.14, 0.12
_STEPS, _MANY = 5.0, 2.0
_DEVIATIONS = 9.0
_ROUNDS, _GRID = 3, 18
_NEAR_TURN, _MOST_STEPS = 0.1, 60
_LOOKS = 12
_APART = 0.75
_EXPONENTIAL_TAILS = ("laplace", "logistic")
_VARIED = 0.3
_HARDLY_ANY = 0.05
_NEVER = 1e-20
_ELEMENTS = 1_000_000
_HALVINGS = 60


@dataclass(frozen=True, repr=False)
class Reach:
    """The groups around rank k, whose group is `border`; of those tied with it, `room` belong to the top k."""

    noisy: NoisyGroups
    costs: FloatArray
    border: int
    room: int

    @cached_property
    def _outline(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Locations, sizes and costs of the groups, those below rank k merged for rough sums."""
        noisy, first = self.noisy, self.border + 1
        all_of_them = noisy.locations, noisy.sizes, self.costs
        rough = merged(noisy.noise, *(part[first:] for part in all_of_them))
        locations, sizes, costs = (np.append(part[:first], low) for part, low in zip(all_of_them, rough, strict=True))
        return locations, sizes, costs

    def log_radius(self, z: FloatArray, wanted: float, *, crowded: bool = False) -> FloatArray:
        """Return log r at which about so many items are above z; if crowded, at least `room` of the tied ones are."""
        noise, (locations, sizes, _) = self.noisy.noise, self._outline
        # The first groups are above every z.
        first = int((noise.cdf(z[-1] - locations[: self.border]) < _NEVER).sum())
        wanted -= float(sizes[:first].sum())
        locations, sizes = locations[first:], sizes[first:]
        result = np.zeros(len(z))
        if not crowded:
            looks = np.linspace(z[0], z[-1], _LOOKS + int((z[-1] - z[0]) / _APART))
            found = tilted(*chances_at(noise, looks, locations), sizes, wanted)
            result = np.interp(z, looks, found)
            if noise.name in _EXPONENTIAL_TAILS:
                # No chance S or F falls faster than e^z, and log r changes no faster than z.
                return result
        step = max(1, _ELEMENTS // len(sizes))
        for part in (slice(start, start + step) for start in range(0, len(z), step)):
            values = values_at(noise, z[part], locations)
            if crowded:
                result[part] = tilted(*values[:2], sizes, wanted, (self.border - first, self.room))
            else:
                result[part] = Tilted(sizes, result[part], *values).corrected(wanted).log_radius
        return result

    def tilted_at(self, z: FloatArray, wanted: float) -> FloatArray:
        """Return log r at which about so many items are above each z."""
        return tilted(*self._chances(z), self._outline[1], wanted)

    def moments(self, z: FloatArray, log_radius: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the mean and the variance of the number of items above z on these circles."""
        sizes, (below, above) = self._outline[1], self._chances(z)
        raised = above * np.exp(log_radius)
        shares = raised / (below + raised)
        return sizes @ shares, sizes @ (shares * (1 - shares))

    @cached_property
    def _latest(self) -> list[tuple[FloatArray, tuple[FloatArray, FloatArray]]]:
        return []

    def _chances(self, z: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return F and S of each group; for the same z as before they are known."""
        if not self._latest or self._latest[0][0] is not z:
            self._latest[:] = [(z, chances_at(self.noisy.noise, z, self._outline[0]))]
        return self._latest[0][1]

    def falling_cost(self, low: float, high: float) -> float:
        """Return by how many e-folds the mean cost of the items below rank k that are above z falls between two z."""
        locations, sizes, costs = (part[self.border + 1 :] for part in self._outline)
        above = self.noisy.noise.survival(np.array([[low], [high]]) - locations)
        first, last = np.log(above @ (sizes * costs) / (above @ sizes)).tolist()
        # Without such items, or with all of them out of reach, none cost anything.
        return first - last if np.isfinite(first - last) else 0.0

    def varied(self, z: FloatArray) -> BoolArray:
        """Return where the number of items above z varies so much that one circle does for fewer than k and for k."""
        _, variance = self.moments(z, self.tilted_at(z, self.noisy.k))
        result: BoolArray = variance > _VARIED
        return result

    def _values(self, z: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return F, S and f of each group."""
        return values_at(self.noisy.noise, z, self._outline[0])

    @cached_property
    def _by_rank(self) -> tuple[FloatArray, FloatArray]:
        """The sizes of the groups up to rank k's, and from it on; those tied with rank k are split by rank."""
        border, sizes = self.border, self._outline[1]
        inside, outside = sizes[: border + 1].copy(), sizes[border:].copy()
        inside[border] = self.room
        outside[0] -= self.room
        return inside, outside

    def _expected(self, cdf: FloatArray, survival: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return how many of the top k lie below z on average, and how many others above it."""
        inside, outside = self._by_rank
        return inside @ cdf[: self.border + 1], outside @ survival[self.border :]

    def _chance(
        self, values: tuple[FloatArray, FloatArray, FloatArray], *, fewer: bool
    ) -> tuple[FloatArray, FloatArray]:
        """Return bounds on the logarithm of the chance that fewer than k items lie above z, or that at least k do.

        They hold whichever item is left out. Then f of each group times how much less that is if one of its items is.
        By Chernoff's bound, for r <= 1, `P[N < k] <= G(r) r^{−k}` times `r / (F + S r) <= 1`; and for r >= 1,
        `P[N >= k] <= G(r) r^{−k}` times `1 / (F + S r) <= 1`. The products are least about where r is tilted to k, or
        for r = 1, where the chance may be 1.
        """
        (_, survival, density), sizes, k = values, self._outline[1], self.noisy.k
        log_chance, at_z, wanted = np.zeros(density.shape[1]), density.copy(), k - 0.5 if fewer else k + 0.5
        # The higher z, the fewer items are above it.
        border = int((sizes @ survival > wanted).sum())
        first, end = (0, border) if fewer else (border, len(log_chance))
        if first < end:
            some = slice(first, end)
            cdf, survival, density = (part[:, some] for part in values)
            log_radius = tilted(cdf, survival, sizes, wanted)
            log_radius = np.minimum(log_radius, 0.0) if fewer else np.maximum(log_radius, 0.0)
            scale = cdf + survival * np.exp(log_radius)
            log_chance[some] = sizes @ np.log(scale) - k * log_radius
            at_z[:, some] = density * (np.exp(np.minimum(log_radius, 0.0)) / scale)
        return log_chance, at_z

    def nodes(self) -> Nodes:
        """Return nodes and weights where a mistake can happen."""
        noisy = self.noisy
        # With noise that is never negative k values are at rank k's location or above.
        one_sided = noisy.noise.cdf(np.zeros(1))[0] == 0
        next_one = float(noisy.locations[noisy.group(noisy.k + 1)])
        low = 0.0 if one_sided else next_one - farthest(noisy.noise)
        high = farthest(noisy.noise, float(noisy.ends[-1])) + 1.0
        turn, width, variance = self._turn(low, high)
        # Below the turn and rank k + 1 a mistake takes two items of rank k + 1 or less that far down, or a missing one
        # there, and is an e-fold less likely with each further e-fold of z, or much less.
        low = max(low, min(turn, next_one) - min(_FARTHER, deepest(noisy.noise)))
        cells = np.linspace(low, high, int(high - low) + 2)
        least = self._where_the_least_is(low, max(turn, 0.0) + 1)
        ties = self._where_ties_change(one_sided=one_sided)
        near = np.concatenate([turn + width * _PANEL * np.arange(-4, 5) if width < 1 else [], ties, least])
        cells = ascending(cells, near[(near > low) & (near < high)])
        z = (cells[1:] + cells[:-1]) / 2
        values = self._values(z)
        below, above = self._expected(*values[:2])
        (log_fewer, if_fewer), (log_enough, if_enough) = (self._chance(values, fewer=fewer) for fewer in (True, False))
        undecided = np.minimum(log_fewer, log_enough)
        _, sizes, costs = self._outline
        # Of missing ones and of chosen ones, by how many e-folds each cell is below the highest one.
        depths, kinked = np.full((2, len(z)), -_LOWEST), np.zeros(len(z), dtype=bool)
        higher = np.arange(len(sizes)) < self.border
        # How far the lowest lies below rank k concerns only what is chosen.
        for weights, both in ((sizes, True), (sizes * costs, True), (sizes * costs, False)):
            inside, outside = np.where(higher & both, weights, 0.0), np.where(higher, 0.0, weights)
            mistakes = np.stack([np.log(inside @ if_enough) + log_enough, np.log(outside @ if_fewer) + log_fewer])
            most = float(mistakes.max())
            if np.isfinite(most):
                depths = np.maximum(depths, mistakes - most)
                # An item's kink shows where it may be at z, or where the comparison is undecided.
                shown = np.maximum(mistakes.max(axis=0), np.log((inside + outside) @ values[2]) + undecided)
                kinked |= shown > most - _VISIBLE
        kept, kinked = (and_neighbours(part) for part in (depths.max(axis=0) > -_DEPTH, kinked))
        middle = np.abs(z - turn) < _DEVIATIONS * width
        # Where they are few, finer panels cost little; of normal noise the largest of many changes faster than each.
        series = log_series(noisy.noise.name) is not None
        widest = _PANEL / 3 if len(sizes) <= SMALL else _PANEL if series else _PANEL / 2.5
        # Where all that is above z is surely chosen, and that is hardly ever any, it is like each.
        calm = (above < _HARDLY_ANY) & (log_enough < -_SURE) & (len(sizes) > SMALL)
        # The number of few undecided items changes less evenly.
        evenly = min(max(np.sqrt(variance) / _MANY, 1 / 3), 1.0)
        paces = np.where(middle, min(widest, _PANEL * width * evenly), np.where(calm, _PANEL, widest))
        # Many items together change faster than each: what matters is when as many are below z as others above it.
        steps = _STEPS * np.sqrt(np.maximum(np.minimum(below, above), 1.0))
        if len(least):
            steps = np.where(below < 1, _PANEL, steps)
        paces = np.minimum(paces, least_near(np.where(undecided > -_DEPTH, steps / (sizes @ values[2]), np.inf)))
        if self.border and sizes[self.border] > self.room:
            paces = np.minimum(paces, self._tied_paces(*values))
        # Where what stands at z is all but surely missing, or chosen, kinks of items that do not are hardly seen.
        seen = np.maximum(depths, depths[::-1] + np.minimum([log_enough, log_fewer], 0.0)) > -_SEEN
        kinks = self._kinks(cells, *(kinked & and_neighbours(part) for part in seen))
        kinks = nearest(kinks, turn, jumps=bool(one_sided))
        nodes, weights = paced(
            cells, kept, paces, kinks, smooth=not noisy.noise.kinks, step=_EVEN if series else _EVEN_NORMAL
        )
        place = np.clip(np.searchsorted(cells, nodes) - 1, 0, len(z) - 1)
        bounds = np.maximum([*depths, log_fewer, log_enough], -_LOWEST)
        missing, chosen, fewer, enough = _most(bounds)[:, place] if one_sided else highest_at(nodes, z, bounds)
        return Nodes(nodes, weights, missing > -_DEPTH, chosen > -_DEPTH, fewer < -_SURE, enough < -_SURE)

    def _kinks(self, cells: FloatArray, above: BoolArray, below: BoolArray) -> FloatArray:
        """Return the kinks of the items above rank k in some cells, and of the others in some; rank k's in both."""
        found = [np.empty(0)]
        for kink in self.noisy.noise.kinks:
            places = self.noisy.locations + kink
            cell = np.clip(np.searchsorted(cells, places) - 1, 0, len(above) - 1)
            first = np.arange(len(places)) <= self.border, np.arange(len(places)) >= self.border
            found.append(places[(above[cell] & first[0]) | (below[cell] & first[1])])
        return np.concatenate(found)

    def _where_ties_change(self, *, one_sided: bool) -> FloatArray:
        """Return where cells of their own are needed, because many tied items change faster than each.

        That is where as many of rank k's group are above z as have room, and behind jumps.
        """
        noise, (locations, sizes, _) = self.noisy.noise, self._outline
        found: list[FloatArray] = []
        size, room = float(sizes[self.border]), float(self.room)
        if self.border and size > room:
            low, high = -farthest(noise), farthest(noise)
            for _ in range(_HALVINGS):
                middle = (low + high) / 2
                low, high = (middle, high) if float(noise.survival(np.array(middle))) * size > room else (low, middle)
            slope = size * float(noise.density(np.array(high)))
            width = float(np.sqrt(room * (1 - room / size))) / slope if slope else np.inf
            found.append(locations[self.border] + high + _PANEL * width * np.arange(-4.0, 5.0))
        if one_sided:
            found.append(behind_jumps(locations[: self.border + 1], sizes[: self.border + 1]))
        return np.concatenate([np.empty(0), *found])

    def _where_the_least_is(self, low: float, high: float) -> FloatArray:
        """Return where cells of their own are needed, because the least of the top k changes faster than each.

        That is where one of them is below z on average. For noise whose density falls like e^z, or is finely cut for
        other reasons, it makes no difference.
        """
        noise, inside = self.noisy.noise, self._by_rank[0]
        if noise.name != "gumbel":
            return np.empty(0)
        locations = self._outline[0][: self.border + 1]
        for _ in range(_ROUNDS):
            z = np.linspace(low, high, _GRID)
            place = int(np.clip((inside @ noise.cdf(z - locations[:, None]) < 1).sum(), 1, _GRID - 1))
            low, high = float(z[place - 1]), float(z[place])
        slope = float(inside @ noise.density(high - locations))
        return high + _PANEL / slope * np.arange(-4.0, 5.0) if slope > 1 else np.empty(0)

    def _tied_paces(self, cdf: FloatArray, survival: FloatArray, density: FloatArray) -> FloatArray:
        """Return how finely z has to be cut where about as many tied items are above it as have room."""
        size = self._outline[1][self.border]
        above, spread = size * survival[self.border], np.sqrt(size * (survival * cdf)[self.border])
        near = and_neighbours(np.abs(above - self.room) < _DEVIATIONS * (spread + 1))
        return np.where(near, _PANEL * np.maximum(spread, 0.5) / (size * density[self.border]), np.inf)

    def _turn(self, low: float, high: float) -> tuple[float, float, float]:
        """Return the z with k items above it on average, the spread in z of the number of items above, its variance.

        That is by Newton's method, and by halves where it leads too far, to a tenth of that spread.
        """
        noise, (locations, sizes, _), middle = self.noisy.noise, self._outline, (low + high) / 2
        for _ in range(_MOST_STEPS):
            cdf, survival, density = (part(middle - locations) for part in (noise.cdf, noise.survival, noise.density))
            below, above = self._expected(cdf, survival)
            variance, slope, excess = float(sizes @ (cdf * survival)), float(sizes @ density), float(above - below)
            if abs(excess) <= _NEAR_TURN * math.sqrt(variance):
                break
            low, high = (middle, high) if excess > 0 else (low, middle)
            ahead = excess / slope if slope else np.inf
            middle = middle + ahead if low < middle + ahead < high else (low + high) / 2
        return middle, np.sqrt(variance) / slope if slope else np.inf, variance


def _most(values: FloatArray) -> FloatArray:
    """Return the largest of the values [kind, cell] of each cell and its neighbours."""
    result = values.copy()
    np.maximum(result[:, 1:], values[:, :-1], out=result[:, 1:])
    np.maximum(result[:, :-1], values[:, 1:], out=result[:, :-1])
    return result
