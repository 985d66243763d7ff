"""Broken twins for the exact checks: samplers, rates and figures that are off by little, which draws would not show."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np

from dpselect.mechanisms import Canonical, Gaussian, Mechanism, OneShot, Peeling
from dpselect.mechanisms.limited import LimitedDomain
from dpselect.mechanisms.restricted import Restricted
from dpselect.multiselect.account import Account
from dpselect.multiselect.noise import GridNoise
from dpselect.multiselect.ring import Ring
from dpselect.privacy.calibration import STEP, laplace_threshold, unit_sigma
from dpselect.privacy.conversion import (
    epsilon_of_ranges,
    mean_of_range,
    rho_of_range,
    upper_bound,
)
from dpselect.ranking.bounds import Bounds
from dpselect.ranking.walk import Walk, stationary, thinned
from dpselect.sampling import uniform_integer
from dpselect.sampling.noise import NOISES, NORMAL, UNIFORM
from dpselect.verify import attained, drawn, enumeration, figures, words_of_signals
from dpselect.verify.borders import Border, Entrant, check_borders
from dpselect.verify.broken.small_mistakes import (
    BeyondTheorem,
    DeltaTwice,
    EarlyTests,
    FastJoint,
    FastSampler,
    FirstMember,
    HalfRange,
    InnerForgotten,
    NarrowGrid,
    NarrowTests,
    OneMore,
    OneRound,
    OneSided,
    PeakedRing,
    SlowOneShot,
    ThreeQuarters,
    Unshuffled,
    biased,
    early_end,
    halved_azuma,
    nearest,
    one_more,
    per_round_of_range,
    uncapped,
)
from dpselect.verify.exact import ExactCheck
from dpselect.verify.words import WORDS

FLOATS = {**NOISES, "normal": NORMAL, "uniform": UNIFORM}


@dataclass(frozen=True)
class ExactTwin:
    """A check of something broken, and the same check of its sound counterpart."""

    rejected_by: ClassVar[str] = "exact"

    name: str
    flaw: str
    broken: Callable[[], ExactCheck]
    sound: Callable[[], ExactCheck]
    noise: str = ""


def in_floats(border: Border, entrants: Sequence[Entrant] | None = None, *, scale: float = 1.0) -> Border:
    """Return a border whose sampler computes in floating point, with other entrants or another scale of the noise."""
    given = border.entrants if entrants is None else entrants
    quantile = FLOATS[border.noise].quantile

    def wins(words: Sequence[int]) -> bool:
        with np.errstate(divide="ignore"):
            exponentials = -np.log1p(-np.array(words, dtype=np.float64) / WORDS)
            noises = quantile(np.array([sum(exponentials[j] / n for j, n in entrant.draws) for entrant in given]))
        first, *others = (float(entrant.location) + scale * noise for entrant, noise in zip(given, noises, strict=True))
        return bool(first > sorted(others, reverse=True)[border.winners - 1])

    return replace(border, wins=wins)


def with_divisors(border: Border, *divisors: int) -> list[Entrant]:
    """Return the entrants of a border, the first with other divisors of its exponentials."""
    first, *others = border.entrants
    draws = tuple((word, divisor) for (word, _), divisor in zip(first.draws, divisors, strict=True))
    return [replace(first, draws=draws), *others]


def borders_of(name: str, noise: str) -> list[Border]:
    """Return the borders of a sound mechanism."""
    return next(make() for each, what, make in drawn.BORDERS if (each, what) == (name, noise))


def _twin(name: str, flaw: str, noise: str, of: str, sampler: Callable[[list[Border]], list[Border]]) -> ExactTwin:
    """Return the twin whose sampler makes a mistake at borders of a sound mechanism."""
    compared = f"{drawn.COMPARED}, {noise}"

    def check(mistake: bool) -> ExactCheck:
        borders = borders_of(of, noise)
        return check_borders(of, compared, sampler(borders) if mistake else borders)

    return ExactTwin(name, flaw, partial(check, True), partial(check, False), noise)


def _pair(name: str, flaw: str, of: str, right: attained.Pair, wrong: Mechanism, noise: str) -> ExactTwin:
    """Return the twin whose law makes a mistake on a pair of neighbours."""
    check = partial(attained.check_attained, of, "epsilon used")
    return ExactTwin(name, flaw, partial(check, replace(right, mechanism=wrong)), partial(check, right), noise)


def _figure(name: str, flaw: str, check: Callable[..., ExactCheck], **of: tuple[Any, Any]) -> ExactTwin:
    """Return the twin of a figure, given by (wrong, right)."""
    wrong, right = ({key: pair[place] for key, pair in of.items()} for place in (0, 1))
    return ExactTwin(name, flaw, partial(check, "twin", **wrong), partial(check, "twin", **right))


def _with(borders: list[Border], mechanism: Mechanism, scores: Any, chosen: list[int]) -> list[Border]:
    """Return the first border, drawn by another mechanism."""
    return [replace(borders[0], wins=drawn.asks(mechanism, scores, lambda answer: answer == chosen))]


def _hopeless(border: Border) -> Border:
    """Return a border whose sampler leaves out what stands 6 units or more behind, whatever its noise."""
    return replace(border, wins=lambda words: border.entrants[0].location > -6 and border.wins(words))


JOINT = attained.joint("gumbel")
STABLE = attained.stable_tests()
ONE_SHOT = attained.others_rise(OneShot(k=1, epsilon=3.0), 60, 0.9999)

EXACT_TWINS: list[ExactTwin] = [
    _twin(
        "sampler 5 % too fast",
        "subsets race at 1.05 times the rate of the law",
        "exponential",
        "canonical",
        lambda borders: _with(borders, FastSampler(k=1, epsilon=drawn.EPSILON, sensitivity=drawn.WIDE), [6, 0], [0]),
    ),
    _twin(
        "tests pass early",
        "a test passes from 0.05 units of noise below its threshold",
        "laplace",
        "restricted",
        lambda borders: _with(
            borders,
            EarlyTests(
                inner=Canonical(k=1, epsilon=1.0, sensitivity=drawn.WIDE),
                pool=1,
                test_epsilon=drawn.EPSILON,
                test_delta=0.125,
            ),
            [11, 2],
            [0],
        ),
    ),
    _twin(
        "order statistics of equal steps",
        "each exponential of a group of m ties is divided by m",
        "gumbel",
        "oneshot",
        lambda borders: [in_floats(borders[-1], with_divisors(borders[-1], 3, 3))],
    ),
    _twin(
        "race with equal steps",
        "each exponential of a block of M alternatives is divided by M",
        "exponential",
        "canonical",
        lambda borders: [in_floats(borders[4], with_divisors(borders[4], 2, 2))],
    ),
    _twin(
        "hopeless too soon",
        "what stands 6 units behind is left out",
        "gumbel",
        "oneshot",
        lambda borders: [_hopeless(borders[4])],
    ),
    _twin(
        "decided in floating point",
        "close comparisons are settled by rounding errors",
        "gumbel",
        "oneshot",
        lambda borders: [in_floats(border) for border in borders[:3]],
    ),
    _twin(
        "gamma variable 2 % too large",
        "the noise is 2 % larger than the law says",
        "uniform",
        "gamma",
        lambda borders: [in_floats(borders[0], scale=1.02)],
    ),
    _twin(
        "normal noise 3 % too small",
        "the noise is 3 % smaller than the law says",
        "normal",
        "gaussian",
        lambda borders: [in_floats(borders[0], scale=0.97)],
    ),
    _pair(
        "joint 5 % too fast",
        "law and sampler have 1.05 times the rate",
        "joint",
        JOINT,
        FastJoint(k=2, epsilon=3.0, noise="gumbel"),
        "gumbel",
    ),
    _pair(
        "gaps with noise 2 w / epsilon",
        "the noise of the tests has two thirds of its scale",
        "top-stable",
        STABLE,
        NarrowTests(k=6, epsilon=1.0, delta=0.1, pool=6),
        "laplace",
    ),
    _pair(
        "noise 5 % too large",
        "the noise is larger than the claim needs",
        "oneshot",
        ONE_SHOT,
        SlowOneShot(k=1, epsilon=3.0),
        "exponential",
    ),
    _figure(
        "threshold one step low",
        "a threshold is rounded down",
        partial(figures.thresholds, noise="laplace", tail=figures.laplace_tail),
        threshold=(lambda delta: laplace_threshold(delta) - STEP, laplace_threshold),
    ),
    _figure(
        "unproven end of a bisection",
        "sigma is rounded down",
        figures.deviations,
        sigma=(lambda epsilon, delta: unit_sigma(epsilon, delta) * (1 - 2.0**-40), unit_sigma),
    ),
    _figure(
        "rho of range r^2/9", "r^2/9 in place of r^2/8", figures.concentration, rho=(lambda r: r * r / 9, rho_of_range)
    ),
    _figure(
        "Azuma with a quarter",
        "the term with log(1 / delta) is taken by half",
        figures.rounds_of_ranges,
        epsilon_of=(halved_azuma, epsilon_of_ranges),
    ),
    _figure(
        "rounds of permute-and-flip",
        "rounds with exponential noise get the share that needs gumbel noise",
        partial(figures.rounds_of_peeling, noise="exponential"),
        per_round=(per_round_of_range, figures.per_round),
    ),
    _figure(
        "bound not rounded up", "an upper bound is the nearest float", figures.rounded_up, bound=(nearest, upper_bound)
    ),
    _figure(
        "three quarters of a spread",
        "a ranking's spread times 3/4",
        figures.spreads,
        bounds_of=(ThreeQuarters, Bounds),
    ),
    _figure(
        "range of one epsilon",
        "rounds of permute-and-flip state the range of gumbel noise",
        figures.ranges_stated,
        mechanism_of=(HalfRange, Peeling),
    ),
    _figure(
        "rho of one round",
        "k rounds state the rho of one",
        figures.rho_of_rounds,
        mechanism_of=(OneRound, Peeling),
    ),
    _figure(
        "mean loss by half",
        "half of the mean loss of bounded range",
        figures.means_of_range,
        mean_of=(lambda width: mean_of_range(width) / 2, mean_of_range),
    ),
    _figure(
        "noise for rising scores",
        "scores fall by 2 and rise by 1, the noise is for 1",
        figures.normal_noise,
        mechanism_of=(OneSided, Gaussian),
    ),
    _figure(
        "delta spent twice",
        "rounds and dummy take more of delta than there is",
        figures.dummies,
        mechanism_of=(DeltaTwice, LimitedDomain),
    ),
    _figure(
        "beyond a theorem",
        "laplace noise for an epsilon beyond 0.2 or a delta beyond 0.05",
        figures.laplace_theorem,
        mechanism_of=(BeyondTheorem, OneShot),
    ),
    _figure(
        "delta of a part forgotten",
        "the delta of the choice is left out of the guarantee",
        figures.sums_of_parts,
        mechanism_of=(InnerForgotten, Restricted),
    ),
    _figure(
        "grid noise 5 % small",
        "remainders of the noise are kept as if its scale were smaller",
        words_of_signals.grid_words,
        noise_of=(NarrowGrid, GridNoise),
    ),
    _figure(
        "ring noise 5 % peaked",
        "the noise falls faster along the ring than stated",
        words_of_signals.ring_words,
        ring_of=(PeakedRing, Ring),
    ),
    _figure(
        "distances rounded down",
        "a part of a step is left out of the loss",
        words_of_signals.distances,
        noise_of=(NarrowGrid, GridNoise),
    ),
    _figure(
        "one comparison too many",
        "a pair keeps one comparison more than its cap",
        enumeration.thinned_comparisons,
        thin=(one_more, thinned),
    ),
    _figure(
        "rows not capped",
        "an item keeps all that it lost",
        enumeration.capped_rows,
        walk_of=(uncapped, Walk.of),
    ),
    _figure(
        "walk ended early",
        "scores are off by a hundred times the tolerance",
        figures.errors_of_walks,
        distribution=(early_end, stationary),
    ),
    _figure(
        "one signal too many",
        "a budget is compared before the cost is added",
        figures.signals_paid,
        account_of=(OneMore, Account),
    ),
    _figure(
        "modulo bias",
        "a random number is reduced modulo the range",
        enumeration.uniform_draws,
        integer=(biased, uniform_integer),
    ),
    _figure(
        "one member left out",
        "a group of five ties lets four of them win",
        enumeration.tied_members,
        mechanism=(FirstMember(k=1, epsilon=1.0), OneShot(k=1, epsilon=1.0)),
    ),
    _figure(
        "set by true score",
        "a set is listed by descending score",
        enumeration.shuffled_sets,
        mechanism=(Unshuffled(k=3, epsilon=1.0), OneShot(k=3, epsilon=1.0)),
    ),
]
