"""The evidence for "discovered": both mechanisms see the same people, and the regret is what the rows say."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from experiments import discovered  # noqa: E402

DATA = Path(os.environ.get("DPSELECT_DATA", ROOT.parent / "shared" / "data"))


def test_people_are_counted_by_how_many_items_they_have() -> None:
    people, items = np.array([0, 0, 1, 2, 2, 2]), np.array([3, 1, 3, 3, 1, 0])
    counts, held = discovered.weighed(people, items, 3)
    assert counts.tolist() == [3, 2, 1]
    assert held.tolist() == [[1, 1, 1], [0, 1, 1], [0, 0, 1]]


def test_regret_is_measured_against_the_better_one() -> None:
    shared = {"data": "a", "m": 1, "k": 30, "auto": "discovered"}
    f1 = [(epsilon, 0.5, 0.9 if epsilon < 1 else 0.3) for epsilon in discovered.EPSILONS]
    rows = [{**shared, "ε": epsilon, "F1 restricted": old, "F1 discovered": new} for epsilon, old, new in f1]
    (_, [gains]), (_, choices) = discovered.summary(rows)
    assert gains["ε = 0.1"] == pytest.approx(0.4)
    assert gains["ε = 3"] == pytest.approx(-0.2)
    assert {row["mechanism"]: round(row["regret"], 3) for row in choices} == {
        "restricted": 0.2,
        "discovered": 0.1,
        "auto": 0.1,
        "best in hindsight": 0.0,
    }


@pytest.mark.skipif(not DATA.is_dir(), reason="the real data are not there; DPSELECT_DATA names their folder")
@pytest.mark.long
def test_auto_stays_within_its_limit_on_some_of_the_data() -> None:
    _, (_, choices) = discovered.summary(list(discovered.rows(DATA, quick=True)))
    [regret] = [row["regret"] for row in choices if row["mechanism"] == "auto"]
    assert regret <= discovered.LARGEST_REGRET
