"""Disks, files and tables that fail: nothing is half recorded, and the error says what to do."""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ledger_files import ledger_of_thirty

import dpselect as dps
from dpselect.ledger import Budget, Ledger, schema


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """The file of a ledger with 30 entries, of epsilon 1 each."""
    return ledger_of_thirty(tmp_path)


def spend_often(file: Path) -> None:
    with Ledger(file) as ledger:
        ledger.check()
        for _ in range(50):
            ledger.spend("films", dps.Guarantee(1.0), purpose="y" * 2000)


def in_a_child(program: str, *arguments: object) -> str:
    """Run a program that prints what it finds; its own failure fails the test."""
    start = "import os, sys\nimport dpselect as dps\nfrom dpselect.privacy import Ledger\n"
    line = [sys.executable, "-c", start + program, *map(str, arguments)]
    finished = subprocess.run(line, capture_output=True, text=True, check=False, timeout=120)
    assert finished.returncode == 0, finished.stderr
    return finished.stdout


FULL_DISK = """
import resource
ledger = Ledger(sys.argv[1])
ledger.remaining("films")
size = max(os.path.getsize(sys.argv[1] + end) for end in ("", "-wal") if os.path.exists(sys.argv[1] + end))
resource.setrlimit(resource.RLIMIT_FSIZE, (size + 20_000, resource.RLIM_INFINITY))
done = 0
try:
    for _ in range(200):
        ledger.spend("films", dps.Guarantee(1.0), purpose="y" * 2000)
        done += 1
except dps.SourceError as error:
    print(done, error)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
ledger.spend("films", dps.Guarantee(1.0))
"""


@pytest.mark.slow
def test_a_full_disk_refuses_the_release_and_loses_nothing(file: Path) -> None:
    done, _, message = in_a_child(FULL_DISK, file).partition(" ")
    assert "nothing was" in message
    assert "space" in message
    assert "released" in message
    with Ledger(file) as ledger:
        assert len(ledger.entries("films")) == 30 + int(done) + 1
        assert ledger.check() == []


