"""Exponents of uniforms that are known bit by bit.

A draw is an unknown real W in [0, 1) of which `width` bits are known: W ∈ [q, q+1] / 2^width. Its standard exponential
is `e = −log(1 − W)`, which increases in W and is precise for small W, where the large noises are.
"""

from __future__ import annotations

import numpy as np

from dpselect._arrays import BitArray, FloatArray


def exponential_bounds(known: BitArray, width: int) -> tuple[FloatArray, FloatArray]:
    """Return the smallest and largest e that `width` known bits allow, as correctly as float64 can.

    The relative error of each is a few units in the last place; the largest is infinite when all bits are one.
    """
    bits = known.astype(np.uint64, copy=False)
    shift = np.uint64(64 - width)
    below = (bits + np.uint64(1)) << shift
    whole = bits == np.uint64((1 << width) - 1)
    with np.errstate(divide="ignore"):
        lowest = _minus_log_complement(bits << shift)
        highest = np.where(whole, np.inf, _minus_log_complement(below))
    return lowest, highest


LEAST, MOST = 1 << 36, (1 << 64) - (1 << 46)
"""Words of 64 bits between these know e to a relative 2⁻³⁵, and one logarithm will do (exactness.md, section 4)."""


def within_margin(known: BitArray, width: int) -> bool:
    """Whether these are words of 64 bits, none of them near an end: then 2⁻²⁸ <= e <= 18 log 2 for all."""
    return width == 64 and len(known) > 0 and bool(known.min() >= LEAST and known.max() <= MOST)


def known_exponential(known: BitArray) -> FloatArray:
    """Return e for words within the margin, with a relative error of at most 2⁻³⁴.

    That is so little that one number can stand for both bounds: a quarter of the work.
    """
    exponential: FloatArray = -np.log1p(known * -(2.0**-64))
    return exponential


def _minus_log_complement(numerator: BitArray) -> FloatArray:
    """−log(1 − n/2⁶⁴); 2⁶⁴ − n is formed exactly in integers, so that neither end of [0, 1) loses precision."""
    near_zero = numerator < np.uint64(1 << 63)
    portion = numerator * 2.0**-64
    complement = (np.uint64(0) - numerator) * 2.0**-64
    return np.where(near_zero, -np.log1p(-np.where(near_zero, portion, 0.0)), -np.log(complement))
