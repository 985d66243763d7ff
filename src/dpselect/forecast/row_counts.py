"""Chances of how many items of a kind a sequence holds that is drawn row by row; notation as in `bounded_rows`."""

from __future__ import annotations

import numpy as np

from dpselect.forecast.bounded_rows import BoundedRows
from dpselect.forecast.chances import FloatArray

_MOST_TERMS = 400_000_000
_NEGLIGIBLE = 1e-13


def counts_within(rows: BoundedRows, start: int, end: float) -> FloatArray | None:
    """Return the chance that 0, 1, … of the ranks start + 1..end are chosen; None if that is too much work."""
    most = int(min(end - start, rows.k))
    if len(rows) * rows.k * (most + 1) > _MOST_TERMS:
        return None
    taken = np.arange(most + 1)[:, None]
    chances = np.zeros((most + 1, len(rows)))
    chances[0] = 1.0
    inside = np.maximum(np.minimum(rows.ends[rows.group], end) - start, 0.0)
    for run in rows.runs:
        length = rows.lengths[run]
        share = np.clip((inside[run].repeat(length) - taken) / rows.choices[run].repeat(length), 0.0, 1.0)
        moved = chances * share
        chances -= moved
        chances[1:] += moved[:-1]
    law: FloatArray = chances @ rows.weights
    return law


def within(rows: BoundedRows, held: int, last: int) -> float | None:
    """P[the `held` highest scores are there, and none below that of rank `last`]; None if that is too much work.

    With E items as good as rank `last`, none is below it with chance `Π_r (min(t_r, E) − r + 1)/n_r`. The rest is about
    rows that reach no farther than E; bounds that differ beyond E only are one. Less than 1e-13 is left out.
    """
    bounds, weights = _merged(rows, int(np.searchsorted(rows.ends, last)))
    kept = weights > _NEGLIGIBLE / max(len(weights), 1)
    return _holding(bounds[:, kept], weights[kept], rows, held)


def _merged(rows: BoundedRows, lowest: int) -> tuple[FloatArray, FloatArray]:
    """Return the bounds on rows that differ up to a group, and how likely each is, with nothing below the group."""
    numbers = np.arange(rows.k)
    begins = np.flatnonzero(rows.start == 0)
    group = np.minimum(rows.group, lowest)
    changes = np.flatnonzero((rows.start > 0) & (np.diff(group, prepend=0) > 0))
    # The chance falls with the bound, because a row's share of ranks up to E does.
    log_ways = np.log(rows.ends[group] - rows.row)
    gains = np.bincount(rows.start[changes], log_ways[changes] - log_ways[changes - 1], minlength=len(rows))
    log_chances = log_ways[begins].sum() + np.cumsum(gains) - rows.log_within
    number = int((log_chances > np.log(_NEGLIGIBLE)).sum())
    chances = rows.weights[:number] * np.exp(np.minimum(log_chances[:number], 0.0))
    changes = changes[rows.start[changes] < number]
    starts, place = np.unique(np.append(rows.start[changes], 0), return_inverse=True)
    bounds = np.zeros((rows.k, len(starts)))
    bounds[numbers, 0] = rows.ends[group[begins]]
    bounds[rows.row[changes], place[:-1]] = rows.ends[group[changes]] - rows.ends[group[changes - 1]]
    merged = np.add.reduceat(chances, starts) if number else np.zeros(1)
    return np.cumsum(bounds, axis=1), merged


def _holding(bounds: FloatArray, weights: FloatArray, rows: BoundedRows, held: int) -> float | None:
    """Return the weight of sequences that hold the `held` highest scores, of all with these bounds.

    Row by row, with how many of the items above rank `held` and of those tied with it are taken. Where all tied ones
    are needed, they are counted with those above.
    """
    edge = int(np.searchsorted(rows.ends, held))
    above = int(rows.ends[edge - 1]) if edge else 0
    tied, least = float(rows.ends[edge]) - above, held - above
    if least == tied:
        above, tied, least = held, 0.0, 0
    most = int(min(tied, rows.k - above))
    if bounds.size * (above + 1) * (most + 1) > _MOST_TERMS:
        return None
    each = 1 / (bounds - np.arange(rows.k)[:, None])
    musts, ties = np.arange(above + 1.0)[:, None, None], np.arange(most + 1.0)[:, None]
    some_above, some_tied = np.minimum(bounds, above) * each, np.clip(bounds - above, 0.0, tied) * each
    chances = np.zeros((above + 1, most + 1, len(weights)))
    chances[0, 0] = weights
    for row in range(rows.k):
        # More than there are to take have never been taken before, so that a chance below 0 is one of nothing.
        moved = chances * (some_above[row] - musts * each[row])
        tied_moved = chances * (some_tied[row] - ties * each[row]) if most else None
        chances -= moved
        chances[1:] += moved[:-1]
        if tied_moved is not None:
            chances -= tied_moved
            chances[:, 1:] += tied_moved[:, :-1]
    return float(chances[-1, least:].sum())
