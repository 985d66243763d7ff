"""Broken twins of the mechanisms for known items: one-shot, peeling, gamma, Gaussian, canonical and joint."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from itertools import combinations, permutations
from typing import Any

import numpy as np

from dpselect._arrays import FloatArray
from dpselect.mechanisms import Canonical, Gamma, Gaussian, Joint, OneShot, Peeling
from dpselect.mechanisms.base import scaled_locations
from dpselect.mechanisms.gamma import gamma_law
from dpselect.privacy import Sensitivity
from dpselect.privacy.calibration import range_per_round
from dpselect.privacy.gaussian import unit_sigma
from dpselect.sampling.laws import Distribution, sequence_law, set_law, single_law
from dpselect.sampling.noise import NOISES
from dpselect.sampling.normal import NORMAL
from dpselect.scores import Scores
from dpselect.verify.broken.base import Altered, Draw, Law, Twin, by_privacy, by_sampler
from dpselect.verify.domain import Domain

BOTH_WAYS = Sensitivity(-1, 1)

# A sampler check draws thousands of times from the same Scores object.
_locations = lru_cache(maxsize=64)(scaled_locations)


@dataclass(frozen=True)
class NoiseLaw:
    """A noise known by its law only, without a sampler."""

    name: str
    cdf: Callable[[FloatArray], FloatArray]
    survival: Callable[[FloatArray], FloatArray]
    density: Callable[[FloatArray], FloatArray]
    kinks: tuple[float, ...] = ()


MINIMUM = NoiseLaw(
    "minimum",
    cdf=lambda z: -np.expm1(-np.exp(z)),
    survival=lambda z: np.exp(-np.exp(z)),
    density=lambda z: np.exp(z - np.exp(z)),
)
"""The extreme-value law of minima, −Gumbel: its log survival −e^z is not Lipschitz."""


def _hazard(z: FloatArray) -> FloatArray:
    return np.where(z < 0, 0.0, np.where((z < 1) | (z >= 3), 1.0, 0.01))


def _total_hazard(z: FloatArray) -> FloatArray:
    total: FloatArray = np.maximum(z, 0.0) - 0.99 * (np.clip(z, 1.0, 3.0) - 1.0)
    return total


STEPS = NoiseLaw(
    "steps",
    cdf=lambda z: -np.expm1(-_total_hazard(z)),
    survival=lambda z: np.exp(-_total_hazard(z)),
    density=lambda z: _hazard(z) * np.exp(-_total_hazard(z)),
    kinks=(0.0, 1.0, 3.0),
)
"""Hazard 1, but 0.01 between 1 and 3: log(1 − F) is 1-Lipschitz, while the density falls by a factor of 100.

