"""Where the k answers to a signal should lie, and what the best of them costs.

The answers lie at fixed offsets from the signal: those with the least expected cost under Laplace noise. The proofs are
in multiselect.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dpselect._arrays import FloatArray
from dpselect._numbers import positive_integer
from dpselect.errors import InvalidInput, plain
from dpselect.multiselect.disutility import Disutility, Moments, as_disutility, checked_rate

MOST_ANSWERS = 1_000_000
"""Largest number of answers with closed forms."""

MOST_SEARCHED = 20_000
"""Largest number of answers for which gaps are searched; each gap takes about a millisecond."""

FARTHEST_OFFSET = 1e6
"""Largest offset, in units of 1/ε, that leaves enough digits for the noise around it."""

_FLOAT = 4 * np.finfo(np.float64).eps


def optimal_offsets(k: int, epsilon: float, disutility: object = "linear") -> FloatArray:
    """Return the offsets `a_1 < … < a_k` with the least `E min_i h(|X − a_i|)`, X ~ Laplace(1/ε).

    They are symmetric about 0. For h(t) = t and ε = 1 there are closed forms: `k = 2b−1` has `0, ±y_i` with
    `y_i = y_{i−1} + 2 ln(1 + 1/(b−i))`; `k = 2b` has `±ln(1 + 1/b)` and, outwards from there, gaps that add up to
    `2 ln(b/(b−i))`. Every other h is solved by the recursion of `half_gaps`, to a relative error of the cost of about
    1e-9. Sources: multi-selection, appendix B; multiselect.md.

    Parameters
    ----------
    k
        Number of answers: at most 1,000,000 for "linear" and 20,000 otherwise.
    epsilon
        Privacy loss per unit of distance.
    disutility
        What a distance costs: see `as_disutility`.

    Returns
    -------
    FloatArray
        The k offsets, ascending.

    Raises
    ------
    InvalidInput
        If an argument is out of range, or the expected cost is infinite.

    Examples
    --------
    >>> from dpselect.multiselect import optimal_offsets
    >>> optimal_offsets(3, epsilon=1.0).round(4).tolist()
    [-1.3863, 0.0, 1.3863]
    """
    wanted = as_disutility(disutility)
    k, epsilon = checked_answers(k, wanted), checked_rate(epsilon)
    half = half_gaps((k + 1) // 2, epsilon, wanted)[1]
    first, further = (half[:0], half[: k // 2]) if k % 2 else (half[k // 2 - 1 :], half[: k // 2 - 1])
    steps = np.concatenate([first, 2 * further[::-1]])
    right = np.cumsum(steps) / epsilon
    return np.concatenate([-right[::-1], np.zeros(k % 2), right])


def expected_cost(answers: int | npt.ArrayLike, epsilon: float, disutility: object = "linear") -> float:
    """Return `E min_i h(|X − a_i|)`, X ~ Laplace(1/ε): what the best of the answers costs in expectation.

    For the optimal offsets this is `D_b` if `k = 2b−1` and `h(x_b/ε)` if `k = 2b`, with D and x of `half_gaps`; for
    h(t) = t that is `1/(εb)` and `ln(1 + 1/b)/ε`. For other offsets it is a sum over the cells of the answers. The
    relative error is about 1e-9. Sources: multi-selection, equation (14) and appendix B; multiselect.md.

    Parameters
    ----------
    answers
        k, for the optimal offsets, or a list of offsets.
    epsilon, disutility
        As in `optimal_offsets`.

    Returns
    -------
    float

    Raises
    ------
    InvalidInput
        If an argument is out of range, or the expected cost is infinite.

    Examples
    --------
    >>> from dpselect.multiselect import expected_cost
    >>> expected_cost(3, epsilon=1.0)
    0.5
    >>> expected_cost([0.0], epsilon=1.0)
    1.0
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
        return _cost_from_middle(Moments(wanted, epsilon), float(halves[-1]), float(costs[-1]))
    offsets = checked_offsets(answers)
    if not wanted.is_distance and np.abs(offsets).max() * epsilon > FARTHEST_OFFSET:
        raise InvalidInput("answers", plain("one further away"), f"must be within ±{FARTHEST_OFFSET / epsilon:g}")
    moments = Moments(wanted, epsilon)
    return (_right_cost(offsets * epsilon, moments) + _right_cost(-offsets[::-1] * epsilon, moments)) / 2


