"""Sums over groups of which one item is at z, the others above or below it, on circles; notation as in contour.py.

With `at_z` what stands at z of a group, `Σ f / (F + S x)` is a sum of `at_z / (1 + p y)`, and

`1 / (1 + p y) = (1 − p (y_0 + i y_1)) / (1 − 2 p (1 − p) y_0)` with `y_0 = 1 − cos θ` and `y_1 = sin θ`.
"""

from __future__ import annotations

import numpy as np

from dpselect.forecast.chances import FloatArray
from dpselect.forecast.contour import ORDERS, Circle, ComplexArray, upto


def light_marked(shares: FloatArray, at_z: FloatArray, weights: list[FloatArray], circle: Circle) -> list[ComplexArray]:
    """Return `Σ w at_z / (1 + p y)` over groups for small p and weights [group], by `Σ_n (−p y)^n`."""
    if not len(shares):
        return [np.zeros((shares.shape[1], len(circle.angles)), dtype=np.complex128) for _ in weights]
    sums = np.empty((len(weights), shares.shape[1], ORDERS + 1))
    for order in range(ORDERS + 1):
        for place, weight in enumerate(weights):
            sums[place, :, order] = weight @ at_z
        at_z = at_z * -shares
    return list(sums @ circle.shifts)


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
