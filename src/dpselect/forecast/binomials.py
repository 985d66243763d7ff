"""Logarithms of chances, and how many of several tied items lie above a value."""

from __future__ import annotations

import numpy as np

from dpselect._arrays import FloatArray
from dpselect.sampling.sequences import log_falling

_TOGETHER = 12


def logarithms(cdf: FloatArray, survival: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return log F and log S without loss of digits."""
    return log_of_first(cdf, survival), log_of_first(survival, cdf)


def log_of_first(chance: FloatArray, other: FloatArray) -> FloatArray:
    """Return the logarithm of a chance, of which the other one is the complement."""
    near = other < 0.5
    if near.all():
        result: FloatArray = np.log1p(-other)
        return result
    return np.where(near, np.log1p(-np.minimum(other, 0.5)), np.log(chance))


def log_power(chances: FloatArray, others: FloatArray, sizes: FloatArray) -> FloatArray:
    """Return `Σ m log c` of chances c [group, z] of groups of m items, of which the other ones are the complements."""
    tied = sizes != 1
    result: FloatArray = sizes[tied] @ log_of_first(chances[tied], others[tied])
    alone = chances if not tied.any() else chances[~tied]
    if len(alone):
        # Logarithms take longer than products, which do not vanish as long as few are taken together.
        result += np.log(np.multiply.reduceat(alone, np.arange(0, len(alone), _TOGETHER))).sum(axis=0)
    return result


def binomial(size: float, constant: FloatArray, linear: FloatArray, low: int, high: int) -> FloatArray:
    """Return the coefficients 0..high of `(e^constant + e^linear x)^size`, zero below `low`."""
    return np.exp(log_binomial(size, constant, linear, low, high))


def coefficient(size: float, constant: FloatArray, linear: FloatArray, power: int) -> FloatArray:
    """Return one of these coefficients, however far out it is; 0 behind the last."""
    if power > size:
        return np.zeros(len(constant))
    result: FloatArray = np.exp(_log_coefficients(size, constant, linear, np.array([[float(power)]])))[0]
    return result


def log_binomial(size: float, constant: FloatArray, linear: FloatArray, low: int, high: int) -> FloatArray:
    """Return the logarithms of these coefficients."""
    powers = np.arange(max(0, int(min(high, size)) + 1), dtype=np.float64)[:, None]
    if not len(powers):
        return np.full((1, len(constant)), -np.inf)
    return np.where(powers >= low, _log_coefficients(size, constant, linear, powers), -np.inf)


def _log_coefficients(size: float, constant: FloatArray, linear: FloatArray, powers: FloatArray) -> FloatArray:
    exponent = np.where(powers < size, (size - powers) * constant, 0.0) + np.where(powers > 0, powers * linear, 0.0)
    log_ways = log_falling(size, powers) - log_falling(powers, powers)
    result: FloatArray = exponent + log_ways
    return result
