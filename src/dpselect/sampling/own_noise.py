"""A user's own noise: how its functions are read, what a grid can check of them, and draws that assume nothing more.

The float stage of `top_k` needs error bounds that are proven for the noises of this package. A user's noise has none,
so that noisy scores are compared either in floats, which is not exact, or all in ball arithmetic, which is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dpselect._arrays import FloatArray, IndexArray
from dpselect.errors import InvalidInput, plain
from dpselect.sampling.balls import Draw, Entrant, ball, rational, sort_exactly, working_precision
from dpselect.sampling.bits import BitSource
from dpselect.sampling.bounds import Field
from dpselect.sampling.noise import LOG_2, Noise

WORD = 64
"""Bits drawn at a time for each noise."""

METHODS = ("cdf", "sf", "ppf", "isf", "pdf")
"""What a noise must have, as frozen distributions of scipy.stats do: F, 1 − F, their inverses, and the density."""

STEEPEST = 1 + 1e-6
"""Largest slope of −log(1 − F) that passes; the excess allows for rounding errors."""

_ACCURATE = 1e-9
"""Points whose 1 − F is off by more than this, relatively, are left out of the check of slopes."""

_NEEDED = 1e-6
"""Between these two tails, distribution and inverse must agree everywhere."""


def noise_name(given: Any) -> str:
    """Return the name of a noise: its own, that of its scipy distribution with arguments, or that of its class."""
    own = getattr(given, "name", None)
    if isinstance(own, str):
        return own
    distribution = getattr(getattr(given, "dist", None), "name", None)
    if not isinstance(distribution, str):
        return type(given).__name__
    words = [*map(str, given.args), *(f"{name}={value}" for name, value in given.kwds.items())]
    return distribution + (f"({', '.join(words)})" if words else "")


def adapted(given: Any) -> tuple[Noise, bool]:
    """Return a user's noise as a `Noise`, and whether it has an inverse in ball arithmetic."""
    if isinstance(given, Noise):
        return given, True
    missing = [name for name in METHODS if not callable(getattr(given, name, None))]
    if missing or isinstance(given, type):
        raise InvalidInput(
            "noise",
            given,
            f"must be an object with the methods {', '.join(METHODS)}, such as scipy.stats.hypsecant(), or a "
            "dpselect.sampling.Noise; for a noise by its name use OneShot",
        )
    support = given.support() if callable(getattr(given, "support", None)) else (-np.inf, np.inf)
    infimum = float(support[0])
    kinks = {float(kink) for kink in getattr(given, "kinks", ())} | ({infimum} if np.isfinite(infimum) else set())
    in_balls = getattr(given, "ball_quantile", None)

    def quantile(exponent: FloatArray) -> FloatArray:
        """F⁻¹(exp(−E)): in the upper half from 1 − exp(−E), so that large noises do not cancel."""
        upper = given.isf(-np.expm1(-np.minimum(exponent, LOG_2)))
        result: FloatArray = np.where(exponent > LOG_2, given.ppf(np.exp(-np.maximum(exponent, LOG_2))), upper)
        return result

    noise = Noise(
        f"own {noise_name(given)}",
        quantile=quantile,
        ball_quantile=in_balls if callable(in_balls) else _no_balls,
        cdf=lambda z: np.asarray(given.cdf(z), dtype=np.float64),
        survival=lambda z: np.asarray(given.sf(z), dtype=np.float64),
        density=lambda z: np.asarray(given.pdf(z), dtype=np.float64),
        infimum=infimum,
        kinks=tuple(sorted(kinks)),
    )
    return noise, callable(in_balls)


def _no_balls(exponent: Any) -> Any:
    raise InvalidInput("noise", plain("it has no ball_quantile"), "must have an inverse in ball arithmetic")


