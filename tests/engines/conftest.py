"""The three engines, each as a place for tables."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from engine_places import DuckDbFile, Place, PostgreSqlDatabase, SparkSession

ENGINES = ["duckdb", "postgresql", "spark"]


@pytest.fixture(params=ENGINES)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """Return an empty place in one engine after another."""
    if request.param == "duckdb":
        return DuckDbFile(tmp_path)
    return request.getfixturevalue(f"{request.param}_place")  # type: ignore[no-any-return]


@pytest.fixture(params=["duckdb", "postgresql"])
def quick_place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """Return an empty place where hundreds of releases take seconds; a single one takes Spark a second."""
    if request.param == "duckdb":
        return DuckDbFile(tmp_path)
    return request.getfixturevalue("postgresql_place")  # type: ignore[no-any-return]


@pytest.fixture(scope="session")
def postgresql_place(postgresql_server: str) -> PostgreSqlDatabase:
    """Return a database of the server; tables are replaced by those of the next test."""
    return PostgreSqlDatabase(postgresql_server)


@pytest.fixture
def fresh_database(postgresql_server: str) -> Iterator[PostgreSqlDatabase]:
    """Yield an empty database whose rights can be changed, and drop it."""
    database = PostgreSqlDatabase(postgresql_server)
    yield database
    database.drop()


@pytest.fixture
def spark_place(spark_session: Any, tmp_path: Path) -> SparkSession:
    """Return an empty folder that the session reads."""
    return SparkSession(spark_session, tmp_path)
