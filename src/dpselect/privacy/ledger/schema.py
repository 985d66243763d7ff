"""The tables of a ledger, and the steps from each version of them to the next.

A ledger says which version it has. One that is older is brought up to date, in one transaction, when it is opened;
one that is newer is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import sqlalchemy as sql

from dpselect.errors import SourceError

VERSION = 1
"""The version that this package reads and writes."""

Step = Callable[[sql.Connection], None]

STEPS: dict[int, Step] = {}
"""STEPS[n] changes the tables of version n into those of version n + 1. A step, once published, is never edited."""

metadata = sql.MetaData()

versions = sql.Table(
    "dpselect_ledger",
    metadata,
    sql.Column("version", sql.Integer, nullable=False),
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
    sql.Column("secure", sql.Boolean, nullable=False),
    sql.Column("spent_epsilon", sql.Text, nullable=False),
    sql.Column("spent_delta", sql.Text, nullable=False),
    sql.Column("spent_rho", sql.Text, nullable=False),
    sql.Column("agreed", sql.Text, nullable=False),
    sql.Column("previous", sql.Text, nullable=False),
    sql.Column("hash", sql.Text, nullable=False),
    sqlite_with_rowid=False,  # one tree less to write in every spend
)


def stored_version(connection: sql.Connection) -> int | None:
    """Return the version of the ledger in a database, or None if it holds none."""
    if not sql.inspect(connection).has_table(versions.name):
        return None
    return connection.execute(sql.select(versions.c.version)).scalar_one_or_none()


def install(connection: sql.Connection) -> None:
    """Make the tables of the present version."""
    metadata.create_all(connection)
    connection.execute(versions.insert().values(version=VERSION))


def migrate(connection: sql.Connection, steps: Mapping[int, Step], target: int) -> None:
    """Take every step from the stored version to `target`; the caller's transaction makes it all or nothing."""
    version = stored_version(connection)
    if version is None or version > target:
        raise SourceError(
            f"ledger: its tables have version {version}, and this dpselect knows versions up to {target}; "
            "use a newer dpselect"
        )
    while version < target:
        steps[version](connection)
        version += 1
        connection.execute(versions.update().values(version=version))
