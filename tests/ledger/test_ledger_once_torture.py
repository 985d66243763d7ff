"""Processes that are killed at any moment while they ask under the same keys: one charge and one answer for each."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest
from ledger_once_race import COST, EVEN, race, verdict
from ledger_servers import PROCESSES, fresh_database, roomy_server

import dpselect as dps
from dpselect.ledger import Budget, Ledger

pytestmark = pytest.mark.slow


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a ledger can be made: a file, or an empty database on the server."""
    if request.param == "sqlite":
        return str(tmp_path / "budget.sqlite")
    return fresh_database(request.getfixturevalue("postgresql_server"))


def ask_once(place: str, key: str) -> list[int]:
    """Ask from a process of its own."""
    return dps.select(EVEN, k=3, epsilon=COST, ledger=place, dataset="films", once=key).items


def test_callers_who_ask_at_the_same_time_get_the_same_answer(place: str) -> None:
    keys = [f"key {number}" for number in range(10) for _ in range(8)]
    with Ledger(place) as ledger:
        ledger.create("films", epsilon=10 * COST)
    with ProcessPoolExecutor(8, mp_context=PROCESSES) as pool:
        answers = list(pool.map(ask_once, [place] * len(keys), keys, timeout=120))
    by_key = {key: {tuple(items) for asked, items in zip(keys, answers, strict=True) if asked == key} for key in keys}
    assert all(len(given) == 1 for given in by_key.values())
    assert len({next(iter(given)) for given in by_key.values()}) == 10
    with Ledger(place) as ledger:
        assert ledger.remaining("films") == Budget(0.0)
        assert ledger.check() == []


def test_a_process_killed_at_any_moment_is_charged_once_and_answered_once(place: str, tmp_path: Path) -> None:
    figures = verdict(place, race(place, tmp_path / "answers", racers=4, kills=40, seed=2026))
    assert figures["kills"] >= 40
    assert figures["keys"] > 1


@pytest.mark.long
@pytest.mark.xdist_group("crowds")  # two hundred processes take 18 GiB: one such test at a time
@pytest.mark.parametrize(("kind", "kills"), [("sqlite", 1000), ("postgresql", 400)])
def test_twenty_processes_agree_on_every_answer_however_they_are_killed(
    kind: str, kills: int, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    place = str(tmp_path / "budget.sqlite")
    if kind == "postgresql":
        place = fresh_database(request.getfixturevalue("roomy"))
    figures = verdict(place, race(place, tmp_path / "answers", racers=20, kills=kills, seed=2026))
    print(kind, dict(figures))
    assert figures["kills"] >= kills
    assert figures["resumed"] > 0, "no kill hit the time between charge and answer, so nothing was tested"


@pytest.fixture(scope="module")
def roomy() -> Iterator[str]:
    """A server of its own for as many connections."""
    if sys.version_info >= (3, 13):
        pytest.importorskip("pgserver", reason="pgserver has no wheels for this version of Python")
    with roomy_server() as url:
        yield url
