"""How likely top, great and good subsets are, as curves over ε (canonical, sections 7 and A.2)."""

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
from dpselect.forecast import Success, forecast, success

WANTED = 0.99
NEARLY_CERTAIN = 0.998
_HOPELESS = 0.005
_WIDEST = 1e-4

KINDS = ("top", "great", "good")
"""Kinds of answers whose probabilities are computed."""

Chooser = dps.Canonical | dps.OneShot
OURS = "Canonical with its margin"
MECHANISMS: dict[str, Callable[[int], Chooser]] = {
    OURS: lambda k: dps.Canonical(k=k, epsilon=1.0),
    "Canonical γ=½": lambda k: dps.Canonical(k=k, epsilon=1.0, noise="gumbel", margin=False),
    "Canonical γ=1": lambda k: dps.Canonical(k=k, epsilon=1.0, gamma=1.0, noise="gumbel", margin=False),
    "One-shot": lambda k: dps.OneShot(k=k, epsilon=1.0),
    # The set that peeling with Gumbel noise returns has the law of one shot of it.
    "Peeling": lambda k: dps.OneShot(k=k, epsilon=1.0, noise="gumbel"),
}
"""Our default, and the four that the paper compares, as published. Their ε is that of each point of a curve."""

PUBLISHED = ("Canonical γ=½", "Canonical γ=1")
Chances = dict[str, float]


@dataclass(frozen=True)
class Answers:
    """The exact probabilities of a mechanism's answers at any ε; counts are highest first."""

    mechanism: Chooser
    counts: Array
    smallest: float

    @cached_property
    def curve(self) -> Success:
        """P[top] against ε."""
        return success(self.counts, self.mechanism, smallest=self.smallest)

    def chances(self, epsilon: float, kinds: Iterable[str] = KINDS) -> Chances:
        """P[top], P[great] and P[good], or some of them."""
        outlook = forecast(self.counts, replace(self.mechanism, epsilon=epsilon), draws=0)
        figures = {"top": lambda: outlook.exact, "great": lambda: outlook.great, "good": lambda: outlook.good}
        found = {kind: figures[kind]() for kind in kinds}
        return {kind: figure.value for kind, figure in found.items() if figure is not None}


def swap_scale(counts: Array, k: int) -> float:
    """Return the ε at which `½ Σ e^{−ε (x_[a] − x_[b])} = 0.01` over all swaps a <= k < b of unequal scores.

    It says about which ε matters before anything is computed (mathematics, section 3).
    """
    inside = (counts[:k] - counts[k - 1]).astype(np.float64)
    outside = (counts[k - 1] - counts[k:]).astype(np.float64)
    tied = float((inside == 0).sum() * (outside == 0).sum())

    def failing(epsilon: float) -> float:
        return 0.5 * float(np.exp(-epsilon * inside).sum() * np.exp(-epsilon * outside).sum() - tied)

    low, high = 1e-12, 1e12
    for _ in range(100):
        middle = float(np.sqrt(low * high))
        low, high = (middle, high) if failing(middle) > 1 - WANTED else (low, middle)
    return high


def curve(
    mechanism: Chooser, counts: Array, wanted: Sequence[float], jump: float, kinds: Sequence[str] = tuple(KINDS)
) -> Iterator[dict[str, Any]]:
    """Yield the ε at which each kind is as likely as wanted, then all chances from hopeless to near their limits."""
    near = swap_scale(counts, mechanism.k) * (1 if isinstance(mechanism, dps.Canonical) else mechanism.k)
    answers = Answers(mechanism, counts, near / 1000)
    limit = answers.curve.limit
    highest = answers.curve.smallest_epsilon(NEARLY_CERTAIN * limit)
    points = adaptively(lambda epsilon: answers.chances(epsilon, kinds), highest, jump)
    for kind, share in product(kinds, wanted):
        if kind != "top":
            found = reached(answers, points, kind, share)
        else:
            # No ε is enough where the limit is lower.
            found = answers.curve.smallest_epsilon(share) if share < limit else None
        yield {"kind": kind, "wanted": share, "needed_epsilon": found}
    for epsilon, chances in points:
        yield {"epsilon": epsilon, **chances}


def reached(answers: Answers, points: Sequence[tuple[float, Chances]], kind: str, wanted: float) -> float | None:
    """Return the ε from which on a chance is as wanted, to five digits; None where its curve ends below that.

    It lies behind the last point of the curve that is too low.
    """
    from scipy.optimize import brentq

    known = dict(points)
    missed = [epsilon for epsilon, chances in points if chances[kind] < wanted]
    if not missed:
        return points[0][0]
    if missed[-1] == points[-1][0]:
        return None

    def excess(epsilon: float) -> float:
        # Log-odds are nearly straight lines, on which the search takes few steps.
        chances = known.get(epsilon) or answers.chances(epsilon, [kind])
        return _log_odds(chances[kind]) - _log_odds(wanted)

    low, high = missed[-1], min(epsilon for epsilon in known if epsilon > missed[-1])
    return float(brentq(excess, low, high, xtol=1e-5 * low))


def _log_odds(chance: float) -> float:
    """Return `log(p / (1 − p))`, finite even where p is rounded to 0 or 1."""
    kept = min(max(chance, 1e-15), 1 - 1e-15)
    return math.log(kept / (1 - kept))


def adaptively(chances: Callable[[float], Chances], highest: float, jump: float) -> list[tuple[float, Chances]]:
    """Return chances at growing ε, so close together that none grows by more than `jump` from one to the next."""
    known = {highest: chances(highest)}
    lowest = highest
    while max(known[lowest].values()) > _HOPELESS and lowest > highest * _WIDEST:
        lowest *= 1 - jump
        known[lowest] = chances(lowest)
    waiting = list(pairwise(sorted(known)))
    while waiting:
        low, high = waiting.pop()
        grows = max(known[high][name] - known[low][name] for name in known[high])
        if grows > jump and high > 1.01 * low:
            middle = float(np.sqrt(low * high))
            known[middle] = chances(middle)
            waiting += [(low, middle), (middle, high)]
    return sorted(known.items())
