"""What the audit asks `dpselect.select`: every mechanism, on neighbouring scores on which it loses much."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, partial
from typing import Any

import dpselect as dps
from dpselect.errors import InvalidInput
from dpselect.privacy import Guarantee
from dpselect.verify.audit import Probe
from dpselect.verify.broken.exact import Unshuffled, with_factor
from dpselect.verify.own_noises import STEPS

DOOR = "select"


def seen(release: dps.Release) -> Hashable:
    """Return all that a reader sees of a release and that its question does not determine."""
    items = tuple(map(str, release.items))
    values = None if release.values is None else tuple(release.values)
    return items, values, release.mechanism.name, release.guarantee


@dataclass(frozen=True)
class Selection:
    """A question to `select`, and scores without and with one person.

    The mechanism is its name, with further parameters, or an object.
    """

    name: str
    mechanism: Any
    without: Sequence[int]
    with_person: Sequence[int]
    asked: Mapping[str, Any] = field(default_factory=dict)
    flaw: str = ""

    def probe(self, runs: int) -> Probe:
        """Return the question, to be asked so many times on either input."""
        return Probe(DOOR, self.name, partial(self._answers, runs), self.flaw)

    @property
    def mechanism_name(self) -> str:
        """The name of the mechanism."""
        return str(getattr(self.mechanism, "name", self.mechanism))

    def _answers(self, runs: int, with_person: bool, seeds: Iterator[int | None]) -> tuple[Guarantee, list[Hashable]]:
        scores = dps.Scores.of(list(self.with_person if with_person else self.without))
        releases = [dps.select(scores, mechanism=self.mechanism, **self.asked, seed=next(seeds)) for _ in range(runs)]
        return releases[0].guarantee, [seen(release) for release in releases]


class Untested(dps.Restricted):
    """Restricted whose tests always pass."""

    @cached_property
    def _tests(self) -> tuple[Fraction, Fraction]:
        return self.rate(), self.height() - 1000


HALVED = with_factor(dps.OneShot, "rate", Fraction(2))
"""OneShot with half the noise that its claim needs."""

TESTED: dict[str, Any] = {
    "inner": dps.Canonical(k=1, epsilon=0.5),
    "pool": 1,
    "test_epsilon": 0.5,
    "test_delta": 0.05,
}
"""Arguments of a Restricted that shows the only item of an unknown domain with probability δ."""

_PURE: dict[str, Any] = {"k": 2, "epsilon": 2.0}
_ONE: dict[str, Any] = {"k": 1, "epsilon": 2.0}
_TOP_TWO = (2, 2, 1, 0), (2, 3, 2, 0)
_TIED = (1, 1, 1, 0), (1, 1, 2, 1)
_RISING = (1, 1, 1, 1, 1, 1), (1, 2, 2, 2, 2, 2)
_OWN = (0, 0, 0), (0, 1, 0)


def _noise(name: str, **options: Any) -> dict[str, Any]:
    return {"options": {"noise": name, **options}}


SELECTIONS: list[Selection] = [
    Selection("canonical", "canonical", *_TOP_TWO, _PURE),
    Selection("joint", "joint", (2, 2, 0), (2, 3, 1), _PURE),
    Selection("one-shot", "oneshot", *_TIED, _PURE),
    Selection("peeling", "peeling", *_TIED, _PURE),
    Selection("gamma", "gamma", (2, 2, 2), (2, 2, 3), _PURE),
    Selection("laplace", "laplace", (2, 2, 1), (2, 2, 2), {**_ONE, "max_items_per_person": 1}),
    Selection(
        "gaussian, with values",
        "gaussian",
        (50, 0),
        (51, 0),
        {**_ONE, "delta": 0.01, "max_items_per_person": 1, "values": True},
    ),
    Selection("restricted", dps.Restricted(**TESTED), *_OWN),
    Selection("limited", "limited", (3, 3, 0, 0), (4, 4, 0, 1), {**_ONE, "delta": 0.05, "pool": 3}),
    Selection("top-stable", "top-stable", *_OWN, {"k": 1, "epsilon": 4.0, "delta": 0.05, "pool": 1}),
    Selection("discovered", "discovered", *_OWN, {"k": 1, "epsilon": 1.0, "delta": 0.1, "max_items_per_person": 1}),
    Selection("automatic choice, in order", "auto", (1, 1, 1), (1, 1, 2), {**_PURE, "ordered": True}),
    Selection("canonical, gumbel", "canonical", (2, 2, 1, 0), (3, 3, 1, 0), {**_PURE, **_noise("gumbel")}),
    Selection("canonical, no margin", "canonical", *_TOP_TWO, {**_PURE, "options": {"margin": False}}),
    Selection("joint, gumbel", "joint", (2, 2, 0), (2, 3, 1), {**_PURE, **_noise("gumbel")}),
    *[
        Selection(f"one-shot, {noise}", "oneshot", *_RISING, {**_ONE, **_noise(noise)})
        for noise in ("gumbel", "laplace", "logistic", "half-logistic")
    ],
    Selection("one-shot, gumbel, with delta", "oneshot", *_RISING, {**_PURE, "delta": 0.01, **_noise("gumbel")}),
    *[Selection(f"peeling, {noise}", "peeling", *_TIED, {**_PURE, **_noise(noise)}) for noise in ("gumbel", "laplace")],
    Selection("peeling, gumbel, with delta", "peeling", *_TIED, {**_PURE, "delta": 0.01, **_noise("gumbel")}),
    Selection("lipschitz, steps", dps.Lipschitz(k=1, epsilon=2.0, noise=STEPS), *_RISING),
    Selection(
        "top-stable, by its gap", "top-stable", (8, 6, 6), (9, 6, 6), {"k": 1, "epsilon": 4.0, "delta": 0.05, "pool": 1}
    ),
    Selection("laplace, with values", "laplace", (50, 0), (51, 0), {**_ONE, "max_items_per_person": 1, "values": True}),
    Selection("automatic choice, with values", "auto", (1, 0), (1, 1), {**_ONE, "values": 0.5}),
    Selection("automatic choice, lowest", "auto", (1, 1), (1, 2), {**_ONE, "lowest": True}),
]
"""The first of each mechanism is in the quick audit."""

BROKEN = [
    Selection(
        "one-shot, broken", HALVED(k=1, epsilon=2.0), (1, 1), (1, 2), flaw="the noise is half of what the claim needs"
    ),
    Selection("one-shot, broken", Unshuffled(k=2, epsilon=2.0), (1, 1), (1, 2), flaw="the set is listed by true score"),
    Selection(
        "restricted, broken",
        Untested(**TESTED),
        *_OWN,
        flaw="an unknown item is shown untested",
    ),
]
"""Mechanisms that the audit must reject."""


NAMES = list(dict.fromkeys(each.mechanism_name for each in SELECTIONS))
"""The mechanisms that are audited, and "auto"."""


def selections(mechanism: str | None, *, quick: bool) -> list[Selection]:
    """Return what is asked about all mechanisms, or about one; quick: one question about each."""
    if mechanism not in (None, *NAMES):
        raise InvalidInput("mechanism", mechanism, f"must be one of {', '.join(NAMES)} in an audit")
    wanted = [each for each in SELECTIONS if mechanism in (None, each.mechanism_name)]
    return (
        [
            next(each for each in wanted if each.mechanism_name == name)
            for name in dict.fromkeys(each.mechanism_name for each in wanted)
        ]
        if quick
        else wanted
    )
