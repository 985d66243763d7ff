"""The exact privacy check: every pair of neighbours of a small domain, and every outcome."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol

import numpy as np

from dpselect._arrays import Array, FloatArray
from dpselect.privacy import Guarantee, Sensitivity
from dpselect.verify.domain import Domain, ScoreVector, neighbours

TOLERANCE = 1e-9
"""By how much a computed loss may exceed the claim. Probabilities have a relative error of 1e-10 (sampling.laws), log
ratios then one of 2e-10, and some mechanisms attain their claim."""


class Subject(Protocol):
    """What a check needs from a mechanism, sound or broken.

    Two attributes are optional: `may_stop` (an outcome may have fewer than k items; False by default), and
    `places_are_items` (permuting the scores must permute the outcomes; True by default).

    Examples
    --------
    Every mechanism of the package is a subject:

    >>> from dpselect import OneShot
    >>> subject: Subject = OneShot(k=1, epsilon=1.0)
    >>> round(subject.law([1, 0])[frozenset({0})], 3)
    0.816
    """

    @property
    def k(self) -> int:
        """The number of items returned."""

    @property
    def sensitivity(self) -> Sensitivity:
        """The bounds on the change that one person makes to a score."""

    @property
    def ordered(self) -> bool:
        """Whether the order of the items is part of the outcome."""

    @property
    def guarantee(self) -> Guarantee:
        """The claim."""

    def __hash__(self) -> int:
        """Return a hash: mechanisms are frozen values."""

    def law(self, scores: Any) -> Mapping[Any, float]:
        """Return the probability of every outcome."""

    def select(self, scores: Any, *, seed: int | None = None) -> Array:
        """Draw an outcome."""


@dataclass(frozen=True)
class Witness:
    """The neighbouring scores and the outcome with the largest privacy loss.

    Examples
    --------
    >>> from dpselect import OneShot
    >>> check_privacy(OneShot(k=1, epsilon=1.0), Domain(2, 1)).witness
    Witness(scores=(0, 0), neighbour=(0, 1), outcome=frozenset({0}))
    """

    scores: ScoreVector
    neighbour: ScoreVector
    outcome: Hashable


@dataclass(frozen=True)
class Check:
    """The result of an exact privacy check.

    Parameters
    ----------
    mechanism, domain
        What was checked.
    neighbours
        The number of pairs of neighbours.
    worst_loss
        `max |log P(y) / P'(y)|` over neighbours and outcomes y; infinite if an outcome is possible on one side only.
    divergence
        `max Σ_y max(0, P(y) − e^ε P'(y))` over neighbours: the smallest δ for the claimed ε.
    witness
        Where the worst loss occurs.
    faults
        Errors of the laws themselves, as "a law does not sum to 1".

    Examples
    --------
    >>> from dpselect import OneShot
    >>> check = check_privacy(OneShot(k=1, epsilon=1.0), Domain(2, 1))
    >>> check.neighbours, round(check.worst_loss, 6), check.passed
    (16, 1.0, True)
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
        """The claim minus what is used, of δ if one is claimed and of ε otherwise; negative if the claim is broken."""
        return self.delta - self.divergence if self.delta else self.epsilon - self.worst_loss

    @property
    def passed(self) -> bool:
        """Whether the claim holds on this domain, up to TOLERANCE."""
        allowed = TOLERANCE * self.delta if self.delta else TOLERANCE
        return not self.faults and self.headroom >= -allowed


def check_privacy(mechanism: Subject, domain: Domain) -> Check:
    """Compare the guarantee of a mechanism with its laws on every pair of neighbours of a domain.

    Parameters
    ----------
    mechanism
        The mechanism, or any object with `k`, `sensitivity`, `ordered`, `guarantee` and `law`.
    domain
        The score vectors and their neighbours.

    Returns
    -------
    Check
        The largest privacy loss and where it occurs.

    Examples
    --------
    >>> from dpselect import OneShot
    >>> check = check_privacy(OneShot(k=2, epsilon=1.0, noise="gumbel"), Domain(size=4, highest=3))
    >>> round(check.worst_loss, 4), check.passed
    (0.8852, True)
    """
    pairs = list(neighbours(domain))
    table = _Table.of(mechanism, sorted({vector for pair in pairs for vector in pair}))
    here = np.array([table.rows[scores] for scores, _ in pairs])
    there = np.array([table.rows[scores] for _, scores in pairs])
    worst_loss, divergence, witness = -1.0, 0.0, Witness((), (), None)
    factor = math.exp(mechanism.guarantee.epsilon)
    # Blocks of pairs bound the memory.
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


shared_privacy_check = cache(check_privacy)
"""`check_privacy` with cached results: broken twins share sound counterparts with the mechanisms under test."""


def _losses(first: FloatArray, second: FloatArray) -> FloatArray:
    """Return |log first / second|: 0 where both are zero, infinite where one is zero or not a number."""
    with np.errstate(divide="ignore", invalid="ignore"):
        losses = np.abs(np.log(first) - np.log(second))
    return np.where((first == 0) & (second == 0), 0.0, np.nan_to_num(losses, nan=math.inf, posinf=math.inf))


@dataclass(frozen=True)
class _Table:
    """The laws of a mechanism for several score vectors: one row per vector, one column per outcome."""

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
        """Return the errors of the laws, whatever the guarantee."""
        faults = []
        if not np.all((self.probabilities >= 0) & (self.probabilities <= 1 + TOLERANCE)):
            faults.append("a value of a law is not a probability")
        if not np.allclose(self.probabilities.sum(axis=1), 1, rtol=0, atol=TOLERANCE):
            faults.append("a law does not sum to 1")
        if not all(_fits(outcome, mechanism) for outcome in self.outcomes):
            faults.append("an outcome is not a tuple (ordered) or frozenset (unordered) with k items")
        elif getattr(mechanism, "places_are_items", True) and not self._symmetric():
            faults.append("permuting the items does not permute the law")
        return faults

    def _symmetric(self) -> bool:
        """Whether swapping adjacent items swaps them in the law; such swaps generate every permutation."""
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
    """Return an outcome with its items renamed; items are ints, values shown with them are not."""
    if isinstance(outcome, tuple | frozenset):
        return type(outcome)(_relabel(part, names) for part in outcome)
    return names.get(outcome, outcome) if isinstance(outcome, int) else outcome


def _swapped(vector: ScoreVector, item: int) -> ScoreVector:
    return (*vector[:item], vector[item + 1], vector[item], *vector[item + 2 :])
