"""The experiments on unknown domains: counts from pairs, the grid, and a domain that grows."""

from __future__ import annotations

import gzip
import os
import sys
from math import log
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import rel_entr

import dpselect as dps

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from experiments import data, domain_size, inside, private_pool, unknown  # noqa: E402

DATA = Path(os.environ.get("DPSELECT_DATA", ROOT.parent / "shared" / "data"))
with_data = pytest.mark.skipif(
    not DATA.is_dir(), reason="the real data are not there; DPSELECT_DATA names their folder"
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A data set of pairs: item i of 600 has about 3000/i people."""
    lines = ["user,item"]
    for item in range(1, 601):
        lines.extend(f"u{person},i{item}" for person in range(3000 // item))
    (tmp_path / "shop").mkdir()
    with gzip.open(tmp_path / "shop" / "pairs.csv.gz", "wt", encoding="utf-8") as file:
        file.write("\n".join(lines))
    return tmp_path


def test_counts_and_people_are_read_off_pairs(folder: Path) -> None:
    counts = data.real(folder, "shop")
    assert counts[:3].tolist() == [3000, 1500, 1000]
    assert len(counts) == 600
    assert data.people(folder, "shop") == 3000
    assert unknown.delta_of(folder, "shop", counts) == 1 / 6000
    with pytest.raises(dps.InvalidInput, match="nothing"):
        data.real(folder, "nothing")


@pytest.mark.slow
def test_the_grid_has_a_row_for_every_setting_and_means_in_range(folder: Path) -> None:
    rows = list(unknown.rows(folder, names=("shop",), draws=2))
    assert len(rows) == 3 * 3 * 5
    for row in rows:
        for label in ("Restricted", "Limited", "Stable"):
            assert 0 <= row[f"items {label}"] <= row["k"]
            assert 0 <= row[f"ratio {label}"] <= 1
            assert 0 <= row[f"F1 {label}"] <= 1


@pytest.mark.slow
def test_what_to_put_inside_is_compared_for_every_length(folder: Path) -> None:
    rows = list(inside.rows(folder, names=("shop",), draws=1))
    assert [row["k"] for row in rows] == [10, 50, 100]
    assert all(0 <= value <= 1 for row in rows for name, value in row.items() if name not in ("data", "k"))


def test_added_items_are_one_more_group_of_ties() -> None:
    scores = domain_size.full_domain(np.array([5, 3, 3, 1, 1, 1]), 10**9)
    assert scores.values.tolist() == [5, 3, 1]
    assert scores.multiplicities.tolist() == [1, 2, 10**9 + 3]


EXCEPTION = 0.005
"""The share of k by which Restricted may return fewer items on average: 0.05 of 10 items (docs/unknown.md)."""


def certainly_fewer(lengths: Any, others: Any, k: int, chance: float) -> bool:
    """Whether answers are shorter on average than others by more than the exception.

    Says so wrongly with at most that chance: by Hoeffding's inequality, a mean of n numbers in [0, 1] whose expectation
    is μ is as far below μ as a, or as far above, with probability at most exp(−n KL(a, μ)).
    """
    nats = log(2 / chance)
    return _bound(lengths / k, 1.0, nats) < _bound(others / k, 0.0, nats) - EXCEPTION


def _bound(shares: Any, towards: float, nats: float) -> float:
    """Return the μ between the mean a and 0 or 1 for which n KL(a, μ) is so much."""
    mean = float(shares.mean())
    inner, outer = mean, towards
    for _ in range(60):
        middle = (inner + outer) / 2
        divergence = float(rel_entr(mean, middle) + rel_entr(1 - mean, 1 - middle))
        inner, outer = (middle, outer) if len(shares) * divergence < nats else (inner, middle)
    return outer


@with_data
@pytest.mark.long
def test_restricted_returns_as_many_items_as_limited_but_for_a_small_exception() -> None:
    """All settings together fail by chance with probability at most 1e-6."""
    grid = [setting for setting in unknown.settings(DATA, ("games_steam",)) if setting[0]["k"] < 100]
    longer = []
    for setting, _, pool, compared in grid:
        ours, theirs = (unknown.lengths(compared[label], pool, 500) for label in ("Restricted", "Limited"))
        assert not certainly_fewer(ours, theirs, setting["k"], 1e-6 / len(grid)), setting
        longer.append(certainly_fewer(theirs, ours, setting["k"], 1e-6 / len(grid)))
    assert any(longer), "a comparison that never tells who returns fewer shows nothing"


@with_data
@pytest.mark.long
def test_a_growing_domain_hurts_the_exponential_mechanism_and_not_restricted() -> None:
    rows = {(row["k"], row["ε"]): row for row in domain_size.rows(DATA, draws=5)}
    row = rows[50, 0.4]
    assert row["all items"] > row["+1e+08"] > row["+1e+10"]
    assert row["Restricted"] > row["+1e+10"]


@pytest.mark.slow
def test_a_pool_that_is_chosen_privately_returns_no_more_items(folder: Path) -> None:
    """Where answers are short by several items, so that the difference is far beyond the error of 40 draws."""
    rows = list(private_pool.rows(folder, names=("shop",), draws=40))
    assert len(rows) == len(private_pool.LENGTHS) * len(private_pool.EPSILONS)
    assert all(row["items chosen"] <= row["items fixed"] + 0.5 for row in rows)
