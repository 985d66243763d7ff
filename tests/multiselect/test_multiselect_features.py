"""Feature vectors: ε per unit of ℓ1 distance over all pairs, signals that follow their law, and useful answers."""

from __future__ import annotations

import math
from itertools import combinations, permutations, product
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.stats import chi2

import dpselect as dps
from dpselect.multiselect import FeatureClient, FeatureServer, GridNoise, QualityModel, expected_cost, noise_cost
from dpselect.multiselect.features import feature_offsets, offset_cost, principal_directions
from dpselect.multiselect.vectors import GaussianGridNoise, GaussianVectorNoise, VectorNoise
from dpselect.privacy.calibration import unit_sigma
from dpselect.sampling import BitSource, bit_source

LOW, HIGH = -3, 6
Law = dict[tuple[int, ...], float]


class SharedNoise(VectorNoise):
    """A broken twin: one noise for all coordinates, which reveals their difference."""

    def law(self, vector: Any, low: int, high: int) -> Law:
        first, *others = self.nearest(vector)
        single = self.single.law(vector[0], low, high)
        return {
            (place, *(place + other - first for other in others)): probability for place, probability in single.items()
        }

    def draw(self, places: tuple[int, ...], bits: BitSource) -> tuple[int, ...]:
        noise = self.single.draw(0, bits)
        return tuple(place + noise for place in places)


class EuclideanNoise(VectorNoise):
    """A broken twin: noise calibrated for the Euclidean distance, 1/√n of what ℓ1 needs."""

    @property
    def single(self) -> GridNoise:
        return GridNoise(self.epsilon * math.sqrt(self.dimensions), self.step)


class BareCoordinate(VectorNoise):
    """A broken twin: the last coordinate gets no noise."""

    def law(self, vector: Any, low: int, high: int) -> Law:
        last = self.nearest(vector)[-1]
        return {(place, last): probability for place, probability in self.single.law(vector[0], low, high).items()}


def worst_excess(noise: VectorNoise, vectors: list[tuple[float, ...]]) -> float:
    """Return the largest excess of a loss over the guarantee, over all pairs of vectors and all signals."""
    laws = [noise.law(vector, LOW, HIGH) for vector in vectors]
    worst = -math.inf
    for one, other in combinations(range(len(vectors)), 2):
        stated = noise.guarantee.loss(np.subtract(vectors[one], vectors[other]).tolist())
        if laws[one].keys() != laws[other].keys():
            return math.inf
        losses = [abs(math.log(probability / laws[other][places])) for places, probability in laws[one].items()]
        worst = max(worst, max(losses) - stated)
    return worst


VECTORS = list(product((0.0, 0.2, 0.5), repeat=2))


def test_no_signal_costs_more_than_epsilon_per_unit_of_l1_distance() -> None:
    noise = VectorNoise(1.0, 2, 0.5)
    assert all(math.fsum(noise.law(vector, LOW, HIGH).values()) == pytest.approx(1) for vector in VECTORS)
    assert worst_excess(noise, VECTORS) <= 1e-12
    for broken in (SharedNoise, EuclideanNoise, BareCoordinate):
        assert worst_excess(broken(1.0, 2, 0.5), VECTORS) > 0.1


class HalfVariance(GaussianVectorNoise):
    """A broken twin: noise of half the variance that ρ needs."""

    @property
    def single(self) -> GaussianGridNoise:
        return GaussianGridNoise(self.step, 2 * self.rho)


class ClippedGaussian(GaussianVectorNoise):
    """A broken twin: noise cut off at 3 standard deviations, so that some signals give a vector away."""

    def law(self, vector: Any, low: int, high: int) -> Law:
        reach = 3 * math.sqrt(self.single.variance)
        near = self.nearest(vector)
        whole = super().law(vector, low, high)
        kept = {
            places: probability
            for places, probability in whole.items()
            if all(abs(place - centre) <= reach for place, centre in zip(places, near, strict=True))
        }
        return {places: kept.get(places, 0.0) / math.fsum(kept.values()) for places in whole}


FAR_LOW, FAR_HIGH = -14, 16


