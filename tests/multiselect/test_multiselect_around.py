"""Clients and servers on a ring: budgets, results with names, distances around the ring, and both noises compared."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

import dpselect as dps
from dpselect.multiselect import Ring, RingClient, RingServer, compare_rings, optimal_ring

DAY = Ring(epsilon=1.0, heights=(0, 1, 2, 3, 4, 3, 2, 1), answers=(0, 4), circumference=24.0)
"""Eight places, three hours apart."""
TRAINS = {"night": 1.0, "early": 5.0, "noon": 12.0, "late": 23.0}


def test_a_server_answers_with_the_nearest_results_around_the_ring() -> None:
    server = RingServer(TRAINS, DAY)
    assert [result.item for result in server.answer(0)] == ["night", "noon"]
    assert [result.item for result in server.answer(7)] == ["noon", "late"], "21 h and 9 h"
    # Places 0 and 4 of a ring with two answers 3 h apart have the same nearest result; it is given once.
    close = Ring(epsilon=1.0, heights=DAY.heights, answers=(4, 5), circumference=24.0)
    assert [result.item for result in RingServer({"noon": 13.0, "night": 1.0}, close).answer(0)] == ["night", "noon"]
    with pytest.raises(dps.InvalidInput, match="signal must be a whole number from 0 to 7"):
        server.answer(8)
    with pytest.raises(dps.InvalidInput, match="k must be at most 1"):
        RingServer([1.0], DAY)


def test_answers_are_the_nearest_by_brute_force() -> None:
    ring = optimal_ring(3, epsilon=0.5, circumference=10.0, places=40)
    positions = np.random.default_rng(0).uniform(0, 10, 30)
    server = RingServer(positions, ring)
    for signal in range(0, 40, 7):
        taken: list[int] = []
        for answer in ring.answer(signal):
            turns = [np.abs(positions - answer * ring.step + turn) for turn in (-10, 0, 10)]
            order = np.argsort(np.min(turns, axis=0))
            taken.append(next(int(place) for place in order if place not in taken))
        assert {result.item for result in server.answer(signal)} == set(taken)


def test_a_client_chooses_around_the_ring_and_stops_at_its_budget() -> None:
    client = RingClient(DAY, budget=2.0, seed=3)
    results = [{"item": name, "position": place} for name, place in TRAINS.items()]
    with pytest.raises(dps.InvalidInput, match="must follow a signal"):
        client.choose(results)
    for position, kept in ((23.9, "late"), (0.2, "night")):
        assert client.signal(position) in range(8)
        assert client.choose(results)["item"] == kept
    assert client.choose(results, quality=lambda hour, train: train["position"])["item"] == "late"
    assert (client.spent, client.remaining, client.secure) == (2.0, 0.0, False)
    with pytest.raises(dps.BudgetExceeded):
        client.signal(5.0)
    assert client.guarantee == DAY.guarantee
    assert "0.2" not in repr(client)


def test_signals_of_a_client_are_those_of_its_ring() -> None:
    """Both draw from the same bits, so that the law of the ring, which is verified, is that of the client."""
    client = RingClient(DAY, seed=11)
    assert client.signal(13.0) == DAY.signal(13.0, seed=11)


def test_bad_input_is_refused_without_being_shown() -> None:
    for wrong in (math.nan, math.inf, "61.8034", None):
        with pytest.raises(dps.InvalidInput) as error:
            RingClient(DAY).signal(wrong)
        assert "61.8" not in str(error.value)
    with pytest.raises(dps.InvalidInput, match="ring must be a Ring"):
        RingClient("ring")  # type: ignore[arg-type]


def test_both_noises_are_compared() -> None:
    found = compare_rings(2, epsilon=0.375, places=60)
    assert (round(found.optimal.cost, 2), round(found.laplace.cost, 2)) == (0.71, 0.74)
    assert found.offsets("optimal") == pytest.approx([-math.pi / 2, math.pi / 2])
    data = json.loads(json.dumps(found.to_dict()))
    assert [noise["noise"] for noise in data["noises"]] == ["optimal", "laplace"]
    assert data["noises"][0]["cost"] == found.optimal.cost
    assert "optimal" in found._repr_html_()
    axes = found.plot()
    assert [text.get_text() for text in axes.get_legend().get_texts()] == [
        f"{noise} noise: expected cost {ring.cost:.3g}" for noise, ring in found.rings.items()
    ]
