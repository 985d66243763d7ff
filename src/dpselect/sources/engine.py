"""The engine that counts: how work is run on it, how it is cancelled, and which of its errors are shown.

An engine's own error messages can quote rows or credentials. So a failure is reported by its error code alone, in
words that are fixed here.
"""

from __future__ import annotations

import contextlib
import re
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cached_property
from typing import Any, TypeVar

from dpselect.errors import DpSelectError, InvalidInput, SourceError
from dpselect.sources.conditions import Condition

Progress = Callable[[float | None], None]
Result = TypeVar("Result")

WORKER = "dpselect"
"""Prefix of the names of the threads on which engines work."""

_POLL_SECONDS = 0.1
_CANCEL_SECONDS = 0.5

LOST = "the connection to the server was lost and nothing was released; check the server and run again"
UNREACHABLE = "no connection: the server cannot be reached; check host and port, and that the server runs"
NOT_ADMITTED = "no connection: the server refused the account; check user, password and database"

_WITHHELD = (
    "the engine failed while reading it, and its message is withheld because it can quote rows; check that the file or "
    "table is complete and readable, and that there is enough memory and disk space"
)
_MISSING_TABLE = "there is no such table; check its name and schema"
_MISSING_COLUMN = "a column does not exist; check the names of the columns"
_NO_RIGHT = "permission denied; grant the account the right to read (GRANT SELECT) every table that is used"
_STOPPED = "the server stopped the query; its time limit for statements may be too short"
_VALUES = (
    "the engine could not compute with the values of a row; check the types of the columns, and that the condition "
    "cannot fail on any row"
)
_MISMATCH = "types do not match; check the types of the columns, and what the condition compares"
_RESOURCES = "the server has too little memory, disk space or connections for the query"

_POSTGRESQL = {
    "08": LOST,
    "22": _VALUES,
    "28": NOT_ADMITTED,
    "3D": NOT_ADMITTED,
    "40": "the server gave up the query in favour of others; run again",
    "53": _RESOURCES,
    "54": _RESOURCES,
    "25006": "the server is read-only, so that no temporary table can be made",
    "25P03": LOST,
    "3F000": _MISSING_TABLE,
    "42P01": _MISSING_TABLE,
    "42501": _NO_RIGHT,
    "42703": _MISSING_COLUMN,
    "42804": _MISMATCH,
    "42883": _MISMATCH,
    "42846": _MISMATCH,
    "57014": _STOPPED,
    "57P": LOST,
    "55P03": "the table is locked; run again later",
}
"""Reasons by SQLSTATE, or by the first two or three characters of it."""

_SPARK = {
    "TABLE_OR_VIEW_NOT_FOUND": _MISSING_TABLE,
    "SCHEMA_NOT_FOUND": _MISSING_TABLE,
    "PATH_NOT_FOUND": "there is no such path; check it",
    "FAILED_READ_FILE": "a file of the table cannot be read, or changed while it was read",
    "UNRESOLVED_COLUMN": _MISSING_COLUMN,
    "AMBIGUOUS_REFERENCE": "two columns have the same name; rename one of them",
    "INSUFFICIENT_PERMISSIONS": _NO_RIGHT,
    "INSUFFICIENT_TABLE_PERMISSIONS": _NO_RIGHT,
    "DATATYPE_MISMATCH": _MISMATCH,
    "ARITHMETIC_OVERFLOW": _VALUES,
    "CAST_INVALID_INPUT": _VALUES,
    "CAST_OVERFLOW": _VALUES,
    "DIVIDE_BY_ZERO": _VALUES,
    "NUMERIC_VALUE_OUT_OF_RANGE": _VALUES,
    "UNABLE_TO_INFER_SCHEMA": "there is no Parquet file there, or none that can be read",
}
"""Reasons by Spark's error condition."""


class EngineError(SourceError):
    """The failure of an engine, with the reason that its error code gives, or None."""

    def __init__(self, reason: str | None = None) -> None:
        self.reason = reason
        super().__init__(f"table: {_WITHHELD if reason is None else reason}")

    def __reduce__(self) -> tuple[type[EngineError], tuple[str | None]]:
        """Rebuild from the reason, so that the error crosses process boundaries."""
        return (type(self), (self.reason,))


def reason_for(error: BaseException) -> str | None:
    """Return why an engine failed, or None if its error code is not listed here."""
    kind = type(error)
    if kind.__module__.startswith("psycopg"):
        code = getattr(error, "sqlstate", None)
        if code is None:
            return LOST if kind.__name__ == "OperationalError" else None
        return next((_POSTGRESQL[code[:length]] for length in (5, 3, 2) if code[:length] in _POSTGRESQL), None)
    if kind.__module__.startswith(("pyspark", "py4j")):
        code = _spark_code(error)
        if code is None:
            return LOST if kind.__name__ in ("Py4JNetworkError", "ConnectionRefusedError") else None
        return next((_SPARK[name] for name in (code, code.partition(".")[0]) if name in _SPARK), None)
    is_missing = kind.__module__.startswith("ibis") and kind.__name__ == "TableNotFound"
    return _MISSING_TABLE if is_missing else None


