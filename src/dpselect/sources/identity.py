"""Whether a list that is stated as public is the table of private rows itself, or a part of it.

This is decided by identity alone: the same file, table, object or memory. Contents are never compared, since whether
they agree would depend on the rows.
"""

from __future__ import annotations

import contextlib
import glob
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np
from numpy.lib.array_utils import byte_bounds

from dpselect.errors import InvalidInput, SourceError, plain
from dpselect.sources.domain import Domain
from dpselect.sources.duckdb import attach_duckdb, embedded_engine
from dpselect.sources.engine import Engine, name_parts, quoted_identifier
from dpselect.sources.files import FileTable
from dpselect.sources.postgres import PostgresEngine
from dpselect.sources.rows import Source, is_url
from dpselect.sources.spark import SparkEngine

_LOCAL = re.compile(r"file:/*(?=/)")
_CASELESS = ("duckdb", "pyspark")
_ONLY_IN_SPARK = frozenset("{[\\")
"""Characters of a pattern that Spark reads differently from Python."""


def files_of(table: Any, table_name: str | None = None) -> list[Path]:
    """Return the files of this machine that are read with a table: of a path, a DuckDB file, or Parquet in Spark.

    Parameters
    ----------
    table : object
        A path, a URL or a table, as in `dpselect.top`.
    table_name : str or None
        The table of a URL.

    Returns
    -------
    list of Path
        The files; for Spark their folders too, since it reads whatever is in them; and files that belong to them and
        need not exist, such as the log of a DuckDB file. Empty if `table` is not read from files.

    Examples
    --------
    >>> [file.name for file in files_of("duckdb://films.duckdb", "views")]
    ['films.duckdb', 'films.duckdb.wal']
    """
    if is_url(table):
        scheme, _, rest = table.partition("://")
        return [Path(rest), Path(f"{rest}.wal")] if scheme.lower() == "duckdb" else _files_in_spark(table, table_name)
    if isinstance(table, str | os.PathLike):
        with contextlib.suppress(InvalidInput):  # raised again when the file is read
            return [Path(part) for part in FileTable.at("table", table).parts]
    return []


def has_unknown_files(table: Any, table_name: str | None) -> bool:
    """Return whether files may be read that `files_of` does not list: by a view, or by a pattern that only Spark knows.

    Parameters
    ----------
    table : object
        A path, a URL or a table, as in `dpselect.top`.
    table_name : str or None
        The table of a URL.

    Returns
    -------
    bool
        Whether the list of `files_of` may be incomplete.

    Examples
    --------
    >>> has_unknown_files("spark+local://", "/data/{a,b}.parquet")
    True
    """
    if not is_url(table) or table_name is None:
        return False
    scheme, _, rest = table.partition("://")
    if scheme.lower() == "duckdb":
        return _is_view(rest, table_name)
    return scheme.lower().startswith("spark") and "/" in table_name and not _ONLY_IN_SPARK.isdisjoint(table_name)


def _is_view(path: str, name: str) -> bool:
    """Whether a table of a DuckDB file is a view; False if the file cannot be opened, which reading it reports."""
    with contextlib.suppress(InvalidInput, SourceError), embedded_engine() as engine:
        attach_duckdb(engine, path)
        found = "SELECT schema_name, view_name FROM duckdb_views() WHERE database_name = 'dpselect_source'"
        views = engine.run(lambda: engine.connection.execute(found).fetchall())
        return _in_duckdb_file(name) in [[part.casefold() for part in view] for view in views]
    return False


def check_not_rows(table: Any, table_name: str | None, domain: Domain) -> None:
    """Refuse a domain that is the table of rows, as an object, in memory or as a file; nothing is opened.

    Parameters
    ----------
    table : object
        The rows: a path, a URL or a table, as in `dpselect.top`.
    table_name : str or None
        The table of a URL.
    domain : Domain
        What was stated as public.

    Raises
    ------
    InvalidInput
        If the domain is the table of rows or a part of it, or is a lazy table that may be made from it.

    Examples
    --------
    >>> import pandas
    >>> rows = pandas.DataFrame({"film": ["Heat", "Up"], "viewer": ["ann", "bob"]})
    >>> try:
    ...     check_not_rows(rows, None, Domain.of(rows["film"]))
    ... except InvalidInput as error:
    ...     print(str(error).split(",")[0])
    domain: it is the table of private rows or a part of it
    """
    if domain.path is not None:
        is_private = share_file(files_of(table, table_name), files_of(domain.path))
    elif domain.table_name is not None:
        is_private = share_file(_files_in_spark(table, table_name), _files_in_spark(table, domain.table_name))
    else:
        is_private = domain.number is None and _is_part(table, domain.given)
    if is_private:
        raise _refused(domain)
    if _may_be_derived(table, domain.given):
        raise InvalidInput(
            domain.argument,
            domain.given,
            "it is a lazy table of the same library as the rows, so it may be made from them; state a public list in "
            "memory or in a file",
        )


