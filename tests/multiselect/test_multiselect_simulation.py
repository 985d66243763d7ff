"""Simulated costs, and the commands that show offsets and simulations."""

from __future__ import annotations

import csv
import io
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import dpselect as dps
from dpselect.cli import app
from dpselect.multiselect import best_answers, expected_cost, optimal_offsets, simulate
from dpselect.multiselect.catalogue import Catalogue
from dpselect.multiselect.server import Server
from dpselect.multiselect.simulation import Simulation, _nearest_of_each, simulate_catalogue, simulate_up_to

FAR = 5.2 / 1.959963984540054
"""Intervals of 95% stretched by this fail to hold the truth with a probability of about 2e-7."""


@pytest.mark.parametrize("disutility", ["linear", "square", "root", "capped:2"])
@pytest.mark.parametrize("k", [1, 2, 5])
def test_costs_met_are_costs_computed(disutility: str, k: int) -> None:
    """A cost computed wrongly by 5% lies outside; a right one fails with a probability of 2e-7 for each case."""
    found = simulate(k, 0.5, disutility, trials=400_000, seed=3)
    assert found.theory == expected_cost(k, 0.5, disutility)
    assert _holds(found, found.theory)
    assert not _holds(found, 1.05 * found.theory)


def test_a_fine_grid_costs_what_theory_says_and_a_coarse_one_more() -> None:
    assert _holds(simulate(3, 1.0, grid=0.01, trials=400_000, seed=5), 0.5)
    assert not _holds(simulate(3, 1.0, grid=2.0, trials=400_000, seed=5), 0.5)


def test_the_finest_grid_costs_what_theory_says() -> None:
    assert _holds(simulate(3, 1.0, grid=1e-30, trials=100_000, seed=5), 0.5)
    with pytest.raises(dps.InvalidInput, match="grid: 1e-200 was given; a step between 1e-100 and 1e\\+100"):
        simulate(3, 1.0, grid=1e-200)


@pytest.mark.parametrize("epsilon", [1e-140, 1e140])
def test_costs_of_any_size_have_an_interval(epsilon: float) -> None:
    found = simulate(2, epsilon, "square", trials=1000, seed=1)
    assert 0 < found.low < found.cost < found.high < math.inf
    assert _holds(found, found.theory)


def test_on_a_dense_catalogue_the_kept_result_is_as_near_as_theory_says() -> None:
    server = Server(np.arange(-3000, 3000) / 100, 4, 1.0)
    average, margin = simulate_catalogue(server, (-5.0, 5.0), grid=0.01, users=40_000)
    assert abs(average - expected_cost(4, 1.0)) < FAR * margin
    assert abs(average - 1.1 * expected_cost(4, 1.0)) > FAR * margin


def test_with_few_results_the_kept_one_is_as_far_as_the_results_are_apart() -> None:
    """All five are answered, so that the nearest is kept; theory, for results everywhere, promises half of that."""
    shops = [0.4, 3.1, 5.0, 7.9, 9.6]
    gaps = np.diff(shops)
    nearest = float((gaps**2 / 4).sum() / gaps.sum())
    average, _ = simulate_catalogue(Server(shops, 5, 1.0), (0.4, 9.6), grid=0.01)
    assert average == pytest.approx(nearest, rel=1e-3)
    assert expected_cost(5, 1.0) < 0.6 * nearest


def test_a_coarse_grid_leaves_the_kept_result_further_away() -> None:
    server = Server(np.arange(-300, 300) / 10, 3, 5.0)
    fine, coarse = (simulate_catalogue(server, (-5.0, 5.0), grid=grid)[0] for grid in (0.01, 4.0))
    assert coarse > 2 * fine


@given(
    positions=st.lists(st.integers(-6, 6), min_size=1, max_size=9),
    targets=st.lists(st.integers(-16, 16), min_size=1, max_size=9),
)
def test_simulated_users_are_answered_as_real_ones(positions: list[int], targets: list[int]) -> None:
    catalogue = Catalogue(positions)
    wanted = np.array(targets[: len(positions)]) / 2
    rows = np.stack([wanted, wanted + 0.25, -wanted])
    found = _nearest_of_each(catalogue.positions, rows)
    assert found.tolist() == [catalogue.nearest(row) for row in rows]


