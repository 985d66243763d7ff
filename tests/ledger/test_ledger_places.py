"""Where a ledger can be: paths of any spelling are one file each, and no message shows a password."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest
from ledger_files import ledger_of_thirty

import dpselect as dps
from dpselect.ledger import Budget, Ledger


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """The file of a ledger with 30 entries, of epsilon 1 each."""
    return ledger_of_thirty(tmp_path)


def test_a_mistyped_path_makes_no_file(tmp_path: Path) -> None:
    with pytest.raises(dps.InvalidInput, match="there is no ledger"):
        Ledger(tmp_path / "budgte.sqlite").spend("films", dps.Guarantee(1.0))
    with pytest.raises(dps.InvalidInput, match="existing folder"):
        Ledger(tmp_path / "none" / "budget.sqlite").create("films", epsilon=1.0)
    with pytest.raises(dps.DpSelectError):
        Ledger(tmp_path).create("films", epsilon=1.0)
    assert list(tmp_path.iterdir()) == []


def test_odd_file_names_are_file_names(tmp_path: Path) -> None:
    names = ["with space.db", "per%20cent.db", "question?.db", "hash#.db", "[a].db", "*.db", "ünï.db", "no-ending"]
    for name in names:
        with Ledger(tmp_path / name) as ledger:
            ledger.create("films", epsilon=1.0)
            ledger.spend("films", dps.Guarantee(1.0))
    assert {path.name for path in tmp_path.iterdir()} == set(names)


REFUSED: list[Any] = [
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
]


def test_places_that_cannot_hold_a_ledger_are_refused_without_showing_passwords() -> None:
    for place in REFUSED:
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
