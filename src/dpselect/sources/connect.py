"""Where a table is: a URL, a Spark session or an Ibis backend becomes an engine and an Ibis table on it."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from dpselect.errors import InvalidInput, SourceError, plain
from dpselect.sources.embedded import EmbeddedEngine, ignore_statistics, is_base_table, without_statistics
from dpselect.sources.engine import Engine, Progress, name_parts, worker_thread
from dpselect.sources.postgres import postgres_engine, postgres_server
from dpselect.sources.spark import SparkEngine, spark_cluster, spark_engine, spark_session

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://(.*)", re.DOTALL)
_ACCEPTED = "duckdb://FILE, postgresql://…, spark://HOST:PORT or spark+local:// is needed, or the path of a file"


@dataclass(frozen=True)
class Source:
    """Rows as an Ibis table, and the engine that holds them.

    named: how other tables there are found by name, if they are. load: brings the rows into the engine if they are not
    there yet; to be called after the release was charged. origin: the table that the rows come from, before any filter,
    an Ibis table or its name in a DuckDB file.
    """

    engine: Engine
    table: Any
    named: Callable[[str], Any] | None = None
    load: Callable[[], Any] = lambda: None
    origin: Any = None


def is_url(table: Any) -> bool:
    """Tell whether `table` is the URL of an engine rather than the path of a file."""
    return isinstance(table, str) and _URL.match(table) is not None


def open_url(
    stack: contextlib.ExitStack,
    embedded: Callable[[], EmbeddedEngine],
    url: str,
    table_name: Any,
    progress: Progress | None,
) -> Source:
    """Connect to the engine of a URL and return it with the table of that name; no message shows the URL."""
    match = _URL.match(url)
    assert match is not None
    scheme, rest = match[1].lower(), match[2]
    if scheme not in ("duckdb", "postgresql", "postgres", "spark", "spark+local"):
        raise InvalidInput("table", plain("another kind of URL"), _ACCEPTED)
    if not isinstance(table_name, str) or not table_name:
        given = plain("nothing") if table_name is None else table_name
        raise InvalidInput("table_name", given, "with a URL, the name of the table is needed")
    if scheme == "duckdb":
        duckdb = embedded()
        attach_duckdb(duckdb, rest)
        named: Callable[[str], Any] = partial(_duckdb_table, duckdb)
        return Source(duckdb, named(table_name), named, origin=table_name)
    if scheme in ("postgresql", "postgres"):
        server = stack.enter_context(postgres_server(url, progress))
        rows = server.table(table_name)
        return Source(server, rows, server.table, origin=rows)
    spark = stack.enter_context(spark_cluster(_master(scheme, rest), progress))
    named = partial(spark_table, stack, spark)
    rows = named(table_name)
    return Source(spark, rows, named, origin=rows)


def open_backend(stack: contextlib.ExitStack, table: Any, progress: Progress | None) -> Source:
    """Return an Ibis table that the caller has with its engine; its connection stays open and as it was."""
    backend = table.get_backend()
    if backend.name == "pyspark":
        spark = stack.enter_context(spark_engine(backend, progress))
        return Source(spark, table, partial(spark_table, stack, spark), origin=table)
    if backend.name == "postgres":
        engine: Engine = stack.enter_context(postgres_engine(backend, progress))
    elif backend.name == "duckdb":
        engine = EmbeddedEngine(backend, stack.enter_context(worker_thread()), progress)
        stack.enter_context(without_statistics(engine, of_readers=not _is_table(engine, table)))
    else:
        engine = Engine(backend)
    return Source(engine, table, engine.table, origin=table)


def _is_table(engine: EmbeddedEngine, table: Any) -> bool:
    """Whether an Ibis table is a table of DuckDB's as it stands, not a view or an expression."""
    import ibis.expr.operations as operations

    found = table.op()
    return isinstance(found, operations.DatabaseTable) and engine.run(
        lambda: is_base_table(engine.connection, found.name)
    )


def is_spark(table: Any) -> bool:
    """Tell whether `table` is a Spark DataFrame."""
    kind = type(table)
    return kind.__module__.partition(".")[0] == "pyspark" and hasattr(kind, "createOrReplaceTempView")


def open_spark(stack: contextlib.ExitStack, frame: Any, progress: Progress | None) -> Source:
    """Return a Spark DataFrame as an Ibis table, with its engine."""
    spark = stack.enter_context(spark_session(frame.sparkSession, progress))
    rows = spark.named(frame, stack)
    return Source(spark, rows, partial(spark_table, stack, spark), origin=rows)


def spark_table(stack: contextlib.ExitStack, engine: SparkEngine, name: str) -> Any:
    """Return the table of that name, or the Parquet files at that path."""
    if "/" not in name:
        return engine.table(name)
    try:
        return engine.named(engine.run(lambda: engine.session.read.parquet(name)), stack)
    except SourceError:
        pass
    raise InvalidInput("table_name", name, "there are no Parquet files at this path, or they cannot be read")


def _master(scheme: str, rest: str) -> str:
    """Return Spark's own name of the cluster: spark://host:port, or local[threads] for one in this process."""
    if scheme == "spark":
        if not rest:
            raise InvalidInput("table", plain("spark:// without a host"), "spark://HOST:PORT is needed")
        return f"spark://{rest}"
    threads = rest.strip("/") or "*"
    if threads != "*" and not (threads.isdecimal() and int(threads)):
        raise InvalidInput("table", plain("spark+local:// with more than a number"), "spark+local://4 is needed")
    return f"local[{threads}]"


def attach_duckdb(engine: EmbeddedEngine, path: str) -> None:
    """Open a DuckDB file for reading, under the name dpselect_source."""
    if not Path(path).is_file():
        raise InvalidInput("table", plain("a DuckDB URL"), "there is no such file; duckdb://FILE or duckdb:///FILE")
    quoted = path.replace("'", "''")
    try:
        engine.run(lambda: engine.connection.execute(f"ATTACH '{quoted}' AS dpselect_source (READ_ONLY)"))
        return
    except SourceError:
        pass
    raise SourceError(
        "table: the DuckDB file cannot be opened for reading; check that it is one, and that no other program has it "
        "open for writing"
    )


def _duckdb_table(engine: EmbeddedEngine, name: str) -> Any:
    """Return a table of the DuckDB file."""
    import ibis

    view = ibis.util.gen_name("dpselect")
    parts = ".".join('"' + part.replace('"', '""') + '"' for part in name_parts(name))

    def work() -> Any:
        if not is_base_table(engine.connection, name_parts(name)[-1], "dpselect_source"):
            ignore_statistics(engine.connection, of_readers=True)
        engine.connection.execute(f"CREATE TEMPORARY VIEW {view} AS SELECT * FROM dpselect_source.{parts}")
        return engine.backend.table(view)

    try:
        return engine.run(work)
    except SourceError:
        pass
    raise InvalidInput("table_name", name, "there is no such table in the file; check the name and its schema")
