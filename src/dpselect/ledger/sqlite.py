"""The file of a SQLite ledger: how it is made and opened, and whether its name still leads to it.

A connection goes on writing to a file that was removed or replaced, and nobody else sees what it writes. So each
connection keeps the device and inode number of its file, of the write-ahead log and of the log's index, and compares
them with what the names lead to. SQLite finds locks and log by the file's name. A file must therefore have one name
only: under two names, spenders would not see each other.

No connection to a file is open while the process forks. SQLite remembers, per process, which locks it holds; a child
inherits that memory but not the locks, so parent and child could spend without seeing each other. A fork therefore
waits for running transactions and closes all connections; both processes open the file again when they need it.
"""

from __future__ import annotations

import contextlib
import os
import re
import sqlite3
import threading
import time
import weakref
from pathlib import Path
from urllib.parse import quote

import sqlalchemy as sql

from dpselect.errors import InvalidInput, SourceError

BUSY_SECONDS = 60
"""How long SQLite waits for another writer; a spend holds the lock for milliseconds."""

in_use = threading.RLock()
"""Held whenever a connection to a file is opened or used."""

_engines: weakref.WeakSet[sql.Engine] = weakref.WeakSet()


def close_before_forks(engine: sql.Engine) -> None:
    """Close the connections of an engine before each fork."""
    _engines.add(engine)


def _before_fork() -> None:
    in_use.acquire()
    for engine in list(_engines):
        engine.dispose()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=in_use.release, after_in_child=in_use.release)


class FileConnection(sqlite3.Connection):
    """A connection that knows which file it has open."""

    path: Path
    identity: tuple[int, int]
    log_files: tuple[str, str]
    log: tuple[tuple[int, int] | None, ...] | None = None


class Moved(SourceError):
    """The name of a ledger no longer leads to what is open."""


def make_file(file: Path, name: str) -> None:
    """Make an empty database with a write-ahead log.

    SQLite does not wait for other processes when it switches the log on. So that is done under a temporary name, and
    the file gets its own name only then, and only if no other process was faster.
    """
    draft = file.with_name(f"{_draft_prefix(file)}{os.getpid()}.{time.monotonic_ns()}")
    try:
        with in_use, contextlib.closing(sqlite3.connect(draft)) as connection:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("VACUUM")
        with contextlib.suppress(FileExistsError):
            os.link(draft, file)
        folder = os.open(file.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except (OSError, sqlite3.Error):
        raise SourceError(
            f"ledger: {name} cannot be made; check permissions and disk space of its folder, and whether its file "
            "system has hard links"
        ) from None
    finally:
        for ending in ("", "-wal", "-shm", "-journal"):
            draft.with_name(draft.name + ending).unlink(missing_ok=True)


def open_file(file: Path, name: str) -> FileConnection:
    """Open a file that must exist: a mistyped path must not become an empty database."""
    before = _identity(file)
    address = f"file:{quote(str(file))}?mode=rw"
    link = sqlite3.connect(address, uri=True, timeout=BUSY_SECONDS, check_same_thread=False, factory=FileConnection)
    if before is None or _identity(file) != before:
        link.close()
        raise _moved(name)
    link.path, link.identity = file, before
    real = os.path.realpath(file)  # SQLite keeps its log beside the file that a symbolic link leads to
    link.log_files = (f"{real}-wal", f"{real}-shm")
    return link


def copy_file(file: Path, name: str, copy: Path) -> None:
    """Copy a database that may be in use into a new file, which only its owner can read."""
    try:
        os.close(os.open(copy, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        raise InvalidInput("file", str(copy), "must be a file that does not exist yet") from None
    except OSError:
        raise InvalidInput("file", str(copy), "must be a file in a folder that can be written") from None
    try:
        with (
            in_use,
            contextlib.closing(open_file(file, name)) as link,
            contextlib.closing(sqlite3.connect(copy)) as target,
        ):
            link.backup(target)
    except BaseException as error:
        copy.unlink(missing_ok=True)
        if not isinstance(error, sqlite3.Error):
            raise
        raise SourceError(f"ledger: {name} cannot be copied; check the ledger, and the space on the disk") from None


def use_log(link: FileConnection) -> None:
    """Switch the write-ahead log on in a ledger that was made in an existing file, or restored without its log.

    That fails while others use the file, or without permission to write. It is then left for the next time: a commit
    waits for the disk in either case, and only one process writes at a time.
    """
    with contextlib.suppress(sqlite3.Error):
        if link.execute("PRAGMA journal_mode").fetchone() == ("wal",):
            return
        link.execute("PRAGMA busy_timeout = 0")
        try:
            link.execute("PRAGMA journal_mode = WAL")
        finally:
            link.execute(f"PRAGMA busy_timeout = {1000 * BUSY_SECONDS}")


def check_file(link: FileConnection, name: str) -> None:
    """Refuse a file that was replaced or removed, or that has a second name."""
    try:
        found = os.stat(link.path)
    except OSError:
        raise _moved(name) from None
    if (found.st_dev, found.st_ino) != link.identity:
        raise _moved(name)
    if found.st_nlink != 1 and not _remove_drafts(link):
        raise SourceError(
            f"ledger: {name} has a second name (a hard link), under which others could spend unseen; nothing was "
            "released. End all processes that use it, remove one of the names, and ask again"
        )


def check_log(link: FileConnection, name: str) -> None:
    """Refuse to go on if the log or its index, which SQLite has open, are not what their names lead to.

    SQLite leaves both in place as long as a connection is open. A process that finds none makes new ones, and then the
    two do not see each other's writes.
    """
    found = tuple(_identity(file) for file in link.log_files)
    if None not in found and found == (link.log or found):
        link.log = found
        return
    if link.log is None and link.execute("PRAGMA journal_mode").fetchone() != ("wal",):
        return
    raise _moved(f"{name} (its -wal or -shm file)")


def _remove_drafts(link: FileConnection) -> bool:
    """Remove drafts that a process left when it died while making the file; return whether one name is left."""
    with contextlib.suppress(OSError):
        # Locks go by the file that a symbolic link leads to, and so does the name of a draft.
        for file in {link.path, Path(os.path.realpath(link.path))}:
            form = re.compile(re.escape(_draft_prefix(file)) + r"[0-9]+\.[0-9]+")
            for other in file.parent.iterdir():
                if form.fullmatch(other.name) and _identity(other) == link.identity:
                    other.unlink(missing_ok=True)
        return os.stat(link.path).st_nlink == 1
    return False


def _draft_prefix(file: Path) -> str:
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
