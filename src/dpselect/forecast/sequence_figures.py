"""What to expect of a sequence that Joint draws, without sampling."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpselect.forecast import metrics
from dpselect.forecast.bounded_rows import BoundedRows
from dpselect.forecast.chances import CERTAIN
from dpselect.forecast.loss_bounds import LossBounds
from dpselect.forecast.row_counts import counts_within, within
from dpselect.forecast.row_sums import Losses
from dpselect.forecast.sequences import Sequences
from dpselect.mechanisms.classes import LevelSteps
from dpselect.scores import Ranking

_MOST_TERMS = 40_000_000
_CELLS = 1 << 22
_LEFT_OUT = 45.0
"""A bound is left out if what has to happen is less likely than e to minus this."""
_RANGE = 600.0
"""The number of sequences may grow by e to this within a part, so that nothing overflows."""


@dataclass(frozen=True, repr=False)
class SequenceFigures:
    """The figures of Joint that follow from the bounds on its rows: all bounds for chances, fewer for what is lost."""

    steps: LevelSteps
    ranking: Ranking
    k: int
    bounds: LossBounds
    coarser: LossBounds

    @classmethod
    def of(cls, levels: Sequences, ranking: Ranking, k: int, epsilon: float, noise: str) -> SequenceFigures | None:
        """Return the figures at one ε; None if there are too many rows, or bounds that matter."""
        if k * k > _MOST_TERMS:
            return None
        bounds, values = LossBounds.of(levels, epsilon, noise), ranking.grouping.values
        last = int(ranking.groups(k - 1))
        coarser = bounds.coarser(levels, values[last] - values[min(last + 1, len(values) - 1)])
        return None if len(coarser) * k > _MOST_TERMS else cls(levels.steps, ranking, k, bounds, coarser)

    @property
    def size(self) -> int:
        """The number of items."""
        return int(self.ranking.ends[-1])

    @cached_property
    def rows(self) -> BoundedRows:
        """The rows, for what is lost on average."""
        return BoundedRows.of(self.steps, self.ranking, self.k, self.coarser)

    def chances(self) -> dict[str, float]:
        """Return P[great] and P[good], as far as they are not too much to add up.

        What happens with a chance of less than about 1e-13 is left out.
        """
        wanted = {"great": metrics.great_ranks(self.k, self.size), "good": metrics.good_ranks(self.k, self.size)}
        rows = self._reaching(max(last for _, last in wanted.values()))
        if rows is None:
            return dict.fromkeys(wanted, 0.0)
        figures: dict[str, float] = {}
        for name, (held, last) in wanted.items():
            # What is good is less than what is great asks for.
            certain = figures.get("great", 0.0) > CERTAIN
            share = figures["great"] if certain else within(rows, held, last)
            if share is not None:
                figures[name] = share
        return figures

    def _reaching(self, last: int) -> BoundedRows | None:
        """Return rows up to the score of rank `last`, for bounds within which it may be that nothing below is chosen.

        With E items as good as that, its chance is `Π_r (E − r + 1)/N` at most. None if there is no such bound.
        """
        lowest = int(self.ranking.groups(last - 1))
        most = float(np.log(float(self.ranking.ends[lowest]) - np.arange(self.k)).sum())
        bounds = self.bounds.first(int((self.steps.log_within <= most + _LEFT_OUT).sum()))
        return BoundedRows.of(self.steps.up_to(lowest), self.ranking, self.k, bounds) if len(bounds) else None

    def expectations(self, total: float) -> dict[str, float]:
        """Return the other figures that have an exact form; `total` is the sum of the k highest scores.

        The relative error is below 1e-10.
        """
        losses = sum((Losses.of(part) for part in self._parts()), Losses())
        lost = losses.above + losses.below
        figures = {
            # What stands behind its rank counts twice, and disorder is that and the loss above.
            "total_error": 2 * losses.disorder + losses.below - losses.above,
            "relative_error": losses.depth,
            "score_ratio": 1 - lost / total if total else 1.0,
        }
        crowded = self._tied_without_room()
        if crowded is not None:
            wrong = losses.beyond + crowded
            figures |= {"correct": self.k - wrong, "f1": 1 - wrong / self.k}
        return figures

    def _parts(self) -> list[BoundedRows]:
        """Return the bounds in parts, within which the number of sequences does not grow too much."""
        rows = self.rows
        grown = (rows.log_within[-1] - rows.log_within) // _RANGE
        most = max(_CELLS // rows.k, 1)
        cuts = np.union1d(np.flatnonzero(np.diff(grown, prepend=np.inf)), np.arange(0, len(rows), most))
        stops = np.append(cuts[1:], len(rows))
        return [rows.part(start, stop) for start, stop in zip(cuts.tolist(), stops.tolist(), strict=True)]

    def _tied_without_room(self) -> float | None:
        """Return the expected number of chosen items tied with rank k for which the top k has no room.

        With A items above rank k's score missing and B below it chosen, max(A, B) are wrong, which is
        `B + max(X − room, 0)` for X chosen tied items. None if that is too much to add up.
        """
        rows = self.rows
        end = float(rows.ends[rows.border])
        if end == rows.k:
            return 0.0
        above = int(rows.ends[rows.border - 1]) if rows.border else 0
        law = counts_within(rows, above, end)
        return None if law is None else float(np.maximum(np.arange(len(law)) - (rows.k - above), 0) @ law)
