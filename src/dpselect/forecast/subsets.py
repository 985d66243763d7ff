"""The canonical mechanism's answers by class, and what follows from them without sampling.

Notation (mathematics, section 3): a class has head h (ranks 1..h inside, rank h+1 missing) and its lowest rank in a run
of equal scores that ends at rank T and starts behind rank T'. Its subsets take `q = k − h` of the `n = T − h − 1` ranks
behind h+1, at least one of them in the run; there are `C(n, q) (1 − ρ)`, `ρ = C(n', q) / C(n, q)` with
`n' = T' − h − 1`. Which classes there are, and their losses, does not depend on ε.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from dpselect._arrays import Array, BoolArray, FloatArray
from dpselect.errors import InvalidInput, plain
from dpselect.forecast.chances import NEGLIGIBLE, chance_of_best, log_sum
from dpselect.forecast.metrics import good_ranks, great_ranks
from dpselect.forecast.subset_sizes import classes_that_matter, log_choose, log_class_sizes
from dpselect.mechanisms import Canonical
from dpselect.mechanisms.classes import class_probabilities
from dpselect.sampling.bounds import scaled
from dpselect.sampling.sequences import log_subsets
from dpselect.scores import Ranking, Scores

_MOST_TERMS = 20_000_000
_MOST_CLASSES = 12_000_000


@dataclass(frozen=True, repr=False)
class Subsets:
    """Classes of k-subsets but the top set: a row of a matrix for each of `heads`, a column for each of the `runs`.

    `top` and `drops` are the k highest scores above x_[k] and how far each run lies below it; losses are for a spread
    of 1 and relative to the top set's. Computed from the scores, so as private as they are.
    """

    k: int
    size: int
    heads: Array
    runs: Array
    top: FloatArray
    drops: FloatArray
    starts: Array
    ends: Array
    head_losses: FloatArray
    tail_losses: FloatArray
    log_shares: FloatArray
    log_sizes: FloatArray

    @classmethod
    def of(cls, mechanism: Canonical, scores: Scores, smallest_epsilon: float = 0.0, *, alone: bool = False) -> Subsets:
        """Return the classes of a mechanism's subsets, without those that cannot matter from the smallest ε on.

        If that ε is alone, without those that others outweigh. The mechanism's own ε plays no part.
        """
        mechanism.check_size(scores.size)
        k, ranking = mechanism.k, Ranking.of(scores.distinct)
        first = int(ranking.groups(k)) if scores.size > k else len(ranking.ends)
        border = ranking.scores(np.array([k - 1]))
        values, ends = ranking.grouping.values[first:], ranking.ends[first:]
        gamma, unit = Fraction(mechanism.gamma), 1 / Fraction(mechanism.sensitivity.spread)
        above = ranking.scores(np.arange(k)) - border
        drops = border - values
        missing = above if not mechanism.margin or not len(values) else above + drops[0]
        head_losses, tail_losses = scaled(missing, (1 - gamma) * unit), scaled(drops, gamma * unit)
        starts = np.concatenate([ends[:0], [k], ends[:-1]])[: len(ends)]
        penalties = smallest_epsilon * head_losses, smallest_epsilon * tail_losses
        heads, runs = classes_that_matter(starts, ends, *penalties, alone=alone)
        count = int(runs[-1]) + 1 if len(runs) else 0
        if len(heads) * len(runs) > _MOST_CLASSES:
            accepted = (
                f"k times the distinct scores that matter must be at most {_MOST_CLASSES}; a larger epsilon has fewer"
            )
            raise InvalidInput("scores", plain("too many distinct ones"), accepted)
        head_losses = head_losses[heads]
        drops, starts, ends, tail_losses = drops[:count], starts[:count], ends[:count], tail_losses[:count]
        log_sizes, log_shares = log_class_sizes(k, heads, starts[runs], ends[runs])
        return cls(
            k=k,
            size=scores.size,
            heads=heads,
            runs=runs,
            top=scaled(above, Fraction(1)),
            drops=scaled(drops, Fraction(1)),
            starts=starts,
            ends=ends,
            head_losses=head_losses,
            tail_losses=tail_losses,
            log_shares=log_shares,
            log_sizes=log_sizes,
        )

    def _at(self, matrix: FloatArray, row: Array, run: Array) -> FloatArray:
        """Return the entries of a matrix for heads and runs."""
        entries: FloatArray = matrix[row - self.heads[0], np.searchsorted(self.runs, run)]
        return entries

    @cached_property
    def losses(self) -> FloatArray:
        """The loss of each class."""
        return self.head_losses[:, None] + self.tail_losses[self.runs]

    @cached_property
    def tied(self) -> BoolArray:
        """Which classes have the same scores as the top set."""
        tied: BoolArray = (self.top[self.heads] == 0)[:, None] & (self.drops[self.runs] == 0)
        return tied

    @property
    def _log_tied(self) -> float:
        """The logarithm of how many subsets have the same scores as the top set, with that."""
        above = int((self.top > 0).sum())
        last = int(self.ends[0]) if len(self.ends) and self.drops[0] == 0 else self.k
        return log_choose(last - above, self.k - above)

    @cached_property
    def _without_loss(self) -> tuple[float, float]:
        """The logarithm of how many subsets lose nothing, the top set included, and the share of exact ones."""
        lossless = log_sum(np.append(self.log_sizes[self.losses == 0], 0.0))
        exact = log_sum(np.append(self.log_sizes[self.tied & (self.losses == 0)], 0.0))
        return lossless, float(np.exp(exact - lossless))

    @property
    def limit(self) -> float:
        """P[exact] for ε without bound: below 1 where a subset with other scores loses nothing either."""
        return self._without_loss[1]

    def chance(self, epsilon: float, noise: str) -> float:
        """P[exact top-k]; only the classes that matter at this ε are copied."""
        log_best, share = self._without_loss
        weights = self.log_sizes - epsilon * self.losses
        highest = max(float(weights.max(initial=-np.inf)), log_best)
        kept = np.nonzero(weights > highest - NEGLIGIBLE - np.log(1 + weights.size))
        sizes, losses = self.log_sizes[kept], self.losses[kept]
        lossy = losses > 0
        return share * chance_of_best(log_best, sizes[lossy], epsilon * losses[lossy], noise)

    def chances(self, epsilons: list[float], noise: str) -> list[float]:
        """P[exact top-k] for several ε; they share the classes, of which ever fewer matter as ε grows."""
        log_best, share = self._without_loss
        lossy = self.losses > 0
        sizes, losses = self.log_sizes[lossy], self.losses[lossy]
        slack = NEGLIGIBLE + np.log(1 + len(sizes))
        found: dict[float, float] = {}
        for epsilon in sorted(epsilons):
            weights = sizes - epsilon * losses
            highest = max(float(weights.max()), log_best) if len(weights) else log_best
            kept = weights > highest - slack
            found[epsilon] = share * chance_of_best(log_best, sizes[kept], epsilon * losses[kept], noise)
            lasting = weights > log_best - slack
            if lasting.sum() < 0.9 * len(lasting):
                sizes, losses = sizes[lasting], losses[lasting]
        return [found[epsilon] for epsilon in epsilons]

    def figures(self, epsilon: float, noise: str, total: float) -> dict[str, float]:
        """Return every figure that the classes determine; `total` is the sum of the k highest scores."""
        weights = self.log_sizes - epsilon * self.losses
        # However likely answers are that lose nothing, the others' errors are counted in full.
        highest = float(weights[self.losses > 0].max(initial=-np.inf))
        heavy = weights > highest - NEGLIGIBLE - np.log(1 + weights.size)
        # What is tied with the top set counts as that.
        place, column = np.nonzero(heavy & ~self.tied)
        log_sizes, losses = self.log_sizes[place, column], self.losses[place, column]
        probabilities = class_probabilities(
            np.append(0.0, -epsilon * losses), np.append(self._log_tied, log_sizes), noise
        )
        best, others = float(probabilities[0]), probabilities[1:]
        row, run = self.heads[place], self.runs[column]
        wrong, lost = self._expectations(row, run)
        total_error = float(others @ lost)
        figures = {
            "exact": best,
            "total_error": total_error,
            "relative_error": float(others @ self.drops[run]),
            "score_ratio": 1 - total_error / total if total else 1.0,
        }
        for name, ranks in (("great", great_ranks), ("good", good_ranks)):
            held, last = ranks(self.k, self.size)
            figures[name] = best + float(others @ self._share_within(row, run, held, last))
        if wrong is not None:
            figures["correct"] = self.k - float(others @ wrong)
            figures["f1"] = figures["correct"] / self.k
        return figures

    def _expectations(self, row: Array, run: Array) -> tuple[FloatArray | None, FloatArray]:
        """Return for each class how many of its items are wrong on average, and how much score is lost.

        Of the q items behind the head, `J = (q m / n) / (1 − ρ)` lie in the run of m, on average; the others are spread
        evenly over the n' ranks before it.
        """
        starts, ends = self.starts[run].astype(np.float64), self.ends[run].astype(np.float64)
        picks, between = (self.k - row).astype(np.float64), starts - row - 1
        in_run = picks * (ends - starts) / (ends - row - 1) * np.exp(-self._at(self.log_shares, row, run))
        elsewhere = np.where(between > 0, np.maximum(picks - in_run, 0.0) / np.maximum(between, 1.0), 0.0)
        behind = np.cumsum(-self.drops * (self.ends - self.starts).astype(np.float64))
        before = np.append(0.0, behind)[:-1][run] if len(behind) else behind[run]
        suffix = np.append(np.cumsum(self.top[::-1])[::-1], 0.0)
        lost = suffix[row] + in_run * self.drops[run] - elsewhere * (suffix[row + 1] + before)
        if not len(self.drops) or self.drops[0] > 0:
            return in_run + elsewhere * (starts - self.k), np.maximum(lost, 0.0)
        return self._wrong_with_ties(row, run, in_run, elsewhere), np.maximum(lost, 0.0)

    def _wrong_with_ties(self, row: Array, run: Array, in_run: FloatArray, elsewhere: FloatArray) -> FloatArray | None:
        """Return how many items of each class are wrong on average when ranks beyond k are tied with it.

        Of m tied items r have room. With B chosen items below them and A missing ones above, max(A, B) are wrong, which
        is `B + max(X − r, 0)` for X chosen tied items: `C(m, x) (C(n − m, q − x) − C(n' − m, q − x))` subsets have x.
        None if that is too much to add up.
        """
        above, end = int((self.top > 0).sum()), int(self.ends[0])
        tied, room = end - above, self.k - above
        below = np.where(run > 0, in_run + elsewhere * (self.starts[run] - end), 0.0)
        missing = 1 + (above - row - 1) * (1 - elsewhere)
        wrong = np.where((row < above) & (run == 0), missing, below)
        crowded = np.flatnonzero((row < above) & (run > 0))
        most = min(tied, self.k - 1)
        if (most - room) * len(crowded) > _MOST_TERMS:
            return None
        head, columns = row[crowded], run[crowded]
        for chosen in range(room + 1, most + 1):
            picks = self.k - head - chosen
            outer = self.ends[columns] - head - 1 - tied
            fits = (picks > 0) & (outer >= picks)
            inner = (self.starts[columns] - head - 1 - tied)[fits]
            ways = log_subsets(inner, outer[fits], picks[fits])[0] + log_choose(tied, chosen)
            sizes = self._at(self.log_sizes, head[fits], columns[fits])
            wrong[crowded[fits]] += (chosen - room) * np.exp(ways - sizes)
        return wrong

    def _share_within(self, row: Array, run: Array, held: int, last: int) -> FloatArray:
        """Return the share of each class that holds the `held` highest scores and none below that of rank `last`.

        A class with a head of at least `held` holds them. One whose first missing item is tied with rank `held` may
        hold enough of the other tied items: `Σ_c C(t, c) (C(n − t, q − c) − C(n' − t, q − c)) / size` for t of them.
        """
        place = int(np.searchsorted(self.ends, last)) if last > self.k else -1
        lowest = 0.0 if place < 0 else self.drops[place] if place < len(self.drops) else np.inf
        reaches = self.drops <= lowest
        share = (reaches[run] & (row >= held)).astype(np.float64)
        partly = np.flatnonzero(reaches[run] & (row < held) & (self.top[row] == self.top[held - 1]))
        for head in np.unique(row[partly]).tolist():
            classes = partly[row[partly] == head]
            columns = run[classes]
            last_tied = int((self.top >= self.top[held - 1]).sum())
            if self.top[held - 1] == 0 and len(self.drops) and self.drops[0] == 0:
                # All that is left to pick before the end of the first run is tied, and so is the first run.
                share[classes[columns == 0]] = 1.0
                classes, columns, last_tied = classes[columns > 0], columns[columns > 0], int(self.ends[0])
            tied = last_tied - head - 1
            for kept in range(held - head, min(tied, self.k - head) + 1):
                picks = self.k - head - kept
                outer = self.ends[columns] - head - 1 - tied
                # The run must have a part in what is picked, and hold enough for it.
                fits = (outer >= picks) & (picks > 0)
                inner = self.starts[columns[fits]] - head - 1 - tied
                ways = log_subsets(inner, outer[fits], np.full(len(inner), picks))[0]
                sizes = self._at(self.log_sizes, row[classes[fits]], columns[fits])
                share[classes[fits]] += np.exp(ways + log_choose(tied, kept) - sizes)
        return np.minimum(share, 1.0)
