"""The radius r at which about so many items are expected above z; notation as in contour.py."""

from __future__ import annotations

import numpy as np

from dpselect._arrays import FloatArray

FARTHEST = 250.0
_NEWTONS, _MOST_NEWTONS, _NEAR = 2, 6, 0.3
_SLACK = 0.25


def tilted(
    below: FloatArray,
    above: FloatArray,
    sizes: FloatArray,
    wanted: FloatArray | float,
    least: tuple[int, float] | None = None,
) -> FloatArray:
    """Return log r at which the tilted number of items above z is about the one wanted; `below` and `above` are [i, z].

    `least` says of one group that so many of it are above z in any case.
    """
    if least is None and sizes.ndim == 1 and np.ndim(wanted) == 0:
        return _tilted_alone(below, above, sizes, float(wanted))
    low, high = np.full((2, below.shape[1]), ((-FARTHEST,), (FARTHEST,)))
    return _halved(below, above, sizes, wanted, low, high, least)


def _tilted_alone(below: FloatArray, above: FloatArray, sizes: FloatArray, wanted: float) -> FloatArray:
    """Return the same for groups of falling S.

    It is about the odds of the group of that rank. From there by Newton's method for the logarithm of the odds of the
    number above z, which is a straight line if all are alike; where that fails, by halving.
    """
    ends = np.cumsum(sizes)
    group, total = int(np.searchsorted(ends, wanted)), float(ends[-1])
    if not 0 < wanted < total:
        return _halved(below, above, sizes, wanted, *_between(below, above, ends, wanted))
    log_odds = np.log(below[group] / above[group])
    if len(sizes) == 1:
        log_odds += np.log(wanted / (total - wanted))
    log_radius: FloatArray = np.clip(log_odds, -FARTHEST, FARTHEST)
    if len(sizes) == 1:
        return log_radius
    # Of a large tie the radius may be far from the odds of each.
    hopeless = np.abs(log_odds) >= FARTHEST
    if hopeless.any():
        low, high = _between(below[:, hopeless], above[:, hopeless], ends, wanted)
        hopeless[hopeless] = (low == FARTHEST) | (high == -FARTHEST)
    near = _NEAR * min(wanted, total - wanted, 1.0)
    for _ in range(_MOST_NEWTONS):
        shares = _shares(below, above, log_radius)
        number = sizes @ shares
        spread = number - sizes @ (shares * shares)
        odds = number / (total - number) * ((total - wanted) / wanted)
        step = np.log(odds) * (number * (total - number)) / (total * spread)
        log_radius = np.where(hopeless, log_radius, log_radius - step)
        close = hopeless | (np.abs(number - wanted) <= near)
        if close.all():
            return log_radius
    off = ~close
    bounds = _between(below[:, off], above[:, off], ends, wanted)
    log_radius[off] = _halved(below[:, off], above[:, off], sizes, wanted, *bounds)
    return log_radius


def _shares(below: FloatArray, above: FloatArray, log_radius: FloatArray) -> FloatArray:
    """Return the tilted chances."""
    raised = above * np.exp(log_radius)
    raised /= below + raised
    return raised


def _halved(
    below: FloatArray,
    above: FloatArray,
    sizes: FloatArray,
    wanted: FloatArray | float,
    low: FloatArray,
    high: FloatArray,
    least: tuple[int, float] | None = None,
) -> FloatArray:
    """Return log r between bounds."""

    def mean(shares: FloatArray) -> FloatArray:
        result: FloatArray = sizes @ shares if sizes.ndim == 1 else (sizes * shares).sum(axis=0)
        return result

    def lack(shares: FloatArray) -> FloatArray:
        if least is not None:
            group, number = least
            shares[group] = np.maximum(shares[group], number / sizes[group])
        return wanted - mean(shares)

    while (high - low).max(initial=0.0) > 1.0:
        middle = (low + high) / 2
        short = lack(_shares(below, above, middle)) > 0
        low, high = np.where(short, middle, low), np.where(short, high, middle)
    middle = (low + high) / 2
    for _ in range(_NEWTONS):
        shares = _shares(below, above, middle)
        spread = mean(shares * (1 - shares))
        middle = np.clip(middle + lack(shares) / spread, low, high)
    return middle


def _between(below: FloatArray, above: FloatArray, ends: FloatArray, wanted: float) -> tuple[FloatArray, FloatArray]:
    """Return bounds on log r for groups of falling S, from the odds `F/S` of two of them; `ends` are sums of sizes.

    Let n be the number wanted, N that of all items and δ < 1. If fewer than n − δ items are in the groups before one of
    odds o, at `r = o δ / N` the others add less than δ, as `p <= r / odds`. If more than n + δ are in the groups up to
    one, m of them, at `r = o m / δ` no more than δ of these are missing, as `1 − p <= odds / r`.
    """
    first, last = np.searchsorted(ends, (wanted - _SLACK, wanted + _SLACK)).tolist()
    low, high = np.full((2, below.shape[1]), ((-FARTHEST,), (FARTHEST,)))
    if wanted > _SLACK and first < len(ends):
        low = np.log(below[first] / above[first]) - float(np.log(ends[-1] / _SLACK))
    if last < len(ends):
        high = np.log(below[last] / above[last]) + float(np.log(ends[last] / _SLACK))
    return np.clip(low, -FARTHEST, FARTHEST), np.clip(high, -FARTHEST, FARTHEST)
