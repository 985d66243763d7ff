"""The engine that counts: how work is run on it, stopped, and kept from telling what it should not."""

from __future__ import annotations

import contextlib
import re
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cached_property
from typing import Any, TypeVar

from dpselect.errors import DpSelectError, InvalidInput
from dpselect.sources.conditions import Condition
from dpselect.sources.failures import EngineError, reason_for

Progress = Callable[[float | None], None]
Result = TypeVar("Result")

WORKER = "dpselect"
"""How the names of the threads begin on which engines work."""

_POLL_SECONDS = 0.1
_CANCEL_SECONDS = 0.5


class Engine:
    """An Ibis backend, and the one way in which work is run on it and results are fetched from it.

    Whatever goes wrong in an engine is told without the engine's own words, since those can quote rows.
    """

    computes_shared_parts_once = False
    """Whether a query that uses a part of it twice is sure to compute that part once."""

    def __init__(self, backend: Any) -> None:
        self.backend = backend
        self._kept: list[Any] = []

    @property
    def casts_text_safely(self) -> bool:
        """Whether text that is no number can be told from one that is without an error."""
        import ibis.expr.operations as operations

        return bool(self.backend.has_operation(operations.TryCast))

    def run(self, work: Callable[[], Result]) -> Result:
        """Return what `work` returns; its failure becomes a SourceError that says nothing about rows."""
        try:
            return work()
        except DpSelectError:
            raise
        except Exception as error:
            reason = reason_for(error)
        raise EngineError(reason)

    def fetch(self, expression: Any) -> list[dict[str, Any]]:
        """Bring the rows of a small table expression into Python; nothing else does."""
        return self.run(lambda: self._rows(expression))

    def columns(self, expression: Any) -> Any:
        """Bring a table expression of numbers into Python as an Arrow table; unlike rows, columns may be long."""
        return self.run(lambda: self._arrow(expression))

    def check(self, expression: Any) -> None:
        """Find out whether the engine can compute a table expression, without a row of it."""
        self.run(lambda: self._rows(expression.limit(0)))

    def table(self, name: str) -> Any:
        """Return the table of that name, `table` or `schema.table`, as an Ibis table."""
        *schema, table = name_parts(name)
        try:
            return self.run(lambda: self._named(table, tuple(schema)))
        except EngineError as error:
            reason = error.reason
        raise InvalidInput("table_name", name, reason or "there is no such table, or the account may not see it")

    def scalar(self, count: Any) -> int:
        """Return the one number of an expression such as `table.count()`."""
        return int(self.fetch(count.as_table())[0][count.get_name()])

    def digest(self, text: Any) -> Any:
        """Return a hash of a text column as 32 hexadecimal digits, the same everywhere; the text if there is none."""
        return self._hashed(text) if self.has_digest else text

    @cached_property
    def has_digest(self) -> bool:
        """Whether the engine can hash. Without, tied items are ranked by their text, as the engine compares texts."""
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
        """Make the in-memory tables in an expression known to the backend, for SQL that is written around them."""
        self._kept.append(expression)
        self.run(lambda: self.backend._run_pre_execute_hooks(expression))

    def barrier(self, stack: contextlib.ExitStack, table: Any) -> Any:
        """Return an Ibis table of the same rows, on which no condition is answered from the statistics of files."""
        return table

    def where(self, stack: contextlib.ExitStack, table: Any, condition: Condition, text: str) -> Any:
        """Return the rows of an Ibis table for which a condition, here written `text`, is true and does not fail."""
        import ibis.expr.operations as operations

        if not condition.compares_with_constants:
            raise InvalidInput(
                "where",
                condition.text,
                "on this engine a condition can only compare columns with constants (=, <, IN, BETWEEN, IS NULL, AND, "
                "OR, NOT): anything else may fail on a row, and that would show",
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
        """Return an Ibis table as SQL for FROM; a table by its name, since Ibis would convert some of its columns."""
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
        """Compute a table expression once, keep it in the engine, and drop it at the end."""
        cached = self.run(expression.cache)
        try:
            yield cached
        finally:
            with contextlib.suppress(Exception):
                cached.release()

    @contextlib.contextmanager
    def uploaded(self, rows: Any) -> Iterator[Any]:
        """Hand a public Arrow table to the engine for the time of the block."""
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
    """An engine whose work runs on a second thread.

    This way Ctrl-C stops a query at once, and the calling thread can tell that, and how far, it is.
    """

    has_digest = True

    def __init__(self, backend: Any, worker: ThreadPoolExecutor, progress: Progress | None) -> None:
        super().__init__(backend)
        self._worker = worker
        self._progress = progress

    def run(self, work: Callable[[], Result]) -> Result:
        """Run `work` on the second thread; an interrupt of this thread interrupts the query."""
        future = self._worker.submit(work)
        try:
            failure = _failure(future, self._progress, self._share)
        except BaseException:
            # On a thread of its own the cancelling goes on when a second Ctrl-C ends the waiting for it.
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
        # What reports an error may record the variables of its frames too, and these hold the engine's words.
        del failure, future
        raise EngineError(reason)

    def _share(self) -> float | None:
        """Return the share of the query that is done, if the engine tells."""
        return None

    def _end(self, future: Future[Any]) -> None:
        """Cancel until the second thread is done: between two steps of its work there may be nothing to cancel yet."""
        while True:
            with contextlib.suppress(Exception):
                self._cancel()
            with contextlib.suppress(TimeoutError):
                future.exception(_CANCEL_SECONDS)
                return

    def _cancel(self) -> None:
        """Stop the query that runs on the second thread."""
        raise NotImplementedError


def attempt(work: Callable[[], Result], progress: Progress | None, undo: Callable[[Result], None]) -> Result:
    """Return what `work` returns, done on a thread of its own; Ctrl-C does not wait for it, and undoes what it made."""
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
    """Wait for the end of some work, telling how far it is, and return why it failed, or None."""
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
        raise InvalidInput("table_name", name, "the name of a table is needed, such as orders or sales.orders")
    found = re.findall(r'"((?:[^"]|"")+)"|([^".]+)', name)
    return [quoted.replace('""', '"') or bare for quoted, bare in found]


def _md5(text: Any) -> Any:
    """Name the function of the database."""
