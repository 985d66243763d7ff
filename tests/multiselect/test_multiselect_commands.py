"""`dpselect multiselect` for fading privacy, quantiles and rings: results in every format, plots, and clear errors."""

from __future__ import annotations

import csv
import io
import json
import math
from pathlib import Path

import pytest
from typer.testing import CliRunner

import dpselect as dps
from dpselect.cli import app
from dpselect.multiselect import Geographic, best_answers, compare_rings, quantile_answers


def run(line: str) -> str:
    finished = CliRunner().invoke(app, ["multiselect", *line.split()])
    assert finished.exit_code == 0, finished.stderr
    return finished.stdout


def test_offsets_for_fading_privacy_have_the_rate_that_keeps_it() -> None:
    line = "offsets -k 3 --epsilon 0.5 --privacy exponential --threshold 10 --grid 0.25"
    rate = math.expm1(0.125) / 0.25
    data = json.loads(run(f"{line} --format json"))
    assert data["privacy"].pop("rate") == pytest.approx(rate)
    assert data["privacy"] == {
        "name": "exponential",
        "loss": "exp(0.5 t) - 1",
        "slope": 0.5,
        "threshold": 10.0,
        "grid": 0.25,
    }
    assert data["offsets"] == pytest.approx(list(best_answers(3, rate).offsets))
    text = " ".join(run(line).split())
    assert "loss at distance t is at most exp(0.5 t) - 1 up to t = 10, and is unbounded beyond" in text
    assert "Noise of rate 0.5326 on a grid of 0.25 keeps this" in text
    plain = json.loads(run("offsets -k 3 --epsilon 0.5 --format json"))
    assert "privacy" not in plain
    slope = json.loads(run("offsets -k 3 --epsilon 0.5 --privacy quadratic --format json"))
    assert slope["offsets"] == plain["offsets"], "without a grid the slope is the rate"
    assert "without a grid" in " ".join(run("offsets -k 3 --epsilon 0.5 --privacy quadratic").split())


def test_named_promises_are_kept_by_their_rate_and_not_by_more() -> None:
    for name, function in (
        ("linear", lambda t: t),
        ("quadratic", lambda t: t + t * t),
        ("exponential", math.expm1),
    ):
        wanted = Geographic.named(name, 0.5, threshold=8.0)
        assert wanted.loss(3.0) == pytest.approx(function(1.5))
        assert (wanted.rate(), wanted.loss(9.0)) == (0.5, math.inf)
        for grid in (0.25, 1.0):
            rate = wanted.rate(grid)
            distances = [grid * count for count in range(1, int(8 / grid) + 1)]
            assert all(rate * distance <= wanted.loss(distance) for distance in distances)
            assert 1.001 * rate * grid > wanted.loss(grid), "the nearest pair decides"
    with pytest.raises(dps.InvalidInput, match="privacy must be one of linear, quadratic, exponential, got 'cubic'"):
        Geographic.named("cubic", 0.5)


def test_the_largest_epsilon_that_keeps_a_promise() -> None:
    wanted = Geographic.named("exponential", 0.5)
    assert wanted.largest([2.0, 0.1, 0.5]) == 0.5
    assert wanted.largest([0.5, 0.8, 0.9], grid=2.0) == 0.8, "expm1(1)/2 is 0.859"
    for offered in ([], [0.6, 1.0]):
        with pytest.raises(dps.InvalidInput, match=r"epsilons must include one of at most 0\.5"):
            wanted.largest(offered)


def test_quantile_answers_are_shown_in_every_format(tmp_path: Path) -> None:
    found = quantile_answers(5, "logistic:2")
    assert found.rate == 0.5
    assert json.loads(run("quantiles -k 5 --noise logistic:2 --format json")) == found.to_dict()
    rows = list(csv.DictReader(io.StringIO(run("quantiles -k 5 --noise logistic:2 --format csv"))))
    assert [float(row["offset"]) for row in rows] == list(found.offsets)
    text = " ".join(run(f"quantiles -k 5 --noise logistic:2 --plot {tmp_path / 'plot.svg'}").split())
    assert f"Expected cost of the best of them: {found.cost:.4g} (linear). It is at most {found.bound:.4g}" in text
    assert "0.5 per unit of distance" in text
    assert "<svg" in (tmp_path / "plot.svg").read_text(encoding="utf-8")
    bell = " ".join(run("quantiles -k 3 --noise gaussian --disutility square").split())
    assert "its guarantee needs a delta" in bell
    assert "theorem 24" not in bell, "the theorem bounds the distance, not its square"
    assert "quantiles of gaussian" in quantile_answers(2, "gaussian")._repr_html_()


def test_both_noises_of_a_ring_are_shown_in_every_format(tmp_path: Path) -> None:
    found = compare_rings(2, epsilon=0.375, circumference=2 * math.pi, places=60)
    line = "ring -k 2 --epsilon 0.375 --places 60"
    assert json.loads(run(f"{line} --format json")) == found.to_dict()
    rows = list(csv.DictReader(io.StringIO(run(f"{line} --format csv"))))
    assert [(row["noise"], float(row["offset"])) for row in rows] == [
        (noise, offset) for noise in ("optimal", "laplace") for offset in found.offsets(noise)
    ]
    text = " ".join(run(f"{line} --plot {tmp_path / 'ring.html'}").split())
    assert "Laplace noise costs 4.8% more than the best noise (linear, 60 places)" in text
    assert f"{found.optimal.cost:.4g}" in text
    assert "<svg" in (tmp_path / "ring.html").read_text(encoding="utf-8")


ERRORS = [
    ("offsets -k 3 --epsilon 1 --privacy cubic", "--privacy must be one of linear, quadratic, exponential"),
    ("offsets -k 3 --epsilon 1 --grid 0.5", "--grid must be left out"),
    ("offsets -k 3 --epsilon 1 --privacy linear --threshold -1", "--threshold must be a positive number"),
    ("offsets -k 3 --epsilon 1 --privacy linear --threshold 1 --grid 2", "--grid must be at most 1 (the threshold)"),
    ("quantiles -k 3 --noise cauchy", "--noise must be one of laplace, gaussian"),
    ("quantiles -k 3 --noise gaussian:-1", "--noise must be one of laplace, gaussian"),
    ("ring -k 5 --epsilon 1", "-k must be at most 4 on a ring"),
    ("ring -k 2 --epsilon 1 --places 3", "--places must be from 5 (2k + 1) to 2000"),
    ("ring -k 2 --epsilon 1 --circumference 0", "--circumference must be a positive, finite number"),
    ("ring -k 2 --epsilon x", "--epsilon must be a positive, finite number, got 'x'"),
    ("ring -k 2 --epsilon 1 --plot plot.txt", "--plot"),
]


def test_errors_name_the_option() -> None:
    for line, message in ERRORS:
        finished = CliRunner().invoke(app, ["multiselect", *line.split()])
        assert finished.exit_code == 2, line
        assert message in finished.stderr, finished.stderr
        assert finished.stdout == ""
