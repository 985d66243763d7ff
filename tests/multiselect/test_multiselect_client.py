"""Clients charge each signal, repeat signals only where allowed, and choose without sending anything."""

from __future__ import annotations

import copy
import json
import math
import os
import pickle
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from typing import Any

import pytest

import dpselect as dps
from dpselect.multiselect import Client, FeatureClient, Result
from dpselect.multiselect.account import SignalBudget


def test_a_signal_is_a_multiple_of_the_step() -> None:
    for step in (0.25, 0.1, 3.0):
        client = Client(1.0, step, seed=1)
        signals = [client.signal(7.3) for _ in range(20)]
        assert all(signal == round(signal / step) * step for signal in signals)
        assert len(set(signals)) > 1


def test_a_seed_repeats_the_signals_and_protects_nobody() -> None:
    first, second = Client(1.0, 0.125, seed=3), Client(1.0, 0.125, seed=3)
    assert [first.signal(1) for _ in range(5)] == [second.signal(1) for _ in range(5)]
    assert not first.secure
    assert Client(1.0).secure


def test_signals_add_up_exactly_until_the_budget_is_spent() -> None:
    client = Client(0.1, 0.25, budget=0.3)
    assert (client.spent, client.remaining) == (0.0, 0.3)
    for _ in range(2):
        client.signal(5)
    assert client.signals == 2
    # 0.1 as a float exceeds a third of 0.3, and sums are exact.
    with pytest.raises(dps.BudgetExceeded) as caught:
        client.signal(9)
    assert caught.value.requested == 0.1
    assert client.remaining is not None
    assert 0.0999 < caught.value.remaining <= 0.1
    assert client.signals == 2


def pattern(client: Client, journey: tuple[float, ...]) -> list[str]:
    """Return what can be observed besides the signals: which requests are answered."""
    shown = []
    for value in journey:
        try:
            client.signal(value)
            shown.append("sent")
        except dps.BudgetExceeded:
            shown.append("refused")
    return shown


def test_refusals_depend_on_the_number_of_requests_only() -> None:
    for journey in ((1.0, 1.0, 1.0), (1.0, 1.0, 1.5), (1.0, 3.0, 1.0), (0.0, 1e300, -5e300)):
        assert pattern(Client(1.0, 0.5, budget=2.0), journey) == ["sent", "sent", "refused"]


def test_reuse_states_its_premise_in_the_guarantee() -> None:
    premise = Client(1.0, 0.5, budget=2.0, reuse=True).guarantee
    assert "provided that the user stays at one place" in str(premise)
    assert "stays at one place" in premise.to_dict()["premise"]
    for without in (Client(1.0, 0.5, budget=2.0), Client(1.0, 0.5, reuse=True)):
        assert without.guarantee.to_dict()["premise"] == ""
        assert "provided" not in str(without.guarantee)
        assert without.guarantee.loss(1) == premise.loss(1)


def test_with_reuse_the_last_signal_is_repeated_for_the_same_grid_point_only() -> None:
    client = Client(1.0, 0.5, budget=3.0, reuse=True)
    client.signal(1.0)
    last, other = client.signal(1.2), client.signal(4)
    assert {client.signal(value) for value in (0.76, 1.0, 1.2, 1.24)} == {last}
    assert client.signal(4.1) == other
    assert client.spent == 3.0
    for value in (1.25, 0.7, 5):
        with pytest.raises(dps.BudgetExceeded):
            client.signal(value)


class SlowAccount(SignalBudget):
    """Waits after reading what is spent, so that threads without a lock all read the same value."""

    @property
    def _spent(self) -> Fraction:
        spent = self.kept
        time.sleep(0.01)
        return spent

    @_spent.setter
    def _spent(self, spent: Fraction) -> None:
        self.kept = spent


