"""Expectations of sequences that are drawn row by row, added up over all bounds on the loss.

Notation as in `bounded_rows`: row r takes one of n ranks, and q = 1 − 1/n. A weight c_j on each rank j adds up to C(t)
over ranks up to t. Then the chosen ranks hold `Σ_r C(t_r)/n_r Π_{i>r} q_i` of it on average, and what they lack of
C(k) is `C(k) Π_i q_i + Σ_r (C(k) − C(t_r))/n_r Π_{i>r} q_i`. Each row depends on the bound through t_r alone, so the
sum over all bounds goes from the last row to the first with one number for each bound, `w Π_{i>r} q_i`.

All terms are positive, and products are of some k factors: the relative error is below k · 1e-14.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from dpselect._arrays import FloatArray
from dpselect.forecast.bounded_rows import BoundedRows

_NEGLIGIBLE = 1e-13
_RAISED = 100.0
"""By how many e-folds products are raised at a time; a part of the bounds spans 600 of them."""


@dataclass(frozen=True)
class Losses:
    """What is lost on average.

    above: of the scores above rank k's, how much they exceed it by. below: how much what is chosen falls short of it.
    disorder: `Σ_{l<k} (x_l − x_{l+1}) U_l`, U_l the expected number of ranks 1..l that are not in rows 1..l.
    beyond: the expected number of items with a score below rank k's. depth: how far the lowest of them lies below it.
    """

    above: float = 0.0
    below: float = 0.0
    disorder: float = 0.0
    beyond: float = 0.0
    depth: float = 0.0

    @classmethod
    def of(cls, rows: BoundedRows) -> Losses:
        """Return the losses of all bounds together."""
        top, ends, k = rows.top, rows.ends, rows.k
        fixed = _first_fixed(rows)
        settled = slice(int(rows.offsets[fixed]), None)
        choices = rows.choices[settled]
        stays = 1 - 1 / choices
        after = np.append(np.cumprod(stays[::-1])[::-1], 1.0)
        # Rank j from `fixed` on, if it is left before these rows, adds this to the disorder.
        steps = top - np.append(top[1:], top[-1])
        pending = _from_each_on(steps[fixed:] * np.cumprod(stays))
        capped = np.minimum(ends, k).astype(np.intp)
        short = np.cumsum(np.maximum(-rows.values, 0.0) * np.diff(ends, prepend=0.0))
        lacked, lacked_later = _from_each_on(top), _from_each_on(np.append(np.zeros(fixed), pending[:-1]))
        tables = np.stack([lacked[capped], short, np.maximum(ends - ends[rows.border], 0.0), lacked_later[capped]])
        masses, left = _masses(rows, fixed)
        # Not as a matrix product, for which NumPy would start threads.
        sums = (tables * np.bincount(rows.group[: settled.start], masses, minlength=len(ends))).sum(axis=1)
        sums += left * np.array([lacked[0], 0.0, 0.0, lacked_later[0]])
        others = float(rows.weights.sum()) * (tables[:, rows.group[settled]] @ (after[1:] / choices))
        above, below, beyond = (after[0] * sums + others)[:3].tolist()
        disorder, missing = _disorder(rows, fixed, steps)
        return cls(above, below, disorder + missing * float(pending[0]) + float(sums[3]), beyond, _depth(rows))

    def __add__(self, other: Losses) -> Losses:
        """Add the losses of other bounds."""
        return Losses(
            self.above + other.above,
            self.below + other.below,
            self.disorder + other.disorder,
            self.beyond + other.beyond,
            self.depth + other.depth,
        )


def _from_each_on(numbers: FloatArray) -> FloatArray:
    """Return the sum from each place to the end, and 0 after it."""
    return np.append(np.cumsum(numbers[::-1])[::-1], 0.0)


def _first_fixed(rows: BoundedRows) -> int:
    """Return the first row from which on none depends on the bound, and all may hold ranks up to k."""
    varying = np.flatnonzero((np.diff(rows.offsets) > 1) | (rows.ends[rows.group[rows.offsets[:-1]]] < rows.k))
    return int(varying[-1]) + 1 if len(varying) else 0


def _masses(rows: BoundedRows, end: int) -> tuple[FloatArray, float]:
    """Return `Σ w/n_r Π_{i>r} q_i` over the bounds of each run of the rows before `end`, and `Σ w Π_i q_i`."""
    masses, left = np.zeros(rows.offsets[end]), rows.weights.copy()
    for run in reversed(rows.runs[:end]):
        choices = rows.choices[run]
        np.divide(np.add.reduceat(left, rows.start[run]), choices, out=masses[run])
        left *= (1 - 1 / choices).repeat(rows.lengths[run])
    return masses, float(left.sum())


def _disorder(rows: BoundedRows, end: int, steps: FloatArray) -> tuple[float, float]:
    """Return `Σ w Σ_l (x_l − x_{l+1}) U_l` over rows before `end`, and `Σ w U` after them.

    `U_l = q_l (U_{l−1} + Π q)`, the product over the rows before l that may hold rank l: a ratio of products over all
    rows before l, and before the first that may. So U_l is the product over all rows up to l times a sum of inverses of
    products, kept as `missing`. A product is no farther from that of the last bound than N is from N
    of that bound, and as that one falls all are raised. A row with one choice takes it, so no later rank could have
    been held by it, and 1 in place of its q does no harm.
    """
    first_holders, reaches = _first_holders(rows, end)
    inverses, product, fallen = [np.ones(len(rows))], rows.weights.copy(), 0.0
    missing, total = np.zeros(len(rows)), 0.0
    for place, run in enumerate(rows.runs[:end]):
        missing += np.concatenate([inverses[first][start:stop] for first, start, stop in first_holders[place]])
        own, lengths = 1 - 1 / rows.choices[run], rows.lengths[run]
        if own[0] == 0:
            missing[: lengths[0]] = 0.0
            own[0] = 1.0
        factors = own.repeat(lengths)
        product *= factors
        total += float(steps[place] * (product @ missing))
        inverses.append(inverses[-1][: reaches[place]] / factors[: reaches[place]])
        fallen -= math.log(own[-1])
        if fallen > _RAISED:
            product *= math.exp(_RAISED)
            missing *= math.exp(-_RAISED)
            inverses = [each * math.exp(-_RAISED) for each in inverses]
            fallen -= _RAISED
    return total, float(product @ missing)


def _first_holders(rows: BoundedRows, end: int) -> tuple[list[list[tuple[int, int, int]]], list[int]]:
    """Return, for each rank before `end`, the first rows that may hold it, each from a bound to another, in order.

    Then the bound up to which some row behind each is such a row.
    """
    entries = rows.entries[:end, :end]
    before = np.concatenate([np.full((1, end), len(rows)), entries])[:-1]
    ranks, firsts = np.nonzero(np.triu(entries < before)[::-1].T)
    firsts = end - 1 - firsts
    starts, stops = entries[firsts, ranks], before[firsts, ranks]
    found = list(zip(firsts.tolist(), starts.tolist(), stops.tolist(), strict=True))
    borders = np.searchsorted(ranks, np.arange(end + 1)).tolist()
    reaches = np.zeros(end + 1, dtype=np.intp)
    np.maximum.at(reaches, firsts, stops)
    behind = np.maximum.accumulate(reaches[:0:-1])[::-1]
    return [found[start:stop] for start, stop in pairwise(borders)], behind.tolist()


def _depth(rows: BoundedRows) -> float:
    """Return `Σ_g (D_g − D_{g−1}) P[an item is D_g or more below rank k]` over the distinct scores below it.

    With E items above that, the chance is `1 − Π_r f_r`, `f_r = min((E − r + 1)/n_r, 1)`; that is
    `Σ_r (1 − f_r) Π_{i>r} f_i`, where `1 − f_r = (t_r − E)/n_r` if t_r > E, and 0 if not. So row r adds a sum over the
    scores that it may hold, which depends on t_r alone, divided by `Π_{i>=r} n_i`. Both are relative to the n of the
    last bound. All rows before r together add `Π_{i>=r} f_i` at most where t_r > E, which is less than n_r times what
    row r adds.
    """
    first, last, fixed = rows.border, int(rows.group[-1]), _first_fixed(rows)
    ends, steps = rows.ends[first:last], -np.diff(rows.values[first : last + 1])
    sizes, weight = np.diff(rows.ends[first : last + 1]), float(rows.weights.sum())
    left, shares, total = rows.weights, np.ones(max(last - first, 0)), 0.0
    for number in range(rows.k - 1, -1, -1):
        run = rows.runs[number]
        # Bounds up to which nothing below rank k is chosen add nothing, here or in any row before this one.
        reaching = slice(run.start + int(rows.group[run].searchsorted(first, side="right")), run.stop)
        group, choices, lengths = rows.group[reaching] - first, rows.choices[reaching], rows.lengths[reaching]
        if not len(group):
            break
        reach, most = int(group[-1]), choices[-1]
        shares, within = shares[:reach], ends[:reach] - number
        if number >= fixed:
            added = weight * float(steps[:reach] @ (shares * (most - within))) / most
        else:
            table = np.zeros(reach + 1)
            np.cumsum(sizes[:reach] * np.cumsum(steps[:reach] * shares), out=table[1:])
            left = left[int(rows.start[reaching.start]) - len(rows) :] * (most / choices).repeat(lengths)
            added = float(left @ table[group].repeat(lengths)) / most
        total += added
        if most * added < _NEGLIGIBLE * total:
            break
        shares = shares * (within / most)
    return total
