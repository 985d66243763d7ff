"""Pairs of neighbours on which a guarantee is nearly used up: the loss must not exceed the claim, nor fall short of it.

A box of few items has headroom that hides a rate which is a few per cent too high. Theory says for each mechanism where
the loss comes close to its bound: many items that all move one way but one, tests that fail one after the other, a
half-space at the right distance. A loss far below the bound there is an error as well: noise that buys no privacy.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from dpselect.mechanisms import Canonical, Gamma, Gaussian, Joint, OneShot, Peeling
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
    """Neighbours and an outcome whose privacy loss comes close to `bound`: at least `share` of it.

    Without a bound the (ε, δ) of the guarantee counts, over all outcomes: what `Σ max(0, P − e^ε P')` uses of δ.
    """

    mechanism: Subject
    scores: tuple[float, ...]
    neighbour: tuple[float, ...]
    outcome: Hashable | None
    share: float
    bound: float | None

    def used(self) -> float:
        """Return which part of the bound is used."""
        here, there = (self.mechanism.law(list(scores)) for scores in (self.scores, self.neighbour))
        if self.bound is None:
            return max(self._beyond(here, there), self._beyond(there, here)) / self.mechanism.guarantee.delta
        chances = here.get(self.outcome, 0.0), there.get(self.outcome, 0.0)
        return abs(math.log(chances[0] / chances[1])) / self.bound if all(chances) else math.inf

    def _beyond(self, law: Mapping[Any, float], other: Mapping[Any, float]) -> float:
        """Return the mass of a law beyond e^ε times the other."""
        factor = math.exp(self.mechanism.guarantee.epsilon)
        return math.fsum(max(chance - factor * other.get(outcome, 0.0), 0.0) for outcome, chance in law.items())


def check_attained(name: str, compared: str, pair: Pair) -> ExactCheck:
    """Compare the loss of a pair with the bound of theory, from both sides."""
    return ExactCheck(name, compared, (pair.used(),), pair.share, 1 + TOLERANCE)


def others_rise(mechanism: Subject, size: int, share: float, lowest: int = 0) -> Pair:
    """Return the pair in which all items but the first k rise by 1, and the first k are the outcome."""
    still = [lowest] * mechanism.k
    outcome: Hashable = tuple(range(mechanism.k)) if mechanism.ordered else frozenset(range(mechanism.k))
    epsilon = mechanism.guarantee.epsilon
    rest = size - mechanism.k
    return Pair(mechanism, (*still, *[lowest] * rest), (*still, *[lowest + 1] * rest), outcome, share, epsilon)


def canonical(noise: str, gamma: float) -> Pair:
    """Return the pair in which the best missing item of {0} rises, and the worst included one of all other sets."""
    mechanism = Canonical(k=1, epsilon=1.0, noise=noise, gamma=gamma)
    return Pair(mechanism, (1, *[0] * 119), (1, *[1] * 119), frozenset({0}), 0.97, 1.0)


def joint(noise: str) -> Pair:
    """Return the pair in which the loss of (0, 1) rises by w and that of nearly all other sequences falls by w."""
    mechanism = Joint(k=2, epsilon=3.0, noise=noise)
    return Pair(mechanism, (1, *[0] * 49), (1, 0, *[1] * 48), (0, 1), 0.96, 3.0)


def gaussian() -> Pair:
    """Return the pair whose answers differ as much as any event does under normal noise.

    Two scores move against each other; in units of the noise their difference moves by `μ = √2/σ`, and the event
    beyond which the loss exceeds ε begins at `ε/μ + μ/2`.
    """
    mechanism = Gaussian(k=1, epsilon=1.0, delta=0.01, sensitivity=BOTH_WAYS, max_items_per_person=2)
    moved = math.sqrt(2) / mechanism.sigma
    behind = math.sqrt(2) * mechanism.sigma * (1.0 / moved + moved / 2)
    return Pair(mechanism, (0.0, behind), (1.0, behind - 1.0), None, 1 - 1e-6, None)


def restricted_tests() -> Pair:
    """Return the pair in which three leads shrink by w, though they pass, and one that fails keeps its own.

    All four items of the pool are chosen, so that only the tests tell anything: ε_R.
    """
    mechanism = Restricted(inner=Canonical(k=4, epsilon=1.0), pool=4, test_epsilon=2.0, test_delta=1e-6)
    return Pair(mechanism, (2, 2, 2, 18, 0), (2, 2, 2, 19, 1), frozenset({0, 1, 2}), 0.99, 2.0)


def stable_tests() -> Pair:
    """Return the pair in which three gaps that fail widen by w, and one that passes behind them narrows by w."""
    mechanism = TopStable(k=6, epsilon=1.0, delta=0.1, pool=6)
    scores = (142, 122, 82, 81, 41, 40, 0)
    return Pair(mechanism, scores, (142, 123, 82, 82, 41, 41, 0), frozenset({0}), 0.99, 1.0)


def newcomer(mechanism: Subject, share: float, items: int = 1) -> Pair:
    """Return the pair in which one person brings items into a pool that was empty: whatever is answered shows it."""
    return Pair(mechanism, (0,) * items, (1,) * items, None, share, None)


PURE = {"gumbel": 0.99, "logistic": 0.98, "half-logistic": 0.99}

PAIRS: list[tuple[str, str, Callable[[], Pair]]] = [
    *[
        (
            "oneshot",
            f"epsilon used, {noise}",
            partial(others_rise, OneShot(k=1, epsilon=3.0, noise=noise), 60, PURE.get(noise, 0.9999)),
        )
        for noise in NOISES
    ],
    ("oneshot", "epsilon used, k = 2", partial(others_rise, OneShot(k=2, epsilon=1.0), 12, 0.9999)),
    *[
        ("peeling", f"epsilon used, {noise}", partial(others_rise, Peeling(k=2, epsilon=3.0, noise=noise), 40, 0.97))
        for noise in ("exponential", "gumbel")
    ],
    *[
        ("canonical", f"epsilon used, {noise}, gamma {gamma:g}", partial(canonical, noise, gamma))
        for noise in ("exponential", "gumbel")
        for gamma in (0.0, 0.5, 1.0)
    ],
    *[("joint", f"epsilon used, {noise}", partial(joint, noise)) for noise in ("exponential", "gumbel")],
    (
        "gamma",
        "epsilon used",
        lambda: Pair(Gamma(k=1, epsilon=1.0, sensitivity=BOTH_WAYS), (9, 0), (10, -1), (1,), 0.9999, 1.0),
    ),
    ("gaussian", "delta used", gaussian),
    ("restricted", "epsilon of the tests used", restricted_tests),
    (
        "restricted",
        "delta used",
        partial(
            newcomer, Restricted(inner=Canonical(k=1, epsilon=1.0), pool=1, test_epsilon=2.0, test_delta=0.01), 1 - 1e-6
        ),
    ),
    ("top-stable", "epsilon used", stable_tests),
    ("top-stable", "delta used", partial(newcomer, TopStable(k=1, epsilon=1.0, delta=0.01, pool=1), 1 - 1e-6)),
    (
        "top-stable",
        "delta used, two items",
        partial(newcomer, TopStable(k=2, epsilon=1.0, delta=0.01, pool=2), 0.85, 2),
    ),
    (
        "limited",
        "delta used, two items",
        partial(newcomer, LimitedDomain(k=2, epsilon=3.0, delta=1e-3, pool=2), 0.99, 2),
    ),
    (
        "limited",
        "epsilon used, gumbel",
        partial(others_rise, LimitedDomain(k=1, epsilon=3.0, delta=1e-6, pool=60), 60, 0.99, 1000),
    ),
    ("limited", "delta used, gumbel", partial(newcomer, LimitedDomain(k=1, epsilon=3.0, delta=1e-3, pool=1), 0.998)),
    (
        "limited",
        "delta used, laplace",
        partial(
            newcomer,
            LimitedDomain(k=1, epsilon=3.0, delta=1e-3, pool=1, noise="laplace", max_items_per_person=1),
            1 - 1e-5,
        ),
    ),
]
