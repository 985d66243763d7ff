"""DuckDB in this process: it reads files and frames, and lists that have to be converted."""

from __future__ import annotations

import contextlib
import tempfile
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from threading import Lock
from typing import Any

from dpselect.errors import SourceError
from dpselect.sources.conditions import Condition
from dpselect.sources.engine import Progress, ThreadedEngine, worker_thread

_FROM_STATISTICS = ("statistics_propagation", "join_filter_pushdown", "row_group_pruner")
"""DuckDB's optimizers that conclude something from the statistics of files and tables."""

_INTO_READERS = "filter_pushdown"
"""The one that moves conditions into the readers of files, which have statistics of their own."""


def behind_barrier(column: str) -> str:
    """Return SQL with the value of a column, on which DuckDB answers no condition from the statistics of a file.

    Parquet's statistics leave NaN out, so that one row would decide whether DuckDB skips the rows beside it. DuckDB
    knows nothing of what TRY returns, so a reader of files cannot judge a condition on it; `ignore_statistics` does the
    rest. What lies inside a view or an Ibis expression of the caller's is beyond this barrier: see `is_base_table`.
    """
    return f"TRY({column})"


@dataclass(frozen=True)
class Bound:
    """A table that the engine knows, and what brings its rows there if they are elsewhere: called after charging."""

    table: Any
    load: Callable[[], Any] = lambda: None


class EmbeddedEngine(ThreadedEngine):
    """DuckDB in this process, which does not look for signals while it runs; the connection is ours or the caller's."""

    computes_shared_parts_once = True

    def __init__(self, backend: Any, worker: ThreadPoolExecutor, progress: Progress | None) -> None:
        super().__init__(backend, worker, progress)
        # Ibis 12 calls a DuckDB method by its old name; its callers can do nothing about that. Filters belong to the
        # whole process and are not safe to restore while threads run, so this one is narrow instead.
        warnings.filterwarnings("ignore", "fetch_arrow_table", DeprecationWarning, module=r"ibis\.backends\.duckdb")

    @property
    def connection(self) -> Any:
        """The DuckDB connection itself, for what is said in DuckDB's SQL."""
        return self.backend.con

    def check(self, expression: Any) -> None:
        """Let DuckDB plan an expression and no more: with LIMIT 0 it can compute rows, of which one may fail."""

        def plan() -> None:
            self.backend._run_pre_execute_hooks(expression)
            self.connection.execute(f"EXPLAIN {self.backend.compile(expression)}")

        self.run(plan)

    @contextlib.contextmanager
    def materialised(self, expression: Any) -> Iterator[Any]:
        """Keep the result of a table expression as a temporary table, which ends with the connection at the latest.

        Ibis' `cache` would send an expression over in-memory tables alone to its own default connection.
        """
        import ibis

        name = ibis.util.gen_name("dpselect")
        try:
            yield self.run(lambda: self.backend.create_table(name, expression, temp=True))
        finally:
            with contextlib.suppress(Exception):
                self.backend.drop_table(name, force=True)

    def registered(self, empty: Any, read: Callable[[], Any]) -> Bound:
        """Name an Arrow table in the engine: `empty`, which has its schema, until `load` puts the rows there."""
        import ibis

        name = ibis.util.gen_name("dpselect")
        self.run(lambda: self.connection.register(name, empty))
        columns = ", ".join(f"{behind_barrier(column)} AS {column}" for column in empty.column_names)
        table = self.view(f"SELECT {columns} FROM {name}", ibis.Schema.from_pyarrow(empty.schema))
        return Bound(table, lambda: self.run(lambda: self.connection.register(name, read())))

    def barrier(self, stack: contextlib.ExitStack, table: Any) -> Any:
        """Return an Ibis table of the same rows, on which no condition is answered from the statistics of files."""
        self.prepare(table)
        names = ['"' + name.replace('"', '""') + '"' for name in table.columns]
        columns = ", ".join(f"{behind_barrier(name)} AS {name}" for name in names)
        rows = self.view(f"SELECT {columns} FROM {self.source(table)} AS source", table.schema())
        stack.callback(self._drop_view, rows.get_name())
        return rows

    def where(self, stack: contextlib.ExitStack, table: Any, condition: Condition, text: str) -> Any:
        """Return the rows of an Ibis table for which a condition is true; TRY makes it null where it fails."""
        rows = self.view(
            f"SELECT * FROM {self.source(table)} AS source WHERE TRY(CAST(({text}\n) AS BOOLEAN))", table.schema()
        )
        stack.callback(self._drop_view, rows.get_name())
        return rows

    def view(self, query: str, schema: Any = None) -> Any:
        """Return the rows of a query as an Ibis table: a temporary view, so that Ibis need not parse the query.

        Ibis finds out the schema if none is given; it does not know all types that DuckDB has.
        """
        import ibis

        name = ibis.util.gen_name("dpselect")
        self.run(lambda: self.connection.execute(f"CREATE TEMPORARY VIEW {name} AS {query}"))
        return self.run(lambda: self.backend.table(name)) if schema is None else self.known_table(name, schema)

    def _drop_view(self, name: str) -> None:
        with contextlib.suppress(Exception):
            self.connection.execute(f"DROP VIEW IF EXISTS temp.{name}")

    @contextlib.contextmanager
    def uploaded(self, rows: Any) -> Iterator[Any]:
        """Let a public Arrow table be seen under a name for the time of the block; Ibis would leave a view behind."""
        import ibis

        name = ibis.util.gen_name("dpselect")
        try:
            self.run(lambda: self.connection.register(name, rows))
            yield self.run(lambda: self.backend.table(name))
        finally:
            with contextlib.suppress(Exception):
                self.connection.unregister(name)

    def _share(self) -> float | None:
        percent = self.connection.query_progress()
        return percent / 100 if 0 <= percent <= 100 else None

    def _cancel(self) -> None:
        self.connection.interrupt()


