"""Sampling down: of each group of comparisons a uniformly random choice stays, exactly (ranking.md)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dpselect._arrays import Array
from dpselect.sampling import BitSource, uniform_sequence

_BLOCK = 1 << 22
"""Comparisons that are ranked at a time; a larger group is drawn by itself."""


def thinned(counts: Array, groups: Array, capacity: int, bits: BitSource) -> Array:
    """Return the counts of what stays when each group keeps a uniformly random choice of `capacity` of its members.

    Cell c stands for counts[c] alike members of group groups[c]; groups are numbered from 0 in the order of the cells.
    What stays of a group follows the multivariate hypergeometric law.
    """
    if not len(counts):
        return counts
    starts = np.flatnonzero(np.diff(groups, prepend=-1))
    totals = np.add.reduceat(counts, starts)
    ends = np.append(starts[1:], len(counts))
    kept = counts.copy()
    for first, last in _blocks(totals):
        cells = slice(starts[first], ends[last - 1])
        if last - first == 1 and totals[first] > _BLOCK:
            kept[cells] = _thinned_alone(counts[cells], int(totals[first]), capacity, bits)
        else:
            kept[cells] = _thinned_by_rank(counts[cells], groups[cells], capacity, bits)
    return kept


def _blocks(totals: Array) -> Iterator[tuple[int, int]]:
    """Yield ranges of groups with at most _BLOCK members together; a larger group comes alone."""
    until = np.cumsum(totals)
    first = 0
    while first < len(totals):
        before = int(until[first - 1]) if first else 0
        last = max(int(np.searchsorted(until, before + _BLOCK, side="right")), first + 1)
        yield first, last
        first = last


def _thinned_by_rank(counts: Array, groups: Array, capacity: int, bits: BitSource) -> Array:
    """Give each member a random key; the smallest keys of a group stay. Equal keys in a group are all drawn again."""
    cells = np.repeat(np.arange(len(counts)), counts)
    of = groups[cells]
    while True:
        keys = bits.integers(len(cells), 64)
        order = np.lexsort((keys, of))
        ranked, ranked_of = keys[order], of[order]
        if not ((ranked[1:] == ranked[:-1]) & (ranked_of[1:] == ranked_of[:-1])).any():
            break
    starts = np.flatnonzero(np.diff(ranked_of, prepend=-1))
    sizes = np.diff(np.append(starts, len(order)))
    rank = np.arange(len(order)) - np.repeat(starts, sizes)
    return np.bincount(cells[order[rank < capacity]], minlength=len(counts))


def _thinned_alone(counts: Array, total: int, capacity: int, bits: BitSource) -> Array:
    """Draw which members of one large group stay, or which go, whichever are fewer."""
    if capacity >= total:
        return counts
    goes = 2 * capacity > total
    drawn = uniform_sequence(total, total - capacity if goes else capacity, bits)
    cells = np.searchsorted(np.cumsum(counts), np.array(drawn, dtype=np.int64), side="right")
    found = np.bincount(cells, minlength=len(counts))
    return counts - found if goes else found
