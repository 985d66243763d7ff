"""Feature vectors: ε per unit of ℓ1 distance over all pairs, signals that follow their law, and useful answers."""

from __future__ import annotations

import math
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2

import dpselect as dps
from dpselect.multiselect import FeatureClient, FeatureServer, GridNoise, expected_cost
from dpselect.multiselect.features import VectorNoise, feature_offsets, offset_cost, principal_directions
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
