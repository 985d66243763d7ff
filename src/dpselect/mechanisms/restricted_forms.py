"""Restricted mechanisms by name: how a total (ε, δ) is divided between the choice and the tests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from math import log, sqrt
from statistics import NormalDist
from typing import Any

from dpselect._numbers import float_below, positive_integer, positive_number
from dpselect.errors import InvalidInput
from dpselect.mechanisms.base import Mechanism
from dpselect.mechanisms.gaussian import Gaussian
from dpselect.mechanisms.peeling import Peeling
from dpselect.mechanisms.restricted import Restricted
from dpselect.mechanisms.unknown import positive_delta
from dpselect.privacy.calibration import range_per_round
from dpselect.privacy.sensitivity import COUNTS, Sensitivity

GUMBEL_FOR_EXPONENTIAL = Fraction(log(99) / log(50))
"""How much larger a rate gumbel noise needs to tell two items apart with probability 0.99: 1/(1 + e^{−g}) = 0.99 where
exponential noise has 1 − ½ e^{−g} = 0.99."""

NORMAL_FOR_GUMBEL = Fraction(NormalDist().inv_cdf(0.99) * sqrt(2) / log(99))
"""The same for normal noise: its deviation, times this, is the scale of gumbel noise that needs the same gap."""

ROUNDS_FOR_TESTS = 4
"""The tests get as much as so many rounds of peeling would cost (restricted, theorem 5) …"""

MOST_FOR_TESTS = Fraction(1, 2)
"""… but no more than this share of ε: with few rounds nothing would be left to choose with."""


def RestrictedGumbel(  # noqa: N802
    *,
    k: int,
    epsilon: float,
    delta: float,
    sensitivity: Sensitivity = COUNTS,
    pool: int | None = None,
    test_epsilon: float | None = None,
    test_delta: float | None = None,
) -> Restricted:
    """Return Restricted around Peeling with gumbel noise, for a total (ε, δ): restricted, algorithm 3.

    `ε_R = min(4 ε₀, ε/2)`, ε₀ being what each of k rounds could cost if all of ε and half of δ were theirs, and
    `δ_R = δ/2`, or all of δ where the rounds have no use for it. Both can be set.
    """
    k, epsilon, delta = positive_integer("k", k), positive_number("epsilon", epsilon), positive_delta("delta", delta)
    for_tests = _share(epsilon, test_epsilon, ROUNDS_FOR_TESTS * range_per_round(epsilon, _half(delta), k))
    left = float_below(Fraction(epsilon) - Fraction(for_tests)), _for_choice(delta, test_delta)
    with _parts_of(epsilon, test_epsilon):
        inner = Peeling(k=k, epsilon=left[0], sensitivity=sensitivity, noise="gumbel", delta=left[1])
        return _with_tests(inner, delta, for_tests, test_delta, pool)


def RestrictedNormal(  # noqa: N802
    *,
    k: int,
    epsilon: float,
    delta: float,
    max_items_per_person: int,
    sensitivity: Sensitivity = COUNTS,
    pool: int | None = None,
    test_epsilon: float | None = None,
    test_delta: float | None = None,
) -> Restricted:
    """Return Restricted around Gaussian, for people with at most m items: restricted, appendix E.

    `ε_R = min(4 ε/m, ε/2)` and `δ_R = δ/2`; both can be set. Nothing here can check m.
    """
    epsilon, delta = positive_number("epsilon", epsilon), positive_delta("delta", delta)
    most = positive_integer("max_items_per_person", max_items_per_person)
    for_tests = _share(epsilon, test_epsilon, ROUNDS_FOR_TESTS * Fraction(epsilon) / most)
    left = float_below(Fraction(epsilon) - Fraction(for_tests)), _for_choice(delta, test_delta)
    if not left[1]:
        raise InvalidInput("delta", delta, "a larger number is needed: half of this one is 0 in floating point")
    with _parts_of(epsilon, test_epsilon):
        inner = Gaussian(
            k=k, epsilon=left[0], sensitivity=sensitivity, delta=left[1], max_items_per_person=max_items_per_person
        )
        return _with_tests(inner, delta, for_tests, test_delta, pool)


def restricted_for(
    *,
    k: int,
    epsilon: float,
    delta: float,
    sensitivity: Sensitivity = COUNTS,
    pool: int | None = None,
    max_items_per_person: int | None = None,
    **parameters: Any,
) -> Restricted:
    """Return what "restricted", and "auto" on an unknown domain, mean for a total (ε, δ): by public facts alone.

    RestrictedGumbel; with few rounds, where δ does not buy them enough for gumbel noise, Peeling with exponential noise
    in its place. Where at most m items per person are known, RestrictedNormal with the same ε_R, if its noise tells two
    items apart at a smaller gap. docs/unknown.md says why.
    """
    totals: dict[str, Any] = {"k": k, "epsilon": epsilon, "delta": delta, "sensitivity": sensitivity, "pool": pool}
    composed = RestrictedGumbel(**totals, **parameters)
    inner = composed.inner
    assert isinstance(inner, Peeling)
    gap = Fraction(sensitivity.spread) / inner.per_round()
    if inner.per_round() <= GUMBEL_FOR_EXPONENTIAL * Fraction(inner.epsilon) / inner.k:
        plain = Peeling(k=inner.k, epsilon=inner.epsilon, sensitivity=sensitivity)
        left = positive_delta("delta", delta)
        composed = _with_tests(plain, left, composed.test_epsilon, parameters.get("test_delta"), pool)
        gap = Fraction(sensitivity.spread) / (plain.per_round() * GUMBEL_FOR_EXPONENTIAL)
    if max_items_per_person is not None:
        shared = {**totals, **parameters, "test_epsilon": composed.test_epsilon}
        normal = RestrictedNormal(**shared, max_items_per_person=max_items_per_person)
        assert isinstance(normal.inner, Gaussian)
        if NORMAL_FOR_GUMBEL * Fraction(normal.inner.sigma) < gap:
            return normal
    return composed


def _with_tests(
    inner: Mechanism, delta: float, test_epsilon: float, test_delta: float | None, pool: int | None
) -> Restricted:
    """Return the tests around a mechanism, with whatever δ it leaves."""
    left = _rest("delta", delta, inner.guarantee.delta) if test_delta is None else test_delta
    return Restricted(inner=inner, pool=pool, test_epsilon=test_epsilon, test_delta=left)


def _share(epsilon: float, given: float | None, wanted: Fraction) -> float:
    """Return ε_R: what was given, or what is wanted up to the largest share."""
    if given is None:
        return float_below(min(wanted, MOST_FOR_TESTS * Fraction(epsilon)))
    number = positive_number("test_epsilon", given)
    if number >= epsilon:
        raise InvalidInput("test_epsilon", given, f"less than epsilon = {epsilon:g}, of which it is a part, is needed")
    return number


@contextmanager
def _parts_of(epsilon: float, test_epsilon: float | None) -> Iterator[None]:
    """Refuse a part of ε that leaves the range of the noise in the name of what was given."""
    try:
        yield
        return
    except InvalidInput as error:
        if error.argument not in ("epsilon", "test_epsilon"):
            raise
        accepted = error.accepted
    if test_epsilon is None:
        raise InvalidInput("epsilon", epsilon, f"a part of it goes to the tests, and of each part {accepted}")
    raise InvalidInput("test_epsilon", test_epsilon, f"of it and of the rest of epsilon = {epsilon:g}, {accepted}")


def _for_choice(delta: float, test_delta: float | None) -> float:
    """Return what the choice may have of δ: half, or what the tests leave."""
    if test_delta is None:
        return _half(delta)
    return _rest("test_delta", delta, positive_delta("test_delta", test_delta))


def _half(delta: float) -> float:
    return float_below(Fraction(delta) / 2)


def _rest(argument: str, delta: float, taken: float) -> float:
    rest = float_below(Fraction(delta) - Fraction(taken))
    if rest <= 0:
        raise InvalidInput(argument, taken, f"less than delta = {delta:g}, of which it is a part, is needed")
    return rest
