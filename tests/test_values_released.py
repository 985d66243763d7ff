"""Noisy scores through select, top and the command: their cost is part of the release."""

from __future__ import annotations

import json
from fractions import Fraction

import pandas as pd
import pytest
from typer.testing import CliRunner

import dpselect as dps
from dpselect.cli import app
from dpselect.request import ReleaseRequest
from dpselect.values import ValueNoise

VOTES = {"tea": 4120, "coffee": 3980, "water": 190, "juice": 87}


def test_values_come_with_their_items_and_cost_their_share() -> None:
    release = dps.select(VOTES, k=2, epsilon=1.0, values=0.25, seed=3)
    assert (release.guarantee.epsilon, release.guarantee.delta) == (1.0, 0.0)
    assert release.guarantee.rho == (0.75**2 + 0.25**2) / 2
    assert str(release.guarantee) == str(dps.Guarantee(epsilon=1.0))
    assert release.mechanism.epsilon == 0.75
    assert release.values is not None
    assert release.intervals is not None
    for item, value, (low, high) in zip(release.items, release.values, release.intervals, strict=True):
        assert isinstance(value, int)
        assert abs(value - VOTES[item]) < 200
        assert low <= value <= high
    json.dumps(release.to_dict())


def test_the_cost_never_exceeds_what_was_asked_for() -> None:
    for epsilon in (0.1, 1.0, 0.7):
        for share in (0.1, 1 / 3, 0.9):
            release = dps.select(VOTES, k=2, epsilon=epsilon, values=share, seed=1)
            assert Fraction(release.guarantee.epsilon) <= Fraction(epsilon)
            assert release.guarantee.epsilon == pytest.approx(epsilon, rel=1e-12)


def test_delta_is_shared_out_too() -> None:
    release = dps.select(VOTES, k=2, epsilon=0.1, delta=1e-6, values=0.5, seed=1)
    assert release.guarantee.delta <= 1e-6


@pytest.mark.parametrize("mechanism", ["auto", "peeling"])
def test_choice_and_values_share_the_delta_that_was_allowed(mechanism: str) -> None:
    """Both use it here: a hundred items, and little epsilon."""
    plan = ReleaseRequest(
        mechanism=mechanism,
        k=100,
        epsilon=0.05,
        delta=1e-6,
        sensitivity=dps.COUNTS,
        ordered=False,
        values=0.3,
        max_items_per_person=50,
    ).plan()
    assert isinstance(plan.noise, ValueNoise)
    assert plan.noise.guarantee.delta > 0
    assert Fraction(plan.mechanism.guarantee.delta) + Fraction(plan.noise.guarantee.delta) <= Fraction(1e-6)
    assert plan.guarantee.delta <= 1e-6


def test_values_with_a_delta_state_the_rho_of_both_parts_so_that_zcdp_can_charge_them() -> None:
    plan = ReleaseRequest(mechanism="auto", k=100, epsilon=0.05, delta=1e-9, sensitivity=dps.COUNTS, values=0.3).plan()
    assert isinstance(plan.noise, ValueNoise)
    choice, values = plan.mechanism.guarantee, plan.noise.guarantee
    assert values.rho is not None
    assert choice.known_rho is not None
    assert plan.guarantee.rho is not None
    assert Fraction(plan.guarantee.rho) >= choice.known_rho + Fraction(values.rho)
    assert plan.guarantee.rho == pytest.approx(float(choice.known_rho) + values.rho, rel=1e-12)
    assert Fraction(plan.guarantee.epsilon) >= Fraction(choice.epsilon) + Fraction(values.epsilon)
    assert plan.guarantee.delta == choice.delta + values.delta


def test_a_bad_share_or_delta_is_refused() -> None:
    for share in (0, 1, -0.1, 2, "half", float("nan")):
        with pytest.raises(dps.InvalidInput, match="values"):
            dps.select(VOTES, k=2, epsilon=1.0, values=share)
    for delta in ("x", 1, -0.1, float("nan")):
        with pytest.raises(dps.InvalidInput, match="delta"):
            dps.select(VOTES, k=2, epsilon=1.0, delta=delta, values=0.5)


def test_a_mechanism_object_has_no_part_to_give_away() -> None:
    with pytest.raises(dps.InvalidInput, match="values"):
        dps.select(VOTES, epsilon=1.0, mechanism=dps.Canonical(k=2, epsilon=1.0), values=0.5)


@pytest.mark.slow
def test_top_and_the_command_show_values(tmp_path: object) -> None:
    rows = pd.DataFrame({"film": ["Up"] * 900 + ["Heat"] * 500, "viewer": [*range(900), *range(500)]})
    release = dps.top(rows, item="film", person="viewer", k=1, epsilon=1.0, domain=["Up", "Heat"], values=0.5, seed=1)
    assert release.items == ["Up"]
    assert release.values is not None
    assert abs(release.values[0] - 900) < 100
    path = f"{tmp_path}/rows.csv"
    rows.to_csv(path, index=False)
    options = ["--item", "film", "--person", "viewer", "-k", "1", "--epsilon", "1", "--domain", "2", "--seed", "1"]
    result = CliRunner().invoke(app, ["top", path, *options, "--values", "0.5", "--format", "csv"])
    assert result.exit_code == 0
    assert result.stdout.splitlines()[0] == "item,value,low,high"
    table = CliRunner().invoke(app, ["top", path, *options, "--values", "0.5"])
    assert "probability 0.95" in table.stdout
