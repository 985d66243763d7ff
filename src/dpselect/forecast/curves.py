"""P[exact top-k] as a function of ε for each mechanism, and the ε at which it is what one wants."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from dpselect._arrays import FloatArray
from dpselect._numbers import exact_fraction as exact
from dpselect._numbers import finite_number, positive_number
from dpselect.errors import InvalidInput
from dpselect.forecast import in_order
from dpselect.forecast.chances import least_epsilon
from dpselect.forecast.noisy import WIDEST_GAP, NoisyGroups
from dpselect.forecast.peeling_rounds import peeling_chance
from dpselect.forecast.sequences import Sequences
from dpselect.forecast.subsets import Subsets
from dpselect.mechanisms import Canonical, Gaussian, Joint, Mechanism, OneShot, Peeling
from dpselect.sampling import NOISES
from dpselect.sampling.bounds import scaled
from dpselect.sampling.laws import Distribution
from dpselect.sampling.noise import NORMAL
from dpselect.scores import Ranking, Scores

_ANY = 1e-9
"""If this ε is enough, any is."""

_HIGHEST = 1 - 1e-12
"""The highest accuracy to ask for: chances are off by some 1e-14."""


@dataclass(frozen=True, repr=False)
class Success:
    """P[exact top-k] against ε: `chances` of several ε at once, and the `limit` for ε without bound.

    A set is exact when its scores are those of the top k, a sequence when the score at every rank is.
    """

    mechanism: Mechanism
    chances: Callable[[Sequence[float]], list[float]]
    limit: float
    start: float

    def chance(self, epsilon: float) -> float:
        """Return the probability at one ε."""
        return self.chances([positive_number("epsilon", epsilon)])[0]

    def smallest_epsilon(self, accuracy: float) -> float:
        """Return the least ε with P[exact] >= accuracy: 0 if any will do, ∞ if none will."""
        wanted = wanted_accuracy(accuracy)
        if self.chance(_ANY * self.start) >= wanted:
            return 0.0
        return math.inf if self.limit <= wanted else least_epsilon(self.chance, wanted, self.start)


def success(scores: Any, mechanism: Mechanism, *, smallest: float | None = None) -> Success:
    """Return the exact curve of a mechanism, whose own ε plays no part; not private.

    `smallest` promises that no smaller ε will be asked for, which saves work.
    """
    table = Scores.of(scores)
    mechanism.check_size(table.size)
    start = mechanism.sensitivity.spread / _typical_gap(mechanism, table)
    if isinstance(mechanism, Canonical):
        subsets = Subsets.of(mechanism, table, smallest or 0.0)
        return Success(mechanism, lambda many: subsets.chances(list(many), mechanism.noise), subsets.limit, start)
    if isinstance(mechanism, Joint):
        levels = Sequences.of(mechanism.k, mechanism.sensitivity.spread, table, smallest or 0.0)
        return Success(mechanism, lambda many: [levels.chance(e, mechanism.noise) for e in many], 1.0, start)
    if isinstance(mechanism, OneShot | Peeling | Gaussian):
        return Success(
            mechanism, lambda many: [exact_chance(table, replace(mechanism, epsilon=e)) for e in many], 1.0, start
        )
    raise InvalidInput(
        "mechanism",
        mechanism.name,
        "canonical, joint, oneshot, peeling or gaussian is needed: others have no exact curve",
    )


def has_curve(mechanism: Mechanism) -> bool:
    """Return whether P[exact top-k] is known exactly at every ε."""
    return isinstance(mechanism, Canonical | Joint | OneShot | Peeling | Gaussian)


def exact_chance(table: Scores, mechanism: OneShot | Peeling | Gaussian) -> float:
    """P[exact top-k] at the mechanism's ε."""
    if isinstance(mechanism, Peeling):
        return peeling_chance(mechanism.k, float(mechanism.rate()), table, mechanism.noise)
    if isinstance(mechanism, Gaussian):
        chance = in_order.chance_in_order(noisy_groups(table, mechanism.k, 1 / exact(mechanism.sigma), NORMAL))
        if chance is None:
            raise InvalidInput(
                "k", mechanism.k, "less is needed: a list of so many close scores has no exact curve here"
            )
        return chance
    noisy = noisy_groups(table, mechanism.k, mechanism.rate(table.size), NOISES[mechanism.noise])
    return noisy.within(mechanism.k, mechanism.k)


def noisy_groups(table: Scores, k: int, rate: Fraction, noise: Distribution) -> NoisyGroups:
    """Return the groups of tied items at their locations, a gap behind rank k cut to where it makes no difference."""
    ranking = Ranking.of(table.distinct)
    locations = scaled(table.values - ranking.scores(np.array([k - 1])), rate)
    sizes: FloatArray = table.multiplicities.astype(np.float64)
    if k < table.size:
        first = int(ranking.groups(k))
        if locations[first] < -WIDEST_GAP:
            locations[first:] = locations[first:] - locations[first] - WIDEST_GAP
    return NoisyGroups(locations, sizes, k, noise)


