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
    """All score vectors on a grid, and all changes that one person can make to them.

    A person changes each score by any multiple of `step` within the sensitivity, independently of the other scores,
    so a neighbour x + Δ may lie outside the box of the score vectors x.

    Parameters
    ----------
    size
        Number of items.
    highest
        Scores are 0, step, …, highest.
    sensitivity
        The bounds on each change.
    step
        Distance between grid points. The bounds of the sensitivity must be multiples of it.
    items_per_person
        The largest number of scores that one person changes; the others stay as they are. By default, all change.

    Raises
    ------
    InvalidInput
        If a number is not positive, or the sensitivity is not a multiple of the step.

    Examples
    --------
    >>> domain = Domain(size=2, highest=1)
    >>> print(domain, len(domain.score_vectors()), len(domain.moves()))
    {0..1}^2 4 4
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
                raise InvalidInput(
                    "step", self.step, "must divide sensitivity.low and sensitivity.high; choose a finer step"
                )

    def score_vectors(self) -> list[ScoreVector]:
        """Return every score vector x of the box."""
        return list(product(self._grid(0, self.highest), repeat=self.size))

    def moves(self) -> list[ScoreVector]:
        """Return every change Δ that one person can make."""
        changes = self._grid(self.sensitivity.low, self.sensitivity.high)
        if self.items_per_person is None:
            return list(product(changes, repeat=self.size))
        moves = product(sorted({0, *changes}), repeat=self.size)
        most = self.items_per_person
        return [move for move in moves if sum(change != 0 for change in move) <= most]

    def __str__(self) -> str:
        """Return the box, as in {0..3}^4."""
        step = "" if self.step == 1 else f" by {self.step:g}"
        return f"{{0..{self.highest:g}{step}}}^{self.size}"

    def _grid(self, low: float, high: float) -> list[float]:
        step = Fraction(self.step)
        values = [Fraction(low) + step * count for count in range(int((Fraction(high) - Fraction(low)) / step) + 1)]
        return [int(value) if value.denominator == 1 else float(value) for value in values]


@dataclass(frozen=True)
class Chosen(Domain):
    """A domain of given score vectors, with every permutation of each, instead of a box."""

    vectors: tuple[ScoreVector, ...] = ()

    def score_vectors(self) -> list[ScoreVector]:
        """Return every permutation of the vectors."""
        return sorted({order for vector in self.vectors for order in permutations(vector)})

    def __str__(self) -> str:
        """Return the vectors."""
        return " or ".join(str(vector) for vector in self.vectors)


def neighbours(domain: Domain) -> Iterator[tuple[ScoreVector, ScoreVector]]:
    """Yield every pair of neighbouring score vectors (x, x + Δ) of a domain.

    Parameters
    ----------
    domain
        The domain.

    Yields
    ------
    tuple
        x and x + Δ. A pair stands both for adding the person and for removing them.

    Examples
    --------
    >>> list(neighbours(Domain(size=1, highest=1)))
    [((0,), (0,)), ((0,), (1,)), ((1,), (1,)), ((1,), (2,))]
    """
    moves = domain.moves()
    for scores in domain.score_vectors():
        for move in moves:
            yield scores, tuple(score + change for score, change in zip(scores, move, strict=True))
