"""The chance of given answers of tests that share a noisy threshold; for small domains.

A test passes when `a_i + ν_i > ρ`: ν_i and ρ are independent standard Laplace variables, with density f, distribution
function F and survival function S.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from itertools import pairwise
from math import ceil

import numpy as np

from dpselect.sampling.noise import NOISES

NODES = 20
TAIL = 50.0
FARTHEST = 700.0
"""Margins beyond this are cut: a chance of e^{−700} is far below what matters, and above the smallest float."""

_LAPLACE = NOISES["laplace"]


def chance_of(passed: Iterable[float], failed: Iterable[float]) -> float:
    """Return `∫ f(z) Π_{i passed} S(z − a_i) Π_{j failed} F(z − a_j) dz` for margins a; −∞ never passes.

    Relative error about 1e-11: every term is positive, and the integrand is smooth between its kinks, 0 and the a_i.
    """
    kept = tuple(sorted(max(-FARTHEST, min(margin, FARTHEST)) if margin > -np.inf else -np.inf for margin in passed))
    if kept and kept[0] == -np.inf:
        return 0.0
    stopped = tuple(sorted(max(-FARTHEST, min(margin, FARTHEST)) for margin in failed if margin > -np.inf))
    return _chance(kept, stopped)


@lru_cache(maxsize=1 << 16)
def _chance(passed: tuple[float, ...], failed: tuple[float, ...]) -> float:
    kinks = sorted({0.0, *passed, *failed})
    breaks = [kinks[0] - TAIL, *kinks, kinks[-1] + TAIL]
    pieces = [np.linspace(left, right, ceil(right - left), endpoint=False) for left, right in pairwise(breaks)]
    edges = np.append(np.concatenate(pieces), breaks[-1])
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    half = (edges[1:] - edges[:-1]) / 2.0
    z = ((edges[1:] + edges[:-1]) / 2.0)[:, None] + half[:, None] * nodes
    heights = half[:, None] * weights * _LAPLACE.density(z)
    for margin in passed:
        heights = heights * _LAPLACE.survival(z - margin)
    for margin in failed:
        heights = heights * _LAPLACE.cdf(z - margin)
    return float(heights.sum())