def excess_delta(noise: GaussianVectorNoise, vectors: list[tuple[float, ...]]) -> float:
    """Return the largest `max_S (P[S | v] − e^ε P[S | v'])`, ε the stated loss of v and v', as a multiple of δ."""
    laws = {vector: noise.law(vector, FAR_LOW, FAR_HIGH) for vector in vectors}
    worst = 0.0
    for one, other in permutations(vectors, 2):
        factor = math.exp(noise.guarantee.loss(np.subtract(one, other).tolist()))
        above = math.fsum(max(p - factor * laws[other][places], 0.0) for places, p in laws[one].items())
        worst = max(worst, above / noise.delta)
    return worst


def excess_divergence(noise: GaussianVectorNoise, vectors: list[tuple[float, ...]], order: float) -> float:
    """Return the largest Rényi divergence as a multiple of α ρ t², over all pairs of vectors that are apart."""
    laws = {vector: noise.law(vector, FAR_LOW, FAR_HIGH) for vector in vectors}
    worst = 0.0
    for one, other in permutations(vectors, 2):
        steps = [math.ceil(abs(a - b) / noise.step) for a, b in zip(one, other, strict=True)]
        stated = order * noise.rho * noise.step**2 * sum(count * count for count in steps)
        terms = (p**order * laws[other][places] ** (1 - order) for places, p in laws[one].items())
        worst = max(worst, math.log(math.fsum(terms)) / (order - 1) / stated)
    return worst


def test_gaussian_signals_are_private_with_their_delta() -> None:
    """Exact but for tails beyond 7 standard deviations, which are counted at the bounds of the grid."""
    vectors = [(0.0, 0.0), (0.4, 0.0), (0.5, 0.5), (1.0, 0.5)]
    for epsilon, delta in ((2.0, 0.01), (4.0, 0.05), (1.0, 0.2)):
        noise = GaussianVectorNoise(epsilon, delta, 2, 0.5)
        assert noise.guarantee.loss([1.0, 0.0]) <= epsilon
        assert math.fsum(noise.law((0.4, 0.1), FAR_LOW, FAR_HIGH).values()) == pytest.approx(1)
        assert excess_delta(noise, vectors) <= 1
    noise = (2.0, 0.01, 2, 0.5)
    assert excess_delta(HalfVariance(*noise), vectors) > 2
    assert excess_delta(GaussianVectorNoise(*noise), vectors) < 1


def test_the_divergence_of_gaussian_signals_is_that_of_the_euclidean_distance() -> None:
    """It is attained, so that noise with 1% less variance would exceed it."""
    vectors = [(0.0, 0.0), (0.5, 0.0), (0.5, 0.5), (0.3, 0.5)]
    noise = GaussianVectorNoise(2.0, 0.01, 2, 0.5)
    for order in (1.5, 2.0, 4.0):
        assert 1 - 1e-4 < excess_divergence(noise, vectors, order) <= 1 + 1e-9
    narrow = GaussianVectorNoise(2.0, 0.01, 2, 0.5)
    object.__setattr__(narrow, "rho", 1.01 * noise.rho)
    laws = [given.law((0.5, 0.5), FAR_LOW, FAR_HIGH) for given in (noise, narrow)]
    assert laws[0] != laws[1]
    stated = 2.0 * noise.rho * 0.5
    one, other = narrow.law((0.0, 0.0), FAR_LOW, FAR_HIGH), laws[1]
    assert math.log(math.fsum(p**2 / other[places] for places, p in one.items())) > 1.005 * stated
    # Cutting the tails off makes signals possible that another vector never sends.
    assert excess_delta(ClippedGaussian(2.0, 1e-4, 2, 0.5), vectors) > 1


def test_a_gaussian_guarantee_says_what_it_is() -> None:
    guarantee = FeatureClient(1.0, 3, grid=0.25, noise="gaussian", delta=1e-6).guarantee
    assert guarantee.loss([0.0, 0.0, 0.0]) == 0
    assert guarantee.loss([0.5, 0.0, 0.75]) <= 1.0 < guarantee.loss([0.6, 0.0, 0.75]), "rounded up to whole steps"
    assert guarantee.loss([2.0, 0.0, 0.0]) > 2 * guarantee.loss([1.0, 0.0, 0.0]), "it grows faster than the distance"
    assert str(guarantee).startswith("epsilon = 1, delta = 1e-06 for vectors at Euclidean distance at most 1")
    assert guarantee.to_dict()["neighbours"] == "Euclidean distance at most 1"
    with pytest.raises(dps.InvalidInput, match="difference must be 3 numbers"):
        guarantee.loss([1.0])


