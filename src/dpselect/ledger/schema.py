"""The tables of a ledger, and the migration from each version of them to the next.

A ledger stores the version of its tables. An older one is migrated, in one transaction, when it is opened; a newer one
is refused. A published migration is never edited.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import sqlalchemy as sql

from dpselect.errors import SourceError
from dpselect.ledger.chain import CHARGE, Tip, digest

VERSION = 4
"""The version that this package reads and writes."""

LOCK = 4_851_170_209
"""The advisory lock under which the tables are made and migrated in PostgreSQL."""

metadata = sql.MetaData()

ledger = sql.Table(
    "dpselect_ledger",
    metadata,
    sql.Column("version", sql.Integer, nullable=False),
    sql.Column("events", sql.Integer, nullable=False),
    sql.Column("seal", sql.Text, nullable=False),
)

accounts = sql.Table(
    "dpselect_accounts",
    metadata,
    sql.Column("dataset", sql.Text, primary_key=True),
    sql.Column("epsilon", sql.Double, nullable=False),
    sql.Column("delta", sql.Double, nullable=False),
    sql.Column("rho", sql.Double, nullable=False),
    sql.Column("protects", sql.Text, nullable=False),
    sql.Column("neighbours", sql.Text, nullable=False),
    sql.Column("composition", sql.Text, nullable=False),
    sql.Column("created", sql.Text, nullable=False),
    sql.Column("count", sql.Integer, nullable=False),
    sql.Column("head", sql.Text, nullable=False),
    sql.Column("event", sql.Integer, nullable=False),
    sql.Column("seal", sql.Text, nullable=False),
    sql.Column("every", sql.Text, nullable=False, server_default=""),
    sql.Column("lifetime", sql.Text, nullable=False, server_default=""),
)

entries = sql.Table(
    "dpselect_entries",
    metadata,
    # The primary key rules out two entries in the same place.
    sql.Column("dataset", sql.Text, sql.ForeignKey("dpselect_accounts.dataset"), primary_key=True),
    sql.Column("sequence", sql.Integer, primary_key=True, autoincrement=False),
    sql.Column("time", sql.Text, nullable=False),
    sql.Column("purpose", sql.Text, nullable=False),
    sql.Column("parameters", sql.Text, nullable=False),
    sql.Column("guarantee", sql.Text, nullable=False),
    sql.Column("epsilon", sql.Double, nullable=False),
    sql.Column("delta", sql.Double, nullable=False),
    sql.Column("rho", sql.Text, nullable=False),
    # A Boolean would read 2 and 'x' as true, and hide an edit.
    sql.Column("secure", sql.Integer, sql.CheckConstraint("secure IN (0, 1)"), nullable=False),
    sql.Column("spent_epsilon", sql.Text, nullable=False),
    sql.Column("spent_delta", sql.Text, nullable=False),
    sql.Column("spent_rho", sql.Text, nullable=False),
    sql.Column("agreed", sql.Text, nullable=False),
    sql.Column("previous", sql.Text, nullable=False),
    sql.Column("hash", sql.Text, nullable=False),
    sql.Column("event", sql.Integer, nullable=False),
    sql.Column("seal", sql.Text, nullable=False),
    sql.Column("kind", sql.Text, nullable=False, server_default=CHARGE),
    sql.Column("once", sql.Text, nullable=False, server_default=""),
    sql.Column("question", sql.Text, nullable=False, server_default=""),
    sql.Column("answer", sql.Text, nullable=False, server_default=""),
    sql.Column("period", sql.Text, nullable=False, server_default=""),
    sql.Column("period_spent", sql.Text, nullable=False, server_default=""),
    sqlite_with_rowid=False,  # one B-tree less to write in every spend
)

# Finds a key, and rules out a second charge or a second answer under it.
has_key = entries.c.once != sql.literal_column("''")
sql.Index(
    "dpselect_once",
    entries.c.dataset,
    entries.c.once,
    entries.c.kind,
    unique=True,
    sqlite_where=has_key,
    postgresql_where=has_key,
)

# Finds the last entry of a period.
has_period = entries.c.period != sql.literal_column("''")
sql.Index(
    "dpselect_period",
    entries.c.dataset,
    entries.c.period,
    entries.c.sequence,
    sqlite_where=has_period,
    postgresql_where=has_period,
)


def stored_version(connection: sql.Connection) -> int | None:
    """Return the version of the ledger in a database, or None if it holds none."""
    if not sql.inspect(connection).has_table(ledger.name):
        return None
    return connection.execute(sql.select(ledger.c.version)).scalars().first()


def prepare(connection: sql.Connection) -> None:
    """Make the tables, or migrate them; the caller's transaction makes it all or nothing.

    One process at a time runs this: SQLite has locked the file, and in PostgreSQL others wait for the lock before they
    read the version.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(sql.select(sql.func.pg_advisory_xact_lock(LOCK)))
    version = stored_version(connection)
    if version is None:
        metadata.create_all(connection)
        connection.execute(ledger.insert().values(version=VERSION, events=0, seal=""))
    else:
        _migrate(connection, version)


