"""Sums over groups of which one item is at z, the others above or below it, on circles; notation as in contour.py.

With `at_z` what stands at z of a group, `Σ f / (F + S x)` is a sum of `at_z / (1 + p y)`, and

`1 / (1 + p y) = (1 − p (y_0 + i y_1)) / (1 − 2 p (1 − p) y_0)` with `y_0 = 1 − cos θ` and `y_1 = sin θ`.

Such a sum is only ever used beside a law, which is at most `exp(−v y_0)` if its variance is v, so that few terms of a
series do at most angles. With `s = 8 p (1 − p) − 1`, from −1 to 1, and `κ = y_0 / (4 − y_0)` the denominator is
`(1 − κ s) (1 − y_0/4)`, and with `η = κ / (1 + √(1 − κ^2))` and Chebyshev's polynomials T

`√(1 − κ^2) / (1 − κ s) = 1 + 2 Σ_m η^m T_m(s)`,

from which n terms leave out at most `2 η^n / (1 − η)`. The numerator is at most 1 in size, as `1 − p + p e^{−iθ}`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache, lru_cache

import numpy as np
from numpy.polynomial import chebyshev

from dpselect._arrays import BoolArray, ComplexArray, FloatArray
from dpselect.forecast.contour import ORDERS, Circle, real_times, upto

_TERMS = (6, 8, 10, 12)
_LEFT_OUT = 1e-10
_PASSES_EACH, _PASSES_TERM, _WORTH = 5, 3, 0.5
"""How often numbers of all groups at all z are gone through for an angle, and for a term; which share of it pays."""


@dataclass(frozen=True, repr=False)
class Damped:
    """The coefficients [power of s, angle] of the series, for the angles at which it is enough beside a law."""

    enough: BoolArray
    coefficients: FloatArray

    @classmethod
    def of(cls, circle: Circle) -> Damped | None:
        """Return as many terms as pay, None if none do."""
        seen = len(circle.angles)
        rates, scale = _rates(circle.number, seen)
        log_rates, log_errors = np.log(rates), np.log(2 * scale / (1 - rates)) + circle.log_law
        least, found = _WORTH * _PASSES_EACH * seen, None
        for terms in _TERMS:
            enough = log_errors + terms * log_rates < math.log(_LEFT_OUT)
            passes = _PASSES_TERM * terms + _PASSES_EACH * (seen - int(np.count_nonzero(enough)))
            if passes < least:
                least, found = passes, (terms, enough)
        if found is None:
            return None
        terms, enough = found
        return cls(enough, _coefficients(circle.number, seen, terms)[:, enough])

    def marked(
        self, shares: FloatArray, others: FloatArray, at_z: FloatArray, weights: list[FloatArray], circle: Circle
    ) -> list[ComplexArray]:
        """Return `Σ w at_z / (1 + p y)` over groups for each list of weights [group], at those angles."""
        places, factors = 8 * shares * others - 1, np.stack(weights)
        terms, sums = np.stack([at_z, at_z * shares]), []
        for _ in range(len(self.coefficients) - 1):
            sums.append(factors @ terms)
            terms *= places
        sums.append(factors @ terms)
        # As [weights, z, angle].
        plain, tilted_one = np.stack(sums, axis=-1) @ self.coefficients
        return list(plain - (1 - np.conj(circle.turns[self.enough])) * tilted_one)


@lru_cache(maxsize=256)
def _rates(number: int, seen: int) -> tuple[FloatArray, FloatArray]:
    """Return η for the first angles of a circle, and by what the series is to be multiplied."""
    falls = 1 - np.cos((2 * np.arange(seen) + 1) * (np.pi / number))
    ratios = falls / (4 - falls)
    roots = np.sqrt(1 - ratios**2)
    return ratios / (1 + roots), 1 / (roots * (1 - falls / 4))


@lru_cache(maxsize=256)
def _coefficients(number: int, seen: int, terms: int) -> FloatArray:
    """Return the coefficients of so many terms of the series, as [power of s, angle]."""
    rates, scale = _rates(number, seen)
    series = 2 * scale * rates ** np.arange(terms)[:, None]
    series[0] /= 2
    result: FloatArray = _to_powers(terms) @ series
    return result


@cache
def _to_powers(terms: int) -> FloatArray:
    """Return the matrix from so many Chebyshev coefficients to those of powers."""
    result = np.zeros((terms, terms))
    for term in range(terms):
        result[: term + 1, term] = chebyshev.cheb2poly(np.eye(terms)[term, : term + 1])
    return result


def light_marked(shares: FloatArray, at_z: FloatArray, weights: list[FloatArray], circle: Circle) -> list[ComplexArray]:
    """Return `Σ w at_z / (1 + p y)` over groups for small p and weights [group], by `Σ_n (−p y)^n`."""
    if not len(shares):
        return [np.zeros((shares.shape[1], len(circle.angles)), dtype=np.complex128) for _ in weights]
    sums = np.empty((len(weights), shares.shape[1], ORDERS + 1))
    for order in range(ORDERS + 1):
        for place, weight in enumerate(weights):
            sums[place, :, order] = weight @ at_z
        at_z = at_z * -shares
    return list(real_times(sums, circle.shifts))


def marked(shares: FloatArray, others: FloatArray, weights: list[FloatArray], circle: Circle) -> list[ComplexArray]:
    """Return `Σ w / (1 + p y)` over groups for each of several weights [group, z]; `others` are 1 − p."""
    if not len(shares):
        return [np.zeros((shares.shape[1], len(circle.angles)), dtype=np.complex128) for _ in weights]
    turned = 1 - np.conj(circle.turns)[:, None]
    # As [group, angle, z], whose rows are longer.
    inverse = (2 * shares * others)[:, None] * -turned.real
    inverse += 1.0
    np.divide(1.0, inverse, out=inverse)
    found = []
    for weight in weights:
        plain, tilted_one = (np.einsum("gz,gxz->xz", each, inverse) for each in (weight, weight * shares))
        found.append(np.ascontiguousarray((plain - turned * tilted_one).T))
    return found


def marked_upto(shares: FloatArray, others: FloatArray, weights: FloatArray, circle: Circle) -> ComplexArray:
    """Return `Σ w / (1 + p y)` over the groups up to each, as [group, z, angle]."""
    turned = 1 - np.conj(circle.turns)
    inverse = 1.0 / (1.0 - (2 * shares * others)[..., None] * turned.real)
    tilted_one = (weights * shares)[..., None] * inverse
    terms = np.empty(inverse.shape, dtype=np.complex128)
    np.multiply(tilted_one, -turned.imag, out=terms.imag)
    terms.real = weights[..., None] * inverse - tilted_one * turned.real
    return upto(np.add, terms)


def marked_by(
    shares: FloatArray, others: FloatArray, weights: FloatArray, factors: ComplexArray, circle: Circle
) -> ComplexArray:
    """Return `Σ w c / (1 + p y)` over groups for weights [group, z] and factors c [group, angle], as [z, angle]."""
    turned = 1 - np.conj(circle.turns)
    # As [angle, group, z], so that sums over groups are matrix products.
    parts = np.stack([factors.real.T, factors.imag.T], axis=1)
    terms = np.multiply.outer(-turned.real, 2 * shares * others)
    terms += 1.0
    np.divide(weights, terms, out=terms)
    plain = parts @ terms
    terms *= shares
    tilted_one = parts @ terms
    result: ComplexArray = plain[:, 0] + 1j * plain[:, 1] - turned[:, None] * (tilted_one[:, 0] + 1j * tilted_one[:, 1])
    return result.T
