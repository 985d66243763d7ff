"""Attack: the same question is asked again and again, and the noise is averaged away."""

from __future__ import annotations

import random
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

import dpselect as dps
from dpselect.ledger import Ledger

VOTES = {"tea": 4321, "milk": 10}


def naive_answer(noise: random.Random) -> float:
    """Return the number of votes for tea after Laplace noise for epsilon 0.1."""
    return VOTES["tea"] + noise.expovariate(0.1) - noise.expovariate(0.1)


def test_the_attack_averages_naive_answers_to_the_true_count() -> None:
    """The mean of 40,000 answers has a standard deviation of 0.07, so that it rounds to the truth."""
    noise = random.Random(5)
    assert round(fmean(naive_answer(noise) for _ in range(40_000))) == VOTES["tea"]


@pytest.fixture
def question(tmp_path: Path) -> dict[str, Any]:
    """Return a question with values, for a data set with a budget for ten answers."""
    with Ledger(tmp_path / "budget.sqlite") as ledger:
        ledger.create("votes", epsilon=1.0)
    return {"k": 1, "epsilon": 0.1, "values": 0.5, "ledger": tmp_path / "budget.sqlite", "dataset": "votes"}


def test_a_budget_ends_the_averaging_after_ten_answers(question: dict[str, Any]) -> None:
    for _ in range(10):
        dps.select(VOTES, **question)
    for _ in range(3):
        with pytest.raises(dps.BudgetExceeded):
            dps.select(VOTES, **question)


def test_a_question_under_a_key_has_one_answer_however_often_it_is_asked(question: dict[str, Any]) -> None:
    answers = [dps.select(VOTES, **question, once="votes of 2026") for _ in range(30)]
    assert len({(release.items[0], release.values[0]) for release in answers}) == 1
    assert [release.repeated for release in answers] == [False] + [True] * 29
    with Ledger(question["ledger"]) as ledger:
        assert ledger.spent("votes").epsilon == 0.1
