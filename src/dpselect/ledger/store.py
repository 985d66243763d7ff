"""The database of a ledger, SQLite or PostgreSQL: how it is named, opened, locked and committed, and how it fails.

A commit is on the disk when it returns. SQLite: write-ahead log, synchronous=EXTRA, and BEGIN IMMEDIATE, so that one
writer at a time reads the state that it then changes. PostgreSQL: a lock on the one row of the ledger does the same,
and every transaction that writes switches synchronous_commit on if the server has it off.
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

from dpselect.errors import DpSelectError, InvalidInput, SourceError, how_to_install, plain
from dpselect.ledger import schema, sqlite
from dpselect.ledger.chain import Tip
from dpselect.ledger.records import Outdated, read_tip, write_tip
from dpselect.ledger.sqlite import BUSY_SECONDS, FileConnection, Moved

Result = TypeVar("Result")

_ATTEMPTS = 20
_WRITE = "dpselect_write"
"""The execution option of an engine whose transactions write."""

_RETRY_CODES = {"40001", "40P01"}
"""PostgreSQL's codes for transactions that were undone because of another."""

_PERMISSION = "permission to write to the file and its folder is needed. Nothing was released"
_NOT_A_LEDGER = "cannot be used: its tables are not those of a ledger; nothing was released. Restore it from a copy"
_NO_SUCH_COLUMN = {"SQLITE_ERROR", "42703", "42P01"}
_FAILURES = {
    "SQLITE_READONLY": "cannot be written; " + _PERMISSION,
    "SQLITE_CANTOPEN": "cannot be opened; " + _PERMISSION,
    "SQLITE_PERM": "cannot be opened; " + _PERMISSION,
    "SQLITE_FULL": "has no room on its disk; nothing was recorded or released. Free some space and ask again",
    "SQLITE_IOERR": "cannot be read or written; nothing was released. Check the disk and its free space, and ask again",
    "SQLITE_CORRUPT": "is damaged; nothing was released. Restore it from a copy, and add what was released since",
    "SQLITE_NOTADB": "is not a ledger, or is damaged; nothing was released. Name another file, or restore a copy",
    "SQLITE_BUSY": f"was held by another process for {BUSY_SECONDS} seconds; nothing was released. Try again",
    **dict.fromkeys(_NO_SUCH_COLUMN, _NOT_A_LEDGER),
    "53": "has no room or no free connection on its server; nothing was released. Ask again later",
    "42501": "may not be used by this user of the server; nothing was released. Ask for permission to its tables",
}
"""What to say for an error code, by its first characters. The database's own words could show its address."""

_PLACES = "must be the path of a file, or a URL that starts with sqlite:/// or postgresql://"

# A URL with a slash missing, libpq's key=value form, or user:password@host. A file of such a name is a mistake, and a
# message that shows the name would show the password.
_CONNECTION_STRING = re.compile(
    r"^\s*(postgres\w*(\+\w+)?:|[a-z][a-z0-9+.-]+:/)|password\s*=|:.*@|//[^/]*@"
    r"|\b(host|hostaddr|port|user|dbname|service)\s*=.*\s(host|hostaddr|port|user|dbname|service)\s*=",
    re.IGNORECASE | re.DOTALL,
)
_PLAIN_PATH = re.compile(r"\.{0,2}/(?!/)|[A-Za-z]:[\\/]|\.{1,2}\\")


class _Engines(NamedTuple):
    """Two engines with one pool of connections: for transactions that read one state, and for those that write."""

    reading: sql.Engine
    writing: sql.Engine


