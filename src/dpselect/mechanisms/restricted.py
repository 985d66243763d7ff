"""Any mechanism on an unknown domain: choose from the top of the list, then test what was chosen."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import InitVar, dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import combinations
from math import factorial, isclose
from typing import Any, ClassVar

import numpy as np

from dpselect._numbers import positive_number
from dpselect.errors import InvalidInput
from dpselect.mechanisms.base import FARTHEST, SCALE_RANGE, Law, Mechanism
from dpselect.mechanisms.pool import Pool
from dpselect.mechanisms.unknown import UnknownDomain, positive_delta, total
from dpselect.privacy.calibration import laplace_threshold
from dpselect.privacy.guarantee import Guarantee
from dpselect.privacy.sensitivity import Sensitivity
from dpselect.sampling import BitSource
from dpselect.sampling.threshold import MeasuredField, passing_at_first
from dpselect.sampling.threshold_law import chance_of
from dpselect.scores import Members


@dataclass(frozen=True, kw_only=True)
class Restricted(UnknownDomain):
    """`inner` chooses k items of the pool; they are kept one by one while
    `x_i − x_[pool+1] − w + Lap(b) > T + Lap(b)`, the second noise drawn once, and the first failure ends the answer.

    `b = 2w/ε_R`, `T = b q` with `¼ (2 + q) e^{−q} <= δ_R`, for ε_R = test_epsilon, δ_R = test_delta and the spread w.
    A sequence is gone through in its own order, a set in a random one. The guarantee is the sum: (ε + ε_R, δ + δ_R)
    for an inner (ε, δ). k, epsilon (the sum) and sensitivity follow from `inner`; if given, they must agree.
    Restricted, algorithm 1; mathematics, section 7; proof in restricted.md.
    """

    name: ClassVar[str] = "restricted"

    k: InitVar[int | None] = None
    epsilon: InitVar[float | None] = None
    sensitivity: InitVar[Sensitivity | None] = None
    inner: Mechanism
    test_epsilon: float
    test_delta: float

    def __post_init__(self, k: int | None, epsilon: float | None, sensitivity: Sensitivity | None) -> None:
        if not isinstance(self.inner, Mechanism) or isinstance(self.inner, UnknownDomain):
            raise InvalidInput("inner", self.inner, "a mechanism for known domains is needed, as Canonical or Joint")
        object.__setattr__(self, "test_epsilon", positive_number("test_epsilon", self.test_epsilon))
        object.__setattr__(self, "test_delta", positive_delta("test_delta", self.test_delta))
        object.__setattr__(self, "k", self.inner.k)
        object.__setattr__(self, "sensitivity", self.inner.sensitivity)
        object.__setattr__(self, "epsilon", total(self.inner.guarantee.epsilon, self.test_epsilon))
        self.check_pool()
        if not 1 / SCALE_RANGE <= self.test_epsilon / self.inner.sensitivity.spread <= SCALE_RANGE:
            raise InvalidInput("test_epsilon", self.test_epsilon, "test_epsilon / spread must lie in 1e-250 to 1e250")
        if total(self.inner.guarantee.delta, self.test_delta) >= 1:
            raise InvalidInput("test_delta", self.test_delta, "together with the delta of inner it must be below 1")
        _agree("k", k, self.inner.k)
        _agree("sensitivity", sensitivity, self.inner.sensitivity)
        stated = total(self.inner.guarantee.epsilon, self.test_epsilon)
        if epsilon is not None and not isclose(positive_number("epsilon", epsilon), stated, rel_tol=1e-12):
            raise InvalidInput("epsilon", epsilon, f"that of inner and test_epsilon add up to {stated:g}; leave it out")

    @property
    def ordered(self) -> bool:
        """As the inner mechanism's."""
        return self.inner.ordered

    @property
    def guarantee(self) -> Guarantee:
        """The sum of what the inner mechanism and the tests cost."""
        inner = self.inner.guarantee
        return Guarantee(total(inner.epsilon, self.test_epsilon), total(inner.delta, self.test_delta))

    @property
    def max_items_per_person(self) -> int | None:
        """The most items that a person may have, where the noise of the inner mechanism relies on it."""
        return getattr(self.inner, "max_items_per_person", None)

    def rate(self) -> Fraction:
        """ε_R/(2w) = 1/b, which turns scores into units of the noise of the tests."""
        return Fraction(self.test_epsilon) / (2 * Fraction(self.inner.sensitivity.spread))

    def height(self) -> Fraction:
        """(T + w)/b, by how much a score must lead x_[pool+1], in units of the noise, to pass an even test."""
        return laplace_threshold(Fraction(self.test_delta)) + Fraction(self.test_epsilon) / 2

    def describe(self) -> dict[str, Any]:
        """Return the name and all parameters as plain data."""
        inner = self.inner.describe()
        return {
            "name": self.name,
            "k": self.inner.k,
            "epsilon": self.guarantee.epsilon,
            "sensitivity": inner["sensitivity"],
            "inner": inner,
            "pool": self.pool,
            "test_epsilon": self.test_epsilon,
            "test_delta": self.test_delta,
        }

    def draw_from(self, pool: Pool, bits: BitSource) -> Members:
        """Return what is kept of the inner mechanism's answer."""
        chosen = self.inner.draw(pool.scores, bits)
        rate, height = self._tests
        candidates = chosen.values
        if not candidates.all():
            # A nameless item ends the walk as a failed test does; the proof treats it as an item that nobody can see.
            candidates = candidates[: int(np.argmin(candidates != 0))]
        entrants = MeasuredField(candidates, rate, None, 1, origin=pool.following)
        return pool.first(chosen, passing_at_first(entrants, height, bits), bits)

    @cached_property
    def _tests(self) -> tuple[Fraction, Fraction]:
        """The rate and height of the tests, which every draw needs."""
        return self.rate(), self.height()

    def ranked_law(self, scores: tuple[Fraction, ...], named: int, following: Fraction) -> Law:
        """Return the law of the kept ranks: the inner law, cut by the tests."""
        return _ranked_law(self, scores, named, following)


