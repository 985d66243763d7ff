"""A model of quality that a server may send to its users as plain numbers, so that their devices choose by it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpselect._arrays import FloatArray
from dpselect.errors import InvalidInput, plain
from dpselect.multiselect.vectors import LARGEST_FEATURE, floats_or_nan

_FIELDS = ("bilinear", "linear", "squares")


@dataclass(frozen=True, eq=False)
class QualityModel:
    """The quality of a result w for a user u: `Σ_ij A_ij u_i w_j + Σ_j b_j w_j + Σ_j c_j w_j²`.

    It is data and not code, so a client can take it from a server that it does not trust: the model decides which
    result the client keeps, and nothing about that is sent. With A the identity it is the inner product of taste and
    result; with A = 2 and c = −1 on a line, the nearest result is the best. Source: multi-selection, section 1, "the
    server also returns a model for evaluating the quality of these results".

    Parameters
    ----------
    bilinear
        A, a matrix with a row for each coordinate of the user and a column for each of a result; a number on a line.
    linear
        b, a number for each coordinate of a result, such as the weight of its popularity. Default: 0.
    squares
        c, a number for each coordinate of a result. Default: 0.

    Raises
    ------
    InvalidInput
        If the numbers are not finite, or do not fit each other or a user or result.

    Examples
    --------
    >>> from dpselect.multiselect import QualityModel, Result
    >>> nearest_but_rather_north = QualityModel(2.0, linear=1.0, squares=-1.0)
    >>> [nearest_but_rather_north(4.0, Result("shop", place)) for place in (4.0, 4.5, 5.0)]
    [20.0, 20.25, 20.0]
    """

    bilinear: Any
    linear: Any = None
    squares: Any = None

    def __post_init__(self) -> None:
        matrix = _numbers("bilinear", self.bilinear)
        matrix = matrix.reshape(1, 1) if matrix.ndim == 0 else matrix
        if matrix.ndim != 2 or not matrix.size:
            raise InvalidInput("bilinear", plain("something else"), "must be a number, or a matrix of finite numbers")
        object.__setattr__(self, "bilinear", matrix)
        for name in ("linear", "squares"):
            given = getattr(self, name)
            numbers = np.zeros(matrix.shape[1]) if given is None else np.atleast_1d(_numbers(name, given))
            if numbers.shape != (matrix.shape[1],):
                requirement = f"must be {matrix.shape[1]} finite numbers, one for each column of bilinear"
                raise InvalidInput(name, plain("something else"), requirement)
            object.__setattr__(self, name, numbers)

    @classmethod
    def of(cls, data: Any) -> QualityModel:
        """Return a model from the plain data of `to_dict`, such as the JSON of a service."""
        if not isinstance(data, Mapping) or "bilinear" not in data or not data.keys() <= set(_FIELDS):
            requirement = f"must be a mapping with bilinear and no field but {', '.join(_FIELDS)}"
            raise InvalidInput("model", plain("something else"), requirement)
        return cls(**data)

    def to_dict(self) -> dict[str, Any]:
        """Return the model as plain data that JSON can hold."""
        return {name: getattr(self, name).tolist() for name in _FIELDS}

    def __call__(self, value: Any, result: Any) -> float:
        """Return the quality of a result, which has a `vector` or a `position`, for a private value."""
        user = self._sized("value", value, self.bilinear.shape[0])
        features = self._sized("results", _features(result), self.bilinear.shape[1])
        return float(user @ self.bilinear @ features + self.linear @ features + self.squares @ features**2)

    def _sized(self, argument: str, given: Any, size: int) -> FloatArray:
        """Return the coordinates of a user or result; no error shows them."""
        numbers = np.atleast_1d(floats_or_nan(given))
        if numbers.shape != (size,):
            raise InvalidInput(argument, plain("something else (not shown)"), f"must be {size} numbers for this model")
        return numbers


def _numbers(argument: str, given: Any) -> FloatArray:
    numbers = floats_or_nan(given)
    if not (np.abs(numbers) <= LARGEST_FEATURE).all():
        raise InvalidInput(argument, plain("something else"), f"must be finite numbers within ±{LARGEST_FEATURE:g}")
    return numbers


def _features(result: Any) -> Any:
    for name in ("vector", "position"):
        found = result.get(name) if isinstance(result, Mapping) else getattr(result, name, None)
        if found is not None:
            return found
    return None
