"""Whatever is done to a ledger from outside is found, with the place where it was done."""

from __future__ import annotations

import hashlib
import sqlite3
from pathlib import Path

import pytest
from ledger_files import ENTRIES, found, ledger_of_two, rewrite, rewrite_seals, tamper

import dpselect as dps
from dpselect.ledger import Ledger, schema


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """The file of a ledger with six entries for films, and two for books."""
    return ledger_of_two(tmp_path)


def test_an_untouched_ledger_has_no_fault(file: Path) -> None:
    assert found(file) == []


EDITS = {
    "time": "'1999-01-01T00:00:00.000000+00:00'",
    "purpose": "'another'",
    "parameters": "'{}'",
    "guarantee": "'{\"epsilon\":0.0001}'",
    "epsilon": "0.0001",
    "delta": "0",
    "rho": "'1/1000'",
    "secure": "0",
    "spent_epsilon": "'0'",
    "spent_delta": "'nonsense'",
    "spent_rho": "'1'",
    "agreed": "'0000'",
    "hash": "'0000'",
    "previous": "'0000'",
    "event": "4",
    "seal": "'0000'",
    "kind": "'answer'",
    "once": "'key'",
    "question": "'0000'",
    "answer": "'{}'",
    "period": "'2026-W46'",
    "period_spent": "'0 0 0'",
}


@pytest.mark.parametrize("sequence", [1, 3, ENTRIES], ids=["first", "middle", "last"])
def test_an_edit_of_any_field_of_any_entry_is_found_where_it_is(sequence: int, tmp_path: Path) -> None:
    for column in EDITS:
        file = ledger_of_two(tmp_path)
        where = f"WHERE dataset = 'films' AND sequence = {sequence}"
        tamper(file, f"UPDATE dpselect_entries SET {column} = {EDITS[column]} {where}")
        faults = found(file)
        assert ("films", sequence) in faults or (column == "event" and faults), column
        if column not in ("event", "seal", "hash"):
            assert all(dataset == "films" for dataset, _ in faults)


def test_an_edit_of_the_place_of_a_data_set_in_the_ledger_is_found(tmp_path: Path) -> None:
    for change in ("event = 3", "event = 'x'", "seal = ''", "seal = 'x'"):
        file = ledger_of_two(tmp_path)
        tamper(file, f"UPDATE dpselect_accounts SET {change} WHERE dataset = 'books'")
        assert {("books", None), ("", None)} & set(found(file))


def test_an_edit_of_the_end_of_the_ledger_is_found(tmp_path: Path) -> None:
    for change in ("events = 9", "events = 11", "seal = ''"):
        file = ledger_of_two(tmp_path)
        tamper(file, f"UPDATE dpselect_ledger SET {change}")
        assert found(file) == [("", None)]


def test_a_release_is_seeded_or_not_and_nothing_else(tmp_path: Path) -> None:
    for value in ("2", "'x'", "NULL", "0.5"):
        file = ledger_of_two(tmp_path)
        edit = f"UPDATE dpselect_entries SET secure = {value} WHERE dataset = 'films' AND sequence = 3"
        with pytest.raises(sqlite3.IntegrityError):
            tamper(file, edit)
        if value != "NULL":
            tamper(file, "PRAGMA ignore_check_constraints = ON", edit)
            assert found(file) == [("films", 3)]


def test_every_column_is_covered_by_the_edits_or_by_the_moves() -> None:
    assert set(schema.entries.c.keys()) == {*EDITS, "dataset", "sequence"}


def test_a_removed_entry_is_found(tmp_path: Path) -> None:
    for sequence in (1, 3):
        file = ledger_of_two(tmp_path)
        tamper(file, f"DELETE FROM dpselect_entries WHERE dataset = 'films' AND sequence = {sequence}")
        with Ledger(file) as ledger:
            (fault,) = ledger.check("films")
        assert (fault.sequence, fault.problem) == (sequence + 1, f"entry {sequence} is missing before it")


def test_removed_last_entries_are_found(file: Path) -> None:
    tamper(file, "DELETE FROM dpselect_entries WHERE dataset = 'films' AND sequence >= 5")
    with Ledger(file) as ledger:
        own, whole = ledger.check()
    assert str(own) == "films, entry 5: entries 5 to 6 are missing at the end"
    assert str(whole) == "the ledger: records 7 to 8 are missing: entries or data sets were removed"


def test_all_entries_removed_are_found(file: Path) -> None:
    tamper(file, "DELETE FROM dpselect_entries WHERE dataset = 'books'")
    assert found(file) == [("books", 1), ("", None)]


def test_a_count_that_was_lowered_with_the_entries_is_found_by_the_head(file: Path) -> None:
    tamper(
        file,
        "DELETE FROM dpselect_entries WHERE dataset = 'films' AND sequence = 6",
        "UPDATE dpselect_accounts SET count = 5 WHERE dataset = 'films'",
    )
    assert found(file) == [("films", 5), ("", None)]


def test_reordered_entries_are_found(file: Path) -> None:
    move = "UPDATE dpselect_entries SET sequence = {} WHERE dataset = 'films' AND sequence = {}"
    tamper(file, move.format(99, 2), move.format(2, 4), move.format(4, 99))
    assert {("films", 2), ("films", 4)} <= set(found(file))


