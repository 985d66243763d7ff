"""The restricted paper on small data sets: metrics, bounded contributions, huge domains, and verdicts from numbers."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_sets import PAIRS, write_rows

import dpselect as dps
from dpselect.reproduce import reproduce, restricted
from dpselect.reproduce.data import Data
from dpselect.reproduce.restricted import (
    ADDED,
    EM,
    LD,
    LENGTHS,
    MECHANISMS,
    POOLS,
    RG,
    RN,
    SETS,
    compute,
    judge_domain,
    judge_pair,
    with_ones,
)
from dpselect.sampling import bit_source


@pytest.mark.slow
def test_every_figure_and_table_of_the_restricted_paper_is_written(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lengths, pools = (2, 4), (1, 10)
    monkeypatch.setattr(restricted, "LENGTHS", lengths)
    monkeypatch.setattr(restricted, "POOLS", pools)
    monkeypatch.setattr(restricted, "epsilons", lambda quick: [0.1, 1.0])
    outcomes = {out.study.name: out for out in reproduce("restricted", data=folder, out=tmp_path, quick=True)}
    assert list(outcomes) == ["figure-4", "figure-5", "figure-7", "figure-8", "figure-9", "figure-10", "table-2"]
    for name, outcome in outcomes.items():
        assert len(outcome.files) == (2 if name == "table-2" else 3)
        assert all(path.stat().st_size > 100 for path in outcome.files)
    with outcomes["figure-4"].files[0].open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert {(row["data"], row["k"], row["times"]) for row in rows} == {
        (name, str(k), str(times)) for name in SETS for k in lengths for times in pools
    }
    assert all(0 <= float(row["returned"]) <= int(row["k"]) for row in rows)
    assert all(0 <= float(row["f1"]) <= 1 and float(row["score_ratio"]) <= 1 for row in rows)


def point(mechanism: str, **changes: Any) -> dict[str, Any]:
    settings = {"data": "epinions", "k": 3, "times": 2, "mechanism": mechanism, "epsilons": [0.5, 1e4], "draws": 20}
    return settings | changes


@pytest.mark.parametrize("mechanism", list(MECHANISMS))
def test_with_an_enormous_epsilon_the_answer_is_the_truth(folder: Path, mechanism: str) -> None:
    counts = Data(folder).counts("epinions")
    assert counts[0] > counts[2] > counts[6], "a set in which the top leads the end of the pool"
    private, sure = compute(point(mechanism, times=20), Data(folder))
    assert sure["returned"] == 3.0 or mechanism == "TopStable"
    assert sure["score_ratio"] >= private["score_ratio"]
    if mechanism not in ("TopStable", RN, "LimitedDomain, Laplace"):
        assert (sure["score_ratio"], sure["f1"]) == (1.0, 1.0)
    assert private["delta"] == 1 / (2 * PAIRS["epinions"][0])


def test_the_same_point_has_the_same_numbers(folder: Path) -> None:
    assert list(compute(point(RG), Data(folder))) == list(compute(point(RG), Data(folder)))


def test_contributions_are_bounded_person_by_person(tmp_path: Path) -> None:
    pairs = [(person, item) for person in range(10) for item in range(20)] + [(10, 7), (11, 7), (11, 8)]
    write_rows(tmp_path / "set" / "pairs.csv.gz", ["user", "item"], pairs)
    data = Data(tmp_path)
    assert data.people("set") == 12
    assert data.counts("set").sum() == 203
    assert data.bounded_counts("set", 4).sum() == 10 * 4 + 3
    assert data.bounded_counts("set", 100).tolist() == data.counts("set").tolist()
    assert data.bounded_counts("set", 4).max() < 12, "which items are kept is drawn for each person"


def test_items_of_count_one_are_added_without_listing_them() -> None:
    counts = np.array([9, 5, 1, 1])
    assert with_ones(counts, 10**10).size == 10**10 + 4
    assert with_ones(np.array([9, 5]), 3).size == 5
    assert with_ones(counts, 0).size == 4
    chosen = dps.Peeling(k=3, epsilon=1e-3, noise="gumbel").draw(with_ones(counts, 10**10), bit_source(1)).values
    assert chosen.tolist() == [1, 1, 1], "with little epsilon nearly every item is one of those added"


def made_up(better: float) -> list[dict[str, Any]]:
    return [
        {"data": name, "k": k, "times": times, "mechanism": mechanism, "epsilon": 1.0, "returned": value}
        for name in SETS
        for k in LENGTHS
        for times in POOLS
        for mechanism, value in ((RG, better), (LD, 5.0))
    ]


def test_the_verdict_follows_the_numbers() -> None:
    judge = judge_pair(RG, LD, "returned")
    assert judge(made_up(6.0)).holds
    assert judge(made_up(5.0)).holds
    assert "at 0 of 27 settings of set, k, pool and epsilon, and level with it at 27" in judge(made_up(5.0)).text
    assert judge(made_up(4.99)).held == 0
    one = made_up(6.0)
    one[0]["returned"] = 4.99
    assert judge(one).word == "holds in 26 of 27 settings"
    assert judge(one).text.endswith("Exceptions: epinions, k = 10, pool 1 k, epsilon 1.")
    assert "6 against 5" in judge(made_up(6.0)).text


def domain_rows(exponential: dict[int, float]) -> list[dict[str, Any]]:
    about = {"epsilon": 1.0, "data": "epinions"}
    return [
        {**about, "k": k, "mechanism": name, "added": size, "score_ratio": ratio}
        for k in LENGTHS
        for name, size, ratio in [(RG, 0, 0.6), *((EM, size, ratio) for size, ratio in exponential.items())]
    ]


def test_larger_domains_are_judged_at_every_setting() -> None:
    worse = dict(zip(ADDED, (0.9, 0.5, 0.4, 0.3), strict=True))
    assert judge_domain(domain_rows(worse)).holds
    ahead = judge_domain(domain_rows(worse | {10**8: 0.7}))
    assert (ahead.held, ahead.settings) == (15, 18)
    assert "EM with 100 million items added ahead of RestrictedGumbel, k = 50, epsilon 1" in ahead.text
    back = judge_domain(domain_rows(worse | {10**10: 0.45}))
    assert "better with 10 billion items added than with 1 billion, k = 10, epsilon 1" in back.text
