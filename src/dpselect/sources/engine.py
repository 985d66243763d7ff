"""The engine that counts: embedded DuckDB by default, or the backend that an Ibis table already lives on."""

from __future__ import annotations

import contextlib
import tempfile
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

from dpselect.errors import DpSelectError, SourceError

Progress = Callable[[float | None], None]
Result = TypeVar("Result")

_POLL_SECONDS = 0.1


class Engine:
    """An Ibis backend, and the one way in which work is run on it and results are fetched from it.

    Whatever goes wrong in an engine is told without the engine's own words, since those can quote rows.
    """

    def __init__(self, backend: Any) -> None:
        self.backend = backend

    def run(self, work: Callable[[], Result]) -> Result:
        """Return what `work` returns; its failure becomes a SourceError that says nothing about rows."""
        try:
            return work()
        except DpSelectError:
            raise
        except Exception:
            pass
        raise _withheld()

    def fetch(self, expression: Any) -> list[dict[str, Any]]:
        """Bring the rows of a small table expression into Python."""
        rows: list[dict[str, Any]] = self.run(lambda: self.backend.to_pyarrow(expression).to_pylist())
        return rows

    @contextlib.contextmanager
    def materialised(self, expression: Any) -> Iterator[Any]:
        """Compute a table expression once, keep it in the engine, and drop it at the end."""
        cached = self.run(expression.cache)
        try:
            yield cached
        finally:
            with contextlib.suppress(Exception):
                cached.release()


class EmbeddedEngine(Engine):
    """DuckDB in this process, on a connection of its own.

    Work runs on a second thread: DuckDB does not look for signals while it runs, and this way Ctrl-C stops the
    query at once, and the calling thread can tell how far it is.
    """

    def __init__(self, backend: Any, worker: ThreadPoolExecutor, progress: Progress | None) -> None:
        super().__init__(backend)
        self._worker = worker
        self._progress = progress

    @property
    def connection(self) -> Any:
        """The DuckDB connection itself, for what is said in DuckDB's SQL."""
        return self.backend.con

    def run(self, work: Callable[[], Result]) -> Result:
        """Run `work` on the second thread; an interrupt of this thread interrupts the query."""
        future = self._worker.submit(work)
        try:
            failure = self._wait(future)
        except BaseException:
            self.connection.interrupt()
            future.exception()
            del future
            raise
        if failure is None:
            return future.result()
        if isinstance(failure, DpSelectError):
            raise failure
        # What reports an error may record the variables of its frames too, and these hold the engine's words.
        del failure, future
        raise _withheld()

    @contextlib.contextmanager
    def materialised(self, expression: Any) -> Iterator[Any]:
        """Keep the result of a table expression as a temporary table, which ends with the connection at the latest.

        Ibis' `cache` would send an expression over in-memory tables alone to its own default connection.
        """
        import ibis

        name = ibis.util.gen_name("dpselect")
        yield self.run(lambda: self.backend.create_table(name, expression, temp=True))
        self.run(lambda: self.backend.drop_table(name))

    def _wait(self, future: Future[Result]) -> BaseException | None:
        while True:
            try:
                return future.exception(timeout=_POLL_SECONDS)
            except TimeoutError:
                if self._progress is not None:
                    percent = self.connection.query_progress()
                    self._progress(percent / 100 if 0 <= percent <= 100 else None)


@contextlib.contextmanager
def embedded_engine(progress: Progress | None = None) -> Iterator[EmbeddedEngine]:
    """Open an in-memory DuckDB that spills to a private temporary folder, and close it also after an error."""
    import ibis

    # Ibis 12 calls a DuckDB method by its old name; its callers can do nothing about that.
    # Filters belong to the whole process and are not safe to restore while threads run, so this one is narrow instead.
    warnings.filterwarnings("ignore", "fetch_arrow_table", DeprecationWarning, module=r"ibis\.backends\.duckdb")
    with contextlib.ExitStack() as stack:
        spill = stack.enter_context(tempfile.TemporaryDirectory(prefix="dpselect-", ignore_cleanup_errors=True))
        backend = ibis.duckdb.connect(temp_directory=spill, autoinstall_known_extensions=False)
        stack.callback(backend.disconnect)
        backend.con.execute("SET enable_progress_bar = true")
        backend.con.execute("SET enable_progress_bar_print = false")
        worker = stack.enter_context(ThreadPoolExecutor(max_workers=1, thread_name_prefix="dpselect"))
        yield EmbeddedEngine(backend, worker, progress)


def _withheld() -> SourceError:
    return SourceError(
        "table: the engine stopped while reading it, and its own message is withheld because it can quote rows; "
        "check that the file or table is complete and readable, and that memory and disk space suffice"
    )
