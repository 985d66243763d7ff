"""Broken twins for the exact comparisons: samplers, rates and figures with errors too small for draws."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cached_property, partial
from typing import Any

import numpy as np

from dpselect._arrays import FloatArray
from dpselect.mechanisms import Canonical, Gaussian, Joint, OneShot, Peeling
from dpselect.mechanisms.canonical import Geometry
from dpselect.mechanisms.limited import LimitedDomain
from dpselect.mechanisms.restricted import Restricted
from dpselect.mechanisms.top_stable import TopStable
from dpselect.multiselect.account import SignalBudget
from dpselect.multiselect.noise import DistanceGuarantee, GridNoise
from dpselect.multiselect.ring import Ring
from dpselect.privacy import Guarantee
from dpselect.privacy.bounded_range import STEPS, Grid
from dpselect.privacy.calibration import STEP, guarantee_of_rounds, laplace_threshold, range_per_round, unit_sigma
from dpselect.privacy.conversion import epsilon_of_ranges, mean_of_range, rate_of_oneshot_laplace, upper_bound
from dpselect.ranking.bounds import Bounds
from dpselect.ranking.walk import Pairs, Walk, stationary, thinned
from dpselect.sampling import BitSource
from dpselect.sampling.noise import NOISES, NORMAL, UNIFORM
from dpselect.scores import Members, Ranking, Scores
from dpselect.verify import boundaries, calibration, enumeration, tightness
from dpselect.verify.broken.base import Twin
from dpselect.verify.exact import WORDS, Border, ExactCheck, NoisyValue, check_borders

FAST, SLOW = Fraction(21, 20), Fraction(19, 20)


def with_factor(kind: type, member: str, factor: Fraction) -> Any:
    """Return a subclass of which a method or property is multiplied by a factor."""
    right: Any = getattr(kind, member)
    is_property = isinstance(right, property)

    def wrong(self: Any, *arguments: Any) -> Any:
        return (right.fget(self) if is_property else right(self, *arguments)) * factor

    return type(f"Scaled{kind.__name__}", (kind,), {member: property(wrong) if is_property else wrong})


class FastSampler(Canonical):
    """A sampler whose rate is 5 % too high; the law is right."""

    def geometry(self, ranking: Ranking) -> Geometry:
        right = super().geometry(ranking)
        return replace(right, head_rate=right.head_rate * FAST, tail_rate=right.tail_rate * FAST)


class EarlyTests(Restricted):
    """Tests that pass 0.05 units of noise too early when drawn."""

    @cached_property
    def _tests(self) -> tuple[Fraction, Fraction]:
        return self.rate(), self.height() - Fraction(1, 20)


class FirstMember(OneShot):
    """A group of ties of which only the first four members can win."""

    def draw(self, scores: Scores, bits: BitSource) -> Members:
        chosen = super().draw(scores, bits)
        return Members(chosen.grouping, chosen.groups, chosen.indexes % 4)


class Unshuffled(OneShot):
    """A set listed by descending true score."""

    def draw(self, scores: Scores, bits: BitSource) -> Members:
        chosen = super().draw(scores, bits)
        order = np.argsort(-chosen.values)
        return Members(chosen.grouping, chosen.groups[order], chosen.indexes[order])


class OneMore(SignalBudget):
    """An account that allows the cost that exceeds the budget."""

    def charge(self, cost: float) -> bool:
        with self._lock:
            allowed = self._budget is None or self._spent <= self._budget
            self._spent += Fraction(cost) if allowed else 0
            return allowed


class StepsOnly(Grid):
    """Rounds that are only as bad as those on a grid of 12 steps; worse ones lie in between."""

    @classmethod
    def of(cls, width: float, rounds: int, epsilon: float) -> Grid:
        return cls(width, rounds, STEPS, rounds * STEPS, 2 * rounds * STEPS)

    def worst(self, up: FloatArray, down: FloatArray) -> FloatArray:
        rise, fall, _ = self._weights
        worst: FloatArray = np.max(rise * up + fall * down, axis=0)
        return worst


class HalfRange(Peeling):
    """Rounds of permute-and-flip that state a range of ε₀."""

    @property
    def guarantee(self) -> Guarantee:
        share = self.per_round()
        return guarantee_of_rounds(self.epsilon, self.delta, self.k, share, share)


class OneRound(Peeling):
    """Rounds that state the ρ of one of them."""

    @property
    def guarantee(self) -> Guarantee:
        stated = super().guarantee
        return replace(stated, rho=(stated.rho or 0.0) / self.k)


class OneSided(Gaussian):
    """Normal noise for the largest rise of a score, not for its largest fall."""

    @property
    def sigma(self) -> float:
        return super().sigma * float(self.sensitivity.high / self.sensitivity.reach)


class DeltaTwice(LimitedDomain):
    """A dummy that uses all of δ, of which the rounds use half."""

    def lead(self) -> Fraction:
        return super().lead() - Fraction(7, 10) / self.rate()


class BeyondTheorem(OneShot):
    """Laplace noise by its theorem, also for an ε and a δ that the theorem does not cover."""

    def rate(self, size: int) -> Fraction:
        share = rate_of_oneshot_laplace(Fraction(self.epsilon), Fraction(self.delta), self.k, size)
        return max(share, Fraction(self.epsilon) / self.k) / Fraction(self.sensitivity.spread)


class InnerForgotten(Restricted):
    """Tests that state only their own δ."""

    @property
    def guarantee(self) -> Guarantee:
        return Guarantee(super().guarantee.epsilon, self.test_delta)


class RoundedDown(DistanceGuarantee):
    """A loss that ignores a part of a step."""

    def loss(self, distance: float) -> float:
        return super().loss(distance) if distance % self.step == 0 else super().loss(max(distance - self.step, 0))


class NarrowGrid(with_factor(GridNoise, "scale", SLOW)):  # type: ignore[misc]
    """Noise on a grid that is 5 % too small, with distances rounded down."""

    @property
    def guarantee(self) -> DistanceGuarantee:
        return RoundedDown(self.epsilon, self.step)


def one_more(counts: Any, groups: Any, capacity: int, bits: BitSource) -> Any:
    """Keep one comparison more than the cap allows."""
    return thinned(counts, groups, capacity + 1, bits)


def uncapped(pairs: Pairs, bounds: Bounds, bits: BitSource) -> Walk:
    """Return the walk of all units of an item."""
    wide = Walk.of(pairs, Bounds(bounds.comparisons_per_pair, pairs.size), bits)
    return replace(wide, denominator=bounds.units(pairs.size))


def early_end(walk: Walk, bounds: Bounds) -> Any:
    """Return a distribution whose error is a hundred times the tolerance."""
    return stationary(walk, bounds) + np.array([50.0, -50.0]) * float(bounds.tolerance(walk.size))


def biased(high: int, bits: BitSource) -> int:
    """Return a random number modulo the range."""
    return int(bits.integers(1, high.bit_length())[0]) % high


FLOATS = {**NOISES, "normal": NORMAL, "uniform": UNIFORM}


def in_floats(border: Border, entrants: Sequence[NoisyValue] | None = None, *, scale: float = 1.0) -> Border:
    """Return a boundary whose sampler computes in floating point, with other entrants or another scale of the noise."""
    given = border.entrants if entrants is None else entrants
    quantile = FLOATS[border.noise].quantile

    def wins(words: Sequence[int]) -> bool:
        with np.errstate(divide="ignore"):
            exponentials = -np.log1p(-np.array(words, dtype=np.float64) / WORDS)
            noises = quantile(np.array([sum(exponentials[j] / n for j, n in entrant.draws) for entrant in given]))
        first, *others = (float(entrant.location) + scale * noise for entrant, noise in zip(given, noises, strict=True))
        return bool(first > sorted(others, reverse=True)[border.winners - 1])

    return replace(border, wins=wins)


def with_divisors(border: Border, *divisors: int) -> Border:
    """Return a boundary in floating point whose first entrant has other divisors of its exponentials."""
    first, *others = border.entrants
    draws = tuple((word, divisor) for (word, _), divisor in zip(first.draws, divisors, strict=True))
    return in_floats(border, [replace(first, draws=draws), *others])


def drawn_by(border: Border, mechanism: Any, scores: Any, answer: list[int]) -> Border:
    """Return a boundary with another sampler."""
    return replace(border, wins=boundaries.answers(mechanism, scores, answer))


def fast_sampler(border: Border) -> Border:
    """Return a boundary of the race of subsets, drawn at a rate that is 5 % too high."""
    fast = FastSampler(k=1, epsilon=boundaries.EPSILON, sensitivity=boundaries.WIDE)
    return drawn_by(border, fast, [6, 0], [0])


def early_tests(border: Border) -> Border:
    """Return a boundary of a test that passes too early."""
    inner = Canonical(k=1, epsilon=1.0, sensitivity=boundaries.WIDE)
    early = EarlyTests(inner=inner, pool=1, test_epsilon=boundaries.EPSILON, test_delta=0.125)
    return drawn_by(border, early, [11, 2], [0])


def hopeless(border: Border) -> Border:
    """Return a boundary whose sampler leaves out what is 6 units or more behind, whatever its noise."""
    return replace(border, wins=lambda words: border.entrants[0].location > -6 and border.wins(words))


def _boundary(
    name: str, flaw: str, noise: str, mechanism: str, numbers: Sequence[int], mistake: Callable[[Border], Border]
) -> Twin:
    """Return the twin with a wrong sampler at some of the boundaries of a sound mechanism."""
    find = next(find for each, what, find in boundaries.BORDERS if (each, what) == (mechanism, noise))

    def broken() -> ExactCheck:
        borders = find()
        return check_borders(mechanism, "twin", [mistake(borders[number]) for number in numbers])

    return Twin(name, flaw, noise, "exact", broken, partial(boundaries.answer_words, mechanism, noise, find))


def _tightness(name: str, flaw: str, noise: str, right: tightness.Pair, wrong: Any) -> Twin:
    """Return the twin with a wrong law on neighbours for which the guarantee is nearly tight."""
    check = partial(tightness.check_attained, wrong.name, "epsilon used")
    return Twin(name, flaw, noise, "exact", partial(check, replace(right, mechanism=wrong)), partial(check, right))


def _comparison(name: str, flaw: str, check: Callable[..., ExactCheck], **wrong: Any) -> Twin:
    """Return the twin of a comparison with one argument replaced by a wrong one."""
    return Twin(name, flaw, "", "exact", partial(check, "twin", **wrong), partial(check, "twin"))


TWINS = [
    _boundary(
        "sampler 5 % too fast",
        "subsets race at 1.05 times the rate of the law",
        "exponential",
        "canonical",
        [0],
        fast_sampler,
    ),
    _boundary(
        "tests pass early",
        "a test passes from 0.05 units of noise below its threshold",
        "laplace",
        "restricted",
        [0],
        early_tests,
    ),
    _boundary(
        "order statistics of equal steps",
        "each exponential of a group of m ties is divided by m",
        "gumbel",
        "oneshot",
        [-1],
        lambda border: with_divisors(border, 3, 3),
    ),
    _boundary(
        "race with equal steps",
        "each exponential of a block of M alternatives is divided by M",
        "exponential",
        "canonical",
        [4],
        lambda border: with_divisors(border, 2, 2),
    ),
    _boundary("hopeless too soon", "what stands 6 units behind is left out", "gumbel", "oneshot", [4], hopeless),
    _boundary(
        "decided in floating point",
        "close comparisons are settled by rounding errors",
        "gumbel",
        "oneshot",
        [0, 1, 2],
        in_floats,
    ),
    _boundary(
        "gamma variable 2 % too large",
        "the noise is 2 % larger than the law says",
        "uniform",
        "gamma",
        [0],
        partial(in_floats, scale=1.02),
    ),
    _boundary(
        "normal noise 3 % too small",
        "the noise is 3 % smaller than the law says",
        "normal",
        "gaussian",
        [0],
        partial(in_floats, scale=0.97),
    ),
    _tightness(
        "joint 5 % too fast",
        "law and sampler have 1.05 times the rate",
        "gumbel",
        tightness.joint_pair("gumbel"),
        with_factor(Joint, "rate", FAST)(k=2, epsilon=3.0, noise="gumbel"),
    ),
    _tightness(
        "gaps with noise 2 w / epsilon",
        "the noise of the tests has two thirds of its scale",
        "laplace",
        tightness.stable_tests(),
        with_factor(TopStable, "rate", Fraction(3, 2))(k=6, epsilon=1.0, delta=0.1, pool=6),
    ),
    _tightness(
        "noise 5 % too large",
        "the noise is larger than the claim needs",
        "exponential",
        tightness.others_rise(OneShot(k=1, epsilon=3.0), 60, 0.9999),
        with_factor(OneShot, "rate", SLOW)(k=1, epsilon=3.0),
    ),
    _comparison(
        "threshold one step low",
        "a threshold is rounded down",
        calibration.thresholds,
        threshold=lambda delta: laplace_threshold(delta) - STEP,
    ),
    _comparison(
        "unproven end of a bisection",
        "sigma is rounded down",
        calibration.deviations,
        sigma=lambda epsilon, delta: unit_sigma(epsilon, delta) * (1 - 2.0**-40),
    ),
    _comparison(
        "rho of range r^2/9", "r^2/9 in place of r^2/8", calibration.concentration, rho=lambda width: width * width / 9
    ),
    _comparison(
        "Azuma with a quarter",
        "the term with log(1 / delta) is taken by half",
        calibration.rounds_of_ranges,
        epsilon_of=lambda mean, squares, delta: epsilon_of_ranges(mean, squares / 2, delta),
    ),
    _comparison(
        "worst round on a grid",
        "optimal composition without the rounds between grid points",
        calibration.optimal_rounds,
        grid_of=StepsOnly.of,
    ),
    _comparison(
        "rounds of permute-and-flip",
        "rounds with exponential noise get the share that needs gumbel noise",
        partial(calibration.rounds_of_peeling, noise="exponential"),
        share_of=lambda epsilon, delta, k, _: range_per_round(epsilon, delta, k),
    ),
    _comparison(
        "bound not rounded up",
        "an upper bound is the nearest float",
        calibration.upper_bounds,
        bound=lambda formula, smallest: math.nextafter(upper_bound(formula, smallest), 0),
    ),
    _comparison(
        "three quarters of a spread",
        "a ranking's spread times 3/4",
        calibration.spreads,
        bounds_of=with_factor(Bounds, "spread", Fraction(3, 4)),
    ),
    _comparison(
        "range of one epsilon",
        "rounds of permute-and-flip state the range of gumbel noise",
        calibration.ranges_stated,
        mechanism_of=HalfRange,
    ),
    _comparison("rho of one round", "k rounds state the rho of one", calibration.rho_of_rounds, mechanism_of=OneRound),
    _comparison(
        "mean loss by half",
        "half of the mean loss of bounded range",
        calibration.means_of_range,
        mean_of=lambda width: mean_of_range(width) / 2,
    ),
    _comparison(
        "noise for rising scores",
        "scores fall by 2 and rise by 1, the noise is for 1",
        calibration.normal_noise,
        mechanism_of=OneSided,
    ),
    _comparison(
        "delta spent twice",
        "rounds and dummy take more of delta than there is",
        calibration.dummies,
        mechanism_of=DeltaTwice,
    ),
    _comparison(
        "beyond a theorem",
        "laplace noise for an epsilon beyond 0.2 or a delta beyond 0.05",
        calibration.laplace_theorem,
        mechanism_of=BeyondTheorem,
    ),
    _comparison(
        "delta of a part forgotten",
        "the delta of the choice is left out of the guarantee",
        calibration.sums_of_parts,
        mechanism_of=InnerForgotten,
    ),
    _comparison(
        "grid noise 5 % small",
        "remainders of the noise are kept as if its scale were smaller",
        boundaries.grid_words,
        noise_of=NarrowGrid,
    ),
    _comparison(
        "ring noise 5 % peaked",
        "the noise falls faster along the ring than stated",
        boundaries.ring_words,
        ring_of=with_factor(Ring, "rate", FAST),
    ),
    _comparison(
        "distances rounded down", "a part of a step is left out of the loss", boundaries.distances, noise_of=NarrowGrid
    ),
    _comparison(
        "one comparison too many",
        "a pair keeps one comparison more than its cap",
        enumeration.thinned_comparisons,
        thin=one_more,
    ),
    _comparison("rows not capped", "an item keeps all that it lost", enumeration.capped_rows, walk_of=uncapped),
    _comparison(
        "walk ended early",
        "scores are off by a hundred times the tolerance",
        calibration.errors_of_walks,
        distribution=early_end,
    ),
    _comparison(
        "one signal too many",
        "a budget is compared before the cost is added",
        calibration.signals_paid,
        account_of=OneMore,
    ),
    _comparison(
        "modulo bias", "a random number is reduced modulo the range", enumeration.uniform_draws, integer=biased
    ),
    _comparison(
        "one member left out",
        "a group of five ties lets four of them win",
        enumeration.tied_members,
        mechanism=FirstMember(k=1, epsilon=1.0),
    ),
    _comparison(
        "set by true score",
        "a set is listed by descending score",
        enumeration.shuffled_sets,
        mechanism=Unshuffled(k=3, epsilon=1.0),
    ),
]
