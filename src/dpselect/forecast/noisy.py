"""Probabilities of answers when the k largest of `a_i + Z_i` are chosen, each as one integral.

Notation: `a_i` is an item's score times the rate, measured from that of rank k; F, S = 1 − F and f are the noise's
distribution, survival function and density at `z − a_i`. Items of equal score form a group.

An answer is *within* (r, s) when it holds the r highest scores and none below that of rank s. *Required* items have
scores above that of rank r, *excluded* ones scores below that of rank s, *optional* ones lie between. If K optional
items have to be chosen and z is the lowest chosen value,

`P = ∫ Π_excluded F · [x^K] (Π_required S · Π_optional (F + S x)) · (hazard of the chosen items) dz`,

where the hazard `f/S` of a chosen item marks that its value is z instead of above z.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from dpselect._arrays import ComplexArray, FloatArray
from dpselect.forecast.quadrature import PANEL, Gridded, Range, integrate_exp, support
from dpselect.mechanisms import Mechanism, NoisyVector, OneShot, Peeling
from dpselect.sampling import NOISES, Noise
from dpselect.sampling.bounds import scaled
from dpselect.sampling.sequences import log_falling
from dpselect.scores import Ranking, Scores

REACH = 60.0
"""The largest of n noises is below log n + 60 except with probability e^-60; integrals are truncated there."""

_LARGEST_LOG_ODDS = 1e4
"""Log-odds are clipped to plus and minus this, so that bisection starts from finite numbers."""

_NEAR_KINK = 2.0
"""Groups whose kink is within this distance of z are summed one by one, not on a grid."""

_MOST_KINKS = 200
"""At most this many kinks without a jump are edges of panels."""

_POISSON = 1e15
"""Groups of at least this size have Poisson instead of binomial counts; simulate.py uses the same number."""

_ELEMENTS = 1 << 20
"""Complex numbers in the largest intermediate array."""


@dataclass(frozen=True, repr=False)
class NoisyItems:
    """Groups of tied items, highest first: locations relative to that of rank k, and sizes of any magnitude.

    `number` counts all items, also those too far below rank k to matter, which are left out.
    """

    locations: FloatArray
    sizes: FloatArray
    k: int
    noise: Noise
    number: float

    @classmethod
    def of(cls, table: Scores, k: int, rate: Fraction, noise: Noise) -> NoisyItems:
        """Return the groups at their locations. A gap below rank k too wide for its size to matter is shortened."""
        ranking = Ranking.of(table.distinct)
        locations = scaled(table.values - ranking.scores(np.array([k - 1])), rate)
        sizes = table.multiplicities.astype(np.float64)
        number = float(sizes.sum())
        if k < table.size:
            first, reach = int(ranking.groups(k)), REACH + math.log(number)
            widest = 10 * reach
            if locations[first] < -widest:
                locations[first:] = locations[first:] - locations[first] - widest
            end = int(np.searchsorted(-locations, reach - locations[first], side="right"))
            locations, sizes = locations[:end], sizes[:end]
        return cls(locations, sizes, k, noise, number)

    @cached_property
    def ends(self) -> FloatArray:
        """The number of items in each group and all higher ones."""
        return np.cumsum(self.sizes)

    def group(self, rank: int) -> int:
        """Return the group of a rank, counted from 1."""
        return int(np.searchsorted(self.ends, rank))

    @cached_property
    def border(self) -> int:
        """The group of rank k."""
        return self.group(self.k)

    @property
    def room(self) -> int:
        """The number of items of the border group that belong to the top k."""
        return self.k - int(self.ends[self.border] - self.sizes[self.border])

    @property
    def range(self) -> tuple[float, float]:
        """The values that rank k of an answer can have, up to a probability of e^-60."""
        below = self.locations[min(self.group(self.k + 1), len(self.sizes) - 1)]
        low = max(float(below) - REACH, self.noise.infimum)
        return low, REACH + math.log(self.number)

    @cached_property
    def kinks(self) -> FloatArray:
        """Values at which some density is not smooth: all if densities jump, else the _MOST_KINKS nearest to rank k."""
        kinks = np.concatenate([self.locations + kink for kink in self.noise.kinks] or [np.empty(0)])
        kinks = kinks[(kinks >= self.range[0]) & (kinks <= self.range[1])]
        jumps = self.noise.infimum > -math.inf
        return kinks if jumps else kinks[np.argsort(np.abs(kinks))[:_MOST_KINKS]]

    def logs(self, z: FloatArray, part: slice) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return log F, log S and the hazard f/S of some groups as [group, z]."""
        return log_values(self.noise, z - self.locations[part, None])

    @cached_property
    def _gridded(self) -> Gridded:
        """The groups for sums of smooth functions."""
        return Gridded(self.locations, self.sizes[None])

    def smooth_sum(self, first: int, low: float) -> tuple[FloatArray, FloatArray]:
        """Return fewer locations and weights with the same sums of log F over groups from `first` on, for z >= low."""
        near = int((self.locations > low - _NEAR_KINK).sum()) if self.noise.kinks else 0
        near = max(first, near)
        far, (weights,) = self._gridded.since(near)
        return np.append(self.locations[first:near], far), np.append(self.sizes[first:near], weights)

    def log_all_below(self, z: FloatArray, first: int) -> FloatArray:
        """Return the log-probability that all items from a group on are below z."""
        if first >= len(self.sizes):
            return np.zeros_like(z)
        locations, weights = self.smooth_sum(first, float(z.min()))
        result: FloatArray = weights @ log_cdf(self.noise, z - locations[:, None])
        return np.minimum(result, 0.0)

    def log_all_above(self, z: FloatArray, end: int) -> tuple[FloatArray, FloatArray]:
        """Return the log-probability that all items before a group are above z, and the hazard of one being at z."""
        _, survival, hazard = self.logs(z, slice(0, end))
        sizes = self.sizes[:end]
        return sizes @ survival, sizes @ hazard

    @property
    def certain(self) -> bool:
        """Whether every answer is exact: all items are chosen, or all are tied."""
        return self.number in (self.k, float(self.sizes[0]))

    def exact(self, tolerance: float) -> tuple[float, float]:
        """Return P[the k highest scores are chosen] and its complement, each from its own integral."""
        if self.certain:
            return 1.0, 0.0
        with np.errstate(all="ignore"):
            right, wrong = integrate_exp(self._exact_logs, self.exact_ranges, self.kinks, tolerance).tolist()
        return (right, min(wrong, 1.0)) if right < wrong else (min(right, 1.0), wrong)

    @cached_property
    def exact_ranges(self) -> list[Range | None]:
        """The values that decide whether an answer is right or wrong."""
        with np.errstate(all="ignore"):
            return support(self._exact_logs, *self.range)

    def _exact_logs(self, z: FloatArray) -> FloatArray:
        """Return the log-densities of right and of wrong answers.

        With m tied items at rank k, of which r have room, z is the lowest value of the items above and of the r highest
        tied ones. The answer is wrong if an item of lower score exceeds z, or more than r tied ones do.
        """
        border, room, size = self.border, self.room, float(self.sizes[self.border])
        log_above, hazard_above = self.log_all_above(z, border)
        (cdf,), (survival,), (hazard,) = self.logs(z, slice(border, border + 1))
        log_chosen = log_above + log_binomial(size, room, cdf, survival) + np.log(hazard_above + room * hazard)
        log_below = self.log_all_below(z, border + 1)
        log_crowded = log_above + np.log(hazard_above) + np.log(more_than(room, size, survival))
        log_beaten = log_chosen + np.log(-np.expm1(log_below))
        return _finite(np.stack([log_chosen + log_below, np.logaddexp(_finite(log_beaten), _finite(log_crowded))]))

    def within(self, held: int, last: int, tolerance: float) -> float:
        """P[the `held` highest scores are chosen, and none below that of rank `last`]."""
        optional = OptionalGroups.of(self, held, last)
        if optional is None:
            return 1.0

        def logs(z: FloatArray) -> FloatArray:
            log_required, hazard = self.log_all_above(z, optional.first)
            log_sure = log_required + self.log_all_below(z, optional.stop)
            return _finite((log_sure + optional.log_chosen(z, hazard))[None])

        with np.errstate(all="ignore"):
            ranges = support(logs, *self.range)
            return min(float(integrate_exp(logs, ranges, self.kinks, tolerance)[0]), 1.0)


