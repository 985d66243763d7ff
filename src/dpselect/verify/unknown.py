"""The mechanisms for unknown domains under test, each with the domains on which its guarantee is checked.

A score of 0 stands for an item that does not exist, so neighbours differ in which items there are. δ is large enough
for the tests to pass now and then within the box, and domains have more items than the pool.
"""

from __future__ import annotations

from typing import Any

from dpselect.mechanisms import Canonical, Gamma, Gaussian, Joint, Mechanism, OneShot, Peeling
from dpselect.mechanisms.limited import LimitedDomain
from dpselect.mechanisms.restricted import Restricted
from dpselect.mechanisms.top_stable import TopStable
from dpselect.mechanisms.unknown import UnknownDomain
from dpselect.privacy import COUNTS, Sensitivity
from dpselect.scores import Scores
from dpselect.verify.domain import Domain

Pair = tuple[UnknownDomain, Domain]

INNER: list[Mechanism] = [
    Canonical(k=2, epsilon=1.0),
    Joint(k=2, epsilon=1.0),
    Peeling(k=2, epsilon=1.0),
    OneShot(k=2, epsilon=1.0),
    Gamma(k=2, epsilon=1.0),
    Canonical(k=2, epsilon=1.0, noise="gumbel"),
    Joint(k=2, epsilon=1.0, noise="gumbel"),
    Peeling(k=2, epsilon=1.0, noise="gumbel"),
    *[OneShot(k=2, epsilon=1.0, noise=noise) for noise in ("gumbel", "laplace", "logistic", "half-logistic")],
    Peeling(k=2, epsilon=0.5, noise="gumbel", delta=0.05),
    OneShot(k=2, epsilon=0.5, noise="gumbel", delta=0.05),
]
BOTH_WAYS = Sensitivity(-1, 1)
BOX = Domain(4, 3, COUNTS)


def _around(inner: Mechanism, *, pool: int = 3, epsilon: float = 2.0, delta: float = 0.1) -> Restricted:
    return Restricted(inner=inner, pool=pool, test_epsilon=epsilon, test_delta=delta)


def _gaussian(most: int) -> Pair:
    inner = Gaussian(k=2, epsilon=0.5, delta=0.05, max_items_per_person=most)
    return _around(inner), Domain(4, 3, COUNTS, items_per_person=most)


def _limited(most: int, noise: str, *, epsilon: float, pool: int) -> Pair:
    mechanism = LimitedDomain(k=2, epsilon=epsilon, delta=0.1, pool=pool, max_items_per_person=most, noise=noise)
    return mechanism, Domain(4, 3, COUNTS, items_per_person=most)


UNKNOWN_UNDER_TEST: dict[str, list[Pair]] = {
    "restricted": [
        *[(_around(inner), BOX) for inner in INNER],
        _gaussian(2),
        (_around(Canonical(k=1, epsilon=0.5), pool=1, epsilon=0.5, delta=0.3), Domain(3, 4, COUNTS)),
        (_around(Canonical(k=2, epsilon=0.5), pool=2, epsilon=4.0, delta=0.01), Domain(4, 3, COUNTS)),
        (_around(Joint(k=2, epsilon=4.0), pool=4, epsilon=1.0), Domain(5, 1, COUNTS)),
        (_around(Joint(k=1, epsilon=1.0, sensitivity=BOTH_WAYS), pool=2), Domain(3, 3, BOTH_WAYS)),
        (_around(Canonical(k=2, epsilon=1.0, sensitivity=BOTH_WAYS), pool=2), Domain(3, 2, BOTH_WAYS)),
        _gaussian(1),
        _gaussian(3),
    ],
    "limited": [
        (LimitedDomain(k=2, epsilon=2.0, delta=0.1, pool=3), BOX),
        _limited(2, "laplace", epsilon=2.0, pool=2),
        _limited(1, "gumbel", epsilon=2.0, pool=2),
        *[_limited(most, "laplace", epsilon=epsilon, pool=3) for most in (1, 2) for epsilon in (0.5, 4.0)],
        (LimitedDomain(k=1, epsilon=4.0, delta=0.02, pool=1), BOX),
        (LimitedDomain(k=2, epsilon=0.5, delta=0.3, pool=2), BOX),
        (LimitedDomain(k=2, epsilon=2.0, delta=0.1, pool=2, sensitivity=BOTH_WAYS), Domain(3, 2, BOTH_WAYS)),
    ],
    "top-stable": [
        (TopStable(k=1, epsilon=3.0, delta=0.1, pool=1), Domain(3, 6, COUNTS)),
        (TopStable(k=2, epsilon=4.0, delta=0.1, pool=3), BOX),
        (TopStable(k=2, epsilon=0.5, delta=0.3, pool=2), BOX),
        (TopStable(k=1, epsilon=4.0, delta=0.05, pool=3), BOX),
        (TopStable(k=2, epsilon=2.0, delta=0.1, pool=2, sensitivity=BOTH_WAYS), Domain(3, 3, BOTH_WAYS)),
    ],
}
QUICK = {"restricted": len(INNER[:5]), "limited": 2, "top-stable": 2}
"""How many of each are checked in a hurry."""

LISTED = [9, 3, 0, 7, 3]
SAMPLES: list[Any] = [LISTED, Scores.from_histogram([12, 6, 1], [1, 3, 2]), [4, 0, 0]]
"""Scores to draw for: with ties at the edge of the pool, as groups, and with fewer items than the pool has."""


def unknown_pairs(name: str | None, quick: bool) -> list[Pair]:
    """Return mechanisms and domains to check, of all or of one name."""
    return [
        pair
        for each, pairs in UNKNOWN_UNDER_TEST.items()
        if name in (None, each)
        for pair in (pairs[: QUICK[each]] if quick else pairs)
    ]


def unknown_samples(name: str | None, quick: bool) -> list[tuple[UnknownDomain, Any]]:
    """Return mechanisms and scores to draw for: the first mechanism for all of them, the others in turn."""
    samples: list[tuple[UnknownDomain, Any]] = []
    for each in UNKNOWN_UNDER_TEST:
        mechanisms = [mechanism for mechanism, _ in unknown_pairs(each, quick)] if name in (None, each) else []
        samples.extend((mechanism, SAMPLES[number % len(SAMPLES)]) for number, mechanism in enumerate(mechanisms))
        samples.extend((mechanism, scores) for mechanism in mechanisms[:1] for scores in SAMPLES[1:])
    return samples
