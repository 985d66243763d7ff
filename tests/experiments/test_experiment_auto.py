"""The evidence for "auto": its choice is among what is compared, and its regret is what the rows say."""

from __future__ import annotations

import os
import sys
from itertools import product
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from dpselect.mechanisms import mechanism_for  # noqa: E402
from experiments import auto  # noqa: E402

DATA = Path(os.environ.get("DPSELECT_DATA", ROOT.parent / "shared" / "data"))


@pytest.mark.slow
def test_what_auto_takes_is_among_the_mechanisms_compared() -> None:
    for k, epsilon, delta, limit, ordered in product(
        auto.LENGTHS, auto.EPSILONS, (0.0, 1e-3, 1e-7), (None, *auto.LIMITS), (False, True)
    ):
        question = auto.Question(k, epsilon, delta, limit, ordered)
        for aim in ("most", "exact"):
            asked: dict[str, Any] = {**question._asdict(), "aim": aim}
            chosen = mechanism_for("auto", max_items_per_person=asked.pop("limit"), **asked)
            assert chosen in auto.mechanisms(question).values(), (question, aim)


def test_regret_is_measured_against_the_best_of_the_same_question() -> None:
    shared = {"data": "a", "class": "pure sets", "k": 3, "exact": 0.0, "score ratio": 0.0}
    rows = [
        {**shared, "epsilon": epsilon, "mechanism": name, "F1": f1, "F1 regret": best - f1}
        | {"auto, most": name == "x", "auto, exact": name == "y"}
        for epsilon, best, scores in ((1.0, 0.8, {"x": 0.5, "y": 0.8}), (3.0, 0.9, {"x": 0.9, "y": 0.2}))
        for name, f1 in scores.items()
    ]
    (_, means), (_, [regret]) = auto.summary(rows)
    assert regret["mean"] == pytest.approx(0.15)
    assert regret["worst"] == pytest.approx(0.3)
    assert regret["where"] == "a, k = 3, ε = 1: x"
    assert {row["mechanism"]: round(row["F1"], 3) for row in means} == {
        "auto, most": 0.7,
        "auto, exact": 0.5,
        "best in hindsight": 0.85,
        "x": 0.7,
        "y": 0.5,
    }


@pytest.mark.skipif(not DATA.is_dir(), reason="the real data are not there; DPSELECT_DATA names their folder")
@pytest.mark.long
def test_auto_stays_within_its_limits_on_some_of_the_data() -> None:
    rows = list(auto.rows(DATA, quick=True))
    _, (_, regrets) = auto.summary(rows)
    assert len(regrets) == 12
    for regret in regrets:
        assert regret["mean"] <= regret["limit"], regret
    assert auto.figure(rows).axes
