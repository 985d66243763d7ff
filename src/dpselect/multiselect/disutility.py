"""How much it hurts a user to get a result at distance t from what they wanted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from dpselect._arrays import FloatArray
from dpselect._numbers import positive_number
from dpselect.errors import InvalidInput, plain

NAMES = ("linear", "square", "root", "capped:LIMIT")
_ACCEPTED = f"{', '.join(NAMES[:-1])}, {NAMES[-1]}, or an increasing function h of an array with h(0) = 0 is needed"
_SAMPLES = np.concatenate([[0.0], 2.0 ** np.arange(-30, 10.25, 0.25)])
"""The distances at which a function is checked to be increasing."""


@dataclass(frozen=True)
class Disutility:
    """An increasing function h of distances t >= 0 with h(0) = 0.

    `name` says which, `function` computes it on arrays. It is checked at 162 distances between 0 and 2¹⁰, not proven:
    the costs computed from a function that falls somewhere between them mean nothing. Source: multi-selection,
    section 1.1.3, conditions (2) and (3).
    """

    name: str
    function: Callable[[FloatArray], Any] = field(repr=False)

    def __post_init__(self) -> None:
        """Refuse a function that is not increasing from h(0) = 0."""
        check_increasing(self, _SAMPLES)

    @property
    def is_distance(self) -> bool:
        """Whether h(t) = t, which has closed forms; a function may be called linear and be another."""
        return self.function is _same

    def __call__(self, distance: npt.ArrayLike) -> FloatArray:
        """Return h at each distance."""
        distances = np.asarray(distance, dtype=np.float64)
        with np.errstate(all="ignore"):
            values = np.asarray(self.function(distances), dtype=np.float64)
        if values.shape != distances.shape:
            raise InvalidInput("disutility", plain("a function that changes the shape of its array"), _ACCEPTED)
        return values


def check_increasing(disutility: Disutility, distances: FloatArray) -> None:
    """Refuse h where its values at sorted distances, the first of them 0, do not rise from h(0) = 0."""
    try:
        values = disutility(distances)
    except InvalidInput:
        raise
    except Exception as error:
        raise InvalidInput("disutility", plain(f"a function that fails ({type(error).__name__})"), _ACCEPTED) from None
    if np.isnan(values).any() or values[0] != 0:
        raise InvalidInput("disutility", plain("a function that is not a number, or not 0 at 0"), _ACCEPTED)
    if (values[1:] < values[:-1]).any() or values[-1] <= 0:
        raise InvalidInput("disutility", plain("a function that does not increase"), _ACCEPTED)


def as_disutility(given: object) -> Disutility:
    """Return the disutility of that name, of a function, or as it is."""
    if isinstance(given, Disutility):
        return given
    if isinstance(given, str):
        return _named(given)
    if callable(given):
        return Disutility(str(getattr(given, "__name__", "custom")), given)
    raise InvalidInput("disutility", given, _ACCEPTED)


def _same(distance: FloatArray) -> FloatArray:
    return distance


def _named(name: str) -> Disutility:
    if name == "linear":
        return Disutility(name, _same)
    if name == "square":
        return Disutility(name, np.square)
    if name == "root":
        return Disutility(name, np.sqrt)
    kind, _, text = name.partition(":")
    if kind == "capped":
        try:
            limit = positive_number("disutility", float(text))
        except ValueError:  # also an InvalidInput
            raise InvalidInput("disutility", name, "capped:LIMIT needs a positive limit, as in capped:2.5") from None
        return Disutility(name, lambda distance: np.minimum(distance, limit))
    raise InvalidInput("disutility", name, _ACCEPTED)
