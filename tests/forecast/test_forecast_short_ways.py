"""What makes forecasts fast changes no figure: fewer looks, fewer nodes, what is out of reach, parts, one thread."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_info

import dpselect as dps
from dpselect.forecast import (
    misplaced,
    mistake_looks,
    mistake_reach,
    mistake_smooth,
    noisy,
    noisy_expectations,
    normal_tails,
)
from dpselect.forecast.figures import ExactFigures, exact_figures
from dpselect.forecast.mistake_looks import enough, left_out
from dpselect.forecast.noise_values import deepest, farthest
from dpselect.forecast.one_thread import _libraries
from dpselect.sampling import NOISES
from dpselect.sampling.noise import NORMAL

LONG_TAIL = np.round(9000 / np.arange(1, 4001) ** 0.7)
GAUSSIAN = dps.Gaussian(k=40, epsilon=0.02, delta=1e-6, max_items_per_person=3)


@pytest.mark.parametrize("ratio", [0.9, 0.5, 0.1, 0.01])
def test_what_is_left_out_of_a_geometric_sequence(ratio: float) -> None:
    """The doubt is at least all further terms, and not much more than twice that unless they fall very fast."""
    terms = ratio ** np.arange(8.0, 12.0)[:, None]
    rest = ratio**12 / (1 - ratio)
    assert rest < left_out(terms)[0]
    assert left_out(terms)[0] < 3 * rest or ratio < 0.3


def test_terms_that_do_not_fall_leave_much_out() -> None:
    terms = np.array([[1.0, 1e-16, 0.0], [1.0, -2e-16, 0.0], [-1.0, 1e-16, 0.0], [1.0, 3e-16, 0.0]])
    doubt = left_out(terms)
    assert doubt[0] > 10
    assert doubt[1] < 1e-14
    assert doubt[2] == 0
    assert enough(doubt[1:], np.ones(2))
    assert not enough(doubt, np.ones(3))


def test_too_few_looks_are_noticed_under_normal_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """As test_forecast_rare.py has it for other noise."""
    found = exact_figures(dps.Scores.of(LONG_TAIL), GAUSSIAN)
    monkeypatch.setattr(mistake_smooth, "NORMAL", (2.0, 6.0, 0.0))
    monkeypatch.setattr(mistake_smooth, "_MIXED", 0.0)
    assert exact_figures(dps.Scores.of(LONG_TAIL), GAUSSIAN) == pytest.approx(found, rel=2e-9)
    monkeypatch.setattr(mistake_looks, "_DOUBT", np.inf)
    assert exact_figures(dps.Scores.of(LONG_TAIL), GAUSSIAN) != pytest.approx(found, rel=1e-6)


@pytest.mark.parametrize("noise", [*NOISES.values(), NORMAL], ids=lambda noise: noise.name)
def test_noise_is_next_to_never_out_of_its_reach(noise: Any) -> None:
    with np.errstate(over="ignore", under="ignore"):
        below = np.array([-deepest(noise)])
        assert max(noise.cdf(below)[0], noise.density(below)[0]) < np.exp(-49.9)
        for number in (1.0, 1e4, 1e9):
            assert number * noise.survival(np.array([farthest(noise, number)]))[0] < np.exp(-49)


@pytest.mark.parametrize(
    "mechanism", [GAUSSIAN, dps.Peeling(k=40, epsilon=0.8, noise="gumbel")], ids=["gaussian", "gumbel"]
)
def test_to_look_farther_changes_nothing(mechanism: dps.Mechanism, monkeypatch: pytest.MonkeyPatch) -> None:
    found = exact_figures(dps.Scores.of(LONG_TAIL), mechanism)
    for module in (mistake_reach, misplaced):
        monkeypatch.setattr(module, "deepest", lambda noise: 3 * deepest(noise))
    monkeypatch.setattr(misplaced, "farthest", lambda noise: 3 * farthest(noise))
    monkeypatch.setattr(noisy_expectations, "_FAINT", 1e-30)
    assert exact_figures(dps.Scores.of(LONG_TAIL), mechanism) == pytest.approx(found, rel=1e-9)


def test_to_look_less_far_would_show(monkeypatch: pytest.MonkeyPatch) -> None:
    mechanism = replace(GAUSSIAN, epsilon=0.1)
    found = exact_figures(dps.Scores.of(LONG_TAIL), mechanism)
    monkeypatch.setattr(misplaced, "deepest", lambda _: 0.0)
    assert exact_figures(dps.Scores.of(LONG_TAIL), mechanism) != pytest.approx(found, rel=1e-9)
    monkeypatch.undo()
    monkeypatch.setattr(noisy_expectations, "_FAINT", 1e-3)
    assert exact_figures(dps.Scores.of(LONG_TAIL), mechanism) != pytest.approx(found, rel=1e-9)


@pytest.mark.parametrize("epsilon", [0.004, 0.01, 0.02])
def test_nodes_may_be_farther_apart_where_hardly_any_item_is(epsilon: float, monkeypatch: pytest.MonkeyPatch) -> None:
    mechanism = replace(GAUSSIAN, epsilon=epsilon)
    found = exact_figures(dps.Scores.of(LONG_TAIL), mechanism)
    monkeypatch.setattr(mistake_reach, "_HARDLY_ANY", 0.0)
    assert exact_figures(dps.Scores.of(LONG_TAIL), mechanism) == pytest.approx(found, rel=1e-9)
    monkeypatch.setattr(mistake_reach, "_HARDLY_ANY", 0.05)
    monkeypatch.setattr(mistake_reach, "_PANEL", 12.0)
    assert exact_figures(dps.Scores.of(LONG_TAIL), mechanism) != pytest.approx(found, rel=1e-9)


def test_segments_may_be_taken_in_any_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    found = exact_figures(dps.Scores.of(LONG_TAIL), GAUSSIAN)
    for most in (1, 500, 1_000_000):
        monkeypatch.setattr(normal_tails, "_CACHED", most)
        assert exact_figures(dps.Scores.of(LONG_TAIL), GAUSSIAN) == pytest.approx(found, rel=1e-12)


@pytest.mark.parametrize("noise", ["exponential", "gumbel", "normal"])
def test_values_may_be_taken_in_any_parts(noise: str, monkeypatch: pytest.MonkeyPatch) -> None:
    mechanism = GAUSSIAN if noise == "normal" else dps.OneShot(k=40, epsilon=2.0, noise=noise)
    found = exact_figures(dps.Scores.of(LONG_TAIL), mechanism)
    for elements in (1, 20_000):
        monkeypatch.setattr(noisy, "_ELEMENTS", elements)
        assert exact_figures(dps.Scores.of(LONG_TAIL), mechanism) == pytest.approx(found, rel=1e-12)


def _threads() -> set[int]:
    return {each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"}


THREADS = """
import threading
import numpy as np
import dpselect as dps
from concurrent.futures import ThreadPoolExecutor
from threadpoolctl import ThreadpoolController
from dpselect.forecast.figures import exact_figures
from dpselect.forecast.one_thread import one_thread

