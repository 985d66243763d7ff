"""Files of ledgers to test with, and what a forger would do to them."""

from __future__ import annotations

import functools
import hashlib
import sqlite3
import tempfile
from pathlib import Path

import sqlalchemy as sql

import dpselect as dps
from dpselect.ledger import Ledger, schema
from dpselect.ledger.chain import Record

ENTRIES = 6


@functools.cache
def _thirty() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "budget.sqlite"
        with Ledger(file) as ledger:
            ledger.create("films", epsilon=1000.0)
            for _ in range(30):
                ledger.spend("films", dps.Guarantee(1.0), purpose="x" * 500)
        return file.read_bytes()


@functools.cache
def _two() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "budget.sqlite"
        with Ledger(file) as ledger:
            ledger.create("films", epsilon=10.0, delta=1e-3)
            ledger.create("books", epsilon=10.0)
            for number in range(ENTRIES):
                ledger.spend("films", dps.Guarantee(0.1 * (number + 1), 1e-6), f"purpose {number}", {"k": number})
            for _ in range(2):
                ledger.spend("books", dps.Guarantee(1.0))
        return file.read_bytes()


def ledger_of_thirty(folder: Path) -> Path:
    """Return the file of a ledger with 30 long entries, of epsilon 1 each."""
    file = folder / "budget.sqlite"
    file.write_bytes(_thirty())
    return file


def ledger_of_two(folder: Path) -> Path:
    """Return the file of a ledger with six entries for films, and two for books."""
    file = folder / "budget.sqlite"
    file.write_bytes(_two())
    return file


def tamper(file: Path, *statements: str) -> None:
    """Change the tables behind the back of the ledger."""
    connection = sqlite3.connect(file)
    try:
        with connection:
            for statement in statements:
                connection.execute(statement)
    finally:
        connection.close()


def found(file: Path) -> list[tuple[str, int | None]]:
    """Return the places of all faults that a check finds."""
    with Ledger(file) as ledger:
        return [(fault.dataset, fault.sequence) for fault in ledger.check()]


def rewrite(file: Path, first: int, last: int, **changes: str) -> None:
    """Change entries and make all hashes right again from one to another, as a forger would."""
    engine = sql.create_engine(f"sqlite:///{file}")
    table = schema.entries
    with engine.begin() as connection:
        previous = None
        for row in connection.execute(sql.select(table).where(table.c.dataset == "films").order_by("sequence")).all():
            if first <= row.sequence <= last:
                fields = {**row._mapping, "purpose": f"forged {row.sequence}", "previous": previous or row.previous}
                fields.update(changes)
                previous = Record(**fields).expected_hash()
                fields["hash"] = previous
                place = (table.c.dataset == "films") & (table.c.sequence == row.sequence)
                connection.execute(table.update().where(place).values(**fields))
        if last == ENTRIES:
            accounts = schema.accounts
            connection.execute(accounts.update().where(accounts.c.dataset == "films").values(head=previous))
    engine.dispose()


def rewrite_seals(file: Path) -> None:
    """Make the chain through the ledger as a whole right again, as a forger would."""
    accounts = {account.dataset: account.genesis for account in Ledger(file).accounts()}
    connection = sqlite3.connect(file)
    with connection:
        everything = connection.execute(
            "SELECT event, dataset, 0, NULL FROM dpselect_accounts UNION ALL "
            "SELECT event, dataset, sequence, hash FROM dpselect_entries ORDER BY 1"
        ).fetchall()
        seal = ""
        for event, dataset, sequence, own in everything:
            seal = hashlib.sha256(f"{seal} {event} {own or accounts[dataset]}".encode()).hexdigest()
            table = "dpselect_entries" if sequence else "dpselect_accounts"
            connection.execute(f"UPDATE {table} SET seal = ? WHERE event = ?", (seal, event))
        connection.execute("UPDATE dpselect_ledger SET seal = ?", (seal,))
    connection.close()