@dataclass(frozen=True, repr=False)
class OptionalGroups:
    """The optional groups `first` to `stop` − 1, of which `wanted` items are chosen, at least `least` of the first."""

    items: NoisyItems
    first: int
    stop: int
    wanted: int
    least: int

    @classmethod
    def of(cls, items: NoisyItems, held: int, last: int) -> OptionalGroups | None:
        """Return the optional groups of two ranks; None if every answer is within them."""
        first, stop = items.group(held), min(items.group(last), len(items.sizes) - 1) + 1
        required = int(items.ends[first] - items.sizes[first])
        everything = stop == len(items.sizes) and items.ends[-1] == items.number
        if everything and (items.number == items.k or first == 0 == stop - 1):
            return None
        if held == items.ends[first]:
            return cls(items, first + 1, stop, items.k - held, 0)
        return cls(items, first, stop, items.k - required, held - required)

    def log_chosen(self, z: FloatArray, hazard: FloatArray) -> FloatArray:
        """Return the log-density of choosing `wanted` items with the lowest chosen item, of hazard `hazard`, at z.

        The coefficient of `x^wanted` is computed on the circle `|x| = e^λ`; λ is chosen so that the expected number of
        items above z, tilted by it, is about `wanted`. No digits cancel then, however small the coefficient is.
        """
        part = slice(self.first, self.stop)
        sizes = self.items.sizes[part]
        if not len(sizes):
            return np.log(hazard)
        cdf, survival, hazards = self.items.logs(z, part)
        tilt = _tilt(cdf, survival, sizes, self.wanted)
        log_scale = np.logaddexp(cdf, survival + tilt)
        shares, others = np.exp(survival + tilt - log_scale), np.exp(cdf - log_scale)
        result = np.empty_like(z)
        for nodes in (slice(start, start + PANEL) for start in range(0, len(z), PANEL)):
            result[nodes] = self._mean(shares[:, nodes], others[:, nodes], hazards[:, nodes], hazard[nodes])
        log_size: FloatArray = sizes @ log_scale - self.wanted * tilt
        return log_size + np.log(np.maximum(result, 0.0))

    def _mean(self, shares: FloatArray, others: FloatArray, hazards: FloatArray, hazard: FloatArray) -> FloatArray:
        """Return the mean over the circle, tilted shares and others being p and 1 − p of each group."""
        sizes, begin = self.items.sizes[self.first : self.stop], 1 if self.least else 0
        variance = float((sizes @ (shares * others)).max())
        circle = Circle.of(variance)
        rest = slice(begin, None)
        law = circle.law(shares[rest], others[rest], sizes[rest])
        marked = circle.marked(shares[rest], sizes[rest, None] * shares[rest] * hazards[rest])
        terms = hazard[:, None] + circle.turns * marked
        if self.least:
            size, logs = float(sizes[0]), (np.log(others[0]), np.log(shares[0]))
            own = circle.transform(*binomial_law(size, self.least, self.wanted, *logs))
            at_z = circle.transform(*binomial_law(size - 1, self.least - 1, self.wanted - 1, *logs))
            share = (size * shares[0] * hazards[0])[:, None]
            terms = own * terms + circle.turns * share * at_z
        return circle.coefficient(self.wanted, law * terms)