class _WithoutStatistics:
    """Keeps DuckDB from answering conditions from statistics while we use a connection of the caller's.

    The setting belongs to the whole database, which several of our queries can use at a time: the last one puts it
    back.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._active = 0
        self._before: list[tuple[Any, str]] = []

    @contextlib.contextmanager
    def __call__(self, engine: EmbeddedEngine, *, of_readers: bool) -> Iterator[None]:
        setting = engine.run(lambda: _disabled_optimizers(engine.connection))
        with self._lock:
            # Recorded before it is changed: Ctrl-C can come in between.
            self._before.append((engine.connection, setting))
            self._active += 1
        try:
            try:
                engine.run(lambda: ignore_statistics(engine.connection, of_readers=of_readers))
            except SourceError:
                failed = True
            else:
                failed = False
            if failed:
                raise SourceError(
                    "table: DuckDB must not answer conditions from statistics, and the connection does not let "
                    "disabled_optimizers be set; SET lock_configuration may be why: use another connection"
                )
            yield
        finally:
            with self._lock:
                self._active -= 1
                while not self._active and self._before:
                    earlier, setting = self._before.pop()
                    with contextlib.suppress(Exception):
                        earlier.execute(f"SET disabled_optimizers = '{setting}'")


without_statistics = _WithoutStatistics()


def ignore_statistics(connection: Any, *, of_readers: bool = False) -> None:
    """Switch off what answers conditions from statistics.

    of_readers: also within views and expressions of the caller's, at the price of slower queries.
    """
    wanted = {*_FROM_STATISTICS, *([_INTO_READERS] if of_readers else [])}
    known = {name for (name,) in connection.execute("SELECT name FROM duckdb_optimizers()").fetchall()}
    disabled = {name for name in _disabled_optimizers(connection).split(",") if name} | (known & wanted)
    connection.execute(f"SET disabled_optimizers = '{','.join(sorted(disabled))}'")


def _disabled_optimizers(connection: Any) -> str:
    return str(connection.execute("SELECT current_setting('disabled_optimizers')").fetchone()[0])


def is_base_table(connection: Any, name: str, database: str | None = None) -> bool:
    """Whether a name is that of a table: a view can hold a condition on files, which their statistics would answer."""
    query = "SELECT count(*) FROM duckdb_tables() WHERE table_name = ? AND database_name = coalesce(?, database_name)"
    views = "SELECT count(*) FROM duckdb_views() WHERE view_name = ? AND database_name = coalesce(?, database_name)"
    tables = connection.execute(query, [name, database]).fetchone()[0]
    return bool(tables) and not connection.execute(views, [name, database]).fetchone()[0]


@contextlib.contextmanager
def embedded_engine(progress: Progress | None = None) -> Iterator[EmbeddedEngine]:
    """Open an in-memory DuckDB that spills to a private temporary folder, and close it also after an error."""
    import ibis

    with contextlib.ExitStack() as stack:
        spill = stack.enter_context(tempfile.TemporaryDirectory(prefix="dpselect-", ignore_cleanup_errors=True))
        backend = ibis.duckdb.connect(temp_directory=spill, autoinstall_known_extensions=False)
        stack.callback(backend.disconnect)
        backend.con.execute("SET enable_progress_bar = true")
        backend.con.execute("SET enable_progress_bar_print = false")
        ignore_statistics(backend.con)
        yield EmbeddedEngine(backend, stack.enter_context(worker_thread()), progress)


def embedded_when_needed(stack: contextlib.ExitStack, progress: Progress | None) -> Callable[[], EmbeddedEngine]:
    """Return what gives the embedded engine: opened at the first call, which takes 60 ms, and closed by the stack."""
    return cache(lambda: stack.enter_context(embedded_engine(progress)))
