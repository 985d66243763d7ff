"""Values of a noise at many places at once, and groups merged where a rough sum is enough."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from dpselect._arrays import FloatArray
from dpselect.sampling.laws import Distribution

Values = Callable[[FloatArray, FloatArray], tuple[FloatArray, FloatArray, FloatArray]]

_WIDTH, _WIDTH_NORMAL = 0.25, 0.1
_LARGEST, _LARGEST_LOG = 1e300, 690.0
_NEAR = 0.25
_WIDEST = 200.0
_FARTHEST, _FARTHEST_NORMAL, _DEEPEST_GUMBEL = 50.0, 10.0, 4.1


def farthest(noise: Distribution, number: float = 1.0) -> float:
    """Return what the largest of so many noises exceeds with a chance of no more than some e^−50."""
    if noise.name == "normal":
        return math.sqrt(_FARTHEST_NORMAL**2 + 2 * math.log(number))
    return _FARTHEST + math.log(number)


def deepest(noise: Distribution) -> float:
    """Return how far below 0 noise is with a chance, and a density, of no more than some e^−50."""
    return {"gumbel": _DEEPEST_GUMBEL, "normal": _FARTHEST_NORMAL}.get(noise.name, _FARTHEST)


def log_normal(x: FloatArray) -> FloatArray:
    """Return log F of normal noise to all digits, by a function of its own, which is faster than from F and S."""
    from scipy.special import log_ndtr

    result: FloatArray = log_ndtr(x)
    return result


def values_at(noise: Distribution, z: FloatArray, locations: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return F, S = 1 − F and f at z − a as [group, z]; the three share `t = e^{a − z}`, and it its factors.

    Locations a are [group], or [group, z].
    """
    if noise.name == "gumbel":
        t = _falling(z, locations)
        cdf = np.exp(-t)
        survival = _gumbel_survival(t, cdf, int(z.argmax())) if locations.ndim == 1 and t.size else -np.expm1(-t)
        return cdf, survival, t * cdf
    if noise.name == "logistic":
        t = _falling(z, locations)
        cdf = 1.0 / (1.0 + t)
        survival = t * cdf
        return cdf, survival, cdf * survival
    if noise.name == "laplace":
        return _by_side(z, locations, _laplace, 0.5)
    if noise.name == "exponential":
        return _by_side(z, locations, _exponential, 1.0)
    if noise.name == "half-logistic":
        cdf, survival, density = _by_side(z, locations, _exponential, 1.0)
        whole = 1.0 + survival
        return cdf / whole, 2.0 * survival / whole, 2.0 * density / whole**2
    x = z - (locations[:, None] if locations.ndim == 1 else locations)
    if noise.name == "normal":
        return *_normal(noise, x), noise.density(x)
    return noise.cdf(x), noise.survival(x), noise.density(x)


def chances_at(noise: Distribution, z: FloatArray, locations: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return F and S alone, for locations [group]; of normal noise that is shorter."""
    if noise.name == "normal":
        return _normal(noise, z - locations[:, None])
    cdf, survival, _ = values_at(noise, z, locations)
    return cdf, survival


def _normal(noise: Distribution, x: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return F and S of normal noise: it is symmetric, and one tail tells both."""
    if x.size and float(x.min()) >= 0:
        tail = noise.cdf(-x)
        return 1.0 - tail, tail
    tail = noise.cdf(-np.abs(x))
    rest, before = 1.0 - tail, x < 0
    return np.where(before, tail, rest), np.where(before, rest, tail)


def _by_side(
    z: FloatArray, locations: FloatArray, values: Values, scale: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return values of a noise with `S = f = scale · e^{a − z}` some way behind a, by the shorter way there."""
    if locations.ndim == 2 or not len(z):
        return values(z, locations)
    first = int(np.searchsorted(-locations, _NEAR - float(z.min())))
    near, tail = values(z, locations[:first]), _falling(z, locations[first:])
    if scale != 1.0:
        tail *= scale
    if not first:
        return 1.0 - tail, tail, tail
    return np.concatenate([near[0], 1.0 - tail]), np.concatenate([near[1], tail]), np.concatenate([near[2], tail])


def _laplace(z: FloatArray, locations: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    t, before = _falling(z, locations), z < (locations[:, None] if locations.ndim == 1 else locations)
    density = 0.5 * np.minimum(t, 1.0 / t)
    larger = 1.0 - density
    return np.where(before, density, larger), np.where(before, larger, density), density


def _exponential(z: FloatArray, locations: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    survival = np.minimum(_falling(z, locations), 1.0)
    near = z - (locations[:, None] if locations.ndim == 1 else locations)
    cdf, places = 1.0 - survival, near < _NEAR
    cdf[places] = -np.expm1(-np.maximum(near[places], 0.0))
    return cdf, survival, np.where(near < 0, 0.0, survival)


def _gumbel_survival(t: FloatArray, cdf: FloatArray, highest: int) -> FloatArray:
    """Return `1 − e^{−t}`, by the slower way only for groups whose t is small at the highest z."""
    survival = 1.0 - cdf
    first = int((t[:, highest] >= _NEAR).sum())
    np.negative(np.expm1(-t[first:]), out=survival[first:])
    return survival


def _falling(z: FloatArray, locations: FloatArray) -> FloatArray:
    """Return `e^{a − z}`, not infinite; from few exponentials, unless z are too far apart for that."""
    if not z.size or not locations.size:
        return np.empty((len(locations), len(z)))
    lowest = float(z.min())
    if locations.ndim == 2 or float(z.max()) - lowest > _WIDEST:
        result: FloatArray = np.exp((locations[:, None] if locations.ndim == 1 else locations) - z)
    else:
        result = np.multiply.outer(np.exp(locations - z[0]), np.exp(z[0] - z))
        if float(locations.max()) - lowest < _LARGEST_LOG:
            return result
    return np.minimum(result, _LARGEST, out=result)


def merged(
    noise: Distribution, locations: FloatArray, sizes: FloatArray, costs: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return fewer groups for rough sums: those within a quarter of an e-fold become one, with the same `Σ m e^a`.

    Costs become means with the weights `m e^a`. Sums of S are bounded from above: with `t = e^{a − z}`, S is concave in
    t for the noises that have a series (log_series), and the mean of t is kept. With normal noise it is groups within a
    tenth of a deviation; S of those that are spread evenly changes by less than 5 % as far as `farthest`.
    """
    bins = np.floor(locations / (_WIDTH_NORMAL if noise.name == "normal" else _WIDTH))
    starts = np.flatnonzero(np.append(True, bins[1:] != bins[:-1])) if len(bins) else np.empty(0, dtype=np.intp)
    if 2 * len(starts) > len(locations):
        return locations, sizes, costs
    bases = locations[starts]
    weights = sizes * np.exp(locations - np.repeat(bases, np.diff(np.append(starts, len(bins)))))
    together, number = np.add.reduceat(weights, starts), np.add.reduceat(sizes, starts)
    return bases + np.log(together / number), number, np.add.reduceat(weights * costs, starts) / together
