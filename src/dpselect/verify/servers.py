"""Engines for the audit and the tests: a PostgreSQL server and a local Spark of our own, stopped at the end."""

from __future__ import annotations

import contextlib
import logging
import signal
import subprocess
import tempfile
import threading
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

QUIET = """
appender.none.type = Null
appender.none.name = none
rootLogger.level = off
rootLogger.appenderRef.none.ref = none
"""

BRIEF_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Options for a Java that lives for a minute: what it compiles with care is never run often enough to pay."""


@contextlib.contextmanager
def postgresql() -> Iterator[str]:
    """Yield the URL of a server of our own, started in a temporary folder and stopped at the end."""
    with (
        tempfile.TemporaryDirectory(prefix="dpselect-pg-", ignore_cleanup_errors=True) as folder,
        contextlib.ExitStack() as stack,
    ):
        with warnings.catch_warnings(), signals_wait():
            warnings.simplefilter("ignore")  # pgserver warns when the machine has no folder for sockets
            import pgserver as loaded

            pgserver: Any = loaded
            server = _started(pgserver, folder)
            stack.callback(_stop, pgserver, server)
        yield server.get_uri()


@contextlib.contextmanager
def signals_wait() -> Iterator[None]:
    """Let signals that end the process wait for the block: a half-started engine would go on without its owner."""
    if threading.current_thread() is not threading.main_thread():  # only the main thread may set handlers
        yield
        return
    came: list[int] = []
    ends = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    handlers = {number: signal.signal(number, lambda got, _: came.append(got)) for number in ends}
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        for got in came[:1]:
            signal.raise_signal(got)


def _stop(pgserver: Any, server: Any) -> None:
    # Nothing of it is kept, so that it need not write anything down before it goes; pgserver would complain.
    logging.getLogger("pgserver").setLevel(logging.CRITICAL)
    with contextlib.suppress(subprocess.CalledProcessError):
        pgserver.pg_ctl(["-w", "-m", "immediate", "stop"], pgdata=server.pgdata, user=server.system_user)
    server.cleanup()


def _started(pgserver: Any, folder: str) -> Any:
    """Start the server; pgserver gives it ten seconds, which a busy machine may exceed."""
    for _ in range(5):
        with contextlib.suppress(subprocess.TimeoutExpired):
            return pgserver.get_server(folder, cleanup_mode="stop")
    return pgserver.get_server(folder, cleanup_mode="stop")


@contextlib.contextmanager
def spark() -> Iterator[Any]:
    """Yield a Spark session of two threads in a Java of its own, which writes to a temporary folder only."""
    from pyspark.sql import SparkSession

    from dpselect.sources.spark import java_runtime

    with tempfile.TemporaryDirectory(prefix="dpselect-spark-", ignore_cleanup_errors=True) as folder:
        logs = Path(folder, "log4j2.properties")
        # Without an appender Spark would put its own settings in the place of these.
        logs.write_text(QUIET)
        settings: Any = {
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={logs} {BRIEF_JAVA}",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.memory": "1g",
            "spark.local.dir": folder,
            "spark.sql.execution.arrow.pyspark.enabled": "true",
            "spark.sql.shuffle.partitions": "2",
            "spark.sql.warehouse.dir": f"{folder}/warehouse",
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
        }
        with contextlib.ExitStack() as stack:
            with java_runtime(), warnings.catch_warnings(), signals_wait():
                warnings.simplefilter("ignore", ResourceWarning)  # PySpark leaves its first socket to the collector
                builder = SparkSession.builder.master("local[2]").config(map=settings)
                # In the main thread PySpark would set a handler of its own, which cannot interrupt a start.
                with ThreadPoolExecutor(1) as starter:
                    session = starter.submit(builder.getOrCreate).result()
                stack.callback(_stop_spark, session)
            yield session


def _stop_spark(session: Any) -> None:
    with contextlib.suppress(Exception):  # the connection may be interrupted; Java ends with this process
        session.stop()
