"""What a distance costs a user, and the integrals of that cost against an exponential density.

All expected costs are made of two integrals. With rate ε and `H(u) = h(u/ε)`, in units of 1/ε:

* `ahead(start, stop) = ∫_start^stop H(v) e^{−(v − start)} dv`
* `behind(x) = ∫_0^x H(v) e^{−(x − v)} dv`

For h(t) = t they have closed forms. Otherwise they are computed by quadrature between powers of 2, which resolves kinks
and roots near 0. Each piece has a relative error of at most 1e-10; the pieces are positive, so their sum has too.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from dpselect._arrays import FloatArray
from dpselect._numbers import positive_number
from dpselect.errors import InvalidInput, plain

REQUIREMENT = "must be linear, square, root, capped:LIMIT, or an increasing function h of an array with h(0) = 0"

TOLERANCE = 1e-10
"""Largest relative error of each piece of quadrature."""

_REQUESTED_ERROR = 1e-12
_SAMPLES = np.concatenate([[0.0], 2.0 ** np.arange(-30, 10.25, 0.25)])
"""Distances at which a function is checked to be increasing."""
_REACH = 740.0
"""Distance, in units of 1/ε, beyond which an exponential density is 0 in floating point."""
_EDGES = [0.0, *(2.0**power for power in range(-40, 10))]


@dataclass(frozen=True)
class Disutility:
    """An increasing function h of distances t >= 0 with h(0) = 0: what a result at distance t costs the user.

    The function is checked at 162 distances from 0 to 2¹⁰. If it decreases between them, the costs computed from it are
    meaningless. Source: multi-selection, section 1.1.3, conditions (2) and (3).

    Parameters
    ----------
    name
        Name of the function, for display.
    function
        Computes h at each entry of an array.

    Raises
    ------
    InvalidInput
        If the function is not 0 at 0 or not increasing at one of the distances checked.

    Examples
    --------
    >>> from dpselect.multiselect import Disutility
    >>> cubic = Disutility("cubic", lambda distance: distance**3)
    >>> cubic([1, 2]).tolist()
    [1.0, 8.0]
    """

    name: str
    function: Callable[[FloatArray], Any] = field(repr=False)

    def __post_init__(self) -> None:
        """Refuse a function that is not increasing from h(0) = 0."""
        check_increasing(self, _SAMPLES)

    @property
    def is_distance(self) -> bool:
        """Whether h(t) = t, for which there are closed forms. The name alone does not decide this."""
        return self.function is _identity

    def __call__(self, distance: npt.ArrayLike) -> FloatArray:
        """Return h at each distance."""
        distances = np.asarray(distance, dtype=np.float64)
        with np.errstate(all="ignore"):
            values = np.asarray(self.function(distances), dtype=np.float64)
        if values.shape != distances.shape:
            raise _refused("a function that changes the shape of its array")
        return values


def as_disutility(given: object) -> Disutility:
    """Return a disutility from its name or function.

    Parameters
    ----------
    given
        "linear" (the distance itself), "square", "root", "capped:LIMIT", an increasing function of an array, or a
        Disutility, which is returned unchanged.

    Returns
    -------
    Disutility

    Raises
    ------
    InvalidInput
        If it is none of these.

    Examples
    --------
    >>> from dpselect.multiselect import as_disutility
    >>> as_disutility("capped:2.5")([1, 4]).tolist()
    [1.0, 2.5]
    """
    if isinstance(given, Disutility):
        return given
    if isinstance(given, str):
        return _named(given)
    if callable(given):
        return Disutility(str(getattr(given, "__name__", "custom")), given)
    raise InvalidInput("disutility", given, REQUIREMENT)


def check_increasing(disutility: Disutility, distances: FloatArray) -> None:
    """Refuse h unless its values at ascending distances, the first of them 0, increase from 0."""
    try:
        values = disutility(distances)
    except InvalidInput:
        raise
    except Exception as error:
        raise _refused(f"a function that fails ({type(error).__name__})") from None
    if np.isnan(values).any() or values[0] != 0:
        raise _refused("a function that is not a number, or not 0 at 0")
    if (values[1:] < values[:-1]).any() or values[-1] <= 0:
        raise _refused("a function that does not increase")


def _named(name: str) -> Disutility:
    if name == "linear":
        return Disutility(name, _identity)
    if name == "square":
        return Disutility(name, np.square)
    if name == "root":
        return Disutility(name, np.sqrt)
    kind, _, text = name.partition(":")
    if kind == "capped":
        try:
            limit = positive_number("disutility", float(text))
        except ValueError:  # also an InvalidInput
            raise InvalidInput("disutility", name, "must have a positive limit; for example capped:2.5") from None
        return Disutility(name, lambda distance: np.minimum(distance, limit))
    raise InvalidInput("disutility", name, REQUIREMENT)


def _identity(distance: FloatArray) -> FloatArray:
    return distance


def _refused(given: str) -> InvalidInput:
    return InvalidInput("disutility", plain(given), REQUIREMENT)


def checked_rate(epsilon: object) -> float:
    """Return ε as a float if distances of the order 1/ε and their squares are floats too."""
    rate = positive_number("epsilon", epsilon)
    if 1e-150 <= rate <= 1e150:
        return rate
    raise InvalidInput("epsilon", epsilon, "must be from 1e-150 to 1e150")


class Moments:
    """The two integrals for one disutility h and one rate ε."""

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
                f"must have a finite expected value; it may grow like exp({0.9 * self._rate:g} t), not faster",
            )
        return total

    def behind(self, x: float) -> float:
        """Return `∫_0^x H(v) e^{−(x − v)} dv`."""
        if self._linear:
            return (x + math.expm1(-x)) / self._rate
        if x > _EDGES[-1]:
            pieces = _cut(max(0.0, x - _REACH), x, [x - edge for edge in _EDGES])
            return math.fsum(_integral(lambda v: self.value(v) * math.exp(v - x), *piece) for piece in pieces)
        index = bisect_right(_EDGES, x) - 1
        edge = _EDGES[index]
        rest = _integral(lambda v: self.value(v) * math.exp(v - x), edge, x) if x > edge else 0.0
        return self._edge_behind(index) * math.exp(edge - x) + rest

    def _piece_ahead(self, start: float, low: float, high: float) -> float:
        return _integral(lambda v: self.value(v) * math.exp(start - v), low, high)

    def _behind_edge(self, index: int) -> float:
        if index == 0:
            return 0.0
        low, high = _EDGES[index - 1], _EDGES[index]
        piece = _integral(lambda v: self.value(v) * math.exp(v - high), low, high)
        return float(self._edge_behind(index - 1)) * math.exp(low - high) + piece


def _cut(start: float, stop: float, more: list[float]) -> list[tuple[float, float]]:
    """Cut [start, stop] at the powers of 2 and at the given points."""
    cuts = sorted({start, stop, *(edge for edge in [*_EDGES, *more] if start < edge < stop)})
    return list(pairwise(cuts))


def _integral(function: Callable[[float], float], low: float, high: float) -> float:
    """Return the integral of a function over a short interval."""
    from scipy.integrate import quad

    with np.errstate(all="ignore"):
        value, error, *_ = quad(function, low, high, epsabs=0.0, epsrel=_REQUESTED_ERROR, limit=200, full_output=1)
    if not (math.isfinite(value) and error <= TOLERANCE * abs(value) + 1e-300):
        raise InvalidInput(
            "disutility",
            plain("a function that cannot be integrated"),
            "must be continuous and increasing, and grow more slowly than the noise falls",
        )
    return float(value)