def test_the_same_seed_gives_the_same_simulation() -> None:
    assert simulate(2, 1.0, trials=1000, seed=1) == simulate(2, 1.0, trials=1000, seed=1)
    assert simulate(2, 1.0, trials=1000, seed=1) != simulate(2, 1.0, trials=1000, seed=2)


def test_many_answers_are_simulated_for_about_a_dozen_numbers() -> None:
    found = simulate_up_to(500, 1.0, trials=10, seed=0)
    assert [part.k for part in found.parts][:3] == [1, 2, 3]
    assert found.parts[-1].k == 500
    assert len(found.parts) <= 12


def test_one_trial_says_nothing_about_how_far_it_is_off() -> None:
    found = simulate(1, 1.0, trials=1, seed=0)
    assert (found.low, found.high) == (0.0, math.inf)


@pytest.mark.parametrize(
    "arguments", [{"trials": 0}, {"trials": 1.5}, {"grid": 0}, {"grid": -1.0}, {"seed": -1}, {"grid": math.nan}]
)
def test_bad_settings_are_refused(arguments: dict[str, Any]) -> None:
    with pytest.raises(dps.InvalidInput, match=next(iter(arguments))):
        simulate(3, 1.0, **arguments)


def test_answers_carry_offsets_and_costs() -> None:
    answers = best_answers(4, 0.5, "square")
    np.testing.assert_array_equal(answers.offsets, optimal_offsets(4, 0.5, "square"))
    assert answers.cost < answers.single == pytest.approx(8)
    assert json.loads(json.dumps(answers.to_dict()))["offsets"] == list(answers.offsets)


def test_the_offsets_command_says_where_answers_lie() -> None:
    said = _run("offsets", "-k", "3", "--epsilon", "1", "--format", "json")
    assert said["offsets"] == pytest.approx([-math.log(4), 0, math.log(4)])
    assert (said["cost"], said["single"]) == (0.5, 1.0)
    rows = list(csv.DictReader(io.StringIO(_run("offsets", "-k", "3", "--epsilon", "1", "--format", "csv"))))
    assert [float(row["offset"]) for row in rows] == pytest.approx(said["offsets"])
    assert "1.3863" in _run("offsets", "-k", "3", "--epsilon", "1")


def test_the_simulate_command_compares_with_theory() -> None:
    options = ("simulate", "-k", "3", "--epsilon", "1", "--trials", "1000", "--seed", "1")
    said = _run(*options, "--format", "json")["simulations"]
    assert [part["theory"] for part in said] == [1.0, pytest.approx(math.log(2)), 0.5]
    assert len(_run(*options, "--format", "csv").splitlines()) == 4
    assert "0.6931" in _run(*options)


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["png", "svg", "html"])
@pytest.mark.parametrize("command", ["offsets", "simulate"])
def test_pictures_are_written(command: str, ending: str, tmp_path: Path) -> None:
    plot = tmp_path / f"picture.{ending}"
    more = ("--trials", "100", "--seed", "1") if command == "simulate" else ()
    _run(command, "-k", "3", "--epsilon", "1", *more, "--plot", str(plot))
    assert plot.stat().st_size > 2000


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (("offsets", "-k", "0", "--epsilon", "1"), "-k"),
        (("offsets", "-k", "three", "--epsilon", "1"), "-k"),
        (("offsets", "-k", "3", "--epsilon", "nan"), "--epsilon"),
        (("offsets", "-k", "3", "--epsilon", "1", "--disutility", "cubic"), "--disutility"),
        (("offsets", "-k", "3", "--epsilon", "1", "--plot", "picture.gif"), "--plot"),
        (("simulate", "-k", "3", "--epsilon", "1", "--trials", "-5"), "--trials"),
        (("simulate", "-k", "3", "--epsilon", "1", "--grid", "zero"), "--grid"),
    ],
)
def test_bad_input_is_named_and_ends_with_2(options: tuple[str, ...], named: str) -> None:
    finished = CliRunner().invoke(app, ["multiselect", *options])
    assert finished.exit_code == 2
    assert finished.stdout == ""
    assert finished.stderr.startswith(f"dpselect: {named}: ")
    assert "Traceback" not in finished.stderr


def _holds(found: Simulation, cost: float) -> bool:
    return abs(found.cost - cost) <= FAR * (found.high - found.cost)


def _run(*options: str) -> Any:
    finished = CliRunner().invoke(app, ["multiselect", *options])
    assert finished.exit_code == 0, finished.output
    return json.loads(finished.stdout) if "json" in options else finished.stdout
