"""The stationary distribution of a walk, with an error that was certified before it is used."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dpselect._arrays import FloatArray
from dpselect.ranking.matrix import Walk
from dpselect.ranking.sensitivity import Bounds


def stationary(walk: Walk, bounds: Bounds, progress: Callable[[float | None], Any] | None = None) -> FloatArray:
    """Return π with `π = (1 − α) π P + α/d`, or `π = π P` with a promise, up to τ = bounds.tolerance(d) in L1.

    Power iteration from the uniform distribution. It ends when the last step certifies the error, and at the latest
    after so many steps that the contraction does, so it never fails, whatever the data (ranking.md).
    """
    size, damped = walk.size, bounds.promised_rho is None
    matrix, stays = walk.into_winners, (walk.denominator - walk.lost).astype(np.float64)
    afresh, kept = (bounds.damping / size, 1 - bounds.damping) if damped else (0.0, 1.0)
    current, enough = np.full(size, 1 / size), bounds.largest_residual(size)
    for _ in range(bounds.steps(size)):
        moved = matrix @ current
        moved += current * stays
        moved /= walk.denominator
        moved *= kept
        moved += afresh
        residual = float(np.abs(moved - current).sum())
        current = moved
        if residual <= enough:
            break
        if progress is not None:
            progress(None)
    return current
