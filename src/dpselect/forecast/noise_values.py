"""Values of a noise at many places at once, and groups merged where a rough sum is enough."""

from __future__ import annotations

import numpy as np

from dpselect.forecast.chances import FloatArray
from dpselect.sampling.laws import Distribution

_WIDTH = 0.25
_LARGEST = 1e300
_NEAR = 0.25


def values_at(noise: Distribution, x: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return F, S = 1 − F and f at x; the three share their exponentials."""
    if noise.name == "exponential":
        ahead = np.maximum(x, 0.0)
        survival = np.exp(-ahead)
        cdf, near = 1.0 - survival, ahead < _NEAR
        cdf[near] = -np.expm1(-ahead[near])
        return cdf, survival, np.where(x < 0, 0.0, survival)
    if noise.name == "gumbel":
        reach = np.minimum(np.exp(-x), _LARGEST)
        cdf = np.exp(-reach)
        return cdf, -np.expm1(-reach), reach * cdf
    if noise.name == "laplace":
        density = 0.5 * np.exp(-np.abs(x))
        larger, before = 1.0 - density, x < 0
        return np.where(before, density, larger), np.where(before, larger, density), density
    return noise.cdf(x), noise.survival(x), noise.density(x)


def merged(locations: FloatArray, sizes: FloatArray, costs: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return fewer groups for rough sums: those within a quarter of an e-fold become one, with the same `Σ m e^a`.

    Costs become means with the weights `m e^a`. Sums of S are bounded from above: with `t = e^{a − z}`, S is concave in
    t for the noises that have a series (log_series), and the mean of t is kept.
    """
    bins = np.floor(locations / _WIDTH)
    starts = np.flatnonzero(np.append(True, bins[1:] != bins[:-1])) if len(bins) else np.empty(0, dtype=np.intp)
    if 2 * len(starts) > len(locations):
        return locations, sizes, costs
    bases = locations[starts]
    weights = sizes * np.exp(locations - np.repeat(bases, np.diff(np.append(starts, len(bins)))))
    together, number = np.add.reduceat(weights, starts), np.add.reduceat(sizes, starts)
    return bases + np.log(together / number), number, np.add.reduceat(weights * costs, starts) / together
