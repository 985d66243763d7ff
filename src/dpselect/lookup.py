"""Finding the chosen members of tied groups in the array they came from."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dpselect._arrays import Array

_BLOCK = 1 << 16
"""Items looked at a time, so that memory stays small however large the tied groups are."""


def positions_of_members(data: Array, values: Array, indexes: Array) -> Array:
    """Return, for each i, the position of the indexes[i]-th item in `data` with score values[i].

    One pass over the data in blocks: a running count of each wanted score says in which block a member lies.
    """
    wanted, groups = np.unique(values, return_inverse=True)
    lowest, highest = wanted[0], wanted[-1]
    code_of = _coder(wanted, len(data))
    positions = np.full(len(values), -1, dtype=np.int64)
    seen = np.zeros(len(wanted), dtype=np.int64)
    for start in range(0, len(data), _BLOCK):
        block = data[start : start + _BLOCK]
        near = np.flatnonzero((block >= lowest) & (block <= highest))
        if not len(near):
            continue
        code = code_of(block[near])
        hit = code >= 0
        near, code = near[hit], code[hit]
        here = np.bincount(code, minlength=len(wanted))
        offset = indexes - seen[groups]
        found = np.flatnonzero((offset >= 0) & (offset < here[groups]))
        seen += here
        if len(found):
            asked = np.zeros(len(wanted), dtype=bool)
            asked[groups[found]] = True
            kept = np.flatnonzero(asked[code])
            order = kept[np.argsort(code[kept], kind="stable")]
            starts = np.cumsum(np.where(asked, here, 0)) - here
            positions[found] = near[order[starts[groups[found]] + offset[found]]] + start
    return positions


def _coder(wanted: Array, size: int) -> Callable[[Array], Array]:
    """Return a function from scores between the lowest and highest wanted to their index in `wanted`, −1 for others."""
    lowest = wanted[0]
    if wanted.dtype == np.int64 and int(wanted[-1]) - int(lowest) <= size:
        codes = np.full(int(wanted[-1]) - int(lowest) + 1, -1, dtype=np.int32)
        codes[wanted - lowest] = np.arange(len(wanted))
        return lambda scores: codes[scores - lowest]

    def search(scores: Array) -> Array:
        code = np.searchsorted(wanted, scores)
        return np.where(wanted[code] == scores, code, -1)

    return search
