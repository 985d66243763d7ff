"""A forecast as a whole: what it holds, shows and refuses."""

from __future__ import annotations

import json
from typing import Any

import pytest

import dpselect as dps
from dpselect.forecast import TITLES

COUNTS = [round(4000 / rank**0.6) for rank in range(1, 401)]


def test_a_set_has_exact_figures_but_the_largest_error() -> None:
    outlook = dps.forecast.forecast(COUNTS, dps.Canonical(k=20, epsilon=0.12), draws=50)
    figures = outlook.figures()
    assert list(figures) == list(TITLES)
    assert [name for name, figure in figures.items() if figure and not figure.exact] == ["largest_error"]
    assert outlook.size == 400


@pytest.mark.parametrize(
    ("mechanism", "simulated"),
    [
        (dps.OneShot(k=5, epsilon=1.0), {"largest_error", "relative_error"}),
        (dps.OneShot(k=5, epsilon=1.0, ordered=True), {"largest_error", "relative_error", "total_error"}),
        (dps.Joint(k=5, epsilon=1.0), {"largest_error", "relative_error", "total_error"}),
        (dps.Peeling(k=5, epsilon=1.0, noise="gumbel"), {"largest_error", "relative_error", "total_error"}),
        (dps.Peeling(k=5, epsilon=1.0), set(TITLES) - {"exact"}),
    ],
    ids=["oneshot", "in-order", "joint", "gumbel-peeling", "peeling"],
)
def test_the_manual_says_what_is_simulated(mechanism: dps.Mechanism, simulated: set[str]) -> None:
    figures = dps.forecast.forecast(COUNTS, mechanism, draws=20).figures()
    assert {name for name, figure in figures.items() if figure and not figure.exact} == simulated
    without = dps.forecast.forecast(COUNTS, mechanism, draws=0).figures()
    assert {name for name, figure in without.items() if figure is None} == simulated


def test_a_forecast_is_plain_data() -> None:
    outlook = dps.forecast.forecast(COUNTS, dps.Canonical(k=20, epsilon=0.12), draws=50)
    data = json.loads(json.dumps(outlook.to_dict()))
    assert data["private"] is False
    assert data["exact"]["exact"] is True
    assert set(data) == {"mechanism", "size", "draws", "private", *TITLES}
    assert "not private" in outlook._repr_html_()
    assert "P[exact top k] = " in repr(outlook)


def test_a_page_says_why_a_figure_is_missing() -> None:
    assert "no exact form" in dps.forecast.forecast(COUNTS, dps.Canonical(k=20, epsilon=0.12), draws=0)._repr_html_()
    short = dps.forecast.forecast([120, 100, 80, 20, 10, 5], dps.TopStable(k=3, epsilon=1.0, delta=1e-6), draws=20)
    assert "not always defined" in short._repr_html_()


def test_a_probability_is_shown_as_1_only_if_it_is() -> None:
    assert str(dps.forecast.Figure.known(1 - 1e-9)) == ">0.999"
    assert str(dps.forecast.Figure.known(1.0)) == "1"
    assert str(dps.forecast.Figure.known(123456.7)) == "123,457"


@pytest.mark.parametrize(
    ("arguments", "argument"),
    [
        ({"scores": []}, "scores"),
        ({"mechanism": "canonical"}, "mechanism"),
        ({"mechanism": dps.Canonical(k=9, epsilon=1.0)}, "k"),
        ({"draws": 1}, "draws"),
        ({"draws": -3}, "draws"),
        ({"draws": 2.5}, "draws"),
        ({"seed": -1}, "seed"),
        ({"tolerance": 0.0}, "tolerance"),
        ({"tolerance": "fine"}, "tolerance"),
    ],
    ids=lambda value: value if isinstance(value, str) else "-".join(value),
)
def test_bad_input_is_refused(arguments: dict[str, Any], argument: str) -> None:
    given = {"scores": [3, 2, 1], "mechanism": dps.Canonical(k=1, epsilon=1.0), **arguments}
    with pytest.raises(dps.InvalidInput) as refused:
        dps.forecast.forecast(**given)
    assert refused.value.argument == argument
