"""Disks, files and servers that fail: nothing is half recorded, and the error says what to do."""

from __future__ import annotations

import os
import pickle
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

import dpselect as dps
from dpselect.privacy.ledger import Budget, Ledger, schema


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """The file of a ledger with some entries."""
    file = tmp_path / "budget.sqlite"
    with Ledger(file) as ledger:
        ledger.create("films", epsilon=1000.0)
        for _ in range(30):
            ledger.spend("films", dps.Guarantee(1.0), purpose="x" * 500)
    return file


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


def test_a_full_disk_refuses_the_release_and_loses_nothing(file: Path) -> None:
    done, _, message = in_a_child(FULL_DISK, file).partition(" ")
    assert "nothing was" in message
    assert "space" in message
    assert "released" in message
    with Ledger(file) as ledger:
        assert len(ledger.entries("films")) == 30 + int(done) + 1
        assert ledger.check() == []


def test_a_database_that_may_not_grow_refuses_the_release(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from dpselect.privacy.ledger import store

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


def test_a_ledger_that_may_not_be_written_refuses_the_release(file: Path, open_folder: Path) -> None:
    copy = open_folder / "budget.sqlite"
    shutil.copy(file, copy)
    copy.chmod(stat.S_IRUSR | stat.S_IRGRP | stat.S_IROTH)
    open_folder.chmod(0o555)
    spend, create = in_a_child(READ_ONLY, copy, open_folder / "new.sqlite", f"{file}.warm").splitlines()
    assert "permission to write to the file and its folder is needed" in spend
    assert "check permissions and disk space of its folder" in create
    assert sorted(path.name for path in open_folder.iterdir()) == ["budget.sqlite"]


@pytest.mark.parametrize("share", [0.02, 0.3, 0.6, 0.95])
def test_a_truncated_file_is_refused(share: float, file: Path) -> None:
    size = file.stat().st_size
    os.truncate(file, int(size * share))
    with pytest.raises(dps.DpSelectError, match=r"damaged|tables") as refusal:
        spend_often(file)
    assert "SELECT" not in str(refusal.value)


@pytest.mark.parametrize(
    "content", [b"", b"film,viewer\nHeat,ann\n", b"\0" * 100_000, b"SQLite format 3\0" + b"x" * 5000]
)
def test_a_file_that_is_no_ledger_is_refused_and_left_alone(content: bytes, tmp_path: Path) -> None:
    file = tmp_path / "other.db"
    file.write_bytes(content)
    with pytest.raises(dps.DpSelectError, match="ledger"):
        Ledger(file).spend("films", dps.Guarantee(1.0))
    assert file.read_bytes() == content


def test_a_mistyped_path_makes_no_file(tmp_path: Path) -> None:
    with pytest.raises(dps.InvalidInput, match="no ledger there"):
        Ledger(tmp_path / "budgte.sqlite").spend("films", dps.Guarantee(1.0))
    with pytest.raises(dps.InvalidInput, match="existing folder"):
        Ledger(tmp_path / "none" / "budget.sqlite").create("films", epsilon=1.0)
    with pytest.raises(dps.DpSelectError):
        Ledger(tmp_path).create("films", epsilon=1.0)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "name", ["with space.db", "per%20cent.db", "question?.db", "hash#.db", "[a].db", "*.db", "ünï.db", "no-ending"]
)
def test_odd_file_names_are_file_names(name: str, tmp_path: Path) -> None:
    with Ledger(tmp_path / name) as ledger:
        ledger.create("films", epsilon=1.0)
        ledger.spend("films", dps.Guarantee(1.0))
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize(
    "place",
    [
        "mysql://user:hunter2@host/db",
        "postgresql+psycopg2://user:hunter2@host/db",
        "postgresql://user:hunter2@host:port/db",
        "sqlite://",
        "sqlite:///:memory:",
        ":memory:",
        "",
        7,
        b"bytes",
        b"postgresql://user:hunter2@host/db",
        "postgresql://user:x:hunter2@host:hunter2/db",
        "postgresql:/user:hunter2@host/db",
        Path("postgresql://user:hunter2@host/db"),
        "POSTGRES+psycopg:user:hunter2",
        "mysql:/user:hunter2/db",
        "user:hunter2@host/db",
        "user:hun/hunter2@host/db",
        "//user:hunter2@host/db",
        "host=h user=u password=hunter2 dbname=d",
        "PASSWORD = hunter2",
        "host=hunter2 dbname=d",
        "dbname=d user=hunter2",
        "sqlite://hunter2/ledger.sqlite",
        "sqlite://user:hunter2@/ledger.sqlite",
        "hunter2\udcff.sqlite",
    ],
)
def test_places_that_cannot_hold_a_ledger_are_refused_without_showing_passwords(place: Any) -> None:
    with pytest.raises(dps.InvalidInput) as refusal:
        Ledger(place)
    assert refusal.value.argument == "ledger"
    error: BaseException | None = refusal.value
    while error is not None:
        assert "hunter2" not in str(error)
        error = error.__cause__ or error.__context__


