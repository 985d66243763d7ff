"""Finding the chosen members of tied groups in the array they came from."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

_BLOCK = 1 << 16
"""Items looked at a time, so that memory stays small however large the tied groups are."""


def positions_of_members(data: Array, values: Array, indexes: Array) -> Array:
    """Return, for each i, the position of the indexes[i]-th item in `data` with score values[i].

    One pass over the data in blocks: a running count of each wanted score says in which block a member lies.
    """
    wanted, groups = np.unique(values, return_inverse=True)
    lowest, highest = wanted[0], wanted[-1]
    positions = np.full(len(values), -1, dtype=np.int64)
    seen = np.zeros(len(wanted), dtype=np.int64)
    for start in range(0, len(data), _BLOCK):
        block = data[start : start + _BLOCK]
        near = np.flatnonzero((block >= lowest) & (block <= highest))
        if not len(near):
            continue
        code = np.searchsorted(wanted, block[near])
        hit = wanted[code] == block[near]
        near, code = near[hit], code[hit]
        here = np.bincount(code, minlength=len(wanted))
        offset = indexes - seen[groups]
        found = np.flatnonzero((offset >= 0) & (offset < here[groups]))
        if len(found):
            order = np.argsort(code, kind="stable")
            starts = np.concatenate([[0], np.cumsum(here)[:-1]])
            positions[found] = near[order[starts[groups[found]] + offset[found]]] + start
        seen += here
    return positions
