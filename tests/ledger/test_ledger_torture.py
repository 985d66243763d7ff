"""Many processes, killed at any moment, on a file and on a real server: nothing lost, nothing overdrawn."""

from __future__ import annotations

import multiprocessing
import os
import random
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from ledger_race import race, verdict
from ledger_servers import (
    PROCESSES,
    answer_until_killed,
    create_one,
    fresh_database,
    roomy_server,
    spend_many,
    spend_together,
)

import dpselect as dps
from dpselect.ledger import Budget, Ledger

pytestmark = pytest.mark.slow


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a ledger can be made: a file, or an empty database on the server."""
    if request.param == "sqlite":
        return str(tmp_path / "budget.sqlite")
    return fresh_database(request.getfixturevalue("postgresql_server"))


def test_hundreds_of_spends_from_many_processes_never_overdraw_together(place: str) -> None:
    """200 releases fit, 320 are asked for: exactly 200 are recorded, each once, whoever comes first."""
    workers, times, epsilon = 8, 40, 2.0**-8
    total = 200 * epsilon
    with Ledger(place) as ledger:
        ledger.create("films", epsilon=total)
    with ProcessPoolExecutor(workers, mp_context=PROCESSES) as pool:
        jobs = [pool.submit(spend_many, place, worker, times, epsilon) for worker in range(workers)]
        with Ledger(place) as watcher:
            while not all(job.done() for job in jobs):
                # Whoever looks meanwhile sees a whole record, never one half written.
                assert watcher.check() == []
                statement = watcher.statement("films", last=None)
                assert len(statement.entries) == statement.account.count
                time.sleep(0.01)
        results = [job.result() for job in jobs]
    answered = [one for hashes, _ in results for one in hashes]
    with Ledger(place) as ledger:
        entries = ledger.entries("films")
        assert ledger.check() == []
        assert ledger.remaining("films") == Budget(0.0)
    assert len(answered) == len(set(answered)) == 200
    assert sorted(answered) == sorted(entry.hash for entry in entries)
    assert sum(refused for _, refused in results) == workers * times - 200
    assert sum(Fraction(entry.guarantee.epsilon) for entry in entries) == Fraction(total)


@pytest.mark.long
@pytest.mark.xdist_group("crowds")  # two hundred processes take 18 GiB: one such test at a time
@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_two_hundred_processes_at_once_never_overdraw_together(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """All have the ledger open before the first spends, and until the last has spent.

    400 releases are asked for and 267 fit. What a process was told is what is recorded, no more and no less.
    """
    spenders, times, fit = 200, 2, 267
    place = str(tmp_path / "budget.sqlite")
    if kind == "postgresql":
        place = fresh_database(request.getfixturevalue("roomy"))
    answers = tmp_path / "answers"
    with Ledger(place) as ledger:
        ledger.create("films", epsilon=float(fit))
    everyone = PROCESSES.Barrier(spenders)
    processes = [
        PROCESSES.Process(target=spend_together, args=(place, number, times, everyone, str(answers)))
        for number in range(spenders)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join(timeout=300)
    assert [process.exitcode for process in processes] == [0] * spenders
    told = answers.read_text().splitlines()
    with Ledger(place) as ledger:
        recorded = ledger.entries("films")
        assert ledger.remaining("films") == Budget(0.0)
        assert ledger.check() == []
    assert len({entry.purpose for entry in recorded}) == fit
    assert sorted(told) == sorted([entry.hash for entry in recorded] + ["refused"] * (spenders * times - fit))


@pytest.fixture(scope="module")
def roomy() -> Iterator[str]:
    """A server of its own for as many connections."""
    if sys.version_info >= (3, 13):
        pytest.importorskip("pgserver", reason="pgserver has no wheels for this version of Python")
    with roomy_server() as url:
        yield url


def test_threads_share_a_ledger(place: str) -> None:
    with Ledger(place) as ledger:
        ledger.create("films", epsilon=50.0)

        def one(_: int) -> bool:
            try:
                ledger.spend("films", dps.Guarantee(1.0))
            except dps.BudgetExceeded:
                return False
            return True

        with ThreadPoolExecutor(8) as pool:
            assert sum(pool.map(one, range(80))) == 50
        assert ledger.check() == []


@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_a_forked_child_opens_its_own_connection(place: str) -> None:
    ledger = Ledger(place)
    ledger.create("films", epsilon=10.0)
    ledger.spend("films", dps.Guarantee(1.0))
    process = multiprocessing.get_context("fork").Process(target=_spend_once, args=(ledger,))
    process.start()
    ledger.spend("films", dps.Guarantee(1.0))
    process.join(timeout=60)
    assert process.exitcode == 0
    assert ledger.remaining("films") == Budget(7.0)
    assert ledger.check() == []
    ledger.close()


def _spend_once(ledger: Ledger) -> None:
    ledger.spend("films", dps.Guarantee(1.0))


def test_creating_at_the_same_moment_makes_one_ledger_and_one_data_set_of_each_name(place: str) -> None:
    with ProcessPoolExecutor(8, mp_context=PROCESSES) as pool:
        names = ["films", "films", "films", "films", "a", "b", "c", "d"] * 2
        outcomes = list(pool.map(create_one, [place] * len(names), names, timeout=120))
    made = [name for name, outcome in zip(names, outcomes, strict=True) if outcome == "created"]
    assert sorted(made) == ["a", "b", "c", "d", "films"]
    assert set(outcomes) == {"created", "dataset"}
    with Ledger(place) as ledger:
        assert [account.dataset for account in ledger.accounts()] == ["a", "b", "c", "d", "films"]
        assert ledger.check() == []


def test_a_process_killed_at_any_moment_leaves_a_record_for_every_answer(place: str, tmp_path: Path) -> None:
    """Spenders run in a loop and are killed at random points; an answer is written only after its spend returned."""
    chance = random.Random(2026)
    with Ledger(place) as ledger:
        ledger.create("films", epsilon=1000.0)
    files = [tmp_path / f"answers {number}" for number in range(40)]
    for first in range(0, len(files), 2):
        pair = files[first : first + 2]
        running = [PROCESSES.Process(target=answer_until_killed, args=(place, str(file))) for file in pair]
        for process in running:
            process.start()
        for process, file in zip(running, pair, strict=True):
            # Every fourth pair is killed as it starts, the others while they spend.
            while first % 8 and not (file.exists() and os.path.getsize(file)):
                assert process.is_alive()
                time.sleep(0.001)
            time.sleep(chance.uniform(0.0, 0.03))
            process.kill()
        for process in running:
            process.join(timeout=60)
            assert process.exitcode == -9
    answers = [line for file in files if file.exists() for line in file.read_text().splitlines()]
    with Ledger(place) as ledger:
        recorded = {entry.hash for entry in ledger.entries("films")}
        assert set(answers) <= recorded
        assert ledger.check() == []
        # Each kill can lose one answer, and never more than that.
        assert len(recorded) - len(answers) <= len(files)
        ledger.spend("films", dps.Guarantee(1.0))
    assert len(answers) >= len(files) // 2


@pytest.mark.long
@pytest.mark.xdist_group("crowds")  # two hundred processes take 18 GiB: one such test at a time
@pytest.mark.parametrize(("kind", "kills"), [("sqlite", 1000), ("postgresql", 400)])
def test_forty_processes_never_overdraw_the_last_of_a_budget_however_they_are_killed(
    kind: str, kills: int, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Every answer that got out is recorded, every budget that refused is used up, and the chain is whole."""
    place = str(tmp_path / "budget.sqlite")
    if kind == "postgresql":
        place = fresh_database(request.getfixturevalue("roomy"))
    figures = verdict(place, race(place, tmp_path / "answers", kills, seed=2026))
    print(kind, dict(figures))
    assert figures["kills"] >= kills


