"""DuckDB in this process: it reads files and frames, DuckDB files, and lists of items that have to be converted.

No condition may be answered from the statistics of a file. Parquet's statistics leave NaN out, so one person's row
would decide whether DuckDB skips the rows beside it. Two things prevent that: `behind_barrier` for columns that we read
ourselves, and `ignore_statistics` for the optimizers of the connection.
"""

from __future__ import annotations

import contextlib
import tempfile
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any

from dpselect.errors import InvalidInput, SourceError, plain
from dpselect.sources.conditions import Condition
from dpselect.sources.engine import Progress, ThreadedEngine, name_parts, quoted_identifier, worker_thread

_FROM_STATISTICS = ("statistics_propagation", "join_filter_pushdown", "row_group_pruner")
"""DuckDB's optimizers that use the statistics of files and tables."""

_EQUAL_IN_SOME_COLLATION = (("a", "A"), ("\u00e1", "a"), ("\u00e1", "a\u0301"))
"""Pairs of texts that NOCASE, NOACCENT, and NFC and the collations of languages, treat as equal."""

_INTO_READERS = "filter_pushdown"
"""DuckDB's optimizer that moves conditions into the readers of files, which use statistics on their own."""


def behind_barrier(column: str) -> str:
    """Return SQL for the value of a column, on which a reader of files cannot evaluate a condition.

    DuckDB derives nothing about the result of TRY. A view or an Ibis expression of the caller's can still hold a
    condition before this barrier: see `is_base_table`.
    """
    return f"TRY({column})"


@dataclass(frozen=True)
class Bound:
    """A table that the engine knows, and `load`, which brings its rows there; to be called after charging."""

    table: Any
    load: Callable[[], Any] = lambda: None