@lru_cache(maxsize=4096)
def _ranked_law(mechanism: Restricted, scores: tuple[Fraction, ...], named: int, following: Fraction) -> Law:
    rate, height = mechanism.rate(), mechanism.height()
    margins = [float(max(rate * (score - following) - height, -FARTHEST)) for score in scores[:named]]
    margins += [-np.inf] * (len(scores) - named)
    cut = _cut_sequence if mechanism.ordered else _cut_set
    law: Law = {}
    for chosen, probability in mechanism.inner.law(list(scores)).items():
        for kept, chance in cut(chosen, margins):
            if chance:
                law[kept] = law.get(kept, 0.0) + probability * chance
    return law


def _cut_sequence(chosen: tuple[int, ...], margins: list[float]) -> Iterator[tuple[tuple[int, ...], float]]:
    """Yield every beginning of a sequence with the chance that the tests leave it."""
    for kept in range(len(chosen) + 1):
        passed = [margins[rank] for rank in chosen[:kept]]
        yield chosen[:kept], chance_of(passed, [margins[rank] for rank in chosen[kept : kept + 1]])


def _cut_set(chosen: frozenset[int], margins: list[float]) -> Iterator[tuple[frozenset[int], float]]:
    """Yield every subset with the chance that the tests leave it, when the set is gone through in random order.

    n of k items come first, and a given other one next, in `n! (k − n − 1)!` of the k! orders.
    """
    size = len(chosen)
    yield chosen, chance_of([margins[rank] for rank in chosen], [])
    for kept in range(size):
        share = factorial(kept) * factorial(size - kept - 1) / factorial(size)
        for subset in combinations(sorted(chosen), kept):
            passed = [margins[rank] for rank in subset]
            fails = sum(chance_of(passed, [margins[rank]]) for rank in chosen if rank not in subset)
            yield frozenset(subset), share * fails


def _agree(argument: str, given: Any, of_inner: Any) -> None:
    if given is not None and given != of_inner:
        raise InvalidInput(argument, given, f"the inner mechanism says {of_inner}; leave it out or make them agree")
