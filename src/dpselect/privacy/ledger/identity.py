"""Whether an open SQLite file is still the one that others find under its name.

A connection goes on writing to a file that was removed or replaced, and nobody else ever sees what it writes. So the
device and number of the file are kept with the connection, and compared with what the name leads to.
"""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from urllib.parse import quote

from dpselect.errors import SourceError


class Link(sqlite3.Connection):
    """A connection that knows which file it has open."""

    path: Path
    identity: tuple[int, int]


class Moved(SourceError):
    """What is open is not, or no longer, what its name leads to."""


def open_file(file: Path, name: str, seconds: float) -> Link:
    """Open a file that must exist: a mistyped path must not become an empty database."""
    path = file.absolute()
    before = _identity(path)
    address = f"file:{quote(str(path))}?mode=rw"
    link = sqlite3.connect(address, uri=True, timeout=seconds, check_same_thread=False, factory=Link)
    if before is None or _identity(path) != before:
        link.close()
        raise _moved(name)
    link.path, link.identity = path, before
    return link


def check_file(link: Link, name: str) -> None:
    """Refuse to go on with a file that was replaced or removed."""
    if _identity(link.path) != link.identity:
        raise _moved(name)


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _moved(name: str) -> Moved:
    return Moved(
        f"ledger: {name} was replaced or removed while it was open; nothing was released. Ask again to use what is "
        "there now, and add what was released since it was copied"
    )
