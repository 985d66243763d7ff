"""How likely at most, or at least, so many items lie above a value z, by a sum round a circle.

Notation: item i lies above z with chance S and below it with chance F. Powers of x in `G(x) = Π (F + S x)` count the
items above z, and with `x = r e^{iθ}`, `y = e^{iθ} − 1` and the *tilted* chances `p = S r / (F + S r)`

`G(x) = G(r) Π (1 + p y)`.

With C_n the sum of the coefficients of G up to x^n, the mean of `G(x) x^{−n} / (1 − x)` over the M angles
`θ = (2j + 1) π / M` is `C_n − r^M C_{n+M} + r^{2M} C_{n+2M} − … − r^{−M} C_{n−M} + …`. Where `C_{n+M}` is all of G(1),
that is `C_n − G(1) r^M / (1 + r^M)`, up to what the tilted number is more than M away from n. No pole has to be kept
away from: r may even be 1. What lies above n is `G(1) − C_n`, by the same sum.

Error: r is chosen so that the tilted mean is near n; then nothing in the sum is much larger than its result. With v the
tilted variance the number is t or more away from its mean with a chance of at most `exp(−v h(t/v))` on each side, with
`h(u) = (1 + u) log(1 + u) − u` (Bennett's inequality). M is 3 more than the t for which that is e^−22, for the mean may
be a little off n, and one item left out; and up to e^−40 where v is small, for there mistakes are rare. What is left
out is relative to G(r): of a chance that is all but 1 it may be 5e-10, and of what is missing from 1 as much. Angles
are left out at which `|G(x)| <= G(r) exp(−v (1 − cos θ))` is below e^−26 of G(r). What is about all items but R of them
that are expected above z, none of which is, has about R less variance, but is also e^−R times smaller; so angles are
left out for v > 20 only.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import pairwise

import numpy as np

from dpselect._arrays import Array, ComplexArray, FloatArray

_NEVER, _RARER, _BESIDE, _NEWTONS, _TINY = 22.0, 18.0, 3.0, 3, 1e-300
_UNSEEN, _LARGE_VARIANCE = 26.0, 20.0
_FEW_TIED = 1_000
_WIDE = 100
LARGE = 1e4
"""From which size on a group's chances need all their digits."""
_BELOW_PI = 3.1
LIGHT, ORDERS = 0.03, 8
"""Up to which p series in `p y` are used, and how many powers they have: `(2 p)^9` is 1e-11."""


@dataclass(frozen=True, repr=False)
class Circle:
    """Half of the points x on a circle for each value z; the other half are their conjugates.

    They are `number` in all, at the angles θ and their opposites; `turns` are `e^{iθ}`. The logarithm of the law that
    is part of all terms is at most `log_law` at each angle.
    """

    log_radius: FloatArray
    angles: FloatArray
    turns: ComplexArray
    number: int
    log_law: FloatArray

    @classmethod
    def of(
        cls,
        log_radius: FloatArray,
        variances: FloatArray,
        *,
        times: int = 1,
        undecided: float = np.inf,
        off: float = 0.0,
        shrinking: FloatArray | None = None,
        all_but_one: bool = False,
    ) -> Circle:
        """Return points that are enough for tilted numbers of these variances, or so many times as many.

        With no more than some number of undecided items all sums end, and a few points more than that are exact. Where
        the tilted mean is off the one wanted, as many points more make up for that. `shrinking` are the variances of
        those items whose law is part of all terms, if these are not all; `all_but_one` says that no term lacks more.
        """
        number = times * (_farthest(float(variances.max())) + off)
        number = 2 * int(np.ceil(min(number, undecided + 2) / 2))
        least = float((variances if shrinking is None else shrinking).min())
        angles, falls, turns = _half_circle(number)
        seen = len(angles)
        if least * float(falls[-1]) > _UNSEEN and (all_but_one or least > _LARGE_VARIANCE):
            seen = int(np.searchsorted(falls, _UNSEEN / least, side="right"))
        return cls(log_radius, angles[:seen], turns[:seen], number, -least * falls[:seen])

    def only(self, some: Array) -> Circle:
        """Return the circle at some of the angles."""
        return replace(self, angles=self.angles[some], turns=self.turns[some], log_law=self.log_law[some])

    def beside(self, law: ComplexArray) -> Circle:
        """Return the circle for what is multiplied by a law [z, angle]."""
        return replace(self, log_law=np.log(np.abs(law).max(axis=0)))

    @cached_property
    def shifts(self) -> ComplexArray:
        """Powers of `y = e^{iθ} − 1`, as many as small p need."""
        return powers_of(self.turns - 1, ORDERS + 1)

    def at_most(self, last: int, terms: ComplexArray, log_scale: FloatArray, whole: FloatArray) -> FloatArray:
        """Return the sum of coefficients up to `x^last` of `e^log_scale · terms`, whose sum of all is `whole`.

        Terms are [z, angle], or several of these.
        """
        result: FloatArray = (terms * self.kernel(last, log_scale)).real.sum(axis=-1) + whole * self.counted
        return result

    def more_than(self, last: int, terms: ComplexArray, log_scale: FloatArray, whole: FloatArray) -> FloatArray:
        """Return the sum of the other coefficients."""
        rest = whole / (1 + np.exp(self.number * self.log_radius))
        result: FloatArray = rest - (terms * self.kernel(last, log_scale)).real.sum(axis=-1)
        return result

    def exactly(self, number: int, terms: ComplexArray, log_scale: FloatArray) -> FloatArray:
        """Return the coefficient of `x^number` of `e^log_scale · terms`."""
        shares = (terms * np.exp(-1j * number * self.angles)).real.sum(axis=1)
        result: FloatArray = np.exp(log_scale - number * self.log_radius) * (2 / self.number) * shares
        return result

    @cached_property
    def counted(self) -> FloatArray:
        """Which share of the sum of all coefficients is part of that of the first ones, `1 / (1 + r^{−M})`."""
        result: FloatArray = 1 / (1 + np.exp(-self.number * self.log_radius))
        return result

    def kernel(self, last: int, log_scale: FloatArray) -> ComplexArray:
        """Return [z, angle] by which terms are multiplied, and then the real parts of all angles added up."""
        points = np.exp(self.log_radius)[:, None] * self.turns
        scale = np.exp(log_scale - last * self.log_radius) * (2 / self.number)
        result: ComplexArray = scale[:, None] * (np.exp(-1j * last * self.angles) / (1 - points))
        return result


