"""What a release promises."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from dpselect.errors import InvalidInput
from dpselect.validation import finite_number, float_below, positive_number


@dataclass(frozen=True)
class Guarantee:
    """(ε, δ)-differential privacy: for all neighbours D, D' and all sets of outputs S,
    `P[M(D) ∈ S] <= exp(ε) · P[M(D') ∈ S] + δ`.

    `protects` names the unit of protection, `neighbours` how two data sets differ by one such unit.
    """

    epsilon: float
    delta: float = 0.0
    protects: str = "one person"
    neighbours: str = "add or remove"

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", positive_number("epsilon", self.epsilon))
        object.__setattr__(self, "delta", _probability_of_failure(self.delta))

    def to_dict(self) -> dict[str, Any]:
        """Return the guarantee as plain data."""
        return asdict(self)

    def __str__(self) -> str:
        """Say the guarantee in words."""
        factor = math.exp(self.epsilon) if self.epsilon < 700 else math.inf
        promise = (
            f"whatever {self.protects} contributed, no answer becomes more than {factor:.3g} times as likely or "
            f"unlikely when it is {_change(self.neighbours)}"
        )
        if self.delta:
            promise += f", except with probability {self.delta:g}"
        label = f"epsilon = {self.epsilon:g}" + (f", delta = {self.delta:g}" if self.delta else "")
        return f"{label}: {promise}"


def _probability_of_failure(delta: Any) -> float:
    try:
        number = float_below(finite_number("delta", delta))
        if 0 <= number < 1:
            return number
    except InvalidInput:
        pass
    raise InvalidInput("delta", delta, "a number from 0 (pure) up to, but not including, 1 is needed")


def _change(neighbours: str) -> str:
    return {"add or remove": "added or removed"}.get(neighbours, f"changed ({neighbours})")