class LedgerStore:
    """A database that holds, or will hold, a ledger; only the process that made the object uses it."""

    def __init__(self, place: str | os.PathLike[str]) -> None:
        self.url = url_of(place)
        self._given = self.url.database or ""
        # An absolute path: the working directory of the process may change.
        self.file = Path(self._given).absolute() if self.url.get_backend_name() == "sqlite" else None
        self.process = os.getpid()
        self._engines: _Engines | None = None
        self._last_written = Tip()

    @property
    def name(self) -> str:
        """What messages show: a file's path, or the kind of database; never a URL, which can hold a password."""
        return "a PostgreSQL ledger" if self.file is None else self._given

    def read(self, work: Callable[[sql.Connection], Result]) -> Result:
        """Return the result of `work` on one consistent state of the ledger."""
        return self._read_with_tip(lambda connection, _: work(connection))

    def tip(self) -> Tip:
        """Return where the ledger ends."""
        return self._read_with_tip(lambda _, tip: tip)

    def write(
        self,
        work: Callable[[sql.Connection, Tip], Result],
        confirm: Callable[[sql.Connection, Tip, Result], None],
    ) -> Result:
        """Return the result of `work` once its changes are on the disk; no other process writes meanwhile.

        `confirm` reads the ledger after the commit, and raises unless the changes are there: a trigger can undo a
        change after its rows were counted, and a deferred one does so in the commit itself.
        """

        def whole(connection: sql.Connection) -> tuple[Result, Tip]:
            tip = read_tip(connection, lock=True)
            if not tip.follows(self._last_written):
                raise _rolled_back(self.name)
            result = work(connection, tip)
            write_tip(connection, tip)
            return result, tip

        result, tip = self._with_current_tables(lambda: self._run(self._opened().writing, whole))
        if tip.events > self._last_written.events:  # another thread may have written more by now
            self._last_written = tip
        self._read_with_tip(lambda connection, end: confirm(connection, end, result))
        return result

    def install(self) -> None:
        """Make the tables of a ledger, if the database holds none yet."""
        if self.file is not None:
            if not self.file.parent.is_dir() or self.file.is_dir():
                raise InvalidInput("ledger", self.name, "must be a file in an existing folder")
            if not self.file.exists():
                sqlite.make_file(self.file, self.name)
        if self._engines is None:
            self._engines = self._prepared(make=True)

    def backup(self, copy: Path) -> None:
        """Copy the file of the ledger as it stands at one moment."""
        if self.file is None:
            raise InvalidInput("ledger", plain(self.name), "must be a file; copy a PostgreSQL database with pg_dump")
        self._opened()
        sqlite.copy_file(self.file, self.name, copy)

    def close(self) -> None:
        """Close all connections, unless another process made them."""
        if self._engines is not None and self.process == os.getpid():
            self._engines.reading.dispose()
            self._engines = None

    def _read_with_tip(self, work: Callable[[sql.Connection, Tip], Result]) -> Result:
        """Return the result of `work` on one consistent state of the ledger, given where that ends."""

        def whole(connection: sql.Connection) -> Result:
            return work(connection, read_tip(connection, lock=False))

        return self._with_current_tables(lambda: self._run(self._opened().reading, whole))

    def _with_current_tables(self, action: Callable[[], Result]) -> Result:
        """Return the result of the action; if the tables were changed, open them again, which migrates or refuses."""
        try:
            return action()
        except Outdated:
            self.close()
        return action()

    def _opened(self) -> _Engines:
        if self._engines is None:
            if self.file is not None and not self.file.is_file():
                raise self._no_ledger()
            self._engines = self._prepared(make=False)
        return self._engines

    def _prepared(self, make: bool) -> _Engines:
        """Connect to tables of the present version; make them only if asked to."""
        engines = self._connect()
        try:
            version = self._run(engines.reading, schema.stored_version)
            if version is None and not make:
                raise self._no_ledger()
            if version != schema.VERSION:
                self._run(engines.writing, schema.prepare)
        except DpSelectError:
            engines.reading.dispose()
            raise
        if self.file is not None:
            with sqlite.in_use, contextlib.suppress(exc.SQLAlchemyError), engines.writing.connect() as connection:
                sqlite.use_log(_file_connection(connection))
        return engines

    def _no_ledger(self) -> InvalidInput:
        return InvalidInput(
            "ledger",
            plain(self.name),
            "there is no ledger; name another file or URL, or make one with `dpselect ledger create`",
        )

    def _connect(self) -> _Engines:
        try:
            if self.file is None:
                engine = sql.create_engine(
                    self.url,
                    isolation_level="READ COMMITTED",
                    hide_parameters=True,
                    connect_args={"prepare_threshold": None},  # a pooler may hand each transaction to another session
                )
                event.listen(engine, "begin", _begin_postgresql)
                reading = engine.execution_options(isolation_level="REPEATABLE READ")
                return _Engines(reading, engine.execution_options(**{_WRITE: True}))
            engine = sql.create_engine(
                "sqlite://",
                creator=functools.partial(sqlite.open_file, self.file, self.name),
                poolclass=QueuePool,
                hide_parameters=True,
            )
        except ModuleNotFoundError:
            raise InvalidInput(
                "ledger",
                plain("a PostgreSQL URL"),
                f"the driver is not installed: {how_to_install('postgresql')}",
            ) from None
        sqlite.close_before_forks(engine)
        event.listen(engine, "connect", _prepare_sqlite)
        event.listen(engine, "begin", _begin_sqlite)
        return _Engines(engine, engine.execution_options(**{_WRITE: True}))

    def _run(self, engine: sql.Engine, work: Callable[[sql.Connection], Result]) -> Result:
        for attempt in range(_ATTEMPTS):
            try:
                return self._once(engine, work)
            except Moved:
                engine.dispose()
                self._engines, self._last_written = None, Tip()
                raise
            except DpSelectError:
                raise
            except (exc.SQLAlchemyError, sqlite3.Error) as error:
                # PostgreSQL has undone such a transaction as a whole, so it can be run once more.
                if _code_of(error) not in _RETRY_CODES:
                    failure = _failure(error, self.name)
                    break
            time.sleep(0.01 * (attempt + 1))
        else:
            failure = SourceError(f"ledger: {self.name} is too busy; nothing was recorded or released, try again")
        # Raised outside the except block: the database's own message, which can hold a password, is not chained to it.
        raise failure

    def _once(self, engine: sql.Engine, work: Callable[[sql.Connection], Result]) -> Result:
        """Run and commit `work`, and check before and after that the ledger's name leads to the file that is open."""
        if self.file is None:
            with engine.begin() as connection:
                return work(connection)
        with sqlite.in_use:
            with engine.begin() as connection:
                link = _file_connection(connection)
                sqlite.check_file(link, self.name)
                if link.log is not None:
                    sqlite.check_log(link, self.name)
                result = work(connection)
            sqlite.check_file(link, self.name)
            sqlite.check_log(link, self.name)
            return result