def _migrate(connection: sql.Connection, version: int) -> None:
    if not isinstance(version, int) or not (version >= VERSION or version in MIGRATIONS):
        raise _mislabelled(version)
    if version > VERSION:
        raise SourceError(
            f"ledger: its tables have version {version}, and this dpselect knows versions up to {VERSION}; "
            "use a newer dpselect"
        )
    if version < VERSION and connection.dialect.name == "postgresql":
        # In the order in which a spend locks them, to rule out a deadlock.
        connection.exec_driver_sql(f"LOCK TABLE {ledger.name}, {accounts.name}, {entries.name}")
    while version < VERSION:
        MIGRATIONS[version](connection)
        version += 1
        connection.execute(ledger.update().values(version=version))


def _mislabelled(version: object) -> SourceError:
    return SourceError(
        f"ledger: it was changed from outside: it says that its tables have version {version}, which is not true; "
        "nothing was released. Restore a copy"
    )


_AGREED = ("dataset", "epsilon", "delta", "rho", "protects", "neighbours", "composition", "created")
_ENTRY = (
    "dataset, sequence, time, purpose, parameters, guarantee, epsilon, delta, rho, secure, spent_epsilon, "
    "spent_delta, spent_rho, agreed, previous, hash"
)

# SQLite cannot change columns, so the tables are copied. In PostgreSQL a copy would lose the grants.
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
_NUMBERED = (("dpselect_ledger", "events"), ("dpselect_accounts", "event"), ("dpselect_entries", "event"))
_TO_2_POSTGRESQL = (
    "ALTER TABLE dpselect_entries ALTER COLUMN secure TYPE INTEGER USING secure::integer, ADD CHECK (secure IN (0, 1))",
    *(
        f"ALTER TABLE {table} ADD COLUMN {number} INTEGER NOT NULL DEFAULT 0, ADD COLUMN seal TEXT NOT NULL DEFAULT ''"
        for table, number in _NUMBERED
    ),
    *(
        f"ALTER TABLE {table} ALTER COLUMN {number} DROP DEFAULT, ALTER COLUMN seal DROP DEFAULT"
        for table, number in _NUMBERED
    ),
)


def _to_2(connection: sql.Connection) -> None:
    """Restrict `secure` to 0 and 1, and chain all creations and spends in the order of time."""
    if any(column["name"] == "seal" for column in sql.inspect(connection).get_columns("dpselect_ledger")):
        # A second chain over what was chained already would hide that its end was cut off.
        raise _mislabelled(1)
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


_TO_3 = (
    "ALTER TABLE dpselect_entries ADD COLUMN kind TEXT NOT NULL DEFAULT 'charge'",
    "ALTER TABLE dpselect_entries ADD COLUMN once TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE dpselect_entries ADD COLUMN question TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE dpselect_entries ADD COLUMN answer TEXT NOT NULL DEFAULT ''",
    "CREATE UNIQUE INDEX dpselect_once ON dpselect_entries (dataset, once, kind) WHERE once != ''",
)


def _to_3(connection: sql.Connection) -> None:
    """Let entries hold answers that are given once; older entries keep their hashes."""
    if any(column["name"] == "kind" for column in sql.inspect(connection).get_columns("dpselect_entries")):
        raise _mislabelled(2)
    for statement in _TO_3:
        connection.exec_driver_sql(statement)


_TO_4 = (
    "ALTER TABLE dpselect_accounts ADD COLUMN every TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE dpselect_accounts ADD COLUMN lifetime TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE dpselect_entries ADD COLUMN period TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE dpselect_entries ADD COLUMN period_spent TEXT NOT NULL DEFAULT ''",
    "CREATE INDEX dpselect_period ON dpselect_entries (dataset, period, sequence) WHERE period != ''",
)


def _to_4(connection: sql.Connection) -> None:
    """Let data sets have a total for each period; older ones keep their hashes, and have none."""
    if any(column["name"] == "period" for column in sql.inspect(connection).get_columns("dpselect_entries")):
        raise _mislabelled(3)
    for statement in _TO_4:
        connection.exec_driver_sql(statement)


MIGRATIONS: dict[int, Callable[[sql.Connection], None]] = {1: _to_2, 2: _to_3, 3: _to_4}
"""MIGRATIONS[n] changes the tables of version n into those of version n + 1."""
