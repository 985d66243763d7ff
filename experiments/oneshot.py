"""How likely one-shot selection with exponential noise is to return exactly the top k."""

from __future__ import annotations

import numpy as np

from dpselect.forecast.chances import least_epsilon
from experiments.data import Counts

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(12)
_REACH = 45.0


def oneshot_chance(counts: Counts, k: int, epsilon: float) -> float:
    """Return P[exact top-k] for counts, highest first.

    With locations `a = x ε / k`, the noisy scores of the top set all exceed z with probability
    `H(z) = exp(−Σ_{i<=k} max(z − a_i, 0))`, the others all stay below it with `G(z) = Π_{j>k} (1 − e^{−(z − a_j)})`.
    The chance is `∫ G(z) d(1 − H(z))`, and H is 1 up to a_[k], from which z is measured.
    """
    rate = epsilon / k
    top = rate * (counts[:k] - counts[k - 1])[::-1]
    lower, held = np.unique(counts[k - 1] - counts[k:], return_counts=True)
    ends = np.unique(np.concatenate([np.arange(0.0, _REACH, 0.5), top[top < _REACH], [_REACH]]))
    half = np.diff(ends)[:, None] / 2
    z = (ends[:-1, None] + half * (1 + _NODES)).ravel()
    reached = np.searchsorted(top, z)
    log_above = np.concatenate([[0.0], np.cumsum(top)])[reached] - reached * z
    log_below = np.array([np.log1p(-np.exp(-(place + rate * lower))) @ held for place in z])
    return float((half * _WEIGHTS).ravel() @ (reached * np.exp(log_above + log_below)))


def oneshot_epsilon(counts: Counts, k: int, wanted: float, near: float) -> float:
    """Return the ε at which the chance is as wanted."""
    return least_epsilon(lambda epsilon: oneshot_chance(counts, k, epsilon), wanted, near)
