"""The mechanisms under test, with the domains of their privacy checks and the scores of their sampler checks.

A new mechanism is one more entry of UNDER_TEST, or of UNKNOWN_UNDER_TEST if it does not know the items.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dpselect.mechanisms import Canonical, Gamma, Gaussian, Joint, Laplace, Lipschitz, Mechanism, OneShot, Peeling
from dpselect.mechanisms.discovered import Discovered
from dpselect.mechanisms.discovery import Discovery
from dpselect.mechanisms.limited import LimitedDomain
from dpselect.mechanisms.restricted import Restricted
from dpselect.mechanisms.top_stable import TopStable
from dpselect.mechanisms.unknown import UnknownDomain
from dpselect.privacy import COUNTS, Sensitivity
from dpselect.sampling.noise import NOISES
from dpselect.scores import Scores
from dpselect.verify.boxes import KnownBox, box_around, favouring_box
from dpselect.verify.domain import Chosen, Domain, ScoreVector
from dpselect.verify.included import GaussianShown, LaplaceShown
from dpselect.verify.own_noises import SECANT, STEPS
from dpselect.verify.sampler import oneshot_groups, peeling_groups, vector_groups

BOTH_WAYS, RAISED = Sensitivity(-1, 1), Sensitivity(2, 3)
RACES = ("exponential", "gumbel")
PEELED = (*RACES, "laplace")


@dataclass(frozen=True)
class Setting:
    """One privacy check of a mechanism: k, ε, and the domain."""

    k: int
    epsilon: float
    domain: Domain

    def applied_to(self, mechanism: Mechanism) -> tuple[Mechanism, Domain]:
        """Return the mechanism with these parameters, and the domain."""
        changed = replace(mechanism, k=self.k, epsilon=self.epsilon, sensitivity=self.domain.sensitivity)
        return changed, self.domain


QUICK_SETTINGS = [Setting(2, 1.0, Domain(4, 3, COUNTS)), Setting(2, 1.0, Domain(3, 2, BOTH_WAYS))]

SETTINGS = [
    Setting(1, 1.0, Domain(4, 3, COUNTS)),
    Setting(2, 0.5, Domain(4, 2, COUNTS)),
    Setting(2, 1.0, Domain(4, 3, COUNTS)),
    Setting(2, 2.0, Domain(4, 2, COUNTS)),
    Setting(3, 1.0, Domain(4, 2, COUNTS)),
    Setting(3, 1.0, Domain(5, 1, COUNTS)),
    Setting(1, 1.0, Domain(3, 3, BOTH_WAYS)),
    Setting(2, 1.0, Domain(4, 1, BOTH_WAYS)),
    Setting(3, 2.0, Domain(4, 1, BOTH_WAYS)),
]

APPROXIMATE_SETTINGS = [
    Setting(2, 0.5, Domain(4, 3, COUNTS)),
    Setting(3, 2.0, Domain(4, 2, COUNTS)),
    Setting(3, 0.5, Domain(4, 1, BOTH_WAYS)),
]
"""Settings in which a delta makes a difference."""

FRACTIONAL_SETTINGS = [
    Setting(2, 1.0, Domain(3, 2, COUNTS, step=0.25)),
    Setting(2, 0.5, Domain(4, 1, COUNTS, step=0.5)),
    Setting(1, 2.0, Domain(3, 2, BOTH_WAYS, step=0.5)),
]
"""Settings with scores between the whole numbers."""


@dataclass(frozen=True)
class Tested:
    """A mechanism under test.

    `specimens` get every check; `group_law` is their law of counts per group of ties, if known. `variants` and
    `approximate` (with a delta) are left out of the quick checks. `settings` replaces the common settings for a
    mechanism whose law is slow to compute; the quick checks use the first. `with_values` are mechanisms that show
    values, with domains of their own. `rounding` are mechanisms that round, checked on scores between the whole
    numbers; the quick checks use the first.
    """

    specimens: Sequence[Mechanism]
    group_law: Callable[[Any, Sequence[float], Sequence[int]], dict[tuple[int, ...], float]] | None = None
    variants: Sequence[Mechanism] = ()
    approximate: Sequence[Mechanism] = ()
    settings: Sequence[Setting] | None = None
    with_values: Sequence[tuple[Mechanism, Domain]] = ()
    rounding: Sequence[Mechanism] = ()

    def privacy_pairs(self, quick: bool) -> list[tuple[Mechanism, Domain]]:
        """Return mechanisms and the domains on which their privacy is checked."""
        settings = self.settings or (QUICK_SETTINGS if quick else SETTINGS)
        parts = [(self.specimens, settings[:1] if quick and self.settings else settings)]
        if not quick:
            parts += [(self.variants, QUICK_SETTINGS), (self.approximate, APPROXIMATE_SETTINGS)]
        parts.append((self.rounding[:1] if quick else self.rounding, FRACTIONAL_SETTINGS))
        pairs = [
            setting.applied_to(mechanism)
            for mechanisms, chosen in parts
            for mechanism in mechanisms
            for setting in chosen
        ]
        return [*pairs, *(self.with_values[:1] if quick else self.with_values)]


CANONICAL = [
    Canonical(k=2, epsilon=1.0, gamma=gamma, noise=noise, margin=margin)
    for noise in RACES
    for margin in (True, False)
    for gamma in (0, 0.25, 0.5, 0.75, 1)
]

UNDER_TEST: dict[str, Tested] = {
    "canonical": Tested(
        [variant for variant in CANONICAL if variant.gamma == 0.5 and variant.margin],
        variants=[variant for variant in CANONICAL if variant.gamma != 0.5 or not variant.margin],
        rounding=[replace(variant, rounded=True) for variant in CANONICAL if variant.gamma == 0.5],
    ),
    "gamma": Tested(
        [Gamma(k=2, epsilon=1.0)],
        settings=[Setting(2, 1.0, Domain(3, 2, COUNTS)), Setting(1, 2.0, Domain(3, 2, BOTH_WAYS))],
    ),
    "gaussian": Tested(
        [Gaussian(k=2, epsilon=1.0, delta=0.1, max_items_per_person=3)],
        vector_groups,
        settings=[
            Setting(1, 0.5, Domain(2, 3, BOTH_WAYS)),
            Setting(2, 0.5, Domain(3, 2, COUNTS)),
            Setting(2, 1.0, Domain(3, 1, BOTH_WAYS)),
        ],
        with_values=[
            (
                GaussianShown(k=2, epsilon=0.5, delta=0.05, max_items_per_person=2),
                Domain(3, 1, COUNTS, items_per_person=2),
            )
        ],
    ),
    "joint": Tested(
        [Joint(k=2, epsilon=1.0, noise=noise) for noise in RACES],
        variants=[Joint(k=2, epsilon=1.0, noise=noise, margin=False) for noise in RACES],
    ),
    "laplace": Tested(
        [Laplace(k=2, epsilon=1.0, max_items_per_person=2)],
        vector_groups,
        settings=[
            Setting(2, 1.0, Domain(4, 2, COUNTS, items_per_person=2)),
            Setting(3, 0.5, Domain(4, 1, COUNTS, items_per_person=2)),
            Setting(1, 2.0, Domain(3, 2, COUNTS, items_per_person=2)),
            Setting(2, 1.0, Domain(3, 1, BOTH_WAYS, items_per_person=2)),
            Setting(1, 1.0, Domain(3, 3, RAISED, items_per_person=2)),
        ],
        with_values=[
            (LaplaceShown(k=2, epsilon=1.0, max_items_per_person=2), Domain(3, 1, COUNTS, items_per_person=2)),
            (LaplaceShown(k=1, epsilon=0.5, max_items_per_person=3), Domain(3, 1, COUNTS, step=0.5)),
            (
                LaplaceShown(k=2, epsilon=2.0, max_items_per_person=1, sensitivity=RAISED),
                Domain(3, 1, RAISED, items_per_person=1),
            ),
        ],
    ),
    "lipschitz": Tested([Lipschitz(k=2, epsilon=1.0, noise=noise) for noise in (SECANT, STEPS)], vector_groups),
    "oneshot": Tested(
        [OneShot(k=2, epsilon=1.0, noise=noise, ordered=ordered) for ordered in (False, True) for noise in NOISES],
        oneshot_groups,
        approximate=[
            OneShot(k=2, epsilon=0.5, noise=noise, delta=delta, ordered=ordered)
            for noise, ordered in (("gumbel", False), ("gumbel", True), ("laplace", False))
            for delta in (0.05, 1e-3)
        ],
    ),
    "peeling": Tested(
        [Peeling(k=2, epsilon=1.0, noise=noise) for noise in PEELED],
        peeling_groups,
        approximate=[
            Peeling(k=2, epsilon=0.5, noise=noise, delta=delta) for noise in PEELED[::-1] for delta in (0.05, 1e-3)
        ],
    ),
}

LISTED = [3, 1, 0, 2, 1]
TIED_VALUES, TIED_SIZES = [2, 1, 0], [1, 3, 2]
HUGE_VALUES, HUGE_SIZES = [40, 21, 0], [3, 10**9, 10**18]
FRACTIONAL = [3.2, 0.4, 0.3, 2.0, 0.9]
"""Scores to draw for: a list with ties behind the top two, groups of ties, groups larger than memory, and fractions."""

# Unknown domains: a score of 0 is an item that does not exist, so neighbours differ in which items there are. δ is
# large enough for the tests to pass sometimes within the box, and domains have more items than the pool.
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
    OneShot(k=2, epsilon=1.0, ordered=True),
]
BOX = Domain(4, 3, COUNTS)

UnknownPair = tuple[UnknownDomain, Domain]


def _around(inner: Mechanism, *, pool: int = 3, epsilon: float = 2.0, delta: float = 0.1) -> Restricted:
    return Restricted(inner=inner, pool=pool, test_epsilon=epsilon, test_delta=delta)


def _gaussian(most: int) -> UnknownPair:
    inner = Gaussian(k=2, epsilon=0.5, delta=0.05, max_items_per_person=most)
    return _around(inner), Domain(4, 3, COUNTS, items_per_person=most)


def _laplace(most: int) -> UnknownPair:
    inner = Laplace(k=2, epsilon=1.0, max_items_per_person=most)
    return _around(inner), Domain(4, 3, COUNTS, items_per_person=most)


def _limited(most: int, noise: str, *, epsilon: float, pool: int) -> UnknownPair:
    mechanism = LimitedDomain(k=2, epsilon=epsilon, delta=0.1, pool=pool, max_items_per_person=most, noise=noise)
    return mechanism, Domain(4, 3, COUNTS, items_per_person=most)


def _discovered(inner: Mechanism, most: int, epsilon: float, delta: float, *near: ScoreVector) -> UnknownPair:
    """Return Discovered on a box of small counts, or on counts near the threshold, where the choice matters."""
    found = Discovered(inner=inner, discovery=Discovery(epsilon=epsilon, delta=delta, max_items_per_person=most))
    box = Chosen(len(near[0]), vectors=near, items_per_person=most) if near else Domain(4, 3, items_per_person=most)
    return found, box


UNKNOWN_UNDER_TEST: dict[str, list[UnknownPair]] = {
    "restricted": [
        *[(_around(inner), BOX) for inner in INNER],
        _gaussian(2),
        (_around(Canonical(k=1, epsilon=0.5), pool=1, epsilon=0.5, delta=0.3), Domain(3, 4, COUNTS)),
        (_around(Canonical(k=2, epsilon=0.5), pool=2, epsilon=4.0, delta=0.01), BOX),
        (_around(Joint(k=2, epsilon=4.0), pool=4, epsilon=1.0), Domain(5, 1, COUNTS)),
        (_around(Joint(k=1, epsilon=1.0, sensitivity=BOTH_WAYS), pool=2), Domain(3, 3, BOTH_WAYS)),
        (_around(Canonical(k=2, epsilon=1.0, sensitivity=BOTH_WAYS), pool=2), Domain(3, 2, BOTH_WAYS)),
        _gaussian(1),
        _gaussian(3),
        _laplace(1),
        _laplace(2),
        (_around(favouring_box(KnownBox, 1.0)), BOX),
        (_around(box_around(Canonical(k=2, epsilon=1.0))), BOX),
        (_around(box_around(Peeling(k=2, epsilon=0.5, noise="gumbel", delta=0.05))), BOX),
    ],
    "limited": [
        (LimitedDomain(k=2, epsilon=2.0, delta=0.1, pool=3), BOX),
        _limited(2, "laplace", epsilon=2.0, pool=2),
        _limited(1, "gumbel", epsilon=2.0, pool=2),
        *[_limited(most, "laplace", epsilon=epsilon, pool=3) for most in (1, 2) for epsilon in (0.5, 4.0)],
        (LimitedDomain(k=1, epsilon=4.0, delta=0.02, pool=1), BOX),
        (LimitedDomain(k=2, epsilon=0.5, delta=0.3, pool=2), BOX),
        (LimitedDomain(k=2, epsilon=2.0, delta=0.1, pool=2, sensitivity=BOTH_WAYS), Domain(3, 2, BOTH_WAYS)),
        (LimitedDomain(k=1, epsilon=2.0, delta=1e-3, pool=3, pool_epsilon=1.0), BOX),
        (LimitedDomain(k=2, epsilon=6.0, delta=0.2, pool=3, pool_epsilon=1.0), BOX),
        (LimitedDomain(k=1, epsilon=4.0, delta=0.2, pool=4, pool_epsilon=2.0), Domain(5, 1, COUNTS)),
        (
            LimitedDomain(
                k=1, epsilon=2.0, delta=0.1, pool=3, pool_epsilon=1.0, max_items_per_person=2, noise="laplace"
            ),
            Domain(4, 3, COUNTS, items_per_person=2),
        ),
        (
            LimitedDomain(k=1, epsilon=2.0, delta=0.1, pool=2, pool_epsilon=1.0, sensitivity=BOTH_WAYS),
            Domain(3, 2, BOTH_WAYS),
        ),
    ],
    "discovered": [
        _discovered(Canonical(k=2, epsilon=1.0), 2, 1.0, 0.1),
        _discovered(Gaussian(k=2, epsilon=0.5, delta=0.05, max_items_per_person=1), 1, 0.5, 0.3),
        _discovered(OneShot(k=2, epsilon=1.0, noise="gumbel", delta=0.05), 3, 2.0, 0.1),
        _discovered(Joint(k=1, epsilon=2.0), 4, 0.5, 0.4),
        _discovered(Peeling(k=2, epsilon=1.0), 2, 1.0, 1e-3, (16, 16, 15), (15, 14, 0)),
        _discovered(OneShot(k=1, epsilon=1.0), 3, 1.0, 1e-3, (22, 22, 22, 22)),
    ],
    "top-stable": [
        (TopStable(k=1, epsilon=3.0, delta=0.1, pool=1), Domain(3, 6, COUNTS)),
        (TopStable(k=2, epsilon=4.0, delta=0.1, pool=3), BOX),
        (TopStable(k=2, epsilon=0.5, delta=0.3, pool=2), BOX),
        (TopStable(k=1, epsilon=4.0, delta=0.05, pool=3), BOX),
        (TopStable(k=2, epsilon=2.0, delta=0.1, pool=2, sensitivity=BOTH_WAYS), Domain(3, 3, BOTH_WAYS)),
    ],
}
QUICK_UNKNOWN = {"restricted": 5, "limited": 2, "discovered": 2, "top-stable": 2}
"""How many of each are in the quick checks."""

UNKNOWN_SAMPLES: list[Any] = [[9, 3, 0, 7, 3], Scores.from_histogram([12, 6, 1], [1, 3, 2]), [4, 0, 0]]
"""Scores to draw for: with ties at the edge of the pool, as groups, and with fewer items than the pool."""


def unknown_pairs(name: str, quick: bool) -> list[UnknownPair]:
    """Return the mechanisms of one name for unknown domains, and the domains on which their privacy is checked."""
    pairs = UNKNOWN_UNDER_TEST[name]
    return pairs[: QUICK_UNKNOWN[name]] if quick else pairs


def unknown_samples(name: str, quick: bool) -> list[tuple[UnknownDomain, Any]]:
    """Return the mechanisms of one name with scores to draw for: all scores for the first, one for each other."""
    mechanisms = [mechanism for mechanism, _ in unknown_pairs(name, quick)]
    return [
        *((each, UNKNOWN_SAMPLES[number % len(UNKNOWN_SAMPLES)]) for number, each in enumerate(mechanisms)),
        *((mechanisms[0], scores) for scores in UNKNOWN_SAMPLES[1:]),
    ]
