"""The file of a SQLite ledger: how it is opened, and whether it is still the one that others find under its name.

A connection goes on writing to a file that was removed or replaced, and nobody else ever sees what it writes. So the
device and number of the file are kept with the connection, and compared with what the name leads to; those of its log
and the log's index as well. SQLite's locks and log go by the name, so that spenders under two names would not see each
other: there must be one only.
"""

from __future__ import annotations

import contextlib
import os
import re
import sqlite3
import time
from pathlib import Path
from urllib.parse import quote

from dpselect.errors import SourceError


class Link(sqlite3.Connection):
    """A connection that knows which file it has open."""

    path: Path
    identity: tuple[int, int]
    log_files: tuple[str, str]
    log: tuple[tuple[int, int] | None, ...] | None = None


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
    real = os.path.realpath(path)  # SQLite keeps its log beside the file that a symbolic link leads to
    link.log_files = (f"{real}-wal", f"{real}-shm")
    return link


def draft_of(file: Path) -> Path:
    """Return the name under which a new file is prepared; no other process and no other call has the same."""
    return file.with_name(f"{_draft_start(file)}{os.getpid()}.{time.monotonic_ns()}")


def log_ahead(link: Link, seconds: float) -> None:
    """Switch the log on in a ledger that was made in an existing file, or restored without it.

    It cannot be done while others use the file, or without permission to write. Then it is left for the next time: a
    commit waits for the disk in either case, and one writer at a time is let in.
    """
    with contextlib.suppress(sqlite3.Error):
        if link.execute("PRAGMA journal_mode").fetchone() == ("wal",):
            return
        link.execute("PRAGMA busy_timeout = 0")
        try:
            link.execute("PRAGMA journal_mode = WAL")
        finally:
            link.execute(f"PRAGMA busy_timeout = {int(1000 * seconds)}")


def check_file(link: Link, name: str) -> None:
    """Refuse to go on with a file that was replaced or removed, or that has a second name."""
    try:
        found = os.stat(link.path)
    except OSError:
        raise _moved(name) from None
    if (found.st_dev, found.st_ino) != link.identity:
        raise _moved(name)
    if found.st_nlink != 1 and not _drafts_removed(link):
        raise SourceError(
            f"ledger: {name} has a second name (a hard link), under which others could spend unseen; nothing was "
            "released. End all processes that use it, remove one of the names, and ask again"
        )


def check_log(link: Link, name: str) -> None:
    """Refuse to go on if the log or its index, which SQLite now has open, are not those that others find.

    They stay where they are as long as a connection is open. Whoever finds none starts others, and then neither sees
    what the other writes.
    """
    found = tuple(_identity(file) for file in link.log_files)
    if None not in found and found == (link.log or found):
        link.log = found
        return
    if link.log is None and link.execute("PRAGMA journal_mode").fetchone() != ("wal",):
        return
    raise _moved(f"{name} (its -wal or -shm file)")


def _drafts_removed(link: Link) -> bool:
    """Remove drafts that a process left when it died as it made the file; tell whether the file has one name then."""
    with contextlib.suppress(OSError):
        # Locks go by the file that a symbolic link leads to, and so does the name of a draft.
        for file in {link.path, Path(os.path.realpath(link.path))}:
            form = re.compile(re.escape(_draft_start(file)) + r"[0-9]+\.[0-9]+")
            for other in file.parent.iterdir():
                if form.fullmatch(other.name) and _identity(other) == link.identity:
                    other.unlink(missing_ok=True)
        return os.stat(link.path).st_nlink == 1
    return False


def _draft_start(file: Path) -> str:
    return f".{file.name}."


def _identity(path: Path | str) -> tuple[int, int] | None:
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