def test_gaussian_clients_add_up_epsilon_and_delta() -> None:
    client = FeatureClient(0.5, 2, budget=1.0, noise="gaussian", delta=1e-6, seed=1)
    for _ in range(2):
        signal = client.signal([1.0, 2.0])
    assert (signal / client.guarantee.step == np.round(signal / client.guarantee.step)).all()
    assert (client.spent, client.spent_delta, FeatureClient(0.5, 2).spent_delta) == (1.0, 2e-6, 0.0)
    with pytest.raises(dps.BudgetExceeded):
        client.signal([1.0, 2.0])
    assert unit_sigma(0.5, 1e-6) < client.scale < 1.1 * unit_sigma(0.5, 1e-6)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"noise": "gaussian"}, "delta must be above 0, got 0.0; Gaussian noise has no pure guarantee"),
        ({"noise": "gaussian", "delta": 1.5}, "delta must be at least 0"),
        ({"noise": "cauchy"}, "noise must be laplace or gaussian, got 'cauchy'"),
        ({"delta": 1e-6}, "delta must be 0 with Laplace noise"),
        ({"noise": "gaussian", "delta": 1e-300, "epsilon": 1e-300}, "epsilon must be nearer to 1"),
    ],
)
def test_a_noise_and_a_delta_that_do_not_fit_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(dps.InvalidInput) as error:
        FeatureClient(**{"epsilon": 1.0, "dimensions": 2, **arguments})
    assert str(error.value).startswith(message)


@pytest.mark.slow
def test_a_server_places_its_answers_for_gaussian_noise() -> None:
    """In one dimension the offsets cost what the best points of a normal law cost, found by another search."""
    vectors = np.random.default_rng(0).normal(size=(400, 3))
    server = FeatureServer(vectors, 3, 2.0, dimensions=1, noise="gaussian", delta=1e-6)
    scale = FeatureClient(2.0, 3, noise="gaussian", delta=1e-6).scale
    line = np.eye(1)
    best = {k: minimize_scalar(lambda a, k=k: noise_cost([-a, a, *[0.0] * (k - 2)], "gaussian")) for k in (2, 3)}
    for k, found in best.items():
        offsets = feature_offsets(k, 1.0, line, "gaussian")
        assert offset_cost(offsets, 1.0, line, noise="gaussian") == pytest.approx(found.fun, rel=0.03)
        assert np.abs(offsets).max() == pytest.approx(abs(found.x), rel=0.05)
    assert np.abs(server.offsets).max() == pytest.approx(scale * abs(best[3].x), rel=0.05)


def test_the_loss_is_that_of_the_l1_distance() -> None:
    guarantee = VectorNoise(0.5, 3, 0.25).guarantee
    assert guarantee.loss([1.0, -2.0, 0.5]) == 0.5 * 3.5
    assert guarantee.loss([0.01, 0.0, 0.0]) == 0.5 * 0.25, "rounded up to a whole step"
    assert "0.5 per unit of l1 distance" in str(guarantee)
    assert guarantee.to_dict()["dimensions"] == 3
    with pytest.raises(dps.InvalidInput, match="difference must be 3 numbers, one for each coordinate, got 2 numbers"):
        guarantee.loss([1.0, 2.0])


def statistic(noise: VectorNoise, sampler: VectorNoise, vector: tuple[float, ...], draws: int) -> float:
    """Return Pearson's statistic of draws by one noise against the law of another, on whole grid points."""
    bits, law = bit_source(11), noise.law(vector, -1, 4)
    places = np.clip([sampler.draw(sampler.nearest(vector), bits) for _ in range(draws)], -1, 4)
    counts: dict[tuple[int, ...], int] = {}
    for place in map(tuple, places.tolist()):
        counts[place] = counts.get(place, 0) + 1
    return sum(
        (counts.get(place, 0) - draws * probability) ** 2 / (draws * probability) for place, probability in law.items()
    )