def test_an_entry_moved_to_another_data_set_is_found(file: Path) -> None:
    tamper(file, "UPDATE dpselect_entries SET dataset = 'books', sequence = 3 WHERE dataset = 'films' AND sequence = 6")
    assert {("books", 3), ("films", 6)} <= set(found(file))


CHANGES = ["epsilon = 99", "delta = 0.5", "rho = 7", "protects = 'a row'", "neighbours = 'x'", "composition = 'none'"]


def test_a_changed_total_or_unit_is_found_with_and_without_entries(tmp_path: Path) -> None:
    for change in CHANGES:
        file = ledger_of_two(tmp_path)
        with Ledger(file) as ledger:
            ledger.create("empty", epsilon=1.0)
        tamper(file, f"UPDATE dpselect_accounts SET {change}")
        assert {("films", 1), ("books", 1), ("empty", None)} <= set(found(file))


def test_entries_whose_data_set_was_removed_are_found(file: Path) -> None:
    tamper(file, "DELETE FROM dpselect_accounts WHERE dataset = 'films'")
    assert found(file) == [("films", None), ("", None)]


def test_an_edit_with_its_own_hash_made_right_is_found_at_the_next_entry(file: Path) -> None:
    """Whoever knows how entries are hashed must rewrite every later entry and the head as well."""
    rewrite(file, first=3, last=3)
    assert ("films", 4) in found(file)


def test_a_history_rewritten_to_its_end_is_found_by_a_head_that_was_kept_elsewhere(file: Path) -> None:
    with Ledger(file) as ledger:
        head = ledger.account("films").head
        whole = ledger.head()
        assert ledger.check("films", head) == ledger.check("books", whole) == ledger.check(head=whole) == []
        assert ledger.check(head=ledger.entries("films")[1].hash) == []
        ledger.spend("books", dps.Guarantee(1.0))
        assert ledger.head() != whole
        assert ledger.check(head=whole) == []
    rewrite(file, first=3, last=ENTRIES)
    with Ledger(file) as ledger:
        assert ledger.check("films") == []
        assert {(fault.dataset, fault.sequence) for fault in ledger.check()} == {("films", n) for n in (3, 4, 5, 6)}
    rewrite_seals(file)
    with Ledger(file) as ledger:
        assert ledger.check() == []
        for one, dataset in ((head, "films"), (head, None), (whole, "books"), (whole, None)):
            (fault,) = ledger.check(dataset, one)
            assert "no longer in it" in fault.problem


def test_an_exchange_of_what_happened_first_among_data_sets_is_found(file: Path) -> None:
    tamper(
        file,
        "CREATE TEMP TABLE places AS SELECT dataset, event, seal FROM dpselect_accounts",
        "UPDATE dpselect_accounts SET (event, seal) = (SELECT event, seal FROM places "
        "WHERE places.dataset <> dpselect_accounts.dataset)",
    )
    assert found(file) == [("books", None), ("films", None)]


def test_a_ledger_that_was_set_back_as_a_whole_is_found_by_a_head_kept_elsewhere_only(file: Path) -> None:
    with Ledger(file) as ledger:
        head = ledger.head()
    tamper(
        file,
        "DELETE FROM dpselect_entries WHERE dataset = 'books' AND sequence = 2",
        "UPDATE dpselect_accounts SET count = 1, head = (SELECT hash FROM dpselect_entries "
        "WHERE dataset = 'books' AND sequence = 1) WHERE dataset = 'books'",
        "UPDATE dpselect_ledger SET events = 9, seal = (SELECT seal FROM dpselect_entries WHERE event = 9)",
    )
    with Ledger(file) as ledger:
        assert ledger.check() == []
        (fault,) = ledger.check(head=head)
    assert str(fault) == "the ledger: the given hash is no longer in it: entries were replaced or removed"


def test_nonsense_with_right_hashes_is_a_fault_and_no_crash(tmp_path: Path) -> None:
    for column in ("spent_epsilon", "spent_rho", "time", "guarantee", "parameters"):
        file = ledger_of_two(tmp_path)
        rewrite(file, first=3, last=ENTRIES, **{column: "nonsense"})
        with Ledger(file) as ledger:
            assert [fault.sequence for fault in ledger.check("films")] == [3, 4, 5, 6]
            with pytest.raises(dps.SourceError, match="cannot be read"):
                ledger.statement("films")


def test_an_entry_that_names_another_total_than_the_one_before_is_found(file: Path) -> None:
    rewrite(file, first=5, last=ENTRIES, agreed="0000")
    rewrite_seals(file)
    assert found(file) == [("films", 5)]


def test_the_hash_is_the_documented_one(file: Path) -> None:
    """SHA-256 of sorted, compact JSON of all stored fields but the hash itself: anyone can check it."""
    with sqlite3.connect(file) as connection:
        text = connection.execute(
            "SELECT json_object('agreed', agreed, 'dataset', dataset, 'delta', delta, 'epsilon', epsilon, "
            "'guarantee', guarantee, "
            "'parameters', parameters, 'previous', previous, 'purpose', purpose, 'rho', rho, 'secure', json('true'), "
            "'sequence', sequence, 'spent_delta', spent_delta, 'spent_epsilon', spent_epsilon, "
            "'spent_rho', spent_rho, 'time', time), hash "
            "FROM dpselect_entries WHERE dataset = 'books' AND sequence = 2"
        ).fetchone()
    connection.close()
    assert hashlib.sha256(text[0].encode()).hexdigest() == text[1]
