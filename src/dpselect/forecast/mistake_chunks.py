"""The integrands of noisy_expectations.py at some neighbouring values z; notation and formulas are told there."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from dpselect.forecast.binomials import binomial, log_binomial, log_of_first, logarithms
from dpselect.forecast.chances import FloatArray
from dpselect.forecast.contour import (
    LARGE,
    LIGHT,
    ORDERS,
    Circle,
    ComplexArray,
    factors,
    log_scales,
    marked,
    product,
    products_upto,
)
from dpselect.forecast.mistake_reach import Groups
from dpselect.forecast.noise_values import values_at
from dpselect.forecast.tails import COSTLY, LAW, MARKED, PASSED, TERMS, Tail

_SURE = -34.0
_FARTHEST = 1e6


@dataclass(frozen=True, repr=False)
class Chunk:
    """Values z and the groups from the first that matters there to the last that is not rare; arrays are [group, z]."""

    groups: Groups
    z: FloatArray
    log_radius: FloatArray
    first: int
    last: int
    rare: Tail
    cdf: FloatArray
    survival: FloatArray
    density: FloatArray
    variances: FloatArray | None = None

    @classmethod
    def of(cls, groups: Groups, z: FloatArray, log_radius: FloatArray, last: int, tail: Tail) -> Chunk:
        """Return what is known at each z before any circle is drawn."""
        first = groups.first_seen(z)
        values = values_at(groups.noisy.noise, z - groups.noisy.locations[first:last, None])
        return cls(groups, z, log_radius, first, last, tail, *values)

    @cached_property
    def tail(self) -> FloatArray:
        """What is known of the rare items on the circles, as [kind, z, power]."""
        return self.rare.at(self.z, self.log_radius)

    @cached_property
    def plain_tail(self) -> FloatArray:
        """The same for r = 1."""
        return self.rare.at(self.z, np.zeros_like(self.z))

    @cached_property
    def sizes(self) -> FloatArray:
        """How many items are in each group."""
        return self.groups.noisy.sizes[self.first : self.last]

    @cached_property
    def _largest(self) -> float:
        """The size of the largest group."""
        return float(self.sizes.max())

    @cached_property
    def tied(self) -> int:
        """The place of rank k's group."""
        return self.groups.border - self.first

    @cached_property
    def certain(self) -> float:
        """How many items are surely above z."""
        return float(self.groups.noisy.ends[self.first - 1]) if self.first else 0.0

    @cached_property
    def fewer(self) -> int:
        """How many items may be above a chosen one at most, k − 1."""
        return self.groups.noisy.k - 1

    @cached_property
    def scale(self) -> FloatArray:
        """`F + S r`."""
        return self.cdf + self.survival * np.exp(self.log_radius)

    @cached_property
    def shares(self) -> FloatArray:
        """The tilted chances p."""
        result: FloatArray = self.survival * np.exp(self.log_radius) / self.scale
        return result

    @cached_property
    def others(self) -> FloatArray:
        """1 − p."""
        return self.cdf / self.scale

    @cached_property
    def log_scale(self) -> FloatArray:
        """The logarithm of `Π (F + S r)`."""
        near = (
            self.sizes @ log_scales(self.cdf, self.survival, self.log_radius, self._largest)
            + self.certain * self.log_radius
        )
        result: FloatArray = near + self.tail[LAW].sum(axis=1)
        return result

    @cached_property
    def circle(self) -> Circle:
        """The points x."""
        spread = self.sizes @ (self.shares * self.others) if self.variances is None else self.variances
        return Circle.of(self.log_radius, spread)

    @cached_property
    def turn_powers(self) -> ComplexArray:
        """Powers of `e^{iθ}`, as many as tails have."""
        result: ComplexArray = self.circle.turns ** np.arange(TERMS + 1)[:, None]
        return result

    @cached_property
    def light(self) -> int:
        """The first group behind rank k's from which on p is small."""
        common = self.shares[self.tied + 1 :].max(axis=1) > LIGHT
        return self.tied + 1 + (int(np.flatnonzero(common)[-1]) + 1 if common.any() else 0)

    @cached_property
    def sure(self) -> int:
        """The first group of `above` for which 1 − p is not small."""
        return int((self.others[: self.tied].max(axis=1) <= LIGHT).sum())

    def missing(self) -> FloatArray:
        """Return what is lost of `above`."""
        above, sure = slice(0, self.tied), slice(0, self.sure)
        weights = self.sizes[above] * self.groups.costs[self.first : self.groups.border]
        (near,) = self._marked(slice(self.sure, self.tied), [weights[self.sure :]])
        # `1 / (1 + p y)` is `e^{−iθ} / (1 + (1 − p) y')`, y' the conjugate of y.
        (far,) = self._light_marked(sure, self.others[sure], [weights[sure]])
        terms = self._above() * self._others(self.tied) * (near + np.conj(far * self.circle.turns))
        whole = weights @ self.density[above]
        return self.circle.more_than(self.fewer, terms, self.log_scale, whole)[None]

    @cached_property
    def _weights(self) -> dict[int, FloatArray]:
        """What each group of `below` counts, plain and by its cost."""
        sizes = self.sizes[self.tied + 1 :]
        return {MARKED: sizes, COSTLY: sizes * self.groups.costs[self.groups.border + 1 : self.last]}

    def surely_chosen(self) -> FloatArray:
        """Return the same as `chosen` where fewer than k items are above z in any case."""
        density = self.density[self.tied + 1 :]
        counts = [own @ density + self.plain_tail[kind].sum(axis=1) for kind, own in self._weights.items()]
        own, none = self._passed(self.cdf, self.survival, self.plain_tail[LAW, :, 0])
        return np.stack([*counts, own.sum(axis=0) + none * self.plain_tail[PASSED].sum(axis=1)])

    def chosen(self) -> FloatArray:
        """Return how many of `below` are chosen, what that costs, and how much the lowest of all does."""
        whole = self.surely_chosen()
        # A bound on the logarithm of P[N >= k] for r > 1.
        log_crowd = self.log_scale - (self.fewer + 1) * self.log_radius
        if ((self.log_radius > 0) & (log_crowd < _SURE)).all():
            return whole
        # Products over the groups up to each, from rank k's on.
        upto = products_upto(np.concatenate([self._factors(slice(self.tied, self.light)), self._light_factors()]))
        above, tail_law, powers = self._above(), self._tail_law(), self.turn_powers
        law = above * upto[-1] * tail_law
        heavy = self.light - self.tied - 1
        parts = zip(
            self._marked(slice(self.tied + 1, self.light), [own[:heavy] for own in self._weights.values()]),
            self._light_marked(
                slice(self.light, None), self.shares[self.light :], [own[heavy:] for own in self._weights.values()]
            ),
            self._weights,
            strict=True,
        )
        terms = [law * (part + small + self.tail[kind] @ powers) for part, small, kind in parts]
        own, none = self._passed(self.others, self.shares, self.tail[LAW, :, 0] - self.tail[LAW].sum(axis=1))
        passed = np.einsum("gz,gzx->zx", own, upto.view(np.float64)).view(np.complex128)
        terms.append(above * (passed + upto[-1] * none[:, None] * (self.tail[PASSED] @ powers)))
        return np.stack(
            [
                self.circle.at_most(self.fewer, part, self.log_scale, everything)
                for part, everything in zip(terms, whole, strict=True)
            ]
        )

    def _passed(
        self, none_above: FloatArray, some_above: FloatArray, log_tail: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return `step_g Π_{behind g} F · Σ_{behind g} f/F` from rank k's group on, and the product over the tail."""
        below = slice(self.tied + 1, None)
        steps, sizes = self.groups.steps[self.groups.border : self.last, None], self.sizes[below, None]
        rates = _sums_behind(sizes * (self.density[below] / self.cdf[below]), self.plain_tail[MARKED, :, 0])
        log_none = np.log(none_above[below])
        if self._largest > LARGE:
            log_none = log_of_first(none_above[below], some_above[below])
        none = np.exp(_sums_behind(sizes * log_none, log_tail))
        # Where F vanishes the rate is infinite, and the product vanishes faster.
        return np.where(none > 0, steps * rates * none, 0.0), none[-1]

    def crowded(self) -> FloatArray:
        """Return how many tied items are chosen beyond `room`.

        Such an item has `room` or more of the others above it; of all but the tied ones enough are not.
        """
        tied, room = self.tied, self.groups.room
        size = self.sizes[tied]
        at_z = size * self.density[tied]
        plain = binomial(size - 1, *logarithms(self.cdf[tied], self.survival[tied]), room, self.fewer)
        log_counts = log_binomial(size - 1, *logarithms(self.others[tied], self.shares[tied]), room, self.fewer)
        # Where none can be above z all counts vanish.
        most = log_counts.max(axis=0, initial=-_FARTHEST)
        counts, numbers = np.exp(log_counts - most), np.arange(len(log_counts))
        total = np.maximum(counts.sum(axis=0), np.finfo(np.float64).tiny)
        mean, square = (numbers**power @ counts / total for power in (1, 2))
        spread = self.shares * self.others
        spread[tied] = np.maximum(square - mean**2, 0.0) / size
        own = replace(self, variances=self.sizes @ spread)
        turns = np.exp(1j * np.multiply.outer(numbers, own.circle.angles))
        terms = at_z[:, None] * own._above() * own._others(tied + 1) * (counts.T @ turns)
        log_scale = self.log_scale - log_scales(self.cdf[tied], self.survival[tied], self.log_radius, size) + most
        return own.circle.at_most(self.fewer, terms, log_scale, at_z * plain.sum(axis=0))[None]

    def _factors(self, part: slice) -> ComplexArray:
        """Return `(1 + p y)^m` for some of the groups."""
        return factors(self.shares[part], self.sizes[part], self.circle)

    def _marked(self, part: slice, weights: list[FloatArray]) -> list[ComplexArray]:
        """Return `Σ w f / (F + S x)` over some of the groups for each list of weights."""
        at_z = self.density[part] / self.scale[part]
        return marked(self.shares[part], self.others[part], [own[:, None] * at_z for own in weights], self.circle)

    def _light_factors(self) -> ComplexArray:
        """Return the factors from the light groups on, where few are expected above z by the first powers of y."""
        shares, sizes = self.shares[self.light :], self.sizes[self.light :, None]
        coefficients = np.empty((*shares.shape, ORDERS + 1))
        coefficients[..., 0] = 1.0
        for power in range(1, ORDERS + 1):
            step = (sizes - (power - 1)) / power * shares
            np.multiply(coefficients[..., power - 1], step, out=coefficients[..., power])
        result: ComplexArray = (coefficients @ self.circle.shifts.view(np.float64)).view(np.complex128)
        heavy = np.flatnonzero((sizes * shares).max(axis=1) > 2 * LIGHT)
        if len(heavy):
            result[heavy] = factors(shares[heavy], sizes[heavy, 0], self.circle)
        return result

    def _others(self, first: int) -> ComplexArray:
        """Return the product of all factors from a group on."""
        return product(self.shares[first:], self.sizes[first:], self.circle) * self._tail_law()

    def _light_marked(self, part: slice, chances: FloatArray, weights: list[FloatArray]) -> list[ComplexArray]:
        """Return `Σ w f / (F + S r) / (1 + p y)` over some of the groups for small chances p, by `Σ_n (−p y)^n`."""
        at_z = self.density[part] / self.scale[part]
        sums = np.empty((len(weights), at_z.shape[1], ORDERS + 1))
        for order in range(ORDERS + 1):
            for place, weight in enumerate(weights):
                sums[place, :, order] = weight @ at_z
            at_z = at_z * -chances
        return list(sums @ self.circle.shifts)

    def _above(self) -> ComplexArray:
        """Return the factors of `above`: where 1 − p is small, `1 + p y = e^{iθ} (1 + (1 − p) y')`."""
        sizes = self.sizes[: self.sure]
        certain = np.exp(1j * (self.certain + float(sizes.sum())) * self.circle.angles)
        far = np.conj(product(self.others[: self.sure], sizes, self.circle))
        near = np.multiply.reduce(self._factors(slice(self.sure, self.tied)), axis=0)
        result: ComplexArray = certain * far * near
        return result

    def _tail_law(self) -> ComplexArray:
        """Return the factors of all rare items."""
        result: ComplexArray = np.exp(self.tail[LAW] @ (self.turn_powers - 1))
        return result


def _sums_behind(values: FloatArray, last: FloatArray) -> FloatArray:
    """Return for rank k's group and each below it the sum of what follows, to the end of which `last` is added."""
    result: FloatArray = np.cumsum(np.concatenate([values, last[None]])[::-1], axis=0)[::-1]
    return result
