"""Small domains on which every pair of neighbours can be listed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import permutations, product

from dpselect._numbers import positive_integer, positive_number
from dpselect.errors import InvalidInput
from dpselect.privacy import COUNTS, Sensitivity

ScoreVector = tuple[float, ...]


@dataclass(frozen=True)
class Domain:
    """All scores of `size` items on the grid 0, step, …, highest, and all ways one person can move them.

    A person moves each score by any grid amount in [sensitivity.low, sensitivity.high], independently of the
    other items, so x' = x + Δ may lie outside the box of the scores x. With `items_per_person` at most so many move.
    """

    size: int
    highest: float = 3
    sensitivity: Sensitivity = COUNTS
    step: float = 1
    items_per_person: int | None = None

    def __post_init__(self) -> None:
        positive_integer("size", self.size)
        positive_number("highest", self.highest)
        positive_number("step", self.step)
        for end in (self.sensitivity.low, self.sensitivity.high):
            if Fraction(end) % Fraction(self.step):
                raise InvalidInput("step", self.step, "sensitivity.low and .high must be multiples of the step")

    def score_vectors(self) -> list[ScoreVector]:
        """Return every score vector x of the box."""
        return list(product(self._grid(0, self.highest), repeat=self.size))

    def moves(self) -> list[ScoreVector]:
        """Return every change Δ that one person can make."""
        moves = product(self._grid(self.sensitivity.low, self.sensitivity.high), repeat=self.size)
        most = self.size if self.items_per_person is None else self.items_per_person
        return [move for move in moves if sum(change != 0 for change in move) <= most]

    def __str__(self) -> str:
        """Say the box, as in {0..3}^4."""
        step = "" if self.step == 1 else f" by {self.step:g}"
        return f"{{0..{self.highest:g}{step}}}^{self.size}"

    def _grid(self, low: float, high: float) -> list[float]:
        step = Fraction(self.step)
        values = [Fraction(low) + step * count for count in range(int((Fraction(high) - Fraction(low)) / step) + 1)]
        return [int(value) if value.denominator == 1 else float(value) for value in values]


@dataclass(frozen=True)
class Chosen(Domain):
    """A domain of a few score vectors in place of a box: those that are given, in every order of the items."""

    vectors: tuple[ScoreVector, ...] = ()

    def score_vectors(self) -> list[ScoreVector]:
        """Return every order of the vectors."""
        return sorted({order for vector in self.vectors for order in permutations(vector)})

    def __str__(self) -> str:
        """Say the vectors."""
        return " or ".join(str(vector) for vector in self.vectors)


def neighbours(domain: Domain) -> Iterator[tuple[ScoreVector, ScoreVector]]:
    """Yield every pair (x, x + Δ) of a domain; each stands for adding the person and for removing them."""
    moves = domain.moves()
    for scores in domain.score_vectors():
        for move in moves:
            yield scores, tuple(score + change for score, change in zip(scores, move, strict=True))
