"""The multi-selection paper's figures: they show what the mathematics says, and verdicts tell right from wrong."""

from __future__ import annotations

import csv
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpselect.multiselect import expected_cost, noise_cost
from dpselect.reproduce import PAPERS, reproduce
from dpselect.reproduce.features import films_and_viewers, zador_bound
from dpselect.reproduce.multi_selection import ANSWERS, proof_curve
from dpselect.reproduce.study import Study

STUDIES = {study.name: study for study in PAPERS["multi-selection"].studies}


def rows_of(study: Study) -> list[dict[str, Any]]:
    return [row for point in study.points(True) for row in study.compute(point, None)]  # type: ignore[arg-type]


@pytest.mark.slow
def test_every_figure_is_computed_without_any_data_set(tmp_path: Path) -> None:
    outcomes = list(reproduce("multi-selection", data=tmp_path, out=tmp_path / "out", quick=True))
    assert [outcome.study.name for outcome in outcomes] == ["figure-2", "figure-3", "figure-4", "features"]
    assert [(outcome.verdict.held, outcome.verdict.settings) for outcome in outcomes] == [
        (15, 15),
        (2, 2),
        (1, 4),
        (6, 6),
    ]
    for outcome in outcomes:
        assert all(path.stat().st_size > 0 for path in outcome.files)
    with (tmp_path / "out" / "multi-selection" / "figure-4.csv").open(encoding="utf-8", newline="") as file:
        assert len(list(csv.DictReader(file))) == 4 * 120


def test_a_wrong_formula_would_be_noticed() -> None:
    study = STUDIES["figure-2"]
    rows = rows_of(study)
    assert study.judge(rows).holds
    assert not study.judge([{**row, "offset": row["offset"] * 1.01} for row in rows]).holds
    assert not study.judge([{**row, "cost": row["cost"] * 1.001} for row in rows]).holds


@pytest.mark.parametrize("level", [0.2, 0.46])
def test_the_curve_of_the_proof_is_its_integral_while_it_is_below_0(level: float) -> None:
    """Where ν < 0, `ν(r) = e^{εr} ∫_0^r (d − λ) (ζ/2) e^{−(ε+ζ)t} dt`; it ends above 0 for levels below the cost."""
    places = np.arange(0.0, 20.0, 0.01)
    values = proof_curve(level, places, 1.0, 0.1)
    fine = np.linspace(0.0, 2.0, 200_001)
    pushes = (np.abs(fine[:, None] - np.array(ANSWERS)).min(axis=1) - level) * 0.05 * np.exp(-1.1 * fine)
    integral = math.e**2 * float(np.trapezoid(pushes, fine))
    if (values[1:201] < 0).all():
        assert values[200] == pytest.approx(integral, abs=1e-6)
    assert (values[-1] > 0) == (level < expected_cost(ANSWERS, 1.1))


def test_the_ring_is_judged_by_its_costs() -> None:
    study = STUDIES["figure-4"]
    rows = rows_of(study)
    verdict = study.judge(rows)
    assert (verdict.held, verdict.settings) == (1, 4)
    assert "Laplace noise costs more at epsilon = 1" in verdict.text
    printed = {
        ("3/8", "best noise"): 0.72,
        ("3/8", "Laplace noise"): 0.75,
        ("1", "best noise"): 0.5,
        ("1", "Laplace noise"): 0.5,
    }
    as_printed = [{**row, "cost": printed[row["epsilon"], row["noise"]]} for row in rows]
    assert study.judge(as_printed).holds, "with the paper's numbers the paper's claim is true"
    for key in printed:
        own = [row for row in rows if (row["epsilon"], row["noise"]) == key]
        assert sum(row["density"] for row in own) * (own[1]["t"] - own[0]["t"]) == pytest.approx(1)
        assert sum(row["answer"] for row in own) == 2


@pytest.fixture(scope="module")
def feature_rows() -> list[dict[str, Any]]:
    return rows_of(STUDIES["features"])


@pytest.mark.slow
def test_the_error_of_feature_vectors_is_judged_with_its_standard_error(feature_rows: list[dict[str, Any]]) -> None:
    study = STUDIES["features"]
    assert study.judge(feature_rows).holds
    assert "ours" in study.title
    slower = [{**row, "error": row["error"] * row["k"] ** 0.5} for row in feature_rows]
    assert not study.judge(slower).holds, "an error that falls more slowly is noticed"
    unsure = [{**row, "standard_error": row["bound"]} for row in feature_rows]
    assert study.judge(unsure).held == 0, "too few draws prove nothing"
    at = {(row["dimensions"], row["k"]): row["error"] for row in feature_rows}
    assert at[1, 1] > 2 * at[1, 4] > 4 * at[1, 16]
    assert all(row["sigma"] == feature_rows[0]["sigma"] for row in feature_rows)


def test_zadors_bound_holds_for_the_best_points_of_a_normal_law() -> None:
    """On a line `k` times the cost tends to `√(π/2)`, half of the bound, whose points are drawn at random."""
    assert zador_bound(1, 1, 1.0) == pytest.approx(math.sqrt(2 * math.pi))
    for k in (1, 3, 9, 33):
        assert noise_cost(k, "gaussian") < zador_bound(k, 1, 1.0)
    assert zador_bound(8, 3, 2.0) == pytest.approx(zador_bound(1, 3, 1.0))


def test_generated_films_tell_tastes_apart() -> None:
    films, viewers = films_and_viewers()
    assert (films.shape, viewers.shape) == ((2000, 10), (150, 10))
    apart = np.linalg.norm(viewers - np.roll(viewers, 1, axis=0), axis=1)
    assert apart.mean() == pytest.approx(1)
    assert np.linalg.norm(viewers, axis=1).min() > 0
