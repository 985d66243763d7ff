"""The steps from each version of the tables to the next. A step, once published, is never edited."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import sqlalchemy as sql

from dpselect.errors import SourceError
from dpselect.privacy.ledger.chain import digest

Step = Callable[[sql.Connection], None]

_AGREED = ("dataset", "epsilon", "delta", "rho", "protects", "neighbours", "composition", "created")
_ENTRY = (
    "dataset, sequence, time, purpose, parameters, guarantee, epsilon, delta, rho, secure, spent_epsilon, "
    "spent_delta, spent_rho, agreed, previous, hash"
)

# Columns cannot be changed in SQLite, so that the tables are made anew. In PostgreSQL that would lose who may use them.
_TO_2_SQLITE = (
    "ALTER TABLE dpselect_entries RENAME TO dpselect_entries_1",
    "ALTER TABLE dpselect_accounts RENAME TO dpselect_accounts_1",
    "ALTER TABLE dpselect_ledger RENAME TO dpselect_ledger_1",
    "CREATE TABLE dpselect_ledger (version INTEGER NOT NULL, events INTEGER NOT NULL, seal TEXT NOT NULL)",
    "CREATE TABLE dpselect_accounts (dataset TEXT NOT NULL PRIMARY KEY, epsilon DOUBLE NOT NULL, "
    "delta DOUBLE NOT NULL, rho DOUBLE NOT NULL, protects TEXT NOT NULL, neighbours TEXT NOT NULL, "
    "composition TEXT NOT NULL, created TEXT NOT NULL, count INTEGER NOT NULL, head TEXT NOT NULL, "
    "event INTEGER NOT NULL, seal TEXT NOT NULL)",
    "CREATE TABLE dpselect_entries (dataset TEXT NOT NULL REFERENCES dpselect_accounts (dataset), "
    "sequence INTEGER NOT NULL, time TEXT NOT NULL, purpose TEXT NOT NULL, parameters TEXT NOT NULL, "
    "guarantee TEXT NOT NULL, epsilon DOUBLE NOT NULL, delta DOUBLE NOT NULL, rho TEXT NOT NULL, "
    "secure INTEGER NOT NULL CHECK (secure IN (0, 1)), spent_epsilon TEXT NOT NULL, spent_delta TEXT NOT NULL, "
    "spent_rho TEXT NOT NULL, agreed TEXT NOT NULL, previous TEXT NOT NULL, hash TEXT NOT NULL, "
    "event INTEGER NOT NULL, seal TEXT NOT NULL, PRIMARY KEY (dataset, sequence)) WITHOUT ROWID",
    "INSERT INTO dpselect_ledger SELECT version, 0, '' FROM dpselect_ledger_1",
    f"INSERT INTO dpselect_accounts SELECT {', '.join(_AGREED)}, count, head, 0, '' FROM dpselect_accounts_1",
    f"INSERT INTO dpselect_entries SELECT {_ENTRY}, 0, '' FROM dpselect_entries_1",
    "DROP TABLE dpselect_entries_1",
    "DROP TABLE dpselect_accounts_1",
    "DROP TABLE dpselect_ledger_1",
)
_TO_2_POSTGRESQL = (
    "ALTER TABLE dpselect_entries ALTER COLUMN secure TYPE INTEGER USING secure::integer, ADD CHECK (secure IN (0, 1))",
    *(
        f"ALTER TABLE {table} ADD COLUMN {number} INTEGER NOT NULL DEFAULT 0, ADD COLUMN seal TEXT NOT NULL DEFAULT ''"
        for table, number in (
            ("dpselect_ledger", "events"),
            ("dpselect_accounts", "event"),
            ("dpselect_entries", "event"),
        )
    ),
    *(
        f"ALTER TABLE {table} ALTER COLUMN {number} DROP DEFAULT, ALTER COLUMN seal DROP DEFAULT"
        for table, number in (
            ("dpselect_ledger", "events"),
            ("dpselect_accounts", "event"),
            ("dpselect_entries", "event"),
        )
    ),
)


def mislabelled(version: object) -> SourceError:
    """Return the error for tables whose version is not the one that the ledger says."""
    return SourceError(
        f"ledger: it was changed from outside: it says that its tables have version {version}, and they have not; "
        "nothing was released. Restore a copy"
    )


def _to_2(connection: sql.Connection) -> None:
    """Let `secure` be 0 or 1 and nothing else, and tie all that is there into one chain, in the order of time."""
    from dpselect.privacy.ledger.tip import Tip

    if any(column["name"] == "seal" for column in sql.inspect(connection).get_columns("dpselect_ledger")):
        # Chaining anew what was chained already would hide that its end was cut off.
        raise mislabelled(1)
    for statement in _TO_2_SQLITE if connection.dialect.name == "sqlite" else _TO_2_POSTGRESQL:
        connection.exec_driver_sql(statement)
    accounts = connection.exec_driver_sql(f"SELECT {', '.join(_AGREED)} FROM dpselect_accounts")
    found = [(str(row.created), row.dataset, 0, digest(dict(row._mapping))) for row in accounts]
    entries = connection.exec_driver_sql("SELECT time, dataset, sequence, hash FROM dpselect_entries")
    found += [(str(row.time), row.dataset, row.sequence, str(row.hash)) for row in entries]
    tip = Tip()
    creations: list[dict[str, Any]] = []
    spends: list[dict[str, Any]] = []
    for _, dataset, sequence, hash_of_record in sorted(found):
        event, seal = tip.add(hash_of_record)
        values = {"place": dataset, "number": sequence, "event": event, "seal": seal}
        (spends if sequence else creations).append(values)
    change = "SET event = :event, seal = :seal WHERE dataset = :place"
    if creations:
        connection.execute(sql.text(f"UPDATE dpselect_accounts {change}"), creations)
    if spends:
        connection.execute(sql.text(f"UPDATE dpselect_entries {change} AND sequence = :number"), spends)
    connection.execute(
        sql.text("UPDATE dpselect_ledger SET events = :events, seal = :seal"), {"events": tip.events, "seal": tip.seal}
    )


STEPS: dict[int, Step] = {1: _to_2}
"""STEPS[n] changes the tables of version n into those of version n + 1."""
