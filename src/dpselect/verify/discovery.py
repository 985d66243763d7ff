"""Discovery as a mechanism under test: scores are weights of items, and neighbours differ by a person with n items.

An item of weight 0 does not exist, so a person adds own items and shared ones in any mix. A person's items get the
weight that the mechanism gives to a person with so many items, whatever it is in a broken twin.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, product
from typing import Any, ClassVar

from dpselect.mechanisms import mechanism_for
from dpselect.mechanisms.discovered import Discovered
from dpselect.mechanisms.discovery import RARELY, Discovery
from dpselect.privacy import COUNTS, Sensitivity
from dpselect.sampling.balls import ball, working_precision
from dpselect.scores import Scores
from dpselect.verify.domain import Domain, ScoreVector
from dpselect.verify.exact import ALLOWED, CLOSED_FORMS, OFF, PRECISION, WORDS, ExactCheck, GivenWords, last_win

NAME = "discovery"


@dataclass(frozen=True, kw_only=True)
class Listing(Discovery):
    """Discovery among `k` possible items, of which any number may be listed."""

    ordered: ClassVar[bool] = False
    may_stop: ClassVar[bool] = True
    noise: ClassVar[str] = "normal"
    sensitivity: ClassVar[Sensitivity] = COUNTS

    k: int = 4


@dataclass(frozen=True)
class People(Domain):
    """Weights of items in units, each 0 or one of `levels`, and one person with 1 … n items of weights[n − 1] each."""

    weights: tuple[int, ...] = ()
    levels: tuple[int, ...] = ()
    units: int = 1

    @classmethod
    def around(cls, mechanism: Listing, *leads: float) -> People:
        """Return the domain in which items are absent, or lead the threshold by one of `leads`."""
        weights = tuple(map(mechanism.weight, range(1, mechanism.max_items_per_person + 1)))
        levels = tuple(max(mechanism.threshold + round(lead * mechanism.units), 1) for lead in leads)
        return cls(mechanism.k, weights=weights, levels=levels, units=mechanism.units)

    def score_vectors(self) -> list[ScoreVector]:
        """Return every vector of weights."""
        return list(product((0, *self.levels), repeat=self.size))

    def moves(self) -> list[ScoreVector]:
        """Return what every person adds: the weight of n items to each of n items."""
        return [
            tuple(weight if place in own else 0 for place in range(self.size))
            for items, weight in enumerate(self.weights[: self.size], start=1)
            for own in combinations(range(self.size), items)
        ]

    def __str__(self) -> str:
        """Return the weights, as in {0, 2.4, 3.4}^4."""
        return f"{{{', '.join(f'{level / self.units:.3g}' for level in (0, *self.levels))}}}^{self.size}"


def _listing(epsilon: float, delta: float, most: int, items: int, *leads: float) -> tuple[Listing, People]:
    mechanism = Listing(epsilon=epsilon, delta=delta, max_items_per_person=most, k=items)
    return mechanism, People.around(mechanism, *leads)


LISTINGS: list[tuple[Listing, People]] = [
    _listing(1.0, 0.1, 3, 4, -1, 0),
    _listing(0.5, 0.05, 4, 5, -0.5),
    _listing(0.5, 0.1, 6, 6, -0.4),
    _listing(2.0, 0.1, 2, 3, -1, -0.5, 0, 1),
    _listing(1.0, 1e-3, 4, 4, -0.5, 3),
    _listing(0.25, 0.3, 1, 3, -2, -1, -0.5, 0, 4),
]
QUICK = 2
"""The number of discoveries in the quick checks."""

SAMPLED = LISTINGS[0][0]
SAMPLES: list[tuple[Listing, Any]] = [
    (SAMPLED, [SAMPLED.threshold + round(lead * SAMPLED.units) for lead in (-2, -0.5, 0.25, 1)]),
    (SAMPLED, [SAMPLED.threshold, 0, SAMPLED.threshold, SAMPLED.threshold]),
]
"""Discoveries and the weights to draw for: all different, and with ties and an item that does not exist."""


def threshold_words(name: str, kind: type[Discovery] = Discovery) -> ExactCheck:
    """Compare the words up to which an item of a given weight is listed with `P[σ N > ρ − w]`."""
    sound = Discovery(epsilon=0.5, delta=1e-6, max_items_per_person=20)
    drawn = kind(epsilon=0.5, delta=1e-6, max_items_per_person=20)

    def off(lead: float) -> float:
        weight = sound.threshold + round(lead * sound.units)
        last = last_win(lambda word: len(drawn.draw(_single(weight), GivenWords([word])).groups) == 1)
        if last is None:
            return OFF
        with working_precision(PRECISION):
            height = ball(Fraction(sound.threshold - weight, sound.units) / Fraction(sound.sigma))
            return float((last + 1 - CLOSED_FORMS["normal"].tail(height) * WORDS).mid())

    leads = (-30.0, -3.0, 0.0, 1.5, 20.0)
    return ExactCheck(name, "words at which items are listed, normal", tuple(map(off, leads)), -ALLOWED, ALLOWED)


def _single(weight: int) -> Scores:
    return Scores.from_histogram([weight], [1])


TARGETS = ((1.0, 1e-7, 20), (0.1, 1e-6, 50), (3.0, 1e-9, 5), (20.0, 0.01, 30), (0.5, 0.3, 1))


def own_items(name: str, kind: type[Discovery] = Discovery) -> ExactCheck:
    """Compare the probability that some of t own items is listed with δ/2, for the worst t of all t up to m.

    A person with n >= t items adds at most 1/√t to each of them. The threshold is rounded up to a unit of 1/U.
    """

    def used(target: tuple[float, float, int]) -> float:
        epsilon, delta, most = target
        mechanism = kind(epsilon=epsilon, delta=delta, max_items_per_person=most)
        with working_precision(PRECISION):
            normal, sigma, worst = CLOSED_FORMS["normal"], ball(mechanism.sigma), ball(0)
            height = ball(Fraction(mechanism.threshold, mechanism.units))
            for items in range(1, most + 1):
                missed = (1 - normal.tail((height - 1 / ball(items).sqrt()) / sigma)).log() * items
                worst = max(worst, -missed.expm1())
            return float(worst / ball(Fraction(delta) / 2))

    return ExactCheck(name, "probability of own items / half of delta", tuple(map(used, TARGETS)), 0.97, 1.0)


def few_people(name: str, kind: type[Discovery] = Discovery) -> ExactCheck:
    """Compare the probability that an item with at_least − 1 people is listed with what is stated."""

    def used(least: int) -> float:
        mechanism = kind(epsilon=1.0, delta=1e-4, max_items_per_person=3, at_least=least)
        with working_precision(PRECISION):
            height = ball(Fraction(mechanism.threshold, mechanism.units) - (least - 1)) / ball(mechanism.sigma)
            return float(CLOSED_FORMS["normal"].tail(height) / ball(RARELY))

    return ExactCheck(name, "probability with too few people / stated", tuple(map(used, (20, 50, 1000))), 0.9, 1.0)


def steps_within_total(name: str) -> ExactCheck:
    """Compare what discovery and choice cost together with the total ε and δ that were asked for."""
    values = []
    for epsilon, delta, most in TARGETS:
        asked: dict[str, Any] = {"k": 5, "epsilon": epsilon, "delta": delta, "max_items_per_person": most}
        mechanism = mechanism_for("discovered", **asked)
        assert isinstance(mechanism, Discovered)
        parts = mechanism.discovery.guarantee, mechanism.inner.guarantee
        for total, each in ((epsilon, "epsilon"), (delta, "delta")):
            values.append(float(sum(Fraction(getattr(part, each)) for part in parts) / Fraction(total)))
    return ExactCheck(name, "cost of both steps / total", tuple(values), 1 - 1e-12, 1.0)


CALIBRATED: list[tuple[str, Callable[[str], ExactCheck]]] = [
    *[(NAME, check) for check in (threshold_words, own_items, few_people)],
    (Discovered.name, steps_within_total),
]
"""Mechanism and check."""
