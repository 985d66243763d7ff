"""The integrand of misplaced.py at some values z, where the notation is.

All j are summed round one circle (contour.py), with enough points for j to be anywhere in the reach of N. Farther away
P is 0 or 1. With `h_i = f_i / (F_i + S_i x)` and `g_j = x_j − x_{j+1}` it is a sum of

`Σ_j g_j x^{1 − j} Σ_{i<=j} h_i = Σ_i h_i Q_i`, `Q_i = Σ_{j>=i} g_j x^{1 − j}`,

and for r = 1 all z share the Q_i. That will do unless what is lost is far less than what might be: then r is chosen for
each z, and sums up to j are taken.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpselect._arrays import Array, ComplexArray, FloatArray
from dpselect.forecast import normal_tails, tails
from dpselect.forecast.contour import Circle, log_scales, powers_of, product, real_times, weighted
from dpselect.forecast.marks import marked_by, marked_upto
from dpselect.forecast.noise_values import values_at
from dpselect.forecast.noisy import NoisyGroups, log_series
from dpselect.forecast.tail_segments import SIZE, TERMS, Series, by_excess
from dpselect.forecast.tilted import Tilted

_NEAR, _FEW = 6.0, 3
_FARTHEST = 1e4
_HIGHEST = 60.0
_SPARSE = 8


@dataclass(frozen=True, repr=False)
class Ranked:
    """All groups, and how far each group above rank k's is from the next in score."""

    noisy: NoisyGroups
    gaps: FloatArray

    @property
    def border(self) -> int:
        """The group of rank k."""
        return len(self.gaps)

    @cached_property
    def steps(self) -> FloatArray:
        """The gaps, and 0 from rank k's group on."""
        return np.append(self.gaps, np.zeros(len(self.noisy.sizes) - self.border))

    @cached_property
    def before(self) -> FloatArray:
        """How many items are in the groups before each."""
        return self.noisy.ends - self.noisy.sizes

    @cached_property
    def _series(self) -> FloatArray | None:
        """The series of the noise; None for normal noise."""
        return log_series(self.noisy.noise.name)

    def first_rare(self, z: FloatArray, log_radius: FloatArray) -> Array:
        """Return for each z the first group from which on all are rare."""
        if self._series is None:
            return normal_tails.first_rare(self.noisy.locations, z, np.maximum(log_radius, 0.0))
        return tails.first_rare(self._series, self.noisy.locations, z - np.maximum(log_radius, 0.0))

    @cached_property
    def _law(self) -> FloatArray:
        """The coefficients of the law of rare items, by order and power."""
        return np.zeros((SIZE, SIZE)) if self._series is None else Series.of(tuple(self._series[:TERMS])).law

    def window(self, first: Array, width: int) -> tuple[Array, FloatArray]:
        """Return so many groups from each first one on as [group, z], and their sizes; 0 behind the last group."""
        groups = first + np.arange(width)[:, None]
        inside = groups < len(self.noisy.sizes)
        groups = np.where(inside, groups, len(self.noisy.sizes) - 1)
        return groups, np.where(inside, self.noisy.sizes[groups], 0.0)

    def values(self, z: FloatArray, groups: Array) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return F, S and f of a window."""
        return values_at(self.noisy.noise, z, self.noisy.locations[groups])

    def around(self, z: FloatArray) -> tuple[Array, int]:
        """Return the first groups of windows that reach to both sides of z, and how wide they are."""
        places = -self.noisy.locations
        first, last = np.searchsorted(places, -z - _NEAR), np.searchsorted(places, _NEAR - z)
        return np.maximum(first - _FEW, 0), int((last - first).max()) + 2 * _FEW

    @cached_property
    def first_summed(self) -> int:
        """The first group from which on powers `e^{j a}` are not too large; normal noise does without them."""
        return 0 if self._series is None else int(np.searchsorted(-self.noisy.locations, -_HIGHEST))

    @cached_property
    def _power_sums(self) -> FloatArray:
        """`Σ m e^{j a}` over the groups from each on, as [j, group]; 0 where they are too large."""
        below, sums = slice(self.first_summed, -1), np.zeros((SIZE, len(self.noisy.sizes) + 1))
        reach = np.exp(self.noisy.locations[self.first_summed :])
        sums[0, below] = self.noisy.sizes[self.first_summed :]
        for power in range(1, SIZE):
            np.multiply(sums[power - 1, below], reach, out=sums[power, below])
        return np.cumsum(sums[:, ::-1], axis=1)[:, ::-1]

    def _log_tail(self, z: FloatArray, log_radius: FloatArray, first: int) -> FloatArray:
        """Return the coefficients [z, power] of the logarithm of `Π (F + S x)` over the rare groups from one on."""
        if self._series is None:
            return normal_tails.log_law(self.noisy.items.since(first), z, log_radius)
        powers = np.arange(SIZE)
        found = np.exp(-np.multiply.outer(z, powers)) @ by_excess(self._law * self._power_sums[:, first]).T
        result: FloatArray = found * np.exp(np.multiply.outer(log_radius - z, powers))
        return result

    def _log_tails(self, z: FloatArray, log_radius: FloatArray, last: Array, rare: Array) -> FloatArray:
        """Return the same from a group for each z on, where what follows is rare."""
        result = np.zeros((len(z), SIZE))
        for first in np.unique(last[rare]).tolist():
            own = rare & (last == first)
            result[own] = self._log_tail(z[own], log_radius[own], first)
        return result

    def settled(self, z: FloatArray) -> FloatArray:
        """Return the integrand where more than k items are above z in any case."""
        border = self.border
        at_z = self.noisy.sizes[:border, None] * self.noisy.noise.density(z - self.noisy.locations[:border, None])
        result: FloatArray = self.gaps @ np.cumsum(at_z, axis=0)
        return result

    def plainly(self, z: FloatArray, window: slice, nothing: float, *, rare: bool) -> FloatArray:
        """Return the integrand for r = 1 at neighbouring z, from a window of groups, and rare items behind it."""
        noisy, first, powers = self.noisy, window.start, np.arange(float(SIZE))
        near = Tilted.plain(noisy.sizes[window], *values_at(noisy.noise, z, noisy.locations[window]))
        tail = self._log_tail(z, near.log_radius, window.stop) if rare else np.zeros((len(z), SIZE))
        certain = float(noisy.ends[first - 1]) if first else 0.0
        behind, behind_squares = np.stack([powers, powers**2]) @ tail.T
        mean, variances = near.mean + behind, near.sizes @ (near.shares * near.others) + behind_squares
        least, most = float(mean.min()), float(mean.max())
        middle, off = certain + round((most + least) / 2), (most - least) / 2 + 0.5
        undecided = np.inf if rare else float(near.sizes.sum())
        circle = Circle.of(near.log_radius, variances, times=2, undecided=undecided, off=off, all_but_one=True)
        # No more items than those of the window can be above z.
        reach = circle.number if circle.number > undecided else circle.number / 2
        ranks = noisy.ends[first : min(window.stop, self.border)] - middle
        ranks = ranks[ranks <= reach]
        gaps, inside = self.gaps[first : first + len(ranks)], ranks >= -reach
        upto, later = slice(len(ranks)), slice(len(ranks), None)
        at_z, rest = near.sizes[upto, None] * near.density[upto], near.sizes[later] @ near.shares[later] + behind
        counted = _counted(gaps[:, None], at_z, near.sizes[upto, None] * near.shares[upto], rest, nothing)
        gaps = counted.max(axis=1, initial=0.0)
        sure = np.cumsum(np.where(inside, gaps / 2, gaps)[::-1])[::-1] @ at_z
        turned = np.where(inside, gaps, 0.0)[:, None] * _turned(1 - ranks, circle)
        from_each = np.cumsum(turned[::-1], axis=0)[::-1]
        from_each *= np.exp(1j * (certain - middle) * circle.angles) * (2 / circle.number) / (1 - circle.turns)
        law = near.law(circle)
        if rare:
            law *= np.exp(real_times(tail, powers_of(circle.turns, SIZE) - 1))
        marks = marked_by(near.shares[upto], near.others[upto], at_z, from_each, circle)
        result: FloatArray = sure - (law * marks).real.sum(axis=1)
        return result

    def on_circles(
        self, z: FloatArray, log_radius: FloatArray, first: Array, last: Array, rare: Array, nothing: float
    ) -> tuple[FloatArray, Array]:
        """Return the integrand on a circle for each z, for windows of groups.

        Then where r = 1 is better: some term may be larger than the largest for that, or a rank is off the circle.
        """
        width = int((last - first).max())
        groups, sizes = self.window(first, width)
        # Those behind a window are rare, or out of reach.
        sizes = np.where(groups < last, sizes, 0.0)
        cdf, survival, density = self.values(z, groups)
        raised = survival * np.exp(log_radius)
        scale = cdf + raised
        shares, others = raised / scale, cdf / scale
        certain = np.where(first < len(self.before), self.before[np.minimum(first, len(self.before) - 1)], 0.0)
        tail, powers = self._log_tails(z, log_radius, last, rare), np.arange(float(SIZE))
        variances = (sizes * shares * others).sum(axis=0) + tail @ powers**2
        undecided = np.inf if tail.any() else float(sizes.sum(axis=0).max())
        circle = Circle.of(log_radius, variances, times=2, undecided=undecided)
        usual = np.round(certain + (sizes * shares).sum(axis=0) + tail @ powers)
        law = product(shares, sizes, circle) * np.exp(1j * np.multiply.outer(certain - usual, circle.angles))
        law *= np.exp(real_times(tail, powers_of(circle.turns, SIZE) - 1))
        log_scale = (sizes * log_scales(cdf, survival, log_radius, float(sizes.max(initial=0.0)))).sum(axis=0)
        log_scale += (certain - usual) * log_radius + tail.sum(axis=1)
        rows = groups.min(axis=1) < self.border
        ranks = self.noisy.ends[groups[rows]] - usual
        at_z = np.where(groups[rows] < self.border, (sizes * density)[rows], 0.0)
        plain_tail = tail * np.exp(-np.multiply.outer(log_radius, powers))
        above = sizes * survival
        rest = above[~rows].sum(axis=0) + plain_tail @ powers
        steps = _counted(self.steps[groups[rows]], at_z, above[rows], rest, nothing)
        upto = marked_upto(shares[rows], others[rows], at_z / scale[rows], circle)
        # No more items than those of the window can be above z.
        near = (groups[rows] < last) & (
            np.abs(ranks) <= (circle.number if circle.number > undecided else circle.number / 2)
        )
        log_weights = np.log(steps) + (1 - ranks) * log_radius
        most = log_weights.max(axis=0, initial=-_FARTHEST)
        weights = np.exp(log_weights - most)
        whole, plain = np.cumsum(at_z, axis=0) * steps, np.cumsum(at_z / scale[rows], axis=0)
        largest = log_scale + most + np.log((weights * plain).max(axis=0, initial=0.0)) - np.maximum(log_radius, 0.0)
        worse = largest > np.log(whole.max(axis=0, initial=0.0)) + 1.0
        # Ranks far from the usual one are settled for r = 1 only.
        worse |= (np.where(near | (groups[rows] >= last), 0.0, whole) > nothing).any(axis=0)
        worse &= log_radius != 0
        weights = np.where(near, weights, 0.0)
        powers = np.exp(-1j * np.multiply.outer(np.arange(-circle.number, circle.number + 1), circle.angles))
        upto *= powers[np.clip(ranks - 1, -circle.number, circle.number).astype(np.intp) + circle.number]
        terms = law * weighted(weights, upto)
        sure = np.where(near, whole / (1 + np.exp(circle.number * log_radius)), np.where(ranks < 0, whole, 0.0))
        values: FloatArray = sure.sum(axis=0) + circle.more_than(0, terms, log_scale + most, np.zeros(len(z)))
        return values, worse


def _turned(powers: FloatArray, circle: Circle) -> ComplexArray:
    """Return falling integer powers of e^{iθ}, [power, angle]; from each other, which is faster, if they are close."""
    if not len(powers) or powers[0] - powers[-1] > _SPARSE * len(powers):
        result: ComplexArray = np.exp(1j * np.multiply.outer(powers, circle.angles))
        return result
    below = (powers[0] - powers).astype(np.intp)
    found: ComplexArray = powers_of(np.conj(circle.turns), int(below[-1]) + 1)[below]
    found *= np.exp(1j * powers[0] * circle.angles)
    return found


def _counted(gaps: FloatArray, at_z: FloatArray, above: FloatArray, rest: FloatArray, nothing: float) -> FloatArray:
    """Return gaps [group, z], 0 where less than `nothing` can be lost across them: N >= j takes an item behind j.

    For the first groups of a window, of which so many are above z on average, and of those behind them.
    """
    later = np.cumsum(np.append(above, rest[None], axis=0)[:0:-1], axis=0)[::-1]
    return np.where(gaps * np.cumsum(at_z, axis=0) * later > nothing, gaps, 0.0)