@pytest.mark.slow
def test_signals_follow_the_law_and_those_of_broken_twins_do_not() -> None:
    """A correct sampler exceeds the limit with a probability of 1e-6; each of 36 cells expects over eight draws."""
    noise, vector, draws = VectorNoise(1.0, 2, 0.5), (0.6, 1.0), 2000
    assert min(noise.law(vector, -1, 4).values()) * draws > 8
    limit = float(chi2.isf(1e-6, 35))
    assert statistic(noise, noise, vector, draws) < limit
    assert statistic(noise, SharedNoise(1.0, 2, 0.5), vector, draws) > limit
    assert statistic(noise, EuclideanNoise(1.0, 2, 0.5), vector, draws) > limit


def test_a_client_sends_grid_points_and_stops_at_its_budget() -> None:
    client = FeatureClient(0.5, 3, grid=0.25, budget=1.0, seed=1)
    for _ in range(2):
        signal = client.signal([0.3, 1.0, -2.0])
        assert (signal / 0.25 == np.round(signal / 0.25)).all()
    assert (client.spent, client.secure) == (1.0, False)
    with pytest.raises(dps.BudgetExceeded) as error:
        client.signal([0.3, 1.0, -2.0])
    assert error.value.remaining == 0
    assert "0.3" not in repr(client)


def test_a_client_keeps_a_copy_of_the_vector() -> None:
    client, vector = FeatureClient(1.0, 2, seed=1), np.array([1.0, 1.0])
    client.signal(vector)
    vector[:] = 50.0
    assert client.choose([{"vector": [40, 40]}, {"vector": [1, 2]}])["vector"] == [1, 2]


def test_a_client_keeps_the_nearest_result() -> None:
    client = FeatureClient(1.0, 2, seed=1)
    with pytest.raises(dps.InvalidInput, match="results must follow a signal"):
        client.choose([{"vector": [0, 0]}])
    client.signal([1.0, 1.0])
    results = [{"item": "far", "vector": [3, 3]}, {"item": "near", "vector": [1, 2]}]
    assert client.choose({"results": results})["item"] == client.choose(results)["item"] == "near"
    for wrong in ([], "text", None, [{"item": "bare"}], [{"vector": [1, 2, 3]}]):
        with pytest.raises(dps.InvalidInput, match="results must"):
            client.choose(wrong)
    assert client.choose(results, quality=lambda taste, result: float(taste @ result["vector"]))["item"] == "far"
    assert client.choose(results, quality=QualityModel(np.eye(2)))["item"] == "far"
    assert client.choose(results, quality=QualityModel(2 * np.eye(2), squares=[-1, -1]))["item"] == "near"


def test_a_bad_vector_is_refused_without_being_shown() -> None:
    for vector in ([1.0], [1.0, math.nan], [math.inf, 0], [1e308, 0], "secret", None, [[1, 2]], [1.0, "x"]):
        with pytest.raises(dps.InvalidInput) as error:
            FeatureClient(1.0, 2).signal(vector)
        assert str(error.value) == "vector must be 2 finite numbers within ±1e+100, got something else (not shown)"
        with pytest.raises(dps.InvalidInput, match="signal must be 2 finite numbers"):
            FeatureServer(np.eye(2), 1, 1.0, dimensions=1).answer(vector)


def test_directions_are_those_of_the_largest_variance() -> None:
    generator = np.random.default_rng(0)
    vectors = generator.normal(size=(500, 4)) * [1.0, 5.0, 0.1, 2.0] + 3
    directions = principal_directions(vectors, 2)
    assert np.allclose(directions.T @ directions, np.eye(2))
    assert np.abs(directions).argmax(axis=0).tolist() == [1, 3]
    spread = (vectors - vectors.mean(axis=0)) @ directions
    assert np.allclose(np.sort(np.linalg.eigvalsh(np.cov(vectors.T)))[:1:-1], spread.var(axis=0, ddof=1))


def test_in_one_dimension_offsets_cost_the_expected_cost() -> None:
    """Within 3%: the offsets come from sampled noise, and their cost from other draws, all from fixed seeds."""
    line = np.eye(1)
    for k in (1, 3, 8):
        assert offset_cost(feature_offsets(k, 2.0, line), 2.0, line) == pytest.approx(expected_cost(k, 2.0), rel=0.03)