EITHER_CLIENT = pytest.mark.parametrize(
    ("make", "value"),
    [(lambda: Client(1.0, 0.5, budget=3.0), 1), (lambda: FeatureClient(1.0, 1, 0.5, 3.0), [1])],
    ids=["line", "features"],
)


@EITHER_CLIENT
def test_threads_do_not_overspend_together(make: Any, value: object) -> None:
    client = make()
    client._account = SlowAccount(3.0)
    start = threading.Barrier(8)

    def ask() -> bool:
        start.wait()
        try:
            client.signal(value)
        except dps.BudgetExceeded:
            return False
        return True

    with ThreadPoolExecutor(8) as threads:
        answered = sum(task.result() for task in [threads.submit(ask) for _ in range(8)])
    assert answered == client.spent == 3


@EITHER_CLIENT
def test_a_client_cannot_be_pickled_and_its_account_not_copied(make: Any, value: object) -> None:
    client = make()
    client.signal(value)
    for copied in (copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="spend the whole budget again"):
            copied(client)
    copy.copy(client).signal(value)
    assert client.spent == 2


def test_another_process_cannot_spend_the_budget_again(monkeypatch: pytest.MonkeyPatch) -> None:
    client = Client(1.0, 0.5, budget=1.0)
    here = os.getpid()
    monkeypatch.setattr(os, "getpid", lambda: here + 1)
    with pytest.raises(dps.DpSelectError, match="another process"):
        client.signal(1)
    assert client.spent == 0


def test_signals_beyond_the_range_of_floats_are_clamped() -> None:
    client = Client(5e-324, 2.0**900, seed=1)
    assert {abs(client.signal(0)) for _ in range(5)} == {sys.float_info.max}


def test_the_nearest_result_is_chosen_from_objects_and_from_json() -> None:
    client = Client(0.01, 0.5)
    client.signal(10.2)
    results = [Result("a", 7.0), Result("b", 10.0), Result("c", 10.5), Result("d", 90.0)]
    assert client.choose(results) == Result("b", 10.0)
    reply = json.loads(json.dumps({"results": [result.to_dict() for result in results]}))
    assert client.choose(reply) == {"item": "b", "position": 10.0}
    client.signal(88)
    assert client.choose(results).item == "d"
    assert client.choose([Result("left", 87.0), Result("right", 89.0)]).item == "left"


def test_a_refused_position_is_not_used_for_choosing() -> None:
    client = Client(1.0, 0.5, budget=1.0)
    client.signal(0)
    with pytest.raises(dps.BudgetExceeded):
        client.signal(50)
    assert client.choose([Result("here", 1.0), Result("there", 50.0)]).item == "here"


def test_neither_text_nor_errors_show_the_position() -> None:
    client = Client(1.0, 0.5, budget=1.0)
    client.signal(123.456)
    assert "123" not in repr(client)
    with pytest.raises(dps.BudgetExceeded) as caught:
        client.signal(654.321)
    assert "654" not in str(caught.value)


def test_choosing_needs_a_signal_and_results_with_positions() -> None:
    client = Client(1.0, 0.5)
    with pytest.raises(dps.InvalidInput, match="results must follow a signal, got an answer; call signal"):
        client.choose([Result("a", 1.0)])
    client.signal(1)
    for results in ([], {}, {"results": []}, "text", None):
        with pytest.raises(dps.InvalidInput, match="results must be the answer of a server"):
            client.choose(results)
    for results in ([{"item": 1}], [Result("a", math.nan)], [3.0]):
        with pytest.raises(dps.InvalidInput, match="results must each have a position"):
            client.choose(results)


def test_bad_settings_name_the_argument() -> None:
    for argument, value in (("budget", 0), ("budget", math.nan), ("seed", -1), ("epsilon", 0), ("grid", -1)):
        with pytest.raises(dps.InvalidInput) as caught:
            Client(**{"epsilon": 1.0, "grid": 0.5, argument: value})  # type: ignore[arg-type]
        assert caught.value.argument == argument
