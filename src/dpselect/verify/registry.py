"""What `dpselect verify` runs: every mechanism with its domains and samplers, and the broken corpus.

A new mechanism is one more entry of UNDER_TEST.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

from dpselect.errors import InvalidInput
from dpselect.mechanisms import Canonical, Gamma, Gaussian, Joint, Mechanism, OneShot, Peeling
from dpselect.privacy import COUNTS, Sensitivity
from dpselect.sampling.noise import NOISES
from dpselect.scores import Scores
from dpselect.verify import broken
from dpselect.verify.attained import PAIRS, check_attained
from dpselect.verify.broken.exact import EXACT_TWINS, ExactTwin
from dpselect.verify.domain import Domain
from dpselect.verify.drawn import BORDERS, drawn_as_stated
from dpselect.verify.enumeration import COUNTED, uniform_draws
from dpselect.verify.exact import ExactCheck
from dpselect.verify.figures import FIGURES
from dpselect.verify.groups import gaussian_groups, oneshot_groups, peeling_groups
from dpselect.verify.privacy import Check, Subject, check_privacy
from dpselect.verify.ranking import NAME as RANKING
from dpselect.verify.ranking import ranking_pairs, ranking_samples
from dpselect.verify.sampler import SamplerCheck, check_groups, check_sampler
from dpselect.verify.signals import NAME as SIGNALS
from dpselect.verify.signals import signal_pairs, signal_samples
from dpselect.verify.unknown import UNKNOWN_UNDER_TEST, unknown_pairs, unknown_samples
from dpselect.verify.words_of_signals import SIGNALS as WORDS_OF_SIGNALS


@dataclass(frozen=True)
class Setting:
    """One privacy check of every mechanism: k, ε, and the domain."""

    k: int
    epsilon: float
    domain: Domain


BOTH_WAYS = Sensitivity(-1, 1)

QUICK_SETTINGS = [
    Setting(2, 1.0, Domain(4, 3, COUNTS)),
    Setting(2, 1.0, Domain(3, 2, BOTH_WAYS)),
]

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


@dataclass(frozen=True)
class Entry:
    """A mechanism under test: specimens, which get every check, and its law of counts per group of ties, if known.

    Further variants have their privacy checked, in fewer settings; the slow tests draw from them as well.
    Those with a delta are checked in settings in which it makes a difference; from the first of them draws are taken.
    A mechanism whose law is slow to compute has settings of its own, of which the quick checks take the first.
    """

    specimens: Sequence[Mechanism]
    group_law: Callable[[Any, Sequence[float], Sequence[int]], dict[tuple[int, ...], float]] | None = None
    variants: Sequence[Mechanism] = ()
    approximate: Sequence[Mechanism] = ()
    settings: Sequence[Setting] | None = None


CANONICAL = [
    Canonical(k=2, epsilon=1.0, gamma=gamma, noise=noise, margin=margin)
    for noise in ("exponential", "gumbel")
    for margin in (True, False)
    for gamma in (0, 0.25, 0.5, 0.75, 1)
]


UNDER_TEST: dict[str, Entry] = {
    "canonical": Entry(
        [variant for variant in CANONICAL if variant.gamma == 0.5 and variant.margin],
        variants=[variant for variant in CANONICAL if variant.gamma != 0.5 or not variant.margin],
    ),
    "gamma": Entry(
        [Gamma(k=2, epsilon=1.0)],
        settings=[Setting(1, 2.0, Domain(3, 2, BOTH_WAYS)), Setting(2, 1.0, Domain(3, 2, COUNTS))],
    ),
    "gaussian": Entry(
        [Gaussian(k=2, epsilon=1.0, delta=0.1, max_items_per_person=3)],
        gaussian_groups,
        settings=[
            Setting(1, 0.5, Domain(2, 3, BOTH_WAYS)),
            Setting(2, 0.5, Domain(3, 2, COUNTS)),
            Setting(2, 1.0, Domain(3, 1, BOTH_WAYS)),
        ],
    ),
    "joint": Entry([Joint(k=2, epsilon=1.0, noise=noise) for noise in ("exponential", "gumbel")]),
    "oneshot": Entry(
        [OneShot(k=2, epsilon=1.0, noise=noise) for noise in NOISES],
        oneshot_groups,
        approximate=[
            OneShot(k=2, epsilon=0.5, noise=noise, delta=delta)
            for noise in OneShot.noises_with_delta
            for delta in (0.05, 1e-3)
        ],
    ),
    "peeling": Entry(
        [Peeling(k=2, epsilon=1.0, noise=noise) for noise in ("exponential", "gumbel")],
        peeling_groups,
        approximate=[
            Peeling(k=2, epsilon=0.5, noise=noise, delta=delta)
            for noise in ("gumbel", "exponential")
            for delta in (0.05, 1e-3)
        ],
    ),
}


BROKEN: list[broken.Broken] = [
    broken.HalvedNoise(k=2, epsilon=1.0),
    broken.LeakedOrder(k=2, epsilon=1.0),
    broken.LeakedNoisyOrder(k=2, epsilon=1.0),
    broken.ShownValue(k=1, epsilon=1.0),
    broken.ShownValue(k=1, epsilon=1.0, noise="laplace"),
    broken.ForgottenFactorTwo(k=2, epsilon=1.0),
    broken.ForgottenK(k=2, epsilon=1.0),
    broken.SwappedExtremes(k=1, epsilon=1.0),
    broken.UnnormalisedWeights(k=2, epsilon=1.0),
    broken.MarginOneRankTooFar(k=2, epsilon=1.0),
    broken.MarginOneRankTooNear(k=2, epsilon=1.0),
    broken.NarrowJoint(k=2, epsilon=1.0),
    broken.NarrowJoint(k=2, epsilon=1.0, noise="gumbel"),
    broken.ShortGamma(k=2, epsilon=1.0),
    broken.ForgottenRoot(k=1, epsilon=0.5, delta=0.1),
    broken.ClassicalSigma(k=1, epsilon=10.0, delta=0.1),
    broken.RoundsNotAdded(k=2, epsilon=0.5, delta=1e-3),
    broken.ForgottenConversion(k=2, epsilon=0.5),
    broken.WrongSign(k=2, epsilon=0.5),
    broken.PermuteAndFlipAsRange(k=2, epsilon=0.5),
    broken.ThresholdWithoutSpread(k=2, epsilon=4.0),
    broken.AtLeastForAbove(k=1, epsilon=2.0),
    broken.FreshThresholdNoise(k=4, epsilon=5.0),
    broken.WalkByTrueScore(k=2, epsilon=4.0),
    broken.PoolFromTheData(k=1, epsilon=4.0),
    broken.DummyWithoutSpread(k=1, epsilon=2.0),
    broken.GapOneRankTooFar(k=1, epsilon=6.0),
    broken.WrongRatio(k=1, epsilon=1.0),
    broken.UnroundedPosition(k=1, epsilon=1.0),
    broken.FloatNoise(k=1, epsilon=1.0),
    broken.OneNoiseForAll(k=2, epsilon=1.0),
    broken.EuclideanNoise(k=2, epsilon=1.0),
    broken.RowLeftOut(k=1, epsilon=1.0),
    broken.SwappedFeatures(k=2, epsilon=4.0),
    broken.ForgottenMemory(k=2, epsilon=1.0),
    broken.PremiseForgotten(k=3, epsilon=1.0),
    broken.PromiseNotKept(k=1, epsilon=1.0),
    broken.VotesNotCapped(k=1, epsilon=1.0),
    broken.DenominatorFromTheData(k=1, epsilon=1.0),
    broken.ErrorNotAdded(k=1, epsilon=1.0),
    broken.SwappedLoss(k=2, epsilon=1.0, noise="gumbel"),
    broken.MiscountedClasses(k=2, epsilon=1.0, noise="gumbel"),
    broken.SwappedOrderStatistics(k=2, epsilon=4.0, noise="gumbel"),
    broken.FavouredMembers(k=2, epsilon=4.0, noise="gumbel"),
    broken.ReusedNoise(k=2, epsilon=4.0, noise="gumbel"),
    broken.SortedSet(k=2, epsilon=4.0, noise="gumbel"),
    broken.SlightlyWrongScale(k=2, epsilon=4.0, noise="gumbel"),
    broken.ZeroTwice(k=1, epsilon=1.0),
    broken.SameNoise(k=2, epsilon=1.0),
]

# Items in no particular order, with ties, as a list and as groups of ties; then groups beyond memory.
LISTED = [2, 1, 0, 1, 1]
TIED_VALUES, TIED_SIZES = [2, 1, 0], [1, 3, 2]
HUGE_VALUES, HUGE_SIZES = [40, 21, 0], [3, 10**9, 10**18]


@dataclass(frozen=True)
class Rejection:
    """A broken mechanism and its sound counterpart under one check: the first must fail it, the second pass."""

    mechanism: broken.Broken | ExactTwin
    of_broken: Check | SamplerCheck | ExactCheck
    of_sound: Check | SamplerCheck | ExactCheck

    @property
    def passed(self) -> bool:
        """Whether the check tells the broken mechanism from the sound one."""
        return not self.of_broken.passed and self.of_sound.passed


def privacy_checks(name: str | None = None, *, quick: bool = False) -> list[Callable[[], Check]]:
    """Return the privacy checks of every mechanism, or of one, ready to be run."""
    checks: list[Callable[[], Check]] = [
        partial(check_privacy, _variant(mechanism, setting.k, setting.epsilon, setting.domain), setting.domain)
        for entry in _entries(name)
        for mechanisms, settings in (
            (entry.specimens, _settings(entry, quick)),
            (() if quick else entry.variants, QUICK_SETTINGS),
            (() if quick else entry.approximate, APPROXIMATE_SETTINGS),
        )
        for mechanism in mechanisms
        for setting in settings
    ]
    checks.extend(partial(check_privacy, mechanism, domain) for mechanism, domain in unknown_pairs(name, quick))
    checks.extend(partial(check_privacy, ranked, domain) for ranked, domain in ranking_pairs(name, quick))
    checks.extend(partial(check_privacy, signals, domain) for signals, domain in signal_pairs(name, quick))
    return checks


def sampler_checks(name: str | None = None, *, quick: bool = False) -> list[Callable[[], SamplerCheck]]:
    """Return the sampler checks of every mechanism, or of one, ready to be run.

    The quick ones take the list and the groups of ties in turn, and the huge groups for the first specimen.
    """
    draws = 400 if quick else 1000
    tied = Scores.from_histogram(TIED_VALUES, TIED_SIZES)
    checks: list[Callable[[], SamplerCheck]] = []
    for entry in _entries(name):
        for number, specimen in enumerate(entry.specimens):
            mechanism = replace(specimen, epsilon=2.0)
            inputs = [(LISTED, tied)[number % 2]] if quick else [LISTED, tied]
            checks.extend(partial(check_sampler, mechanism, scores, draws=draws) for scores in inputs)
            if number == 0 and not quick:
                checks.append(partial(check_sampler, replace(specimen, k=4), [1, 0, 1, 3], draws=draws))
            if entry.group_law and (number == 0 or not quick):
                law = entry.group_law(mechanism, HUGE_VALUES, HUGE_SIZES)
                checks.append(partial(check_groups, mechanism, HUGE_VALUES, HUGE_SIZES, law, draws=draws))
        if not quick:
            checks.extend(partial(check_sampler, one, LISTED, draws=draws) for one in entry.approximate[:1])
            checks.extend(
                partial(check_sampler, replace(one, epsilon=2.0), LISTED, draws=draws // 4) for one in entry.variants
            )
    checks.extend(partial(check_sampler, one, scores, draws=draws) for one, scores in unknown_samples(name, quick))
    checks.extend(partial(check_sampler, ranked, results, draws=draws) for ranked, results in ranking_samples(name))
    checks.extend(partial(check_sampler, signals, value, draws=draws) for signals, value in signal_samples(name))
    return checks


EVERY_MECHANISM = "all"
"""Named by checks of what all mechanisms draw with."""


def exact_checks(name: str | None = None) -> list[Callable[[], ExactCheck]]:
    """Return the checks without sampling of every mechanism, or of one, ready to be run."""
    _entries(name)
    checks: list[tuple[str, Callable[[], ExactCheck]]] = [
        *[(each, partial(drawn_as_stated, each, noise, borders)) for each, noise, borders in BORDERS],
        *[(each, partial(_attained, each, compared, pair)) for each, compared, pair in PAIRS],
        *[(each, partial(check, each)) for each, check in (*FIGURES, *COUNTED, *WORDS_OF_SIGNALS)],
        (name or EVERY_MECHANISM, partial(uniform_draws, name or EVERY_MECHANISM)),
    ]
    order = {each: place for place, each in enumerate(_known())}
    asked = [pair for pair in checks if name in (None, pair[0])]
    return [check for _, check in sorted(asked, key=lambda pair: order.get(pair[0], len(order)))]


def _attained(name: str, compared: str, pair: Callable[[], Any]) -> ExactCheck:
    return check_attained(name, compared, pair())


def rejections() -> list[Callable[[], Rejection]]:
    """Return the checks of the broken corpus, ready to be run."""
    corpus: list[broken.Broken | ExactTwin] = [*BROKEN, *EXACT_TWINS]
    return [partial(reject, mechanism) for mechanism in corpus]


def reject(mechanism: broken.Broken | ExactTwin) -> Rejection:
    """Run the check that must reject a broken mechanism, on it and on its sound counterpart."""
    if isinstance(mechanism, ExactTwin):
        return Rejection(mechanism, mechanism.broken(), mechanism.sound())
    if mechanism.rejected_by == "privacy":
        return Rejection(mechanism, _privacy(mechanism, mechanism.domain), _privacy(mechanism.sound, mechanism.domain))
    check = partial(_sampler_on_a_list, scores=mechanism.shown_on, draws=mechanism.draws)
    return Rejection(mechanism, check(mechanism), check(mechanism.sound))


def verify_all(name: str | None = None, *, quick: bool = False) -> list[Check | SamplerCheck | ExactCheck | Rejection]:
    """Run every check of every mechanism, or of one, and then the broken corpus."""
    return [
        *(check() for check in privacy_checks(name, quick=quick)),
        *(check() for check in sampler_checks(name, quick=quick)),
        *(check() for check in exact_checks(name)),
        *(check() for check in rejections()),
    ]


# Several broken mechanisms share a sound counterpart.
@cache
def _privacy(mechanism: Subject, domain: Domain) -> Check:
    return check_privacy(mechanism, domain)


@cache
def _sampler_on_a_list(mechanism: Subject, scores: tuple[float, ...], draws: int) -> SamplerCheck:
    return check_sampler(mechanism, list(scores), draws=draws)


def _entries(name: str | None) -> list[Entry]:
    if name is None:
        return list(UNDER_TEST.values())
    known = _known()
    if name not in known:
        raise InvalidInput("mechanism", name, "one of " + ", ".join(known) + " is needed")
    return [UNDER_TEST[name]] if name in UNDER_TEST else []


def _settings(entry: Entry, quick: bool) -> Sequence[Setting]:
    if entry.settings is None:
        return QUICK_SETTINGS if quick else SETTINGS
    return entry.settings[:1] if quick else entry.settings


def _known() -> list[str]:
    return [*UNDER_TEST, *UNKNOWN_UNDER_TEST, SIGNALS, RANKING]


def _variant(specimen: Mechanism, k: int, epsilon: float, domain: Domain) -> Mechanism:
    return replace(specimen, k=k, epsilon=epsilon, sensitivity=domain.sensitivity)