@dataclass(frozen=True)
class Circle:
    """Half of `number` evenly spaced points `e^{iθ}` of the unit circle, for generating functions of counts.

    A sum over the points gives P[N = n] with an error of at most the probability of counts `number` or more from n.
    """

    angles: FloatArray
    turns: ComplexArray
    number: int

    @classmethod
    def of(cls, variance: float, distance: float = 0.0) -> Circle:
        """Return enough points for a count of that variance, `distance` away from its mean.

        By Bernstein's inequality counts `n` away have probability `exp(−n²/(2v + 2n/3))` at most, here e^-30.
        """
        half = math.ceil((distance + 12.0 + math.sqrt(100.0 + 60.0 * variance)) / 2)
        angles = np.linspace(0.0, math.pi, half, endpoint=False) + math.pi / (2 * half)
        return cls(angles, np.exp(1j * angles), 2 * half)

    def law(self, shares: FloatArray, others: FloatArray, sizes: FloatArray) -> ComplexArray:
        """Return `Π (1 − p + p e^{iθ})^m` over groups as [z, angle], for p [group, z] and `others` = 1 − p."""
        result = np.ones((shares.shape[1], len(self.angles)), dtype=np.complex128)
        single, shift = sizes == 1, self.turns - 1
        for part in self._blocks(shares[single]):
            result *= np.multiply.reduce(1 + shares[single][part, :, None] * shift, axis=0)
        fall = 1 - np.cos(self.angles)
        exponent = np.zeros_like(result)
        for part in self._blocks(shares[~single]):
            p, q = shares[~single][part, :, None], others[~single][part, :, None]
            # Real and imaginary part of the logarithm separately: powers of 10^18 and more keep their precision.
            exponent.real += np.tensordot(sizes[~single][part], 0.5 * np.log1p(-2 * p * q * fall), 1)
            turned = np.arctan2(p * np.sin(self.angles), q + p * np.cos(self.angles))
            exponent.imag += np.tensordot(sizes[~single][part], turned, 1)
        result *= np.exp(exponent)
        return result

    def marked(self, shares: FloatArray, weights: FloatArray) -> ComplexArray:
        """Return `Σ w / (1 − p + p e^{iθ})` over groups as [z, angle]."""
        result = np.zeros((shares.shape[1], len(self.angles)), dtype=np.complex128)
        for part in self._blocks(shares):
            result += (weights[part, :, None] / (1 + shares[part, :, None] * (self.turns - 1))).sum(axis=0)
        return result

    def transform(self, counts: FloatArray, law: FloatArray) -> ComplexArray:
        """Return `Σ_c P[c] e^{icθ}` as [z, angle] for probabilities [count, z]."""
        turns = np.exp(1j * np.multiply.outer(counts, self.angles))
        result: ComplexArray = law.T.astype(np.complex128) @ turns
        return result

    def coefficient(self, power: int, values: ComplexArray) -> FloatArray:
        """Return the coefficient of a power of x from values at the points, as [z]."""
        result: FloatArray = (values * np.exp(-1j * power * self.angles)).real.sum(axis=1) * (2 / self.number)
        return result

    def sum_below(self, power: int, values: ComplexArray) -> FloatArray:
        """Return the sum of the coefficients below a power of x, less half the sum of all, as [..., z]."""
        kernel = np.exp(-1j * (power - 1) * self.angles) / (1 - self.turns) * (2 / self.number)
        result: FloatArray = (values * kernel).real.sum(axis=-1)
        return result

    def _blocks(self, shares: FloatArray) -> list[slice]:
        """Return parts of the groups that need a few megabytes each."""
        step = max(1, _ELEMENTS // max(1, shares.shape[1] * len(self.angles)))
        return [slice(start, start + step) for start in range(0, len(shares), step)]


def noisy_items(table: Scores, mechanism: Mechanism) -> NoisyItems | None:
    """Return the groups of which a mechanism takes the k largest noisy scores; None for other mechanisms."""
    added = added_noise(mechanism, table.size)
    return None if added is None else NoisyItems.of(table, mechanism.k, *added)


def added_noise(mechanism: Mechanism, size: int) -> tuple[Fraction, Noise] | None:
    """Return the rate and the noise of a mechanism that takes the k largest noisy scores; None for others."""
    if isinstance(mechanism, NoisyVector):
        return mechanism.rate(), mechanism.distribution
    if isinstance(mechanism, OneShot):
        return mechanism.rate(size), NOISES[mechanism.noise]
    if isinstance(mechanism, Peeling) and mechanism.noise == "gumbel":
        return mechanism.rate(), NOISES["gumbel"]
    return None


def log_values(noise: Noise, x: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return log F, log S and the hazard f/S of a noise."""
    if noise.name == "normal":
        from scipy.special import log_ndtr

        log_survival = log_ndtr(-x)
        return log_ndtr(x), log_survival, np.exp(-0.5 * (x * x + math.log(2 * math.pi)) - log_survival)
    survival = noise.survival(x)
    hazard = np.where(survival > 0, noise.density(x) / survival, 0.0)
    return log_cdf(noise, x, survival), np.log(survival), hazard


def log_cdf(noise: Noise, x: FloatArray, survival: FloatArray | None = None) -> FloatArray:
    """Return log F without loss of digits where F is near 1."""
    if noise.name == "normal":
        from scipy.special import log_ndtr

        normal: FloatArray = log_ndtr(x)
        return normal
    if noise.name == "gumbel":
        gumbel: FloatArray = -np.exp(-x)
        return gumbel
    survival = noise.survival(x) if survival is None else survival
    return np.where(survival < 0.5, np.log1p(-np.minimum(survival, 0.5)), np.log(noise.cdf(x)))


def log_binomial(size: float, counts: Any, log_other: FloatArray, log_share: FloatArray) -> FloatArray:
    """Return the log-probability that `counts` of `size` items succeed, each with log-probability `log_share`."""
    log_ways = log_falling(size, counts) - log_falling(counts, counts)
    failures = np.where(size > counts, (size - counts) * log_other, 0.0)
    result: FloatArray = log_ways + failures + np.where(counts > 0, counts * log_share, 0.0)
    return result


def binomial_law(
    size: float, least: int, most: int, log_other: FloatArray, log_share: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the counts from `least` to `most`, and the probability of each as [count, z]."""
    counts = np.arange(max(least, 0), int(min(size, most)) + 1.0)
    return counts, np.exp(log_binomial(size, counts[:, None], log_other, log_share))


def more_than(count: int, size: float, log_share: FloatArray) -> FloatArray:
    """Return the probability that more than `count` of `size` items succeed."""
    from scipy.special import betainc, gammainc

    if size <= count:
        return np.zeros_like(log_share)
    share = np.exp(log_share)
    if size < _POISSON:
        binomial: FloatArray = betainc(count + 1.0, size - count, share)
        return binomial
    poisson: FloatArray = gammainc(count + 1.0, size * share)
    return poisson


def _tilt(log_cdf_: FloatArray, log_survival: FloatArray, sizes: FloatArray, wanted: int) -> FloatArray:
    """Return λ for each z such that about `wanted` items are above z when their odds are multiplied by e^λ."""
    from scipy.special import expit

    odds = np.clip(log_survival - log_cdf_, -_LARGEST_LOG_ODDS, _LARGEST_LOG_ODDS)
    number = float(sizes.sum())
    target = min(max(wanted - 0.5, 0.25), number - 0.25) if number < _POISSON else max(wanted - 0.5, 0.25)
    spread = math.log(number) + 10.0
    low, high = -odds.max(axis=0) - spread, -odds.min(axis=0) + spread
    for _ in range(50):
        middle = (low + high) / 2
        few = sizes @ expit(odds + middle) < target
        low, high = np.where(few, middle, low), np.where(few, high, middle)
    tilt: FloatArray = (low + high) / 2
    return tilt


def _finite(logs: FloatArray) -> FloatArray:
    """Replace NaN by −∞: it comes from a product with an impossible event, whose probability is 0."""
    return np.where(np.isnan(logs), -np.inf, logs)