def _farthest(variance: float) -> float:
    """Return how far a number of items of this variance may be from where it is expected.

    That is by Newton's method for t/v; as h is convex, none of its steps falls short.
    """
    if variance < _TINY:
        return _BESIDE
    never = (_NEVER + _RARER / (1 + variance) ** 2) / variance
    share = math.sqrt(2 * never) + never / 3
    for _ in range(_NEWTONS):
        log = math.log1p(share)
        share -= ((1 + share) * log - share - never) / log
    return share * variance + _BESIDE


@lru_cache(maxsize=128)
def _half_circle(number: int) -> tuple[FloatArray, FloatArray, ComplexArray]:
    """Return the angles θ of half of so many points, `1 − cos θ` and `e^{iθ}`."""
    angles = np.linspace(0.0, np.pi, number + 1)[1::2]
    found = angles, 1 - np.cos(angles), np.exp(1j * angles)
    for each in found:
        each.flags.writeable = False
    return found


def real_times(matrix: FloatArray, values: ComplexArray) -> ComplexArray:
    """Return the product of a real matrix and a complex one, whose numbers are taken as pairs."""
    result: ComplexArray = (matrix @ np.ascontiguousarray(values).view(np.float64)).view(np.complex128)
    return result


def powers_of(values: ComplexArray, count: int) -> ComplexArray:
    """Return so many powers, from 0 on, as [power, value]; NumPy's own take several times as long."""
    result = np.ones((count, len(values)), dtype=np.complex128)
    result[1:] = values
    np.multiply.accumulate(result, axis=0, out=result)
    return result


def log_scales(below: FloatArray, above: FloatArray, log_radius: FloatArray, largest: float) -> FloatArray:
    """Return log(F + S r), where groups are large to all digits of a small S."""
    plain: FloatArray = np.log(below + above * np.exp(log_radius))
    if largest <= LARGE:
        return plain
    return np.where(above < 0.5, np.log1p(np.minimum(above, 0.5) * np.expm1(log_radius)), plain)


def factors(shares: FloatArray, sizes: FloatArray, turns: ComplexArray) -> ComplexArray:
    """Return `(1 + p y)^m` for groups of m items with `y = e^{iθ} − 1`, as [group, z, angle]."""
    turned = turns - 1
    result: ComplexArray = 1.0 + shares[..., None] * turned
    if sizes.ndim == 1 and (sizes == 1).all():
        return result
    each = np.broadcast_to(sizes if sizes.ndim == 2 else sizes[:, None], shares.shape)
    many, few = np.nonzero(each > _FEW_TIED), np.nonzero((each > 1) & (each <= _FEW_TIED))
    result[each == 0] = 1.0
    if len(many[0]):
        result[many] = np.exp(np.log1p(shares[many][:, None] * turned) * each[many][:, None])
    if len(few[0]):
        result[few] = _powers(result[few], each[few].astype(np.intp))
    return result


