"""The ε that no pure mechanism can do without, and the swap yardstick; proofs in docs/forecast.md.

Notation: P is the probability of an exact answer of an ε-DP mechanism that treats items alike. Make items tie, a person
at a time: on the tied data P is at most a *share*, that of the exact answers among all answers that are alike there.
Each person on the way back allows `p ← min(e^ε p, 1 − e^{−ε} (1 − p))`.

* *tie*, h < k < t: ranks h+1..t tie after `x_[h+1] − x_[t]` persons. The gap bound is that with h = k−1, t = k+1.
* *chain*, r >= 1, h <= k−r, t >= k+r: `x_[k−r+1] − x_[k+r]` persons make ranks k−r+1..k+r tie, where P is at most
  `1/C(2r, r)`, and `max(x_[h+1] − x_[k−r+1], x_[k+r] − x_[t])` more make ranks h+1..k tie, and ranks k+1..t.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from dpselect._arrays import Array, BoolArray, FloatArray
from dpselect._numbers import positive_integer
from dpselect.errors import InvalidInput
from dpselect.forecast.curves import Pair, deciding_gap, solve_epsilon, wanted_accuracy
from dpselect.mechanisms import Mechanism
from dpselect.privacy.sensitivity import COUNTS, Sensitivity
from dpselect.sampling.bounds import scaled
from dpselect.sampling.sequences import log_falling
from dpselect.scores import Ranking, Scores

_SLACK = 1e-9
"""Limits are reduced by this share, which is more than all rounding errors."""

_LEAST = 1e-300
"""The search for a limit starts at this ε."""

_TAILS = 512
"""At most about so many t are tried for each h or r, the nearer ones more densely; any choice gives a valid bound."""


def proven_limit(
    scores: Any,
    k: int,
    accuracy: float,
    *,
    ordered: bool = False,
    sensitivity: Sensitivity = COUNTS,
    max_items_per_person: int | None = None,
) -> float:
    """Return the largest ε at which a bound proves that no pure mechanism that treats items alike has the accuracy.

    Parameters
    ----------
    scores
        The scores, as for `dpselect.select`.
    k : int
        The number of items in the answer.
    accuracy : float
        The probability of an exact answer, strictly between 0 and 1.
    ordered : bool
        Whether the order has to be right too.
    sensitivity : Sensitivity
        How scores change when a person is added.
    max_items_per_person : int, optional
        How many items one person can touch: the fewer, the more persons it takes to make items tie.

    Returns
    -------
    float
        The ε, rounded down; 0 if no bound is known.

    Raises
    ------
    InvalidInput
        If an argument is out of range.

    Examples
    --------
    >>> import dpselect as dps
    >>> f"{dps.forecast.proven_limit([50] * 10 + [0] * 9990, 10, 0.99):.3f}"
    '1.598'
    """
    table, k = Scores.of(scores), positive_integer("k", k)
    if k > table.size:
        raise InvalidInput("k", k, f"must be at most {table.size} (the number of items)")
    groups = _Groups(
        k,
        scaled(table.values[:1] - table.values, 1 / Fraction(sensitivity.spread)),
        table.multiplicities.astype(np.float64),
    )
    log_failure, epsilon = math.log1p(-wanted_accuracy(accuracy)), _LEAST
    for bounds in groups.bounds(ordered, sensitivity, max_items_per_person):
        epsilon = bounds.largest_forbidden(log_failure, epsilon)
    return epsilon * (1 - _SLACK) if epsilon > _LEAST else 0.0


@dataclass(frozen=True, repr=False)
class _Groups:
    """Groups of tied items, highest first: by how many persons each is behind the first, and its size."""

    k: int
    behind: FloatArray
    sizes: FloatArray

    @cached_property
    def ends(self) -> FloatArray:
        """The last rank of each group."""
        return np.cumsum(self.sizes)

    @cached_property
    def starts(self) -> FloatArray:
        """The last rank before each group."""
        return np.append(0.0, self.ends[:-1])

    @cached_property
    def whole(self) -> bool:
        """Whether all differences are whole numbers of persons, without rounding errors."""
        return bool((self.behind == np.rint(self.behind)).all() and self.behind[-1] < 2**53)

    def group(self, rank: int) -> int:
        """Return the group of a rank, counted from 1."""
        return int(np.searchsorted(self.ends, rank))

    def persons(self, differences: Any) -> FloatArray:
        """Return differences rounded up to whole persons."""
        persons: FloatArray = np.ceil(differences if self.whole else differences + 1e-15 * self.behind[-1])
        return persons

    def bounds(self, ordered: bool, sensitivity: Sensitivity, max_items_per_person: int | None) -> Iterator[_Bounds]:
        """Yield all bounds that hold."""
        if max_items_per_person is None:
            yield from self._ties(ordered, math.inf)
            yield from self._chains()
        elif sensitivity == COUNTS and self.whole:
            yield from self._ties(ordered, positive_integer("max_items_per_person", max_items_per_person))

    def _ties(self, ordered: bool, most: float) -> Iterator[_Bounds]:
        """Yield the tie bounds for each h; h and t are borders of groups, inside of which they are weaker.

        If a person touches at most `most` items, n persons can move each score by its n_i if no n_i exceeds n and
        their sum is at most `most` n. Scores move all up to that of rank h+1, or all down to that of rank t.
        """
        if most < math.inf and self.ends[-1] * self.behind[-1] >= 2.0**53:
            return  # sums of moves would be rounded
        border = self.group(self.k)
        room = np.clip(self.k - self.starts, 0.0, self.sizes)
        exact = np.cumsum(log_falling(self.sizes, room))
        total = np.cumsum(self.sizes * self.behind)
        for first in range(min(border + 1, len(self.ends) - 1)):
            last = _spaced(first + 1 if ordered else max(first + 1, border), len(self.ends))
            tied = self.ends[last] - self.starts[first]
            picks = np.minimum(self.ends[last], self.k) - self.starts[first]
            if ordered:
                log_exact = exact[last] - (exact[first - 1] if first else 0.0)
                log_shares = log_exact - log_falling(tied, picks)
            else:
                log_shares = _log_choose(self.sizes[border], room[border]) - _log_choose(tied, picks)
            persons = self.persons(self.behind[last] - self.behind[first])
            moved = total[last] - (total[first - 1] if first else 0.0)
            moves = np.minimum(moved - tied * self.behind[first], tied * self.behind[last] - moved)
            yield _Bounds(log_shares, np.maximum(persons, np.ceil(moves / most)))

    def _chains(self) -> Iterator[_Bounds]:
        """Yield the chain bounds for each r, unless ranks k and k + 1 are tied.

        For every distance, h and t are the farthest ranks within it.
        """
        k, border = self.k, self.group(self.k)
        if self.ends[border] > k or k == self.ends[-1]:
            return
        for r in range(1, int(min(k, self.ends[-1] - k)) + 1):
            inner, outer = self.group(k - r + 1), self.group(k + r)
            above = self.persons(self.behind[inner] - self.behind[: inner + 1])
            last = _spaced(outer, len(self.ends))
            below = self.persons(self.behind[last] - self.behind[outer])
            distances = np.unique(np.concatenate([above, below]))
            heads = self.starts[np.searchsorted(-above, -distances)]
            tails = self.ends[last[np.searchsorted(below, distances, side="right") - 1]]
            log_shares = -_log_choose(k - heads, r) - _log_choose(tails - k, r)
            between = float(self.persons(self.behind[outer] - self.behind[inner]))
            yield _Bounds(log_shares, distances, -float(_log_choose(2 * r, r)), between)


@dataclass(frozen=True, repr=False)
class _Bounds:
    """Bounds on P: p is a share at first, changes `persons` times, is at most a cap there, and changes `more` times."""

    log_shares: FloatArray
    persons: FloatArray
    log_cap: float = 0.0
    more: float = 0.0

    def forbid(self, log_failure: float, epsilon: float) -> BoolArray:
        """Return which bounds exclude so small a probability of failure at an ε."""
        log_p, log_q = _changed(self.log_shares, self.persons, epsilon)
        if self.more:
            _, log_q = _changed(np.minimum(log_p, self.log_cap), self.more, epsilon)
        return log_q > log_failure

    def largest_forbidden(self, log_failure: float, epsilon: float) -> float:
        """Return the largest ε that a bound forbids, or the given one if that is larger.

        Bounds weaken as ε grows: one that allows the accuracy at some ε is left out from there on.
        """
        bounds = self
        while len(bounds.persons):
            bounds = bounds._part(bounds.forbid(log_failure, epsilon))
            if len(bounds.persons):
                # About the ε that each bound forbids: `e^{−ε n} = share · failure` for n persons.
                epsilons = -(bounds.log_shares + log_failure) / (bounds.persons + self.more)
                epsilon = bounds._part([epsilons.argmax()])._root(log_failure, epsilon)
        return epsilon

    def _part(self, places: Any) -> _Bounds:
        return replace(self, log_shares=self.log_shares[places], persons=self.persons[places])

    def _root(self, log_failure: float, low: float) -> float:
        """Return the largest ε, to 1e-12, that a single bound forbids, given one that it forbids; rounded up."""
        factor = 2.0
        while self.forbid(log_failure, low * factor)[0]:
            low, factor = low * factor, factor**2
        high = low * factor
        while high > low * (1 + 1e-12):
            middle = math.sqrt(low) * math.sqrt(high)
            low, high = (middle, high) if self.forbid(log_failure, middle)[0] else (low, middle)
        return high


def _changed(log_p: FloatArray, persons: FloatArray | float, epsilon: float) -> tuple[FloatArray, FloatArray]:
    """Return log p and log(1 − p) after `p ← min(e^ε p, 1 − e^{−ε} (1 − p))` for each person.

    The first term is the smaller one up to `p = 1/(e^ε + 1)`, the second one from there on.
    """
    with np.errstate(divide="ignore"):
        grown = np.clip(np.floor((-log_p - np.logaddexp(0.0, epsilon)) / epsilon) + 1, 0, persons)
        log_p = log_p + epsilon * grown
        log_q = np.log(-np.expm1(log_p)) - epsilon * (persons - grown)
        return np.where(grown < persons, np.log(-np.expm1(log_q)), log_p), log_q


def _spaced(first: int, end: int) -> Array:
    """Return whole numbers from `first` to `end` − 1, all of them if they are few."""
    count = end - first
    if count <= _TAILS:
        return np.arange(first, end)
    return first - 1 + np.unique(np.geomspace(1, count, _TAILS).astype(np.intp))


def _log_choose(number: Any, chosen: Any) -> FloatArray:
    """Return log C(n, r)."""
    return log_falling(number, chosen) - log_falling(chosen, chosen)


def gap_limit(scores: Any, mechanism: Mechanism, accuracy: float) -> float:
    """Return `(1/g) ln(1 / (2 (1 − p)))`: no pure mechanism that treats items alike reaches accuracy p with less.

    Parameters
    ----------
    scores
        The scores, as for `dpselect.select`.
    mechanism : Mechanism
        Says k, the spread w, and whether the order matters.
    accuracy : float
        The accuracy p.

    Returns
    -------
    float
        The limit; g is `(x_[k] − x_[k+1])/w`, or for sequences the smallest positive gap between consecutive ranks up
        to k + 1, rounded up to whole persons. 0 if there is no gap. `proven_limit` is never smaller.

    Examples
    --------
    >>> import dpselect as dps
    >>> f"{dps.forecast.gap_limit([30, 20], dps.Canonical(k=1, epsilon=1.0), 0.99):.4f}"
    '0.3912'
    """
    table, wanted = Scores.of(scores), wanted_accuracy(accuracy)
    persons = math.ceil(deciding_gap(mechanism, table) / mechanism.sensitivity.spread)
    return max(-math.log(2 * (1 - wanted)) / persons, 0.0) if persons else 0.0


def swap_yardstick(scores: Any, mechanism: Mechanism, accuracy: float) -> float:
    """Return the ε at which `½ Σ e^{−ε (x_[a] − x_[b])/w} = 1 − p`, summed over swaps: a yardstick, not a bound.

    A swap is a pair of ranks a <= k < b, or a <= k and a < b if the order matters, with different scores. A mechanism
    may need less, and where swaps of distant ranks dominate none comes near it.

    Parameters
    ----------
    scores
        The scores, as for `dpselect.select`.
    mechanism : Mechanism
        Says k, the spread w, and whether the order matters.
    accuracy : float
        The accuracy p.

    Returns
    -------
    float
        The ε; 0 where any ε will do.

    Examples
    --------
    >>> import dpselect as dps
    >>> f"{dps.forecast.swap_yardstick([30, 20], dps.Canonical(k=1, epsilon=1.0), 0.99):.4f}"
    '0.3912'
    """
    table, wanted = Scores.of(scores), wanted_accuracy(accuracy)
    values, sizes = table.values, table.multiplicities.astype(np.float64)
    border = int(Ranking.of(table.distinct).groups(mechanism.k - 1))
    distances = scaled(values - values[border], 1 / Fraction(mechanism.sensitivity.spread))
    above, below = distances[: border + 1], -distances[border + 1 :]
    chosen = np.append(sizes[:border], mechanism.k - sizes[:border].sum())
    if len(sizes) == 1 or (mechanism.k == table.size and not mechanism.ordered):
        return 0.0

    def probabilities(epsilon: float) -> Pair:
        behind = float(sizes[border + 1 :] @ np.exp(-epsilon * below))
        if mechanism.ordered:
            swaps = chosen[border] * behind
            for place in range(border - 1, -1, -1):
                behind = math.exp(-epsilon * (above[place] - above[place + 1])) * (sizes[place + 1] + behind)
                swaps += chosen[place] * behind
        else:
            reach = chosen * np.exp(-epsilon * above)
            swaps = reach.sum() * behind + reach[:border].sum() * (sizes[border] - chosen[border])
        return 1 - swaps / 2, swaps / 2

    nearest = float(np.abs(distances[distances != 0]).min())
    return solve_epsilon(probabilities, wanted, 1 / nearest)