def test_a_path_that_looks_like_a_connection_can_be_given_as_a_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a:b@c", "password=x"):
        for place in (f"./{name}", tmp_path / name):
            with Ledger(place) as ledger:
                ledger.create(f"films of {type(place).__name__}", epsilon=1.0)
    for name in ("user=5.sqlite", "me@home.sqlite", "12:30.sqlite"):
        with Ledger(name) as ledger:
            ledger.create("films", epsilon=1.0)
    assert len(list(tmp_path.iterdir())) == 5


def test_a_server_that_does_not_answer_is_told_without_its_address_and_password(tmp_path: Path) -> None:
    ledger = Ledger("postgresql+psycopg://someone:hunter2@127.0.0.1:1/shop?connect_timeout=5")
    with pytest.raises(dps.SourceError, match=r"nothing was released.*address, user and password") as refusal:
        ledger.spend("films", dps.Guarantee(1.0))
    error: BaseException | None = refusal.value
    while error is not None:
        assert "hunter2" not in str(error)
        assert "someone" not in str(error)
        error = error.__cause__ or error.__context__
    assert "hunter2" not in repr(ledger)


def test_nothing_is_released_from_a_file_that_was_replaced_while_it_was_open(file: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.sqlite"
    shutil.copy(file, copy)
    with Ledger(file) as ledger:
        ledger.spend("films", dps.Guarantee(1.0))
        for ending in ("-wal", "-shm"):
            Path(f"{file}{ending}").unlink()
        copy.replace(file)
        with pytest.raises(dps.SourceError, match="replaced or removed while it was open; nothing was released"):
            ledger.spend("films", dps.Guarantee(1.0))
        assert ledger.remaining("films") == Budget(970.0)
        ledger.spend("films", dps.Guarantee(1.0))
    with Ledger(file) as ledger:
        assert ledger.remaining("films") == Budget(969.0)
        assert ledger.check() == []


def test_nothing_is_released_from_a_file_that_was_removed_while_it_was_open(file: Path) -> None:
    with Ledger(file) as ledger:
        ledger.spend("films", dps.Guarantee(1.0))
        file.unlink()
        with pytest.raises(dps.SourceError, match="replaced or removed while it was open; nothing was released"):
            ledger.spend("films", dps.Guarantee(1.0))
        with pytest.raises(dps.InvalidInput, match="no ledger there"):
            ledger.spend("films", dps.Guarantee(1.0))


def test_nothing_is_released_if_the_file_is_removed_while_it_is_written(file: Path) -> None:
    with Ledger(file) as ledger:
        ledger.remaining("films")
        with pytest.raises(dps.SourceError, match="replaced or removed while it was open; nothing was released"):
            ledger._store().write(lambda *_: file.unlink())


@pytest.mark.parametrize("ending", ["-wal", "-shm"])
@pytest.mark.parametrize("replaced", [False, True])
def test_nothing_is_released_once_the_log_of_an_open_file_is_gone(ending: str, replaced: bool, file: Path) -> None:
    """SQLite would go on writing to the removed log, which no other process reads."""
    log = Path(f"{file}{ending}")
    with Ledger(file) as ledger:
        ledger.spend("films", dps.Guarantee(1.0))
        log.unlink()
        if replaced:
            log.touch()
        with pytest.raises(dps.SourceError, match=r"-wal or -shm file. was replaced or removed.*nothing was released"):
            ledger.spend("films", dps.Guarantee(1.0))


def test_nothing_is_released_if_the_log_is_removed_while_it_is_written(file: Path) -> None:
    with Ledger(file) as ledger:
        with pytest.raises(dps.SourceError, match=r"-wal or -shm file. was replaced or removed"):
            ledger._store().write(lambda *_: Path(f"{file}-wal").unlink())
        ledger.close()
        with pytest.raises(dps.SourceError, match=r"-wal or -shm file. was replaced or removed"):
            ledger._store().read(lambda _: Path(f"{file}-shm").unlink())


def test_a_process_notices_that_a_ledger_holds_less_than_it_has_seen(file: Path) -> None:
    """An older copy that is written over the open file, page by page, as `sqlite3 .restore` does."""
    copy = file.with_name("copy.sqlite")
    with sqlite3.connect(file) as source, sqlite3.connect(copy) as target:
        source.backup(target)
    with Ledger(file) as ledger:
        for _ in range(2):
            ledger.spend("films", dps.Guarantee(1.0))
        source.close()
        source = sqlite3.connect(file)
        target.backup(source)
        with Ledger(file) as other:
            other.spend("films", dps.Guarantee(1.0))
        with pytest.raises(dps.SourceError, match=r"lacks releases that were in it before.*nothing was released"):
            ledger.spend("films", dps.Guarantee(1.0))
        ledger.spend("films", dps.Guarantee(1.0))
        assert ledger.check() == []
    for connection in (source, target):
        connection.close()


def test_nothing_is_spent_from_a_file_that_has_two_names(file: Path, tmp_path: Path) -> None:
    second = tmp_path / "second.sqlite"
    with Ledger(file) as ledger:
        ledger.spend("films", dps.Guarantee(1.0))
        os.link(file, second)
        with Ledger(second) as other:
            for one in (ledger, other):
                with pytest.raises(dps.SourceError, match=r"second name .a hard link.*nothing was released"):
                    one.spend("films", dps.Guarantee(1.0))
        second.unlink()
        ledger.spend("films", dps.Guarantee(1.0))
        assert ledger.remaining("films") == Budget(968.0)


def test_nothing_is_released_if_the_file_gets_a_second_name_while_it_is_written(file: Path, tmp_path: Path) -> None:
    with Ledger(file) as ledger, pytest.raises(dps.SourceError, match="second name"):
        ledger._store().write(lambda *_: os.link(file, tmp_path / "second.sqlite"))


def test_the_draft_of_a_process_that_died_as_it_made_the_file_is_no_second_name(file: Path) -> None:
    draft, others = file.with_name(f".{file.name}.123.456"), file.with_name(f".{file.name}.123.457")
    others.write_text("of another file")
    os.link(file, draft)
    with Ledger(file) as ledger:
        ledger.spend("films", dps.Guarantee(1.0))
    assert not draft.exists()
    assert others.exists()


def test_a_symbolic_link_is_the_same_ledger(file: Path, tmp_path: Path) -> None:
    (tmp_path / "link.sqlite").symlink_to(file)
    with Ledger(file) as ledger, Ledger(tmp_path / "link.sqlite") as other:
        for one in (ledger, other, ledger):
            one.spend("films", dps.Guarantee(1.0))
        assert ledger.remaining("films") == other.remaining("films") == Budget(967.0)


def test_a_ledger_stays_the_same_one_when_the_folder_of_the_process_changes(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(file.parent)
    with Ledger(file.name) as ledger:
        ledger.spend("films", dps.Guarantee(1.0))
        monkeypatch.chdir(tmp_path.parent)
        ledger.spend("films", dps.Guarantee(1.0))
        ledger.close()
        ledger.spend("films", dps.Guarantee(1.0))
        with pickle.loads(pickle.dumps(ledger)) as same:
            same.spend("films", dps.Guarantee(1.0))
    with Ledger(file) as ledger:
        assert ledger.remaining("films") == Budget(966.0)


def test_a_newer_ledger_is_refused(file: Path) -> None:
    with sqlite3.connect(file) as connection:
        connection.execute("UPDATE dpselect_ledger SET version = 99")
    connection.close()
    with pytest.raises(dps.SourceError, match="version 99, and this dpselect knows versions up to 2; use a newer"):
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

    monkeypatch.setattr(schema, "VERSION", 4)
    monkeypatch.setattr(schema, "STEPS", {2: lambda _: taken.append(0), 3: failing})
    with pytest.raises(dps.SourceError, match="power"):
        Ledger(file).remaining("films")
    assert versions(file) == (2, False)
    monkeypatch.setattr(schema, "STEPS", {2: lambda _: taken.append(0), 3: step})
    taken.clear()
    for _ in range(2):
        with Ledger(file) as ledger:
            assert ledger.remaining("films") == Budget(970.0)
            assert ledger.check() == []
    assert taken == [0, 1]
    assert versions(file) == (4, True)


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