def _file_connection(connection: sql.Connection) -> FileConnection:
    link = connection.connection.dbapi_connection
    assert isinstance(link, FileConnection)
    return link


def _prepare_sqlite(connection: Any, _: Any) -> None:
    connection.isolation_level = None  # the driver must not begin transactions in its own way
    connection.execute("PRAGMA synchronous = EXTRA")
    connection.execute("PRAGMA fullfsync = ON")  # only for macOS, where an fsync does not reach the disk
    connection.execute("PRAGMA foreign_keys = ON")


def _begin_sqlite(connection: sql.Connection) -> None:
    """Begin on the driver's own connection, which is faster than a statement through SQLAlchemy."""
    write = connection.get_execution_options().get(_WRITE, False)
    _file_connection(connection).execute("BEGIN IMMEDIATE" if write else "BEGIN")


def _begin_postgresql(connection: sql.Connection) -> None:
    """Switch waiting for the disk on in each transaction: behind a pooler, a setting of the session does not last."""
    if connection.get_execution_options().get(_WRITE, False):
        connection.exec_driver_sql(
            "SELECT set_config('synchronous_commit', 'on', true) "
            "WHERE current_setting('synchronous_commit') IN ('off', 'local')"
        )


def _rolled_back(name: str) -> Moved:
    return Moved(
        f"ledger: {name} lacks releases that were in it before: an older copy was put in its place while it was open; "
        "nothing was released. Ask again to use what is there now, and add what was released since it was copied"
    )


