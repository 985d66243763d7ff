"""The noises once more, as closed forms of a uniform number W: what the samplers are held against.

They are written apart from `sampling.noise`: there a noise is a function of an exponent `E = −log(1 − W)`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class ClosedForm:
    """A noise Z as two functions of balls, each the inverse of the other.

    `value(W)` is the z that Z exceeds with probability W, `tail(z)` the probability `P[Z > z]`.
    """

    value: Callable[[Any], Any]
    tail: Callable[[Any], Any]


def _one(like: Any) -> Any:
    return like * 0 + 1


def _laplace_value(w: Any) -> Any:
    return -(2 * w).log() if w < 0.5 else (2 * (1 - w)).log()


def _laplace_tail(z: Any) -> Any:
    return (-z).exp() / 2 if z > 0 else 1 - z.exp() / 2


def _root_of_two(like: Any) -> Any:
    return (_one(like) * 2).sqrt()


CLOSED_FORMS: dict[str, ClosedForm] = {
    "exponential": ClosedForm(lambda w: -w.log(), lambda z: (-z).exp() if z > 0 else _one(z)),
    "gumbel": ClosedForm(lambda w: -(-(-w).log1p()).log(), lambda z: -(-(-z).exp()).expm1()),
    "laplace": ClosedForm(_laplace_value, _laplace_tail),
    "logistic": ClosedForm(lambda w: ((1 - w) / w).log(), lambda z: 1 / (1 + z.exp())),
    "half-logistic": ClosedForm(lambda w: ((2 - w) / w).log(), lambda z: 2 / (1 + z.exp()) if z > 0 else _one(z)),
    "normal": ClosedForm(lambda w: _root_of_two(w) * (2 * w).erfcinv(), lambda z: (z / _root_of_two(z)).erfc() / 2),
    "uniform": ClosedForm(lambda w: 1 - 2 * w, lambda z: (1 - z) / 2),
}
