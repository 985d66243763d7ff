"""SQLite and PostgreSQL behind one door: how a ledger is opened, locked and committed, and what failures mean.

A commit is on the disk when it returns. SQLite: write-ahead log, synchronous=EXTRA, and BEGIN IMMEDIATE, so that one
writer at a time reads the state it then changes. PostgreSQL: a lock on the one row of the ledger does the same, and
synchronous_commit is switched on in every transaction that writes, where the server has it off.
"""

from __future__ import annotations

import contextlib
import functools
import os
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import sqlalchemy as sql
from sqlalchemy import event, exc
from sqlalchemy.pool import QueuePool

from dpselect.errors import DpSelectError, InvalidInput, SourceError, plain
from dpselect.privacy.ledger import forks, schema
from dpselect.privacy.ledger.failures import BUSY_SECONDS, TRY_AGAIN, code_of, meant
from dpselect.privacy.ledger.identity import Link, Moved, check_file, check_log, draft_of, log_ahead, open_file
from dpselect.privacy.ledger.place import url_of
from dpselect.privacy.ledger.tip import Outdated, Tip, rolled_back

Result = TypeVar("Result")

_ATTEMPTS = 20
_WRITE = "dpselect_write"


class _Engines(NamedTuple):
    """Two ways into one pool of connections: to look at one state of the ledger, and to change it."""

    reading: sql.Engine
    writing: sql.Engine


