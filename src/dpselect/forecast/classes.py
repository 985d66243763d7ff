"""Figures of the canonical mechanism, from its classes of subsets with equal loss.

Notation (mathematics, section 3): a class has head h (ranks 1..h are in, rank h+1 is not), and its lowest rank lies in
a run of equal scores that starts behind rank T' and ends at rank T. Its subsets take `q = k − h` of the `n = T − h − 1`
ranks behind h+1, at least one of them in the run: there are `C(n, q) (1 − ρ)`, with `ρ = C(n', q) / C(n, q)` and
`n' = T' − h − 1`. Sizes may exceed the range of float64, so that they are kept as logarithms.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from dpselect._arrays import Array, BoolArray, FloatArray
from dpselect.errors import InvalidInput, plain
from dpselect.forecast.metrics import good_ranks, great_ranks
from dpselect.mechanisms import Canonical
from dpselect.mechanisms.classes import check_unrounded, class_probabilities
from dpselect.sampling.bounds import scaled
from dpselect.sampling.sequences import log_falling, log_subsets
from dpselect.scores import Ranking, Scores

NEGLIGIBLE = 45.0
"""Classes are left out if their total weight is below e^-45 times that of the others."""

_MOST_CLASSES = 12_000_000
"""More pairs of head and run are refused: their table would not fit in memory."""

_MOST_TERMS = 20_000_000
"""If ties at rank k need more terms than this, the number of wrong items is simulated."""

_TOGETHER = 1 << 14
"""Classes whose sizes are computed together."""

_BLOCKS = 64
"""Number of blocks of runs in which heads and runs that matter are searched."""


@dataclass(frozen=True, repr=False)
class Subsets:
    """The classes of k-subsets other than the top set: a row for each of `heads`, a column for each of `runs`.

    `top[i]` is x_[i+1] − x_[k], `drops[j]` is x_[k] minus the score of run j. `losses` [head, run] are for a spread of
    1 and relative to the loss of the top set. `log_sizes` and `log_shares` [head, run] are the logarithms of the number
    of subsets and of 1 − ρ. Run j holds ranks `starts[j]` + 1 to `ends[j]`; `heads` and `runs` list those that matter.
    """

    k: int
    size: int
    heads: Array
    runs: Array
    top: FloatArray
    drops: FloatArray
    starts: Array
    ends: Array
    losses: FloatArray
    log_sizes: FloatArray
    log_shares: FloatArray

    @classmethod
    def of(cls, mechanism: Canonical, scores: Scores, epsilon: float, *, larger: bool = False) -> Subsets:
        """Return the classes that matter at an ε, or, with `larger`, at that and every larger one."""
        check_unrounded(mechanism)
        k, ranking = mechanism.k, Ranking.of(scores.distinct)
        first = int(ranking.groups(k)) if scores.size > k else len(ranking.ends)
        border = ranking.scores(np.array([k - 1]))
        values, ends = ranking.grouping.values[first:], ranking.ends[first:]
        starts = np.concatenate([ends[:0], [k], ends[:-1]])[: len(ends)]
        gamma, unit = Fraction(mechanism.gamma), 1 / Fraction(mechanism.sensitivity.spread)
        above, drops = ranking.scores(np.arange(k)) - border, border - values
        missing = above + drops[0] if mechanism.margin and len(values) else above
        head_losses, tail_losses = scaled(missing, (1 - gamma) * unit), scaled(drops, gamma * unit)
        heads, runs = _that_matter(starts, ends, epsilon * head_losses, epsilon * tail_losses, larger=larger)
        if len(heads) * len(runs) > _MOST_CLASSES:
            raise InvalidInput(
                "scores",
                plain("too many distinct ones"),
                f"must have at most {_MOST_CLASSES / k:,.0f} distinct values that matter at this epsilon and "
                f"k = {k}; use a larger epsilon",
            )
        log_sizes, log_shares = _log_sizes(k, heads, starts[runs], ends[runs])
        return cls(
            k=k,
            size=scores.size,
            heads=heads,
            runs=runs,
            top=scaled(above, Fraction(1)),
            drops=scaled(drops, Fraction(1)),
            starts=starts,
            ends=ends,
            losses=head_losses[heads, None] + tail_losses[runs],
            log_sizes=log_sizes,
            log_shares=log_shares,
        )

    @cached_property
    def tied(self) -> BoolArray:
        """Which classes have the same scores as the top set."""
        tied: BoolArray = (self.top[self.heads] == 0)[:, None] & (self.drops[self.runs] == 0)
        return tied

    @cached_property
    def _log_tied(self) -> float:
        """The logarithm of the number of subsets with the same scores as the top set, itself included."""
        above = int((self.top > 0).sum())
        last = int(self.ends[0]) if len(self.ends) and self.drops[0] == 0 else self.k
        return _log_choose(last - above, self.k - above)

    @property
    def limit(self) -> float:
        """The limit of P[exact] for ε → ∞: below 1 if a subset with other scores also has loss 0."""
        rivals = self.log_sizes[(self.losses == 0) & ~self.tied]
        return 1 / (1 + float(np.exp(rivals - self._log_tied).sum())) if len(rivals) else 1.0

    def law(self, epsilon: float, noise: str) -> tuple[FloatArray, Array, Array]:
        """Return the probabilities of an exact answer and of each other class that matters, with their places.

        Which classes matter is decided among the inexact ones, so that 1 − P[exact] is precise however small.
        """
        weights = np.where(self.tied, -np.inf, self.log_sizes - epsilon * self.losses)
        heaviest = float(weights.max(initial=-np.inf))
        heavy = weights > heaviest - NEGLIGIBLE - np.log(1 + weights.size)
        row, column = np.nonzero(heavy)
        locations = np.append(0.0, -epsilon * self.losses[row, column])
        log_sizes = np.append(self._log_tied, self.log_sizes[row, column])
        return class_probabilities(locations, log_sizes, noise), row, column

    def exact(self, epsilon: float, noise: str) -> tuple[float, float]:
        """P[exact] and its complement."""
        probabilities, _, _ = self.law(epsilon, noise)
        return float(probabilities[0]), float(probabilities[1:].sum())

    def figures(self, epsilon: float, noise: str) -> dict[str, float]:
        """Return all probabilities, the expected number of wrong items, the score lost, and the k-relative error."""
        probabilities, row, column = self.law(epsilon, noise)
        best, others = float(probabilities[0]), probabilities[1:]
        heads, runs = self.heads[row], self.runs[column]
        log_sizes = self.log_sizes[row, column]
        in_run, elsewhere = self._picked(heads, runs, self.log_shares[row, column])
        wrong = self._wrong(heads, runs, in_run, elsewhere, log_sizes)
        figures = {
            "exact": best,
            "inexact": float(others.sum()),
            "lost": float(others @ self._lost(heads, runs, in_run, elsewhere)),
            "relative_error": float(others @ self.drops[runs]),
        }
        for name, ranks in (("great", great_ranks), ("good", good_ranks)):
            share = self._share_within(heads, runs, log_sizes, *ranks(self.k, self.size))
            figures[name] = best + float(others @ share)
        if wrong is not None:
            figures["wrong"] = float(others @ wrong)
        return figures

    def _picked(self, heads: Array, runs: Array, log_shares: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the expected number of items in each class's run, and at each rank between the head and the run.

        Of the q items behind the head `(q m / n) / (1 − ρ)` lie in the run of m; the others are spread evenly.
        """
        starts, ends = self.starts[runs].astype(np.float64), self.ends[runs].astype(np.float64)
        picks, between = (self.k - heads).astype(np.float64), starts - heads - 1
        in_run = picks * (ends - starts) / (ends - heads - 1) * np.exp(-log_shares)
        elsewhere = np.where(between > 0, np.maximum(picks - in_run, 0.0) / np.maximum(between, 1.0), 0.0)
        return in_run, elsewhere

    def _lost(self, heads: Array, runs: Array, in_run: FloatArray, elsewhere: FloatArray) -> FloatArray:
        """Return by how much the scores of each class fall short of the top set's, on average."""
        behind = np.cumsum(-self.drops * (self.ends - self.starts).astype(np.float64))
        before = np.append(0.0, behind)[runs] if len(behind) else np.zeros(len(runs))
        missing = np.append(np.cumsum(self.top[::-1])[::-1], 0.0)
        lost: FloatArray = missing[heads] + in_run * self.drops[runs] - elsewhere * (missing[heads + 1] + before)
        return np.maximum(lost, 0.0)

    def _wrong(
        self, heads: Array, runs: Array, in_run: FloatArray, elsewhere: FloatArray, log_sizes: FloatArray
    ) -> FloatArray | None:
        """Return the expected number of wrong items of each class; None if ties make that too much work.

        Of m items tied with rank k, r have room. With B chosen items below them and A missing ones above, max(A, B) are
        wrong, which is `B + max(X − r, 0)` for X chosen tied items: `C(m, x) (C(n − m, q − x) − C(n' − m, q − x))`
        subsets have x of them.
        """
        if not len(self.drops) or self.drops[0] > 0:
            return in_run + elsewhere * (self.starts[runs] - self.k).astype(np.float64)
        above, end = int((self.top > 0).sum()), int(self.ends[0])
        tied, room = end - above, self.k - above
        below = np.where(runs > 0, in_run + elsewhere * (self.starts[runs] - end).astype(np.float64), 0.0)
        missing = 1 + (above - heads - 1) * (1 - elsewhere)
        wrong = np.where((heads < above) & (runs == 0), missing, below)
        crowded = np.flatnonzero((heads < above) & (runs > 0))
        most = min(tied, self.k - 1)
        if (most - room) * len(crowded) > _MOST_TERMS:
            return None
        for chosen in range(room + 1, most + 1):
            fits, ways = self._ways(heads[crowded], runs[crowded], tied, chosen)
            wrong[crowded[fits]] += (chosen - room) * np.exp(ways - log_sizes[crowded[fits]])
        return wrong

    def _ways(self, heads: Array, runs: Array, tied: int, chosen: int) -> tuple[Array, FloatArray]:
        """Return which classes can hold `chosen` of `tied` items before their run, and how many subsets do, as log."""
        picks = self.k - heads - chosen
        outer, inner = (each[runs] - heads - 1 - tied for each in (self.ends, self.starts))
        fits = np.flatnonzero((picks > 0) & (outer >= picks))
        ways, _ = log_subsets(inner[fits], outer[fits], picks[fits])
        return fits, ways + _log_choose(tied, chosen)

    def _share_within(self, heads: Array, runs: Array, log_sizes: FloatArray, held: int, last: int) -> FloatArray:
        """Return the share of each class that holds the `held` highest scores and none below that of rank `last`.

        A class with a head of at least `held` holds them. One whose first missing item is tied with rank `held` may
        hold enough of the other tied items.
        """
        place = int(np.searchsorted(self.ends, last)) if last > self.k else -1
        lowest = 0.0 if place < 0 else self.drops[place]
        reaches = self.drops[runs] <= lowest
        share = (reaches & (heads >= held)).astype(np.float64)
        partly = np.flatnonzero(reaches & (heads < held) & (self.top[heads] == self.top[held - 1]))
        for head in np.unique(heads[partly]).tolist():
            classes = partly[heads[partly] == head]
            last_tied = int((self.top >= self.top[held - 1]).sum())
            if self.top[held - 1] == 0 and len(self.drops) and self.drops[0] == 0:
                # All that is left to pick before the end of the first run is tied, and so is the first run.
                share[classes[runs[classes] == 0]] = 1.0
                classes, last_tied = classes[runs[classes] > 0], int(self.ends[0])
            tied = last_tied - head - 1
            for chosen in range(held - head, min(tied, self.k - head) + 1):
                fits, ways = self._ways(heads[classes], runs[classes], tied, chosen)
                share[classes[fits]] += np.exp(ways - log_sizes[classes[fits]])
        return np.minimum(share, 1.0)


