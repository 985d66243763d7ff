"""The restricted paper on small data sets: metrics, bounded contributions, huge domains, and verdicts from numbers."""

from __future__ import annotations

import csv
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_sets import PAIRS, write_rows

import dpselect as dps
from dpselect.reproduce import reproduce, restricted, restricted_draws
from dpselect.reproduce.data import Data
from dpselect.reproduce.restricted import judge_sets
from dpselect.reproduce.restricted_draws import (
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
    judge_variance,
    with_ones,
)
from dpselect.sampling import bit_source


@pytest.mark.slow
def test_every_figure_and_table_of_the_restricted_paper_is_written(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lengths, pools = (2, 4), (1, 10)
    for module in (restricted, restricted_draws):
        monkeypatch.setattr(module, "LENGTHS", lengths)
        monkeypatch.setattr(module, "POOLS", pools)
    monkeypatch.setattr(restricted_draws, "epsilons", lambda quick: [0.1, 1.0])
    outcomes = {out.study.name: out for out in reproduce("restricted", data=folder, out=tmp_path, quick=True)}
    assert list(outcomes) == [
        *("figure-4", "figure-5", "variance", "figure-7", "figure-8", "figure-9", "figure-10", "table-1", "table-2")
    ]
    for name, outcome in outcomes.items():
        assert len(outcome.files) == (3 if name.startswith("figure") else 2)
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


def made_up(better: float, deviation: float = 0.0, draws: int = 100) -> list[dict[str, Any]]:
    spread = {"returned_deviation": deviation, "returned_fourth": 3 * deviation**4, "draws": draws}
    return [
        {"data": name, "k": k, "times": times, "mechanism": mechanism, "epsilon": 1.0, "returned": value, **spread}
        for name in SETS
        for k in LENGTHS
        for times in POOLS
        for mechanism, value in ((RG, better), (LD, 5.0))
    ]


def test_the_verdict_follows_the_numbers() -> None:
    judge = judge_pair(RG, LD, "returned")
    assert judge(made_up(6.0)).holds
    assert judge(made_up(4.99)).word == "fails in all 27 settings"
    one = made_up(6.0)
    one[0]["returned"] = 4.99
    assert judge(one).word == "holds in 26 of 27 settings, fails in 1"
    assert judge(one).text.endswith("Exceptions: epinions, k = 10, pool 1 k, epsilon 1.")
    assert judge(made_up(6.0)).figure == "RestrictedGumbel 6, LimitedDomain 5 (epinions, k = 100, pool 50 k, ε = 1)"


def test_what_sampling_error_explains_is_undecided() -> None:
    """The same means, of draws that vary: bare means would say that the first claim fails and the second holds."""
    judge = judge_pair(RG, LD, "returned")
    assert judge(made_up(4.99, deviation=2.0)).word == "undecided in all 27 settings"
    assert judge(made_up(5.3, deviation=2.0)).word == "undecided in all 27 settings"
    assert judge(made_up(5.3, deviation=2.0, draws=10_000)).holds, "more draws decide"
    assert judge(made_up(5.0)).undecided == 27, "equal is not more"
    assert "the means are equal at 27" in judge(made_up(5.0)).text


def test_a_larger_variance_is_held_against_the_items_returned() -> None:
    def rows(ours: tuple[float, float], theirs: tuple[float, float]) -> list[dict[str, Any]]:
        found = []
        for row in made_up(5.0):
            mean, deviation = ours if row["mechanism"] == RG else theirs
            spread = {"returned_deviation": deviation, "returned_fourth": 3 * deviation**4, "draws": 200}
            found.append(row | {"returned": mean} | spread)
        return found

    more = judge_variance(rows((10.9, 7.3), (5.2, 4.3)))
    assert more.word == "holds in all 28 settings"
    assert "larger at 27 of 27 settings, 2.1 times as many items" in more.figure
    assert "10.9 ± 7.3 (RestrictedGumbel) and 5.2 ± 4.3 (LimitedDomain) items on epinions" in more.figure
    assert judge_variance(rows((4.0, 7.3), (9.0, 4.3))).word == "fails in 27 of 28 settings, holds in 1"
    assert judge_variance(rows((5.2, 4.4), (5.2, 4.3))).word == "undecided", "no clear difference of variances"
    assert "clearly smaller at 27" in judge_variance(rows((5.2, 2.0), (5.2, 4.3))).text


def test_the_columns_of_table_1(tmp_path: Path) -> None:
    sizes = [*[1] * 60, *[2] * 39, 7]
    pairs = [(person, item) for item, size in enumerate(sizes) for person in range(size)]
    for name in SETS:
        write_rows(tmp_path / name / "pairs.csv.gz", ["user", "item"], pairs)
    (table,) = (study for study in restricted.PAPER.studies if study.name == "table-1")
    rows = [row for point in table.points(True) for row in table.compute(point, Data(tmp_path))]
    assert rows[0] == {
        "data": SETS[0],
        "users": 7,
        "items": 100,
        "percent_of_1": 60.0,
        "percentile_50": 1,
        "percentile_99": 2,
        "percentile_100": 7,
    }
    assert judge_sets(rows).word == "holds in 6 of 9 settings, fails in 3"
    assert "percentile 99 not from 24 to 96 on epinions to games_steam" in judge_sets(rows).text
    assert "Gowalla 107,092 users, 1,280,969 items, 49% of count 1, percentiles 2, 24, 2,931" in judge_sets(rows).text


def domain_rows(exponential: dict[int, float], deviation: float = 0.0) -> list[dict[str, Any]]:
    about = {"epsilon": 1.0, "data": "epinions"}
    drawn = {"draws": 100, "score_ratio_deviation": deviation}
    return [
        {**about, "k": k, "mechanism": name, "added": size, "score_ratio": ratio, **(drawn if name == RG else {})}
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
    noisy = judge_domain(domain_rows(worse | {10**8: 0.61}, deviation=0.2))
    assert (noisy.failed, noisy.undecided) == (0, 3), "0.61 is not clearly above a mean of 0.6 ± 0.02"
    level = judge_domain(domain_rows(worse | {10**9: 0.5}))
    assert (level.failed, level.undecided) == (0, 3), "no worse and no better"


def test_the_exponential_mechanism_is_exact_in_larger_domains(folder: Path) -> None:
    """The exact score ratio agrees with 400 draws; five standard errors fail by chance below 1e-6."""
    (exact,), (drawn,) = (
        compute(point(EM, added=10**6, epsilons=[0.3], draws=draws), Data(folder)) for draws in (0, 400)
    )
    assert 0.05 < exact["score_ratio"] < 0.95
    error = drawn["score_ratio_deviation"] / 20
    assert abs(exact["score_ratio"] - drawn["score_ratio"]) < 5 * error


def test_no_step_to_a_larger_domain_makes_the_exponential_mechanism_better(folder: Path) -> None:
    found = [
        list(compute(point(EM, added=size, epsilons=[0.25, 0.5], draws=0), Data(folder))) for size in (0, 10**6, 10**9)
    ]
    for less, more in pairwise(found):
        for before, after in zip(less, more, strict=True):
            assert after["score_ratio"] < before["score_ratio"]
