"""Simulated costs agree with expected costs; commands show both."""

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
from dpselect.multiselect import (
    Catalogue,
    Server,
    Simulation,
    best_answers,
    expected_cost,
    optimal_offsets,
    simulate,
    simulate_catalogue,
    simulate_up_to,
)
from dpselect.multiselect.simulation import _nearest_by_row

FAR = 5.2 / 1.959963984540054
"""95% intervals stretched by this miss the mean with a probability of about 2e-7."""


@pytest.mark.parametrize("disutility", ["linear", "square", "root", "capped:2"])
def test_simulated_costs_are_the_expected_costs(disutility: str) -> None:
    """A cost that is wrong by 5% lies outside; a correct one does so with a probability of 2e-7 for each k."""
    for k in (1, 2, 5):
        found = simulate(k, 0.5, disutility, trials=400_000, seed=3)
        assert found.theory == expected_cost(k, 0.5, disutility)
        assert _holds(found, found.theory)
        assert not _holds(found, 1.05 * found.theory)


def test_a_fine_grid_costs_the_expected_cost_and_a_coarse_one_more() -> None:
    assert _holds(simulate(3, 1.0, grid=0.01, trials=400_000, seed=5), 0.5)
    assert not _holds(simulate(3, 1.0, grid=2.0, trials=400_000, seed=5), 0.5)
    assert _holds(simulate(3, 1.0, grid=1e-30, trials=100_000, seed=5), 0.5)
    with pytest.raises(dps.InvalidInput, match=r"grid must be from 1e-100 to 1e\+100, got 1e-200"):
        simulate(3, 1.0, grid=1e-200)


def test_very_large_and_small_costs_have_an_interval() -> None:
    for epsilon in (1e-140, 1e140):
        found = simulate(2, epsilon, "square", trials=1000, seed=1)
        assert 0 < found.low < found.cost < found.high < math.inf
        assert _holds(found, found.theory)


def test_on_a_dense_catalogue_the_mean_distance_is_the_expected_cost() -> None:
    server = Server(np.arange(-3000, 3000) / 100, 4, 1.0)
    average, margin = simulate_catalogue(server, (-5.0, 5.0), grid=0.01, users=40_000)
    assert abs(average - expected_cost(4, 1.0)) < FAR * margin
    assert abs(average - 1.1 * expected_cost(4, 1.0)) > FAR * margin


def test_with_few_results_the_mean_distance_is_that_to_the_nearest_of_all() -> None:
    """All five are in the answer, so the nearest is kept; with results everywhere it would be half as far."""
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
def test_simulated_users_get_the_answers_of_the_catalogue(positions: list[int], targets: list[int]) -> None:
    catalogue = Catalogue(positions)
    wanted = np.array(targets[: len(positions)]) / 2
    rows = np.stack([wanted, wanted + 0.25, -wanted])
    found = _nearest_by_row(catalogue.positions, rows)
    assert found.tolist() == [catalogue.nearest(row) for row in rows]


def test_the_same_seed_gives_the_same_simulation() -> None:
    assert simulate(2, 1.0, trials=1000, seed=1) == simulate(2, 1.0, trials=1000, seed=1)
    assert simulate(2, 1.0, trials=1000, seed=1) != simulate(2, 1.0, trials=1000, seed=2)


def test_many_answers_are_simulated_for_about_a_dozen_numbers() -> None:
    found = simulate_up_to(500, 1.0, trials=10, seed=0)
    assert [part.k for part in found.parts][:3] == [1, 2, 3]
    assert found.parts[-1].k == 500
    assert len(found.parts) <= 12


def test_one_trial_has_an_infinite_interval() -> None:
    found = simulate(1, 1.0, trials=1, seed=0)
    assert (found.low, found.high) == (0.0, math.inf)


def test_bad_settings_are_refused() -> None:
    bad = (("trials", 0), ("trials", 1.5), ("grid", 0), ("grid", -1.0), ("grid", math.nan), ("seed", -1))
    for argument, value in bad:
        with pytest.raises(dps.InvalidInput, match=argument):
            simulate(3, 1.0, **{argument: value})  # type: ignore[arg-type]


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
@pytest.mark.parametrize(("command", "ending"), [("offsets", "html"), ("simulate", "png"), ("simulate", "html")])
def test_plots_are_written(command: str, ending: str, tmp_path: Path) -> None:
    plot = tmp_path / f"picture.{ending}"
    more = ("--trials", "100", "--seed", "1") if command == "simulate" else ()
    _run(command, "-k", "3", "--epsilon", "1", *more, "--plot", str(plot))
    assert plot.stat().st_size > 2000


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ("offsets -k 0 --epsilon 1", "-k"),
        ("offsets -k three --epsilon 1", "-k"),
        ("offsets -k 3 --epsilon nan", "--epsilon"),
        ("offsets -k 3 --epsilon 1 --disutility cubic", "--disutility"),
        ("offsets -k 3 --epsilon 1 --plot picture.gif", "--plot"),
        ("simulate -k 3 --epsilon 1 --trials -5", "--trials"),
        ("simulate -k 3 --epsilon 1 --grid zero", "--grid"),
    ],
)
def test_bad_options_are_named_and_end_with_2(options: str, named: str) -> None:
    finished = CliRunner().invoke(app, ["multiselect", *options.split()])
    assert finished.exit_code == 2
    assert finished.stdout == ""
    assert finished.stderr.startswith(f"dpselect: {named}")
    assert "Traceback" not in finished.stderr


def _holds(found: Simulation, cost: float) -> bool:
    return abs(found.cost - cost) <= FAR * (found.high - found.cost)


def _run(*options: str) -> Any:
    finished = CliRunner().invoke(app, ["multiselect", *options])
    assert finished.exit_code == 0, finished.output
    return json.loads(finished.stdout) if "json" in options else finished.stdout
