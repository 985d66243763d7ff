"""The two integrals of h against an exponential density that all costs are made of.

With rate ε and `H(u) = h(u/ε)`, in units of 1/ε:

* `ahead(start, stop) = ∫_start^stop H(v) e^{−(v − start)} dv`
* `behind(x) = ∫_0^x H(v) e^{−(x − v)} dv`

Closed forms for h(t) = t; otherwise quadrature between powers of 2, which follows kinks and roots at 0. Each piece is
computed to a relative error of at most 1e-10, so their sums, being positive, are too.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable
from functools import lru_cache
from itertools import pairwise

import numpy as np

from dpselect._numbers import positive_number
from dpselect.errors import InvalidInput, plain
from dpselect.multiselect.disutility import Disutility, check_increasing

TOLERANCE = 1e-10
"""Relative error of each piece of quadrature."""

_AIM = 1e-12
_REACH = 740.0
"""Beyond this many units of 1/ε an exponential density is 0 in floating point."""
_EDGES = [0.0, *(2.0**power for power in range(-40, 10))]


def checked_rate(epsilon: object) -> float:
    """Return ε as a float, if distances of the order 1/ε and their squares are floats too."""
    rate = positive_number("epsilon", epsilon)
    if 1e-150 <= rate <= 1e150:
        return rate
    raise InvalidInput("epsilon", epsilon, "a number between 1e-150 and 1e150 is needed")


class Moments:
    """The integrals for one disutility h and one rate ε."""

    def __init__(self, disutility: Disutility, rate: float) -> None:
        self._rate = rate
        self._function = disutility.function
        self._linear = disutility.is_distance
        if not self._linear:
            check_increasing(disutility, np.array(_EDGES) / rate)
        self._edge_behind = lru_cache(maxsize=None)(self._behind_edge)
        self._ahead_piece = lru_cache(maxsize=1000)(self._piece_ahead)

    def value(self, x: float) -> float:
        """Return H(x)."""
        return float(self._function(np.array([x / self._rate]))[0])

    def ahead(self, start: float, stop: float) -> float:
        """Return `∫_start^stop H(v) e^{−(v − start)} dv`; `stop` may be infinite."""
        if self._linear:
            rest = 0.0 if math.isinf(stop) else (stop + 1) * math.exp(start - stop)
            return (start + 1 - rest) / self._rate
        reach = min(stop, start + _REACH)
        pieces = [
            self._ahead_piece(start, low, high) for low, high in _cut(start, reach, [start + edge for edge in _EDGES])
        ]
        total = math.fsum(pieces)
        if not (reach == stop or pieces[-1] <= TOLERANCE * total):
            raise InvalidInput(
                "disutility",
                plain("a function that grows as fast as the noise falls"),
                f"its expected value must be finite: it may grow like exp({0.9 * self._rate:g} t), not faster",
            )
        return total

    def behind(self, x: float) -> float:
        """Return `∫_0^x H(v) e^{−(x − v)} dv`."""
        if self._linear:
            return (x + math.expm1(-x)) / self._rate
        if x > _EDGES[-1]:
            pieces = _cut(max(0.0, x - _REACH), x, [x - edge for edge in _EDGES])
            return math.fsum(_integral(lambda v: self.value(v) * math.exp(v - x), *piece) for piece in pieces)
        place = bisect_right(_EDGES, x) - 1
        edge = _EDGES[place]
        rest = _integral(lambda v: self.value(v) * math.exp(v - x), edge, x) if x > edge else 0.0
        return self._edge_behind(place) * math.exp(edge - x) + rest

    def _piece_ahead(self, start: float, low: float, high: float) -> float:
        return _integral(lambda v: self.value(v) * math.exp(start - v), low, high)

    def _behind_edge(self, place: int) -> float:
        if place == 0:
            return 0.0
        low, high = _EDGES[place - 1], _EDGES[place]
        piece = _integral(lambda v: self.value(v) * math.exp(v - high), low, high)
        return float(self._edge_behind(place - 1)) * math.exp(low - high) + piece


def _cut(start: float, stop: float, more: list[float]) -> list[tuple[float, float]]:
    """Return [start, stop] in pieces, cut at the powers of 2 and at more places."""
    cuts = sorted({start, stop, *(edge for edge in [*_EDGES, *more] if start < edge < stop)})
    return list(pairwise(cuts))


def _integral(function: Callable[[float], float], low: float, high: float) -> float:
    """Return the integral of a function over a short interval."""
    from scipy.integrate import quad

    with np.errstate(all="ignore"):
        value, error, *_ = quad(function, low, high, epsabs=0.0, epsrel=_AIM, limit=200, full_output=1)
    if not (math.isfinite(value) and error <= TOLERANCE * abs(value) + 1e-300):
        raise InvalidInput(
            "disutility",
            plain("a function that cannot be integrated"),
            "a continuous, increasing function is needed that grows more slowly than the noise falls",
        )
    return float(value)
