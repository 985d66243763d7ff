"""What to expect of a sequence that Joint draws, without sampling."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpselect.forecast import metrics
from dpselect.forecast.bounded_rows import BoundedRows
from dpselect.forecast.chances import CERTAIN
from dpselect.forecast.row_counts import counts_within, within
from dpselect.forecast.row_sums import Losses
from dpselect.forecast.sequences import Sequences
from dpselect.mechanisms.ranking import Ranking

_MOST_TERMS = 40_000_000
_CELLS = 1 << 22
_RANGE = 600.0
"""The number of sequences may grow by e to this within a part, so that nothing overflows."""


@dataclass(frozen=True, repr=False)
class SequenceFigures:
    """The figures of Joint that follow from the bounds on its rows."""

    rows: BoundedRows

    @classmethod
    def of(cls, levels: Sequences, ranking: Ranking, k: int, epsilon: float, noise: str) -> SequenceFigures | None:
        """Return the figures at one ε; None if there are too many rows, or bounds that matter."""
        if k * k > _MOST_TERMS:
            return None
        rows = BoundedRows.of(levels, ranking, k, epsilon, noise)
        return None if len(rows) * k > _MOST_TERMS else cls(rows)

    def chances(self) -> dict[str, float]:
        """Return P[great] and P[good], as far as they are not too much to add up.

        What happens with a chance of less than about 1e-13 is left out.
        """
        k, size = self.rows.k, int(self.rows.ends[-1])
        figures: dict[str, float] = {}
        for name, ranks in (("great", metrics.great_ranks), ("good", metrics.good_ranks)):
            # What is good is less than what is great asks for.
            certain = figures.get("great", 0.0) > CERTAIN
            share = figures["great"] if certain else within(self.rows, *ranks(k, size))
            if share is not None:
                figures[name] = share
        return figures

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
            figures |= {"correct": self.rows.k - wrong, "f1": 1 - wrong / self.rows.k}
        return figures

    def _parts(self) -> list[BoundedRows]:
        """Return the bounds in parts, within which the number of sequences does not grow too much."""
        grown = (self.rows.log_within[-1] - self.rows.log_within) // _RANGE
        most = max(_CELLS // self.rows.k, 1)
        cuts = np.union1d(np.flatnonzero(np.diff(grown, prepend=np.inf)), np.arange(0, len(self.rows), most))
        stops = np.append(cuts[1:], len(self.rows))
        return [self.rows.part(start, stop) for start, stop in zip(cuts.tolist(), stops.tolist(), strict=True)]

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
