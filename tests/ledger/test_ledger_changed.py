"""Nothing more is released from a ledger that was changed from outside."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ledger_files import found, ledger_of_two, tamper

import dpselect as dps
from dpselect.ledger import Ledger
from dpselect.ledger.store import LedgerStore


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """The file of a ledger with six entries for films, and two for books."""
    return ledger_of_two(tmp_path)


@pytest.mark.parametrize(
    "statements",
    [
        [
            "DELETE FROM dpselect_entries WHERE dataset = 'films' AND sequence = 6",
            "UPDATE dpselect_accounts SET count = 5, head = (SELECT hash FROM dpselect_entries "
            "WHERE dataset = 'films' AND sequence = 5) WHERE dataset = 'films'",
        ],
        [
            "DELETE FROM dpselect_entries WHERE dataset = 'films'",
            "DELETE FROM dpselect_accounts WHERE dataset = 'films'",
        ],
    ],
)
def test_an_end_cut_off_with_its_head_and_a_removed_data_set_are_found_and_nothing_more_is_released(
    statements: list[str], file: Path
) -> None:
    tamper(file, *statements)
    with Ledger(file) as ledger:
        faults = ledger.check()
        assert {fault.dataset for fault in faults} == {""}
        assert all("missing: entries or data sets were removed" in fault.problem for fault in faults)
        for action in (
            lambda: ledger.spend("books", dps.Guarantee(0.1)),
            lambda: ledger.create("new", epsilon=1.0),
        ):
            with pytest.raises(dps.SourceError, match=r"entries or data sets are missing.*ledger check"):
                action()


@pytest.mark.parametrize("version", ["1", "none"])
def test_a_cut_end_is_not_hidden_by_an_older_version_number(version: str, file: Path) -> None:
    """Bringing the tables up to date once more would chain anew whatever is left in them."""
    tamper(
        file,
        "DELETE FROM dpselect_entries WHERE dataset = 'films' AND sequence = 6",
        "UPDATE dpselect_accounts SET count = 5, head = (SELECT hash FROM dpselect_entries "
        "WHERE dataset = 'films' AND sequence = 5) WHERE dataset = 'films'",
        f"UPDATE dpselect_ledger SET version = '{version}'",
    )
    ledger = Ledger(file)
    for action in (lambda: ledger.spend("films", dps.Guarantee(0.1)), ledger.check):
        with pytest.raises(dps.SourceError, match=f"its tables have version {version}, which is not true"):
            action()


def test_an_account_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    for change in ("epsilon = 'x'", "count = 'x'", "count = 1.5", "head = 7", "rho = x'00'"):
        file = ledger_of_two(tmp_path)
        tamper(file, f"UPDATE dpselect_accounts SET {change} WHERE dataset = 'films'")
        with Ledger(file) as ledger:
            with pytest.raises(dps.SourceError, match=r"cannot be read|changed from outside"):
                ledger.spend("films", dps.Guarantee(0.1))
            with pytest.raises(dps.DpSelectError, match=r"cannot be read|has a data set of that name"):
                ledger.create("films", epsilon=1.0)


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM dpselect_entries WHERE dataset = 'films' AND sequence = 6",
        "UPDATE dpselect_entries SET spent_epsilon = '0' WHERE dataset = 'films' AND sequence = 6",
        "UPDATE dpselect_accounts SET count = 5 WHERE dataset = 'films'",
        "UPDATE dpselect_accounts SET head = 'x' WHERE dataset = 'films'",
    ],
)
def test_nothing_is_spent_from_a_record_whose_end_was_changed(statement: str, file: Path) -> None:
    tamper(file, statement)
    with Ledger(file) as ledger:
        with pytest.raises(dps.SourceError, match=r"'films' was changed from outside.*ledger check"):
            ledger.spend("films", dps.Guarantee(0.1))
        if "count" not in statement:  # with a wrong count nothing is released from any data set
            ledger.spend("books", dps.Guarantee(0.1))


def test_nothing_is_spent_from_a_ledger_whose_end_cannot_be_read(tmp_path: Path) -> None:
    for statement in (
        "UPDATE dpselect_ledger SET events = 'many'",
        "UPDATE dpselect_ledger SET seal = x'00'",
        "INSERT INTO dpselect_ledger VALUES (2, 0, '')",
    ):
        file = ledger_of_two(tmp_path)
        tamper(file, statement)
        with Ledger(file) as ledger, pytest.raises(dps.SourceError, match="where it ends cannot be read; nothing was"):
            ledger.spend("films", dps.Guarantee(0.1))


@pytest.mark.parametrize(
    "event",
    ["INSERT ON dpselect_entries", "UPDATE ON dpselect_accounts", "UPDATE ON dpselect_ledger"],
)
def test_nothing_is_released_if_the_database_drops_what_is_written(event: str, file: Path) -> None:
    tamper(file, f"CREATE TRIGGER forget BEFORE {event} BEGIN SELECT RAISE(IGNORE); END")
    with pytest.raises(dps.SourceError, match="did not keep what was written; nothing was released"):
        Ledger(file).spend("films", dps.Guarantee(0.1))
    assert found(file) == []


UNDONE = {
    "the entry is removed": (
        "INSERT ON dpselect_entries",
        "DELETE FROM dpselect_entries WHERE dataset = NEW.dataset AND sequence = NEW.sequence",
    ),
    "the sum of the entry is lowered": (
        "INSERT ON dpselect_entries",
        "UPDATE dpselect_entries SET spent_epsilon = '0' WHERE dataset = NEW.dataset AND sequence = NEW.sequence",
    ),
    "the purpose of the entry is changed": (
        "INSERT ON dpselect_entries",
        "UPDATE dpselect_entries SET purpose = 'none' WHERE dataset = NEW.dataset AND sequence = NEW.sequence",
    ),
    "the end of the data set is set back": (
        "UPDATE OF count ON dpselect_accounts",
        "UPDATE dpselect_accounts SET head = 'x', epsilon = 99 WHERE dataset = NEW.dataset",
    ),
    "the end of the ledger is set back": (
        "UPDATE OF seal ON dpselect_ledger",
        "UPDATE dpselect_ledger SET events = NEW.events - 1",
    ),
    "all of it is removed once it is whole": (
        "UPDATE OF seal ON dpselect_ledger",
        "DELETE FROM dpselect_entries WHERE dataset = 'films'; DELETE FROM dpselect_accounts WHERE dataset = 'films'",
    ),
}


@pytest.mark.parametrize("what", UNDONE)
def test_nothing_is_released_if_a_trigger_undoes_what_was_written(what: str, file: Path) -> None:
    """The statement that wrote it has succeeded by then, and so does the commit."""
    event, action = UNDONE[what]
    tamper(file, f"CREATE TRIGGER forget AFTER {event} BEGIN {action}; END")
    with Ledger(file) as ledger, pytest.raises(dps.SourceError, match="did not keep what was written; nothing was"):
        dps.select({"tea": 4, "milk": 2}, k=1, epsilon=0.1, ledger=ledger, dataset="films")
    assert found(file) != []


def test_a_trigger_that_sets_the_whole_ledger_back_after_each_spend_gives_no_free_answers(file: Path) -> None:
    """What it leaves is whole, so that no check can find it afterwards."""
    written = "FROM dpselect_entries WHERE event = NEW.events"
    tamper(
        file,
        "CREATE TRIGGER forget AFTER UPDATE OF seal ON dpselect_ledger BEGIN "
        f"UPDATE dpselect_accounts SET count = count - 1, head = (SELECT previous {written}) "
        f"WHERE dataset = (SELECT dataset {written}); DELETE {written}; "
        "UPDATE dpselect_ledger SET events = OLD.events, seal = OLD.seal; END",
    )
    for _ in range(3):
        with Ledger(file) as ledger, pytest.raises(dps.SourceError, match="did not keep what was written; nothing was"):
            dps.select({"tea": 4, "milk": 2}, k=1, epsilon=0.1, ledger=ledger, dataset="films")
    assert found(file) == []


@pytest.mark.parametrize(
    "action",
    [
        "DELETE FROM dpselect_accounts WHERE dataset = NEW.dataset",
        "UPDATE dpselect_accounts SET epsilon = 99 WHERE dataset = NEW.dataset",
    ],
)
def test_a_creation_that_a_trigger_changes_is_refused(action: str, file: Path) -> None:
    tamper(file, f"CREATE TRIGGER forget AFTER INSERT ON dpselect_accounts BEGIN {action}; END")
    with Ledger(file) as ledger, pytest.raises(dps.SourceError, match="did not keep what was written"):
        ledger.create("songs", epsilon=1.0)


def test_a_spend_is_confirmed_though_others_spend_before_it_is_looked_for(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    faster = [("films", 0.25), ("books", 0.5), ("films", 0.25)]
    look = LedgerStore._read_with_tip

    def overtaken(self: Any, work: Any) -> Any:
        while faster:
            name, epsilon = faster.pop()
            with Ledger(file) as other:
                other.spend(name, dps.Guarantee(epsilon))
        return look(self, work)

    with Ledger(file) as ledger:
        monkeypatch.setattr(LedgerStore, "_read_with_tip", overtaken)
        entry = ledger.spend("films", dps.Guarantee(0.125))
        assert entry.sequence == 7
        assert [one.guarantee.epsilon for one in ledger.entries("films")[6:]] == [0.125, 0.25, 0.25]
        assert ledger.check() == []


def test_a_raised_total_buys_nothing_while_there_is_no_entry(tmp_path: Path) -> None:
    with Ledger(tmp_path / "a") as ledger:
        ledger.create("d", epsilon=1.0)
        tamper(tmp_path / "a", "UPDATE dpselect_accounts SET epsilon = 99")
        with pytest.raises(dps.SourceError, match="changed from outside"):
            ledger.spend("d", dps.Guarantee(2.0))


CHANGES = ["epsilon = 99", "delta = 0.5", "protects = 'one row'", "composition = 'zcdp', rho = 9", "created = '0'"]


def test_nothing_is_spent_or_stated_under_a_total_or_unit_that_was_changed(tmp_path: Path) -> None:
    for change in CHANGES:
        file = ledger_of_two(tmp_path)
        tamper(file, f"UPDATE dpselect_accounts SET {change} WHERE dataset = 'films'")
        with Ledger(file) as ledger:
            with pytest.raises(dps.SourceError, match=r"'films' was changed from outside.*ledger check"):
                ledger.spend("films", dps.Guarantee(0.1))
            with pytest.raises(dps.SourceError, match=r"'films' was changed from outside.*ledger check"):
                ledger.remaining("films")
            ledger.spend("books", dps.Guarantee(0.1))
