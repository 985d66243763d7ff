"""P[exact top k] as a function of ε for each mechanism, and the ε at which it reaches a wanted accuracy."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np

from dpselect._numbers import finite_number, positive_number
from dpselect.errors import InvalidInput
from dpselect.forecast.classes import Subsets
from dpselect.forecast.levels import JointLevels
from dpselect.forecast.noisy import added_noise, noisy_items
from dpselect.forecast.rounds import noisy_in_order, peeling_in_order
from dpselect.mechanisms import Canonical, Joint, Mechanism, NoisyVector, OneShot, Peeling
from dpselect.sampling.bounds import scaled
from dpselect.scores import Ranking, Scores

_ANY = 1e-9
"""If the accuracy is reached at this fraction of `Success.start`, the ε needed counts as 0."""

_HIGHEST = 1 - 1e-12
"""The highest accuracy that can be asked for."""

_TOLERANCE = 1e-9
"""Relative error of the probabilities on a curve."""

_LARGEST_LOG = math.log(sys.float_info.max)
"""Logarithm of the largest ε that is searched."""

Pair = tuple[float, float]
"""The probability of an exact answer, and its complement."""


@dataclass(frozen=True, repr=False)
class Success:
    """P[exact top k] against ε, for one mechanism and given scores; not private.

    A set is exact when its scores are those of the top k, a sequence when the score at every rank is, unless it is
    judged as a set.

    Attributes
    ----------
    mechanism : Mechanism
        The mechanism; its own ε is ignored.
    probabilities : Callable[[float], tuple[float, float]]
        P[exact] and 1 − P[exact] at one ε, each with full relative precision.
    limit : float
        P[exact] for ε without bound.
    start : float
        The order of magnitude of ε at which the curve rises; searches start there.

    Examples
    --------
    >>> import dpselect as dps
    >>> curve = dps.forecast.success([5, 3, 1], dps.OneShot(k=1, epsilon=1.0, noise="gumbel"))
    >>> f"{curve.chance(1.0):.4f}"
    '0.8668'
    """

    mechanism: Mechanism
    probabilities: Callable[[float], Pair]
    limit: float
    start: float

    def chances(self, epsilons: Sequence[float]) -> list[float]:
        """Return P[exact] at several ε."""
        # In ascending order, so that the classes listed for the smallest ε serve all others.
        found = {epsilon: self.chance(epsilon) for epsilon in sorted(epsilons)}
        return [found[epsilon] for epsilon in epsilons]

    def chance(self, epsilon: float) -> float:
        """Return P[exact] at one ε."""
        return self.probabilities(positive_number("epsilon", epsilon))[0]

    def smallest_epsilon(self, accuracy: float) -> float:
        """Return the least ε with P[exact] >= accuracy: 0 if every ε is enough, ∞ if none is."""
        wanted = wanted_accuracy(accuracy)
        if self.limit <= wanted:
            return math.inf
        if self.chance(_ANY * self.start) >= wanted:
            return 0.0
        return solve_epsilon(self.probabilities, wanted, self.start)


def success(
    scores: Any, mechanism: Mechanism, *, smallest: float | None = None, ordered: bool | None = None
) -> Success:
    """Return the exact curve of P[exact top k] against ε; not private.

    Parameters
    ----------
    scores
        The scores, as for `dpselect.select`.
    mechanism : Mechanism
        Canonical, Joint, OneShot, Peeling, Laplace or Gaussian; its own ε is ignored.
    smallest : float, optional
        The smallest ε that will be asked for, if known, so that classes are listed only once.
    ordered : bool, optional
        Whether the order has to be right; by default, whether the answer has one. False judges a sequence as a set,
        for OneShot, Laplace, Gaussian and Peeling with gumbel noise.

    Returns
    -------
    Success
        The curve.

    Raises
    ------
    InvalidInput
        If the mechanism has no exact curve.

    Examples
    --------
    >>> import dpselect as dps
    >>> curve = dps.forecast.success([9, 5, 2, 1], dps.Canonical(k=2, epsilon=1.0))
    >>> [f"{chance:.3f}" for chance in curve.chances([0.5, 2.0])]
    ['0.739', '0.998']
    """
    table = Scores.of(scores)
    mechanism.check_size(table.size)
    in_order = judged_in_order(mechanism, ordered)
    start = mechanism.sensitivity.spread / _typical_gap(mechanism, table, in_order)
    if isinstance(mechanism, Canonical):
        limit = Subsets.of(mechanism, table, start, larger=True).limit
        return Success(mechanism, _shared(Subsets, table, mechanism, smallest), limit, start)
    if isinstance(mechanism, Joint) and in_order:
        return Success(mechanism, _shared(JointLevels, table, mechanism, smallest), 1.0, start)
    if has_curve(mechanism, in_order):
        template: Any = mechanism

        def probabilities(epsilon: float) -> Pair:
            pair = exact_probability(table, replace(template, epsilon=epsilon), _TOLERANCE, in_order)
            if pair is None:
                raise InvalidInput(
                    "k", mechanism.k, "must be smaller; with this many distinct scores a list has no exact curve"
                )
            return pair

        return Success(mechanism, probabilities, 1.0, start)
    raise InvalidInput(
        "mechanism",
        mechanism.name,
        "must be canonical, joint, oneshot, peeling, laplace or gaussian to have an exact curve; as a set, joint and "
        "peeling without gumbel noise have none",
    )


def judged_in_order(mechanism: Mechanism, ordered: bool | None) -> bool:
    """Return whether the order has to be right: as stated, or if the answer has one."""
    if ordered and not mechanism.ordered:
        raise InvalidInput("ordered", ordered, f"must be False for {mechanism.name}, whose answer has no order")
    return mechanism.ordered if ordered is None else ordered


def _shared(kind: Any, table: Scores, mechanism: Any, smallest: float | None) -> Callable[[float], Pair]:
    """Return a function from ε to P[exact] and its complement; classes are cached, and relisted for a smaller ε."""
    kept: list[Any] = [math.inf, None]

    def probabilities(epsilon: float) -> Pair:
        if epsilon < kept[0]:
            kept[0] = epsilon if smallest is None else min(epsilon, smallest)
            kept[1] = kind.of(mechanism, table, kept[0], larger=True)
        pair: Pair = kept[1].exact(epsilon, mechanism.noise)
        return pair

    return probabilities


def has_curve(mechanism: Mechanism, in_order: bool) -> bool:
    """Return whether P[exact top k] is known exactly at every ε."""
    if isinstance(mechanism, Canonical) and mechanism.rounded:
        return False
    if mechanism.ordered and not in_order:
        return added_noise(mechanism, mechanism.k) is not None
    return isinstance(mechanism, Canonical | Joint | OneShot | Peeling | NoisyVector)


def exact_probability(table: Scores, mechanism: Mechanism, tolerance: float, in_order: bool) -> Pair | None:
    """Return P[exact top k] and its complement for mechanisms without classes; None where it has no exact form."""
    if in_order and isinstance(mechanism, Peeling):
        return peeling_in_order(table, mechanism)
    items = noisy_items(table, mechanism)
    if items is None:
        return None
    return noisy_in_order(table, mechanism) if in_order else items.exact(tolerance)


def solve_epsilon(probabilities: Callable[[float], Pair], wanted: float, near: float) -> float:
    """Return the ε at which a probability that grows with ε reaches the one wanted, searching from `near` on.

    Above 1/2 complements are compared, in logarithms, so that accuracies close to 1 are distinguished. Returns 0 if the
    probability is larger even at ε = e^-25 · `near`.
    """

    @cache
    def excess(log_epsilon: float) -> float:
        right, wrong = probabilities(math.exp(log_epsilon))
        if wanted > 0.5:
            return math.log(1 - wanted) - math.log(max(wrong, 1e-300))
        return math.log(max(right, 1e-300)) - math.log(wanted)

    low = high = math.log(near)
    furthest = min(high + 60.0, _LARGEST_LOG)
    step = 0.5
    while excess(high) < 0:
        if high >= furthest:
            raise InvalidInput("accuracy", wanted, "must be smaller; this close to 1 it cannot be distinguished from 1")
        low, high, step = high, min(high + step, furthest), 2 * step
    while excess(low) > 0:
        if low < math.log(near) - 25.0:
            return 0.0
        low, high, step = low - step, low, 2 * step
    return math.exp(_root(excess, low, high)) if low < high else near


def _root(function: Callable[[float], float], low: float, high: float) -> float:
    """Return where a function changes sign, to 1e-10, by Chandrupatla's method (1997).

    It interpolates inversely through the last three points where that is safe, and bisects elsewhere. Importing SciPy's
    root finders would take longer than most searches.
    """
    new, old = low, high
    at_new, at_old = function(new), function(old)
    share = 0.5
    while at_new and abs(new - old) > 1e-10:
        point = new + share * (old - new)
        value = function(point)
        if (value < 0) == (at_new < 0):
            last, at_last = new, at_new
        else:
            last, at_last, old, at_old = old, at_old, new, at_new
        new, at_new = point, value
        place, height = (new - old) / (last - old), (at_new - at_old) / (at_last - at_old)
        share = 0.5
        if height**2 < place and (1 - height) ** 2 < 1 - place:
            share = at_new / (at_old - at_new) * at_last / (at_old - at_last)
            share += (last - new) / (old - new) * at_new / (at_last - at_new) * at_old / (at_last - at_old)
        least = min(0.5e-10 / abs(old - new), 0.5)
        share = min(max(share, least), 1 - least)
    return new


def smallest_epsilon(scores: Any, mechanism: Mechanism, accuracy: float, *, ordered: bool | None = None) -> float:
    """Return the least ε at which a mechanism's P[exact top k] reaches an accuracy; not private.

    Parameters
    ----------
    scores
        The scores, as for `dpselect.select`.
    mechanism : Mechanism
        The mechanism; its own ε is ignored.
    accuracy : float
        The wanted probability of an exact answer, strictly between 0 and 1.
    ordered : bool, optional
        As in `success`.

    Returns
    -------
    float
        The least ε, to six digits or more: 0 if every ε is enough, ∞ if none is.

    Raises
    ------
    InvalidInput
        If the accuracy is out of range or the mechanism has no exact curve.

    Examples
    --------
    >>> import dpselect as dps
    >>> counts = [900, 850, 800] + [700] * 97
    >>> f"{dps.forecast.smallest_epsilon(counts, dps.Canonical(k=3, epsilon=1.0), 0.99):.4f}"
    '0.1089'
    """
    table, wanted = Scores.of(scores), wanted_accuracy(accuracy)
    by_theorem = isinstance(mechanism, OneShot) and mechanism.noise == "laplace"
    if isinstance(mechanism, OneShot | Peeling) and mechanism.delta and not by_theorem:
        pure = smallest_epsilon(table, replace(mechanism, delta=0.0), wanted, ordered=ordered)
        return _with_delta(mechanism, pure)
    curve, gap = success(table, mechanism, ordered=ordered), deciding_gap(mechanism, table)
    if wanted <= 0.5 or not gap or isinstance(mechanism, NoisyVector):
        return curve.smallest_epsilon(wanted)
    # The search starts at about the gap bound.
    near = mechanism.sensitivity.spread / gap * -math.log(2 * (1 - wanted))
    return math.inf if curve.limit <= wanted else solve_epsilon(curve.probabilities, wanted, near)


def _with_delta(mechanism: OneShot | Peeling, pure: float) -> float:
    """Return the ε, with δ, of k rounds that cost `pure` together without δ: each has range `pure`/k, or twice that."""
    from dpselect.privacy.composition import epsilon_of_rounds

    if not 0 < pure < math.inf:
        return pure
    width = pure / mechanism.k * (1 if mechanism.noise == "gumbel" else 2)
    epsilon = float(epsilon_of_rounds(((width, mechanism.k),), Fraction(mechanism.delta)))
    # If δ alone covers the rounds, the remaining ε is only a rounding error.
    return 0.0 if epsilon < _ANY * pure else min(pure, epsilon)


def wanted_accuracy(accuracy: Any, argument: str = "accuracy") -> float:
    """Return the accuracy if it is a probability that noise can reach."""
    wanted = float(finite_number(argument, accuracy))
    if not 0 < wanted < 1:
        raise InvalidInput(
            argument,
            accuracy,
            "must be a probability strictly between 0 and 1, such as 0.99; no finite epsilon reaches 1",
        )
    if wanted > _HIGHEST:
        raise InvalidInput(argument, accuracy, f"must be at most {_HIGHEST}; beyond that it cannot be told from 1")
    return wanted


def deciding_gap(mechanism: Mechanism, table: Scores, in_order: bool | None = None) -> float:
    """Return the smallest gap between scores that an exact answer has to tell apart, 0 if there is none."""
    k, ranking = mechanism.k, Ranking.of(table.distinct)
    first = 0 if judged_in_order(mechanism, in_order) else k - 1
    ranks = np.arange(first, min(k + 1, table.size))
    if len(ranks) < 2:
        return 0.0
    scores = ranking.scores(ranks)
    gaps = scaled(scores[:-1] - scores[1:], Fraction(1))
    return float(gaps[gaps > 0].min(initial=math.inf)) if (gaps > 0).any() else 0.0


def _typical_gap(mechanism: Mechanism, table: Scores, in_order: bool) -> float:
    """Return a gap to begin a search with: the deciding one, or any, or 1."""
    spread = float(scaled(table.values[:1] - table.values[-1:], Fraction(1))[0])
    return deciding_gap(mechanism, table, in_order) or spread or 1.0