def smallest_epsilon(scores: Any, mechanism: Mechanism, accuracy: float) -> float:
    """Return the least ε at which a mechanism's P[exact top-k] reaches `accuracy`; not private.

    0 if any ε will do, ∞ if none will. The mechanism's own ε plays no part.

    >>> import dpselect as dps
    >>> counts = [900, 850, 800] + [700] * 97
    >>> f"{dps.forecast.smallest_epsilon(counts, dps.Canonical(k=3, epsilon=1.0), 0.99):.4f}"
    '0.1089'
    """
    table, wanted = Scores.of(scores), wanted_accuracy(accuracy)
    if isinstance(mechanism, OneShot | Peeling) and mechanism.delta and mechanism.noise != "laplace":
        pure = smallest_epsilon(table, replace(mechanism, delta=0.0), wanted)
        return _with_delta(mechanism, pure)
    limit = gap_limit(table, mechanism, wanted)
    if not limit:
        return success(table, mechanism).smallest_epsilon(wanted)
    curve = success(table, mechanism, smallest=limit * (1 - 1e-9))
    return math.inf if curve.limit <= wanted else least_epsilon(curve.chance, wanted, limit)


def _with_delta(mechanism: OneShot | Peeling, pure: float) -> float:
    """Return the ε of k rounds with δ that cost `pure` in all without it: each has range `pure`/k, or twice that."""
    from dpselect.privacy.composition import least_epsilon as epsilon_of_rounds

    if not 0 < pure < math.inf:
        return pure
    width = pure / mechanism.k * (1 if mechanism.noise == "gumbel" else 2)
    epsilon = float(epsilon_of_rounds(((width, mechanism.k),), Fraction(mechanism.delta)))
    # Where δ alone covers the rounds, what is left of ε is no more than rounding.
    return 0.0 if epsilon < _ANY * pure else min(pure, epsilon)


def gap_limit(scores: Any, mechanism: Mechanism, accuracy: float) -> float:
    """Return `(w/g) ln(1 / (2 (1 − p)))`, which no pure mechanism that answers ties evenly can undercut.

    g is the gap behind rank k, of a sequence the least gap between neighbouring ranks up to k + 1; 0 without any gap.
    Mathematics, section 3.
    """
    table, wanted = Scores.of(scores), wanted_accuracy(accuracy)
    gap = _deciding_gap(mechanism, table)
    return max(mechanism.sensitivity.spread / gap * -math.log(2 * (1 - wanted)), 0.0) if gap else 0.0


def swap_limit(scores: Any, mechanism: Mechanism, accuracy: float) -> float:
    """Return the ε at which `½ Σ_{a<=k<b} e^{−ε (x_[a] − x_[b])/w} = 1 − p`: a yardstick for sets, not a theorem."""
    table, wanted = Scores.of(scores), wanted_accuracy(accuracy)
    k, ranking = mechanism.k, Ranking.of(table.distinct)
    gap = _deciding_gap(mechanism, table)
    if mechanism.ordered or not gap:
        return 0.0
    unit = 1 / Fraction(mechanism.sensitivity.spread)
    border, first = ranking.scores(np.array([k - 1])), int(ranking.groups(k))
    inside = scaled(ranking.scores(np.arange(k)) - border, unit)
    outside = scaled(table.values[first] - table.values[first:], unit)
    sizes = table.multiplicities[first:].astype(np.float64)

    def chance(epsilon: float) -> float:
        swaps = np.exp(-epsilon * inside).sum() * (sizes @ np.exp(-epsilon * outside))
        return float(1 - 0.5 * swaps * np.exp(-epsilon * gap * float(unit)))

    return least_epsilon(chance, wanted, max(gap_limit(table, mechanism, accuracy), _ANY * float(1 / unit) / gap))


def wanted_accuracy(accuracy: Any) -> float:
    """Return the accuracy if it is a probability that noise can reach."""
    wanted = float(finite_number("accuracy", accuracy))
    if not 0 < wanted < 1:
        raise InvalidInput(
            "accuracy",
            accuracy,
            "a probability strictly between 0 and 1 is needed, such as 0.99; 1 would take an epsilon without bound",
        )
    if wanted > _HIGHEST:
        raise InvalidInput("accuracy", accuracy, f"at most {_HIGHEST} is needed: beyond that it cannot be told from 1")
    return wanted


def _deciding_gap(mechanism: Mechanism, table: Scores) -> float:
    """Return the gap that has to be told, 0 if there is none."""
    k, ranking = mechanism.k, Ranking.of(table.distinct)
    first = 0 if mechanism.ordered else k - 1
    ranks = np.arange(first, min(k + 1, table.size))
    if len(ranks) < 2:
        return 0.0
    scores = ranking.scores(ranks)
    gaps = scaled(scores[:-1] - scores[1:], Fraction(1))
    return float(gaps[gaps > 0].min(initial=math.inf)) if (gaps > 0).any() else 0.0


def _typical_gap(mechanism: Mechanism, table: Scores) -> float:
    """Return a gap to begin a search with: the deciding one, or any, or 1."""
    spread = float(scaled(table.values[:1] - table.values[-1:], Fraction(1))[0])
    return _deciding_gap(mechanism, table) or spread or 1.0
