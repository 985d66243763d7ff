"""Servers that do not answer, and connections on which the text of one row could fail."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from engine_places import PostgreSqlDatabase, rows_of

import dpselect as dps

pytestmark = pytest.mark.slow

ROWS = rows_of(item=["☃", "☃", "pen"], person=[1, 2, 3])
WANTED: dict[str, Any] = {"item": "item", "person": "person", "k": 1, "epsilon": 50, "domain": ["☃", "pen"], "seed": 1}


@pytest.fixture
def silent_server() -> Iterator[socket.socket]:
    """Yield a server that takes connections and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(120)
        yield server


@pytest.fixture
def closed_port() -> int:
    """Return a port where nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def test_waiting_for_a_connection_is_shown(silent_server: socket.socket) -> None:
    seen: list[float | None] = []
    url = f"postgresql://ann:hunter2@127.0.0.1:{silent_server.getsockname()[1]}/shop?connect_timeout=2"
    with pytest.raises(dps.SourceError, match="cannot be reached") as caught:
        dps.top(url, table_name="orders", **WANTED, progress=seen.append)
    assert seen
    assert set(seen) == {None}
    assert caught.value.__context__ is None


def test_an_interrupt_does_not_wait_for_a_server(silent_server: socket.socket) -> None:
    """The server would be waited for until the test is ended."""
    url = f"postgresql://127.0.0.1:{silent_server.getsockname()[1]}/shop?connect_timeout=3600"
    asked = ["--table", "orders", "--item", "item", "--person", "person", "-k", "1", "--epsilon", "1", "--domain", "9"]
    run = "import sys; from dpselect.cli import main; sys.argv[0] = 'dpselect'; main()"
    with subprocess.Popen([sys.executable, "-c", run, "top", url, *asked], stderr=subprocess.PIPE) as process:
        taken, _ = silent_server.accept()
        process.send_signal(signal.SIGINT)
        try:
            _, said = process.communicate(timeout=60)
        finally:
            process.kill()
            taken.close()
    assert process.returncode == 130
    assert said.decode().strip() == "dpselect: interrupted"


def test_a_master_that_is_not_there_is_found_out_without_java(closed_port: int) -> None:
    for masters in ("spark://127.0.0.1:{0}", "spark://127.0.0.1:{0},127.0.0.1:{0}"):
        with pytest.raises(dps.SourceError, match="master cannot be reached"):
            dps.top(masters.format(closed_port), table_name="orders", **WANTED)


def test_an_address_that_is_none() -> None:
    for url in ("spark://host", "spark://host:port", "spark://:7077", "spark://host:70777"):
        with pytest.raises(dps.InvalidInput, match="must be spark://HOST:PORT"):
            dps.top(url, table_name="orders", **WANTED)


def test_the_encoding_of_the_client_does_not_decide_about_rows_in_postgresql(
    postgresql_place: PostgreSqlDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    import ibis

    postgresql_place.put("orders", ROWS)
    monkeypatch.setenv("PGCLIENTENCODING", "LATIN1")
    options = WANTED | {"domain": 9}
    assert dps.top(**postgresql_place.source("orders"), **options).items == ["☃"]
    with postgresql_place.connect() as connection, pytest.raises(dps.SourceError, match="client_encoding"):
        dps.top(ibis.postgres.from_connection(connection).table("orders"), **options)


def test_a_database_without_an_encoding_is_refused_in_postgresql(postgresql_place: PostgreSqlDatabase) -> None:
    name = f"{postgresql_place.database}_bytes"
    url = postgresql_place.url.replace(f"/{postgresql_place.database}?", f"/{name}?")
    with postgresql_place.connect() as connection:
        connection.execute(f"CREATE DATABASE {name} ENCODING SQL_ASCII TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'")
        try:
            with pytest.raises(dps.SourceError, match="SQL_ASCII"):
                dps.top(url, table_name="orders", **WANTED)
        finally:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.mark.filterwarnings("ignore:fetch_arrow_table:DeprecationWarning")  # the test's own call of Ibis
def test_a_connection_of_duckdb_that_was_passed_keeps_nothing() -> None:
    import ibis

    backend = ibis.duckdb.connect()
    backend.con.register("given", ROWS)
    backend.con.execute(
        "CREATE TABLE orders AS SELECT * FROM given; CREATE TABLE goods AS SELECT DISTINCT item FROM given"
    )
    backend.con.unregister("given")
    query = "SELECT table_name FROM duckdb_tables() UNION ALL SELECT view_name FROM duckdb_views() WHERE NOT internal"
    for more in ({"domain": 9}, {"where": "person > 0"}, {"domain": "table:goods", "max_items_per_person": 1}):
        answer = dps.top(backend.table("orders"), **WANTED | more)
        assert answer.items == ["☃"]
        assert sorted(backend.con.execute(query).fetchall()) == [("goods",), ("orders",)]
    backend.disconnect()


def test_a_list_that_cannot_be_read_is_not_called_a_file() -> None:
    import ibis

    listed = ibis.memtable(rows_of(item=["ham"])).mutate(item=ibis._.item.cast("int64"))
    with pytest.raises(dps.InvalidInput, match=r"^domain must have items that can be compared .*, got a table"):
        dps.top(ROWS, **WANTED | {"domain": listed})
