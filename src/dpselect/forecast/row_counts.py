"""Chances of how many items of a kind a sequence holds that is drawn row by row; notation as in `bounded_rows`."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dpselect._arrays import Array, FloatArray
from dpselect.forecast.bounded_rows import BoundedRows, run_lengths

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
    merged = _up_to(rows, int(np.searchsorted(rows.ends, last)))
    heavy = np.flatnonzero(merged.weights > _NEGLIGIBLE / len(merged))
    if not len(heavy):
        return 0.0
    first, end = int(heavy[0]), int(heavy[-1]) + 1
    settled = min(max(_settled(merged, held), first), end)
    others = _holding(merged.part(settled, end), held) if settled < end else 0.0
    return None if others is None else float(merged.weights[first:settled].sum()) + others


def _up_to(rows: BoundedRows, lowest: int) -> BoundedRows:
    """Return rows that reach no farther than a group, weighted by the chance that nothing does."""
    begins, ranks = rows.offsets[:-1], np.arange(rows.k)
    log_first = float(np.log(rows.ends[np.minimum(rows.group[begins], lowest)] - ranks).sum())
    # A row's share of ranks up to E falls with the bound, so the chance does.
    if log_first - rows.log_within[0] < np.log(_NEGLIGIBLE):
        return replace(rows.part(0, 1), weights=np.zeros(1))
    # A run says something new if it is a row's first, or the one before it falls short of the group.
    new = np.append(True, rows.group[:-1] < lowest)
    new[begins] = True
    kept = np.flatnonzero(new)
    group, start, offsets = np.minimum(rows.group[kept], lowest), rows.start[kept], np.searchsorted(kept, rows.offsets)
    changes = np.delete(np.arange(len(kept)), offsets[:-1])
    ends, before = rows.ends[group[changes]], rows.ends[group[changes - 1]]
    gains = np.log1p((ends - before) / (before - np.repeat(ranks, np.diff(offsets) - 1)))
    log_chances = log_first + np.cumsum(np.bincount(start[changes], gains, minlength=len(rows))) - rows.log_within
    chances = rows.weights * np.exp(np.minimum(log_chances, 0.0))
    differ = np.zeros(len(rows), dtype=bool)
    differ[start] = True
    start, weights = (np.cumsum(differ) - 1)[start], np.add.reduceat(chances, np.flatnonzero(differ))
    lengths = run_lengths(start, offsets, len(weights))
    return replace(rows, weights=weights, offsets=offsets, group=group, start=start, lengths=lengths)


def _settled(rows: BoundedRows, held: int) -> int:
    """Return how many of the first bounds leave a row, from row `held` on, the last of the ranks up to its own.

    Up to that row all those ranks are taken, so that the `held` highest scores are there for certain.
    """
    firsts = rows.offsets[held - 1 : -1]
    return int(rows.lengths[firsts][rows.choices[firsts] == 1].max(initial=0))


def _holding(rows: BoundedRows, held: int) -> float | None:
    """Return the weight of sequences that hold the `held` highest scores.

    Row by row, with how many of the items above rank `held` and of those tied with it are taken. Where all tied ones
    are needed, they are counted with those above.
    """
    edge = int(np.searchsorted(rows.ends, held))
    above = int(rows.ends[edge - 1]) if edge else 0
    tied, least = float(rows.ends[edge]) - above, held - above
    if least == tied:
        above, tied, least = held, 0.0, 0
    most = int(min(tied, rows.k - above))
    if len(rows) * rows.k * (above + 1) * (most + 1) > _MOST_TERMS:
        return None
    musts, ties = np.arange(above + 1.0)[:, None, None], np.arange(most + 1.0)[:, None]
    bounds = rows.ends[rows.group]
    some_above, some_tied = np.minimum(bounds, above), np.clip(bounds - above, 0.0, tied)
    chances, moved = np.zeros((2, above + 1, most + 1, len(rows)))
    chances[0, 0] = rows.weights
    for run in rows.runs:
        lengths = rows.lengths[run]
        choices = rows.choices[run].repeat(lengths)
        # Numbers below 0 are those of what cannot have been taken, whose chance is 0.
        wanted = _repeated(some_above[run], lengths) - musts
        np.multiply(chances, wanted / choices, out=moved)
        # What is left of a chance has to be 0 where there is no other choice.
        if most:
            ties_left = _repeated(some_tied[run], lengths) - ties
            ties_moved = chances * (ties_left / choices)
            chances *= (choices - wanted - ties_left) / choices
            chances[:, 1:] += ties_moved[:, :-1]
        else:
            chances -= moved
        chances[1:] += moved[:-1]
    return float(chances[-1, least:].sum())


def _repeated(values: FloatArray, lengths: Array) -> FloatArray:
    """Return ascending values, each as often as its length says, or one of them if all are equal."""
    return values[:1] if values[0] == values[-1] else values.repeat(lengths)
