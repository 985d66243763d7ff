"""The rows of a table, wherever they are: an engine and an Ibis table on it, filtered and with neutral column names."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from dpselect.errors import InvalidInput, SourceError, plain
from dpselect.sources.conditions import Condition
from dpselect.sources.duckdb import (
    Bound,
    EmbeddedEngine,
    attach_duckdb,
    attached_table,
    is_base_table,
    without_statistics,
)
from dpselect.sources.engine import Engine, EngineError, Progress, worker_thread
from dpselect.sources.files import FileTable
from dpselect.sources.frames import arrow_table, check_columns, is_frame, neutral_name, opened, renamed, without_rows
from dpselect.sources.paths import refused_url
from dpselect.sources.postgres import postgres_engine, postgres_server
from dpselect.sources.spark import SparkEngine, spark_cluster, spark_engine, spark_session
from dpselect.sources.times import PeriodFilter
from dpselect.sources.values import with_exact_text

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://(.*)", re.DOTALL)


@dataclass(frozen=True)
class Source:
    """Rows as an Ibis table, and the engine that holds them.

    `named` finds other tables of the engine by name, if it has any. `load` brings the rows into the engine if they are
    not there yet; it is called after the release was charged. `origin` is the table of the rows before any condition:
    an Ibis table, or its name in a DuckDB file.
    """

    engine: Engine
    table: Any
    named: Callable[[str], Any] | None = None
    load: Callable[[], Any] = lambda: None
    origin: Any = None


def open_rows(
    stack: contextlib.ExitStack,
    embedded: Callable[[], EmbeddedEngine],
    table: Any,
    columns: Sequence[str],
    *,
    table_name: str | None = None,
    where: str | None = None,
    during: PeriodFilter | None = None,
    progress: Progress | None = None,
) -> Source:
    """Return the rows with the named columns, the i-th of them as `neutral_name(i)`; the first one is the item.

    No row is read, and every error that does not depend on rows is raised here. Rows outside the period are dropped
    here, so before anything else is computed from them.
    """
    wanted = list(columns)
    if during is None:
        return _all_rows(stack, embedded, table, wanted, table_name, where, progress)
    with_time = list(dict.fromkeys([*wanted, during.column]))
    source = _all_rows(stack, embedded, table, with_time, table_name, where, progress)
    rows = during.kept(source.engine, source.table, neutral_name(with_time.index(during.column)))
    return replace(source, table=rows.select(*(neutral_name(place) for place in range(len(wanted)))))


def _all_rows(
    stack: contextlib.ExitStack,
    embedded: Callable[[], EmbeddedEngine],
    table: Any,
    wanted: list[str],
    table_name: str | None,
    where: str | None,
    progress: Progress | None,
) -> Source:
    import ibis

    source = _in_engine(stack, embedded, table, table_name, progress)
    if source is None:
        bound = _local_rows(stack, embedded(), table, wanted, where)
        return Source(embedded(), bound.table, load=bound.load)
    rows = source.engine.barrier(stack, source.table)
    check_columns("table", wanted, list(rows.columns))
    if where is not None:
        rows = _filtered(stack, source.engine, rows, where)
    rows = with_exact_text(source.engine, renamed(rows, wanted), neutral_name(0))
    # Without the columns: some types do not exist in Python, and are refused by name later.
    source.engine.check(rows.select(column=ibis.literal(1)))
    return replace(source, table=rows)


def is_url(table: Any) -> bool:
    """Whether `table` is the URL of an engine rather than the path of a file."""
    return isinstance(table, str) and _URL.match(table) is not None


def public_name(table: Any, table_name: str | None = None) -> str | None:
    """Return how a table is called, which is public: its name in an engine, or that of its file without the folder.

    Parameters
    ----------
    table : object
        A path, a URL or a table, as in `dpselect.top`.
    table_name : str or None
        The table of a URL.

    Returns
    -------
    str or None
        The name; None for a table in memory.

    Examples
    --------
    >>> public_name("/data/films/views.parquet")
    'views.parquet'
    """
    if table_name is not None:
        return table_name
    return os.path.basename(table) if isinstance(table, str | os.PathLike) and not is_url(table) else None


def is_spark(table: Any) -> bool:
    """Whether `table` is a Spark DataFrame."""
    kind = type(table)
    return kind.__module__.partition(".")[0] == "pyspark" and hasattr(kind, "createOrReplaceTempView")


def _in_engine(
    stack: contextlib.ExitStack,
    embedded: Callable[[], EmbeddedEngine],
    table: Any,
    table_name: str | None,
    progress: Progress | None,
) -> Source | None:
    """Return a table that an engine holds already, or None if the embedded engine has to read it."""
    import ibis
    import ibis.expr.operations as operations

    if is_url(table):
        return _open_url(stack, embedded, table, table_name, progress)
    if table_name is not None:
        raise InvalidInput("table_name", table_name, "must be left out unless the table is the URL of an engine")
    if is_spark(table):
        spark = stack.enter_context(spark_session(table.sparkSession, progress))
        rows = spark.named(table, stack)
        return Source(spark, rows, partial(_spark_table, stack, spark), origin=rows)
    if isinstance(table, ibis.Table) and any(True for _ in table.op().find(operations.DatabaseTable)):
        return _open_backend(stack, table, progress)
    return None


def _open_url(
    stack: contextlib.ExitStack,
    embedded: Callable[[], EmbeddedEngine],
    url: str,
    table_name: Any,
    progress: Progress | None,
) -> Source:
    """Connect to the engine of a URL and return its table of that name; no message quotes the URL."""
    match = _URL.match(url)
    assert match is not None
    scheme, rest = match[1].lower(), match[2]
    if scheme not in ("duckdb", "postgresql", "postgres", "spark", "spark+local"):
        raise refused_url("table", scheme) or InvalidInput(
            "table",
            plain("another kind of URL"),
            "must be duckdb://FILE, postgresql://…, spark://HOST:PORT, spark+local:// or the path of a file",
        )
    if not isinstance(table_name, str) or not table_name:
        given = plain("nothing") if table_name is None else table_name
        raise InvalidInput("table_name", given, "must name the table if the table is given by a URL")
    if scheme == "duckdb":
        duckdb = embedded()
        attach_duckdb(duckdb, rest)
        named: Callable[[str], Any] = partial(attached_table, duckdb)
        return Source(duckdb, named(table_name), named, origin=table_name)
    if scheme in ("postgresql", "postgres"):
        server = stack.enter_context(postgres_server(url, progress))
        rows = server.table(table_name)
        return Source(server, rows, server.table, origin=rows)
    spark = stack.enter_context(spark_cluster(_master(scheme, rest), progress))
    named = partial(_spark_table, stack, spark)
    rows = named(table_name)
    return Source(spark, rows, named, origin=rows)


def _open_backend(stack: contextlib.ExitStack, table: Any, progress: Progress | None) -> Source:
    """Return an Ibis table of the caller's with its engine; the connection stays open and as it was."""
    backend = table.get_backend()
    if backend.name == "pyspark":
        spark = stack.enter_context(spark_engine(backend, progress))
        return Source(spark, table, partial(_spark_table, stack, spark), origin=table)
    if backend.name == "postgres":
        engine: Engine = stack.enter_context(postgres_engine(backend, progress))
    elif backend.name == "duckdb":
        engine = EmbeddedEngine(backend, stack.enter_context(worker_thread()), progress)
        stack.enter_context(without_statistics(engine, of_readers=not _is_stored(engine, table)))
    else:
        engine = Engine(backend)
    return Source(engine, table, engine.table, origin=table)


