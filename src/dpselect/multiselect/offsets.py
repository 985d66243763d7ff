"""Where the k answers to a signal should lie: at fixed offsets from it, which cost least under Laplace noise."""

from __future__ import annotations

import math

import numpy as np

from dpselect._arrays import FloatArray
from dpselect._numbers import positive_integer
from dpselect.errors import InvalidInput
from dpselect.multiselect.disutility import Disutility, as_disutility
from dpselect.multiselect.moments import Moments, checked_rate

MOST_ANSWERS = 1_000_000
MOST_SEARCHED = 20_000
"""Most answers where each gap is searched for, which takes about a millisecond."""

_FLOAT = 4 * np.finfo(np.float64).eps


def optimal_offsets(k: int, epsilon: float, disutility: object = "linear") -> FloatArray:
    """Return the offsets `a_1 < … < a_k`, symmetric about 0, with the least `E min_i h(|X − a_i|)`, X ~ Laplace(1/ε).

    For h(t) = t and unit ε: `k = 2b−1` has `0, ±y_i` with `y_i = y_{i−1} + 2 ln(1 + 1/(b−i))`; `k = 2b` has
    `±ln(1 + 1/b)` and from there outwards `2 ln(b/(b−i))`. For every other increasing h the recursion of
    `half_gaps`, whose costs have a relative error of about 1e-9. Sources: multi-selection, appendix B; multiselect.md.
    """
    wanted = as_disutility(disutility)
    k, epsilon = checked_answers(k, wanted), checked_rate(epsilon)
    half = half_gaps((k + 1) // 2, epsilon, wanted)[1]
    first, further = (half[:0], half[: k // 2]) if k % 2 else (half[k // 2 - 1 :], half[: k // 2 - 1])
    steps = np.concatenate([first, 2 * further[::-1]])
    right = np.cumsum(steps) / epsilon
    return np.concatenate([-right[::-1], np.zeros(k % 2), right])


def checked_answers(k: object, disutility: Disutility | None = None) -> int:
    """Return the number of answers, if they are few enough to be listed or, for a disutility, searched for."""
    number = positive_integer("k", k)
    most = MOST_ANSWERS if disutility is None or disutility.is_distance else MOST_SEARCHED
    if number > most:
        raise InvalidInput("k", k, f"at most {most:,} answers can be computed")
    return number


def half_gaps(count: int, epsilon: float, disutility: Disutility) -> tuple[FloatArray, FloatArray]:
    """Return `D_1 … D_b` and `x_1 … x_b` for b = `count`, the x in units of 1/ε.

    D_b is the least cost on one side of an answer that b − 1 others follow, 2x_b the gap between it and the next one
    when b follow. With `H(u) = h(u/ε)`:

        `D_1 = ∫_0^∞ e^{−t} dH(t)`,  `∫_0^{x_b} e^t dH(t) = D_b`,  `D_{b+1} = ∫_0^{x_b} e^{−t} dH(t)`.

    For h(t) = t: `D_b = 1/(εb)`, `x_b = ln(1 + 1/b)`. Source: multi-selection, appendix B, solved in multiselect.md.
    D_{b+1} is computed as what that gap costs, in which an error of x_b, or a jump of h there, hardly shows.
    """
    if disutility.is_distance:
        numbers = np.arange(1, count + 1, dtype=np.float64)
        return 1 / (numbers * epsilon), np.log1p(1 / numbers)
    moments = Moments(disutility, epsilon)
    costs, halves = [moments.ahead(0.0, math.inf)], [math.inf]
    for _ in range(count):
        x = _half_gap(moments, costs[-1], halves[-1])
        halves.append(x)
        costs.append(moments.ahead(0.0, x) + math.exp(-x) * middle_cost(moments, x, costs[-1]))
    return np.array(costs[:count]), np.array(halves[1:])


def middle_cost(moments: Moments, x: float, beyond: float) -> float:
    """Return `∫_0^x H(x − t) e^{−t} dt + e^{−x} D`: the cost from x before an answer on, when D is that beyond it."""
    return moments.behind(x) + math.exp(-x) * beyond


def _half_gap(moments: Moments, cost: float, highest: float) -> float:
    """Return x where `∫_0^x e^t dH(t) = e^x (H(x) − behind(x))`, which rises, passes the cost."""
    from scipy.optimize import brentq

    def excess(x: float) -> float:
        return moments.value(x) - moments.behind(x) - cost * math.exp(-x)

    high = min(highest, 1.0)
    while high < highest and excess(high) <= 0:
        high = min(2 * high, highest)
    low = high / 2
    while excess(low) > 0:
        low /= 2
    if excess(high) <= 0:  # only rounding puts the solution above the one before it
        return high
    return float(brentq(excess, low, high, xtol=1e-300, rtol=_FLOAT, maxiter=500))
