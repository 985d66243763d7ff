"""Nothing more is released from a ledger that was changed from outside."""

from __future__ import annotations

from pathlib import Path

import pytest
from ledger_files import found, ledger_of_two, tamper

import dpselect as dps
from dpselect.privacy.ledger import Ledger


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


@pytest.mark.parametrize("version", ["1", "0", "-1", "none"])
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
        with pytest.raises(dps.SourceError, match=f"its tables have version {version}, and they have not"):
            action()


@pytest.mark.parametrize("change", ["epsilon = 'x'", "count = 'x'", "count = 1.5", "head = 7", "rho = x'00'"])
def test_an_account_that_cannot_be_read_is_told(change: str, file: Path) -> None:
    tamper(file, f"UPDATE dpselect_accounts SET {change} WHERE dataset = 'films'")
    with Ledger(file) as ledger, pytest.raises(dps.SourceError, match=r"cannot be read|changed from outside"):
        ledger.spend("films", dps.Guarantee(0.1))
    with Ledger(file) as ledger, pytest.raises(dps.DpSelectError, match=r"cannot be read|has a data set of that name"):
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


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE dpselect_ledger SET events = 'many'",
        "UPDATE dpselect_ledger SET seal = x'00'",
        "INSERT INTO dpselect_ledger VALUES (2, 0, '')",
    ],
)
def test_nothing_is_spent_from_a_ledger_whose_end_cannot_be_read(statement: str, file: Path) -> None:
    tamper(file, statement)
    with pytest.raises(dps.SourceError, match="where it ends cannot be read; nothing was released"):
        Ledger(file).spend("films", dps.Guarantee(0.1))


@pytest.mark.parametrize(
    "event",
    ["INSERT ON dpselect_entries", "UPDATE ON dpselect_accounts", "UPDATE ON dpselect_ledger"],
)
def test_nothing_is_released_if_the_database_drops_what_is_written(event: str, file: Path) -> None:
    tamper(file, f"CREATE TRIGGER forget BEFORE {event} BEGIN SELECT RAISE(IGNORE); END")
    with pytest.raises(dps.SourceError, match="did not keep what was written; nothing was released"):
        Ledger(file).spend("films", dps.Guarantee(0.1))
    assert found(file) == []


def test_a_raised_total_buys_nothing_while_there_is_no_entry(tmp_path: Path) -> None:
    with Ledger(tmp_path / "a") as ledger:
        ledger.create("d", epsilon=1.0)
        tamper(tmp_path / "a", "UPDATE dpselect_accounts SET epsilon = 99")
        with pytest.raises(dps.SourceError, match="changed from outside"):
            ledger.spend("d", dps.Guarantee(2.0))


@pytest.mark.parametrize(
    "change", ["epsilon = 99", "delta = 0.5", "protects = 'one row'", "composition = 'zcdp', rho = 9", "created = '0'"]
)
def test_nothing_is_spent_or_stated_under_a_total_or_unit_that_was_changed(change: str, file: Path) -> None:
    tamper(file, f"UPDATE dpselect_accounts SET {change} WHERE dataset = 'films'")
    with Ledger(file) as ledger:
        for action in (lambda: ledger.spend("films", dps.Guarantee(0.1)), lambda: ledger.remaining("films")):
            with pytest.raises(dps.SourceError, match=r"'films' was changed from outside.*ledger check"):
                action()
        ledger.spend("books", dps.Guarantee(0.1))
