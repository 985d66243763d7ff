"""Real engines to test with: a PostgreSQL server and a local Spark, each started once and stopped at the end."""

from __future__ import annotations

import itertools
import os

from dpselect.verify.servers import BRIEF_JAVA, postgresql, spark

__all__ = ["BRIEF_JAVA", "fresh_database", "postgresql", "spark"]

_numbers = itertools.count()


def fresh_database(server: str, *settings: str) -> str:
    """Return the URL of a place on the server in which there is nothing yet."""
    import psycopg

    name = f"place_{os.getpid()}_{next(_numbers)}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {name}")
    options = "%20".join(f"-c{setting}".replace("=", "%3D") for setting in (f"search_path={name}", *settings))
    return server.replace("postgresql://", "postgresql+psycopg://") + f"&options={options}"
