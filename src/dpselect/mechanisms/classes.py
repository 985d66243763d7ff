"""Every class of subsets, and every level of sequences, with its size and probability."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dpselect._arrays import Array, BoolArray, FloatArray
from dpselect.errors import InvalidInput, plain
from dpselect.mechanisms.canonical_blocks import Rows, log_subsets
from dpselect.mechanisms.class_law import class_probabilities
from dpselect.mechanisms.level_steps import LevelSteps
from dpselect.mechanisms.ranking import Ranking, scaled
from dpselect.scores import Scores

if TYPE_CHECKING:
    from dpselect.mechanisms.canonical import Canonical
    from dpselect.mechanisms.joint import Joint


MOST_CLASSES = 30_000_000
"""Classes that are listed; more would not fit in memory."""


@dataclass(frozen=True, repr=False)
class Classes:
    """The classes of k-subsets by head and tail (canonical, Definition 3.4), tails with equal scores merged.

    A class has all ranks 1..head, lacks rank head + 1, and its lowest rank lies in first_tails..last_tails; ranks
    count from 1. The top set is the class with head = k. Computed from the scores, so as private as they are: not for
    release.
    """

    k: int
    heads: Array
    first_tails: Array
    last_tails: Array
    losses: FloatArray
    exact: BoolArray
    log_sizes: FloatArray
    probabilities: FloatArray

    def probability_of_top(self) -> float:
        """P[exactly the top k], up to ties: every answer that has the k highest scores counts."""
        return float(self.probabilities[self.exact].sum())

    def great(self) -> float:
        """P[great]: the top ⌈k/10⌉ are all there and nothing is beyond rank k + k/10 (canonical, section A.2)."""
        return self.within(-(-self.k // 10), self.k + self.k // 10)

    def good(self) -> float:
        """P[good]: the top ⌈k/100⌉ are all there and nothing is beyond rank k + k/2 (canonical, section A.2)."""
        return self.within(-(-self.k // 100), self.k + self.k // 2)

    def within(self, least_head: int, last_tail: int) -> float:
        """P[the top `least_head` are all there and nothing is beyond rank `last_tail`].

        Subsets of a class are equally likely, so a class cut by `last_tail` counts with the share of its size.
        """
        fitting = (self.heads >= least_head) & (self.first_tails <= last_tail)
        heads, ends = self.heads[fitting], np.minimum(self.last_tails[fitting], last_tail)
        cut, _ = log_subsets(self.first_tails[fitting] - heads - 2, ends - heads - 1, self.k - heads)
        share = np.where(heads == self.k, 1.0, np.exp(np.minimum(cut - self.log_sizes[fitting], 0.0)))
        return float((self.probabilities[fitting] * share).sum())

    def expected_loss(self) -> float:
        """E[loss], relative to the loss of the top set."""
        return float((self.probabilities * self.losses).sum())

    def __len__(self) -> int:
        """Return the number of classes."""
        return len(self.heads)

    def __repr__(self) -> str:
        """Show the number of classes only."""
        return f"<Classes: {len(self)} classes of subsets of size {self.k}>"


@dataclass(frozen=True, repr=False)
class Levels:
    """The loss levels of k-sequences with their sizes and probabilities; as private as the scores, not for release."""

    k: int
    losses: FloatArray
    log_sizes: FloatArray
    probabilities: FloatArray

    def probability_of_best(self) -> float:
        """P[no loss]: the top k in order, up to ties."""
        return float(self.probabilities[0])

    def expected_loss(self) -> float:
        """E[max_i (x_[i] − x_{s_i})]: how far the worst row falls short of the score of its rank."""
        return float((self.probabilities * self.losses).sum())

    def __len__(self) -> int:
        """Return the number of levels."""
        return len(self.losses)

    def __repr__(self) -> str:
        """Show the number of levels only."""
        return f"<Levels: {len(self)} levels of sequences of length {self.k}>"


def classes_of(mechanism: Canonical, scores: Any) -> Classes:
    """Return every class of subsets under a canonical mechanism."""
    table = Scores.of(scores)
    mechanism.check_size(table.size)
    k, ranking = mechanism.k, Ranking.of(table.distinct)
    if table.size == k:
        one = np.array([k])
        return Classes(k, one, one, one, np.zeros(1), one > 0, np.zeros(1), np.ones(1))
    geometry = mechanism.geometry(ranking)
    tails = geometry.tails
    _check_count(k * len(tails.ends))
    heads = np.arange(k)
    missing = ranking.scores(heads) - ranking.scores(np.array([geometry.stand_in]))
    rows = Rows(heads, heads + 1, k - heads, scaled(missing, geometry.head_rate))
    row, run = (part.ravel() for part in np.indices((k, len(tails.ends))))
    before = np.where(run > 0, tails.ends[run - 1], k)
    log_sizes, _ = log_subsets(before - rows.start[row], tails.ends[run] - rows.start[row], rows.picks[row])
    penalties = rows.penalty[row] + tails.penalty[run]
    penalties, log_sizes = np.append(0.0, penalties), np.append(0.0, log_sizes)
    probabilities = class_probabilities(-penalties, log_sizes, mechanism.noise)
    return Classes(
        k,
        heads=np.append(k, row),
        first_tails=np.append(k, before + 1),
        last_tails=np.append(k, tails.ends[run]),
        losses=np.append(0.0, _losses(mechanism, missing, ranking, row, run)),
        exact=np.append(True, _tied_with_top(ranking, k, row, run)),
        log_sizes=log_sizes,
        probabilities=probabilities,
    )


def levels_of(mechanism: Joint, scores: Any) -> Levels:
    """Return every loss level of sequences under a joint mechanism."""
    table = Scores.of(scores)
    mechanism.check_size(table.size)
    steps = LevelSteps.of(mechanism.k, Ranking.of(table.distinct))
    probabilities = class_probabilities(-scaled(steps.losses, mechanism.rate), steps.log_sizes, mechanism.noise)
    return Levels(mechanism.k, steps.losses.astype(np.float64), steps.log_sizes, probabilities)


def _losses(mechanism: Canonical, missing: Array, ranking: Ranking, row: Array, run: Array) -> FloatArray:
    """Return (1 − γ) times what each class misses plus γ times what its tail falls short of rank k."""
    gaps = _tail_gaps(ranking, mechanism.k)
    gamma = mechanism.gamma
    return (1 - gamma) * missing[row].astype(np.float64) + gamma * gaps[run].astype(np.float64)


def _tail_gaps(ranking: Ranking, k: int) -> Array:
    """Return how far each run of tails falls short of rank k."""
    gaps: Array = ranking.scores(np.array([k - 1])) - ranking.grouping.values[int(ranking.groups(k)) :]
    return gaps


def _tied_with_top(ranking: Ranking, k: int, row: Array, run: Array) -> BoolArray:
    """Tell which classes miss nothing better than rank k and hold nothing worse."""
    heads_tied = ranking.scores(np.arange(k)) == ranking.scores(np.array([k - 1]))
    tails_tied = _tail_gaps(ranking, k) == 0
    tied: BoolArray = (heads_tied[row] & tails_tied[run]).astype(bool)
    return tied


def _check_count(count: int) -> None:
    if count > MOST_CLASSES:
        raise InvalidInput(
            "scores",
            plain("too many of them"),
            f"at most {MOST_CLASSES} classes are listed: k times the number of distinct scores",
        )
