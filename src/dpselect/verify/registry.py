"""What `dpselect verify` runs: the checks of every mechanism under test, and the broken twins."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from dpselect.errors import InvalidInput
from dpselect.scores import Scores
from dpselect.verify import audit_signals, discovery, groups, ranking, signals
from dpselect.verify.audit import Probe
from dpselect.verify.audit_select import BROKEN, BROKEN_RANKINGS, RANKINGS, SELECTIONS
from dpselect.verify.audit_tables import open_engines, table_probes
from dpselect.verify.boundaries import BORDERS, SIGNAL_WORDS, answer_words
from dpselect.verify.broken import TWINS, Result, Twin
from dpselect.verify.calibration import CALIBRATIONS
from dpselect.verify.domain import Domain
from dpselect.verify.enumeration import ENUMERATIONS, uniform_draws
from dpselect.verify.exact import ExactCheck
from dpselect.verify.privacy import Check, Subject, shared_privacy_check
from dpselect.verify.sampler import SamplerCheck, check_groups, check_sampler
from dpselect.verify.subjects import (
    FRACTIONAL,
    HUGE_SIZES,
    HUGE_VALUES,
    LISTED,
    TIED_SIZES,
    TIED_VALUES,
    UNDER_TEST,
    UNKNOWN_UNDER_TEST,
    Tested,
    unknown_pairs,
    unknown_samples,
)
from dpselect.verify.tightness import PAIRS, Pair, check_attained

NAMES = [*UNDER_TEST, *UNKNOWN_UNDER_TEST, discovery.NAME, signals.NAME, ranking.NAME, groups.NAME]
"""The mechanisms under test, in the order of the report."""

SAMPLES: dict[str, Sequence[tuple[Subject, Any]]] = {
    discovery.NAME: discovery.SAMPLES,
    ranking.NAME: ranking.SAMPLES,
    signals.NAME: signals.SAMPLES,
    groups.NAME: groups.SAMPLES,
}
"""What is drawn for the mechanisms that are not in the tables of subjects."""

EVERY_MECHANISM = "all"
"""The name of a check that concerns every mechanism."""


@dataclass(frozen=True)
class Rejection:
    """A broken mechanism and its sound counterpart under the same check: the first must fail it, the second pass.

    Parameters
    ----------
    mechanism
        The broken twin: its name, flaw and noise.
    of_broken, of_sound
        The results of the check.

    Examples
    --------
    >>> rejection = rejections()[0]()
    >>> rejection.mechanism.name, rejection.of_broken.passed, rejection.of_sound.passed, rejection.passed
    ('halved noise', False, True, True)
    """

    mechanism: Twin
    of_broken: Result
    of_sound: Result

    @property
    def passed(self) -> bool:
        """Whether the check tells the broken mechanism from the sound one."""
        return not self.of_broken.passed and self.of_sound.passed


def privacy_checks(name: str | None = None, *, quick: bool = False) -> list[Callable[[], Check]]:
    """Return the privacy checks of every mechanism, or of one, as functions without arguments.

    Parameters
    ----------
    name
        The mechanism; by default, all of them.
    quick
        Whether to use fewer settings.

    Returns
    -------
    list
        The checks, not yet run.

    Raises
    ------
    InvalidInput
        If there is no such mechanism.

    Examples
    --------
    >>> [check().passed for check in privacy_checks("gaussian", quick=True)]
    [True, True]
    """
    pairs: list[tuple[Subject, Domain]] = []
    for each in _names(name):
        if each in UNDER_TEST:
            pairs += UNDER_TEST[each].privacy_pairs(quick)
        elif each in UNKNOWN_UNDER_TEST:
            pairs += unknown_pairs(each, quick)
        elif each == discovery.NAME:
            pairs += discovery.LISTINGS[: discovery.QUICK] if quick else discovery.LISTINGS
        elif each == ranking.NAME:
            pairs += ranking.RANKED[: ranking.QUICK] if quick else ranking.RANKED
        elif each == groups.NAME:
            pairs += groups.PAIRS[: groups.QUICK] if quick else groups.PAIRS
        else:
            pairs += signals.QUICK_PAIRS if quick else signals.PAIRS
    return [partial(shared_privacy_check, mechanism, domain) for mechanism, domain in pairs]


def sampler_checks(name: str | None = None, *, quick: bool = False) -> list[Callable[[], SamplerCheck]]:
    """Return the sampler checks of every mechanism, or of one, as functions without arguments.

    Parameters
    ----------
    name
        The mechanism; by default, all of them.
    quick
        Whether to use fewer inputs and draws.

    Returns
    -------
    list
        The checks, not yet run.

    Raises
    ------
    InvalidInput
        If there is no such mechanism.

    Examples
    --------
    >>> checks = sampler_checks("ranking", quick=True)
    >>> len(checks), checks[0]().passed
    (2, True)
    """
    draws = 400 if quick else 1000
    checks: list[Callable[[], SamplerCheck]] = []
    for each in _names(name):
        if each in UNDER_TEST:
            checks += _entry_samplers(UNDER_TEST[each], quick, draws)
        elif each in UNKNOWN_UNDER_TEST:
            checks += [partial(check_sampler, *sample, draws=draws) for sample in unknown_samples(each, quick)]
        else:
            checks += [partial(check_sampler, mechanism, scores, draws=draws) for mechanism, scores in SAMPLES[each]]
    return checks


def _entry_samplers(entry: Tested, quick: bool, draws: int) -> list[Callable[[], SamplerCheck]]:
    """Return the sampler checks of one mechanism.

    The quick ones use the list and the groups of ties in turn, and the huge groups for the first specimen only.
    """
    tied = Scores.from_histogram(TIED_VALUES, TIED_SIZES)
    checks: list[Callable[[], SamplerCheck]] = []
    for number, specimen in enumerate(entry.specimens):
        mechanism = replace(specimen, epsilon=2.0)
        inputs = [(LISTED, tied)[number % 2]] if quick else [LISTED, tied]
        checks += [partial(check_sampler, mechanism, scores, draws=draws) for scores in inputs]
        if number == 0 and not quick:
            checks.append(partial(check_sampler, replace(specimen, k=4), [1, 0, 1, 3], draws=draws))
        if entry.group_law and (number == 0 or not quick):
            law = entry.group_law(mechanism, HUGE_VALUES, HUGE_SIZES)
            checks.append(partial(check_groups, mechanism, HUGE_VALUES, HUGE_SIZES, law, draws=draws))
    checks += [partial(check_sampler, each, [2, 1, 1], draws=draws) for each, _ in entry.with_values[:1]]
    rounding = [replace(each, epsilon=2.0) for each in (entry.rounding[:1] if quick else entry.rounding)]
    checks += [partial(check_sampler, each, FRACTIONAL, draws=draws) for each in rounding]
    if not quick:
        checks += [partial(check_sampler, each, LISTED, draws=draws) for each in entry.approximate[:1]]
        variants = [replace(each, epsilon=2.0) for each in entry.variants]
        checks += [partial(check_sampler, each, LISTED, draws=draws // 4) for each in variants]
    return checks


def exact_checks(name: str | None = None) -> list[Callable[[], ExactCheck]]:
    """Return the exact comparisons of every mechanism, or of one, as functions without arguments.

    Parameters
    ----------
    name
        The mechanism; by default, all of them.

    Returns
    -------
    list
        The checks, not yet run.

    Raises
    ------
    InvalidInput
        If there is no such mechanism.

    Examples
    --------
    >>> all(check().passed for check in exact_checks("gamma"))
    True
    """
    names = _names(name)
    checks: list[tuple[str, Callable[[], ExactCheck]]] = [
        *[(each, partial(answer_words, each, noise, borders)) for each, noise, borders in BORDERS],
        *[(each, partial(_attained, each, compared, pair)) for each, compared, pair in PAIRS],
        *[
            (each, partial(check, each))
            for each, check in (*CALIBRATIONS, *discovery.CALIBRATED, *ENUMERATIONS, *SIGNAL_WORDS)
        ],
    ]
    asked = [check for wanted in names for each, check in checks if each == wanted]
    return [*asked, partial(uniform_draws, name or EVERY_MECHANISM)]


def _attained(name: str, compared: str, pair: Callable[[], Pair]) -> ExactCheck:
    return check_attained(name, compared, pair())


def rejections() -> list[Callable[[], Rejection]]:
    """Return the checks of the broken twins, as functions without arguments.

    Returns
    -------
    list
        The checks, not yet run.

    Examples
    --------
    >>> rejections()[1]().passed
    True
    """
    return [partial(reject, twin) for twin in TWINS]


def reject(twin: Twin) -> Rejection:
    """Run the check that must reject a broken twin, on it and on its sound counterpart."""
    return Rejection(twin, twin.broken(), twin.sound())


def verify_all(name: str | None = None, *, quick: bool = False) -> list[Result | Rejection]:
    """Run every check of every mechanism, or of one, and then the broken twins.

    Parameters
    ----------
    name
        The mechanism; by default, all of them. The broken twins always run.
    quick
        Whether to use fewer settings and draws.

    Returns
    -------
    list
        The results; each has an attribute `passed`.

    Raises
    ------
    InvalidInput
        If there is no such mechanism.

    Examples
    --------
    >>> verify_all("one-shot")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    dpselect.errors.InvalidInput: mechanism must be one of canonical, gamma, ... got 'one-shot'
    """
    return [
        *(check() for check in privacy_checks(name, quick=quick)),
        *(check() for check in sampler_checks(name, quick=quick)),
        *(check() for check in exact_checks(name)),
        *(check() for check in rejections()),
    ]


ANSWERS, QUICK_ANSWERS = 5000, 2000
"""How often the audit asks `select` or a client on each input."""

RANKED_ANSWERS, BROKEN_RANKED_ANSWERS = 200, 100
"""How often it asks `rank`, which takes a hundred times as long."""

AUDITED = [*dict.fromkeys(each.mechanism_name for each in SELECTIONS), ranking.NAME, signals.NAME]
"""The names that an audit knows: the mechanisms, "auto", rankings and multi-selection."""


@contextlib.contextmanager
def open_audit(name: str | None = None, *, quick: bool = False) -> Iterator[tuple[list[Probe], dict[str, str]]]:
    """Open the engines that can be had here, and yield the questions of the audit and which engines are skipped why.

    Parameters
    ----------
    name
        The mechanism; by default, all of them, and `top` on every engine. The broken mechanisms are always asked.
    quick
        Whether to ask fewer questions, less often, and of files only.

    Yields
    ------
    The questions for `run_audit`, and the engines that are skipped, each with the reason.

    Raises
    ------
    InvalidInput
        If there is no such mechanism in the audit.

    Examples
    --------
    >>> with open_audit("peeling") as (probes, skipped):
    ...     [probe.name for probe in probes if not probe.flaw]
    ['peeling', 'peeling, gumbel', 'peeling, laplace', 'peeling, gumbel, with delta']
    """
    if name not in (None, *AUDITED):
        raise InvalidInput("mechanism", name, f"must be one of {', '.join(AUDITED)} in an audit")
    chosen = _without_tables(name, quick)
    if name is not None:
        yield chosen, {}
        return
    with open_engines(quick=quick) as (engines, skipped):
        yield [*chosen, *table_probes(engines, quick=quick)], skipped


def _without_tables(name: str | None, quick: bool) -> list[Probe]:
    """Return the questions about one mechanism, or about all; quick: the first about each, and none to `rank`."""
    runs = QUICK_ANSWERS if quick else ANSWERS
    asked = [each for each in SELECTIONS if name in (None, each.mechanism_name)]
    if quick:
        asked = list({each.mechanism_name: each for each in reversed(asked)}.values())[::-1]
    probes = [each.probe(runs) for each in (*asked, *BROKEN)]
    if name in (None, signals.NAME):
        sessions = audit_signals.SESSIONS[:1] if quick else audit_signals.SESSIONS
        probes += [each.probe(runs) for each in (*sessions, *audit_signals.BROKEN)]
    if name == ranking.NAME or (name is None and not quick):
        probes += [each.probe(RANKED_ANSWERS) for each in RANKINGS]
        probes += [each.probe(BROKEN_RANKED_ANSWERS) for each in BROKEN_RANKINGS]
    return probes


def _names(name: str | None) -> list[str]:
    if name is None:
        return NAMES
    if name not in NAMES:
        raise InvalidInput("mechanism", name, "must be one of " + ", ".join(NAMES))
    return [name]
