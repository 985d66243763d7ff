"""Attack: one budget is spent twice, by questions at the same moment or by a crash between answer and record.

`tests/ledger/test_ledger_torture.py` does the same with hundreds of processes, killed at random, on two databases.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow
import pytest

import dpselect as dps
from dpselect.ledger import Ledger

COUNTS = {"tea": 3, "milk": 1}
PROCESSES: Any = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["dpselect._select", "dpselect._top", "dpselect.ledger.store", "pyarrow"])


class NaiveLedger:
    """A budget of 1 in a file: read what was spent, check it, write the new sum."""

    def __init__(self, file: Path, between: Callable[[], object] = lambda: None) -> None:
        self.file = file
        self.between = between

    def spent(self) -> float:
        """Return what was spent."""
        return json.loads(self.file.read_text()) if self.file.exists() else 0.0

    def spend(self, cost: float) -> bool:
        """Spend from the budget if it suffices."""
        spent = self.spent()
        self.between()
        if spent + cost > 1.0:
            return False
        self.file.write_text(json.dumps(spent + cost))
        return True


def test_the_race_overdraws_a_naive_ledger(tmp_path: Path) -> None:
    """Eight read before the first writes: eight answers for the price of one."""
    everyone = threading.Barrier(8, timeout=60)
    ledger = NaiveLedger(tmp_path / "budget.json", between=everyone.wait)
    with ThreadPoolExecutor(8) as pool:
        answered = list(pool.map(ledger.spend, [1.0] * 8))
    assert sum(answered) == 8
    assert ledger.spent() == 1.0


def test_the_race_does_not_overdraw_the_ledger(tmp_path: Path) -> None:
    """Of eight connections that ask at the same moment, three get answers, since the budget is for three."""
    place = tmp_path / "budget.sqlite"
    with Ledger(place) as ledger:
        ledger.create("drinks", epsilon=3.0)
    everyone = threading.Barrier(8, timeout=60)

    def ask(_: int) -> bool:
        with Ledger(place) as own:
            everyone.wait()
            try:
                dps.select(COUNTS, k=1, epsilon=1.0, ledger=own, dataset="drinks")
            except dps.BudgetExceeded:
                return False
            return True

    with ThreadPoolExecutor(8) as pool:
        answered = list(pool.map(ask, range(8)))
    with Ledger(place) as ledger:
        assert sum(answered) == len(ledger.entries("drinks")) == 3
        assert ledger.remaining("drinks").epsilon == 0.0


def killed(*_: Any) -> None:
    """End this process as a crash would."""
    os.kill(os.getpid(), signal.SIGKILL)


def crash(target: Callable[..., None], *arguments: Any) -> None:
    """Run a function in a process that it kills."""
    process = PROCESSES.Process(target=target, args=arguments)
    process.start()
    process.join(timeout=120)
    assert process.exitcode == -signal.SIGKILL


def answer_naively(budget: Path, answers: Path) -> None:
    """Answer, then record; the machine fails in between."""
    with answers.open("a") as file:
        file.write(f"{max(COUNTS, key=COUNTS.__getitem__)}\n")
    NaiveLedger(budget, between=killed).spend(1.0)


@pytest.mark.slow
def test_the_crash_gives_answers_that_a_naive_ledger_never_records(tmp_path: Path) -> None:
    budget, answers = tmp_path / "budget.json", tmp_path / "answers"
    for _ in range(3):
        crash(answer_naively, budget, answers)
    assert len(answers.read_text().splitlines()) == 3
    assert NaiveLedger(budget).spent() == 0.0


def answer_and_crash(place: Path, answers: Path) -> None:
    """Ask dpselect, and crash as soon as the answer is there."""
    release = dps.select(COUNTS, k=1, epsilon=1.0, ledger=place, dataset="drinks")
    with answers.open("a") as file:
        file.write(f"{release.items[0]}\n")
    killed()


def crash_while_reading(place: Path, answers: Path) -> None:
    """Ask dpselect about a table that crashes the process when its first row is read."""
    schema = pyarrow.schema({"drink": pyarrow.string(), "guest": pyarrow.string()})
    table = pyarrow.RecordBatchReader.from_batches(schema, (killed(batch) for batch in [0]))
    question: dict[str, Any] = {"item": "drink", "person": "guest", "domain": list(COUNTS), "k": 1, "epsilon": 1.0}
    dps.top(table, **question, ledger=place, dataset="drinks")
    answers.write_text("an answer in spite of the crash\n")


@pytest.mark.slow
@pytest.mark.parametrize(("attack", "answered"), [(answer_and_crash, 2), (crash_while_reading, 0)])
def test_the_crash_gives_no_answer_that_the_ledger_does_not_record(
    attack: Callable[..., None], answered: int, tmp_path: Path
) -> None:
    """The charge is written before any row is read, so a crash can only lose an answer that was paid for."""
    place, answers = tmp_path / "budget.sqlite", tmp_path / "answers"
    with Ledger(place) as ledger:
        ledger.create("drinks", epsilon=2.0)
    for _ in range(2):
        crash(attack, place, answers)
    assert len(answers.read_text().splitlines() if answers.exists() else []) == answered
    with Ledger(place) as ledger:
        assert ledger.spent("drinks").epsilon == 2.0
        assert ledger.check() == []
        with pytest.raises(dps.BudgetExceeded):
            dps.select(COUNTS, k=1, epsilon=1.0, ledger=ledger, dataset="drinks")
