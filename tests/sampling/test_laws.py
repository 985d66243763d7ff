"""The tabulated laws against closed forms, against rigorous integration, and against each other."""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import combinations, pairwise, permutations, product

import numpy as np
import pytest

from dpselect.errors import InvalidInput
from dpselect.sampling.laws import group_law, rounded_sequence_law, sequence_law, set_law, single_law
from dpselect.sampling.noise import LAPLACE, NOISES, NORMAL, Noise

ACCURACY = 1e-10
EVERY_NOISE = pytest.mark.parametrize("noise", NOISES.values(), ids=list(NOISES))
LOCATIONS = [
    [0.0, 0.5, 1.0, 1.5],
    [1.0, 1.0, 1.0, 0.0],
    [0.3, -7.25, 12.5, 0.30000001],
    [0.0, 40.0, 90.0, 200.0],
]
EVERY_LOCATIONS = pytest.mark.parametrize("locations", LOCATIONS, ids=["steps", "ties", "uneven", "far"])


def close(probability: float, reference: float) -> bool:
    return abs(probability - reference) <= ACCURACY * reference


def softmax_without_replacement(locations: list[float], sequence: Iterable[int]) -> float:
    left, probability = dict(enumerate(locations)), 1.0
    for item in sequence:
        probability /= math.fsum(math.exp(location - left[item]) for location in left.values())
        del left[item]
    return probability


def rigorous_set_probability(locations: list[float], chosen: frozenset[int], noise: str) -> float:
    """Integrate the textbook formulas in ball arithmetic, whose result encloses the true value."""
    import flint

    flint.ctx.prec = 120
    arb, acb = flint.arb, flint.acb
    spots = [arb(location) for location in locations]

    def factors(z: acb, below: bool) -> tuple[acb, acb, acb]:
        """(F, S, f) of the noise at z, where `below` tells the side of the kink."""
        if noise == "exponential":
            return (acb(0), acb(1), acb(0)) if below else (1 - (-z).exp(), (-z).exp(), (-z).exp())
        if noise == "laplace":
            half = (z if below else -z).exp() / 2
            return (half, 1 - half, half) if below else (1 - half, half, half)
        if noise == "half-logistic":
            survival = 2 / (1 + z.exp())
            return (acb(0), acb(1), acb(0)) if below else (1 - survival, survival, survival * (2 - survival) / 2)
        if noise == "logistic":
            survival = 1 / (1 + z.exp())
            return (1 - survival, survival, survival * (1 - survival))
        cdf = (-(-z).exp()).exp()
        return (cdf, 1 - cdf, (-z).exp() * cdf)

    breaks = sorted({*locations, min(locations) - 60.0, max(locations) + 60.0})
    total = arb(0)
    for left, right in pairwise(breaks):

        def integrand(z: acb, _analytic: bool, left: float = left) -> acb:
            parts = [factors(z - spot, left < location) for spot, location in zip(spots, locations, strict=True)]
            value = acb(0)
            for last in chosen:
                term = parts[last][2]
                for item, (cdf, survival, _) in enumerate(parts):
                    if item != last:
                        term *= survival if item in chosen else cdf
                value += term
            return value

        steps = math.ceil((right - left) / 4)
        for step in range(steps):
            ends = [left + (right - left) * (step + shift) / steps for shift in (0, 1)]
            total += acb.integral(integrand, ends[0], ends[1], rel_tol=arb(1e-25), abs_tol=arb("1e-200")).real
    assert total.rel_accuracy_bits() > 40
    return float(total.mid())


@EVERY_NOISE
def test_laws_sum_to_one(noise: Noise) -> None:
    for locations, k in product(LOCATIONS, (1, 2, 3, 4)):
        assert math.fsum(set_law(locations, k, noise).values()) == pytest.approx(1, abs=1e-13)
        assert math.fsum(sequence_law(locations, k, noise).values()) == pytest.approx(1, abs=1e-13)


@EVERY_NOISE
def test_sequences_add_up_to_their_set(noise: Noise) -> None:
    for locations, k in product(LOCATIONS, (2, 3, 4)):
        sequences = sequence_law(locations, k, noise)
        for chosen, probability in set_law(locations, k, noise).items():
            assert close(math.fsum(sequences[order] for order in permutations(chosen)), probability)


@EVERY_LOCATIONS
def test_gumbel_sets_are_the_softmax_without_replacement(locations: list[float]) -> None:
    for chosen, probability in set_law(locations, 2, NOISES["gumbel"]).items():
        exact = math.fsum(softmax_without_replacement(locations, order) for order in permutations(chosen))
        assert close(probability, exact)


@EVERY_LOCATIONS
def test_sequences_by_integration_match_the_gumbel_closed_form(locations: list[float]) -> None:
    gumbel = NOISES["gumbel"]
    nameless = Noise(**{**vars(gumbel), "name": "not known to have a closed form"})
    for k in (1, 2, 3, 4):
        closed = sequence_law(locations, k, gumbel)
        for sequence, probability in sequence_law(locations, k, nameless).items():
            assert close(probability, closed[sequence])
            assert close(closed[sequence], softmax_without_replacement(locations, sequence))


@EVERY_NOISE
def test_the_law_of_one_winner_matches_the_integral(noise: Noise) -> None:
    for locations in LOCATIONS:
        integral = set_law(locations, 1, noise)
        for item, probability in enumerate(single_law(locations, noise)):
            assert close(probability, integral[frozenset({item})])