def test_a_lost_connection_is_told_and_the_next_spend_opens_another(postgresql_server: str) -> None:
    import psycopg

    with Ledger(fresh_database(postgresql_server)) as ledger:
        ledger.create("films", epsilon=10.0)
        ledger.spend("films", dps.Guarantee(1.0))
        with psycopg.connect(postgresql_server, autocommit=True) as other:
            other.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
            )
        with pytest.raises(dps.SourceError, match="nothing was released"):
            ledger.spend("films", dps.Guarantee(1.0))
        ledger.spend("films", dps.Guarantee(1.0))
        assert ledger.remaining("films") == Budget(8.0)
        assert ledger.check() == []


def test_a_server_that_does_not_wait_for_its_disk_is_made_to(postgresql_server: str) -> None:
    with Ledger(fresh_database(postgresql_server, "synchronous_commit=off")) as ledger:
        ledger.create("films", epsilon=1.0)
        show = "SHOW synchronous_commit"
        setting = ledger._store().write(lambda link, _: link.exec_driver_sql(show).scalar(), lambda *_: None)
        assert setting == "on"


def test_a_user_of_the_server_who_may_only_add_can_spend_and_cannot_remove(postgresql_server: str) -> None:
    import psycopg

    place = fresh_database(postgresql_server)
    with Ledger(place) as ledger:
        ledger.create("films", epsilon=10.0)
    with psycopg.connect(place.replace("+psycopg", ""), autocommit=True) as owner:
        owner.execute("CREATE ROLE clerk")
        (schema,) = owner.execute("SELECT current_schema()").fetchone() or ("",)
        owner.execute(f"GRANT USAGE ON SCHEMA {schema} TO clerk")
        owner.execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO clerk")
        owner.execute("GRANT INSERT ON dpselect_entries TO clerk")
        owner.execute("GRANT UPDATE (count, head) ON dpselect_accounts TO clerk")
        owner.execute("GRANT UPDATE (events, seal) ON dpselect_ledger TO clerk")
    with Ledger(f"{place}%20-crole%3Dclerk") as ledger:
        ledger.spend("films", dps.Guarantee(1.0))
        assert ledger.check() == []
        for statement in ("DELETE FROM dpselect_entries", "UPDATE dpselect_accounts SET epsilon = 99"):
            with pytest.raises(dps.SourceError, match="may not be used by this user"):
                ledger._store().write(partial(_executed, statement), lambda *_: None)
        assert ledger.remaining("films") == Budget(9.0)


