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
    """The caller's table, one that takes minutes to read, one that fails on a row, and all that the engine keeps."""

    table: Any
    slow: Any
    failing: Any
    state: Callable[[], Any]


@contextlib.contextmanager
def duckdb() -> Iterator[Own]:
    import ibis

    backend = ibis.duckdb.connect()
    backend.con.register("given", BUYERS)
    backend.con.execute(
        "CREATE TABLE orders AS SELECT * FROM given; "
        "CREATE VIEW slow AS SELECT item, hash(person, number) AS person, year "
        "FROM orders, range(10000000000) AS numbers (number) WHERE hash(item, number) % 1000000 = 1; "
        "CREATE VIEW failing AS SELECT * FROM orders WHERE error(item) IS NULL"
    )
    names = "SELECT table_name FROM duckdb_tables() UNION ALL SELECT view_name FROM duckdb_views() ORDER BY 1"
    settings = "SELECT current_setting('disabled_optimizers')"

    def state() -> Any:
        return backend.con.execute(names).fetchall(), backend.con.execute(settings).fetchall()

    yield Own(backend.table("orders"), backend.table("slow"), backend.table("failing"), state)
    backend.disconnect()


@contextlib.contextmanager
def postgresql(place: PostgreSqlDatabase) -> Iterator[Own]:
    import ibis

    place.put("orders", BUYERS)
    connection = place.connect()
    connection.execute("CREATE TEMPORARY VIEW slow AS SELECT orders.* FROM orders, pg_sleep(600)")
    connection.execute("CREATE TEMPORARY VIEW failing AS SELECT * FROM orders WHERE 1 / (year - 2023) > 0")
    backend = ibis.postgres.from_connection(connection)

    def state() -> Any:
        names = connection.execute("SELECT relname FROM pg_class WHERE relpersistence = 't' ORDER BY 1").fetchall()
        functions = connection.execute(
            "SELECT proname FROM pg_proc WHERE pronamespace = pg_my_temp_schema()"
        ).fetchall()
        return place.relations(), names, functions, connection.info.transaction_status

    yield Own(backend.table("orders"), backend.table("slow"), backend.table("failing"), state)
    connection.close()


@contextlib.contextmanager
def spark(place: SparkSession) -> Iterator[Own]:
    place.put("orders", BUYERS)
    slow = place.session.sql("SELECT 'ham' AS item, id % 1000 AS person, 1 AS year FROM range(0, 100000000000, 1, 2)")

    def state() -> Any:
        context = place.session.sparkContext
        ansi = place.session.conf.get("spark.sql.ansi.enabled")
        return place.session.catalog.listTables(), context._jsc.getPersistentRDDs().size(), ansi

    failing = place.frame("orders").where("CAST(item AS INT) > 1")
    yield Own(place.frame("orders"), slow, failing, state)


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
@pytest.mark.slow
@pytest.mark.parametrize("domain", [GOODS, dps.UNKNOWN], ids=["list", "unknown"])
def test_nothing_temporary_outlives_an_error_or_an_interrupt(own: Own, domain: Any, tmp_path: Path) -> None:
    asked: dict[str, Any] = {"item": "item", "person": "person", "domain": domain, "max_items_per_person": 2, "seed": 1}
    named = {**asked, "k": 2, "epsilon": 1.0, "delta": 0.01}
    before = own.state()
    dps.top(own.table, **named)
    assert own.state() == before
    dps.top(own.table, where="CAST(item AS INT) > 1", **named)
    assert own.state() == before
    with pytest.raises(dps.SourceError):
        dps.top(own.failing, where="CAST(item AS INT) > 1", **named)
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
