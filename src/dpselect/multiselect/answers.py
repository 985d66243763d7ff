"""The best answers to a signal with what they cost, to be shown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dpselect.multiselect.costs import expected_cost
from dpselect.multiselect.disutility import as_disutility
from dpselect.multiselect.offsets import optimal_offsets


@dataclass(frozen=True)
class Answers:
    """Where k answers lie, counted from the signal, and what the best of them and a single one cost in expectation."""

    k: int
    epsilon: float
    disutility: str
    offsets: tuple[float, ...]
    cost: float
    single: float

    def to_dict(self) -> dict[str, Any]:
        """Return the answers as plain data."""
        return {**self.__dict__, "offsets": list(self.offsets)}

    def plot(self, axes: Any = None) -> Any:
        """Draw the noise with the answers on it, and return the axes."""
        from dpselect.multiselect.picture import draw_answers

        return draw_answers(self, axes)

    def _repr_html_(self) -> str:
        from dpselect._html import table_html

        rows = [[str(place), f"{offset:.4g}"] for place, offset in enumerate(self.offsets, start=1)]
        note = f"expected cost {self.cost:.4g}, with a single answer {self.single:.4g}"
        return table_html(f"{self.k} answers at epsilon = {self.epsilon:g}", ["answer", "offset"], rows, note=note)


def best_answers(k: int, epsilon: float, disutility: object = "linear") -> Answers:
    """Return the k best answers to a signal with Laplace noise of scale 1/ε."""
    wanted = as_disutility(disutility)
    offsets = tuple(optimal_offsets(k, epsilon, wanted).tolist())
    cost, single = expected_cost(k, epsilon, wanted), expected_cost(1, epsilon, wanted)
    return Answers(k, epsilon, wanted.name, offsets, cost, single)
