"""What the failures of a database mean for whoever wanted to spend, in words that show nothing of its address."""

from __future__ import annotations

from dpselect.errors import SourceError
from dpselect.privacy.ledger.tip import Outdated

BUSY_SECONDS = 60
"""How long SQLite waits for another writer; a spend holds the lock for milliseconds."""

TRY_AGAIN = {"40001", "40P01"}
"""PostgreSQL's codes for transactions that were undone because of another."""

_PERMISSION = "permission to write to the file and its folder is needed. Nothing was released"

_TABLES = "cannot be used: its tables are not those of a ledger; nothing was released. Restore it from a copy"
_NO_SUCH_COLUMN = {"SQLITE_ERROR", "42703", "42P01"}

_MEANINGS = {
    "SQLITE_READONLY": "cannot be written; " + _PERMISSION,
    "SQLITE_CANTOPEN": "cannot be opened; " + _PERMISSION,
    "SQLITE_PERM": "cannot be opened; " + _PERMISSION,
    "SQLITE_FULL": "has no room on its disk; nothing was recorded or released. Free some space and ask again",
    "SQLITE_IOERR": "cannot be read or written; nothing was released. Check the disk and its free space, and ask again",
    "SQLITE_CORRUPT": "is damaged; nothing was released. Restore it from a copy, and add what was released since",
    "SQLITE_NOTADB": "is not a ledger, or is damaged; nothing was released. Name another file, or restore a copy",
    "SQLITE_BUSY": f"was held by another process for {BUSY_SECONDS} seconds; nothing was released. Try again",
    "SQLITE_ERROR": _TABLES,
    "42703": _TABLES,
    "42P01": _TABLES,
    "53": "has no room or no free connection on its server; nothing was released. Ask again later",
    "42501": "may not be used by this user of the server; nothing was released. Ask for permission to its tables",
}


def meant(error: Exception, name: str) -> SourceError:
    """Return the error to raise for one of the database."""
    code = code_of(error)
    for start, meaning in _MEANINGS.items():
        if code.startswith(start):
            kind = Outdated if code in _NO_SUCH_COLUMN else SourceError
            return kind(f"ledger: {name} {meaning}")
    return SourceError(
        f"ledger: {name} failed ({code or type(error).__name__}); nothing was released. Check that the "
        "database runs, that its address, user and password are right, and ask again"
    )


def code_of(error: Exception) -> str:
    """Return SQLite's name of the error or PostgreSQL's SQLSTATE: kinds of failures, never their words."""
    cause = getattr(error, "orig", error)
    return str(getattr(cause, "sqlite_errorname", None) or getattr(cause, "sqlstate", None) or "")
