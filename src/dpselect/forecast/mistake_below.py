"""The items from rank k's group on at some values z, as noisy_expectations.py needs them, where the notation is.

The lowest chosen item costs more than group g if the largest value behind g, at z, has fewer than k of the items up to
g above it. With `o = S/F`, the sum of that over all g with their steps is the law of all items, times

`W = Σ_g step_g Σ_{behind g} f/F / Π_{behind g} (1 + o x)`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpselect._arrays import ComplexArray, FloatArray
from dpselect.forecast.binomials import log_of_first
from dpselect.forecast.contour import LARGE, Circle, factors, log_product, powers_of, real_times, upto, weighted
from dpselect.forecast.mistake_nodes import Groups
from dpselect.forecast.normal_tails import AnyTail
from dpselect.forecast.tail_segments import SIZE
from dpselect.forecast.tails import COSTLY, LAW, MARKED
from dpselect.forecast.tilted import Tilted

_UNSEEN, _VANISHING = 1e-17, 1e-280


@dataclass(frozen=True, repr=False)
class Below:
    """The groups from rank k's or a later one on, those from `last` on in a tail."""

    groups: Groups
    first: int
    last: int
    rare: AnyTail
    z: FloatArray
    near: Tilted

    @classmethod
    def of(
        cls, groups: Groups, last: int, rare: AnyTail, z: FloatArray, log_radius: FloatArray, first: int | None = None
    ) -> Below:
        """Return the groups from the first on at each z, by default from rank k's."""
        first = groups.border if first is None else first
        return cls(groups, first, last, rare, z, groups.tilted(slice(first, last), z, log_radius))

    @cached_property
    def tail(self) -> FloatArray:
        """What is known of the rare items on the circles, as [kind, z, power]."""
        return self.rare.at(self.z, self.near.log_radius)

    @cached_property
    def _plain_tail(self) -> FloatArray:
        """The logarithm of `Π F` of the rare items, `Σ f/F`, and how many stand at z, plain and by costs."""
        return self.rare.plainly(self.z)

    @cached_property
    def log_scale(self) -> FloatArray:
        """The logarithm of `Π (F + S r)`."""
        result: FloatArray = self.near.log_scale + self.tail[LAW].sum(axis=1)
        return result

    @cached_property
    def mean(self) -> FloatArray:
        """How many are above z on average, tilted: `x d/dx` of the logarithm of the law."""
        result: FloatArray = self.near.mean + self.tail[LAW] @ np.arange(float(SIZE))
        return result

    @cached_property
    def untied_variance(self) -> FloatArray:
        """The tilted variance of the items below rank k: for the rare ones `(x d/dx)^2` of the logarithm."""
        result: FloatArray = self._lower.variances.sum(axis=0) + self.tail[LAW] @ np.arange(float(SIZE)) ** 2
        return result

    @cached_property
    def variance(self) -> FloatArray:
        """The tilted variance."""
        result: FloatArray = self.untied_variance + self.near.variances[: self._tied].sum(axis=0)
        return result

    def law(self, circle: Circle, *, tied: bool = True) -> ComplexArray:
        """Return `Π (1 + p y)`, with or without the tied group."""
        near = self.near if tied else self._lower
        result: ComplexArray = near.law(circle) * np.exp(self._tail_on(LAW, circle, less=1.0))
        return result

    def log_law(self, circle: Circle) -> ComplexArray:
        """Return its logarithm, continuous in z."""
        return log_product(self.near.shares, self.near.sizes, circle) + self._tail_on(LAW, circle, less=1.0)

    def _tail_on(self, kind: int, circle: Circle, less: float = 0.0) -> ComplexArray:
        return real_times(self.tail[kind], powers_of(circle.turns, SIZE) - less)

    @property
    def _tied(self) -> int:
        """How many of the groups are tied with rank k: one or none."""
        return int(self.first == self.groups.border)

    @cached_property
    def _lower(self) -> Tilted:
        """The groups below rank k's."""
        return self.near.part(slice(self._tied, None))

    @cached_property
    def _weights(self) -> list[FloatArray]:
        """What each group of `below` counts, plain and by its cost."""
        sizes = self._lower.sizes
        return [sizes, sizes * self.groups.costs[self.first + self._tied : self.last]]

    def surely(self) -> FloatArray:
        """Return how many stand at z, what they cost, and W, for x = 1."""
        lower, (log_none, _, *far) = self._lower, self._plain_tail
        found = [weights @ lower.density for weights in self._weights]
        depths = self._depths_by_group(lower.cdf, lower.survival, log_none).sum(axis=0)
        return np.stack([found[0] + far[0], found[1] + far[1], depths + self.rare.plainly_passed(self.z)])

    def chosen(self, circle: Circle) -> ComplexArray:
        """Return the same on circles, beside the law."""
        found = self._lower.marked(self._weights, circle)
        far = [self._tail_on(kind, circle) for kind in (MARKED, COSTLY)]
        return np.stack([found[0] + far[0], found[1] + far[1], self.depths(circle.turns)])

    def depths(self, turns: ComplexArray) -> ComplexArray:
        """Return W as [z, angle]."""
        lower, law = self._lower, self.tail[LAW]
        own = self._depths_by_group(lower.others, lower.shares, law[:, 0] - law.sum(axis=1))
        first = len(lower.sizes) + 1 - len(own)
        # What is behind a group is all without the groups up to it, so that one division is enough.
        before = upto(np.multiply, factors(lower.shares[first:], lower.sizes[first:], turns))
        found = own[0][:, None] + weighted(own[1:], before)
        every = before[-1] if len(before) else 1.0
        far = every * np.exp(real_times(law, powers_of(turns, SIZE) - 1))
        # Where all of it vanishes, so does the law.
        result: ComplexArray = np.divide(found, far, out=np.zeros_like(found), where=np.abs(far) > _VANISHING)
        return result + self.rare.passed(self.z, self.near.log_radius, turns)

    def none_above(self) -> tuple[FloatArray, FloatArray]:
        """Return the logarithms of `Π F / (F + S r)` and of `Σ f/F` of all below rank k."""
        lower, law = self._lower, self.tail[LAW]
        log_none = lower.sizes @ _logarithms(lower.sizes, lower.others, lower.shares) + law[:, 0] - law.sum(axis=1)
        return log_none, np.log(lower.sizes @ (lower.density / lower.cdf) + self._plain_tail[1])

    def _depths_by_group(self, none_above: FloatArray, some_above: FloatArray, log_tail: FloatArray) -> FloatArray:
        steps = self.groups.steps[self.first + self._tied - 1 : self.last]
        return depths_by_group(self._lower, steps, none_above, some_above, log_tail, self._plain_tail[1])


