"""Whether a list that is stated as public is the table of private rows itself, or a part of it.

Told by identity alone: the same file, table, object or memory. Contents are never compared, since whether they agree
would depend on the rows.
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

from dpselect.errors import InvalidInput, SourceError, plain
from dpselect.sources.connect import Source, attach_duckdb, is_url
from dpselect.sources.domain import Domain
from dpselect.sources.embedded import embedded_engine
from dpselect.sources.engine import Engine, name_parts
from dpselect.sources.files import FileTable
from dpselect.sources.memory import shares_memory
from dpselect.sources.postgres import PostgresEngine
from dpselect.sources.spark import SparkEngine

_LOCAL = re.compile(r"file:/*(?=/)")
_CASELESS = ("duckdb", "pyspark")
_ONLY_IN_SPARK = frozenset("{[\\")
"""Marks of a pattern that Spark understands otherwise than Python."""


def files_of(table: Any, table_name: str | None = None) -> list[Path]:
    """Return the files of this machine that are read with a table: those of a path, a DuckDB file, Parquet in Spark.

    Of Spark the folders too, since it reads whatever is in them. A file that belongs to them and need not exist, such
    as the log of a DuckDB file, is among them.
    """
    if is_url(table):
        scheme, _, rest = table.partition("://")
        return [Path(rest), Path(f"{rest}.wal")] if scheme.lower() == "duckdb" else _files_in_spark(table, table_name)
    if isinstance(table, str | os.PathLike):
        with contextlib.suppress(InvalidInput):  # whoever reads it says what is wrong with it
            return [Path(part) for part in FileTable.at("table", table).parts]
    return []


def has_unknown_files(table: Any, table_name: str | None) -> bool:
    """Tell whether files may be read that `files_of` does not know: by a view, or by a pattern as only Spark has it."""
    if not is_url(table) or table_name is None:
        return False
    scheme, _, rest = table.partition("://")
    if scheme.lower() == "duckdb":
        return _is_view(rest, table_name)
    return scheme.lower().startswith("spark") and "/" in table_name and not _ONLY_IN_SPARK.isdisjoint(table_name)


def _is_view(path: str, name: str) -> bool:
    """Tell whether a table of a DuckDB file is a view; of a file that cannot be opened, whoever reads it tells."""
    with contextlib.suppress(InvalidInput, SourceError), embedded_engine() as engine:
        attach_duckdb(engine, path)
        found = "SELECT schema_name, view_name FROM duckdb_views() WHERE database_name = 'dpselect_source'"
        views = engine.run(lambda: engine.connection.execute(found).fetchall())
        return _in_duckdb_file(name) in [[part.casefold() for part in view] for view in views]
    return False


def check_not_rows(table: Any, table_name: str | None, domain: Domain) -> None:
    """Refuse a list that is the table of rows, as an object, in memory or as a file. Nothing is opened."""
    if domain.path is not None:
        is_private = _share_file(files_of(table, table_name), files_of(domain.path))
    elif domain.table_name is not None:
        is_private = _share_file(_files_in_spark(table, table_name), _files_in_spark(table, domain.table_name))
    else:
        is_private = domain.number is None and _is_part(table, domain.given)
    if is_private:
        raise _refused(domain)
    if _may_be_derived(table, domain.given):
        raise InvalidInput(
            "domain",
            domain.given,
            "it is not computed yet, so it cannot be told whether it is made from the rows, which are of the same "
            "library; state a public list, in memory or in a file",
        )


def check_not_origin(source: Source, domain: Domain, listed: Any) -> None:
    """Refuse a list that is the table of rows in its engine; `listed` is the list there as an Ibis table, if it is."""
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
    given = plain("a list")
    if domain.path is not None:
        given = str(domain.path)
    if domain.table_name is not None:
        given = f"table:{domain.table_name}"
    return InvalidInput(
        "domain",
        given,
        "it is the table of private rows, or a part of it: the answer could name an item that only one person has. "
        "State a public list of the possible items, or dpselect.UNKNOWN (--domain unknown) with a delta; in a ranking, "
        "leave the domain out",
    )


def _files_in_spark(table: Any, path: str | None) -> list[Path]:
    """Return the files and folders at what stands for a path in Spark, which can be a pattern, and all in them."""
    if not (is_url(table) and table.lower().startswith("spark") and path is not None and "/" in path):
        return []
    return [Path(match) for given in glob.glob(_LOCAL.sub("", path)) for match in (given, *_inside(given))]


def _inside(path: str) -> list[str]:
    return glob.glob(os.path.join(glob.escape(path), "**"), recursive=True, include_hidden=True)


def _share_file(first: Iterable[Path], second: Iterable[Path]) -> bool:
    return not _identities(first).isdisjoint(_identities(second))


def _identities(paths: Iterable[Path]) -> set[tuple[int, int]]:
    """Return device and number of each file that exists."""
    found = set()
    for path in paths:
        with contextlib.suppress(OSError, ValueError):
            status = path.stat()
            found.add((status.st_dev, status.st_ino))
    return found


def _is_part(table: Any, given: Any) -> bool:
    return given is table or _is_same_relation(table, given) or shares_memory(given, table)


def _is_same_relation(table: Any, given: Any) -> bool:
    """Tell whether two relations of DuckDB are one and the same table."""
    both = (table, given)
    is_table = all(_is_relation(one) and one.type == "TABLE_RELATION" for one in both)
    return is_table and table.sql_query() == given.sql_query()


def _may_be_derived(table: Any, given: Any) -> bool:
    """Tell whether a list is a query of the library that holds the rows; two tables of DuckDB are told by name."""
    if _is_relation(given) and _is_relation(table):
        return any(one.type != "TABLE_RELATION" for one in (table, given))
    polars = [type(one).__name__ for one in (given, table) if type(one).__module__.startswith("polars.")]
    return polars in (["LazyFrame", "LazyFrame"], ["LazyFrame", "DataFrame"])


def _is_relation(table: Any) -> bool:
    return type(table).__name__ == "DuckDBPyRelation"


def _is_within(rows: Any, listed: Any) -> bool:
    """Tell whether a list is made from all that the rows are made from; a public table joined to the rows is not."""
    return bool(rows) and rows <= listed


def _tables(engine: Engine, table: Any) -> set[Any]:
    """Return which tables of the engine an Ibis table is made from."""
    import ibis.expr.operations as operations

    found = [part for part in table.op().find(operations.DatabaseTable) if part.source is engine.backend]
    return {_key(engine, part.namespace.catalog, part.namespace.database, part.name) for part in found}


def _key(engine: Engine, catalog: str | None, schema: str | None, name: str) -> Any:
    """Return what tells a table of an engine from all others, however its name was written."""
    if isinstance(engine, PostgresEngine):
        quoted = ".".join('"' + part.replace('"', '""') + '"' for part in (schema, name) if part)
        # A partition and the table that it is a part of are one and the same here.
        query = "SELECT coalesce(pg_partition_root(named), named)::oid FROM to_regclass(%s) AS named"
        return engine.run(lambda: engine.connection.execute(query, [quoted]).fetchone()[0]) or (schema, name)
    parts = (catalog or _current(engine, "catalog"), schema or _current(engine, "database"), name)
    return tuple(str(part).casefold() for part in parts) if engine.backend.name in _CASELESS else parts


def _current(engine: Engine, what: str) -> Any:
    """Return the catalogue or database of a table that is named without, if the backend has such a thing."""
    with contextlib.suppress(SourceError):
        return engine.run(lambda: getattr(engine.backend, f"current_{what}", None))
    return None


def _in_duckdb_file(name: str) -> list[str]:
    """Return schema and table; DuckDB ignores case."""
    return [part.casefold() for part in ("main", *name_parts(name))[-2:]]


def _share_files_in_spark(engine: SparkEngine, origin: Any, domain: Domain, listed: Any) -> bool:
    """Tell whether a list in Spark is read from all files that the rows are read from, or a file is one of them."""
    if listed is None and domain.path is None:
        return False
    try:
        rows = _files_behind(engine, origin)
        if listed is not None:
            return _is_within(set(rows), set(_files_behind(engine, listed)))
    except SourceError:
        return False
    local = (Path(unquote(_LOCAL.sub("", file))) for file in rows if _LOCAL.match(file))
    return _share_file(local, files_of(domain.path))


def _files_behind(engine: SparkEngine, table: Any) -> list[str]:
    """Return the addresses of the files that Spark would read for a table; no row is read for that."""
    return engine.run(lambda: list(engine.session.sql(engine.backend.compile(table)).inputFiles()))
