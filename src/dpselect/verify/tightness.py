"""Neighbouring inputs on which a guarantee is nearly tight: the loss must be below the claim, and close to it.

On small domains a mechanism has headroom, in which a rate that is a few per cent too high goes unnoticed. Theory knows
inputs on which the loss comes close to its bound: many items, all but one moving one way, tests that fail one after
the other, a half-space at the right distance. A loss far below the bound there is an error as well: noise that buys no
privacy.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from dpselect.mechanisms import Canonical, Gamma, Gaussian, Joint, Laplace, OneShot, Peeling
from dpselect.mechanisms.limited import LimitedDomain
from dpselect.mechanisms.restricted import Restricted
from dpselect.mechanisms.top_stable import TopStable
from dpselect.privacy import Sensitivity
from dpselect.sampling.noise import NOISES
from dpselect.verify.exact import ExactCheck
from dpselect.verify.privacy import TOLERANCE, Subject

BOTH_WAYS = Sensitivity(-1, 1)


@dataclass(frozen=True)
class Pair:
    """Neighbouring scores on which a mechanism uses at least a `share` of its claim.

    Parameters
    ----------
    mechanism
        The mechanism.
    scores, neighbour
        The neighbouring scores.
    outcome
        The outcome whose privacy loss is compared with `bound`; None without a bound.
    share
        The least part of the bound that must be used.
    bound
        The bound on the privacy loss. If None, `Σ max(0, P − e^ε P')` over all outcomes is compared with δ.

    Examples
    --------
    The exponential mechanism on two items, of which one rises, uses only part of its epsilon.

    >>> from dpselect import OneShot
    >>> mechanism = OneShot(k=1, epsilon=1.0, noise="gumbel")
    >>> round(Pair(mechanism, (0, 0), (0, 1), frozenset({0}), 0.5, 1.0).used(), 3)
    0.62
    """

    mechanism: Subject
    scores: tuple[float, ...]
    neighbour: tuple[float, ...]
    outcome: Hashable | None
    share: float
    bound: float | None

    def used(self) -> float:
        """Return the part of the bound that is used."""
        here, there = (self.mechanism.law(list(scores)) for scores in (self.scores, self.neighbour))
        if self.bound is None:
            return max(self._beyond(here, there), self._beyond(there, here)) / self.mechanism.guarantee.delta
        first, second = here.get(self.outcome, 0.0), there.get(self.outcome, 0.0)
        return abs(math.log(first / second)) / self.bound if first and second else math.inf

    def _beyond(self, law: Mapping[Any, float], other: Mapping[Any, float]) -> float:
        """Return the mass of a law beyond e^ε times the other."""
        factor = math.exp(self.mechanism.guarantee.epsilon)
        return math.fsum(max(mass - factor * other.get(outcome, 0.0), 0.0) for outcome, mass in law.items())


def check_attained(name: str, compared: str, pair: Pair) -> ExactCheck:
    """Check that the loss of a pair does not exceed its bound and attains the given share of it.

    Parameters
    ----------
    name
        The mechanism.
    compared
        What is compared, for the report.
    pair
        The neighbouring scores.

    Returns
    -------
    ExactCheck
        The part of the bound that is used, between `pair.share` and 1.

    Examples
    --------
    >>> from dpselect import OneShot
    >>> pair = Pair(OneShot(k=1, epsilon=1.0, noise="gumbel"), (0, 0), (0, 1), frozenset({0}), 0.9, 1.0)
    >>> check_attained("oneshot", "epsilon used", pair).passed
    False
    """
    return ExactCheck(name, compared, (pair.used(),), pair.share, 1 + TOLERANCE)


def others_rise(mechanism: Subject, size: int, share: float, lowest: int = 0) -> Pair:
    """Return tied scores of which all but those of the outcome rise by 1."""
    k, rest = mechanism.k, size - mechanism.k
    outcome: Hashable = tuple(range(k)) if mechanism.ordered else frozenset(range(k))
    scores, neighbour = [lowest] * size, [lowest] * k + [lowest + 1] * rest
    return Pair(mechanism, tuple(scores), tuple(neighbour), outcome, share, mechanism.guarantee.epsilon)


def canonical_pair(noise: str, gamma: float) -> Pair:
    """Return scores for which the best item missing from {0} rises, and so does the worst item in every other set."""
    mechanism = Canonical(k=1, epsilon=1.0, noise=noise, gamma=gamma)
    return Pair(mechanism, (1, *[0] * 119), (1, *[1] * 119), frozenset({0}), 0.97, 1.0)


def joint_pair(noise: str) -> Pair:
    """Return scores for which (0, 1) loses its margin of w, and the loss of nearly all other sequences falls by w."""
    mechanism = Joint(k=2, epsilon=3.0, noise=noise)
    return Pair(mechanism, (2, 1, *[0] * 48), (2, 1, *[1] * 48), (0, 1), 0.96, 3.0)


def gaussian_pair() -> Pair:
    """Return the worst case of normal noise, where some answer attains the δ of the whole noisy vector.

    Two scores move against each other; in units of the noise their difference moves by `μ = √2/σ`, and the event
    on which the loss exceeds ε begins at `ε/μ + μ/2`.
    """
    mechanism = Gaussian(k=1, epsilon=1.0, delta=0.01, sensitivity=BOTH_WAYS, max_items_per_person=2)
    moved = math.sqrt(2) / mechanism.sigma
    behind = math.sqrt(2) * mechanism.sigma * (1.0 / moved + moved / 2)
    return Pair(mechanism, (0.0, behind), (1.0, behind - 1.0), None, 1 - 1e-6, None)


def laplace_pair() -> Pair:
    """Return scores of which the one far behind falls and the other rises: both noises lose all of their share."""
    mechanism = Laplace(k=1, epsilon=3.0, sensitivity=BOTH_WAYS, max_items_per_person=2)
    return Pair(mechanism, (0, 300), (-1, 301), (0,), 0.99, 3.0)


def restricted_tests() -> Pair:
    """Return scores for which three passing leads shrink by w and a failing one does not change.

    All four items of the pool are chosen, so that only the tests use privacy: ε_R.
    """
    mechanism = Restricted(inner=Canonical(k=4, epsilon=1.0), pool=4, test_epsilon=2.0, test_delta=1e-6)
    return Pair(mechanism, (2, 2, 2, 18, 0), (2, 2, 2, 19, 1), frozenset({0, 1, 2}), 0.99, 2.0)


def stable_tests() -> Pair:
    """Return scores for which three failing gaps widen by w, and a passing one after them narrows by w."""
    mechanism = TopStable(k=6, epsilon=1.0, delta=0.1, pool=6)
    scores = (142, 122, 82, 81, 41, 40, 0)
    return Pair(mechanism, scores, (142, 123, 82, 82, 41, 41, 0), frozenset({0}), 0.99, 1.0)


def new_items(mechanism: Subject, share: float, items: int = 1) -> Pair:
    """Return an empty pool and one with the items of one person: any answer shows the difference."""
    return Pair(mechanism, (0,) * items, (1,) * items, None, share, None)


def _restricted() -> Pair:
    inner = Canonical(k=1, epsilon=1.0)
    return new_items(Restricted(inner=inner, pool=1, test_epsilon=2.0, test_delta=0.01), 1 - 1e-6)


def _gamma() -> Pair:
    return Pair(Gamma(k=1, epsilon=1.0, sensitivity=BOTH_WAYS), (9, 0), (10, -1), (1,), 0.9999, 1.0)


LAPLACE_DUMMY = LimitedDomain(k=1, epsilon=3.0, delta=1e-3, pool=1, noise="laplace", max_items_per_person=1)
SMOOTH_SHARES = {"gumbel": 0.99, "logistic": 0.98, "half-logistic": 0.99}
RACES = ("exponential", "gumbel")

PAIRS: list[tuple[str, str, Callable[[], Pair]]] = [
    *[
        ("oneshot", f"epsilon used, {noise}", partial(others_rise, OneShot(k=1, epsilon=3.0, noise=noise), 60, share))
        for noise, share in ((noise, SMOOTH_SHARES.get(noise, 0.9999)) for noise in NOISES)
    ],
    ("oneshot", "epsilon used, k = 2", partial(others_rise, OneShot(k=2, epsilon=1.0), 12, 0.9999)),
    ("oneshot", "epsilon used, in order", partial(others_rise, OneShot(k=2, epsilon=1.0, ordered=True), 12, 0.9999)),
    *[
        ("peeling", f"epsilon used, {noise}", partial(others_rise, Peeling(k=2, epsilon=3.0, noise=noise), 40, 0.97))
        for noise in RACES
    ],
    *[
        ("canonical", f"epsilon used, {noise}, gamma {gamma:g}", partial(canonical_pair, noise, gamma))
        for noise in RACES
        for gamma in (0.0, 0.5, 1.0)
    ],
    *[("joint", f"epsilon used, {noise}", partial(joint_pair, noise)) for noise in RACES],
    ("gamma", "epsilon used", _gamma),
    ("gaussian", "delta used", gaussian_pair),
    ("laplace", "epsilon used", laplace_pair),
    ("restricted", "epsilon of the tests used", restricted_tests),
    ("restricted", "delta used", _restricted),
    ("top-stable", "epsilon used", stable_tests),
    *[
        (mechanism.name, compared, partial(new_items, mechanism, share, mechanism.k))
        for mechanism, compared, share in (
            (TopStable(k=1, epsilon=1.0, delta=0.01, pool=1), "delta used", 1 - 1e-6),
            (TopStable(k=2, epsilon=1.0, delta=0.01, pool=2), "delta used, two items", 0.85),
            (LimitedDomain(k=2, epsilon=3.0, delta=1e-4, pool=2), "delta used, two items", 0.99),
            (LimitedDomain(k=1, epsilon=3.0, delta=1e-3, pool=1), "delta used, gumbel", 0.998),
            (LAPLACE_DUMMY, "delta used, laplace", 1 - 1e-5),
        )
    ],
    (
        "limited",
        "epsilon used, gumbel",
        partial(others_rise, LimitedDomain(k=1, epsilon=3.0, delta=1e-6, pool=60), 60, 0.99, 1000),
    ),
]
"""Mechanism, what is compared, and the neighbouring scores."""
