"""The embedded engine: its words are withheld, it can be stopped, and it leaves nothing behind."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import traceback
import warnings
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
from source_files import FILMS, ROWS, arrow, histogram

from dpselect.errors import InvalidInput, SourceError
from dpselect.sources import UNKNOWN, Domain, open_counts
from dpselect.sources.comparisons import Columns, open_comparisons
from dpselect.sources.duckdb import EmbeddedEngine, embedded_engine
from dpselect.sources.engine import Engine, ThreadedEngine, worker_thread


def test_what_an_engine_says_is_withheld() -> None:
    with embedded_engine() as engine, pytest.raises(SourceError) as caught:
        engine.run(lambda: engine.connection.execute("SELECT CAST('Secret' AS INTEGER)").fetchall())
    assert "Secret" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


def test_what_an_engine_says_is_in_no_variable_of_the_traceback() -> None:
    with embedded_engine() as engine, pytest.raises(SourceError) as caught:
        engine.run(lambda: engine.connection.execute("SELECT CAST('Secret' AS INTEGER)").fetchall())
    frames = [frame for frame, _ in traceback.walk_tb(caught.value.__traceback__)]
    assert any(frame.f_code is EmbeddedEngine.run.__code__ for frame in frames)
    for frame in frames:
        for value in frame.f_locals.values():
            assert not isinstance(value, Future)
            assert not isinstance(value, BaseException) or "Secret" not in str(value)


def test_the_warnings_of_others_are_not_silenced() -> None:
    histogram(arrow(ROWS), 10)
    with pytest.raises(DeprecationWarning, match="fetch_arrow_table"):
        warnings.warn("fetch_arrow_table is an old name", DeprecationWarning, stacklevel=1)


def test_the_same_holds_for_a_backend_that_is_not_embedded() -> None:
    def fail() -> None:
        raise ValueError("Secret")

    def refuse() -> None:
        raise InvalidInput("k", 3, "must be smaller")

    with pytest.raises(SourceError) as caught:
        Engine(None).run(fail)
    assert "Secret" not in str(caught.value)
    assert caught.value.__context__ is None
    with pytest.raises(InvalidInput):
        Engine(None).run(refuse)


def test_an_interrupt_stops_a_query_that_would_never_end() -> None:
    endless = "SELECT count(*) FROM range(1000000000000) a, range(1000000000000) b WHERE hash(a.range, b.range) = 1"
    with embedded_engine(progress=lambda share: signal.raise_signal(signal.SIGINT)) as engine:
        with pytest.raises(KeyboardInterrupt):
            engine.run(lambda: engine.connection.execute(endless).fetchall())
        assert engine.run(lambda: engine.connection.execute("SELECT 1").fetchall()) == [(1,)]


@pytest.mark.slow
def test_progress_is_told_on_the_calling_thread_as_a_share() -> None:
    told: list[tuple[float | None, int]] = []

    def progress(share: float | None) -> None:
        told.append((share, threading.get_ident()))
        if len(told) == 5:
            raise StopIteration

    query = "SELECT count(*) FROM range(1000000000000) a WHERE hash(a.range) = 1"
    with embedded_engine(progress) as engine, pytest.raises(StopIteration):
        engine.run(lambda: engine.connection.execute(query).fetchall())
    assert {thread for _, thread in told} == {threading.get_ident()}
    assert all(share is None or 0 <= share <= 1 for share, _ in told)


def test_nothing_is_left_behind_also_after_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "spill").mkdir()
    (tmp_path / "here").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "spill"))
    monkeypatch.chdir(tmp_path / "here")
    threads = threading.active_count()
    histogram(arrow(ROWS), 10)
    with pytest.raises(InvalidInput):
        histogram(arrow(ROWS), 2)
    assert os.listdir(tmp_path / "spill") == os.listdir(tmp_path / "here") == []
    assert threading.active_count() == threads


@contextlib.contextmanager
def kept_elsewhere() -> Iterator[Any]:
    """Yield the rows as a table of the caller's own connection."""
    import ibis

    backend = ibis.duckdb.connect()
    backend.con.register("given", arrow(ROWS))
    backend.con.execute("CREATE TABLE rows AS SELECT * FROM given")
    yield backend.table("rows")
    backend.disconnect()


@pytest.mark.filterwarnings("ignore:fetch_arrow_table:DeprecationWarning")  # the test's own call of Ibis
def test_the_embedded_engine_is_opened_where_it_is_needed_and_closed_also_after_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its folder shows that it is open. A list has to be converted; all else stays in the engine of the rows."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    threads = threading.active_count()
    with kept_elsewhere() as rows:
        asked: dict[str, Any] = {"item": "film", "person": "viewer", "k": 1}
        for domain in (UNKNOWN, 10):
            with open_counts(rows, domain=Domain.of(domain), **asked) as counts:
                counts.highest(2) if domain is UNKNOWN else counts.histogram()
                assert os.listdir(tmp_path) == []
        columns = Columns("film", "viewer")
        with open_comparisons(rows, columns, domain=None) as comparisons:
            comparisons.pairs()
            assert os.listdir(tmp_path) == []
        with open_counts(rows, domain=Domain.of(FILMS), **asked) as counts:
            counts.histogram()
            assert len(os.listdir(tmp_path)) == 1
        with (
            pytest.raises(InvalidInput, match=r"^k must"),
            open_counts(rows, domain=Domain.of(FILMS), **asked | {"k": 100}),
        ):
            pass
    assert os.listdir(tmp_path) == []
    assert threading.active_count() == threads


class TwoSteps(ThreadedEngine):
    """Work with a pause before the query, during which there is nothing to cancel, as Spark has between two jobs."""

    def __init__(self) -> None:
        super().__init__(None, worker_thread(), self._interrupt)
        self.paused, self.querying, self.cancelled = threading.Event(), threading.Event(), threading.Event()

    def work(self) -> None:
        self.paused.wait(20)
        self.querying.set()
        self.cancelled.wait(20)

    def _interrupt(self, _: float | None) -> None:
        raise KeyboardInterrupt

    def _cancel(self) -> None:
        if self.querying.is_set():
            self.cancelled.set()
        self.paused.set()


@pytest.mark.slow
def test_an_interrupt_between_two_steps_of_the_work_stops_the_second() -> None:
    engine = TwoSteps()
    with pytest.raises(KeyboardInterrupt):
        engine.run(engine.work)
    assert engine.cancelled.is_set()