def check_not_origin(source: Source, domain: Domain, listed: Any) -> None:
    """Refuse a list that is the table of rows in its engine; `listed` is the list as an Ibis table there, or None."""
    engine, origin = source.engine, source.origin
    if isinstance(origin, str):
        is_private = domain.table_name is not None and _in_duckdb_file(origin) == _in_duckdb_file(domain.table_name)
    elif origin is None:
        is_private = False
    else:
        is_private = listed is not None and _is_within(_tables(engine, origin), _tables(engine, listed))
        if isinstance(engine, SparkEngine) and not is_private:
            is_private = _share_files_in_spark(engine, origin, domain, listed)
    if is_private:
        raise _refused(domain)


def _refused(domain: Domain) -> InvalidInput:
    given = plain("")
    if domain.path is not None:
        given = str(domain.path)
    if domain.table_name is not None:
        given = f"table:{domain.table_name}"
    if domain.argument == "groups":
        return InvalidInput(
            "groups",
            given,
            "it is the table of private rows or a part of it, so that the answer could name a group that only one "
            "person is in; state a public list of the groups, or publish one from the rows with dpselect domain",
        )
    return InvalidInput(
        "domain",
        given,
        "it is the table of private rows or a part of it, so that the answer could name an item that only one person "
        "has; state a public list of the possible items, make one with dpselect domain (in Python, dpselect.discover), "
        "or state dpselect.UNKNOWN (--domain unknown) with a delta; in a ranking, leave the domain out",
    )


def _files_in_spark(table: Any, path: str | None) -> list[Path]:
    """Return the files and folders that match a path or pattern in Spark, and everything in them."""
    if not (is_url(table) and table.lower().startswith("spark") and path is not None and "/" in path):
        return []
    found = glob.glob(_LOCAL.sub("", path))
    inside = [os.path.join(glob.escape(match), "**") for match in found]
    below = [name for pattern in inside for name in glob.glob(pattern, recursive=True, include_hidden=True)]
    return [Path(name) for name in (*found, *below)]


def share_file(first: Iterable[Path], second: Iterable[Path]) -> bool:
    """Return whether one of the first files is one of the second, under whatever name."""
    return not _identities(first).isdisjoint(_identities(second))


def _identities(paths: Iterable[Path]) -> set[tuple[int, int]]:
    """Return device and inode of each file that exists."""
    found = set()
    for path in paths:
        with contextlib.suppress(OSError, ValueError):
            status = path.stat()
            found.add((status.st_dev, status.st_ino))
    return found


def _is_part(table: Any, given: Any) -> bool:
    return given is table or _is_same_relation(table, given) or _shares_memory(given, table)


def _is_same_relation(table: Any, given: Any) -> bool:
    """Whether two relations of DuckDB are the same table."""
    both = (table, given)
    is_table = all(_is_relation(one) and one.type == "TABLE_RELATION" for one in both)
    return is_table and table.sql_query() == given.sql_query()


def _may_be_derived(table: Any, given: Any) -> bool:
    """Whether a list is a query of the library that holds the rows; two plain tables of DuckDB differ by name."""
    if _is_relation(given) and _is_relation(table):
        return any(one.type != "TABLE_RELATION" for one in (table, given))
    polars = [type(one).__name__ for one in (given, table) if type(one).__module__.startswith("polars.")]
    return polars in (["LazyFrame", "LazyFrame"], ["LazyFrame", "DataFrame"])


def _is_relation(table: Any) -> bool:
    return type(table).__name__ == "DuckDBPyRelation"


def _is_within(rows: Any, listed: Any) -> bool:
    """Whether a list is made from every table or file that the rows are made from; a joined public table is not."""
    return bool(rows) and rows <= listed


def _tables(engine: Engine, table: Any) -> set[Any]:
    """Return the tables of the engine that an Ibis table is made from."""
    import ibis.expr.operations as operations

    found = [part for part in table.op().find(operations.DatabaseTable) if part.source is engine.backend]
    return {_key(engine, part.namespace.catalog, part.namespace.database, part.name) for part in found}


def _key(engine: Engine, catalog: str | None, schema: str | None, name: str) -> Any:
    """Return what identifies a table of an engine, however its name is written."""
    if isinstance(engine, PostgresEngine):
        quoted = ".".join(quoted_identifier(part) for part in (schema, name) if part)
        # A partition counts as the table that it is a part of.
        query = "SELECT coalesce(pg_partition_root(named), named)::oid FROM to_regclass(%s) AS named"
        return engine.run(lambda: engine.connection.execute(query, [quoted]).fetchone()[0]) or (schema, name)
    parts = (catalog or _current(engine, "catalog"), schema or _current(engine, "database"), name)
    return tuple(str(part).casefold() for part in parts) if engine.backend.name in _CASELESS else parts


