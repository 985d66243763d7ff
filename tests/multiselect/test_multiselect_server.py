"""Servers answer with the k results that their offsets ask for, all different, from any catalogue."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpselect as dps
from dpselect.multiselect.catalogue import Catalogue, Result
from dpselect.multiselect.client import Client
from dpselect.multiselect.costs import expected_cost
from dpselect.multiselect.server import Server

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


@pytest.mark.parametrize("signal", [1e9, -1e9, 0.0])
def test_many_answers_at_one_place_take_the_whole_run_beside_it(signal: float) -> None:
    """Walking the run anew for every target would take minutes."""
    catalogue = Catalogue(np.arange(-100_000.0, 100_000.0))
    found = catalogue.nearest(np.full(100_000, signal))
    first = {1e9: 100_000, -1e9: 0, 0.0: 50_000}[signal]
    assert sorted(found) == list(range(first, first + 100_000))


def test_catalogues_take_mappings_arrays_and_lists_in_any_order() -> None:
    places = {"north": 9.0, "south": 1.0, "middle": 5.0}
    assert Server(places, 2, 1.0).answer(0.5) == [Result("south", 1.0), Result("middle", 5.0)]
    assert Server([9.0, 1.0, 5.0], 1, 1.0).answer(8) == [Result(0, 9.0)]
    assert Server(Catalogue(np.array([9, 1]), ["a", "b"]), 1, 1.0).answer(2) == [Result("b", 1.0)]
    assert len(Catalogue.of(range(7))) == 7


def test_items_may_be_made_when_they_are_asked_for() -> None:
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


def test_a_callable_says_what_is_best_for_a_position() -> None:
    server = Server(lambda position: "left" if position < 0 else "right", 3, 1.0)
    assert [result.item for result in server.answer(0.1)] == ["left", "right", "right"]
    assert [result.position for result in server.answer(0.1)] == pytest.approx(
        [0.1 - math.log(4), 0.1, 0.1 + math.log(4)]
    )


def test_the_whole_path_costs_what_the_theory_says() -> None:
    """4000 exchanges; the cost's deviation is below 1, so six standard errors are below 0.1: a chance below 1e-8."""
    epsilon, k = 1.0, 4
    client, server = Client(epsilon, 1 / 256, seed=11), Server(np.arange(-200_000, 200_000) / 1000, k, epsilon)
    total = 0.0
    for _ in range(4000):
        chosen = client.choose(server.answer(client.signal(0.7)))
        total += abs(chosen.position - 0.7)
    assert abs(total / 4000 - expected_cost(k, epsilon)) < 0.1


@pytest.mark.parametrize("signal", [math.nan, math.inf, -math.inf, "3.25", None, True, 10**400, 1e301], ids=str)
def test_bad_signals_are_refused_without_being_shown(signal: object) -> None:
    with pytest.raises(dps.InvalidInput) as caught:
        Server([1.0, 2.0], 1, 1.0).answer(signal)
    assert caught.value.argument == "signal"
    assert "3.25" not in str(caught.value)


@pytest.mark.parametrize(
    ("arguments", "argument"),
    [
        (([1.0, 2.0], 3, 1.0), "k"),
        (([1.0, 2.0], 0, 1.0), "k"),
        (([], 1, 1.0), "catalogue"),
        (([1.0, math.nan], 1, 1.0), "catalogue"),
        ((["a"], 1, 1.0), "catalogue"),
        ((None, 1, 1.0), "catalogue"),
        (([[1.0, 2.0]], 1, 1.0), "catalogue"),
        (([1.0], 1, -1.0), "epsilon"),
        (([1.0], 1, 1.0, lambda t: -t), "disutility"),
    ],
)
def test_bad_settings_name_the_argument(arguments: tuple[Any, ...], argument: str) -> None:
    with pytest.raises(dps.InvalidInput) as caught:
        Server(*arguments)
    assert caught.value.argument == argument


def test_every_result_has_one_item() -> None:
    with pytest.raises(dps.InvalidInput, match="items"):
        Catalogue([1.0, 2.0], ["only one"])