@dataclass(frozen=True)
class Answers:
    """The k best answers to a signal, with expected costs; made by `best_answers`.

    Attributes
    ----------
    k, epsilon, disutility
        What was asked for; the disutility by its name.
    offsets
        Positions of the answers relative to the signal, ascending.
    cost
        Expected cost of the best of them.
    single
        Expected cost of a single answer.

    Examples
    --------
    >>> from dpselect.multiselect import best_answers
    >>> best_answers(3, epsilon=1.0).to_dict()["cost"]
    0.5
    """

    k: int
    epsilon: float
    disutility: str
    offsets: tuple[float, ...]
    cost: float
    single: float

    def to_dict(self) -> dict[str, Any]:
        """Return the answers as plain data."""
        return {**self.__dict__, "offsets": list(self.offsets)}

    def plot(self, axes: Any = None) -> Any:
        """Draw the density of the noise with the answers on it, and return the axes."""
        from dpselect.multiselect.picture import draw_answers

        epsilon = self.epsilon
        return draw_answers(self, axes, density=lambda x: epsilon / 2 * np.exp(-epsilon * np.abs(x)), reach=3 / epsilon)

    def _repr_html_(self) -> str:
        from dpselect._show import table_html

        rows = [[str(number), f"{offset:.4g}"] for number, offset in enumerate(self.offsets, start=1)]
        note = f"expected cost {self.cost:.4g}, with a single answer {self.single:.4g}"
        return table_html(f"{self.k} answers at epsilon = {self.epsilon:g}", ["answer", "offset"], rows, note=note)


def best_answers(k: int, epsilon: float, disutility: object = "linear") -> Answers:
    """Return the k best answers to a signal with Laplace noise of scale 1/ε, with their costs.

    Parameters
    ----------
    k, epsilon, disutility
        As in `optimal_offsets`.

    Returns
    -------
    Answers

    Raises
    ------
    InvalidInput
        As in `optimal_offsets`.

    Examples
    --------
    >>> from dpselect.multiselect import best_answers
    >>> best = best_answers(3, epsilon=1.0)
    >>> best.cost, best.single
    (0.5, 1.0)
    """
    wanted = as_disutility(disutility)
    offsets = tuple(optimal_offsets(k, epsilon, wanted).tolist())
    cost, single = expected_cost(k, epsilon, wanted), expected_cost(1, epsilon, wanted)
    return Answers(k, epsilon, wanted.name, offsets, cost, single)


def checked_answers(k: object, disutility: Disutility | None = None) -> int:
    """Return the number of answers if it is within the limit, which is lower where gaps are searched."""
    number = positive_integer("k", k)
    most = MOST_ANSWERS if disutility is None or disutility.is_distance else MOST_SEARCHED
    if number > most:
        raise InvalidInput("k", k, f"must be at most {most:,}; more answers would take too long to compute")
    return number


def checked_offsets(answers: npt.ArrayLike) -> FloatArray:
    """Return given offsets in ascending order."""
    try:
        offsets = np.sort(np.asarray(answers, dtype=np.float64))
    except (TypeError, ValueError):
        offsets = np.array([])
    if offsets.ndim != 1 or not offsets.size or not np.isfinite(offsets).all():
        raise InvalidInput("answers", plain("something else"), "must be k, or a list of at least one finite offset")
    return offsets


def half_gaps(count: int, epsilon: float, disutility: Disutility) -> tuple[FloatArray, FloatArray]:
    """Return `D_1 … D_b` and `x_1 … x_b` for b = `count`, the x in units of 1/ε.

    D_b is the least cost on one side of an answer that is followed by b − 1 others; 2x_b is the gap to the next answer
    if b follow. With `H(u) = h(u/ε)`:

        `D_1 = ∫_0^∞ e^{−t} dH(t)`,  `∫_0^{x_b} e^t dH(t) = D_b`,  `D_{b+1} = ∫_0^{x_b} e^{−t} dH(t)`.

    For h(t) = t: `D_b = 1/(εb)`, `x_b = ln(1 + 1/b)`. Source: multi-selection, appendix B, solved in multiselect.md.
    D_{b+1} is computed as the cost of that gap, on which an error of x_b, or a jump of h there, has hardly any effect.
    """
    if disutility.is_distance:
        numbers = np.arange(1, count + 1, dtype=np.float64)
        return 1 / (numbers * epsilon), np.log1p(1 / numbers)
    moments = Moments(disutility, epsilon)
    costs, halves = [moments.ahead(0.0, math.inf)], [math.inf]
    for _ in range(count):
        x = _half_gap(moments, costs[-1], halves[-1])
        halves.append(x)
        costs.append(moments.ahead(0.0, x) + math.exp(-x) * _cost_from_middle(moments, x, costs[-1]))
    return np.array(costs[:count]), np.array(halves[1:])


def _cost_from_middle(moments: Moments, x: float, beyond: float) -> float:
    """Return `∫_0^x H(x − t) e^{−t} dt + e^{−x} D`: the cost from the middle of a gap on, D being that beyond it."""
    return moments.behind(x) + math.exp(-x) * beyond


def _half_gap(moments: Moments, cost: float, highest: float) -> float:
    """Solve `∫_0^x e^t dH(t) = e^x (H(x) − behind(x)) = cost` for x; the left-hand side increases."""
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


def _right_cost(offsets: FloatArray, moments: Moments) -> float:
    """Return `∫_0^∞ min_i H(|x − a_i|) e^{−x} dx` for ascending offsets, by cells, each split at its answer."""
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
