"""Numbers at the edge of what Python, TOML or floats can hold are refused in the library's words, or simply work."""

from __future__ import annotations

import shlex
from fractions import Fraction
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from typer.testing import CliRunner

import dpselect as dps
from dpselect.cli import app
from dpselect.desk import read_config
from dpselect.privacy.calibration import range_per_round

VOTES = {"tea": 3, "milk": 2, "rye": 1}
ROWS = pd.DataFrame({"film": ["Heat", "Up", "Up"], "viewer": [1, 1, 2]})
HUGE = [10**400, 10**5000]


@pytest.mark.parametrize("mechanism", ["restricted", "limited", "discovered", "oneshot", "gaussian"])
@pytest.mark.parametrize("limit", [None, 1])
def test_an_epsilon_that_no_noise_serves_is_refused(mechanism: str, limit: int | None) -> None:
    with pytest.raises(dps.InvalidInput):
        dps.select(VOTES, k=2, epsilon=5e-324, delta=1e-6, mechanism=mechanism, max_items_per_person=limit)


@pytest.mark.parametrize("huge", HUGE, ids=["400 digits", "5000 digits"])
@pytest.mark.parametrize("argument", ["epsilon", "delta", "k", "max_items_per_person"])
def test_a_huge_integer_is_refused(argument: str, huge: int) -> None:
    asked: dict[str, Any] = {"item": "film", "person": "viewer", "k": 1, "epsilon": 1.0, "delta": 1e-6}
    asked |= {"max_items_per_person": 1, argument: huge}
    with pytest.raises(dps.InvalidInput):
        dps.top(ROWS, domain=5, **asked)


@pytest.mark.parametrize("spread", [2**62, 2**63, 2**70, 1e240])
@pytest.mark.parametrize("kind", [int, float])
def test_top_stable_compares_whole_scores_with_a_spread_beyond_int64(spread: float, kind: type) -> None:
    """Whether all scores are whole may depend on one person, so it must not decide whether there is an answer."""
    scores = {"tea": kind(2**40), "milk": kind(3)}
    asked = {"k": 1, "epsilon": 1.0, "delta": 1e-6, "mechanism": "top-stable", "pool": 3, "seed": 1}
    assert dps.select(scores, sensitivity=dps.Sensitivity(0, spread), **asked).items == []


@pytest.mark.parametrize("k", [1, 3, 100])
def test_the_largest_epsilon_is_calibrated_too(k: int) -> None:
    width = range_per_round(1.7e308, 0.5, k)
    assert width * k >= Fraction(1.7e308)


def test_a_release_without_a_reach_among_floats_can_be_shown() -> None:
    moves = dps.Sensitivity(-1e300, 1e300)
    release = dps.select(VOTES, 2, epsilon=1.7e308, mechanism="laplace", sensitivity=moves, max_items_per_person=10**30)
    assert release.reach is None
    assert release.to_dict()["reach"] is None
    assert str(release).startswith("Private top 2")


def test_a_limit_beyond_all_integers_of_the_engine_limits_nothing() -> None:
    top = dps.top(
        ROWS, item="film", person="viewer", k=1, epsilon=1e6, domain=["Heat", "Up"], max_items_per_person=10**30
    )
    assert top.items == ["Up"]


NUMBERS = {
    "5000 digits": ("1" + 5000 * "0", "an integer must be within 64 bits"),
    "400 digits": ("1" + 400 * "0", "an integer must be within 64 bits"),
    "hexadecimal": ("0x" + 5000 * "f", "an integer must be within 64 bits"),
    "in a list": ("[[-9223372036854775809]]", "an integer must be within 64 bits"),
    "deep": (100_000 * "[", "not valid TOML"),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_toml_with_such_a_number_is_refused(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    number, said = NUMBERS[name]
    desk = tmp_path / "desk.toml"
    desk.write_text(f'ledger = "x"\n[datasets.a]\nepsilon = {number}\n')
    with pytest.raises(dps.InvalidInput, match=said):
        read_config(desk)
    monkeypatch.chdir(tmp_path)
    Path("dpselect.toml").write_text(f"[top]\nepsilon = {number}\n")
    result = CliRunner().invoke(app, shlex.split("top rows.csv --item film --person viewer -k 1 --domain films.csv"))
    assert (result.exit_code, result.stdout) == (2, "")
    assert said in " ".join(result.stderr.split())


@pytest.mark.parametrize("limit", ["1" + 5000 * "0", "nan", "5e-324"])
def test_a_limit_that_is_no_number_is_refused_on_the_command_line(limit: str, tmp_path: Path) -> None:
    (tmp_path / "counts.csv").write_text("item,count\ntea,3\n")
    line = f"select {tmp_path}/counts.csv -k 1 --epsilon 1 --delta 1e-6 --domain unknown --max-items-per-person {limit}"
    result = CliRunner().invoke(app, shlex.split(line))
    assert (result.exit_code, result.stdout) == (2, "")
    assert "--max-items-per-person must be a whole number of at least 1" in " ".join(result.stderr.split())