def depths_by_group(
    lower: Tilted,
    steps: FloatArray,
    none_above: FloatArray,
    some_above: FloatArray,
    log_tail: FloatArray,
    tail_rate: FloatArray,
) -> FloatArray:
    """Return what the group before some others and each of these adds to W, for θ = 0.

    Of what follows them the logarithm of the chance that none is above, and `Σ f/F`, are given. The first groups are
    left out if they add nothing.
    """
    sizes = lower.sizes[:, None]
    none = np.exp(_sums_behind(sizes * _logarithms(lower.sizes, none_above, some_above), log_tail))
    # Behind the first groups too much follows for an answer to end there.
    first = min(int((none.max(axis=1) < _UNSEEN).sum()), len(sizes))
    rates = _sums_behind(sizes[first:] * (lower.density / lower.cdf)[first:], tail_rate)
    # Where F vanishes the rate is infinite, and the product vanishes faster.
    return np.where(none[first:] > 0, steps[first:, None] * rates * none[first:], 0.0)


def _logarithms(sizes: FloatArray, none_above: FloatArray, some_above: FloatArray) -> FloatArray:
    """Return the logarithms of the first of two chances that add up to 1, where groups are large to all digits."""
    return np.log(none_above) if sizes.max(initial=0.0) <= LARGE else log_of_first(none_above, some_above)


def _sums_behind(values: FloatArray, last: FloatArray) -> FloatArray:
    """Return for the group before some others and each of these the sum of what follows, with `last` at its end."""
    result: FloatArray = np.cumsum(np.concatenate([values, last[None]])[::-1], axis=0)[::-1]
    return result
