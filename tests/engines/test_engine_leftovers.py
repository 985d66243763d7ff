"""What is temporary is gone from the caller's own connection or session, however a release ends."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from engine_cases import BUYERS, GOODS
from engine_places import PostgreSqlDatabase, SparkSession

import dpselect as dps


@dataclass(frozen=True)
class Own:
    """The caller's table, one of which a query takes minutes, and all that the engine knows and keeps."""

    table: Any
    slow: Any
    state: Callable[[], Any]


@contextlib.contextmanager
def duckdb() -> Iterator[Own]:
    import ibis

    backend = ibis.duckdb.connect()
    backend.con.register("given", BUYERS)
    backend.con.execute(
        "CREATE TABLE orders AS SELECT * FROM given; "
        "CREATE VIEW slow AS SELECT item, hash(person, number) AS person, year "
        "FROM orders, range(10000000000) AS numbers (number) WHERE hash(item, number) % 1000000 = 1"
    )
    names = "SELECT table_name FROM duckdb_tables() UNION ALL SELECT view_name FROM duckdb_views() ORDER BY 1"
    yield Own(backend.table("orders"), backend.table("slow"), lambda: backend.con.execute(names).fetchall())
    backend.disconnect()


@contextlib.contextmanager
def postgresql(place: PostgreSqlDatabase) -> Iterator[Own]:
    import ibis

    place.put("orders", BUYERS)
    connection = place.connect()
    connection.execute("CREATE TEMPORARY VIEW slow AS SELECT orders.* FROM orders, pg_sleep(600)")
    backend = ibis.postgres.from_connection(connection)

    def state() -> Any:
        names = connection.execute("SELECT relname FROM pg_class WHERE relpersistence = 't' ORDER BY 1").fetchall()
        return place.relations(), names, connection.info.transaction_status

    yield Own(backend.table("orders"), backend.table("slow"), state)
    connection.close()


@contextlib.contextmanager
def spark(place: SparkSession) -> Iterator[Own]:
    place.put("orders", BUYERS)
    slow = place.session.sql("SELECT 'ham' AS item, id % 1000 AS person, 1 AS year FROM range(0, 100000000000, 1, 2)")

    def state() -> Any:
        context = place.session.sparkContext
        return place.session.catalog.listTables(), context._jsc.getPersistentRDDs().size()

    yield Own(place.frame("orders"), slow, state)


@pytest.fixture(params=["duckdb", "postgresql", "spark"])
def own(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Own]:
    """Yield the caller's connection or session of one engine after another."""
    places = {"duckdb": duckdb, "postgresql": postgresql, "spark": spark}
    needed = [] if request.param == "duckdb" else [request.getfixturevalue(f"{request.param}_place")]
    with places[request.param](*needed) as one:
        yield one


class Interrupted(dps.Canonical):
    """The canonical mechanism, interrupted between the two queries."""

    def draw(self, *arguments: Any) -> Any:
        raise KeyboardInterrupt


@pytest.mark.filterwarnings("ignore:fetch_arrow_table:DeprecationWarning")  # the test's own call of Ibis
@pytest.mark.parametrize("domain", [GOODS, 10**6, dps.UNKNOWN], ids=["list", "number", "unknown"])
def test_nothing_temporary_outlives_an_error_or_an_interrupt(own: Own, domain: Any, tmp_path: Path) -> None:
    asked: dict[str, Any] = {"item": "item", "person": "person", "domain": domain, "max_items_per_person": 2, "seed": 1}
    named = {**asked, "k": 2, "epsilon": 1.0, "delta": 0.01}
    before = own.state()
    dps.top(own.table, **named)
    assert own.state() == before
    with pytest.raises(dps.SourceError):
        dps.top(own.table, where="CAST(item AS INT) > 1", **named)
    assert own.state() == before
    with dps.privacy.Ledger(tmp_path / "budget.sqlite") as ledger:
        ledger.create("shop", epsilon=1.0, delta=0.01)

        def interrupt(_: float | None) -> None:
            if ledger.entries("shop"):  # once it is charged, the rows are read
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            dps.top(own.slow, progress=interrupt, ledger=ledger, dataset="shop", **named)
    assert own.state() == before
    if domain is GOODS:
        with pytest.raises(KeyboardInterrupt):
            dps.top(own.table, mechanism=Interrupted(k=2, epsilon=1.0), **asked)
        assert own.state() == before