class EmbeddedEngine(ThreadedEngine):
    """DuckDB in this process; the connection is ours or the caller's."""

    computes_shared_parts_once = True

    def __init__(self, backend: Any, worker: ThreadPoolExecutor, progress: Progress | None) -> None:
        super().__init__(backend, worker, progress)
        # Ibis 12 calls a deprecated DuckDB method. Filters belong to the whole process and cannot be restored safely
        # while threads run, so this one is narrow and stays.
        warnings.filterwarnings("ignore", "fetch_arrow_table", DeprecationWarning, module=r"ibis\.backends\.duckdb")

    @property
    def connection(self) -> Any:
        """The DuckDB connection, for DuckDB's own SQL."""
        return self.backend.con

    def check(self, expression: Any) -> None:
        """Let DuckDB plan an expression: with LIMIT 0 it may compute rows, and one of them may fail."""

        def plan() -> None:
            self.backend._run_pre_execute_hooks(expression)
            self.connection.execute(f"EXPLAIN {self.backend.compile(expression)}")

        self.run(plan)

    @contextlib.contextmanager
    def materialised(self, expression: Any) -> Iterator[Any]:
        """Keep the result of a table expression as a temporary table within the block.

        Ibis' `cache` would send an expression over in-memory tables to its own default connection.
        """
        import ibis

        name = ibis.util.gen_name("dpselect")
        try:
            yield self.run(lambda: self.backend.create_table(name, expression, temp=True))
        finally:
            with contextlib.suppress(Exception):
                self.backend.drop_table(name, force=True)

    def registered(self, empty: Any, read: Callable[[], Any]) -> Bound:
        """Register an Arrow table: `empty`, which has its schema, until `load` replaces it by the result of `read`."""
        import ibis

        name = ibis.util.gen_name("dpselect")
        self.run(lambda: self.connection.register(name, empty))
        columns = ", ".join(f"{behind_barrier(column)} AS {column}" for column in empty.column_names)
        table = self.view(f"SELECT {columns} FROM {name}", ibis.Schema.from_pyarrow(empty.schema))
        return Bound(table, lambda: self.run(lambda: self.connection.register(name, read())))

    def loose_equality(self, table: Any, name: str) -> str | None:
        """Return that a column has a collation in which different texts are equal.

        DuckDB does not tell the collation of a column, so texts that differ in case, accents or form take the place of
        the column's value in a row that has none.
        """
        self.prepare(table)
        column = f"SELECT {quoted_identifier(name)} AS text FROM ({self.backend.compile(table)}) AS source WHERE false"
        equal = " OR ".join(f"coalesce(text, '{one}') = '{other}'" for one, other in _EQUAL_IN_SOME_COLLATION)
        query = f"SELECT {equal} FROM (SELECT 1) LEFT JOIN ({column}) ON true"
        [(is_loose,)] = self.run(lambda: self.connection.execute(query).fetchall())
        return "a collation such as NOCASE" if is_loose else None

    def barrier(self, stack: contextlib.ExitStack, table: Any) -> Any:
        """Return an Ibis table of the same rows, on which no condition is answered from the statistics of files."""
        self.prepare(table)
        names = [quoted_identifier(name) for name in table.columns]
        columns = ", ".join(f"{behind_barrier(name)} AS {name}" for name in names)
        return self._view_within(stack, f"SELECT {columns} FROM {self.source(table)} AS source", table.schema())

    def where(self, stack: contextlib.ExitStack, table: Any, condition: Condition, text: str) -> Any:
        """Return the rows of an Ibis table for which a condition is true; TRY makes it null where it fails."""
        query = f"SELECT * FROM {self.source(table)} AS source WHERE TRY(CAST(({text}\n) AS BOOLEAN))"
        return self._view_within(stack, query, table.schema())

    def view(self, query: str, schema: Any = None) -> Any:
        """Return the rows of a query as an Ibis table: a temporary view, so that Ibis need not parse the query.

        Without a schema Ibis asks DuckDB for it; Ibis does not know all of DuckDB's types.
        """
        import ibis

        name = ibis.util.gen_name("dpselect")
        self.run(lambda: self.connection.execute(f"CREATE TEMPORARY VIEW {name} AS {query}"))
        return self.run(lambda: self.backend.table(name)) if schema is None else self.known_table(name, schema)

    def _view_within(self, stack: contextlib.ExitStack, query: str, schema: Any) -> Any:
        rows = self.view(query, schema)
        stack.callback(self._drop_view, rows.get_name())
        return rows

    def _drop_view(self, name: str) -> None:
        with contextlib.suppress(Exception):
            self.connection.execute(f"DROP VIEW IF EXISTS temp.{name}")

    @contextlib.contextmanager
    def uploaded(self, rows: Any) -> Iterator[Any]:
        """Register a public Arrow table within the block; Ibis would leave a view behind."""
        import ibis

        name = ibis.util.gen_name("dpselect")
        try:
            self.run(lambda: self.connection.register(name, rows))
            yield self.run(lambda: self.backend.table(name))
        finally:
            with contextlib.suppress(Exception):
                self.connection.unregister(name)

    def _arrow(self, expression: Any) -> Any:
        """Return the rows as Ibis' `to_pyarrow` does, without the pandas that it imports."""
        self.backend._run_pre_execute_hooks(expression)
        rows = self.connection.sql(self.backend.compile(expression)).to_arrow_table()
        wanted = expression.as_table().schema().to_pyarrow()
        # The first cast imports pyarrow.compute, which takes 30 ms.
        return rows if rows.schema.equals(wanted) else rows.cast(wanted)

    def _share(self) -> float | None:
        percent = self.connection.query_progress()
        return percent / 100 if 0 <= percent <= 100 else None

    def _cancel(self) -> None:
        self.connection.interrupt()


@contextlib.contextmanager
def embedded_engine(progress: Progress | None = None) -> Iterator[EmbeddedEngine]:
    """Open an in-memory DuckDB that spills to a private temporary folder, and close it at the end."""
    import duckdb
    import ibis

    with contextlib.ExitStack() as stack:
        spill = stack.enter_context(tempfile.TemporaryDirectory(prefix="dpselect-", ignore_cleanup_errors=True))
        backend = ibis.duckdb.connect(temp_directory=spill, autoinstall_known_extensions=False)
        stack.callback(backend.disconnect)
        with contextlib.suppress(duckdb.InvalidInputException):  # without ipywidgets a notebook has no progress
            backend.con.execute("SET enable_progress_bar_print = false")
            backend.con.execute("SET enable_progress_bar = true")
        ignore_statistics(backend.con)
        yield EmbeddedEngine(backend, stack.enter_context(worker_thread()), progress)


