"""The restricted mechanism: any mechanism chooses from a pool, and tests decide how much of its answer is released.

`Restricted` takes the inner mechanism and the parameters of the tests. `RestrictedGumbel`, `RestrictedNormal` and
`restricted_for` divide a total (ε, δ) between the choice and the tests.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import InitVar, dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from math import factorial, isclose
from typing import Any, ClassVar

import numpy as np

from dpselect._numbers import float_below, positive_integer, positive_number
from dpselect.errors import InvalidInput
from dpselect.mechanisms.auto import resolution
from dpselect.mechanisms.base import FARTHEST, SCALE_RANGE, Law, Mechanism, check_agreement
from dpselect.mechanisms.gaussian import Gaussian
from dpselect.mechanisms.oneshot import OneShot
from dpselect.mechanisms.peeling import Peeling
from dpselect.mechanisms.unknown import Pool, PooledDomain, UnknownDomain, positive_delta, total
from dpselect.privacy.calibration import laplace_threshold, range_per_round
from dpselect.privacy.guarantee import Guarantee
from dpselect.privacy.sensitivity import COUNTS, Sensitivity
from dpselect.sampling import BitSource
from dpselect.sampling.laws import threshold_probability
from dpselect.sampling.threshold import MeasuredField, passing_at_first
from dpselect.scores import Members

ROUNDS_FOR_TESTS = 4
"""The tests get the ε of this many rounds of peeling (restricted, theorem 5), limited by MOST_FOR_TESTS."""

MOST_FOR_TESTS = Fraction(1, 2)
"""Largest share of ε for the tests; with few rounds nothing would otherwise be left for the choice."""


@dataclass(frozen=True, kw_only=True)
class Restricted(PooledDomain):
    """A mechanism for unknown domains: `inner` chooses k items of the pool, and tests decide how many are released.

    The items are released one by one as long as `x_i − x_[pool+1] − w + Lap(b) > T + Lap(b)`; the second noise is drawn
    once, and the first failure ends the answer. `b = 2w/ε_R` and `T = b q` with `¼ (2 + q) e^{−q} <= δ_R`, for
    ε_R = test_epsilon, δ_R = test_delta and the spread w. A sequence is tested in its own order, a set in random order.
    The guarantee is the sum: (ε + ε_R, δ + δ_R) for an inner (ε, δ). Restricted, algorithm 1; mathematics, section 7;
    proof in restricted.md.

    Parameters
    ----------
    inner
        A mechanism for known domains.
    test_epsilon, test_delta
        The cost of the tests, ε_R and δ_R.
    pool
        As in `PooledDomain`.
    k, epsilon, sensitivity
        They follow from `inner` (epsilon is the sum); if given, they must agree.

    Raises
    ------
    InvalidInput
        If an argument is out of range, or does not agree with `inner`.

    Examples
    --------
    >>> import dpselect as dps
    >>> mechanism = dps.Restricted(inner=dps.Joint(k=2, epsilon=0.5), test_epsilon=0.5, test_delta=1e-6)
    >>> mechanism.guarantee.epsilon, mechanism.guarantee.delta
    (1.0, 1e-06)
    >>> mechanism.select({"tea": 900, "coffee": 700, "milk": 1}, seed=1).tolist()
    [0, 1]
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
            raise InvalidInput("inner", self.inner, "must be a mechanism for known domains, such as Canonical or Joint")
        object.__setattr__(self, "test_epsilon", positive_number("test_epsilon", self.test_epsilon))
        object.__setattr__(self, "test_delta", positive_delta("test_delta", self.test_delta))
        object.__setattr__(self, "k", self.inner.k)
        object.__setattr__(self, "sensitivity", self.inner.sensitivity)
        object.__setattr__(self, "epsilon", total(self.inner.guarantee.epsilon, self.test_epsilon))
        self.check_pool()
        if not 1 / SCALE_RANGE <= self.test_epsilon / self.inner.sensitivity.spread <= SCALE_RANGE:
            raise InvalidInput(
                "test_epsilon", self.test_epsilon, "must be such that test_epsilon / spread is in 1e-250..1e250"
            )
        if total(self.inner.guarantee.delta, self.test_delta) >= 1:
            raise InvalidInput("test_delta", self.test_delta, "must be below 1 together with the delta of inner")
        check_agreement("k", k, self.inner.k, "inner mechanism")
        check_agreement("sensitivity", sensitivity, self.inner.sensitivity, "inner mechanism")
        stated = total(self.inner.guarantee.epsilon, self.test_epsilon)
        if epsilon is not None and not isclose(positive_number("epsilon", epsilon), stated, rel_tol=1e-12):
            raise InvalidInput(
                "epsilon", epsilon, f"must be {stated:g} (the sum of that of inner and test_epsilon); leave it out"
            )

    @property
    def ordered(self) -> bool:
        """Whether the answer of the inner mechanism is a sequence."""
        return self.inner.ordered

    @property
    def guarantee(self) -> Guarantee:
        """The sum of the costs of the inner mechanism and the tests."""
        inner = self.inner.guarantee
        return Guarantee(total(inner.epsilon, self.test_epsilon), total(inner.delta, self.test_delta))

    @property
    def promise(self) -> str:
        """What the guarantee of the inner mechanism takes on trust."""
        return self.inner.promise

    @property
    def exact(self) -> bool:
        """Whether the inner mechanism draws exactly; the tests do."""
        return self.inner.exact

    @property
    def max_items_per_person(self) -> int | None:
        """The maximum number of items per person, if the noise of the inner mechanism depends on it."""
        return getattr(self.inner, "max_items_per_person", None)

    def rate(self) -> Fraction:
        """Return ε_R/(2w) = 1/b, which converts scores to units of the noise of the tests."""
        return Fraction(self.test_epsilon) / (2 * Fraction(self.inner.sensitivity.spread))

    def height(self) -> Fraction:
        """Return (T + w)/b: a score this far above x_[pool+1], in units of the noise, passes with probability ½."""
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
            **({"promise": self.promise} if self.promise else {}),
        }

    def draw_from(self, pool: Pool, bits: BitSource) -> Members:
        """Return the part of the inner mechanism's answer that passes the tests."""
        chosen = self.inner.draw(pool.scores, bits)
        rate, height = self._tests
        candidates = chosen.values
        if not candidates.all():
            # A nameless item ends the answer as a failed test does (restricted.md, "Nameless items").
            candidates = candidates[: int(np.argmin(candidates != 0))]
        entrants = MeasuredField(candidates, rate, None, 1, origin=pool.following)
        return pool.first(chosen, passing_at_first(entrants, height, bits), bits)

    @cached_property
    def _tests(self) -> tuple[Fraction, Fraction]:
        """The rate and height of the tests, cached for repeated draws."""
        return self.rate(), self.height()

    def ranked_law(self, scores: tuple[Fraction, ...], named: int, following: Fraction) -> Law:
        """Return the law of the ranks kept: the inner law, cut by the tests."""
        rate, height = self._tests
        margins = [float(max(rate * (score - following) - height, -FARTHEST)) for score in scores[:named]]
        margins += [-np.inf] * (len(scores) - named)
        cut = _cut_sequence if self.ordered else _cut_set
        law: Law = {}
        for chosen, probability in self.inner.law(list(scores)).items():
            for kept, conditional in cut(chosen, margins):
                if conditional:
                    law[kept] = law.get(kept, 0.0) + probability * conditional
        return law


