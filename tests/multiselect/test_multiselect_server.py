"""Servers answer with the k different results nearest to their offsets, at the cost that theory promises."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpselect as dps
from dpselect.multiselect import (
    Catalogue,
    Client,
    Result,
    Server,
    catalogue_cost,
    expected_cost,
    optimal_offsets,
    shift_needed,
)

positions = st.lists(st.floats(-20, 20, allow_nan=False), min_size=1, max_size=30)


def greedy(values: list[float], targets: list[float]) -> list[int]:
    """The definition: each target in turn takes the nearest that is left, the lower of equals."""
    ranked = sorted(values)
    left = list(range(len(ranked)))
    chosen = []
    for target in targets:
        # Of results at one position, those below the target are taken from the top and those above from the bottom.
        place = min(
            left, key=lambda place: (abs(ranked[place] - target), ranked[place] >= target, _edge(ranked, place, target))
        )
        left.remove(place)
        chosen.append(place)
    return chosen


def _edge(ranked: list[float], place: int, target: float) -> int:
    return place if ranked[place] >= target else -place


@given(values=positions, targets=st.lists(st.floats(-25, 25, allow_nan=False), min_size=1, max_size=12))
def test_each_target_takes_the_nearest_that_is_left(values: list[float], targets: list[float]) -> None:
    targets = targets[: len(values)]
    found = Catalogue(values).nearest(np.array(targets))
    ranked = sorted(values)
    assert len(set(found)) == len(targets)
    assert [ranked[place] for place in found] == [ranked[place] for place in greedy(values, targets)]


def test_answers_are_nearest_to_the_offsets_around_the_signal() -> None:
    server = Server(np.arange(1_000_000) / 1000, 5, 1.0)
    for signal in (3.14159, 500.0, 999.2):
        answered = [result.position for result in server.answer(signal)]
        wanted = np.clip(signal + server.offsets, 0, 999.999)
        assert answered == sorted(answered)
        assert np.abs(np.array(answered) - np.sort(wanted)).max() <= 0.005


def test_near_the_end_of_a_catalogue_answers_fill_up_inwards() -> None:
    server = Server([1, 2, 3, 4, 5], 3, 1.0)
    assert [result.position for result in server.answer(1000)] == [3, 4, 5]
    assert [result.position for result in server.answer(-1000)] == [1, 2, 3]


def test_many_targets_at_one_position_take_the_whole_run_beside_it() -> None:
    """Walking the run again for every target would take minutes."""
    catalogue = Catalogue(np.arange(-50_000.0, 50_000.0))
    for position, first in ((1e9, 50_000), (-1e9, 0), (0.0, 25_000)):
        found = catalogue.nearest(np.full(50_000, position))
        assert sorted(found) == list(range(first, first + 50_000))


def test_catalogues_take_mappings_arrays_and_lists_in_any_order() -> None:
    places = {"north": 9.0, "south": 1.0, "middle": 5.0}
    assert Server(places, 2, 1.0).answer(0.5) == [Result("south", 1.0), Result("middle", 5.0)]
    assert Server([9.0, 1.0, 5.0], 1, 1.0).answer(8) == [Result(0, 9.0)]
    assert Server(Catalogue(np.array([9, 1]), ["a", "b"]), 1, 1.0).answer(2) == [Result("b", 1.0)]
    assert len(Catalogue.of(range(7))) == 7


def test_items_may_be_made_on_request() -> None:
    class Streets:
        asked = 0

        def __len__(self) -> int:
            return 1_000_000

        def __getitem__(self, number: int) -> str:
            self.asked += 1
            return f"street {number}"

    streets = Streets()
    server = Server(Catalogue(np.arange(1_000_000.0), streets), 3, 1.0)  # type: ignore[arg-type]
    assert [result.item for result in server.answer(10)] == ["street 9", "street 10", "street 11"]
    assert streets.asked == 3


def test_a_function_may_return_the_best_result_for_a_position() -> None:
    server = Server(lambda position: "left" if position < 0 else "right", 3, 1.0)
    assert [result.item for result in server.answer(0.1)] == ["left", "right", "right"]
    assert [result.position for result in server.answer(0.1)] == pytest.approx(
        [0.1 - math.log(4), 0.1, 0.1 + math.log(4)]
    )


def test_the_mean_cost_of_exchanges_is_the_expected_cost() -> None:
    """2000 exchanges; the standard deviation is below 0.7, so 0.1 is six standard errors: exceeded below 1e-8."""
    epsilon, k = 1.0, 4
    client, server = Client(epsilon, 1 / 256, seed=11), Server(np.arange(-200_000, 200_000) / 1000, k, epsilon)
    total = 0.0
    for _ in range(2000):
        chosen = client.choose(server.answer(client.signal(0.7)))
        total += abs(chosen.position - 0.7)
    assert abs(total / 2000 - expected_cost(k, epsilon)) < 0.1


def test_bad_signals_are_refused_without_being_shown() -> None:
    for signal in (math.nan, math.inf, -math.inf, "3.25", None, True, 10**400, 1e301):
        with pytest.raises(dps.InvalidInput) as caught:
            Server([1.0, 2.0], 1, 1.0).answer(signal)
        assert str(caught.value) == "signal must be a number between -1e300 and 1e300, got something else"


BAD_SETTINGS: list[Any] = [
    (([1.0, 2.0], 3, 1.0), "k must be at most 2 (the number of results), got 3"),
    (([1.0, 2.0], 0, 1.0), "k"),
    (([], 1, 1.0), "catalogue must hold positions of at least one result"),
    (([1.0, math.nan], 1, 1.0), "catalogue must have finite positions, got NaN or infinity at index 1"),
    ((["a"], 1, 1.0), "catalogue must hold positions"),
    ((None, 1, 1.0), "catalogue must hold positions"),
    (([[1.0, 2.0]], 1, 1.0), "catalogue must hold positions"),
    (([1.0], 1, -1.0), "epsilon"),
    (([1.0], 1, 1.0, lambda t: -t), "disutility"),
]


def test_bad_settings_name_the_argument() -> None:
    for arguments, message in BAD_SETTINGS:
        with pytest.raises(dps.InvalidInput) as caught:
            Server(*arguments)
        assert str(caught.value).startswith(message)


def test_there_must_be_as_many_items_as_positions() -> None:
    with pytest.raises(dps.InvalidInput, match="items must be as many as positions \\(2\\), got 1"):
        Catalogue([1.0, 2.0], ["only one"])


@pytest.mark.parametrize("disutility", ["linear", "square", "root", "capped:1"])
def test_fewer_results_than_positions_never_cost_more(disutility: str) -> None:
    """Theorem 25, exactly, for 40 users and sets of results for each k."""
    generator = np.random.default_rng(1)
    for k in (1, 2, 3):
        offsets, limit = optimal_offsets(k, 0.7, disutility), expected_cost(k, 0.7, disutility)
        for _ in range(40):
            results = generator.normal(0, 3, generator.integers(1, 12))
            assert catalogue_cost(generator.normal(0, 4), results, offsets, 0.7, disutility) <= limit * (1 + 1e-9)


def test_results_everywhere_cost_the_expected_cost() -> None:
    dense = np.arange(-30, 30, 0.02)
    assert catalogue_cost(0.003, dense, 3, 1.0) == pytest.approx(0.5, rel=0.03)
    shifted = optimal_offsets(3, 1.0) + 0.5
    assert catalogue_cost(0.003, dense, shifted, 1.0) > 1.05 * expected_cost(3, 1.0)
    assert catalogue_cost(100.0, [3.0], 2, 1.0) == 0.0, "a single result is always the best"


def test_the_cost_in_a_catalogue_is_the_mean_of_trials() -> None:
    """200,000 trials, within 5.2 standard errors: exceeded with a probability of 2e-7."""
    results, user, k = np.array([-2.0, -0.3, 0.4, 3.0, 5.0]), 0.9, 2
    signals = user + np.random.default_rng(1).laplace(size=200_000)
    nearest = np.abs(np.add.outer(signals, optimal_offsets(k, 1.0))[..., None] - results).argmin(axis=-1)
    costs = shift_needed(user, results)[nearest].min(axis=1)
    error = 5.2 * costs.std() / math.sqrt(len(costs))
    assert abs(costs.mean() - catalogue_cost(user, results, k, 1.0)) <= error
    assert abs(costs.mean() - catalogue_cost(user + 0.3, results, k, 1.0)) > error


def test_the_shift_bounds_half_of_the_lost_distance() -> None:
    """Example 4 of the paper: a result that a shift of t makes the best is at most 2t further away than the best."""
    generator = np.random.default_rng(4)
    for _ in range(200):
        results = np.sort(generator.normal(0, 3, 8))
        user = generator.normal(0, 4)
        distances = np.abs(results - user)
        assert np.all(distances - distances.min() <= 2 * shift_needed(user, results) + 1e-12)


def test_a_server_returns_the_result_nearest_to_each_answer() -> None:
    """Further results, which make all k different, can only lower the cost, so the theorem holds for the server."""
    generator = np.random.default_rng(5)
    for _ in range(200):
        results = np.sort(generator.normal(0, 3, 9))
        server, signal = Server(results.tolist(), 3, 1.0), float(generator.normal(0, 4))
        nearest = {float(results[np.abs(results - place).argmin()]) for place in signal + optimal_offsets(3, 1.0)}
        assert nearest <= {result.position for result in server.answer(signal)}


def test_results_without_a_finite_position_are_refused() -> None:
    for results in ([], [math.nan], ["a"]):
        with pytest.raises(dps.InvalidInput, match="results must be a list of at least one finite position"):
            catalogue_cost(0.0, results, 2, 1.0)
