"""Products over many items on circles, a few items at a time; notation as in contour.py.

With `q = 1 − p` the factors `1 + p y = q + p e^{iθ}` of a few items multiply to a polynomial in `e^{iθ}`, whose
coefficients are the chances of how many of them are above z; none is negative, so nothing cancels. A matrix product
takes all polynomials to the circle, where fewer factors are left to multiply.
"""

from __future__ import annotations

import numpy as np

from dpselect._arrays import ComplexArray, FloatArray
from dpselect.forecast.contour import Circle, powers_of

_DOUBLINGS = 2
_BLOCK = 1 << _DOUBLINGS


def law(shares: FloatArray, others: FloatArray, circle: Circle) -> ComplexArray:
    """Return `Π (1 + p y)` over items as [z, angle], for p and q as [item, z]."""
    count = len(shares)
    # Up to a full block there are items that are never above z.
    product = np.zeros((2, max(count + -count % _BLOCK, _BLOCK), shares.shape[1]))
    product[0, :count], product[0, count:], product[1, :count] = others, 1.0, shares
    for _ in range(_DOUBLINGS):
        product = _times(product[:, 0::2], product[:, 1::2])
    turned = powers_of(circle.turns, len(product)).view(np.float64)
    values = (product.reshape(len(product), -1).T @ turned).view(np.complex128)
    result: ComplexArray = np.multiply.reduce(values.reshape(*product.shape[1:], -1), axis=0)
    return result


def _times(left: FloatArray, right: FloatArray) -> FloatArray:
    """Return the products of polynomials [power, block, z]."""
    result = np.empty((len(left) + len(right) - 1, *left.shape[1:]))
    np.multiply(left[0], right, out=result[: len(right)])
    result[len(right) :] = 0.0
    for power in range(1, len(left)):
        result[power : power + len(right)] += left[power] * right
    return result