def _is_stored(engine: EmbeddedEngine, table: Any) -> bool:
    """Whether an Ibis table is a stored table of DuckDB's, not a view or an expression."""
    import ibis.expr.operations as operations

    found = table.op()
    return isinstance(found, operations.DatabaseTable) and engine.run(
        lambda: is_base_table(engine.connection, found.name)
    )


def _spark_table(stack: contextlib.ExitStack, engine: SparkEngine, name: str) -> Any:
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
            raise InvalidInput("table", plain("spark:// without a host"), "must be spark://HOST:PORT")
        return f"spark://{rest}"
    threads = rest.strip("/") or "*"
    if threads != "*" and not (threads.isdecimal() and int(threads)):
        given = plain("spark+local:// with more than a number")
        raise InvalidInput("table", given, "must be spark+local:// or spark+local://THREADS, such as spark+local://4")
    return f"local[{threads}]"


def _local_rows(
    stack: contextlib.ExitStack, embedded: EmbeddedEngine, table: Any, columns: list[str], where: str | None
) -> Bound:
    """Return rows of a file or of a table in memory; a condition can use other columns too."""
    table = embedded.run(lambda: opened(table))
    rows = _bound(stack, embedded, table, columns)
    if where is None:
        return rows
    needed = list(dict.fromkeys([*columns, *Condition.of(where, embedded.backend.dialect).columns]))
    try:
        rows = _bound(stack, embedded, table, needed)
    except InvalidInput as error:
        # The columns themselves exist, so this is a mistake in the condition.
        given, accepted = error.given, error.accepted
    else:
        names = {name: neutral_name(place) for place, name in enumerate(needed)}
        return Bound(_filtered(stack, embedded, rows.table, where, names), rows.load)
    raise InvalidInput("where", given, accepted)


def _bound(stack: contextlib.ExitStack, embedded: EmbeddedEngine, table: Any, columns: list[str]) -> Bound:
    """Return the named columns under neutral names; the rows of a frame are read by `load`."""
    import ibis

    if isinstance(table, str | os.PathLike):
        return FileTable.at("table", table).bind(embedded, columns)
    if isinstance(table, ibis.Table):
        check_columns("table", columns, list(table.columns))
        return Bound(embedded.barrier(stack, renamed(table, columns)))
    if is_frame(table):
        empty = embedded.run(lambda: arrow_table("table", without_rows(table), columns))
        return embedded.registered(empty, lambda: arrow_table("table", table, columns).cast(empty.schema))
    raise InvalidInput(
        "table",
        plain(f"an object of type {type(table).__name__}"),
        "must be the path of a file, the URL of an engine, an Ibis table, or a pandas, polars, Arrow or Spark table",
    )


def _filtered(
    stack: contextlib.ExitStack, engine: Engine, table: Any, where: str, names: dict[str, str] | None = None
) -> Any:
    """Return the rows of an Ibis table for which the condition is true; refuse it if it does not fit the columns.

    `names` are the engine's names of the columns, if these differ from the user's.
    """
    condition = Condition.of(where, engine.backend.dialect)
    text = condition.text if names is None else condition.with_names(names)
    engine.prepare(table)
    try:
        rows = engine.where(stack, table, condition, text)
        engine.check(rows)
        return rows
    except EngineError as error:
        reason = error.reason
    if names is None:
        condition.check_known(list(table.columns))
    accepted = "it does not fit the columns of the table; check names and types"
    types = table.schema()
    for name in condition.columns:
        if (known := types.get(name if names is None else names[name])) is not None and known.is_string():
            accepted += f"; column {name!r} is text, as all of a CSV: CAST(… AS INTEGER) makes it a number"
            break
    raise InvalidInput("where", where, reason or accepted)
