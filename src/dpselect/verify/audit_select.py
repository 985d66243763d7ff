"""What the audit asks `dpselect.select` and `rank`: every mechanism, on neighbours on which it loses much.

The neighbours come from the exact laws. Among small inputs those stand here for which an event of large probability
uses most of the claim, since a rare event says little.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, partial
from typing import Any

import dpselect as dps
from dpselect.privacy import Guarantee
from dpselect.verify import ranking
from dpselect.verify.audit import Probe
from dpselect.verify.broken.exact import Unshuffled
from dpselect.verify.own_noises import STEPS

SELECT, RANK = "select", "rank"


def seen(release: dps.Release) -> Hashable:
    """Return all that a reader sees of a release and that its question does not determine."""
    items = tuple(map(str, release.items))
    values = None if release.values is None else tuple(release.values)
    return items, values, release.mechanism.name, release.guarantee


@dataclass(frozen=True)
class Selection:
    """A question to `select`, and scores without and with one person; or one to `rank`, and comparisons.

    The mechanism is its name, with further parameters, or an object.
    """

    name: str
    mechanism: Any
    without: Sequence[Any]
    with_person: Sequence[Any]
    asked: Mapping[str, Any] = field(default_factory=dict)
    flaw: str = ""
    door: str = SELECT

    def probe(self, runs: int) -> Probe:
        """Return the question, to be asked so many times on either input."""
        return Probe(self.door, self.name, partial(self._answers, runs), self.flaw, portable=True)

    @property
    def mechanism_name(self) -> str:
        """The name by which `verify --mechanism` knows what is asked."""
        return ranking.NAME if self.door == RANK else str(getattr(self.mechanism, "name", self.mechanism))

    def _answers(self, runs: int, with_person: bool, seeds: Iterator[int | None]) -> tuple[Guarantee, list[Hashable]]:
        given: Any = list(self.with_person if with_person else self.without)
        data, ask = (_votes(given), dps.rank) if self.door == RANK else (dps.Scores.of(given), dps.select)
        releases = [ask(data, mechanism=self.mechanism, **self.asked, seed=next(seeds)) for _ in range(runs)]
        return releases[0].guarantee, [seen(release) for release in releases]


def _votes(rows: Sequence[tuple[str, str, str]]) -> Any:
    """Return a table of comparisons, each of a winner, a loser and a person."""
    import pyarrow

    columns = ("winner", "loser", "person")
    schema = pyarrow.schema([(name, "string") for name in columns])
    return pyarrow.Table.from_pylist([dict(zip(columns, row, strict=True)) for row in rows], schema)


class Untested(dps.Restricted):
    """Restricted whose tests always pass."""

    @cached_property
    def _tests(self) -> tuple[Fraction, Fraction]:
        return self.rate(), self.height() - 1000


class Halved(dps.OneShot):
    """OneShot with half the noise that its claim needs."""

    def rate(self, size: int) -> Fraction:
        return 2 * super().rate(size)


TESTED: dict[str, Any] = {
    "inner": dps.Canonical(k=1, epsilon=0.5),
    "pool": 1,
    "test_epsilon": 0.5,
    "test_delta": 0.05,
}
"""Arguments of a Restricted that shows the only item of an unknown domain with probability δ."""

_PURE: dict[str, Any] = {"k": 2, "epsilon": 2.0}
_ONE: dict[str, Any] = {"k": 1, "epsilon": 2.0}
_LAST = (4, 0, 0), (4, 0, 1)
_TIED = (1, 1, 1), (1, 1, 2)
_RISING = (1, 1, 1), (1, 2, 2)
_OWN = (0, 0, 0), (0, 1, 0)


def _noise(name: str, **options: Any) -> dict[str, Any]:
    return {"options": {"noise": name, **options}}


SELECTIONS: list[Selection] = [
    Selection("canonical", "canonical", *_LAST, _PURE),
    Selection("joint", "joint", *_LAST, _PURE),
    Selection("one-shot", "oneshot", *_TIED, _PURE),
    Selection("peeling", "peeling", *_TIED, _PURE),
    Selection("gamma", "gamma", *_TIED, _PURE),
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
    Selection("automatic choice, in order", "auto", *_TIED, {**_PURE, "ordered": True}),
    Selection("canonical, gumbel", "canonical", (2, 2, 1, 0), (3, 3, 1, 0), {**_PURE, **_noise("gumbel")}),
    Selection("canonical, no margin", "canonical", (2, 2, 1, 0), (2, 3, 2, 0), {**_PURE, "options": {"margin": False}}),
    Selection("joint, gumbel", "joint", (2, 2, 0), (2, 3, 1), {**_PURE, **_noise("gumbel")}),
    *[
        Selection(f"one-shot, {noise}", "oneshot", *_RISING, {**_ONE, **_noise(noise)})
        for noise in ("gumbel", "laplace", "logistic", "half-logistic")
    ],
    Selection("one-shot, gumbel, with delta", "oneshot", *_TIED, {**_PURE, "delta": 0.01, **_noise("gumbel")}),
    *[Selection(f"peeling, {noise}", "peeling", *_TIED, {**_PURE, **_noise(noise)}) for noise in ("gumbel", "laplace")],
    Selection("peeling, gumbel, with delta", "peeling", *_TIED, {**_PURE, "delta": 0.01, **_noise("gumbel")}),
    Selection("lipschitz, steps", dps.Lipschitz(k=1, epsilon=2.0, noise=STEPS), *_RISING),
    Selection(
        "top-stable, by its gap", "top-stable", (5, 2), (6, 2), {"k": 1, "epsilon": 4.0, "delta": 0.05, "pool": 1}
    ),
    Selection("laplace, with values", "laplace", (50, 0), (51, 0), {**_ONE, "max_items_per_person": 1, "values": True}),
    Selection("automatic choice, with values", "auto", (1, 0), (1, 1), {**_ONE, "values": 0.5}),
    Selection("automatic choice, lowest", "auto", (1, 1), (1, 2), {**_ONE, "lowest": True}),
]
"""The first of each mechanism is in the quick audit."""

_GAMES: dict[str, Any] = {
    "k": 1,
    "epsilon": 1.0,
    "domain": ["ann", "bob"],
    "comparisons_per_pair": 1,
    "max_degree": 1,
    "damping": 0.9,
}
_FOR_BOB, _FOR_ANN = ("bob", "ann", "cem"), ("ann", "bob", "eve")
RANKINGS = [
    Selection(
        "votes, of which one per person counts",
        "auto",
        [_FOR_BOB],
        [_FOR_BOB, *[_FOR_ANN] * 10],
        {**_GAMES, "person": "person", "max_votes_per_person": 1},
        door=RANK,
    ),
]
"""Questions to `rank`, which opens its table anew each time."""

BROKEN_RANKINGS = [
    Selection(
        "votes, broken",
        "auto",
        [_FOR_BOB] * 20,
        [_FOR_BOB] * 20 + [_FOR_ANN] * 40,
        {**_GAMES, "comparisons_per_pair": 60},
        flaw="one comparison is protected, and a person has forty",
        door=RANK,
    ),
]

BROKEN = [
    Selection(
        "one-shot, broken", Halved(k=1, epsilon=2.0), (1, 1), (1, 2), flaw="the noise is half of what the claim needs"
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
