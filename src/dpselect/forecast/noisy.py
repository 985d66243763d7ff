"""How likely the k largest of `a_i + Z_i` are the right ones, as one integral over the k-th largest value z.

Notation: `a_i` is an item's score times the rate, `F`, `S = 1 − F` and `f` the noise's distribution, survival and
density at `z − a_i`. Items of equal score form groups. An answer is *within* (r, s) when it holds the r highest scores
and none below that of rank s: its *musts* are all items above rank r's score, then come the *free* groups down to rank
s's, and nothing of the rest may be chosen. With `P_K` the chance that K of the free items are above z,

`P = ∫ Π_rest F · (Π_musts S · P_K' + (Π_musts S)' · P_K) dz`, where ' says that one of the items is at z, not above it.

P_K is a coefficient of `Π (F + S x)`, by a sum round a circle. Error: that of contour.py; panels (panels.py) end at
kinks and hold a few e-folds each. Tests find a relative error below 1e-9, for laplace noise with hundreds of kinks
below 1e-7.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache, cached_property

import numpy as np

from dpselect._arrays import FloatArray
from dpselect.forecast.binomials import log_of_first, log_power
from dpselect.forecast.close_items import CloseItems
from dpselect.forecast.noise_values import farthest, log_normal, merged, values_at
from dpselect.forecast.panels import (
    SMALL,
    and_neighbours,
    ascending,
    behind_jumps,
    highest_at,
    nearest,
    paced,
    paces_behind_jumps,
)
from dpselect.forecast.patterns import Free, Pattern
from dpselect.forecast.radii import tilted
from dpselect.forecast.tilted import Tilted
from dpselect.sampling.laws import Distribution

WIDEST_GAP = 120.0
_FAR = 2.2
_LOST = 1e-17
_TERMS = 20
_PANEL, _PANELS = 2.6, 7
_STEP, _STEP_NORMAL, _STEP_LARGEST, _LARGEST = 0.115, 0.14, 0.1, 3
"""How far apart nodes are; those of normal noise less far for the few largest of many, which change faster."""
_CELL, _CELL_NORMAL = 3.0, 1.2
_CELLS, _FEW_CELLS, _MOST_CELLS = 24, 7, 240
_DEPTH, _DEEPER, _LOWEST = 30.0, 34.0, 1e3
_VISIBLE = 16.0
_CHUNK, _ELEMENTS = 256, 4_000_000


@cache
def log_series(name: str) -> FloatArray | None:
    """Return c_1, c_2 … of `log F(z) = −Σ c_j e^{−jz}`, which converges fast for z >= 2; None if there is none."""
    powers = np.arange(1.0, _TERMS + 1)
    series = {
        "gumbel": np.where(powers == 1, 1.0, 0.0),
        "exponential": 1.0 / powers,
        "laplace": 0.5**powers / powers,
        "logistic": (-1.0) ** (powers + 1) / powers,
        "half-logistic": np.where(powers % 2 == 1, 2.0 / powers, 0.0),
    }
    return series.get(name)


@dataclass(frozen=True, repr=False)
class NoisyGroups:
    """Groups of items, highest first, at locations relative to rank k; sizes may be any number."""

    locations: FloatArray
    sizes: FloatArray
    k: int
    noise: Distribution

    @cached_property
    def ends(self) -> FloatArray:
        """How many items are in each group and those before it."""
        return np.cumsum(self.sizes)

    @cached_property
    def items(self) -> CloseItems:
        """All groups for sums over many of them, but for those so far below rank k + 1 that they count nowhere.

        No z is farther below it than noise reaches.
        """
        base = float(self.locations[min(self.group(self.k + 1), len(self.locations) - 1)])
        end = int(np.searchsorted(-self.locations, 2 * farthest(self.noise) + 1 - base))
        return CloseItems.of(self.locations[:end], self.sizes[:end])

    def upto(self, end: int) -> NoisyGroups:
        """Return the groups before one, which is below rank k."""
        result = NoisyGroups(self.locations[:end], self.sizes[:end], self.k, self.noise)
        if "items" in vars(self):
            vars(result)["items"] = self.items.upto(min(end, len(self.items.sizes)))
        return result

    def group(self, rank: int) -> int:
        """Return the group of a rank, counted from 1."""
        return int(np.searchsorted(self.ends, rank))

    def within(self, held: int, last: int) -> float:
        """P[the `held` highest scores are chosen, and none below that of rank `last`]."""
        return self.within_each([(held, last)])[0]

    def within_each(self, ranks: list[tuple[int, int]]) -> list[float]:
        """Return the same for several pairs of ranks, which share their nodes."""
        patterns = [Pattern.of(self, *pair) for pair in ranks]
        open_ones = [pattern for pattern in patterns if not pattern.certain]
        if not open_ones:
            return [1.0] * len(patterns)
        with np.errstate(over="ignore", under="ignore", divide="ignore", invalid="ignore"):
            z, weights, log_radii = self._nodes(open_ones)
            parts = [self._at(z[part], open_ones, [each[part] for each in log_radii]) for part in self._parts(len(z))]
            values = [np.concatenate(each) for each in zip(*parts, strict=True)]
        chances = iter([min(float(weights @ np.where(np.isfinite(part), part, 0.0)), 1.0) for part in values])
        return [1.0 if pattern.certain else next(chances) for pattern in patterns]

    def _at(self, z: FloatArray, patterns: list[Pattern], log_radii: list[FloatArray]) -> list[FloatArray]:
        """Return the integrands of patterns."""
        first, last = (extreme(pattern.lowest for pattern in patterns) + 1 for extreme in (min, max))
        cdf, survival, density = values_at(self.noise, z, self.locations[:last])
        log_cdf, log_rest = log_of_first(cdf[first:], survival[first:]), self.log_below(z, last)
        values = []
        for pattern, log_radius in zip(patterns, log_radii, strict=True):
            musts, free = slice(0, pattern.edge), slice(pattern.edge, pattern.lowest + 1)
            rates = np.where(survival[musts] > 0, density[musts] / survival[musts], 0.0)
            log_sure = log_rest + self.sizes[free.stop : last] @ log_cdf[free.stop - first :]
            log_sure += self.sizes[musts] @ np.log(survival[musts])
            found = Tilted(self.sizes[free], log_radius, cdf[free], survival[free], density[free])
            values.append(Free(found, pattern).chance(self.sizes[musts] @ rates, log_sure))
        return values

    def _parts(self, count: int) -> list[slice]:
        """Return which z to take at a time, so that numbers for all groups at these take little memory."""
        step = max(1, _ELEMENTS // len(self.sizes))
        return [slice(start, start + step) for start in range(0, count, step)]

    def log_below(self, z: FloatArray, first: int) -> FloatArray:
        """Return `Σ m log F(z − a)` over the groups from `first` on: those far below z together, by the series."""
        locations, sizes = self.locations[first:], self.sizes[first:]
        result = np.zeros_like(z)
        if not len(locations):
            return result
        series = log_series(self.noise.name)
        if series is None:
            return self._log_below_normal(z, first)
        everywhere = self.noise.name == "gumbel"
        step = len(z) if everywhere else _CHUNK
        for part in (slice(start, start + step) for start in range(0, len(z), step)):
            far = np.inf if everywhere else float(z[part].min()) - _FAR
            border = int(np.searchsorted(-locations, -far))
            cdf, survival, _ = values_at(self.noise, z[part], locations[:border])
            result[part] = log_power(cdf, survival, sizes[:border])
            if border == len(locations):
                continue
            powers, power_sum, terms = np.exp(locations[border:] - locations[border]), sizes[border:], [0.0]
            reach = np.exp(locations[border] - z[part])
            for coefficient in series[: 1 if everywhere else _TERMS].tolist():
                power_sum = power_sum * powers
                terms.append(coefficient * float(power_sum.sum()))
                if coefficient and abs(terms[-1]) * float(reach.max()) ** (len(terms) - 1) <= _LOST:
                    break
            result[part] -= np.polynomial.polynomial.polyval(reach, terms)
        return result

    def _log_below_normal(self, z: FloatArray, first: int) -> FloatArray:
        """Return the same for normal noise."""
        items = self.items.since(first).down_to(float(z.min()) - farthest(self.noise))
        result: FloatArray = items.weights_of_items @ log_normal(z - items.points[:, None])
        return result

    def _nodes(self, patterns: list[Pattern]) -> tuple[FloatArray, FloatArray, list[FloatArray]]:
        """Return nodes and weights where some integrand can matter, and log r for each pattern.

        Some chosen item has rank k or more, so that a larger z than here takes a noise that large; some item that is
        not chosen has rank k + 1 or less, or all chosen ones are at a_[k] or above. In between, cells are left out in
        which an integrand is far below its bound elsewhere; where few are left, they are cut finer and looked at again.
        """
        # With noise that is never negative k values are at rank k's location or above.
        one_sided = self.noise.cdf(np.zeros(1))[0] == 0
        base = float(self.locations[self.group(self.k + 1)]) if any(pattern.excluded for pattern in patterns) else 0.0
        low = 0.0 if one_sided else base - farthest(self.noise)
        high = farthest(self.noise, float(self.ends[max(pattern.lowest for pattern in patterns)])) + 1.0
        count = int((high - low) / (_CELL_NORMAL if self.noise.name == "normal" else _CELL)) + 1
        tied = slice(0, max(pattern.lowest for pattern in patterns) + 1 if one_sided else 0)
        jumps = behind_jumps(self.locations[tied], self.sizes[tied])
        rough, rough_patterns = self._rough(patterns)
        while True:
            width = (high - low) / count
            cells = ascending(np.linspace(low, high, count + 1), jumps[(jumps > low) & (jumps < high)])
            middles = (cells[1:] + cells[:-1]) / 2
            parts = [rough._log_bounds(middles[part], rough_patterns) for part in rough._parts(len(middles))]
            bounds, log_radii = np.concatenate(parts, axis=2)
            kept = [and_neighbours(bound > bound.max() - _DEPTH) for bound in bounds]
            shortest, every = min(float(np.diff(cells)[part].sum()) for part in kept), np.any(kept, axis=0)
            places = np.flatnonzero(every)
            if shortest > (_FEW_CELLS + 0.5) * width or count >= _MOST_CELLS:
                break
            low, high = float(cells[places[0]]), float(cells[places[-1] + 1])
            count = int(min(_CELLS * (high - low) / shortest + 1e-9, _MOST_CELLS))
        # Where groups are few, finer panels cost little, and tell chances of all but 1 from each other; of normal noise
        # the least or the largest of many changes faster than each.
        widest = _PANEL / (2.5 if log_series(self.noise.name) is None else 1.0 if len(self.sizes) > SMALL else 2.0)
        pace = min(widest, max(shortest, width) / _PANELS)
        paces = np.minimum(pace, _PANEL * paces_behind_jumps(middles, self.locations[tied], self.sizes[tied]))
        shown = np.any([and_neighbours(bound > bound.max() - _VISIBLE) for bound in bounds], axis=0)
        kinks = self.kinks[shown[np.clip(np.searchsorted(cells, self.kinks) - 1, 0, len(middles) - 1)]]
        kinks = nearest(kinks, float(middles[np.argmax(bounds[0])]), jumps=bool(one_sided))
        step = _STEP
        if self.noise.name == "normal":
            step = _STEP_LARGEST if self.k <= _LARGEST else _STEP_NORMAL
        nodes, weights = paced(cells, every, paces, kinks, smooth=not self.noise.kinks, step=step)
        if not one_sided:
            tops = np.max(bounds, axis=1, keepdims=True)
            matter = np.any(highest_at(nodes, middles, np.maximum(bounds, tops - _LOWEST)) > tops - _DEEPER, axis=0)
            nodes, weights = nodes[matter], weights[matter]
        return nodes, weights, [np.interp(nodes, middles, log_radius) for log_radius in log_radii]

    @cached_property
    def kinks(self) -> FloatArray:
        """Where some item's density is not smooth, those of the highest items first, for they matter most."""
        return np.concatenate([self.locations + kink for kink in self.noise.kinks] or [np.empty(0)])

    def _log_bounds(self, z: FloatArray, patterns: list[Pattern]) -> FloatArray:
        """Return bounds on the logarithms of the integrands, up to a factor k, and log r for which each is least.

        They are [bound or log r, pattern, z].

        No hazard f/S exceeds 1, but for normal noise, where it grows like z, so that marking an item multiplies by at
        most k, or some times that; some item that is not of the rest has to be at z; and the number of free items above
        z is bounded by Chernoff: `log P[number are above] <= Σ m log(F + S r) − number log r`.
        """
        last = max(pattern.lowest for pattern in patterns) + 1
        cdf, survival, density = values_at(self.noise, z, self.locations[:last])
        first = min(pattern.lowest for pattern in patterns) + 1
        sizes, log_cdf = self.sizes[:last], log_of_first(cdf[first:], survival[first:])
        log_far = self.log_below(z, last)
        bounds, log_radii = [], []
        for pattern in patterns:
            musts, free = slice(0, pattern.edge), slice(pattern.edge, pattern.lowest + 1)
            log_radius = tilted(cdf[free], survival[free], sizes[free], pattern.included - 0.5)
            scale = cdf[free] + survival[free] * np.exp(log_radius)
            chernoff = sizes[free] @ np.log(scale) - pattern.included * log_radius
            log_pattern = sizes[musts] @ np.log(survival[musts])
            log_pattern += np.minimum(np.where(np.isnan(chernoff), 0.0, chernoff), 0.0)
            log_density = np.log(sizes[: free.stop] @ density[: free.stop])
            log_rest = log_far + sizes[free.stop :] @ log_cdf[free.stop - first :]
            bounds.append(log_rest + np.minimum(log_pattern, log_density))
            log_radii.append(log_radius)
        return np.array([bounds, log_radii])

    def _rough(self, patterns: list[Pattern]) -> tuple[NoisyGroups, list[Pattern]]:
        """Return groups merged for rough sums, and the patterns of these.

        If noise has kinks these tell where z has to be cut: then only groups that are below all patterns are merged.
        """
        last = max(pattern.lowest for pattern in patterns) + 1
        borders = {border for pattern in patterns for border in (pattern.edge, pattern.lowest + 1)} - {0}
        parts, ends, start = [(self.locations[:0], self.sizes[:0])], {0: 0}, 0
        for border in sorted(borders | {len(self.sizes)}):
            part = self.locations[start:border], self.sizes[start:border]
            if start >= last or not self.noise.kinks:
                part = merged(self.noise, *part, part[1])[:2]
            parts.append(part)
            ends[border] = ends[start] + len(part[1])
            start = border
        locations, sizes = (np.concatenate(each) for each in zip(*parts, strict=True))
        rough = [replace(each, edge=ends[each.edge], lowest=ends[each.lowest + 1] - 1) for each in patterns]
        return NoisyGroups(locations, sizes, self.k, self.noise), rough
