"""A key in the ledger: one charge, one answer, and nothing of another question."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from ledger_files import tamper
from ledger_servers import fresh_database

import dpselect as dps
from dpselect.ledger import Budget, Ledger, schema

CHART = {"k": 3, "where": "year = 2026"}
COST = dps.Guarantee(0.25)


@pytest.fixture(params=["sqlite", "postgresql"])
def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    """A ledger with two data sets, in a file and on a server."""
    place: Any = tmp_path / "budget.sqlite"
    if request.param == "postgresql":
        place = fresh_database(request.getfixturevalue("postgresql_server"))
    with Ledger(place) as opened:
        opened.create("films", epsilon=1.0)
        opened.create("books", epsilon=1.0)
        yield opened


def test_a_key_is_charged_once_and_answered_once(ledger: Ledger) -> None:
    first = ledger.spend_once("films", COST, "week 46", CHART, "chart")
    assert first.answer is None
    assert ledger.answer("films", "week 46") is None
    again = ledger.spend_once("films", COST, "week 46", dict(reversed(CHART.items())))
    assert again == first
    assert ledger.keep_answer(first.entry, {"items": ["Up"]}) == {"items": ["Up"]}
    # Whoever drew another answer meanwhile must discard it.
    assert ledger.keep_answer(again.entry, {"items": ["Heat"]}) == {"items": ["Up"]}
    assert ledger.spend_once("films", COST, "week 46", CHART).answer == {"items": ["Up"]}
    assert ledger.answer("films", "week 46") == {"items": ["Up"]}
    assert ledger.remaining("films") == Budget(0.75)
    (entry,) = ledger.entries("films")
    assert (entry.once, entry.answered, entry.purpose) == ("week 46", True, "chart")
    assert ledger.account("films").count == 2
    assert ledger.check() == []


def test_another_question_under_a_key_is_refused_and_told_nothing(ledger: Ledger) -> None:
    charge = ledger.spend_once("films", COST, "week 46", CHART)
    for answered in (False, True):
        if answered:
            ledger.keep_answer(charge.entry, {"items": ["Up"]})
        for other in ({**CHART, "where": "year = 2025"}, {}, {**CHART, "more": None}):
            with pytest.raises(dps.KeyReused) as refused:
                ledger.spend_once("films", COST, "week 46", other)
            said = "another question was asked under this key; ask the same question, or choose another key"
            assert str(refused.value) == f"once 'week 46': {said}"
    assert ledger.remaining("films") == Budget(0.75)


def test_a_key_belongs_to_its_data_set(ledger: Ledger) -> None:
    for dataset, item in (("films", "Up"), ("books", "Emma")):
        charge = ledger.spend_once(dataset, COST, "week 46", CHART)
        ledger.keep_answer(charge.entry, {"items": [item]})
    assert ledger.answer("films", "week 46") == {"items": ["Up"]}
    assert ledger.answer("books", "week 46") == {"items": ["Emma"]}
    assert ledger.remaining("books") == ledger.remaining("films") == Budget(0.75)


def test_a_budget_that_is_used_up_still_gives_stored_answers(ledger: Ledger) -> None:
    charge = ledger.spend_once("films", dps.Guarantee(1.0), "week 46", CHART)
    with pytest.raises(dps.BudgetExceeded):
        ledger.spend_once("films", COST, "week 47", CHART)
    ledger.keep_answer(charge.entry, {"items": ["Up"]})
    assert ledger.spend_once("films", dps.Guarantee(1.0), "week 46", CHART).answer == {"items": ["Up"]}
    with pytest.raises(dps.BudgetExceeded):
        ledger.spend_once("films", COST, "week 47", CHART)
    assert [entry.once for entry in ledger.entries("films")] == ["week 46"]


def test_answers_are_entries_that_cost_nothing_and_are_not_listed(ledger: Ledger) -> None:
    for number in range(4):
        charge = ledger.spend_once("films", dps.Guarantee(2.0**-6), f"week {number}", CHART)
        if number % 2:
            ledger.keep_answer(charge.entry, {"items": [number]})
    ledger.spend("films", dps.Guarantee(2.0**-6), "without a key")
    statement = ledger.statement("films", last=3)
    assert [(entry.once, entry.answered) for entry in statement.entries] == [
        ("week 2", False),
        ("week 3", True),
        (None, False),
    ]
    assert (statement.account.count, statement.answers, statement.releases) == (7, 2, 5)
    assert statement.remaining == Budget(1 - 5 * 2.0**-6)
    assert [entry.sequence for entry in ledger.entries("films")] == [1, 2, 4, 5, 7]
    data = [entry.to_dict() for entry in statement.entries]
    assert [one.get("answered") for one in data] == [False, True, None]


def test_the_ledger_keeps_a_salted_hash_of_the_question_and_not_its_text(tmp_path: Path) -> None:
    file = tmp_path / "budget.sqlite"
    with Ledger(file) as ledger:
        ledger.create("films", epsilon=1.0)
        for key in ("a", "b"):
            ledger.spend_once("films", COST, key, CHART)
    connection = sqlite3.connect(file)
    rows = connection.execute("SELECT * FROM dpselect_entries").fetchall()
    first, second = (question for (question,) in connection.execute("SELECT question FROM dpselect_entries"))
    connection.close()
    assert first != second
    assert [len(part) for part in first.split(":")] == [32, 64]
    assert "2026" not in "".join(str(cell) for row in rows for cell in row[3:7])


@pytest.mark.parametrize("key", ["", "  ", "a\nb", "x" * 201, 7, None])
def test_a_key_is_a_text_that_can_be_shown(key: Any, tmp_path: Path) -> None:
    with Ledger(tmp_path / "budget.sqlite") as ledger:
        ledger.create("films", epsilon=1.0)
        with pytest.raises(dps.InvalidInput, match="once must be a text of 1 to 200 printable characters"):
            ledger.spend_once("films", COST, key, CHART)
        assert ledger.entries("films") == []


def test_an_answer_without_its_charge_is_not_kept(ledger: Ledger) -> None:
    plain = ledger.spend("films", COST)
    keyed = ledger.spend_once("films", COST, "week 46", CHART).entry
    elsewhere = ledger.spend_once("books", COST, "week 47", CHART).entry
    forged = (replace(keyed, once="week 47"), replace(keyed, hash="0" * 64), replace(elsewhere, dataset="films"))
    for entry in (plain, *forged):
        with pytest.raises(dps.InvalidInput, match="must be an entry from `spend_once` of this ledger"):
            ledger.keep_answer(entry, {"items": []})
    with pytest.raises(dps.InvalidInput, match="answer"):
        ledger.keep_answer(keyed, ["no mapping"])  # type: ignore[arg-type]
    assert ledger.account("films").count == 2


def answered(folder: Path) -> Path:
    """Return the file of a ledger with a charge, its answer, and a charge without an answer."""
    file = folder / "budget.sqlite"
    file.unlink(missing_ok=True)
    with Ledger(file) as ledger:
        ledger.create("films", epsilon=1.0)
        charge = ledger.spend_once("films", COST, "week 46", CHART)
        ledger.keep_answer(charge.entry, {"items": ["Up"]})
        ledger.spend_once("films", COST, "week 47", CHART)
    return file


@pytest.mark.parametrize("column", ["answer", "once", "question", "kind", "hash"])
def test_an_answer_or_a_question_that_was_edited_is_found_and_not_given(column: str, tmp_path: Path) -> None:
    for sequence in (1, 2):
        file = answered(tmp_path)
        tamper(file, f"UPDATE dpselect_entries SET {column} = 'another' WHERE sequence = {sequence}")
        with Ledger(file) as ledger:
            assert ("films", sequence) in [(fault.dataset, fault.sequence) for fault in ledger.check()]
            if column != "once":
                with pytest.raises(dps.SourceError, match="changed from outside"):
                    ledger.spend_once("films", COST, "week 46", CHART)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"kind": "gift"}, "neither a charge nor an answer"),
        ({"kind": "answer", "answer": "{}", "question": ""}, "an answer that was not charged before"),
        ({"once": "week 46"}, "a second charge under its key"),
        ({"once": "week 46", "kind": "answer", "answer": "{}", "question": ""}, "a second answer under its key"),
        ({"question": ""}, "lacks its question or its answer"),
        ({"answer": "{}"}, "lacks its question or its answer"),
    ],
)
def test_entries_that_no_release_can_have_written_are_faults_even_with_right_hashes(
    changes: dict[str, str], problem: str, tmp_path: Path
) -> None:
    import sqlalchemy as sql

    from dpselect.ledger.chain import Record

    file = answered(tmp_path)
    engine = sql.create_engine(f"sqlite:///{file}")
    with engine.begin() as connection:
        connection.exec_driver_sql("DROP INDEX dpselect_once")
        (row,) = connection.execute(sql.select(schema.entries).where(schema.entries.c.sequence == 3))
        fields = {**row._mapping, **changes}
        fields["hash"] = Record(**fields).expected_hash()
        connection.execute(schema.entries.update().where(schema.entries.c.sequence == 3).values(**fields))
        connection.execute(schema.accounts.update().values(head=fields["hash"]))
    engine.dispose()
    with Ledger(file) as ledger:
        assert [fault.sequence for fault in ledger.check("films") if problem in fault.problem] == [3]


def test_the_database_itself_refuses_a_second_charge_or_answer_under_a_key(tmp_path: Path) -> None:
    file = answered(tmp_path)
    copy = "INSERT INTO dpselect_entries SELECT dataset, 9, {} FROM dpselect_entries WHERE sequence = {}"
    connection = sqlite3.connect(file)
    columns = ", ".join(column.name for column in schema.entries.c if column.name not in ("dataset", "sequence"))
    for sequence in (1, 2):
        with pytest.raises(sqlite3.IntegrityError, match="UNIQUE"):
            connection.execute(copy.format(columns, sequence))
    connection.close()