def _powers(bases: ComplexArray, exponents: Array) -> ComplexArray:
    """Return each of the bases [group, …] to its power, by squaring."""
    # In order of the exponents, so that every further bit concerns the last ones only.
    order = np.argsort(exponents, kind="stable")
    squares, ranked = bases[order], exponents[order]
    powers = np.where((ranked % 2 == 1)[:, None], squares, 1.0)
    bit = 2
    while bit <= ranked[-1]:
        first = int(np.searchsorted(ranked, bit))
        squares[first:] *= squares[first:]
        taken = first + np.flatnonzero(ranked[first:] & bit)
        powers[taken] *= squares[taken]
        bit *= 2
    result = np.empty_like(powers)
    result[order] = powers
    return result


def upto(operation: np.ufunc, terms: ComplexArray) -> ComplexArray:
    """Return the sums or products over the groups up to each of terms [group, z, angle], in their place."""
    if terms[:1].size < _WIDE:
        operation.accumulate(terms, axis=0, out=terms)
        return terms
    # Row by row, which is several times faster for long rows.
    for before, row in pairwise(terms):
        operation(before, row, out=row)
    return terms


def weighted(weights: FloatArray, terms: ComplexArray) -> ComplexArray:
    """Return `Σ w t` over groups of real weights [group, z] and terms [group, z, angle]."""
    if not len(terms):
        # NumPy's einsum may leave sums of nothing as it finds them.
        return np.zeros(terms.shape[1:], dtype=np.complex128)
    parts = np.ascontiguousarray(terms).view(np.float64)
    result: ComplexArray = np.einsum("gz,gzx->zx", weights, parts, order="C").view(np.complex128)
    return result


def product(shares: FloatArray, sizes: FloatArray, circle: Circle) -> ComplexArray:
    """Return `Π (1 + p y)^m` over groups."""
    small = shares.max(axis=1, initial=0.0) <= LIGHT
    near = np.multiply.reduce(factors(shares[~small], sizes[~small], circle.turns), axis=0)
    result: ComplexArray = near * np.exp(log_light(shares[small], sizes[small], circle))
    return result


def log_product(shares: FloatArray, sizes: FloatArray, circle: Circle) -> ComplexArray:
    """Return the logarithm of `Π (1 + p y)^m` over groups, continuous in p."""
    largest = shares.max(axis=1, initial=0.0)
    small, single = largest <= LIGHT, sizes == 1
    result = log_light(shares[small], sizes[small], circle)
    tied, alone = ~small & ~single, ~small & single
    if tied.any():
        result += np.tensordot(sizes[tied], np.log1p(shares[tied][..., None] * (circle.turns - 1)), axes=1)
    if alone.any():
        # Logarithms take long. No argument of `1 + p y` exceeds that of the largest p, and as long as those of a few
        # groups add up to less than π, the logarithm of their product is the sum of their logarithms.
        most = np.angle(1 + np.multiply.outer(largest[alone], circle.turns - 1)).max(axis=1)
        together = max(_BELOW_PI - float(most.max()), float(most.min()) / 2)
        starts = np.flatnonzero(np.diff(np.floor(np.cumsum(most) / together), prepend=-1.0))
        result += np.log(np.multiply.reduceat(factors(shares[alone], sizes[alone], circle.turns), starts)).sum(axis=0)
    return result


def log_light(shares: FloatArray, sizes: FloatArray, circle: Circle) -> ComplexArray:
    """Return `Σ m log(1 + p y) = Σ_i (−1)^{i+1} Σ m p^i y^i / i` for small p."""
    if not len(shares):
        return np.zeros((shares.shape[1], len(circle.angles)), dtype=np.complex128)
    sums = np.zeros((shares.shape[1], ORDERS + 1))
    powers = (sizes if sizes.ndim == 2 else sizes[:, None]) * np.ones_like(shares)
    for order in range(1, ORDERS + 1):
        powers *= shares
        sums[:, order] = powers.sum(axis=0) * ((-1) ** (order + 1) / order)
    return real_times(sums, circle.shifts)
