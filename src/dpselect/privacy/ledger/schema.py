"""The tables of a ledger, and the steps from each version of them to the next.

A ledger says which version it has. One that is older is brought up to date, in one transaction, when it is opened;
one that is newer is refused.
"""

from __future__ import annotations

import sqlalchemy as sql

from dpselect.errors import SourceError
from dpselect.privacy.ledger.steps import STEPS, mislabelled

VERSION = 2
"""The version that this package reads and writes."""

LOCK = 4_851_170_209
"""The number of the lock under which the tables are made and changed in PostgreSQL."""

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
)

entries = sql.Table(
    "dpselect_entries",
    metadata,
    # The key makes it impossible to write two entries in the same place, whatever else goes wrong.
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
    sqlite_with_rowid=False,  # one tree less to write in every spend
)


def stored_version(connection: sql.Connection) -> int | None:
    """Return the version of the ledger in a database, or None if it holds none."""
    if not sql.inspect(connection).has_table(ledger.name):
        return None
    return connection.execute(sql.select(ledger.c.version)).scalars().first()


def prepare(connection: sql.Connection) -> None:
    """Make the tables, or bring them up to date; the caller's transaction makes it all or nothing.

    One process at a time comes here: SQLite has locked its file, and PostgreSQL has a lock for it, which others wait
    for before they look at the version.
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
    """Take every step from the stored version to the present one."""
    if not isinstance(version, int) or not (version >= VERSION or version in STEPS):
        raise mislabelled(version)
    if version > VERSION:
        raise SourceError(
            f"ledger: its tables have version {version}, and this dpselect knows versions up to {VERSION}; "
            "use a newer dpselect"
        )
    if version < VERSION and connection.dialect.name == "postgresql":
        # In the order in which a spend uses them, so that neither waits for the other.
        connection.exec_driver_sql(f"LOCK TABLE {ledger.name}, {accounts.name}, {entries.name}")
    while version < VERSION:
        STEPS[version](connection)
        version += 1
        connection.execute(ledger.update().values(version=version))
