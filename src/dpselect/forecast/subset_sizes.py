"""How many subsets each class has, and which classes can matter; notation as in subsets.py."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from dpselect._arrays import Array, BoolArray, FloatArray
from dpselect.forecast.chances import NEGLIGIBLE
from dpselect.sampling.sequences import log_falling, log_subsets

_LARGEST_TABLE = 1 << 21
_BLOCKS, _NOTHING = 64, 1e300
_FINE = float(np.finfo(np.longdouble).eps) < 1e-18


def log_choose(n: int, r: int) -> float:
    """Return log C(n, r)."""
    return float(log_falling(n, r) - log_falling(r, r))


def classes_that_matter(
    starts: Array, ends: Array, head_penalties: FloatArray, tail_penalties: FloatArray, *, alone: bool
) -> tuple[Array, Array]:
    """Return the heads and the runs that can weigh anything beside the top set; if alone, beside any with a loss.

    The classes of head h with tails in some runs hold at most `C(T − h − 1, k − h)` subsets, T the end of the last run.
    """
    heads, runs = np.arange(len(head_penalties)), np.arange(len(ends))
    if not len(runs):
        return heads, runs
    # Blocks of runs grow with their ranks; where others outweigh most of them, those left are cut finer.
    firsts = np.unique(np.geomspace(1, len(ends) + 1, _BLOCKS).astype(np.intp))[:-1] - 1
    for _ in range(2 if alone else 1):
        lasts = np.append(firsts[1:], len(runs)) - 1
        heavy = _heavy(
            heads, starts[runs], ends[runs], head_penalties, tail_penalties[runs], firsts, lasts, alone=alone
        )
        if not heavy.any():
            return heads[-1:], runs[:1]
        rows = np.flatnonzero(heavy.any(axis=1))
        heads, runs = heads[rows[0] : rows[-1] + 1], runs[np.repeat(heavy.any(axis=0), lasts - firsts + 1)]
        firsts = np.unique(np.linspace(0, len(runs), _BLOCKS, endpoint=False).astype(np.intp))
    return heads, runs


def _heavy(
    heads: Array,
    starts: Array,
    ends: Array,
    head_penalties: FloatArray,
    tail_penalties: FloatArray,
    firsts: Array,
    lasts: Array,
    *,
    alone: bool,
) -> BoolArray:
    """Return which heads and blocks of runs, from some firsts to lasts, can matter, as [head, block]."""
    k = len(head_penalties)
    picks = k - heads[:, None]
    penalties = head_penalties[heads, None] + tail_penalties[firsts]
    most = log_falling(ends[lasts] - heads[:, None] - 1, picks) - log_falling(picks, picks)
    least = -NEGLIGIBLE - np.log(most.size)
    if alone:
        sizes, _ = log_class_sizes(k, heads, starts[firsts], ends[firsts])
        # However likely answers are that lose nothing, the others' errors are counted in full.
        least += float((sizes - penalties)[penalties > 0].max(initial=-_NOTHING))
    result: BoolArray = most - penalties > least
    return result


@lru_cache(maxsize=2)
def _log_factorials(size: int) -> tuple[FloatArray, FloatArray]:
    """Return log 0! … log size! in two parts: two float64 hold what one extended number does, and subtract faster.

    Two tables are kept: one for a first look at all ranks, and one for those that matter.
    """
    logs = np.log(np.arange(1, size + 1, dtype=np.longdouble))
    factorials = np.concatenate([np.zeros(1, np.longdouble), np.cumsum(logs)])
    coarse = factorials.astype(np.float64)
    return coarse, (factorials - coarse).astype(np.float64)


def log_class_sizes(k: int, head: Array, starts: Array, ends: Array) -> tuple[FloatArray, FloatArray]:
    """Return the logarithm of each class's size, and of 1 − ρ.

    `log ρ` is formed from differences of log-factorials in extended precision where a table of them fits.
    """
    heads = head[:, None]
    if not len(ends) or ends.dtype == object or int(ends[-1]) > _LARGEST_TABLE or not _FINE:
        place, run = (part.ravel() for part in np.indices((len(head), len(ends))))
        row = head[place]
        outer, picks = ends[run] - row - 1, k - row
        sizes = log_subsets(starts[run] - row - 1, outer, picks)[0]
        whole = log_falling(outer, picks) - log_falling(picks, picks)
        shape = (len(head), len(ends))
        return sizes.reshape(shape), np.minimum(sizes - whole, 0.0).reshape(shape)
    coarse, fine = _log_factorials(1 << int(ends[-1]).bit_length())
    above, behind = ends - heads - 1, ends - k - 1
    inner, inner_behind = starts - heads - 1, np.maximum(starts - k - 1, 0)
    coarse_above, coarse_behind = coarse[above], coarse[behind]
    log_ratios = (coarse_behind - coarse[inner_behind]) - (coarse_above - coarse[inner])
    log_ratios += (fine[behind] - fine[inner_behind]) - (fine[above] - fine[inner])
    # Nothing can be picked before the first run without it.
    log_ratios[:, starts == k] = -np.inf
    log_shares = np.log(-np.expm1(log_ratios))
    return coarse_above - coarse_behind - coarse[k - heads] + log_shares, log_shares
