"""DuckDB in this process: it reads files and frames, and lists that have to be converted."""

from __future__ import annotations

import contextlib
import tempfile
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

from dpselect.sources.engine import Progress, ThreadedEngine, worker_thread


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
        yield EmbeddedEngine(backend, stack.enter_context(worker_thread()), progress)


def embedded_when_needed(stack: contextlib.ExitStack, progress: Progress | None) -> Callable[[], EmbeddedEngine]:
    """Return what gives the embedded engine: opened at the first call, which takes 60 ms, and closed by the stack."""
    return cache(lambda: stack.enter_context(embedded_engine(progress)))
