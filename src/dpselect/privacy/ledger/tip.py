"""The chain through the ledger as a whole: each creation and each spend, of whatever data set, follows the last.

`event` numbers them, and `seal` is the SHA-256 of the seal before, the number, and the hash of what was created or
spent. The ledger holds the number and the seal of the last. So a data set cannot lose its end, or be removed, while
others go on. All writers lock that one row first; it also says which version the tables have.
"""

from __future__ import annotations

import hashlib
from typing import Any, Self

import sqlalchemy as sql

from dpselect.errors import SourceError
from dpselect.privacy.ledger import schema
from dpselect.privacy.ledger.identity import Moved

_ROW = sql.select(schema.ledger.c.version, schema.ledger.c.events, schema.ledger.c.seal)
_LOCKED_ROW = _ROW.with_for_update()
_MOVE = sql.update(schema.ledger).values(events=sql.bindparam("new_events"), seal=sql.bindparam("new_seal"))


class Outdated(SourceError):
    """The tables have another version than when the ledger was opened."""


class Tip:
    """Where the ledger ends: how many creations and spends it holds, and the seal of the last of them."""

    def __init__(self, events: int = 0, seal: str = "") -> None:
        self.events = events
        self.seal = seal

    @classmethod
    def read(cls, connection: sql.Connection, *, lock: bool) -> Self:
        """Return the end of the ledger; with a lock no other process can write until the transaction ends."""
        rows = connection.execute(_LOCKED_ROW if lock else _ROW).all()
        if len(rows) != 1 or not isinstance(rows[0].events, int) or not isinstance(rows[0].seal, str):
            raise SourceError(
                "ledger: it was changed from outside: where it ends cannot be read; nothing was released. Restore a "
                "copy"
            )
        version, events, seal = rows[0]
        if version != schema.VERSION:
            raise Outdated(
                f"ledger: another program changed its tables to version {version}; nothing was released. Ask again"
            )
        return cls(events, seal)

    def add(self, hash_of_record: str) -> tuple[int, str]:
        """Let a creation or a spend follow; return its number and its seal."""
        self.events += 1
        self.seal = sealed(self.seal, self.events, hash_of_record)
        return self.events, self.seal

    def write(self, connection: sql.Connection) -> None:
        """Store the new end."""
        changed_one(connection.execute(_MOVE, {"new_events": self.events, "new_seal": self.seal}))

    def follows(self, earlier: Tip) -> bool:
        """Whether this can be what an earlier end has become: it did not grow shorter, nor change where it stood."""
        return self.events > earlier.events or (self.events, self.seal) == (earlier.events, earlier.seal)


def sealed(previous: str, event: int, hash_of_record: str) -> str:
    """Return the SHA-256 of "previous event hash", in hexadecimal."""
    return hashlib.sha256(f"{previous} {event} {hash_of_record}".encode()).hexdigest()


def changed_one(result: sql.CursorResult[Any]) -> None:
    """Refuse to go on if a row was not written: triggers and row policies can drop one without an error."""
    if result.rowcount != 1:
        raise not_kept()


def not_kept() -> SourceError:
    """Return the error for a database in which something else is found than was written."""
    return SourceError(
        "ledger: the database did not keep what was written; nothing was released. Remove triggers, rules and row "
        "policies from its tables, and see with `dpselect ledger check` whether a copy must be restored"
    )


def rolled_back(name: str) -> Moved:
    """Return the error for a ledger that holds less than this process has seen in it."""
    return Moved(
        f"ledger: {name} lacks releases that were in it before: an older copy was put in its place while it was open; "
        "nothing was released. Ask again to use what is there now, and add what was released since it was copied"
    )