def _that_matter(
    starts: Array, ends: Array, head_penalties: FloatArray, tail_penalties: FloatArray, *, larger: bool
) -> tuple[Array, Array]:
    """Return the heads and the runs that matter beside the heaviest class; with `larger` also beside the top set.

    The classes of head h with tails in a block of runs hold at most `C(T − h − 1, k − h)` subsets, T the block's end.
    """
    k = len(head_penalties)
    heads, runs = np.arange(k), np.arange(len(ends))
    if not len(runs):
        return heads, runs
    firsts = np.unique(np.geomspace(1, len(ends) + 1, _BLOCKS).astype(np.intp))[:-1] - 1
    for _ in range(2):
        lasts = np.append(firsts[1:], len(runs)) - 1
        penalties = head_penalties[heads, None] + tail_penalties[runs[firsts]]
        picks = k - heads[:, None]
        most = log_falling(ends[runs[lasts]] - heads[:, None] - 1, picks) - log_falling(picks, picks)
        sizes, _ = _log_sizes(k, heads, starts[runs[firsts]], ends[runs[firsts]])
        heaviest = float((sizes - penalties)[penalties > 0].max(initial=-1e300))
        heaviest = min(heaviest, 0.0) if larger else heaviest
        heavy = most - penalties > heaviest - NEGLIGIBLE - np.log(most.size)
        if not heavy.any():
            return heads[-1:], runs[:1]
        rows = np.flatnonzero(heavy.any(axis=1))
        heads = heads[rows[0] : rows[-1] + 1]
        runs = runs[np.repeat(heavy.any(axis=0), lasts - firsts + 1)]
        firsts = np.unique(np.linspace(0, len(runs), _BLOCKS, endpoint=False).astype(np.intp))
    return heads, runs


def _log_sizes(k: int, heads: Array, starts: Array, ends: Array) -> tuple[FloatArray, FloatArray]:
    """Return the logarithm of each class's size, and of 1 − ρ, as [head, run]."""
    sizes, shares = np.empty((2, len(heads), len(ends)))
    block = max(_TOGETHER // max(len(ends), 1), 1)
    for first in range(0, len(heads), block):
        rows, head = slice(first, first + block), heads[first : first + block, None]
        outer, picks = np.broadcast_arrays(ends - head - 1, k - head)
        sizes[rows] = log_subsets(starts - head - 1, outer, picks)[0]
        shares[rows] = np.minimum(sizes[rows] - (log_falling(outer, picks) - log_falling(picks, picks)), 0.0)
    return sizes, shares


def _log_choose(number: int, chosen: int) -> float:
    """Return log C(n, r)."""
    return float(log_falling(number, chosen) - log_falling(chosen, chosen))