def _current(engine: Engine, what: str) -> Any:
    """Return the current catalog or database, if the backend has one."""
    with contextlib.suppress(SourceError):
        return engine.run(lambda: getattr(engine.backend, f"current_{what}", None))
    return None


def _in_duckdb_file(name: str) -> list[str]:
    """Return schema and table in lower case, since DuckDB ignores case."""
    return [part.casefold() for part in ("main", *name_parts(name))[-2:]]


def _share_files_in_spark(engine: SparkEngine, origin: Any, domain: Domain, listed: Any) -> bool:
    """Whether a list in Spark is read from all files of the rows, or a file of items is one of them."""
    if listed is None and domain.path is None:
        return False
    try:
        rows = _files_behind(engine, origin)
        if listed is not None:
            return _is_within(set(rows), set(_files_behind(engine, listed)))
    except SourceError:
        return False
    local = (Path(unquote(_LOCAL.sub("", file))) for file in rows if _LOCAL.match(file))
    return share_file(local, files_of(domain.path))


def _files_behind(engine: SparkEngine, table: Any) -> list[str]:
    """Return the addresses of the files that Spark would read for a table; no row is read."""
    return engine.run(lambda: list(engine.session.sql(engine.backend.compile(table)).inputFiles()))


Span = tuple[int, int]
"""Start and end of a piece of memory."""


def _shares_memory(first: Any, second: Any) -> bool:
    """Whether some values of two arrays or tables lie in the same memory.

    Only the addresses of values are compared. Null masks, text offsets and booleans are left out: libraries can keep
    these in memory that has nothing to do with the column.
    """
    spans = _spans(first)
    return bool(spans) and any(low < end and start < high for start, end in _spans(second) for low, high in spans)


def _spans(data: Any) -> list[Span]:
    """Return the memory of an array, Series or table of NumPy, pandas, polars, Arrow or Ibis; otherwise nothing."""
    library = type(data).__module__.lstrip("_").partition(".")[0]
    # Data that a library cannot export without copying shares no memory that could be recognised.
    with contextlib.suppress(Exception):
        if isinstance(data, np.ndarray):
            low, high = byte_bounds(data)
            return [(int(low), int(high))] if data.nbytes and data.dtype != bool else []
        if library in _OF_LIBRARY:
            return list(_OF_LIBRARY[library](data))
    return []


def _of_pandas(data: Any) -> Iterable[Span]:
    import pandas

    if isinstance(data, pandas.DataFrame):
        return [span for place in range(data.shape[1]) for span in _spans(data.iloc[:, place])]
    array = data.array if isinstance(data, pandas.Series | pandas.Index) else data
    if isinstance(array, pandas.Categorical):
        return _spans(array.codes)
    if hasattr(array, "asi8"):
        return _spans(array.asi8)
    if hasattr(array, "__arrow_array__") and getattr(array.dtype, "storage", "") != "python":
        return _spans(array.__arrow_array__())
    return _spans(np.asarray(array))


def _of_polars(data: Any) -> Iterable[Span]:
    import polars
    import pyarrow

    if isinstance(data, polars.DataFrame):
        return [span for column in data.get_columns() for span in _spans(column)]
    if not isinstance(data, polars.Series):
        return []
    if isinstance(data.dtype, polars.Categorical | polars.Enum):
        data = data.to_physical()
    return _spans(pyarrow.chunked_array(data))


def _of_arrow(data: Any) -> Iterable[Span]:
    import pyarrow

    if isinstance(data, pyarrow.Table | pyarrow.RecordBatch):
        return [span for column in data.columns for span in _spans(column)]
    if isinstance(data, pyarrow.ChunkedArray):
        return [span for chunk in data.chunks for span in _spans(chunk)]
    if not isinstance(data, pyarrow.Array) or pyarrow.types.is_boolean(data.type):
        return []
    is_view = pyarrow.types.is_string_view(data.type) or pyarrow.types.is_binary_view(data.type)
    has_offsets = any(
        is_kind(data.type)
        for is_kind in (
            pyarrow.types.is_string,
            pyarrow.types.is_large_string,
            pyarrow.types.is_binary,
            pyarrow.types.is_large_binary,
        )
    )
    # Only the views themselves: polars lets a join or a filter share the texts that they point to.
    buffers = data.buffers()[1:2] if is_view else data.buffers()[2 if has_offsets else 1 :]
    return [(buffer.address, buffer.address + buffer.size) for buffer in buffers if buffer is not None and buffer.size]


def _of_ibis(data: Any) -> Iterable[Span]:
    import ibis.expr.operations as operations

    return [span for part in data.op().find(operations.InMemoryTable) for span in _spans(part.data.obj)]


_OF_LIBRARY = {"pandas": _of_pandas, "polars": _of_polars, "pyarrow": _of_arrow, "ibis": _of_ibis}