def _failure(error: Exception, name: str) -> SourceError:
    """Return the error to raise for one of the database."""
    code = _code_of(error)
    for start, meaning in _FAILURES.items():
        if code.startswith(start):
            kind = Outdated if code in _NO_SUCH_COLUMN else SourceError
            return kind(f"ledger: {name} {meaning}")
    return SourceError(
        f"ledger: {name} failed ({code or type(error).__name__}); nothing was released. Check that the "
        "database runs, that its address, user and password are right, and ask again"
    )


def _code_of(error: Exception) -> str:
    """Return SQLite's name of the error or PostgreSQL's SQLSTATE."""
    cause = getattr(error, "orig", error)
    return str(getattr(cause, "sqlite_errorname", None) or getattr(cause, "sqlstate", None) or "")


def ledger_file(place: str | os.PathLike[str]) -> Path | None:
    """Return the file that a path or URL names as a ledger, or None for a ledger in PostgreSQL.

    Parameters
    ----------
    place
        The path of a file, or a URL, as for `Ledger`.

    Returns
    -------
    The path, which need not exist.

    Raises
    ------
    InvalidInput
        If `place` is neither. What was given is never shown, since it can hold a password.

    Examples
    --------
    >>> ledger_file("sqlite:///budget.sqlite")
    PosixPath('budget.sqlite')
    """
    url = url_of(place)
    return Path(url.database or "") if url.get_backend_name() == "sqlite" else None


def url_of(place: Any) -> URL:
    """Return a path or URL as a URL. What is refused is never shown, since it can hold a password.

    Parameters
    ----------
    place : str or path
        A file, or a URL such as `postgresql://user@host/database`.

    Returns
    -------
    sqlalchemy.URL
        The URL.

    Raises
    ------
    InvalidInput
        If there can be no ledger at that place.
    """
    if not isinstance(place, str | os.PathLike):
        raise InvalidInput("ledger", plain(f"an object of type {type(place).__name__}"), _PLACES)
    text = os.fspath(place)
    # Python keeps bytes that are not UTF-8 as surrogates, which SQLite cannot open.
    if not isinstance(text, str) or not text or "\0" in text or re.search("[\ud800-\udfff]", text):
        raise InvalidInput("ledger", plain("an unusable path" if text else "an empty path"), _PLACES)
    url = None
    if "://" not in text:
        if _CONNECTION_STRING.search(text) and not _PLAIN_PATH.match(text):
            given = plain("something like a connection string")
            raise InvalidInput("ledger", given, _PLACES + "; start a path of that form with ./")
        url = URL.create("sqlite", database=text)
    else:
        with contextlib.suppress(exc.ArgumentError, ValueError):
            url = make_url(text)
    if url is None:  # outside an except block: the message of that error can hold a part of the password
        raise InvalidInput("ledger", plain("a URL that cannot be read"), _PLACES)
    if url.drivername in ("postgres", "postgresql"):
        url = url.set(drivername="postgresql+psycopg")
    # In sqlite://folder/file the folder would be taken for a host, and left out.
    more = (url.query, url.host, url.username, url.password, url.port) if url.drivername == "sqlite" else ()
    if url.drivername not in ("sqlite", "postgresql+psycopg") or any(more):
        raise InvalidInput("ledger", plain("another kind of URL"), _PLACES)
    if url.drivername == "sqlite" and url.database in (None, "", ":memory:"):
        raise InvalidInput("ledger", plain("a database in memory"), _PLACES + "; a ledger must last")
    return url
