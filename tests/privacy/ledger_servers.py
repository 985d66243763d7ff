"""Ledgers to test with: a file, and a real PostgreSQL server for as long as the test run lasts."""

from __future__ import annotations

import itertools
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

_numbers = itertools.count()


@contextmanager
def postgresql() -> Iterator[str]:
    """Yield the URL of a server of our own, started in a temporary folder and stopped at the end."""
    pgserver = pytest.importorskip("pgserver", reason="PostgreSQL for tests is not installed: pip install pgserver")
    with tempfile.TemporaryDirectory(prefix="dpselect-pg-") as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pgserver warns when the machine has no folder for sockets
        server = pgserver.get_server(folder, cleanup_mode="stop")
        try:
            yield server.get_uri()
        finally:
            server.cleanup()


def fresh_database(server: str) -> str:
    """Return the URL of a new, empty database on the server."""
    import psycopg

    name = f"ledger_{next(_numbers)}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return server.replace("/postgres?", f"/{name}?").replace("postgresql://", "postgresql+psycopg://")
