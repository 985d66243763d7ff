"""Broken twins of the mechanisms that add noise to scores: one-shot, peeling, gamma, Laplace and Gaussian."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from itertools import groupby, permutations
from typing import Any

import numpy as np

from dpselect._arrays import FloatArray
from dpselect.mechanisms import Gamma, Gaussian, Laplace, Lipschitz, OneShot, Peeling
from dpselect.mechanisms.base import scaled_locations
from dpselect.mechanisms.gamma import gamma_law
from dpselect.privacy import COUNTS, Sensitivity
from dpselect.privacy.calibration import range_per_round, unit_sigma
from dpselect.sampling.laws import Distribution, sequence_law, set_law
from dpselect.sampling.noise import NOISES, NORMAL
from dpselect.sampling.own_noise import adapted
from dpselect.scores import Scores
from dpselect.verify import own_noises
from dpselect.verify.broken.base import Altered, Draw, Law, Twin, altered, by_privacy, by_sampler
from dpselect.verify.domain import Domain
from dpselect.verify.included import LaplaceShown

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


STEPS = adapted(own_noises.STEPS)[0]
"""Hazard 1, but 0.01 between 1 and 3: log(1 − F) is 1-Lipschitz, while the density falls by a factor of 100.

It is fit for sets, whose proof needs the survival function only, and not for the order of the noisy scores."""


def rate_of(mechanism: OneShot | Lipschitz) -> Fraction:
    """Return ε/(k w), by which one-shot multiplies scores before adding standard noise."""
    return Fraction(mechanism.epsilon) / Fraction(mechanism.sensitivity.spread) / mechanism.k


def noisy_set(mechanism: OneShot | Lipschitz, factor: int = 1, noise: Distribution | None = None) -> Law:
    """Return the law of the k largest noisy scores at `factor` times the right rate, or with another noise."""
    stated = mechanism.distribution if isinstance(mechanism, Lipschitz) else NOISES[mechanism.noise]
    rate = factor * rate_of(mechanism)
    return lambda scores: set_law(scaled_locations(Scores.of(scores), rate), mechanism.k, noise or stated)


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


def second_noise(mechanism: OneShot) -> Law:
    """Return the law of the one-shot set listed in the order of fresh noise of the same scale."""

    def law(scores: Any) -> dict[Any, float]:
        found: dict[Any, float] = {}
        for chosen, probability in replace(mechanism, ordered=False).law(scores).items():
            items = sorted(chosen)
            orders = noisy_order(mechanism, NOISES[mechanism.noise])([scores[item] for item in items])
            found |= {tuple(items[place] for place in order): probability * share for order, share in orders.items()}
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


PAIR = OneShot(k=2, epsilon=1.0)
SINGLE = OneShot(k=1, epsilon=1.0)
SIGNED = replace(PAIR, sensitivity=BOTH_WAYS)
TRIPLE = OneShot(k=3, epsilon=1.0, ordered=True)
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
    altered(
        "second noise for the order",
        "the set is listed in the order of fresh noise, at no further cost",
        TRIPLE,
        second_noise(TRIPLE),
        domain=Domain(4, 2),
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


OWN = Lipschitz(k=2, epsilon=1.0, noise=own_noises.SECANT)
OWN_SINGLE = replace(OWN, k=1)

OWN_NOISE = [
    altered(
        "own noise that is not Lipschitz",
        "normal noise, whose log(1 - F) falls ever faster",
        OWN_SINGLE,
        noisy_set(OWN_SINGLE, noise=NORMAL),
        noise="normal",
    ),
    altered(
        "own noise, forgotten k",
        "the noise scale is w / epsilon, for k items",
        OWN,
        noisy_set(OWN, OWN.k),
        noise=OWN.noise_name,
    ),
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
    drawn(
        "list shuffled", "a sequence is returned in random order", scaled_by(1.0), sound=replace(DRAWN, ordered=True)
    ),
    drawn("scale slightly off", "the noise drawn is a sixth smaller than stated", scaled_by(1.2)),
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


def shown_differently(mechanism: LaplaceShown, change: Callable[[Any, Any], Any]) -> Law:
    """Return the law of answers with values that are changed by the true scores before they are shown."""

    def law(scores: Any) -> dict[Any, float]:
        found: dict[Any, float] = {}
        for outcome, probability in mechanism.law(scores).items():
            changed = change(outcome, scores)
            found[changed] = found.get(changed, 0.0) + probability
        return found

    return law


def coarse_for_even_scores(outcome: Any, scores: Any) -> Any:
    """Round values to even numbers if the highest score is even."""
    return outcome if max(scores) % 2 else tuple((item, value // 2 * 2) for item, value in outcome)


def ties_by_score(outcome: Any, scores: Any) -> Any:
    """List items of equal value by descending true score."""
    runs = groupby(outcome, key=lambda pair: pair[1])
    return tuple(pair for _, run in runs for pair in sorted(run, key=lambda pair: -scores[pair[0]]))


RAISED = Sensitivity(2, 3)
SHOWN = LaplaceShown(k=2, epsilon=1.0, max_items_per_person=2)
FEW_TOUCHED = Domain(3, 1, items_per_person=2)

VECTORS = [
    altered(
        "noise for the spread",
        "scores rise by 2 to 3, the noise is made for a spread of 1",
        replace(SHOWN, k=1, sensitivity=RAISED),
        replace(SHOWN, k=1, sensitivity=COUNTS).law,
        domain=Domain(2, 1, RAISED, items_per_person=2),
    ),
    altered(
        "noise for k items",
        "k = 1 item is asked for, but a person touches two",
        Laplace(k=1, epsilon=1.0, sensitivity=BOTH_WAYS, max_items_per_person=2),
        Laplace(k=1, epsilon=1.0, sensitivity=BOTH_WAYS, max_items_per_person=1).law,
        domain=Domain(2, 3, BOTH_WAYS, items_per_person=2),
        noise="laplace",
    ),
    altered(
        "grid read off the scores",
        "values are rounded to even numbers if the highest score is even",
        SHOWN,
        shown_differently(SHOWN, coarse_for_even_scores),
        domain=FEW_TOUCHED,
    ),
    altered(
        "equal values by score",
        "items of equal value are listed by true score",
        SHOWN,
        shown_differently(SHOWN, ties_by_score),
        domain=FEW_TOUCHED,
    ),
]

LOG = -math.log(0.05)

OTHERS = [
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
    rounds(
        "report noisy max as bounded range",
        "rounds with laplace noise get the share that needs gumbel noise",
        float(range_per_round(0.5, 0.05, 2)),
        noise="laplace",
    ),
    altered(
        "laplace rounds at half the scale",
        "noise of scale w/(2 epsilon_0) in each round",
        Peeling(k=2, epsilon=1.0, noise="laplace"),
        Peeling(k=2, epsilon=2.0, noise="laplace").law,
    ),
]

TWINS = [*ONE_SHOT, *OWN_NOISE, *VECTORS, *OTHERS, *SAMPLERS]