def check_lipschitz(noise: Noise, name: str) -> None:
    """Raise InvalidInput for a noise whose log(1 − F) is visibly not 1-Lipschitz, or whose functions do not agree.

    Slopes are measured between neighbouring points of a grid: at 2,000 quantiles as far into the tails as 1 − F is
    accurate, at best to 1e-300, and at 20,000 equidistant points between the outermost millionths. A grid can refute
    the condition; it cannot prove it.
    """
    exponents = np.concatenate([np.geomspace(1e-300, 1.0, 1800), np.linspace(1.0, 700.0, 201)[1:]])
    with np.errstate(all="ignore"):
        points = np.asarray(noise.quantile(exponents), dtype=np.float64)
        tails, found = -np.expm1(-exponents), noise.survival(points)
        # Where 1 − F is near 1, its complement has the digits.
        close = np.abs(np.log(found) - np.log(tails)) <= _ACCURATE
        close |= (exponents > LOG_2) & (np.abs(noise.cdf(points) - np.exp(-exponents)) <= _ACCURATE)
    needed = (tails >= _NEEDED) & (tails <= 1 - _NEEDED)
    astray = needed & ~(close & np.isfinite(points))
    if astray.any():
        where = float(tails[astray][0])
        raise InvalidInput(
            "noise",
            plain(name),
            f"must have an isf that is the inverse of sf, and ppf of cdf; not so at sf = {where:.3g}",
        )
    middle = points[needed]
    grid = np.unique(
        np.concatenate([points[close & np.isfinite(points)], np.linspace(middle.min(), middle.max(), 20_000)])
    )
    with np.errstate(all="ignore"):
        below, above = noise.cdf(grid), noise.survival(grid)
        log_survival = np.where(above > 0.5, np.log1p(-below), np.log(above))
        steps = np.diff(grid)
        slopes = (-np.diff(log_survival) - 2 * _ACCURATE) / steps
        slopes = np.maximum(slopes, noise.density(grid[1:]) / above[1:])
    steep = ~(slopes <= STEEPEST)  # also where a function returns NaN
    if steep.any():
        first, worst = int(np.argmax(steep)), int(np.argmax(np.nan_to_num(slopes, nan=np.inf)))
        raise InvalidInput(
            "noise",
            plain(name),
            "must have a 1-Lipschitz log(1 - F), which falls by at most 1 per unit; here it falls by "
            f"{slopes[first]:.7g} near {grid[first + 1]:.4g} and by {slopes[worst]:.7g} near {grid[worst + 1]:.4g}",
        )


def check_ball_quantile(noise: Noise, name: str) -> None:
    """Raise InvalidInput for an inverse in balls that is wide, or far from the inverse in floats, at some exponents."""
    for exponent in (2.0**-60, 2.0**-20, 0.125, 0.5, 1.0, 4.0, 30.0):
        expected = float(noise.quantile(np.array([exponent]))[0])
        with working_precision(256):
            found = noise.ball_quantile(ball(exponent))
            sharp = bool(found.is_finite()) and float(found.rad()) <= 2.0**-64 * (1 + abs(expected))
            middle = float(found.mid()) if sharp else np.nan
        if not abs(middle - expected) <= 1e-6 * (1 + abs(expected)):
            raise InvalidInput(
                "noise",
                plain(name),
                f"must have a ball_quantile that contains F^-1(exp(-E)); not so for E = {exponent:g}",
            )


def float_top_k(field: Field, noise: Noise, bits: BitSource) -> IndexArray:
    """Return the groups of the `field.winners` largest noisy values, compared in float64: not exact."""
    locations, sizes = field.locations(slice(None)), _sizes(field)
    limits = np.minimum(sizes, field.winners).astype(np.intp)
    exponents = np.zeros(len(locations))
    groups: list[IndexArray] = []
    noisy: list[FloatArray] = []
    for order in range(int(limits.max())):
        active = np.flatnonzero(limits > order)
        words = bits.integers(len(active), WORD)
        with np.errstate(divide="ignore"):
            exponents[active] += -np.log1p(-(words + 0.5) * 2.0**-WORD) / (sizes[active] - order).astype(np.float64)
        groups.append(active)
        noisy.append(locations[active] + noise.quantile(exponents[active]))
    values = np.concatenate(noisy)
    winners: IndexArray = np.concatenate(groups)[np.argpartition(-values, field.winners - 1)[: field.winners]]
    return winners


def ball_top_k(field: Field, noise: Noise, bits: BitSource, *, step: int = WORD) -> IndexArray:
    """Return the groups of the `field.winners` largest noisy values, compared in ball arithmetic: exact.

    The order statistics of a group of ties share its draws, as in `top_k`. Noises with equal locations and different
    draws differ, since F⁻¹ increases strictly where log(1 − F) is Lipschitz, so that the comparison ends.
    """
    entrants = []
    for group, size in enumerate(_sizes(field).tolist()):
        limit = min(size, field.winners)
        draws, divisors = [Draw(0, 0) for _ in range(limit)], [rational(size - earlier) for earlier in range(limit)]
        magnitude = int(field.exact_location(group)).bit_length()
        location: Callable[[int], Any] = field.location_ball(group)
        entrants += [
            Entrant(group, location, draws[: order + 1], divisors[: order + 1], noise, magnitude)
            for order in range(limit)
        ]
    return np.array([entrant.key for entrant in sort_exactly(entrants, bits, step)[: field.winners]], dtype=np.intp)


def _sizes(field: Field) -> Any:
    """Return how many entrants each value stands for."""
    return np.ones(len(field.values), dtype=np.int64) if field.multiplicities is None else field.multiplicities
