"""The same rows in every engine: a DuckDB file, a PostgreSQL database and a Spark session."""

from __future__ import annotations

import contextlib
import datetime
import decimal
import itertools
import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

import pyarrow
import pyarrow.parquet

_numbers = itertools.count()

TYPES = {
    pyarrow.string(): "text",
    pyarrow.int64(): "bigint",
    pyarrow.float64(): "double precision",
    pyarrow.date32(): "date",
    pyarrow.bool_(): "boolean",
    pyarrow.timestamp("us"): "timestamp",
    pyarrow.timestamp("us", "UTC"): "timestamptz",
    pyarrow.decimal128(12, 2): "numeric(12, 2)",
    pyarrow.list_(pyarrow.string()): "text[]",
}


class Place(Protocol):
    """Where tables can be put, and how `top` is told to find one."""

    name: str

    def put(self, name: str, rows: pyarrow.Table) -> None:
        """Make a table of that name."""

    def source(self, name: str) -> dict[str, Any]:
        """Return the arguments with which `top` reads the table."""


class DuckDbFile:
    """Tables in a DuckDB file, read by its URL."""

    name = "duckdb"

    def __init__(self, folder: Path) -> None:
        self.file = folder / "shop.duckdb"

    def put(self, name: str, rows: pyarrow.Table) -> None:
        """Make a table of that name."""
        import duckdb

        with contextlib.closing(duckdb.connect(str(self.file))) as connection:
            connection.register("given", rows)
            connection.execute(f'CREATE OR REPLACE TABLE "{name}" AS SELECT * FROM given')

    def source(self, name: str) -> dict[str, Any]:
        """Return the URL of the file and the name of the table."""
        return {"table": f"duckdb://{self.file}", "table_name": name}

    def tables(self) -> list[str]:
        """Return the names of all tables in the file."""
        import duckdb

        with contextlib.closing(duckdb.connect(str(self.file))) as connection:
            return sorted(row[0] for row in connection.execute("SELECT table_name FROM duckdb_tables()").fetchall())


class PostgreSqlDatabase:
    """Tables in a fresh database of the server, read by its URL."""

    name = "postgresql"

    def __init__(self, server: str) -> None:
        import psycopg

        self.database = f"shop_{os.getpid()}_{next(_numbers)}"
        self.url = server.replace("/postgres?", f"/{self.database}?")
        self._server = server
        with psycopg.connect(server, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {self.database}")

    def drop(self) -> None:
        """Drop the database."""
        import psycopg

        with psycopg.connect(self._server, autocommit=True) as connection:
            connection.execute(f"DROP DATABASE {self.database} WITH (FORCE)")

    def connect(self, **options: Any) -> Any:
        """Return a connection of our own, beside the one under test."""
        import psycopg

        return psycopg.connect(self.url, autocommit=True, **options)

    def put(self, name: str, rows: pyarrow.Table) -> None:
        """Make a table of that name."""
        columns = ", ".join(f'"{field.name}" {TYPES[field.type]}' for field in rows.schema)
        with self.connect() as connection, connection.cursor() as cursor:
            cursor.execute(f'DROP TABLE IF EXISTS "{name}"')
            cursor.execute(f'CREATE TABLE "{name}" ({columns})')
            with cursor.copy(f'COPY "{name}" FROM STDIN') as copy:
                copy.set_types([TYPES[field.type].partition("(")[0] for field in rows.schema])
                for row in zip(*(column.to_pylist() for column in rows.columns), strict=True):
                    copy.write_row(row)

    def source(self, name: str) -> dict[str, Any]:
        """Return the URL of the database and the name of the table."""
        return {"table": self.url, "table_name": name}

    def relations(self) -> list[str]:
        """Return the names of all tables and views in the database that are not the server's own."""
        query = (
            "SELECT relname FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace "
            "WHERE nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast') ORDER BY 1"
        )
        with self.connect() as connection:
            return [row[0] for row in connection.execute(query).fetchall()]

    def visitors(self) -> int:
        """Return how many connections to the database there are beside this one."""
        query = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        with self.connect() as connection:
            return int(connection.execute(query).fetchone()[0])


class SparkSession:
    """Parquet files in a folder, read as DataFrames of a session and known to it by name."""

    name = "spark"

    def __init__(self, session: Any, folder: Path) -> None:
        self.session = session
        self.folder = folder

    def put(self, name: str, rows: pyarrow.Table) -> None:
        """Make a Parquet file of that name, and a view of it in the session."""
        pyarrow.parquet.write_table(rows, self.path(name))
        self.frame(name).createOrReplaceTempView(name)

    def path(self, name: str) -> str:
        """Return the path of the file."""
        return str(self.folder / f"{name}.parquet")

    def frame(self, name: str) -> Any:
        """Return the table as a Spark DataFrame."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            return self.session.read.parquet(self.path(name))

    def source(self, name: str) -> dict[str, Any]:
        """Return the table as a Spark DataFrame."""
        return {"table": self.frame(name)}


def rows_of(**columns: Any) -> pyarrow.Table:
    """Return a table from lists of Python values, in the plain types that every engine has."""
    return pyarrow.table({name: pyarrow.array(values, _type_of(values)) for name, values in columns.items()})


def _type_of(values: list[Any]) -> pyarrow.DataType:
    sample = next(value for value in values if value is not None)
    if getattr(sample, "tzinfo", None) is not None:
        return pyarrow.timestamp("us", "UTC")
    kinds = {
        bool: pyarrow.bool_(),
        int: pyarrow.int64(),
        float: pyarrow.float64(),
        str: pyarrow.string(),
        datetime.datetime: pyarrow.timestamp("us"),
        datetime.date: pyarrow.date32(),
        decimal.Decimal: pyarrow.decimal128(12, 2),
        list: pyarrow.list_(pyarrow.string()),
    }
    return kinds[type(sample)]


@contextlib.contextmanager
def rows_fetched() -> Iterator[list[int]]:
    """Count the rows that every engine hands to Python within the block, one number a query."""
    from dpselect.sources.engine import Engine

    counted: list[int] = []
    fetch = Engine.fetch

    def counting(self: Engine, expression: Any) -> list[dict[str, Any]]:
        rows = fetch(self, expression)
        counted.append(len(rows))
        return rows

    Engine.fetch = counting  # type: ignore[method-assign]
    try:
        yield counted
    finally:
        Engine.fetch = fetch  # type: ignore[method-assign]