def test_rounded_values_add_up_to_the_sequences_and_each_to_its_own_law() -> None:
    """With k = d every value has the law of its noise, whatever the order."""
    edges, locations = [-1.5, -0.2, 0.3, 2.0], [0.7, 0.1, -0.4]
    for noise in (LAPLACE, NORMAL):
        law = rounded_sequence_law(locations, 2, noise, edges)
        for sequence, probability in sequence_law(locations, 2, noise).items():
            cells = [mass for outcome, mass in law.items() if tuple(item for item, _ in outcome) == sequence]
            assert close(math.fsum(cells), probability)
        law = rounded_sequence_law(locations, 3, noise, edges)
        for item, location in enumerate(locations):
            for cell, (low, high) in enumerate(pairwise([-math.inf, *edges, math.inf])):
                mass = math.fsum(mass for outcome, mass in law.items() if (item, cell) in outcome)
                bounds = noise.cdf(np.array([low, high]) - location)
                assert close(mass, float(bounds[1] - bounds[0]))


def test_permute_and_flip_of_two_items() -> None:
    law = single_law([0.0, -3.0], NOISES["exponential"])
    assert close(law[1], math.exp(-3) / 2)


def test_exponential_set_of_two_from_three_has_its_closed_form() -> None:
    """The item left out is the smallest; with tied locations each of the three is equally likely."""
    for probability in set_law([2.0, 2.0, 2.0], 2, NOISES["exponential"]).values():
        assert close(probability, 1 / 3)


@pytest.mark.slow
@EVERY_NOISE
@pytest.mark.parametrize("locations", [[0.0, 0.5, 1.5], [0.0, 9.5, 30.0, 30.0]], ids=["near", "apart"])
def test_sets_match_rigorous_integration(noise: Noise, locations: list[float]) -> None:
    law = set_law(locations, 2, noise)
    for chosen in combinations(range(len(locations)), 2):
        exact = rigorous_set_probability(locations, frozenset(chosen), noise.name)
        assert close(law[frozenset(chosen)], exact)


@EVERY_NOISE
def test_tiny_probabilities_keep_their_digits(noise: Noise) -> None:
    """Far out every noise here has an exponential tail, so that moving the loser by 1 costs a factor e."""
    probabilities = [set_law([0.0, -gap], 1, noise)[frozenset({1})] for gap in (500.0, 501.0)]
    # Laplace and logistic convolve two exponential tails: P = (g + 2) e^{−g} / 4 and (g − 1) e^{−g} at gap g.
    factor = {"laplace": 502 / 503, "logistic": 499 / 500}.get(noise.name, 1.0)
    assert 0 < probabilities[0] < 1e-200
    assert probabilities[0] / probabilities[1] == pytest.approx(math.e * factor, rel=ACCURACY)


@EVERY_NOISE
def test_relabelling_the_items_relabels_the_law(noise: Noise) -> None:
    locations = [0.0, 1.25, 0.5, 3.0]
    shuffled = [locations[item] for item in (2, 0, 3, 1)]
    names = {0: 2, 1: 0, 2: 3, 3: 1}
    law = sequence_law(locations, 2, noise)
    for (first, second), probability in sequence_law(shuffled, 2, noise).items():
        assert law[names[first], names[second]] == probability


@EVERY_NOISE
def test_huge_gaps_do_not_change_the_rest(noise: Noise) -> None:
    near = set_law([0.0, -0.1, -0.2], 1, noise)
    far = set_law([1e17, 0.0, -0.1, -0.2], 2, noise)
    for item in range(3):
        assert close(far[frozenset({0, item + 1})], near[frozenset({item})])
    assert far[frozenset({1, 2})] == 0.0


@EVERY_NOISE
def test_groups_add_up_the_sets_of_tied_items(noise: Noise) -> None:
    expanded, group_of = [0.0, 0.0, 1.5, 1.5, 1.5, 0.75], [0, 0, 1, 1, 1, 2]
    for k in (1, 2, 3):
        merged: dict[tuple[int, ...], float] = {}
        for chosen, probability in set_law(expanded, k, noise).items():
            counts = tuple(sum(group_of[item] == group for item in chosen) for group in range(3))
            merged[counts] = merged.get(counts, 0.0) + probability
        law = group_law([0.0, 1.5, 0.75], [2, 3, 1], k, noise)
        assert law.keys() == merged.keys()
        assert all(close(law[counts], merged[counts]) for counts in law)


def test_a_huge_group_of_gumbels_is_one_gumbel_further_up() -> None:
    size = 10**18
    law = group_law([0.0, 40.0], [size, 1], 1, NOISES["gumbel"])
    assert close(law[0, 1], 1 / (1 + size * math.exp(-40.0)))


@EVERY_NOISE
def test_huge_groups_sum_to_one(noise: Noise) -> None:
    law = group_law([0.0, 20.0, 40.0], [10**18, 10**9, 3], 2, noise)
    assert math.fsum(law.values()) == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("k", [0, 3, 1.5, True])
def test_k_outside_the_domain_is_refused(k: object) -> None:
    with pytest.raises(InvalidInput, match="k"):
        set_law([0.0, 1.0], k, NOISES["gumbel"])  # type: ignore[arg-type]


def test_locations_that_are_not_finite_are_refused() -> None:
    with pytest.raises(InvalidInput, match="locations"):
        set_law([0.0, math.nan], 1, NOISES["gumbel"])


def test_a_law_too_large_to_tabulate_is_refused() -> None:
    with pytest.raises(InvalidInput, match="100000 outcomes"):
        set_law(np.zeros(40).tolist(), 20, NOISES["gumbel"])