def test_a_database_that_may_not_grow_refuses_the_release(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from dpselect.ledger import store

    prepare = store._prepare_sqlite

    def limited(connection: Any, record: Any) -> None:
        prepare(connection, record)
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        connection.execute(f"PRAGMA max_page_count = {pages + 1}")

    monkeypatch.setattr(store, "_prepare_sqlite", limited)
    with pytest.raises(dps.SourceError, match="no room on its disk; nothing was recorded"):
        spend_often(file)
    monkeypatch.undo()
    with Ledger(file) as ledger:
        assert ledger.check() == []
        assert ledger.spent("films") == Budget(float(len(ledger.entries("films"))))


READ_ONLY = """
Ledger(sys.argv[3]).create("films", epsilon=1.0)  # loads all modules, which another user might not be able to read
if os.getuid() == 0:
    os.setgid(65534)
    os.setuid(65534)
for action in (lambda: Ledger(sys.argv[1]).spend("films", dps.Guarantee(1.0)),
               lambda: Ledger(sys.argv[2]).create("films", epsilon=1.0)):
    try:
        print("spent", action())
    except dps.DpSelectError as error:
        print(error)
"""


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that other users of the machine can enter, but not write to."""
    folder = Path(tempfile.mkdtemp(prefix="dpselect-test-"))
    folder.chmod(0o755)
    yield folder
    folder.chmod(0o755)
    shutil.rmtree(folder)


@pytest.mark.slow
def test_a_ledger_that_may_not_be_written_refuses_the_release(file: Path, open_folder: Path) -> None:
    copy = open_folder / "budget.sqlite"
    shutil.copy(file, copy)
    copy.chmod(stat.S_IRUSR | stat.S_IRGRP | stat.S_IROTH)
    open_folder.chmod(0o555)
    spend, create = in_a_child(READ_ONLY, copy, open_folder / "new.sqlite", f"{file}.warm").splitlines()
    assert "permission to write to the file and its folder is needed" in spend
    assert "check permissions and disk space of its folder" in create
    assert sorted(path.name for path in open_folder.iterdir()) == ["budget.sqlite"]


@pytest.mark.parametrize("share", [0.02, 0.6])
def test_a_truncated_file_is_refused(share: float, file: Path) -> None:
    size = file.stat().st_size
    os.truncate(file, int(size * share))
    with pytest.raises(dps.DpSelectError, match=r"damaged|tables") as refusal:
        spend_often(file)
    assert "SELECT" not in str(refusal.value)


def test_a_file_that_is_no_ledger_is_refused_and_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "other.db"
    for content in (b"", b"film,viewer\nHeat,ann\n", b"\0" * 100_000, b"SQLite format 3\0" + b"x" * 5000):
        file.write_bytes(content)
        with Ledger(file) as ledger, pytest.raises(dps.DpSelectError, match="ledger"):
            ledger.spend("films", dps.Guarantee(1.0))
        assert file.read_bytes() == content


def test_a_newer_ledger_is_refused(file: Path) -> None:
    with sqlite3.connect(file) as connection:
        connection.execute("UPDATE dpselect_ledger SET version = 99")
    connection.close()
    known = f"version 99, and this dpselect knows versions up to {schema.VERSION}; use a newer"
    with pytest.raises(dps.SourceError, match=known):
        Ledger(file).remaining("films")


def test_an_older_ledger_is_brought_up_to_date_once_and_as_a_whole(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sqlalchemy as sql

    taken: list[int] = []

    def step(connection: sql.Connection) -> None:
        taken.append(1)
        connection.execute(sql.text("ALTER TABLE dpselect_accounts ADD COLUMN colour TEXT"))

    def failing(connection: sql.Connection) -> None:
        step(connection)
        raise dps.SourceError("the power went out")

    now = schema.VERSION
    monkeypatch.setattr(schema, "VERSION", now + 2)
    monkeypatch.setattr(schema, "MIGRATIONS", {now: lambda _: taken.append(0), now + 1: failing})
    with pytest.raises(dps.SourceError, match="power"):
        Ledger(file).remaining("films")
    assert versions(file) == (now, False)
    monkeypatch.setattr(schema, "MIGRATIONS", {now: lambda _: taken.append(0), now + 1: step})
    taken.clear()
    for _ in range(2):
        with Ledger(file) as ledger:
            assert ledger.remaining("films") == Budget(970.0)
            assert ledger.check() == []
    assert taken == [0, 1]
    assert versions(file) == (now + 2, True)


def versions(file: Path) -> tuple[int, bool]:
    with sqlite3.connect(file) as connection:
        (version,) = connection.execute("SELECT version FROM dpselect_ledger").fetchone()
        columns = [row[1] for row in connection.execute("PRAGMA table_info(dpselect_accounts)")]
    connection.close()
    return version, "colour" in columns


def test_a_commit_waits_for_the_disk(file: Path) -> None:
    """What the journal and the synchronous setting must be for a commit to survive a power cut."""
    with Ledger(file) as ledger:
        assert settings(ledger) == ["wal", 3, 1, 1]


def test_a_commit_waits_for_the_disk_in_a_file_that_was_there_before(tmp_path: Path) -> None:
    file = tmp_path / "touched.sqlite"
    file.touch()
    with Ledger(file) as ledger:
        ledger.create("films", epsilon=1.0)
        assert settings(ledger) == ["wal", 3, 1, 1]
        ledger.spend("films", dps.Guarantee(0.5))
    with sqlite3.connect(file) as connection:
        assert connection.execute("PRAGMA journal_mode = DELETE").fetchone() == ("delete",)
    connection.close()
    with Ledger(file) as ledger:
        assert settings(ledger) == ["wal", 3, 1, 1]
        assert ledger.remaining("films") == Budget(0.5)


def test_a_file_whose_log_cannot_be_switched_on_now_is_used_all_the_same(file: Path) -> None:
    other = sqlite3.connect(file, isolation_level=None)
    other.execute("PRAGMA journal_mode = DELETE")
    other.execute("BEGIN")
    other.execute("SELECT * FROM dpselect_accounts").fetchall()
    with Ledger(file) as ledger:
        assert ledger.remaining("films") == Budget(970.0)
        assert settings(ledger) == ["delete", 3, 1, 1]
        assert ledger._store().read(lambda link: link.exec_driver_sql("PRAGMA busy_timeout").scalar()) == 60_000
        other.close()
        ledger.spend("films", dps.Guarantee(1.0))
        assert ledger.remaining("films") == Budget(969.0)


def settings(ledger: Ledger) -> list[Any]:
    pragmas = ("journal_mode", "synchronous", "fullfsync", "foreign_keys")
    return ledger._store().read(lambda link: [link.exec_driver_sql(f"PRAGMA {one}").scalar() for one in pragmas])
