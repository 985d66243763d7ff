"""Processes that all ask the same questions under the same keys, and are killed at random meanwhile."""

from __future__ import annotations

import itertools
import json
import os
import random
import time
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ledger_servers import PROCESSES

import dpselect as dps
from dpselect.ledger import Ledger

EVEN = [0] * 1000
"""Equal scores: two draws of three of a thousand items agree with probability below 1e-8."""

COST = 2.0**-10


def ask_until_killed(place: str, file: str, first: int) -> None:
    """Ask one question after another, and write down every answer that comes back, and to whom."""
    answers = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    ledger, own = Ledger(place), str(os.getpid())
    for number in itertools.count(first):
        kept: dict[str, Any] = {"ledger": ledger, "dataset": "films", "once": f"key {number}", "purpose": own}
        release = dps.select(EVEN, k=3, epsilon=COST, **kept)
        os.write(answers, f"{number} {own} {json.dumps(release.items)}\n".encode())


@dataclass(frozen=True)
class OnceRace:
    """What came of a race: how many were killed, and for each key which process got which answer."""

    kills: int
    answers: dict[str, dict[str, list[int]]]


def race(place: str, file: Path, *, racers: int, kills: int, seed: int) -> OnceRace:
    """Let processes race through the keys, each replaced when it is killed, until that many were.

    Newcomers start at the latest key that was answered, so that all of them ask for the same keys at the same time. A
    few are killed soon after an answer, and now and then all of them, whichever is about to store one.
    """
    chance = random.Random(seed)
    with Ledger(place) as ledger:
        ledger.create("films", epsilon=1e6)
    file.touch()
    racing = [_started(place, file, 0) for _ in range(racers)]
    killed = 0
    while killed < kills:
        for _ in range(chance.randint(1, racers)):
            _wait_for_more(file, racing)
        time.sleep(chance.uniform(0.0, 0.02))
        number = racers if chance.random() < 0.05 else chance.randint(1, racers // 4)
        chance.shuffle(racing)
        _kill(racing[:number])
        killed += number
        latest = int(file.read_text().splitlines()[-1].split()[0])
        racing[:number] = [_started(place, file, latest) for _ in range(number)]
    _kill(racing)
    answers: dict[str, dict[str, list[int]]] = defaultdict(dict)
    for line in file.read_text().splitlines():
        number, process, items = line.split(" ", 2)
        answers[f"key {number}"][process] = json.loads(items)
    return OnceRace(killed + racers, answers)


def verdict(place: str, outcome: OnceRace) -> Counter[str]:
    """Check that every key was charged once and answered once, to everybody alike; return figures."""
    with Ledger(place) as ledger:
        assert ledger.check() == []
        entries = ledger.entries("films")
        stored = {entry.once: ledger.answer("films", entry.once or "") for entry in entries}
        assert len(stored) == len(entries), "a key was charged twice"
        assert ledger.spent("films").epsilon == len(entries) * COST
        for key, given in outcome.answers.items():
            answer = stored[key]
            assert answer is not None, "an answer got out before it was stored"
            assert all(items == answer["items"] for items in given.values()), "two answers to one question"
        # What a kill left between charge and answer is drawn by whoever asks next, at no cost.
        open_keys = [key for key, answer in stored.items() if answer is None]
        for key in open_keys:
            dps.select(EVEN, k=3, epsilon=COST, ledger=ledger, dataset="films", once=key)
        assert ledger.spent("films").epsilon == len(entries) * COST
        assert all(entry.answered for entry in ledger.entries("films"))
        assert ledger.check() == []
    # Whoever charged these was killed before its answer got out, and others had to answer.
    resumed = [entry for entry in entries if entry.purpose not in outcome.answers[entry.once or ""]]
    given = sum(map(len, outcome.answers.values()))
    return Counter(kills=outcome.kills, keys=len(entries), answers=given, resumed=len(resumed))


def _wait_for_more(file: Path, racing: list[Any]) -> None:
    size = file.stat().st_size
    while file.stat().st_size == size:
        assert all(process.is_alive() for process in racing), "a racer ended by itself"
        time.sleep(0.001)


def _started(place: str, file: Path, first: int) -> Any:
    process = PROCESSES.Process(target=ask_until_killed, args=(place, str(file), first))
    process.start()
    return process


def _kill(processes: list[Any]) -> None:
    for process in processes:
        process.kill()
    for process in processes:
        process.join(timeout=60)
        assert process.exitcode == -9, "a racer ended by itself"
