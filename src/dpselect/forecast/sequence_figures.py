"""What to expect of a sequence that Joint draws, without sampling.

Joint is a mixture. All sequences of loss s are equally likely, with a chance `p_s` each that falls with s; so drawing
from it is drawing a bound s with chance `(p_s − p_{s+}) N(s)`, s+ the next loss, and then any of the N(s) sequences of
loss at most s. Those are drawn row by row: row r takes one of the ranks `1..t_r` that are left, of which there are
`n_r = t_r − r + 1` (mathematics, section 4). Hence a rank that row r may take is still there after it with chance
`q_r = 1 − 1/n_r`, whatever else was taken, and expectations are sums of products of q.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from dpselect.forecast import metrics
from dpselect.forecast.chances import CERTAIN, FloatArray
from dpselect.forecast.sequences import Sequences
from dpselect.mechanisms.class_law import class_probabilities
from dpselect.mechanisms.ranking import Ranking
from dpselect.sampling.logcount import log_falling

Array = npt.NDArray[Any]

_MOST_TERMS = 40_000_000
_PART = 1_000_000
_NEGLIGIBLE = 1e-12


@dataclass(frozen=True, repr=False)
class BoundedRows:
    """Rows of ranks `1..bounds[s, r]` for each bound s on the loss, which has a weight; rows and ranks from 0 here.

    `values` and `ends` are the distinct scores relative to that of rank k, and how many items have at least each;
    `groups[s, r]` is the place of the lowest score that row r may hold.
    """

    weights: FloatArray
    groups: Array
    values: FloatArray
    ends: FloatArray
    k: int

    @classmethod
    def of(cls, levels: Sequences, ranking: Ranking, k: int, epsilon: float, noise: str) -> BoundedRows | None:
        """Return the rows of the bounds that matter; None if they are too many to hold."""
        weights = _mixture(levels, epsilon, noise)
        kept = weights > _NEGLIGIBLE / len(weights)
        raw, values = levels.raw[kept], ranking.grouping.values
        if len(raw) * k > _MOST_TERMS:
            return None
        top = ranking.scores(np.arange(k))
        groups = np.stack([np.searchsorted(score - values, raw, side="right") - 1 for score in top], axis=1)
        relative = (values - top[-1]).astype(np.float64)
        return cls(weights[kept], groups, relative, ranking.ends.astype(np.float64), k)

    @cached_property
    def bounds(self) -> FloatArray:
        """How many ranks each row may hold."""
        return self.ends[self.groups]

    @cached_property
    def choices(self) -> FloatArray:
        """n, how many of them are left for each row."""
        return self.bounds - np.arange(self.k)

    def figures(self, total: float) -> dict[str, float]:
        """Return what follows from the rows; `total` is the sum of the k highest scores."""
        size = int(self.ends[-1])
        lost, misplaced, wrong = self._expectations()
        figures = {
            "total_error": lost + 2 * misplaced,
            "relative_error": self._relative_error(),
            "score_ratio": 1 - lost / total if total else 1.0,
        }
        crowded = self._wrong_with_ties()
        wrong = wrong if crowded is None else crowded
        if not np.isnan(wrong):
            figures |= {"correct": self.k - wrong, "f1": 1 - wrong / self.k}
        for name, ranks in (("great", metrics.great_ranks), ("good", metrics.good_ranks)):
            # What is good is less than what is great asks for.
            certain = figures.get("great", 0.0) > CERTAIN
            share = figures["great"] if certain else self.within(*ranks(self.k, size))
            if share is not None:
                figures[name] = share
        return figures

    def _expectations(self) -> tuple[float, float, float]:
        """Return how much score is lost, how much of it stands behind its rank, and how many of ranks 1..k are missing.

        The first is `Σ_{j<=k} (x_j − x_k) P[j is missing] + Σ_{j>k} (x_k − x_j) P[j is there]`. The second is
        `Σ_r (x_{s_r} − x_r)+`; at each rank |x_r − x_{s_r}| is twice that plus the loss.
        """
        top = self.values[np.searchsorted(self.ends, np.arange(self.k), side="right")]
        below = np.cumsum(np.maximum(-self.values, 0.0) * np.diff(self.ends, prepend=0.0))[self.groups]
        stays, joining = 1 - 1 / self.choices, self._left_at_own_row()
        gained = np.diff(below, axis=1, prepend=0.0)
        drops, lost, behind, misplaced, missing, missed = (np.zeros(len(below)) for _ in range(6))
        for row in range(self.k):
            misplaced += behind / self.choices[:, row]
            drops += gained[:, row]
            lost += drops / self.choices[:, row]
            stay = stays[:, row]
            drops, missing, missed = drops * stay, missing * stay + joining[:, row], missed * stay
            missed += joining[:, row] * top[row]
            behind = behind * stay + missing * (top[row] - top[min(row + 1, self.k - 1)])
        weights = self.weights
        return float(weights @ (lost + missed)), float(weights @ misplaced), float(weights @ missing)

    def _left_at_own_row(self) -> FloatArray:
        """Return the chance that rank r is not taken by rows 1..r: `Π q` from the first row that may take it."""
        stays, capped = 1 - 1 / self.choices, np.minimum(self.bounds, self.k).astype(np.intp)
        number, width = len(stays), self.k + 1
        flat = (capped + np.arange(number)[:, None] * width).ravel()
        first = np.cumsum(np.bincount(flat, minlength=number * width).reshape(number, width), axis=1)[:, : self.k]
        start = np.zeros((number, 1))
        # A row with one rank left takes it: zeros are counted beside the logarithms.
        logs = np.concatenate([start, np.cumsum(np.log(np.where(stays > 0, stays, 1.0)), axis=1)], axis=1)
        forced = np.concatenate([start, np.cumsum(stays <= 0, axis=1)], axis=1)
        log_left = logs[:, 1:] - np.take_along_axis(logs, first, axis=1)
        return np.where(forced[:, 1:] == np.take_along_axis(forced, first, axis=1), np.exp(log_left), 0.0)

    def _relative_error(self) -> float:
        """Return `Σ_g (D_g − D_{g−1}) P[an item is D_g or more below rank k]` over the distinct scores below it.

        None is with chance `Π_r (min(t_r, E) − r + 1) / n_r`, E the number of items above that.
        """
        first = int(np.searchsorted(self.ends, self.k))
        last = int(self.groups.max())
        count = last - first
        logs = np.log(self.choices)
        behind = np.concatenate([np.cumsum(logs[:, ::-1], axis=1)[:, ::-1], np.zeros((len(logs), 1))], axis=1)
        steps = -np.diff(self.values[first : last + 1])
        ends = self.ends[first:last]
        rows = np.arange(self.k + 1)
        ways = log_falling(ends[:, None] - rows, self.k - rows) if count else np.empty((0, 0))
        result = 0.0
        step = max(1, _PART // max(count, 1))
        for start in range(0, len(logs) if count else 0, step):
            part = slice(start, start + step)
            places = np.clip(self.groups[part] - first, 0, count)
            number = len(places)
            flat = (places + np.arange(number)[:, None] * (count + 1)).ravel()
            within = np.bincount(flat, minlength=number * (count + 1)).reshape(number, count + 1)
            free = np.cumsum(within[:, :-1], axis=1)
            log_chance = ways[np.arange(count), free] - np.take_along_axis(behind[part], free, axis=1)
            result += float(self.weights[part] @ (-np.expm1(np.minimum(log_chance, 0.0)) @ steps))
        return result

    def _wrong_with_ties(self) -> float | None:
        """Return the expected number of wrong items where ranks beyond k are tied with it; None where none are.

        With m tied items above which A are missing and below which B are chosen, max(A, B) are wrong, which is
        `B + max(X − room, 0)` for X chosen tied items. NaN if that is too much to add up.
        """
        border = int(np.searchsorted(self.ends, self.k))
        if self.ends[border] == self.k:
            return None
        above = int(self.ends[border - 1]) if border else 0
        room = self.k - above
        law = self._counts_within(above, self.ends[border])
        if law is None:
            return float("nan")
        chosen = np.arange(len(law))
        number = self._chosen_below(border)
        return number + float(np.maximum(chosen - room, 0) @ law)

    def _chosen_below(self, border: int) -> float:
        """Return the expected number of chosen items below a group."""
        bounds, choices = self.bounds, self.choices
        left, reached, chosen = np.zeros(len(bounds)), np.full(len(bounds), self.ends[border]), np.zeros(len(bounds))
        for row in range(self.k):
            left += np.maximum(bounds[:, row], self.ends[border]) - reached
            reached = np.maximum(bounds[:, row], self.ends[border])
            chosen += left / choices[:, row]
            left *= 1 - 1 / choices[:, row]
        return float(self.weights @ chosen)

    def _counts_within(self, start: int, end: float) -> FloatArray | None:
        """Return the chance that 0, 1, … of the ranks start + 1..end are chosen; None if that is too much work."""
        most = int(min(end - start, self.k))
        bounds, choices = self.bounds, self.choices
        if len(bounds) * self.k * (most + 1) > 10 * _MOST_TERMS:
            return None
        taken = np.arange(most + 1)
        chances = np.zeros((len(bounds), most + 1))
        chances[:, 0] = 1.0
        for row in range(self.k):
            inside = np.maximum(np.minimum(bounds[:, row], end) - start, 0.0)[:, None] - taken
            share = np.clip(inside / choices[:, row, None], 0.0, 1.0)
            moved = chances * share
            chances -= moved
            chances[:, 1:] += moved[:, :-1]
        return self.weights @ chances

    def within(self, held: int, last: int) -> float | None:
        """P[the `held` highest scores are there, and none below that of rank `last`]; None if that is too much work.

        Row by row, with how many of the items above rank `held` and of those tied with it are taken. Where all tied
        ones are needed, they are counted with those above.
        """
        edge = int(np.searchsorted(self.ends, held))
        above = int(self.ends[edge - 1]) if edge else 0
        tied, least = float(self.ends[edge]) - above, held - above
        if least == tied:
            above, tied, least = held, 0.0, 0
        lowest = float(self.ends[np.searchsorted(self.ends, last)])
        most = int(min(tied, self.k - above))
        bounds, choices = self.bounds, self.choices
        if len(bounds) * self.k * (above + 1) * (most + 1) > 10 * _MOST_TERMS:
            return None
        chances = np.zeros((above + 1, most + 1, len(bounds)))
        chances[0, 0] = 1.0
        musts, ties = np.arange(above + 1)[:, None, None], np.arange(most + 1)[:, None]
        taken = musts + ties
        others = np.maximum(np.minimum(bounds, lowest) - above - tied, 0.0)
        for row in range(self.k):
            bound, share = bounds[:, row], chances / choices[:, row]
            chances = share * np.maximum(others[:, row] - row + taken, 0.0)
            chances[1:] += (share * np.maximum(np.minimum(bound, above) - musts, 0.0))[:-1]
            if most:
                chances[:, 1:] += (share * np.maximum(np.clip(bound - above, 0.0, tied) - ties, 0.0))[:, :-1]
        return float(chances[-1, least:].sum(axis=0) @ self.weights)


def _mixture(levels: Sequences, epsilon: float, noise: str) -> FloatArray:
    """Return `(p_s − p_{s+}) N(s)` for each loss s."""
    probabilities = class_probabilities(-epsilon / 2 * levels.losses, levels.log_sizes, noise)
    log_within = np.logaddexp.accumulate(levels.log_sizes)
    weights: FloatArray = np.exp(log_within - levels.log_sizes) * probabilities
    following = np.exp(np.minimum(log_within[:-1] - levels.log_sizes[1:], 700.0)) * probabilities[1:]
    weights[:-1] = np.maximum(weights[:-1] - following, 0.0)
    return weights