class Store:
    """One database that holds, or is about to hold, a ledger; used by the process that made it only."""

    def __init__(self, place: str | os.PathLike[str]) -> None:
        self.url = url_of(place)
        self._given = self.url.database or ""
        # The folder of the process may change; which ledger this is must not.
        self.file = Path(self._given).absolute() if self.url.get_backend_name() == "sqlite" else None
        self.process = os.getpid()
        self._engines: _Engines | None = None
        self._seen = Tip()

    @property
    def name(self) -> str:
        """What may be shown: a file's path, or the kind of database; never a URL, which can hold a password."""
        return "a PostgreSQL ledger" if self.file is None else self._given

    def read(self, work: Callable[[sql.Connection], Result]) -> Result:
        """Return what `work` finds in one consistent state of the ledger."""
        return self._look(lambda connection, _: work(connection))

    def write(
        self,
        work: Callable[[sql.Connection, Tip], Result],
        confirm: Callable[[sql.Connection, Tip, Result], None],
    ) -> Result:
        """Return what `work` returns once its changes are on the disk; no other process writes meanwhile.

        confirm: looks at what others see after the commit, and refuses unless the changes are there. A trigger can
        undo a change after it was counted, and one that is deferred does so in the commit itself.
        """

        def whole(connection: sql.Connection) -> tuple[Result, Tip]:
            tip = Tip.read(connection, lock=True)
            if not tip.follows(self._seen):
                raise rolled_back(self.name)
            result = work(connection, tip)
            tip.write(connection)
            return result, tip

        result, tip = self._on_present_tables(lambda: self._run(self._opened().writing, whole))
        if tip.events > self._seen.events:  # another thread may have written more by now
            self._seen = tip
        self._look(lambda connection, end: confirm(connection, end, result))
        return result

    def tip(self) -> Tip:
        """Return where the ledger ends."""
        return self._look(lambda _, tip: tip)

    def _look(self, work: Callable[[sql.Connection, Tip], Result]) -> Result:
        """Return what `work` finds in one consistent state of the ledger, given where that ends."""

        def whole(connection: sql.Connection) -> Result:
            return work(connection, Tip.read(connection, lock=False))

        return self._on_present_tables(lambda: self._run(self._opened().reading, whole))

    def _on_present_tables(self, action: Callable[[], Result]) -> Result:
        """Return what the action returns; if the tables were changed, open them again, which adapts or refuses."""
        try:
            return action()
        except Outdated:
            self.close()
        return action()

    def install(self) -> None:
        """Make the tables of a ledger, if the database holds none yet."""
        if self.file is not None:
            if not self.file.parent.is_dir() or self.file.is_dir():
                raise InvalidInput("ledger", self.name, "a file in an existing folder is needed")
            if not self.file.exists():
                self._prepare_file(self.file)
        if self._engines is None:
            self._engines = self._prepared(make=True)

    def close(self) -> None:
        """Let go of all connections; in another process than the one that made them they are not to be touched."""
        if self._engines is not None and self.process == os.getpid():
            self._engines.reading.dispose()
            self._engines = None

    def _opened(self) -> _Engines:
        if self._engines is None:
            if self.file is not None and not self.file.is_file():
                raise self._no_ledger()
            self._engines = self._prepared(make=False)
        return self._engines

    def _prepared(self, make: bool) -> _Engines:
        """Connect to tables of the present version, which are made only if that is asked for."""
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
        self._log_ahead(engines)
        return engines

    def _log_ahead(self, engines: _Engines) -> None:
        with forks.in_use, contextlib.suppress(exc.SQLAlchemyError), engines.writing.connect() as connection:
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
            with forks.in_use, contextlib.closing(sqlite3.connect(draft)) as connection:
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
                f"ledger: {self.name} cannot be made; check permissions and disk space of its folder, and whether its "
                "file system has hard links"
            ) from None
        finally:
            for ending in ("", "-wal", "-shm", "-journal"):
                draft.with_name(draft.name + ending).unlink(missing_ok=True)

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
                creator=functools.partial(open_file, self.file, self.name, BUSY_SECONDS),
                poolclass=QueuePool,
                hide_parameters=True,
            )
        except ModuleNotFoundError:
            raise InvalidInput(
                "ledger", plain("a PostgreSQL URL"), "its driver is needed: pip install 'dpselect[postgresql]'"
            ) from None
        forks.watch(engine)
        event.listen(engine, "connect", _prepare_sqlite)
        event.listen(engine, "begin", _begin_sqlite)
        return _Engines(engine, engine.execution_options(**{_WRITE: True}))

    def _run(self, engine: sql.Engine, work: Callable[[sql.Connection], Result]) -> Result:
        for attempt in range(_ATTEMPTS):
            try:
                return self._once(engine, work)
            except Moved:
                engine.dispose()
                self._engines, self._seen = None, Tip()
                raise
            except DpSelectError:
                raise
            except (exc.SQLAlchemyError, sqlite3.Error) as error:
                # PostgreSQL has undone such a transaction as a whole, so that it may be run once more.
                if code_of(error) not in TRY_AGAIN:
                    failure = meant(error, self.name)
                    break
            time.sleep(0.01 * (attempt + 1))
        else:
            failure = SourceError(f"ledger: {self.name} is too busy; nothing was recorded or released, try again")
        # Outside the except block, so that the database's own words, which can hold credentials, are not chained to it.
        raise failure

    def _once(self, engine: sql.Engine, work: Callable[[sql.Connection], Result]) -> Result:
        """Return what `work` returns once it is committed, to what had the ledger's name before and has it after."""
        with contextlib.nullcontext() if self.file is None else forks.in_use:
            with engine.begin() as connection:
                link = connection.connection.dbapi_connection
                if isinstance(link, Link):
                    check_file(link, self.name)
                    if link.log is not None:
                        check_log(link, self.name)
                result = work(connection)
            if isinstance(link, Link):
                check_file(link, self.name)
                check_log(link, self.name)
            return result


def _prepare_sqlite(connection: Any, _: Any) -> None:
    connection.isolation_level = None  # the driver must not begin transactions in its own way
    connection.execute("PRAGMA synchronous = EXTRA")
    connection.execute("PRAGMA fullfsync = ON")  # macOS alone knows it: there an fsync does not reach the disk
    connection.execute("PRAGMA foreign_keys = ON")


def _begin_sqlite(connection: sql.Connection) -> None:
    """Begin on the driver's own connection: what SQLAlchemy does around a statement takes longer than this one."""
    write = connection.get_execution_options().get(_WRITE, False)
    link = connection.connection.dbapi_connection
    assert isinstance(link, Link)
    link.execute("BEGIN IMMEDIATE" if write else "BEGIN")


def _begin_postgresql(connection: sql.Connection) -> None:
    """Wait for the disk, said in each transaction: behind a pooler, a setting of the session does not last."""
    if connection.get_execution_options().get(_WRITE, False):
        connection.exec_driver_sql(
            "SELECT set_config('synchronous_commit', 'on', true) "
            "WHERE current_setting('synchronous_commit') IN ('off', 'local')"
        )