@pytest.mark.slow
@pytest.mark.parametrize("dimensions", [2, pytest.param(3, marks=pytest.mark.long)])
def test_the_cost_falls_with_k_as_in_the_theorem(dimensions: int) -> None:
    """O(1/(ε k^{1/d'})): `ε k^{1/d'}` times the cost stays bounded, whatever n is; and ε only scales."""
    directions = np.linalg.qr(np.random.default_rng(3).normal(size=(12, dimensions)))[0]
    costs = {k: offset_cost(feature_offsets(k, 1.0, directions), 1.0, directions) for k in (1, 4, 16, 32)}
    assert max(k ** (1 / dimensions) * cost for k, cost in costs.items()) < 1.6 * costs[1]
    slope = math.log(costs[4] / costs[32]) / math.log(8)
    assert slope == pytest.approx(1 / dimensions, rel=0.2)
    assert np.allclose(feature_offsets(4, 5.0, directions) * 5, feature_offsets(4, 1.0, directions))


@pytest.mark.slow
def test_a_server_answers_with_k_different_results_about_the_signal() -> None:
    generator = np.random.default_rng(1)
    vectors = generator.normal(size=(300, 5)) * [3.0, 2.0, 0.2, 0.1, 0.1]
    names = [f"film {number}" for number in range(300)]
    for k in (1, 20, 300):
        server = FeatureServer(vectors, k, 1.0, items=names)
        results = server.answer(vectors[7] + 0.3)
        assert len({result.item for result in results}) == k
        assert all((vectors[names.index(result.item)] == result.vector).all() for result in results)
    sure = FeatureServer(vectors, 1, 1e6)
    nearest = np.linalg.norm(sure.reduce(vectors) - sure.reduce(vectors[7]), axis=1).argmin()
    assert sure.answer(vectors[7])[0].item == nearest == 7
    assert sure.answer(vectors[7])[0].to_dict()["vector"] == vectors[7].tolist()


def test_results_with_equal_vectors_are_different_results() -> None:
    server = FeatureServer(np.ones((6, 3)), 5, 1.0)
    assert len({result.item for result in server.answer([1.0, 1.0, 1.0])}) == 5


@pytest.mark.slow
def test_more_results_bring_the_best_one_nearer() -> None:
    generator = np.random.default_rng(2)
    vectors = generator.normal(size=(3000, 6)) * [2.0, 1.5, 0.05, 0.05, 0.05, 0.05]
    noise, bits = VectorNoise(2.0, 6), bit_source(3)
    signals = [noise.position(noise.draw(noise.nearest(vector), bits)) for vector in vectors[:100]]
    means = []
    for k in (1, 4, 16):
        server = FeatureServer(vectors, k, 2.0)
        distances = [
            min(np.linalg.norm(result.vector - vector) for result in server.answer(signal))
            for vector, signal in zip(vectors, signals, strict=False)
        ]
        means.append(float(np.mean(distances)))
    assert means[0] > 1.3 * means[1] > 1.3**2 * means[2]


BAD_ARGUMENTS: list[Any] = [
    ({"k": 4}, "k must be at most 3 (the number of results), got 4"),
    ({"epsilon": -1}, "epsilon"),
    ({"epsilon": 1e-300}, "epsilon must be from 1e-150 to 1e150, got 1e-300"),
    ({"dimensions": 3}, "dimensions must be at most 2"),
    ({"items": ["a"]}, "items must be as many as vectors (3), got 1"),
    ({"vectors": []}, "vectors must be vectors of the same length"),
    ({"vectors": [[1.0, math.nan]]}, "vectors must be vectors of the same length"),
    ({"vectors": [[1.0], [1.0, 2.0]]}, "vectors must be vectors of the same length"),
    ({"vectors": [[1e200, 1.0], [1.0, 2.0], [1.0, 3.0]]}, "vectors must be vectors of the same length"),
]


def test_bad_arguments_are_refused() -> None:
    for arguments, message in BAD_ARGUMENTS:
        given = {"vectors": [[0.0, 1.0], [1.0, 0.0], [2.0, 2.0]], "k": 1, "epsilon": 1.0, **arguments}
        with pytest.raises(dps.InvalidInput) as error:
            FeatureServer(**given)
        assert str(error.value).startswith(message)
