"""The experiment on rankings: its measures on cases known by heart, what it claims, and its picture."""

from __future__ import annotations

import sys
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from dpselect._pictures import picture
from dpselect.ranking import Bounds
from dpselect.ranking.simulate import Contests

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from experiments import __main__ as command  # noqa: E402
from experiments import ranking  # noqa: E402

WAYS = ["ours", "little damping", "published, true ρ", "walk without noise", "likelihood without noise"]


def contests(items: int, wins: int, losses: int) -> Contests:
    """Every pair meets, and the item with the smaller number wins so often."""
    first, second = np.array(list(combinations(range(items), 2))).T
    return Contests(items, first, second, np.full(len(first), wins), np.full(len(first), losses))


def test_the_ergodicity_coefficient_of_two_items_is_known() -> None:
    """P = [[3/4, 1/4], [3/4, 1/4]] forgets where it was at once; without games it never does."""
    bounds = Bounds(comparisons_per_pair=4, max_degree=1)
    assert ranking.ergodicity(ranking.walk_of(contests(2, 3, 1), bounds)) == pytest.approx(0)
    assert ranking.ergodicity(ranking.walk_of(contests(2, 0, 0), bounds)) == pytest.approx(1)


def test_scores_fall_with_the_number_of_an_item() -> None:
    scores = ranking.scores(contests(6, 7, 3), Bounds(comparisons_per_pair=10, max_degree=5))
    assert (np.diff(scores) < 0).all()
    assert scores.sum() == pytest.approx(1)


def test_what_belongs_to_the_top_is_counted() -> None:
    assert ranking.of_the_top(np.array([0.1, 0.4, 0.3, 0.2]), 2) == 0.5
    assert ranking.of_the_top(np.array([0.4, 0.3, 0.2, 0.1]), 2) == 1.0


@pytest.mark.slow
def test_in_the_middle_of_the_grid_ours_is_near_what_no_noise_finds_and_the_published_route_is_not() -> None:
    """Seeded, so it holds always or never; the whole grid: python -m experiments ranking."""
    (row,) = ranking.rows(settings=[replace(ranking.MIDDLE, panel="ε")], seeds=3)
    assert row["ours"] > row["likelihood without noise"] - 0.1
    assert row["published, true ρ"] < row["ours"] / 2
    assert row["little damping"] < row["ours"] / 2


def test_little_damping_is_a_tenth() -> None:
    setting = replace(ranking.MIDDLE, panel="ε", damping=0.1, epsilon=30.0)
    (row,) = ranking.rows(settings=[setting], seeds=1)
    assert row["ours"] == row["little damping"]


@pytest.mark.slow
def test_rows_and_picture_hold_every_way_and_panel() -> None:
    small = replace(ranking.MIDDLE, items=8, per_pair=2, k=2)
    settings = [replace(small, panel=panel, epsilon=epsilon) for panel in ranking.AXES for epsilon in (0.5, 5.0)]
    rows = list(ranking.rows(settings=settings, seeds=1))
    assert [row["data"] for row in rows] == [panel for panel in ranking.AXES for _ in range(2)]
    assert all(0 <= row[way] <= 1 for row in rows for way in WAYS)
    drawn = picture(ranking.figure(rows), "svg").decode()
    assert all(text in drawn for text in [*WAYS, *ranking.AXES])


def test_every_panel_varies_one_thing_only() -> None:
    for panel, column in ranking.AXES.items():
        settings = [setting for setting in ranking.SETTINGS if setting.panel == panel]
        assert len(settings) >= 6
        name = {"ε": "epsilon", "items": "items", "L": "per_pair", "α": "damping"}[column]
        assert len({replace(setting, **{name: getattr(ranking.MIDDLE, name)}) for setting in settings}) == 1


@pytest.mark.slow
def test_the_command_needs_no_data_and_writes_table_and_picture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = [replace(ranking.MIDDLE, panel=panel, items=6, per_pair=2, k=2) for panel in ranking.AXES]
    rows = list(ranking.rows(settings=small, seeds=1))
    monkeypatch.setattr(ranking, "rows", lambda data: iter(rows))
    assert command.main(["ranking", "--out", str(tmp_path)]) == 0
    assert len((tmp_path / "ranking.csv").read_text().splitlines()) == 5
    assert (tmp_path / "ranking.svg").read_bytes().startswith(b"<?xml")