It is fit for sets, whose proof needs the survival function only, and not for the order of the noisy scores."""


def rate_of(mechanism: OneShot) -> Fraction:
    """Return ε/(k w), by which one-shot multiplies scores before adding standard noise."""
    return Fraction(mechanism.epsilon) / Fraction(mechanism.sensitivity.spread) / mechanism.k


def noisy_set(mechanism: OneShot, factor: int = 1, noise: Distribution | None = None) -> Law:
    """Return the law of the k largest noisy scores at `factor` times the right rate, or with another noise."""
    rate, noise = factor * rate_of(mechanism), noise or NOISES[mechanism.noise]
    return lambda scores: set_law(scaled_locations(Scores.of(scores), rate), mechanism.k, noise)


def noisy_order(mechanism: OneShot, noise: Distribution) -> Law:
    """Return the law of the k largest noisy scores in descending order."""
    return lambda scores: sequence_law(scaled_locations(Scores.of(scores), rate_of(mechanism)), mechanism.k, noise)


def listed_by_score(mechanism: OneShot) -> Law:
    """Return the law of the one-shot set listed by descending true score; ties come in any order."""

    def law(scores: Any) -> dict[Any, float]:
        found: dict[Any, float] = {}
        for chosen, probability in mechanism.law(scores).items():
            descending = sorted((scores[item] for item in chosen), reverse=True)
            allowed = [order for order in permutations(chosen) if [scores[item] for item in order] == descending]
            found.update((order, probability / len(allowed)) for order in allowed)
        return found

    return law


LOWEST_SHOWN, HIGHEST_SHOWN = -2, 8


def shown_value(mechanism: OneShot) -> Law:
    """Return the law of the winner (k = 1) with its noisy score, rounded down and clipped to the range shown.

    `P(i, b) = ∫_b f_i Π_{l ≠ i} F_l` over the noisy scores z that are shown as b. An outcome is ((item, value),).
    """
    noise, rate = NOISES[mechanism.noise], float(rate_of(mechanism))
    nodes, weights = np.polynomial.legendre.leggauss(20)
    reach = math.ceil(40 / rate)
    # Scores are integers, so every kink of a density lies on the edge of a bin.
    bins = np.arange(LOWEST_SHOWN - reach, HIGHEST_SHOWN + reach)
    shown = np.clip(bins, LOWEST_SHOWN, HIGHEST_SHOWN).astype(float).tolist()

    def law(scores: Any) -> dict[Any, float]:
        values = np.array([float(score) for score in scores])
        shifted = rate * (bins[:, None] + (nodes + 1) / 2 - values[:, None, None])
        with np.errstate(over="ignore", under="ignore"):
            cdf, density = noise.cdf(shifted), noise.density(shifted)
        found: dict[Any, float] = {}
        for item in range(len(values)):
            integrand = density[item] * np.delete(cdf, item, axis=0).prod(axis=0)
            for value, mass in zip(shown, (integrand @ weights * rate / 2).tolist(), strict=True):
                outcome = ((item, value),)
                found[outcome] = found.get(outcome, 0.0) + mass
        return found

    return law


def altered(name: str, flaw: str, sound: Any, law: Law, **more: Any) -> Twin:
    """Return the twin of a mechanism with a wrong law."""
    lists = more.pop("lists", None)
    return by_privacy(name, flaw, Altered(sound=sound, wrong_law=law, lists=lists), sound, **more)


PAIR = OneShot(k=2, epsilon=1.0)
SINGLE = OneShot(k=1, epsilon=1.0)
SIGNED = replace(PAIR, sensitivity=BOTH_WAYS)
SETS_OF_STEPS = Altered(sound=PAIR, wrong_law=noisy_set(PAIR, noise=STEPS))
ORDER_OF_STEPS = Altered(sound=PAIR, wrong_law=noisy_order(PAIR, STEPS), lists=True)


def min_for_max(k: int = 1, epsilon: float = 1.0) -> Twin:
    """Return one-shot with the extreme-value law of minima in place of maxima."""
    sound = OneShot(k=k, epsilon=epsilon, noise="gumbel")
    flaw = "the noise follows the extreme-value law of the minimum"
    return altered("min for max", flaw, sound, noisy_set(sound, noise=MINIMUM))


ONE_SHOT = [
    altered("halved noise", "the noise scale is half of k w / epsilon", PAIR, noisy_set(PAIR, 2)),
    altered("leaked order", "the set is listed by true score", PAIR, listed_by_score(PAIR), lists=True),
    by_privacy(
        "leaked noisy order",
        "the set is listed by noisy score, with noise fit for sets only",
        ORDER_OF_STEPS,
        SETS_OF_STEPS,
        noise="steps",
    ),
    *[
        altered("shown value", "the winner's noisy score is shown with it", sound, shown_value(sound), lists=True)
        for sound in (SINGLE, replace(SINGLE, noise="laplace"))
    ],
    altered(
        "forgotten factor 2",
        "scores move both ways by s, the noise is scaled for a spread of s",
        SIGNED,
        noisy_set(SIGNED, 2),
    ),
    altered("forgotten k", "the noise scale is w / epsilon, for k items", PAIR, noisy_set(PAIR, PAIR.k)),
    min_for_max(),
]


Noisy = Callable[[FloatArray, FloatArray, int], FloatArray]
"""Maps locations, noises and k to noisy scores."""


def noisy_draw(mechanism: OneShot, noisy: Noisy, *, shuffled: bool = True) -> Draw:
    """Return a one-shot sampler in floating point that adds noise in its own way."""

    def draw(scores: Any, seed: int | None) -> Any:
        generator = np.random.default_rng(seed)
        locations = np.array(_locations(Scores.of(scores), rate_of(mechanism)))
        noises = NOISES[mechanism.noise].quantile(generator.exponential(size=len(locations)))
        chosen = np.argsort(-noisy(locations, noises, mechanism.k))[: mechanism.k]
        return generator.permutation(chosen) if shuffled else chosen

    return draw


def _groups(locations: FloatArray) -> list[tuple[float, Any]]:
    return [(location, np.flatnonzero(locations == location)) for location in np.unique(locations)]


def smallest_noises(locations: FloatArray, noises: FloatArray, k: int) -> FloatArray:
    """Give the k smallest noises of each group of ties where the k largest are due."""
    result = np.full(len(locations), -np.inf)
    for location, group in _groups(locations):
        places = group[np.argsort(noises[group])][:k]
        result[places] = location + noises[places]
    return result


def first_members(locations: FloatArray, noises: FloatArray, k: int) -> FloatArray:
    """Give the largest noises of a group of ties to its first members."""
    result = locations.copy()
    for _, group in _groups(locations):
        result[group] += -np.sort(-noises[group])
    return result


def reused_noise(locations: FloatArray, noises: FloatArray, k: int) -> FloatArray:
    """Give the first two items the same noise."""
    shared = noises.copy()
    shared[1] = shared[0]
    return locations + shared


def scaled_by(factor: float) -> Noisy:
    """Return noisy scores with locations multiplied by a factor: above 1, the noise is too small."""
    return lambda locations, noises, _: factor * locations + noises


TIED_SCORES = (2.0, 1.0, 0.0, 1.0, 1.0)
DRAWN = OneShot(k=2, epsilon=4.0, noise="gumbel")


def drawn(name: str, flaw: str, noisy: Noisy, *, shuffled: bool = True, sound: OneShot = DRAWN) -> Twin:
    """Return the twin of one-shot with a wrong sampler."""
    return by_sampler(name, flaw, noisy_draw(sound, noisy, shuffled=shuffled), sound, TIED_SCORES)


SAMPLERS = [
    drawn("order statistics swapped", "a group of ties competes with its smallest noises", smallest_noises),
    drawn("members not uniform", "of a group of ties, the first listed win", first_members),
    drawn("noise reused", "two items get the same noise", reused_noise),
    drawn("set not shuffled", "the set is returned in the order of its noisy scores", scaled_by(1.0), shuffled=False),
    drawn("scale slightly off", "the noise drawn is a sixth smaller than stated", scaled_by(1.2)),
]


Extremes = Callable[[Sequence[Fraction], tuple[int, ...]], tuple[Fraction, Fraction]]
"""Maps scores and a subset to the two scores of its loss."""


def extremes(values: Sequence[Fraction], subset: tuple[int, ...]) -> tuple[Fraction, Fraction]:
    """Return the best missing and the worst included score, as is right."""
    missing = [value for item, value in enumerate(values) if item not in subset]
    return max(missing), min(values[item] for item in subset)


def margin_too_far(values: Sequence[Fraction], subset: tuple[int, ...]) -> tuple[Fraction, Fraction]:
    """Measure the margin of the top set to rank k + 2; its loss is then not a function of missing and included.

    When scores tied at rank k part, the top set loses its margin on one side and keeps it on the other.
    """
    missing, included = extremes(values, subset)
    if missing <= included and len(subset) + 1 < len(values):
        missing = sorted(values, reverse=True)[len(subset) + 1]
    return missing, included


def margin_too_near(values: Sequence[Fraction], subset: tuple[int, ...]) -> tuple[Fraction, Fraction]:
    """Measure the margin of the top set from rank k − 1."""
    missing, included = extremes(values, subset)
    if missing <= included and len(subset) > 1:
        included = sorted(values, reverse=True)[len(subset) - 2]
    return missing, included


def swapped_extremes(values: Sequence[Fraction], subset: tuple[int, ...]) -> tuple[Fraction, Fraction]:
    """Return the worst missing and the best included score: as private as the right ones, and useless.

    That loss moves within the same bounds, so no privacy check can object; and for scores that are their own mirror
    image, such as (2, 1, 1, 1, 0), the law is even the same.
    """
    missing = [value for item, value in enumerate(values) if item not in subset]
    return min(missing), max(values[item] for item in subset)


def canonical_law(mechanism: Canonical, loss_of: Extremes = extremes, weight: int = 1) -> Law:
    """Return the law of noise on `−ε · loss(y) / w`, where the loss is `weight ((1 − γ) missing − γ included)`."""
    rate = weight * Fraction(mechanism.epsilon) / Fraction(mechanism.sensitivity.spread)
    gamma = Fraction(mechanism.gamma)

    def law(scores: Any) -> dict[Any, float]:
        values = Scores.of(scores).exact()
        subsets = list(combinations(range(len(values)), mechanism.k))
        pairs = [loss_of(values, subset) for subset in subsets]
        losses = [(1 - gamma) * missing - gamma * included for missing, included in pairs]
        locations = [float(rate * (min(losses) - loss)) for loss in losses]
        masses = single_law(locations, NOISES[mechanism.noise]).tolist()
        return {frozenset(subset): mass for subset, mass in zip(subsets, masses, strict=True)}

    return law


def overcount(ranks: Sequence[int], k: int) -> float:
    """Return the factor by which the printed recursion overcounts the class of a subset, given by its ranks from 0.

    It has (t − (h+1)) / (k − (h+1)) in place of (t − (h+2)) / (k − (h+1)), so that a class (h, t) counts
    `Π_{j=h}^{k−2} (t − j − 1)/(k − 1 − j)` members in place of C(t−h−2, k−1−h). Mathematics, section 10.
    """
    tail = max(ranks) + 1
    head = next(rank for rank in range(k + 1) if rank not in ranks)
    return math.prod((tail - place - 1) / (tail - place - 2) for place in range(head, k - 1))


def miscounted_law(mechanism: Canonical) -> Law:
    """Return the law with class sizes by the printed recursion; the members of a class share its weight evenly."""
    right = canonical_law(mechanism)

    def law(scores: Any) -> dict[Any, float]:
        values = Scores.of(scores).exact()
        order = sorted(range(len(values)), key=lambda item: -values[item])
        weights = {
            subset: mass * overcount([order.index(item) for item in subset], mechanism.k)
            for subset, mass in right(scores).items()
        }
        total = sum(weights.values())
        return {subset: weight / total for subset, weight in weights.items()}

    return law


def draw_from(law: Law) -> Draw:
    """Return a sampler of sets that draws from a law with NumPy."""
    cached = lru_cache(maxsize=8)(law)

    def draw(scores: Any, seed: int | None) -> Any:
        generator = np.random.default_rng(seed)
        subsets, masses = zip(*cached(Scores.of(scores)).items(), strict=True)
        return generator.permutation(list(subsets[generator.choice(len(subsets), p=np.array(masses) / sum(masses))]))

    return draw


def narrow_joint(k: int = 2, noise: str = "exponential") -> Twin:
    """Return joint scaled for a loss that moves by w; it moves by 2w, as x_[i] and x_{s_i} may move in opposition."""
    sound = Joint(k=k, epsilon=1.0, noise=noise)
    flaw = "the loss of a sequence is scaled by w in place of 2 w"
    return altered("joint, width w", flaw, sound, replace(sound, epsilon=2.0).law)


SUBSETS = Canonical(k=2, epsilon=1.0)
RACED = Canonical(k=2, epsilon=1.0, noise="gumbel")

CANONICAL = [
    altered(
        "weights not normalised",
        "the loss is max missing - min included, without the halves",
        SUBSETS,
        canonical_law(SUBSETS, weight=2),
        parameters="gamma 0.5",
    ),
    altered(
        "margin one rank too far",
        "the margin of the top set is measured to rank k + 2",
        SUBSETS,
        canonical_law(SUBSETS, margin_too_far),
        parameters="gamma 0.5",
    ),
    altered(
        "margin from rank k - 1",
        "the margin of the top set is measured from rank k - 1",
        SUBSETS,
        canonical_law(SUBSETS, margin_too_near),
        parameters="gamma 0.5",
    ),
    *[
        by_sampler(name, flaw, draw_from(law), RACED, (3, 2, 1, 0, 0), draws=2000, parameters="gamma 0.5")
        for name, flaw, law in (
            (
                "extremes of the loss swapped",
                "the loss is made of min missing and max included",
                canonical_law(RACED, swapped_extremes),
            ),
            ("classes miscounted", "class sizes by the published recursion, off by one", miscounted_law(RACED)),
        )
    ],
]


def gamma_of_dimension(mechanism: Gamma) -> Law:
    """Return the law with Gamma(d) in place of Gamma(d + 1): the noise density is then unbounded at 0."""
    rate = 2 * Fraction(mechanism.epsilon) / Fraction(mechanism.sensitivity.spread)

    def law(scores: Any) -> dict[Any, float]:
        table = Scores.of(scores)
        return gamma_law(table, mechanism.k, rate, shape=table.size)

    return law


def normal_twin(name: str, flaw: str, sigma: float, k: int, epsilon: float, delta: float) -> Twin:
    """Return the Gaussian mechanism with a wrong σ. Two items that move in opposition show all of the error."""
    sound = Gaussian(k=k, epsilon=epsilon, delta=delta, sensitivity=BOTH_WAYS, max_items_per_person=2)
    rate = 1 / Fraction(sigma)
    return altered(
        name,
        flaw,
        sound,
        lambda scores: sequence_law(scaled_locations(Scores.of(scores), rate), k, NORMAL),
        noise="normal",
        domain=Domain(2, 2, BOTH_WAYS),
        parameters=f"delta {delta:g}, max_items_per_person 2",
    )


def forgotten_root(k: int = 1, epsilon: float = 0.5, delta: float = 0.1) -> Twin:
    """Return normal noise for the ℓ2 sensitivity of one score in place of that of m scores."""
    flaw = "the noise is made for one item per person, where a person touches several"
    return normal_twin("forgotten root of m", flaw, unit_sigma(epsilon, delta), k, epsilon, delta)


def classical_sigma(k: int = 1, epsilon: float = 10.0, delta: float = 0.1) -> Twin:
    """Return normal noise with `σ₁ = √(2 ln(1.25/δ))/ε` for ε > 1, where the formula is not proven."""
    flaw = "the classical formula for the noise is used beyond its range, at a large epsilon"
    sigma = math.sqrt(2 * 2.0 * math.log(1.25 / delta)) / epsilon
    return normal_twin("classical sigma", flaw, sigma, k, epsilon, delta)


def rounds(name: str, flaw: str, share: float, *, delta: float = 0.05, noise: str = "gumbel") -> Twin:
    """Return k = 2 rounds of peeling at a share ε₀ that is too large for the claimed (ε, δ), ε = 0.5."""
    sound = Peeling(k=2, epsilon=0.5, noise=noise, delta=delta)
    law = Peeling(k=2, epsilon=2 * share, noise=noise).law
    return altered(name, flaw, sound, law, parameters=f"delta {delta:g}")


LOG = -math.log(0.05)

OTHERS = [
    narrow_joint(),
    narrow_joint(noise="gumbel"),
    altered(
        "shape one too small",
        "the scale is Gamma(d) instead of Gamma(d + 1)",
        Gamma(k=2, epsilon=1.0),
        gamma_of_dimension(Gamma(k=2, epsilon=1.0)),
        domain=Domain(3, 2),
    ),
    forgotten_root(),
    classical_sigma(),
    rounds("rounds not added", "each round gets the whole epsilon", 0.5, delta=1e-3),
    rounds(
        "rho taken for epsilon", "the term with log(1 / delta) is left out of the conversion", math.sqrt(8 * 0.5 / 2)
    ),
    rounds(
        "conversion, wrong sign",
        "the term with log(1 / delta) is subtracted in the conversion",
        math.sqrt(8 / 2) * (math.sqrt(LOG) + math.sqrt(LOG + 0.5)),
    ),
    rounds(
        "permute-and-flip as bounded range",
        "rounds with exponential noise get the share that needs gumbel noise",
        float(range_per_round(0.5, 0.05, 2)),
        noise="exponential",
    ),
]

TWINS = [*ONE_SHOT, *CANONICAL[:3], *OTHERS, *CANONICAL[3:], *SAMPLERS]
