"""SQLite and PostgreSQL behind one door: how a ledger is opened, locked and committed, and what failures mean.

A commit is on the disk when it returns. SQLite: write-ahead log, synchronous=EXTRA, and BEGIN IMMEDIATE, so that one
writer at a time reads the state it then changes. PostgreSQL: a lock on the row of the data set does the same, and
synchronous_commit is switched on where the server has it off.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import sqlalchemy as sql
from sqlalchemy import event, exc
from sqlalchemy.engine import URL, make_url
from sqlalchemy.pool import QueuePool

from dpselect.errors import DpSelectError, InvalidInput, SourceError, plain
from dpselect.privacy.ledger import schema
from dpselect.privacy.ledger.identity import Link, Moved, check_file, draft_of, log_ahead, open_file

Result = TypeVar("Result")

BUSY_SECONDS = 60
"""How long SQLite waits for another writer; a spend holds the lock for milliseconds."""

_ATTEMPTS = 20
_CREATION_LOCK = 4_851_170_209
_WRITE = "dpselect_write"
_TRY_AGAIN = {"40001", "40P01"}
_ACCEPTED = "the path of a file, or a URL that starts with sqlite:/// or postgresql+psycopg:// is needed"

# A URL with a slash lost, libpq's key=value form, or user:password@host: a file of such a name is a mistake, and a
# message that shows it gives the password away.
_CONNECTION = re.compile(
    r"^\s*(postgres\w*(\+\w+)?:|[a-z][a-z0-9+.-]+:/)|password\s*=|:.*@|//[^/]*@"
    r"|\b(host|hostaddr|port|user|dbname|service)\s*=.*\s(host|hostaddr|port|user|dbname|service)\s*=",
    re.IGNORECASE | re.DOTALL,
)
_PLAIN_PATH = re.compile(r"\.{0,2}/(?!/)|[A-Za-z]:[\\/]|\.{1,2}\\")


class _Engines(NamedTuple):
    """Two ways into one pool of connections: to look at one state of the ledger, and to change it."""

    reading: sql.Engine
    writing: sql.Engine


class Store:
    """One database that holds, or is about to hold, a ledger; used by the process that made it only."""

    def __init__(self, place: str | os.PathLike[str]) -> None:
        self.url = _url(place)
        self.file = Path(self.url.database or "") if self.url.get_backend_name() == "sqlite" else None
        self.process = os.getpid()
        self._engines: _Engines | None = None

    @property
    def name(self) -> str:
        """What may be shown: a file's path, or the kind of database; never a URL, which can hold a password."""
        return "a PostgreSQL ledger" if self.file is None else str(self.file)

    def read(self, work: Callable[[sql.Connection], Result]) -> Result:
        """Return what `work` finds in one consistent state of the ledger."""
        return self._run(self._opened().reading, work)

    def write(self, work: Callable[[sql.Connection], Result]) -> Result:
        """Return what `work` returns once its changes are on the disk; no other process writes meanwhile."""
        return self._run(self._opened().writing, work)

    def install(self) -> None:
        """Make the tables of a ledger, if the database holds none yet."""
        if self.file is not None:
            if not self.file.parent.is_dir() or self.file.is_dir():
                raise InvalidInput("ledger", self.name, "a file in an existing folder is needed")
            if not self.file.exists():
                self._prepare_file(self.file)
        engines = self._connect()
        self._run(engines.writing, self._install)
        self._log_ahead(engines)
        self._engines = engines

    def close(self) -> None:
        """Let go of all connections; in another process than the one that made them they are not to be touched."""
        if self._engines is not None and self.process == os.getpid():
            self._engines.reading.dispose()
            self._engines = None

    def _opened(self) -> _Engines:
        if self._engines is None:
            if self.file is not None and not self.file.is_file():
                raise self._no_ledger()
            engines = self._connect()
            version = self._run(engines.reading, schema.stored_version)
            if version is None:
                engines.reading.dispose()
                raise self._no_ledger()
            if version != schema.VERSION:
                self._run(engines.writing, lambda link: schema.migrate(link, schema.STEPS, schema.VERSION))
            self._log_ahead(engines)
            self._engines = engines
        return self._engines

    def _log_ahead(self, engines: _Engines) -> None:
        with contextlib.suppress(exc.SQLAlchemyError), engines.writing.connect() as connection:
            link = connection.connection.dbapi_connection
            if isinstance(link, Link):
                log_ahead(link, BUSY_SECONDS)

    def _no_ledger(self) -> InvalidInput:
        return InvalidInput(
            "ledger",
            plain(self.name),
            "there is no ledger there; name another, or make one with `dpselect ledger create`",
        )

    def _prepare_file(self, file: Path) -> None:
        """Make an empty database with a write-ahead log and give it its name only then.

        Switching the log on does not wait for other processes, so it is done before any can see the file; and the
        file gets its name only if no other process was faster.
        """
        draft = draft_of(file)
        try:
            connection = sqlite3.connect(draft)
            try:
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute("VACUUM")
            finally:
                connection.close()
            with contextlib.suppress(FileExistsError):
                os.link(draft, file)
            folder = os.open(file.parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
        except (OSError, sqlite3.Error):
            raise SourceError(
                f"ledger: {self.name} cannot be made; check permissions and disk space of its folder"
            ) from None
        finally:
            for ending in ("", "-wal", "-shm", "-journal"):
                draft.with_name(draft.name + ending).unlink(missing_ok=True)

    def _install(self, connection: sql.Connection) -> None:
        if self.file is None:
            connection.execute(sql.select(sql.func.pg_advisory_xact_lock(_CREATION_LOCK)))
        if schema.stored_version(connection) is None:
            schema.install(connection)
        else:
            schema.migrate(connection, schema.STEPS, schema.VERSION)

    def _connect(self) -> _Engines:
        try:
            if self.file is None:
                engine = sql.create_engine(self.url, isolation_level="READ COMMITTED", hide_parameters=True)
                event.listen(engine, "connect", _prepare_postgresql)
                return _Engines(engine.execution_options(isolation_level="REPEATABLE READ"), engine)
            engine = sql.create_engine(
                "sqlite://",
                creator=functools.partial(open_file, self.file, self.name, BUSY_SECONDS),
                poolclass=QueuePool,
                hide_parameters=True,
            )
        except ModuleNotFoundError:
            raise InvalidInput(
                "ledger", plain("a PostgreSQL URL"), "its driver is needed: pip install 'dpselect[postgresql]'"
            ) from None
        event.listen(engine, "connect", _prepare_sqlite)
        event.listen(engine, "begin", _begin_sqlite)
        return _Engines(engine, engine.execution_options(**{_WRITE: True}))

    def _run(self, engine: sql.Engine, work: Callable[[sql.Connection], Result]) -> Result:
        for attempt in range(_ATTEMPTS):
            try:
                return self._once(engine, work)
            except Moved:
                engine.dispose()
                self._engines = None
                raise
            except DpSelectError:
                raise
            except exc.SQLAlchemyError as error:
                # PostgreSQL has undone such a transaction as a whole, so that it may be run once more.
                if _code(error) not in _TRY_AGAIN:
                    failure = self._failure(error)
                    break
            time.sleep(0.01 * (attempt + 1))
        else:
            failure = SourceError(f"ledger: {self.name} is too busy; nothing was recorded or released, try again")
        # Outside the except block, so that the database's own words, which can hold credentials, are not chained to it.
        raise failure

    def _once(self, engine: sql.Engine, work: Callable[[sql.Connection], Result]) -> Result:
        """Return what `work` returns once it is committed, to what had the ledger's name before and has it after."""
        with engine.begin() as connection:
            link = connection.connection.dbapi_connection
            write = bool(connection.get_execution_options().get(_WRITE, False))
            if isinstance(link, Link):
                check_file(link, self.name, write)
            result = work(connection)
        if isinstance(link, Link):
            check_file(link, self.name, write)
        return result

    def _failure(self, error: exc.SQLAlchemyError) -> DpSelectError:
        code = _code(error)
        for start, meaning in _MEANINGS.items():
            if code.startswith(start):
                return SourceError(f"ledger: {self.name} {meaning}")
        return SourceError(
            f"ledger: {self.name} failed ({code or type(error).__name__}); nothing was released. Check that the "
            "database runs, that its address, user and password are right, and ask again"
        )


_PERMISSION = "permission to write to the file and its folder is needed. Nothing was released"

_MEANINGS = {
    "SQLITE_READONLY": "cannot be written; " + _PERMISSION,
    "SQLITE_CANTOPEN": "cannot be opened; " + _PERMISSION,
    "SQLITE_PERM": "cannot be opened; " + _PERMISSION,
    "SQLITE_FULL": "has no room on its disk; nothing was recorded or released. Free some space and ask again",
    "SQLITE_IOERR": "cannot be read or written; nothing was released. Check the disk and its free space, and ask again",
    "SQLITE_CORRUPT": "is damaged; nothing was released. Restore it from a copy, and add what was released since",
    "SQLITE_NOTADB": "is not a ledger, or is damaged; nothing was released. Name another file, or restore a copy",
    "SQLITE_BUSY": f"was held by another process for {BUSY_SECONDS} seconds; nothing was released. Try again",
    "SQLITE_ERROR": "lacks a part of its tables; nothing was released. Restore it from a copy",
    "53": "has no room or no free connection on its server; nothing was released. Ask again later",
    "42501": "may not be used by this user of the server; nothing was released. Ask for permission to its tables",
}


def _url(place: Any) -> URL:
    """Understand a path or URL; what is refused is never shown, as it can hold a password."""
    if not isinstance(place, str | os.PathLike):
        raise InvalidInput("ledger", plain(f"an object of type {type(place).__name__}"), _ACCEPTED)
    text = os.fspath(place)
    if not isinstance(text, str) or not text or "\0" in text:
        raise InvalidInput("ledger", plain("such a path" if text else "an empty path"), _ACCEPTED)
    url = None
    if "://" not in text:
        if _CONNECTION.search(text) and not _PLAIN_PATH.match(text):
            raise InvalidInput(
                "ledger", plain("something like a connection string"), _ACCEPTED + "; start a path of that form with ./"
            )
        url = URL.create("sqlite", database=text)
    else:
        with contextlib.suppress(exc.ArgumentError, ValueError):
            url = make_url(text)
    if url is None:  # outside an except block, as the words of that error can hold a part of the password
        raise InvalidInput("ledger", plain("a URL that cannot be read"), _ACCEPTED)
    if url.drivername in ("postgres", "postgresql"):
        url = url.set(drivername="postgresql+psycopg")
    if url.drivername not in ("sqlite", "postgresql+psycopg") or (url.drivername == "sqlite" and url.query):
        raise InvalidInput("ledger", plain("another kind of URL"), _ACCEPTED)
    if url.drivername == "sqlite" and url.database in (None, "", ":memory:"):
        raise InvalidInput("ledger", plain("a database in memory"), "a ledger must last; " + _ACCEPTED)
    return url


def _code(error: exc.SQLAlchemyError) -> str:
    """Return SQLite's name of the error or PostgreSQL's SQLSTATE: kinds of failures, never their words."""
    cause = getattr(error, "orig", None)
    return str(getattr(cause, "sqlite_errorname", None) or getattr(cause, "sqlstate", None) or "")


def _prepare_sqlite(connection: Any, _: Any) -> None:
    connection.isolation_level = None  # the driver must not begin transactions in its own way
    connection.execute("PRAGMA synchronous = EXTRA")
    connection.execute("PRAGMA fullfsync = ON")  # macOS alone knows it: there an fsync does not reach the disk
    connection.execute("PRAGMA foreign_keys = ON")


def _begin_sqlite(connection: sql.Connection) -> None:
    write = connection.get_execution_options().get(_WRITE, False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")


def _prepare_postgresql(connection: Any, _: Any) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT set_config('synchronous_commit', 'on', false) "
            "WHERE current_setting('synchronous_commit') IN ('off', 'local')"
        )
    connection.commit()
