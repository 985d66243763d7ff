"""Forty processes that race for the last of one budget after another, and are killed at random meanwhile."""

from __future__ import annotations

import itertools
import os
import random
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ledger_servers import PROCESSES

import dpselect as dps
from dpselect.ledger import Ledger

RACERS = 40
TOTAL, COST, FIT = 1.0, 0.1, 10
"""Ten binary tenths are a little more than 1, so that the last release of each budget is made with what is left."""


def answer_until_killed(place: str, file: str, first: int) -> None:
    """Spend one budget after another to the end; write each answer down once it is there, and each refusal."""
    answers = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    ledger = Ledger(place)
    for number in itertools.count(first):
        try:
            while True:
                _answer(ledger, number, f"{os.getpid()}.{time.monotonic_ns()}", answers)
        except dps.BudgetExceeded:
            os.write(answers, f"{number} refused\n".encode())


def _answer(ledger: Ledger, number: int, purpose: str, answers: int) -> None:
    question: dict[str, Any] = {"ledger": ledger, "dataset": f"budget {number}", "purpose": purpose}
    try:
        release = dps.select({"tea": 3, "milk": 1}, k=1, epsilon=COST, **question)
    except dps.InvalidInput:  # nobody was here before
        _create(ledger, question["dataset"])
        return
    os.write(answers, f"{number} answered {purpose} {release.items[0]}\n".encode())


def _create(ledger: Ledger, name: str) -> None:
    try:
        ledger.create(name, epsilon=TOTAL)
    except dps.InvalidInput as error:  # another was faster
        if "has a data set of that name" not in str(error):
            raise


@dataclass(frozen=True)
class Race:
    """What came of a race: how many were killed, and what the racers had written down by then."""

    kills: int
    lines: list[str]

    @property
    def answered(self) -> list[str]:
        """The purposes of the releases whose answers got out."""
        return [line.split()[2] for line in self.lines if " answered " in line]

    @property
    def refused(self) -> set[str]:
        """The names of the budgets that refused a release."""
        return {f"budget {line.split()[0]}" for line in self.lines if line.endswith(" refused")}


def race(place: str, file: Path, kills: int, seed: int) -> Race:
    """Let forty processes race, each replaced when it is killed, until that many were and a budget is used up.

    As a rule a few are killed at a time, soon after one was answered or refused. Now and then all of them are, among
    them the one that is writing.
    """
    chance = random.Random(seed)
    with Ledger(place) as ledger:
        ledger.create("budget 0", epsilon=TOTAL)
    file.touch()
    racing = [_started(place, file, 0) for _ in range(RACERS)]
    killed = 0
    while killed + RACERS < kills:
        _wait_for_more(file, racing)
        time.sleep(chance.uniform(0.0, 0.03))
        number = RACERS if chance.random() < 0.04 else chance.randint(1, 5)
        chance.shuffle(racing)
        _kill(racing[:number])
        killed += number
        latest = int(file.read_text().splitlines()[-1].split()[0])
        racing[:number] = [_started(place, file, latest) for _ in range(number)]
    while not Race(killed, file.read_text().splitlines()).refused:
        _wait_for_more(file, racing)
    _kill(racing)
    return Race(killed + RACERS, file.read_text().splitlines())


def _wait_for_more(file: Path, racing: list[Any]) -> None:
    size = file.stat().st_size
    while file.stat().st_size == size:
        assert all(process.is_alive() for process in racing), "a racer ended by itself"
        time.sleep(0.001)


def _started(place: str, file: Path, first: int) -> Any:
    process = PROCESSES.Process(target=answer_until_killed, args=(place, str(file), first))
    process.start()
    return process


def _kill(processes: list[Any]) -> None:
    for process in processes:
        process.kill()
    for process in processes:
        process.join(timeout=60)
        assert process.exitcode == -9, "a racer ended by itself"


def verdict(place: str, outcome: Race) -> Counter[str]:
    """Check that nothing was overdrawn, every answer has its record, and the chain is whole; return figures."""
    with Ledger(place) as ledger:
        assert ledger.check() == []
        recorded = {account.dataset: ledger.entries(account.dataset) for account in ledger.accounts()}
    purposes = [entry.purpose for entries in recorded.values() for entry in entries]
    assert len(set(purposes)) == len(purposes)
    assert len(set(outcome.answered)) == len(outcome.answered)
    assert set(outcome.answered) <= set(purposes)
    # A kill loses one answer at most, and a budget refuses only when all of it is recorded.
    assert len(purposes) - len(outcome.answered) <= outcome.kills
    assert all(len(recorded[name]) == FIT for name in outcome.refused)
    assert all(len(entries) <= FIT for entries in recorded.values())
    return Counter(kills=outcome.kills, budgets=len(recorded), answers=len(outcome.answered), records=len(purposes))