libraries = ThreadpoolController()


def threads():
    return {each["num_threads"] for each in libraries.info() if each["user_api"] == "blas"} - {None}


before = threads()
with one_thread():
    with one_thread():
        assert threads() <= {1}
    assert threads() <= {1}
assert threads() == before
try:
    with one_thread():
        print(1 / 0)
except ZeroDivisionError:
    assert threads() == before

entered, leave = threading.Event(), threading.Event()


def stay():
    with one_thread():
        entered.set()
        leave.wait(30)


other = threading.Thread(target=stay)
with one_thread():
    other.start()
    assert entered.wait(30)
    assert threads() <= {1}
leave.set()
other.join(30)
assert threads() == before

table = dps.Scores.of(np.round(900 / np.arange(1, 301) ** 0.7))
with ThreadPoolExecutor(4) as pool:
    found = list(pool.map(lambda k: exact_figures(table, dps.OneShot(k=k, epsilon=1.0)), range(1, 25)))
assert len(found) == 24
assert threads() == before
print("as before:", before)
"""


def test_whoever_is_inside_threads_are_as_many_as_before_afterwards() -> None:
    """In a process of its own, in which nothing else limits threads."""
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "2"}
    run = subprocess.run([sys.executable, "-c", THREADS], env=environment, capture_output=True, text=True, timeout=120)
    assert (run.returncode, run.stderr) == (0, "")
    assert "as before" in run.stdout


def test_forecasts_use_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    inner = ExactFigures._noisy.func
    monkeypatch.setattr(ExactFigures, "_noisy", property(lambda figures: seen.append(_threads()) or inner(figures)))
    _libraries.cache_clear()
    figures = ExactFigures(dps.Scores.of([9, 5, 3, 1]), dps.OneShot(k=2, epsilon=1.0))
    assert figures.chances
    assert figures.expectations
    assert set().union(*seen) <= {1}
    assert seen
