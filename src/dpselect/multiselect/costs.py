"""What the best of k answers costs a user in expectation."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from dpselect._arrays import FloatArray
from dpselect.errors import InvalidInput, plain
from dpselect.multiselect.disutility import as_disutility
from dpselect.multiselect.moments import Moments, checked_rate
from dpselect.multiselect.offsets import checked_answers, half_gaps, middle_cost

FARTHEST = 1e6
"""Units of 1/ε up to which an offset leaves enough digits for the noise around it."""


def expected_cost(answers: int | npt.ArrayLike, epsilon: float, disutility: object = "linear") -> float:
    """Return `E min_i h(|X − a_i|)`, X ~ Laplace(1/ε), for k (the best offsets are meant) or for given offsets.

    For the best offsets: `D_b` when `k = 2b−1` and `h(x_b/ε)` when `k = 2b`, with the D and x of `half_gaps`; for
    h(t) = t that is `1/(εb)` and `ln(1 + 1/b)/ε`. For others the sum over the cells of the answers. Relative error
    about 1e-9. Sources: multi-selection, equation (14) and appendix B; multiselect.md.
    """
    epsilon = checked_rate(epsilon)
    wanted = as_disutility(disutility)
    if np.ndim(answers) == 0:
        k = checked_answers(answers, wanted)
        costs, halves = half_gaps((k + 1) // 2, epsilon, wanted)
        if k % 2:
            return float(costs[-1])
        if wanted.is_distance:
            return float(halves[-1]) / epsilon
        return middle_cost(Moments(wanted, epsilon), float(halves[-1]), float(costs[-1]))
    offsets = given_offsets(answers)
    if not wanted.is_distance and np.abs(offsets).max() * epsilon > FARTHEST:
        raise InvalidInput("answers", plain("one too far away"), f"none beyond {FARTHEST / epsilon:g} is needed")
    moments = Moments(wanted, epsilon)
    return (_right(offsets * epsilon, moments) + _right(-offsets[::-1] * epsilon, moments)) / 2


def given_offsets(answers: npt.ArrayLike) -> FloatArray:
    """Return offsets in ascending order, or refuse what are none."""
    try:
        offsets = np.sort(np.asarray(answers, dtype=np.float64))
    except (TypeError, ValueError):
        offsets = np.array([])
    if offsets.ndim != 1 or not offsets.size or not np.isfinite(offsets).all():
        raise InvalidInput("answers", plain("something else"), "k, or a list of at least one finite offset is needed")
    return offsets


def _right(offsets: FloatArray, moments: Moments) -> float:
    """Return `∫_0^∞ min_i H(|x − a_i|) e^{−x} dx` for ascending offsets, cell by cell, each split at its answer."""
    middles = (offsets[1:] + offsets[:-1]) / 2
    total = []
    for answer, low, high in zip(offsets, [-math.inf, *middles], [*middles, math.inf], strict=True):
        if high <= 0:
            continue
        start = max(float(low), 0.0)
        if answer > start:
            # On the left of the answer, v = answer − x runs from 0 to answer − start.
            total.append(math.exp(-start) * moments.behind(float(answer) - start))
        begin = max(start - float(answer), 0.0)
        total.append(math.exp(-max(start, float(answer))) * moments.ahead(begin, float(high) - float(answer)))
    return math.fsum(total)