@pytest.mark.parametrize(("constraint", "deferred"), [("", ""), ("CONSTRAINT", "DEFERRABLE INITIALLY DEFERRED")])
def test_nothing_is_released_if_a_trigger_of_the_server_undoes_what_was_written(
    constraint: str, deferred: str, postgresql_server: str
) -> None:
    """A deferred trigger runs in the commit, when the transaction can no longer see what it does."""
    import psycopg

    place = fresh_database(postgresql_server)
    with Ledger(place) as ledger:
        ledger.create("films", epsilon=10.0)
        with psycopg.connect(place.replace("+psycopg", ""), autocommit=True) as owner:
            owner.execute(
                "CREATE FUNCTION forget() RETURNS trigger LANGUAGE plpgsql AS "
                "'BEGIN DELETE FROM dpselect_entries WHERE sequence = NEW.sequence; RETURN NULL; END'"
            )
            owner.execute(
                f"CREATE {constraint} TRIGGER forget AFTER INSERT ON dpselect_entries {deferred} "
                "FOR EACH ROW EXECUTE FUNCTION forget()"
            )
        with pytest.raises(dps.SourceError, match="did not keep what was written; nothing was released"):
            dps.select({"tea": 4, "milk": 2}, k=1, epsilon=1.0, ledger=ledger, dataset="films")
        assert ledger.check() != []


def _executed(statement: str, link: Any, _: Any) -> None:
    link.exec_driver_sql(statement)


def test_numbers_and_texts_come_back_from_the_database_as_they_went_in(place: str) -> None:
    guarantee = dps.Guarantee(0.1 + 0.2, 5e-324)
    parameters = {"text": "naïve ☕ \\ \" '", "nested": {"tenth": 0.1, "none": None, "list": [1, 2.5, True]}}
    with Ledger(place) as ledger:
        ledger.create("Größe ☕", epsilon=1e300, delta=0.1)
        ledger.spend("Größe ☕", guarantee, "naïve ☕; DROP TABLE", parameters)
        (entry,) = ledger.entries("Größe ☕")
        assert (entry.guarantee, entry.purpose, entry.parameters) == (guarantee, "naïve ☕; DROP TABLE", parameters)
        assert ledger.check() == []
        assert ledger.account("Größe ☕").total == Budget(1e300, 0.1)