def _spark_code(error: BaseException) -> str | None:
    for method in ("getCondition", "getErrorClass"):
        if hasattr(error, method):
            try:
                code = getattr(error, method)()
            except Exception:
                return None
            return str(code) if code else None
    return None


class Engine:
    """An Ibis backend, and the only way in which work is run on it and results are fetched from it."""

    computes_shared_parts_once = False
    """Whether a query that uses a subquery twice computes it only once."""

    def __init__(self, backend: Any) -> None:
        self.backend = backend
        self._kept: list[Any] = []

    @property
    def casts_text_safely(self) -> bool:
        """Whether a cast of text that is not a number gives null instead of an error."""
        import ibis.expr.operations as operations

        return bool(self.backend.has_operation(operations.TryCast))

    def run(self, work: Callable[[], Result]) -> Result:
        """Return what `work` returns; its failure becomes an EngineError that says nothing about rows."""
        try:
            return work()
        except DpSelectError:
            raise
        except Exception as error:
            reason = reason_for(error)
        # Raised outside the handler, so that the engine's own error is not attached as its context.
        raise EngineError(reason)

    def fetch(self, expression: Any) -> list[dict[str, Any]]:
        """Return the rows of a small table expression; no other method brings rows into Python."""
        return self.run(lambda: self._rows(expression))

    def columns(self, expression: Any) -> Any:
        """Return a table expression of numbers as an Arrow table, which may be long."""
        return self.run(lambda: self._arrow(expression))

    def check(self, expression: Any) -> None:
        """Raise if the engine cannot compute a table expression; no row is computed."""
        self.run(lambda: self._rows(expression.limit(0)))

    def table(self, name: str) -> Any:
        """Return the Ibis table of a name, `table` or `schema.table`."""
        *schema, table = name_parts(name)
        try:
            return self.run(lambda: self._named(table, tuple(schema)))
        except EngineError as error:
            reason = error.reason
        raise InvalidInput("table_name", name, reason or "there is no such table, or the account may not read it")

    def scalar(self, count: Any) -> int:
        """Return the one number of an expression such as `table.count()`."""
        return int(self.fetch(count.as_table())[0][count.get_name()])

    def digest(self, text: Any) -> Any:
        """Return the MD5 hash of a text column as 32 hexadecimal digits, or the text if the engine has no MD5."""
        return self._hashed(text) if self.has_digest else text

    @cached_property
    def has_digest(self) -> bool:
        """Whether the engine has MD5. Without it, tied items are ranked in the engine's own order of texts."""
        import ibis

        with contextlib.suppress(EngineError):
            return bool(self.fetch(self._hashed(ibis.literal("a")).name("hash").as_table()))
        return False

    def _hashed(self, text: Any) -> Any:
        import ibis
        import ibis.expr.operations as operations

        if self.backend.has_operation(operations.HexDigest):
            return text.hexdigest("md5")
        return ibis.udf.scalar.builtin(_md5, name="md5", signature=(("string",), "string"))(text)

    def prepare(self, expression: Any) -> None:
        """Register the in-memory tables of an expression with the backend, for SQL written around it."""
        self._kept.append(expression)
        self.run(lambda: self.backend._run_pre_execute_hooks(expression))

    def loose_equality(self, table: Any, name: str) -> str | None:
        """Return why different texts of a column can be equal, such as "collation NOCASE"; None if they cannot.

        No row is read. Of an engine that is not known here, it is not known either.
        """
        return None

    def barrier(self, stack: contextlib.ExitStack, table: Any) -> Any:
        """Return an Ibis table of the same rows, on which no condition is answered from the statistics of files."""
        return table

    def where(self, stack: contextlib.ExitStack, table: Any, condition: Condition, text: str) -> Any:
        """Return the rows of an Ibis table for which a condition, written as `text` here, is true and does not fail."""
        import ibis.expr.operations as operations

        if not condition.compares_with_constants:
            raise InvalidInput(
                "where",
                condition.text,
                "must only compare columns with constants on this engine (=, <, IN, BETWEEN, IS NULL, AND, OR, NOT); "
                "anything else may fail on a row, which would reveal that row",
            )
        query = f"SELECT * FROM {self.source(table)} AS source WHERE ({text}\n)"
        return operations.SQLQueryResult(query, table.schema(), self.backend).to_expr()

    def known_table(self, name: str, schema: Any) -> Any:
        """Return the Ibis table of a temporary table or view whose schema is known."""
        import ibis.expr.operations as operations

        return operations.DatabaseTable(
            name=name, schema=schema, source=self.backend, namespace=operations.Namespace()
        ).to_expr()

    def source(self, table: Any) -> str:
        """Return an Ibis table as SQL for FROM: a table by its name, since Ibis would convert some of its columns."""
        import ibis.expr.operations as operations
        import sqlglot

        found = table.op()
        if not isinstance(found, operations.DatabaseTable):
            return f"({self.backend.compile(table)})"
        namespace = found.namespace
        name = sqlglot.exp.table_(found.name, db=namespace.database, catalog=namespace.catalog, quoted=True)
        return str(name.sql(self.backend.dialect))

    @contextlib.contextmanager
    def materialised(self, expression: Any) -> Iterator[Any]:
        """Compute a table expression once, keep the result in the engine, and drop it at the end."""
        cached = self.run(expression.cache)
        try:
            yield cached
        finally:
            with contextlib.suppress(Exception):
                cached.release()

    @contextlib.contextmanager
    def uploaded(self, rows: Any) -> Iterator[Any]:
        """Make a public Arrow table available in the engine within the block."""
        import ibis

        yield ibis.memtable(rows)

    def _rows(self, expression: Any) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = self._arrow(expression).to_pylist()
        return rows

    def _arrow(self, expression: Any) -> Any:
        return self.backend.to_pyarrow(expression)

    def _named(self, table: str, schema: tuple[str, ...]) -> Any:
        database = schema[0] if len(schema) == 1 else schema or None
        return self.backend.table(table, database=database)


