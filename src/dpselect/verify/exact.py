"""What an exact check finds: numbers, and the bounds that theory puts on them."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class ExactCheck:
    """Numbers computed without sampling; theory says that all of them lie between `least` and `most`."""

    name: str
    """The mechanism."""
    compared: str
    """What was compared, as in "words at which answers change, laplace"."""
    values: tuple[float, ...]
    least: float
    most: float

    @property
    def found(self) -> float:
        """The value that is nearest to its bounds, or farthest beyond them."""
        return max(self.values, key=self._excess)

    @property
    def passed(self) -> bool:
        """Whether every number lies where it must; what is no number does not."""
        return bool(self.values) and self._excess(self.found) <= 0

    def _excess(self, value: float) -> float:
        return math.inf if math.isnan(value) else max(self.least - value, value - self.most)