def _cut_sequence(chosen: tuple[int, ...], margins: list[float]) -> Iterator[tuple[tuple[int, ...], float]]:
    """Yield every prefix of a sequence with the probability that the tests end there."""
    for kept in range(len(chosen) + 1):
        passed = [margins[rank] for rank in chosen[:kept]]
        yield chosen[:kept], threshold_probability(passed, [margins[rank] for rank in chosen[kept : kept + 1]])


def _cut_set(chosen: frozenset[int], margins: list[float]) -> Iterator[tuple[frozenset[int], float]]:
    """Yield every subset with the probability that the tests release it, for a set that is tested in random order.

    In `n! (k − n − 1)!` of the k! orders n given items come first and another given one next.
    """
    size = len(chosen)
    yield chosen, threshold_probability([margins[rank] for rank in chosen], [])
    for kept in range(size):
        share = factorial(kept) * factorial(size - kept - 1) / factorial(size)
        for subset in combinations(sorted(chosen), kept):
            passed = [margins[rank] for rank in subset]
            fails = sum(threshold_probability(passed, [margins[rank]]) for rank in chosen if rank not in subset)
            yield frozenset(subset), share * fails


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
    """Return Restricted with Peeling and gumbel noise inside, for a total (ε, δ) (restricted, algorithm 3).

    Parameters
    ----------
    k, sensitivity, pool
        As in `Restricted`.
    epsilon, delta
        The total cost of a release.
    test_epsilon
        ε_R, the part of epsilon for the tests. If left out it is `min(4 ε₀, ε/2)`, where ε₀ is the cost of each of k
        rounds that use all of ε and half of δ.
    test_delta
        δ_R, the part of delta for the tests. If left out it is half of δ, or all of it if the rounds need none.

    Returns
    -------
    Restricted
        The mechanism.

    Raises
    ------
    InvalidInput
        If an argument is out of range.

    Examples
    --------
    >>> import dpselect as dps
    >>> mechanism = dps.RestrictedGumbel(k=10, epsilon=1.0, delta=1e-6)
    >>> mechanism.inner.name, mechanism.guarantee.epsilon <= 1.0
    ('peeling', True)
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
    """Return Restricted with Gaussian inside, for people with at most m items (restricted, appendix E).

    Parameters
    ----------
    k, sensitivity, pool
        As in `Restricted`.
    epsilon, delta
        The total cost of a release.
    max_items_per_person
        m. The caller must enforce it; it cannot be checked here.
    test_epsilon
        ε_R, the part of epsilon for the tests; `min(4 ε/m, ε/2)` if left out.
    test_delta
        δ_R, the part of delta for the tests; δ/2 if left out.

    Returns
    -------
    Restricted
        The mechanism.

    Raises
    ------
    InvalidInput
        If an argument is out of range.

    Examples
    --------
    >>> import dpselect as dps
    >>> mechanism = dps.RestrictedNormal(k=10, epsilon=1.0, delta=1e-6, max_items_per_person=3)
    >>> mechanism.inner.name, mechanism.max_items_per_person
    ('gaussian', 3)
    """
    epsilon, delta = positive_number("epsilon", epsilon), positive_delta("delta", delta)
    most = positive_integer("max_items_per_person", max_items_per_person)
    for_tests = _share(epsilon, test_epsilon, ROUNDS_FOR_TESTS * Fraction(epsilon) / most)
    left = float_below(Fraction(epsilon) - Fraction(for_tests)), _for_choice(delta, test_delta)
    if not left[1]:
        raise InvalidInput("delta", delta, "must be larger; half of it is 0 in floating point")
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
    ordered: bool = False,
    inner: str | None = None,
    noise: str | None = None,
    gamma: float | None = None,
    margin: bool | None = None,
    test_share: float | None = None,
    test_epsilon: float | None = None,
    test_delta: float | None = None,
) -> Restricted:
    """Return the mechanism for the name "restricted", and for "auto" on an unknown domain, from public facts alone.

    Without `inner` it is RestrictedGumbel. If the rounds are so few that δ does not pay for gumbel noise, exponential
    noise is used instead. If a maximum of m items per person is given and normal noise tells two items apart at a
    smaller gap, it is RestrictedNormal with the same ε_R (docs/unknown.md explains the choice).

    `inner` names another mechanism for known domains, with its own `noise`, `gamma` and `margin`. It gets half of δ,
    and the tests what it does not use. `test_share` is the share of ε for the tests; left out, it is that of
    RestrictedGumbel.
    """
    stated = {"noise": noise, "gamma": gamma, "margin": margin}
    options = {name: value for name, value in stated.items() if value is not None}
    for name, value in options.items():
        if inner is None:
            raise InvalidInput(name, value, "must be used with inner, the mechanism to which it belongs")
    epsilon, delta = positive_number("epsilon", epsilon), positive_delta("delta", delta)
    totals: dict[str, Any] = {"k": k, "epsilon": epsilon, "delta": delta, "sensitivity": sensitivity, "pool": pool}
    split: dict[str, Any] = {"test_epsilon": _stated_share(epsilon, test_share, test_epsilon), "test_delta": test_delta}
    composed = RestrictedGumbel(**totals, **split)
    if inner is not None:
        left = float_below(Fraction(epsilon) - Fraction(composed.test_epsilon)), _for_choice(delta, test_delta)
        limits: dict[str, Any] = {"max_items_per_person": max_items_per_person, "sensitivity": sensitivity}
        with _parts_of(epsilon, split["test_epsilon"]):
            chosen = _named_inner(inner, options, ordered, k=k, epsilon=left[0], delta=left[1], **limits)
            return _with_tests(chosen, delta, composed.test_epsilon, test_delta, pool)
    peeling = composed.inner
    assert isinstance(peeling, Peeling)
    plain = Peeling(k=peeling.k, epsilon=peeling.epsilon, sensitivity=sensitivity)
    gap = min(resolution(peeling), resolution(plain))
    if gap == resolution(plain):
        composed = _with_tests(plain, delta, composed.test_epsilon, test_delta, pool)
    if max_items_per_person is not None:
        split["test_epsilon"] = composed.test_epsilon
        normal = RestrictedNormal(**totals, **split, max_items_per_person=max_items_per_person)
        assert isinstance(normal.inner, Gaussian)
        if resolution(normal.inner) < gap:
            return normal
    return composed


def _stated_share(epsilon: float, share: float | None, test_epsilon: float | None) -> float | None:
    """Return ε_R if it is stated, as a part of ε or as itself."""
    if share is None:
        return test_epsilon
    if test_epsilon is not None:
        raise InvalidInput("test_share", share, "must be left out with test_epsilon; state one of them")
    part = positive_number("test_share", share)
    if part >= 1:
        raise InvalidInput("test_share", share, "must be above 0 and below 1: the share of epsilon for the tests")
    return float_below(Fraction(part) * Fraction(epsilon))


def _named_inner(
    inner: Any,
    options: dict[str, Any],
    ordered: bool,
    *,
    delta: float,
    max_items_per_person: int | None,
    **shared: Any,
) -> Mechanism:
    """Return the mechanism for known domains with a name, which need not use δ."""
    from dpselect.mechanisms.registry import MECHANISMS, mechanism_for  # the registry in turn names this module

    if not isinstance(inner, str) or inner not in MECHANISMS:
        raise InvalidInput("inner", inner, "must be one of " + ", ".join(MECHANISMS))
    kind = MECHANISMS[inner]
    for name, value in options.items():
        if not hasattr(kind, name):
            raise InvalidInput(name, value, f"must be left out with inner = {inner}, which does not have it")
    shared |= options
    if hasattr(kind, "max_items_per_person"):
        shared["max_items_per_person"] = max_items_per_person
    in_order = ordered and kind is OneShot
    if in_order and options.get("noise") == "laplace":
        delta = 0.0  # its theorem with a delta covers sets only
    chosen = mechanism_for(inner, delta=delta, ordered=in_order, **shared)
    if ordered and not chosen.ordered:
        raise InvalidInput(
            "inner", inner, "must have an ordered answer, such as peeling or joint; or leave out ordered"
        )
    return chosen


def _with_tests(
    inner: Mechanism, delta: float, test_epsilon: float, test_delta: float | None, pool: int | None
) -> Restricted:
    """Return Restricted for an inner mechanism; the tests get the rest of δ unless `test_delta` is given."""
    left = _rest("delta", delta, inner.guarantee.delta) if test_delta is None else test_delta
    return Restricted(inner=inner, pool=pool, test_epsilon=test_epsilon, test_delta=left)


def _share(epsilon: float, given: float | None, wanted: Fraction) -> float:
    """Return ε_R: the given value, or the wanted one, limited to MOST_FOR_TESTS."""
    if given is None:
        return float_below(min(wanted, MOST_FOR_TESTS * Fraction(epsilon)))
    number = positive_number("test_epsilon", given)
    if number >= epsilon:
        raise InvalidInput("test_epsilon", given, f"must be below epsilon = {epsilon:g}, of which it is a part")
    return number


@contextmanager
def _parts_of(epsilon: float, test_epsilon: float | None) -> Iterator[None]:
    """Turn an error about a part of ε that is out of range into one about the argument that was given."""
    try:
        yield
        return
    except InvalidInput as error:
        if error.argument not in ("epsilon", "test_epsilon"):
            raise
    if test_epsilon is None:
        raise InvalidInput("epsilon", epsilon, "must be such that each part of it / (k * spread) is in 1e-250..1e250")
    raise InvalidInput(
        "test_epsilon",
        test_epsilon,
        f"must leave test_epsilon and the rest of epsilon = {epsilon:g}, divided by k * spread, in 1e-250..1e250",
    )


def _for_choice(delta: float, test_delta: float | None) -> float:
    """Return the part of δ for the choice: half of it, or the rest after the tests."""
    if test_delta is None:
        return _half(delta)
    return _rest("test_delta", delta, positive_delta("test_delta", test_delta))


def _half(delta: float) -> float:
    """Return half of delta, rounded down."""
    return float_below(Fraction(delta) / 2)


def _rest(argument: str, delta: float, taken: float) -> float:
    """Return delta minus the part that is taken, rounded down."""
    rest = float_below(Fraction(delta) - Fraction(taken))
    if rest <= 0:
        raise InvalidInput(argument, taken, f"must be below delta = {delta:g}, of which it is a part")
    return rest
