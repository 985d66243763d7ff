"""Products over many items on circles, a few items at a time; notation as in contour.py.

With `q = 1 − p` the factors `1 + p y = q + p e^{iθ}` of a few items multiply to a polynomial in `e^{iθ}`, whose
coefficients are the chances of how many of them are above z; none is negative, so nothing cancels. A matrix product
takes all polynomials to the circle, where fewer factors are left to multiply.
"""

from __future__ import annotations

import numpy as np

from dpselect.forecast.chances import FloatArray
from dpselect.forecast.contour import Circle, ComplexArray

_DOUBLINGS = 2
_BLOCK = 1 << _DOUBLINGS


def law(shares: FloatArray, others: FloatArray, circle: Circle) -> ComplexArray:
    """Return `Π (1 + p y)` over items as [z, angle], for p and q as [item, z]."""
    padding = np.zeros((-len(shares) % _BLOCK if len(shares) else _BLOCK, shares.shape[1]))
    product = np.stack([np.concatenate([others, padding + 1]), np.concatenate([shares, padding])])
    for _ in range(_DOUBLINGS):
        product = _times(product[:, 0::2], product[:, 1::2])
    turned = np.ascontiguousarray(circle.turns ** np.arange(len(product))[:, None]).view(np.float64)
    values = (product.reshape(len(product), -1).T @ turned).view(np.complex128)
    result: ComplexArray = np.multiply.reduce(values.reshape(*product.shape[1:], -1), axis=0)
    return result


def _times(left: FloatArray, right: FloatArray) -> FloatArray:
    """Return the products of polynomials [power, block, z]."""
    result = np.zeros((len(left) + len(right) - 1, *left.shape[1:]))
    for power, coefficient in enumerate(left):
        result[power : power + len(right)] += coefficient * right
    return result
