"""Values that Laplace and Gaussian include: set, order and values are one release, for the price of the set."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import dpselect as dps
from dpselect.cli import app
from dpselect.mechanisms import NoisyVector
from dpselect.request import ReleaseRequest
from dpselect.sampling import SeededBits
from dpselect.values import IncludedValues, value_noise

VOTES = {"tea": 4120, "coffee": 3980, "water": 190, "juice": 87}
LAPLACE = dps.Laplace(k=2, epsilon=0.5, max_items_per_person=2)
GAUSSIAN = dps.Gaussian(k=2, epsilon=0.5, delta=1e-6, max_items_per_person=2)
BOTH_KINDS = pytest.mark.parametrize("mechanism", [LAPLACE, GAUSSIAN], ids=["laplace", "gaussian"])


@BOTH_KINDS
def test_values_cost_nothing_more_and_change_nothing_else(mechanism: NoisyVector) -> None:
    for seed in range(10):
        release = dps.select(VOTES, mechanism=mechanism, values=True, seed=seed)
        without = dps.select(VOTES, mechanism=mechanism, seed=seed)
        assert (release.items, release.guarantee) == (without.items, without.guarantee)
        assert release.guarantee == mechanism.guarantee
        assert release.values is not None
        assert release.intervals is not None
        assert release.values == sorted(release.values, reverse=True)
        for item, value, (low, high) in zip(release.items, release.values, release.intervals, strict=True):
            assert type(value) is type(low) is type(high) is int
            assert abs(value - VOTES[item]) < 400
            assert low < value < high
    json.dumps(release.to_dict())


@BOTH_KINDS
def test_a_share_is_refused_and_so_is_true_elsewhere(mechanism: NoisyVector) -> None:
    for chosen in (mechanism, mechanism.name):
        with pytest.raises(dps.InvalidInput, match="values must be True"):
            dps.select(VOTES, k=2, epsilon=0.5, delta=1e-6, mechanism=chosen, values=0.3)
    for other in (dps.Canonical(k=2, epsilon=0.5), "oneshot", "joint"):
        with pytest.raises(dps.InvalidInput, match=r"share of epsilon.*laplace and gaussian"):
            dps.select(VOTES, k=2, epsilon=0.5, mechanism=other, values=True)
    around = dps.Restricted(inner=mechanism, test_epsilon=1.0, test_delta=1e-3)
    with pytest.raises(dps.InvalidInput, match="share of epsilon"):
        dps.select(VOTES, mechanism=around, values=True)
    with pytest.raises(dps.InvalidInput, match="values must be a share"):
        dps.select(VOTES, k=2, epsilon=0.5, values=False)


def test_auto_takes_laplace_or_with_a_delta_and_many_items_per_person_gaussian() -> None:
    def plan(**changes: Any) -> Any:
        asked = {"mechanism": "auto", "k": 2, "epsilon": 0.5, "sensitivity": dps.COUNTS, "values": True, **changes}
        return ReleaseRequest(**asked).plan()

    assert plan(max_items_per_person=2).mechanism == LAPLACE
    assert plan(max_items_per_person=2, delta=1e-6).mechanism == LAPLACE
    assert plan(max_items_per_person=50, delta=1e-6).mechanism == replace(GAUSSIAN, max_items_per_person=50)
    assert plan(max_items_per_person=2).describe()["values"] == "included"
    with pytest.raises(dps.InvalidInput, match="need a max_items_per_person: state it too"):
        plan()


def test_the_grid_follows_the_sensitivity_and_never_the_scores() -> None:
    real = dps.Laplace(k=2, epsilon=0.5, max_items_per_person=2, sensitivity=dps.Sensitivity(-1, 1))
    grid = IncludedValues(real).grid
    assert grid <= Fraction(1, 2**20)
    for scores in ([5, 4, 3], [0.1, 0.2, 0.3], [Fraction(1, 3), 2, 10**20]):
        counted = dps.select(scores, mechanism=LAPLACE, values=True, seed=1).values
        assert counted is not None
        assert all(type(value) is int for value in counted)
        floats = dps.select(scores, mechanism=real, values=True, seed=1).values
        assert floats is not None
        assert all(type(value) is float and Fraction(value) % grid == 0 for value in floats)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("scores", "whence"),
    [(np.zeros(300), "above"), (np.array([2000] * 3 + [0] * 300), "below")],
    ids=["all tied", "three ahead"],
)
@BOTH_KINDS
def test_intervals_hold_together_although_high_values_are_chosen(
    mechanism: NoisyVector, scores: Any, whence: str
) -> None:
    """600 draws; five standard deviations beyond half the failure probability have a probability below 1e-6.

    Of 300 tied items the values of the chosen are far too high; of three items ahead of all others each value is as
    likely to be too low. Either side uses up its half of the failure probability. Intervals made for fresh noise would
    miss too often.
    """
    kind, table = type(mechanism), dps.Scores.of(scores)
    included = IncludedValues(kind(**{**vars(mechanism), "k": 3, "epsilon": 2.0, "max_items_per_person": 4}))
    draws, confidence, too_high, too_low, missed = 600, 0.6, 0, 0, 0
    alone = value_noise(k=4, epsilon=2.0, sensitivity=dps.COUNTS).half_width(confidence)
    for seed in range(draws):
        members, noisy = included.draw(table, SeededBits(seed), confidence=confidence)
        true = members.values.tolist()
        too_high += any(low > score for (low, _), score in zip(noisy.intervals, true, strict=True))
        too_low += any(high < score for (_, high), score in zip(noisy.intervals, true, strict=True))
        missed += any(abs(value - score) > alone for value, score in zip(noisy.values, true, strict=True))
    half = (1 - confidence) / 2
    deviation = math.sqrt(half * (1 - half) / draws)
    assert max(too_high, too_low) / draws <= half + 5 * deviation
    assert (too_high if whence == "above" else too_low) / draws >= half * 0.6 - 5 * deviation
    assert missed / draws > 1 - confidence


def test_huge_groups_and_numbered_domains_have_values_too() -> None:
    table = dps.Scores.from_histogram([(10**6, 1), (0, 10**18)])
    release = dps.select(table, mechanism=LAPLACE, values=True, seed=1)
    assert release.values is not None
    assert release.values[0] > 10**6 - 100
    assert 100 < release.values[1] < 400
    rows = pd.DataFrame({"film": ["Up"] * 900, "viewer": range(900)})
    asked: dict[str, Any] = {"item": "film", "person": "viewer", "k": 2, "epsilon": 1.0, "domain": 10**18}
    asked |= {"max_items_per_person": 2, "values": True, "seed": 1}
    for mechanism, delta in (("laplace", 0.0), ("laplace", 1e-3), ("gaussian", 1e-3)):
        release = dps.top(rows, mechanism=mechanism, delta=delta, **asked)
        assert release.items[0] == "Up"
        assert isinstance(release.items[1], dps.Unseen)
        assert release.values is not None
        assert abs(release.values[0] - 900) < 200
        assert release.guarantee.delta <= delta
        assert (release.guarantee.neighbours == "add or remove") is bool(delta)


def test_top_enforces_the_items_per_person_and_charges_the_release_once(tmp_path: Any) -> None:
    from dpselect.ledger import Ledger

    films = ["Up", "Heat", "Her"]
    rows = pd.DataFrame([(film, viewer) for film in films for viewer in range(500)], columns=["film", "viewer"])
    asked: dict[str, Any] = {"item": "film", "person": "viewer", "k": 3, "epsilon": 1e3, "domain": films, "seed": 1}
    with Ledger(tmp_path / "ledger.sqlite") as ledger:
        ledger.create("films", epsilon=1e3)
        release = dps.top(
            rows, mechanism="laplace", max_items_per_person=2, values=True, ledger=ledger, dataset="films", **asked
        )
        assert ledger.remaining("films").epsilon == 0
    assert release.values is not None
    assert sum(release.values) == 1000
    asked |= {"k": 2, "epsilon": 0.5}
    for bound in (None, 1):
        with pytest.raises(dps.InvalidInput, match="max_items_per_person"):
            dps.top(rows, mechanism=LAPLACE, max_items_per_person=bound, values=True, **asked)


@pytest.mark.slow
def test_the_command_line_says_included(tmp_path: Any) -> None:
    rows = pd.DataFrame({"film": ["Up"] * 900 + ["Heat"] * 500, "viewer": [*range(900), *range(500)]})
    rows.to_csv(tmp_path / "rows.csv", index=False)
    line = ["top", str(tmp_path / "rows.csv"), "--item", "film", "--person", "viewer", "-k", "1", "--epsilon", "1"]
    line += ["--domain", "2", "--max-items-per-person", "2", "--mechanism", "laplace", "--seed", "1", "--format", "csv"]
    included = CliRunner().invoke(app, [*line, "--values", "included"])
    assert included.exit_code == 0
    assert included.stdout.splitlines()[0] == "rank,item,value,low,high"
    refused = CliRunner().invoke(app, [*line, "--values", "0.3"])
    assert refused.exit_code == 2
    assert "--values included" in refused.output
