"""A file that is replaced, removed or named twice while it is open: nothing is released from it."""

from __future__ import annotations

import os
import shutil
import sqlite3
from pathlib import Path

import pytest
from ledger_files import ledger_of_thirty

import dpselect as dps
from dpselect.ledger import Budget, Ledger


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """The file of a ledger with 30 entries, of epsilon 1 each."""
    return ledger_of_thirty(tmp_path)


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
        with pytest.raises(dps.InvalidInput, match="there is no ledger"):
            ledger.spend("films", dps.Guarantee(1.0))


def test_nothing_is_released_if_the_file_is_removed_while_it_is_written(file: Path) -> None:
    with Ledger(file) as ledger:
        ledger.remaining("films")
        with pytest.raises(dps.SourceError, match="replaced or removed while it was open; nothing was released"):
            ledger._store().write(lambda *_: file.unlink(), lambda *_: None)


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
            ledger._store().write(lambda *_: Path(f"{file}-wal").unlink(), lambda *_: None)
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
        ledger._store().write(lambda *_: os.link(file, tmp_path / "second.sqlite"), lambda *_: None)


def test_the_draft_of_a_process_that_died_as_it_made_the_file_is_no_second_name(file: Path) -> None:
    draft, others = file.with_name(f".{file.name}.123.456"), file.with_name(f".{file.name}.123.457")
    others.write_text("of another file")
    os.link(file, draft)
    with Ledger(file) as ledger:
        ledger.spend("films", dps.Guarantee(1.0))
    assert not draft.exists()
    assert others.exists()
