"""Probabilities of exact, great and good answers as curves over ε (canonical, sections 7 and A.2)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise, product
from typing import Any

import numpy as np

import dpselect as dps
from dpselect._arrays import Array
from dpselect.forecast import forecast, smallest_epsilon

NEARLY_CERTAIN = 0.998
"""The share of its limit up to which the curve of P[exact] is computed."""

_HOPELESS = 0.005
_SMALLEST_SHARE = 1e-4
"""A curve starts where all probabilities are below the first, or at this multiple of its largest ε."""

KINDS = {"top": "exact", "great": "great", "good": "good"}
"""Kinds of answers, and the figure of a forecast that is the probability of each."""

SubsetMechanism = dps.Canonical | dps.OneShot
OURS = "Canonical with its margin"
MECHANISMS: dict[str, Callable[[int], SubsetMechanism]] = {
    OURS: lambda k: dps.Canonical(k=k, epsilon=1.0),
    "Canonical γ=½": lambda k: dps.Canonical(k=k, epsilon=1.0, noise="gumbel", margin=False),
    "Canonical γ=1": lambda k: dps.Canonical(k=k, epsilon=1.0, gamma=1.0, noise="gumbel", margin=False),
    "One-shot": lambda k: dps.OneShot(k=k, epsilon=1.0),
    # The set that peeling with Gumbel noise returns has the law of one-shot Gumbel noise.
    "Peeling": lambda k: dps.OneShot(k=k, epsilon=1.0, noise="gumbel"),
}
"""Our default, and the four mechanisms that the paper compares, as published. Each point of a curve sets its own ε."""

PUBLISHED = ("Canonical γ=½", "Canonical γ=1")
Probabilities = dict[str, float]


@dataclass(frozen=True)
class SubsetAnswers:
    """The exact probabilities of a mechanism's answers for any ε; counts are highest first."""

    mechanism: SubsetMechanism
    counts: Array

    @cached_property
    def _scores(self) -> dps.Scores:
        return dps.Scores.of(self.counts)

    def at(self, epsilon: float, kinds: Iterable[str] = KINDS) -> Probabilities:
        """Return P[top], P[great] and P[good], or some of them."""
        outlook = forecast(self._scores, replace(self.mechanism, epsilon=epsilon), draws=0)
        return {kind: getattr(outlook, KINDS[kind]).value for kind in kinds}

    def epsilon_for(self, probability: float) -> float | None:
        """Return the smallest ε at which P[top] is as wanted, None if there is none."""
        found = smallest_epsilon(self._scores, self.mechanism, probability)
        return found if math.isfinite(found) else None

    def limit(self) -> float:
        """Return the limit of P[top] for large ε.

        It is below 1 for γ = 1 if ranks k and k + 1 are tied: tied items can stand in for better ones.
        """
        return self.at(1e6 * self.mechanism.k, ["top"])["top"]


def curve(
    mechanism: SubsetMechanism, counts: Array, wanted: Sequence[float], jump: float, kinds: Sequence[str] = tuple(KINDS)
) -> Iterator[dict[str, Any]]:
    """Yield the ε at which each kind has each wanted probability, then the curve from near 0 to near its limit."""
    answers = SubsetAnswers(mechanism, counts)
    largest = answers.epsilon_for(NEARLY_CERTAIN * answers.limit())
    assert largest is not None
    points = adaptively(lambda epsilon: answers.at(epsilon, kinds), largest, jump)
    for kind, probability in product(kinds, wanted):
        found = answers.epsilon_for(probability) if kind == "top" else reached(answers, points, kind, probability)
        yield {"kind": kind, "wanted": probability, "needed_epsilon": found}
    for epsilon, probabilities in points:
        yield {"epsilon": epsilon, **probabilities}


def reached(
    answers: SubsetAnswers, points: Sequence[tuple[float, Probabilities]], kind: str, wanted: float
) -> float | None:
    """Return the ε from which on a probability is as wanted, to five digits; None if its curve ends below that.

    The search starts at the last point of the curve that is too low.
    """
    from scipy.optimize import brentq

    known = dict(points)
    missed = [epsilon for epsilon, probabilities in points if probabilities[kind] < wanted]
    if not missed:
        return points[0][0]
    if missed[-1] == points[-1][0]:
        return None

    def excess(epsilon: float) -> float:
        # Log-odds are nearly linear in ε, so the search needs few steps.
        probabilities = known.get(epsilon) or answers.at(epsilon, [kind])
        return _log_odds(probabilities[kind]) - _log_odds(wanted)

    low, high = missed[-1], min(epsilon for epsilon in known if epsilon > missed[-1])
    return float(brentq(excess, low, high, xtol=1e-5 * low))


def _log_odds(probability: float) -> float:
    """Return `log(p / (1 − p))`, finite even if p is rounded to 0 or 1."""
    kept = min(max(probability, 1e-15), 1 - 1e-15)
    return math.log(kept / (1 - kept))


def adaptively(
    probabilities: Callable[[float], Probabilities], largest: float, jump: float
) -> list[tuple[float, Probabilities]]:
    """Return probabilities at increasing ε, so close that none grows by more than `jump` between neighbours."""
    known = {largest: probabilities(largest)}
    smallest = largest
    while max(known[smallest].values()) > _HOPELESS and smallest > largest * _SMALLEST_SHARE:
        smallest *= 1 - jump
        known[smallest] = probabilities(smallest)
    waiting = list(pairwise(sorted(known)))
    while waiting:
        low, high = waiting.pop()
        grows = max(known[high][name] - known[low][name] for name in known[high])
        if grows > jump and high > 1.01 * low:
            middle = float(np.sqrt(low * high))
            known[middle] = probabilities(middle)
            waiting += [(low, middle), (middle, high)]
    return sorted(known.items())
