"""The exact check of a guarantee: every pair of neighbours of a small domain, every outcome."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from dpselect._arrays import Array, FloatArray
from dpselect.privacy import Guarantee, Sensitivity
from dpselect.verify.domain import Domain, ScoreVector, neighbours

TOLERANCE = 1e-9
"""How far a computed loss may exceed the claim. Each probability is right to a relative 1e-10
(sampling.laws), a log ratio then to 2e-10, and some mechanisms meet their claim with equality."""


class Subject(Protocol):
    """What a check needs to know of a mechanism, sound or broken."""

    @property
    def k(self) -> int:
        """How many items are returned."""

    @property
    def sensitivity(self) -> Sensitivity:
        """How far one person can move the scores."""

    @property
    def ordered(self) -> bool:
        """Whether the order of the items is part of the outcome."""

    @property
    def guarantee(self) -> Guarantee:
        """What is claimed."""

    def __hash__(self) -> int:
        """Return a hash: mechanisms are frozen values."""

    def law(self, scores: Any) -> Mapping[Any, float]:
        """Return the probability of every outcome."""

    def select(self, scores: Any, *, seed: int | None = None) -> Array:
        """Draw an outcome."""


@dataclass(frozen=True)
class Witness:
    """The neighbours and the outcome that show the worst loss."""

    scores: ScoreVector
    neighbour: ScoreVector
    outcome: Hashable


@dataclass(frozen=True)
class Check:
    """What an exact privacy check found.

    `worst_loss = max |log P(y) / P'(y)|` over neighbours and outcomes, infinite when an outcome is possible
    on one side only. `divergence = max Σ_y max(0, P(y) − exp(ε) P'(y))` over neighbours, the least δ for the
    claimed ε. `faults` lists what is wrong with the laws themselves.
    """

    mechanism: Subject
    domain: Domain
    neighbours: int
    worst_loss: float
    divergence: float
    witness: Witness
    faults: tuple[str, ...] = ()

    @property
    def epsilon(self) -> float:
        """The claimed ε."""
        return self.mechanism.guarantee.epsilon

    @property
    def delta(self) -> float:
        """The claimed δ."""
        return self.mechanism.guarantee.delta

    @property
    def headroom(self) -> float:
        """What is left below the claim, of ε for a pure guarantee and of δ otherwise; negative if broken."""
        return self.delta - self.divergence if self.delta else self.epsilon - self.worst_loss

    @property
    def passed(self) -> bool:
        """Whether the claim holds on this domain, up to TOLERANCE."""
        allowed = TOLERANCE * self.delta if self.delta else TOLERANCE
        return not self.faults and self.headroom >= -allowed


def check_privacy(mechanism: Subject, domain: Domain) -> Check:
    """Compare the guarantee of a mechanism with its laws on every pair of neighbours of a domain."""
    pairs = list(neighbours(domain))
    table = _Table.of(mechanism, sorted({vector for pair in pairs for vector in pair}))
    here = np.array([table.rows[scores] for scores, _ in pairs])
    there = np.array([table.rows[scores] for _, scores in pairs])
    worst_loss, divergence, witness = -1.0, 0.0, Witness((), (), None)
    factor = math.exp(mechanism.guarantee.epsilon)
    # Blocks bound the memory; a few thousand pairs at a time are also what NumPy likes best.
    for start in range(0, len(pairs), 4096):
        first = table.probabilities[here[start : start + 4096]]
        second = table.probabilities[there[start : start + 4096]]
        losses = _losses(first, second)
        row, column = np.unravel_index(int(np.argmax(losses)), losses.shape)
        if losses[row, column] > worst_loss:
            worst_loss = float(losses[row, column])
            witness = Witness(*pairs[start + int(row)], table.outcomes[int(column)])
        for one, other in ((first, second), (second, first)):
            excess = np.maximum(one - factor * other, 0.0).sum(axis=1)
            divergence = max(divergence, float(excess.max()))
    return Check(
        mechanism=mechanism,
        domain=domain,
        neighbours=len(pairs),
        worst_loss=worst_loss,
        divergence=divergence,
        witness=witness,
        faults=tuple(table.faults(mechanism)),
    )


def _losses(first: FloatArray, second: FloatArray) -> FloatArray:
    """Return |log first / second|: 0 where both are zero, infinite where one is or is no probability."""
    with np.errstate(divide="ignore", invalid="ignore"):
        losses = np.abs(np.log(first) - np.log(second))
    return np.where((first == 0) & (second == 0), 0.0, np.nan_to_num(losses, nan=math.inf, posinf=math.inf))


@dataclass(frozen=True)
class _Table:
    """The laws of a mechanism for several score vectors: one row a vector, one column an outcome."""

    rows: dict[ScoreVector, int]
    outcomes: list[Hashable]
    probabilities: FloatArray

    @classmethod
    def of(cls, mechanism: Subject, vectors: list[ScoreVector]) -> _Table:
        laws = [mechanism.law(list(vector)) for vector in vectors]
        columns: dict[Hashable, int] = {}
        for law in laws:
            for outcome in law:
                columns.setdefault(outcome, len(columns))
        probabilities = np.zeros((len(laws), len(columns)))
        for row, law in enumerate(laws):
            probabilities[row, [columns[outcome] for outcome in law]] = list(law.values())
        return cls({vector: row for row, vector in enumerate(vectors)}, list(columns), probabilities)

    def faults(self, mechanism: Subject) -> list[str]:
        """Return what is wrong with the laws, whatever the guarantee says."""
        faults = []
        if not np.all((self.probabilities >= 0) & (self.probabilities <= 1 + TOLERANCE)):
            faults.append("a value of the law is no probability")
        if not np.allclose(self.probabilities.sum(axis=1), 1, rtol=0, atol=TOLERANCE):
            faults.append("a law does not sum to 1")
        if not all(_fits(outcome, mechanism) for outcome in self.outcomes):
            faults.append(
                "outcomes must be tuples when ordered and frozensets otherwise, with k items or as it may stop"
            )
        elif getattr(mechanism, "places_are_items", True) and not self._symmetric():
            faults.append("relabelling the items does not relabel the law")
        return faults

    def _symmetric(self) -> bool:
        """Whether swapping two adjacent items swaps them in the law; such swaps make up every relabelling."""
        columns = {outcome: column for column, outcome in enumerate(self.outcomes)}
        size = len(next(iter(self.rows)))
        for item in range(size - 1):
            swap = {item: item + 1, item + 1: item}
            renamed = [columns.get(_relabel(outcome, swap)) for outcome in self.outcomes]
            known = [column for column, new in enumerate(renamed) if new is not None]
            rows = [self.rows[_swapped(vector, item)] for vector in self.rows]
            moved = np.zeros_like(self.probabilities)
            moved[:, known] = self.probabilities[np.ix_(rows, [new for new in renamed if new is not None])]
            if not np.allclose(moved, self.probabilities, rtol=TOLERANCE, atol=0):
                return False
        return True


def _fits(outcome: Hashable, mechanism: Subject) -> bool:
    kind = tuple if mechanism.ordered else frozenset
    shortest = 0 if getattr(mechanism, "may_stop", False) else mechanism.k
    return isinstance(outcome, kind) and shortest <= len(outcome) <= mechanism.k


def _relabel(outcome: Any, names: dict[int, int]) -> Any:
    """Return an outcome with its items renamed; items are ints, and whatever is shown beside them is not."""
    if isinstance(outcome, tuple | frozenset):
        return type(outcome)(_relabel(part, names) for part in outcome)
    return names.get(outcome, outcome) if isinstance(outcome, int) else outcome


def _swapped(vector: ScoreVector, item: int) -> ScoreVector:
    return (*vector[:item], vector[item + 1], vector[item], *vector[item + 2 :])