class ThreadedEngine(Engine):
    """An engine whose work runs on a second thread, so that Ctrl-C cancels a query and progress can be shown."""

    has_digest = True

    def __init__(self, backend: Any, worker: ThreadPoolExecutor, progress: Progress | None) -> None:
        super().__init__(backend)
        self._worker = worker
        self._progress = progress

    def run(self, work: Callable[[], Result]) -> Result:
        """Run `work` on the second thread; an interrupt of this thread cancels the query."""
        future = self._worker.submit(work)
        try:
            failure = _failure(future, self._progress, self._share)
        except BaseException:
            # On a thread of its own, so that the cancelling goes on if a second Ctrl-C interrupts the waiting.
            canceller = threading.Thread(target=self._end, args=(future,), name=WORKER, daemon=True)
            canceller.start()
            canceller.join()
            del future, canceller
            raise
        if failure is None:
            return future.result()
        if isinstance(failure, DpSelectError):
            raise failure
        reason = reason_for(failure)
        # Error reporters may record the variables of a frame, and these hold the engine's message.
        del failure, future
        raise EngineError(reason)

    def _share(self) -> float | None:
        """Return the share of the query that is done, if the engine knows it."""
        return None

    def _end(self, future: Future[Any]) -> None:
        """Cancel until the second thread is done: between two queries there may be nothing to cancel yet."""
        while True:
            with contextlib.suppress(Exception):
                self._cancel()
            with contextlib.suppress(TimeoutError):
                future.exception(_CANCEL_SECONDS)
                return

    def _cancel(self) -> None:
        """Cancel the query that runs on the second thread."""
        raise NotImplementedError


def attempt(work: Callable[[], Result], progress: Progress | None, undo: Callable[[Result], None]) -> Result:
    """Return what `work` returns, run on a thread of its own; Ctrl-C does not wait, and its late result is undone."""
    future: Future[Result] = Future()

    def fulfil() -> None:
        try:
            future.set_result(work())
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=fulfil, name=WORKER, daemon=True).start()
    try:
        failure = _failure(future, progress, lambda: None)
    except BaseException:
        future.add_done_callback(lambda late: None if late.exception() else undo(late.result()))
        raise
    if failure is not None:
        raise failure
    return future.result()


def _failure(future: Future[Any], progress: Progress | None, share: Callable[[], float | None]) -> BaseException | None:
    """Wait for a future, reporting progress, and return its exception or None."""
    while True:
        try:
            return future.exception(timeout=_POLL_SECONDS)
        except TimeoutError:
            if progress is not None:
                progress(share())


def worker_thread() -> ThreadPoolExecutor:
    """Return the second thread of an engine, to be used as a context."""
    return ThreadPoolExecutor(max_workers=1, thread_name_prefix=WORKER)


def name_parts(name: str) -> list[str]:
    """Return the parts of `schema.table`; a part that contains a dot can be put in double quotes."""
    parts = re.fullmatch(r'(?:(?:"(?:[^"]|"")+"|[^".]+)(?:\.(?!$)|$)){1,3}', name)
    if parts is None:
        raise InvalidInput("table_name", name, "must be the name of a table, such as orders or sales.orders")
    found = re.findall(r'"((?:[^"]|"")+)"|([^".]+)', name)
    return [quoted.replace('""', '"') or bare for quoted, bare in found]


def quoted_identifier(name: str) -> str:
    """Return a name as an SQL identifier in double quotes."""
    return '"' + name.replace('"', '""') + '"'


def _md5(text: Any) -> Any:
    """Stand for the database's function of this name; Ibis needs a Python function."""