def embedded_when_needed(stack: contextlib.ExitStack, progress: Progress | None) -> Callable[[], EmbeddedEngine]:
    """Return a function that opens the embedded engine at its first call, which takes 60 ms; the stack closes it."""
    return cache(lambda: stack.enter_context(embedded_engine(progress)))


def ignore_statistics(connection: Any, *, of_readers: bool = False) -> None:
    """Disable the optimizers that answer conditions from statistics.

    With `of_readers`, also within views and expressions of the caller's, which makes queries slower.
    """
    wanted = {*_FROM_STATISTICS, *([_INTO_READERS] if of_readers else [])}
    known = {name for (name,) in connection.execute("SELECT name FROM duckdb_optimizers()").fetchall()}
    disabled = {name for name in _disabled_optimizers(connection).split(",") if name} | (known & wanted)
    connection.execute(f"SET disabled_optimizers = '{','.join(sorted(disabled))}'")


def _disabled_optimizers(connection: Any) -> str:
    return str(connection.execute("SELECT current_setting('disabled_optimizers')").fetchone()[0])


_lock = Lock()
_settings_before: list[tuple[Any, str]] = []
_users = 0


@contextlib.contextmanager
def without_statistics(engine: EmbeddedEngine, *, of_readers: bool) -> Iterator[None]:
    """Disable those optimizers on a connection of the caller's within the block.

    The setting belongs to the whole database, which several of our queries can use at a time: the last one restores it.
    """
    global _users
    setting = engine.run(lambda: _disabled_optimizers(engine.connection))
    with _lock:
        # Recorded before it is changed, because Ctrl-C can come in between.
        _settings_before.append((engine.connection, setting))
        _users += 1
    try:
        try:
            engine.run(lambda: ignore_statistics(engine.connection, of_readers=of_readers))
            is_set = True
        except SourceError:
            is_set = False
        if not is_set:
            raise SourceError(
                "table: the connection does not allow setting disabled_optimizers, without which DuckDB would answer "
                "conditions from statistics; use a connection without SET lock_configuration"
            )
        yield
    finally:
        with _lock:
            _users -= 1
            while not _users and _settings_before:
                earlier, setting = _settings_before.pop()
                with contextlib.suppress(Exception):
                    earlier.execute(f"SET disabled_optimizers = '{setting}'")


def is_base_table(connection: Any, name: str, database: str | None = None) -> bool:
    """Whether a name is a table's. A view can hold a condition on files, which their statistics would answer."""
    query = "SELECT count(*) FROM duckdb_tables() WHERE table_name = ? AND database_name = coalesce(?, database_name)"
    views = "SELECT count(*) FROM duckdb_views() WHERE view_name = ? AND database_name = coalesce(?, database_name)"
    tables = connection.execute(query, [name, database]).fetchone()[0]
    return bool(tables) and not connection.execute(views, [name, database]).fetchone()[0]


def attach_duckdb(engine: EmbeddedEngine, path: str) -> None:
    """Open a DuckDB file for reading, under the name dpselect_source."""
    if not Path(path).is_file():
        raise InvalidInput(
            "table", plain("a DuckDB URL"), "must name an existing file as duckdb://FILE or duckdb:///FILE"
        )
    quoted = path.replace("'", "''")
    try:
        engine.run(lambda: engine.connection.execute(f"ATTACH '{quoted}' AS dpselect_source (READ_ONLY)"))
        return
    except SourceError:
        pass
    raise SourceError(
        "table: the DuckDB file cannot be opened for reading; check that it is a DuckDB file, and that no other "
        "program has it open for writing"
    )


def attached_table(engine: EmbeddedEngine, name: str) -> Any:
    """Return a table of the attached DuckDB file."""
    parts = name_parts(name)

    def check() -> None:
        if not is_base_table(engine.connection, parts[-1], "dpselect_source"):
            ignore_statistics(engine.connection, of_readers=True)

    try:
        engine.run(check)
        return engine.view(f"SELECT * FROM dpselect_source.{'.'.join(map(quoted_identifier, parts))}")
    except SourceError:
        pass
    raise InvalidInput("table_name", name, "the file has no such table; check its name and schema")
