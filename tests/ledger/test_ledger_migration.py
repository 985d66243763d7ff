"""A ledger of an older version is brought up to date once, as a whole, by whoever comes first."""

from __future__ import annotations

import hashlib
import re
import sqlite3
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest
from ledger_servers import PROCESSES, fresh_database, spend_many

import dpselect as dps
from dpselect.ledger import Budget, Ledger, schema

DUMP = (Path(__file__).parent / "ledger_version_1.sql").read_text()
SECOND = (Path(__file__).parent / "ledger_version_2.sql").read_text()
HEADS = {
    "books": "934c5ceb9103f8a9a7a60a11b4b3308ef023c7293e6891022fd715fa989ba678",
    "empty": "3679578a2c8a43cacc74c9275a88931b9be3639a3996a3ce961c50bbac019ecc",
    "films": "94b1f66716b669d911dd4fb4e04bf91ed11b6d85373549e31967412e27eb27d1",
}


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A file that the first version of the tables is in."""
    file = tmp_path / "old.sqlite"
    connection = sqlite3.connect(file)
    connection.executescript(DUMP)
    connection.close()
    return file


def old_on_server(server: str, dump: str = DUMP) -> str:
    """Return a place on the server that the first version of the tables is in, or another one."""
    import psycopg

    place = fresh_database(server)
    source = sqlite3.connect(":memory:")
    source.executescript(dump)
    with psycopg.connect(place.replace("+psycopg", ""), autocommit=True) as target:
        for table in ("dpselect_ledger", "dpselect_accounts", "dpselect_entries"):
            (made,) = re.findall(rf"CREATE TABLE {table} \(.*?\n\)", dump, re.DOTALL)
            target.execute(made.replace("DOUBLE", "DOUBLE PRECISION"))
            for row in source.execute(f"SELECT * FROM {table}"):
                is_boolean = "secure BOOLEAN" in made
                values = [bool(part) if is_boolean and at == 9 else part for at, part in enumerate(row)]
                target.execute(f"INSERT INTO {table} VALUES ({', '.join(['%s'] * len(row))})", values)
    source.close()
    return place


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
def place(request: pytest.FixtureRequest, old: Path) -> str:
    """Where a ledger of the first version is: a file, or a database on the server."""
    return str(old) if request.param == "sqlite" else old_on_server(request.getfixturevalue("postgresql_server"))


def test_a_ledger_of_the_first_version_says_the_same_as_before_and_goes_on(place: str) -> None:
    with Ledger(place) as ledger:
        assert {account.dataset: account.head for account in ledger.accounts()} == HEADS
        assert ledger.check() == []
        assert ledger.check("films", HEADS["films"]) == ledger.check(head=HEADS["empty"]) == []
        assert ledger.remaining("books") == Budget(1.5)
        assert [entry.secure for entry in ledger.entries("films")] == [True, False, True]
        assert ledger.entries("films")[2].purpose == "naïve ☕"
        for dataset in HEADS:
            ledger.spend(dataset, dps.Guarantee(0.125))
        ledger.create("new", epsilon=1.0)
        assert ledger.check() == []
        assert ledger.remaining("books") == Budget(1.375)


def test_what_was_there_is_chained_in_the_order_of_time(old: Path) -> None:
    times, seal = {}, ""
    with Ledger(old) as ledger:
        for account in ledger.accounts():
            times[account.created] = account.genesis
            times.update({entry.time.isoformat(): entry.hash for entry in ledger.entries(account.dataset)})
        for event, time in enumerate(sorted(times), 1):
            seal = hashlib.sha256(f"{seal} {event} {times[time]}".encode()).hexdigest()
        assert len(times) == 7
        assert ledger.head() == seal


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_a_ledger_of_the_second_version_keeps_its_hashes_and_learns_to_keep_answers(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    place = str(tmp_path / "second.sqlite")
    if kind == "postgresql":
        place = old_on_server(request.getfixturevalue("postgresql_server"), SECOND)
    else:
        connection = sqlite3.connect(place)
        connection.executescript(SECOND)
        connection.close()
    head = "b95f60b04f75f7d77bab7c748214b966ccc4921bdb158c4855705a01dc461240"
    with Ledger(place) as ledger:
        assert ledger.head() == head
        assert ledger.check(head=head) == []
        assert [entry.purpose for entry in ledger.entries("films")] == ["first", "seeded", "naïve ☕"]
        assert [entry.once for entry in ledger.entries("films")] == [None] * 3
        charge = ledger.spend_once("films", dps.Guarantee(0.5), "a", {"k": 1})
        assert ledger.keep_answer(charge.entry, {"items": [1]}) == ledger.answer("films", "a") == {"items": [1]}
        assert ledger.check(head=head) == []


def test_a_version_that_was_lowered_is_told(tmp_path: Path) -> None:
    file = tmp_path / "new.sqlite"
    with Ledger(file) as ledger:
        ledger.create("films", epsilon=1.0)
    for version in range(1, schema.VERSION):
        with sqlite3.connect(file) as connection:
            connection.execute(f"UPDATE dpselect_ledger SET version = {version}")
        connection.close()
        with pytest.raises(dps.SourceError, match=f"its tables have version {version}, which is not true"):
            Ledger(file).remaining("films")


@pytest.mark.slow
def test_the_tables_become_those_of_a_new_ledger(old: Path, tmp_path: Path) -> None:
    new = tmp_path / "new.sqlite"
    for file in (old, new):
        with Ledger(file) as ledger:
            ledger.create("any", epsilon=1.0)
    assert described(old) == described(new)
    connection = sqlite3.connect(old)
    with pytest.raises(sqlite3.IntegrityError, match="CHECK"):
        connection.execute("UPDATE dpselect_entries SET secure = 2")
    connection.close()


def described(file: Path) -> list[object]:
    connection = sqlite3.connect(file)
    names = sorted(name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'"))
    found: list[object] = []
    for name in names:
        found += [name, connection.execute(f"PRAGMA table_info({name})").fetchall()]
        found += connection.execute(f"PRAGMA foreign_key_list({name})").fetchall()
    found += connection.execute("SELECT name, tbl_name FROM sqlite_master WHERE type = 'index' ORDER BY 1").fetchall()
    connection.close()
    return found


@pytest.mark.parametrize(
    ("edit", "place"),
    [
        ("UPDATE dpselect_entries SET purpose = 'x' WHERE sequence = 2", ("films", 2)),
        ("UPDATE dpselect_accounts SET epsilon = 99 WHERE dataset = 'empty'", ("empty", None)),
        ("DELETE FROM dpselect_entries WHERE dataset = 'books'", ("books", 1)),
    ],
)
def test_what_was_changed_before_is_found_afterwards(edit: str, place: tuple[str, int | None], old: Path) -> None:
    with sqlite3.connect(old) as connection:
        connection.execute(edit)
    connection.close()
    with Ledger(old) as ledger:
        assert place in [(fault.dataset, fault.sequence) for fault in ledger.check()]


@pytest.mark.slow
def test_processes_that_open_an_old_ledger_at_once_change_it_once(place: str) -> None:
    with ProcessPoolExecutor(8, mp_context=PROCESSES) as pool:
        results = list(pool.map(spend_many, [place] * 16, range(16), [2] * 16, [0.125] * 16, timeout=120))
    with Ledger(place) as ledger:
        assert len(ledger.entries("films")) == 3 + 32
        assert {one for hashes, _ in results for one in hashes} <= {entry.hash for entry in ledger.entries("films")}
        assert ledger.check() == []


NEWER = """
import sys
import sqlalchemy as sql
from dpselect.ledger import Ledger, schema
schema.VERSION = schema.VERSION + 1
change = sql.text("ALTER TABLE dpselect_accounts ADD COLUMN colour TEXT")
schema.MIGRATIONS[schema.VERSION - 1] = lambda link: link.execute(change)
print(Ledger(sys.argv[1]).remaining("films").epsilon)
"""


@pytest.mark.slow
def test_an_open_ledger_refuses_to_go_on_once_a_newer_program_has_changed_the_tables(place: str) -> None:
    with Ledger(place) as ledger:
        ledger.spend("films", dps.Guarantee(0.125))
        line = [sys.executable, "-c", NEWER, place]
        subprocess.run(line, check=True, capture_output=True, timeout=120)
        actions = (
            lambda: ledger.spend("films", dps.Guarantee(0.125)),
            lambda: ledger.create("more", epsilon=1.0),
            lambda: ledger.remaining("films"),
            ledger.check,
            ledger.head,
        )
        for action in actions:
            with pytest.raises(dps.SourceError, match=f"version {schema.VERSION + 1}, and this dpselect knows"):
                action()


def test_an_open_ledger_brings_tables_up_to_date_that_became_older(old: Path) -> None:
    with Ledger(old) as ledger:
        ledger.remaining("films")
        connection = sqlite3.connect(old)
        for table in ("entries", "accounts", "ledger"):
            connection.execute(f"DROP TABLE dpselect_{table}")
        connection.executescript(DUMP)
        connection.close()
        ledger.spend("films", dps.Guarantee(0.125))
        assert len(ledger.entries("films")) == 4
        assert ledger.check() == []


@pytest.mark.slow
def test_users_of_the_server_may_still_do_what_they_could(postgresql_server: str) -> None:
    import psycopg

    place = old_on_server(postgresql_server)
    with psycopg.connect(place.replace("+psycopg", ""), autocommit=True) as owner:
        owner.execute("DROP ROLE IF EXISTS reader")
        owner.execute("CREATE ROLE reader")
        (name,) = owner.execute("SELECT current_schema()").fetchone() or ("",)
        owner.execute(f"GRANT USAGE ON SCHEMA {name} TO reader")
        owner.execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA {name} TO reader")
    with Ledger(f"{place}%20-crole%3Dreader") as ledger:
        with pytest.raises(dps.SourceError, match="may not be used by this user"):
            ledger.remaining("books")
        with Ledger(place) as owned:
            owned.remaining("books")
        assert ledger.remaining("books") == Budget(1.5)
