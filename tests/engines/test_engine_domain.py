"""A table of an engine is no public list of its own rows, under whatever name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from engine_cases import BUYERS
from engine_places import PostgreSqlDatabase, SparkSession

import dpselect as dps
from dpselect.ranking import rank

ASKED: dict[str, Any] = {"item": "item", "person": "person", "k": 1, "epsilon": 1.0, "seed": 1}
pytestmark = pytest.mark.slow

REFUSED = "it is the table of private rows or a part of it"


def test_a_postgresql_table_is_no_public_list_under_any_of_its_names(fresh_database: PostgreSqlDatabase) -> None:
    import ibis

    fresh_database.put("orders", BUYERS)
    with fresh_database.connect() as connection:
        connection.execute('CREATE SCHEMA "Shop"')
        connection.execute('CREATE TABLE "Shop".orders AS SELECT DISTINCT item FROM orders')
        connection.execute('CREATE TABLE "Orders" AS SELECT DISTINCT item FROM orders')
    url = fresh_database.url
    for rows in ("orders", "public.orders"):
        for name in ("orders", "public.orders", '"public"."orders"'):
            with pytest.raises(dps.InvalidInput, match=REFUSED):
                dps.top(url, table_name=rows, domain=f"table:{name}", **ASKED)
        for name in ("Shop.orders", "Orders", "public.Orders"):
            assert dps.top(url, table_name=rows, domain=f"table:{name}", **ASKED).k == 1
    with fresh_database.connect() as connection:
        connection.execute(f'ALTER DATABASE {fresh_database.database} SET search_path = "Shop", public')
    assert dps.top(url, table_name="public.orders", domain="table:orders", **ASKED).k == 1
    with fresh_database.connect() as connection:
        backend = ibis.postgres.from_connection(connection)
        table = backend.table("orders", database="public")
        for domain in (table, table.item, table.select("item").distinct(), "table:public.orders"):
            with pytest.raises(dps.InvalidInput, match=REFUSED):
                dps.top(table.filter(table.item.notnull()), domain=domain, **ASKED)
        assert dps.top(table, domain=backend.table("orders", database="Shop"), **ASKED).k == 1


def test_a_partition_is_no_public_list_of_its_table_nor_the_reverse(fresh_database: PostgreSqlDatabase) -> None:
    fresh_database.put("bought", BUYERS)
    with fresh_database.connect() as connection:
        connection.execute("CREATE TABLE orders (LIKE bought) PARTITION BY LIST (item)")
        connection.execute("CREATE TABLE first PARTITION OF orders FOR VALUES IN ('ham')")
        connection.execute("CREATE TABLE others PARTITION OF orders DEFAULT")
        connection.execute("INSERT INTO orders SELECT * FROM bought")
    for rows, name in (("orders", "others"), ("others", "orders"), ("orders", "orders"), ("others", "first")):
        with pytest.raises(dps.InvalidInput, match=REFUSED):
            dps.top(fresh_database.url, table_name=rows, domain=f"table:{name}", **ASKED)
    assert dps.top(fresh_database.url, table_name="orders", domain="table:bought", **ASKED).k == 1


def test_a_spark_table_is_no_public_list_under_any_of_its_names(spark_place: SparkSession) -> None:
    spark_place.put("orders", BUYERS)
    spark_place.put("goods", BUYERS.select(["item"]))
    frame, session = spark_place.frame("orders"), spark_place.session
    local = session.createDataFrame([("ham", "ann"), ("jam", "bob")], ["item", "person"])
    path = spark_place.path("orders")
    private: list[tuple[Any, Any]] = [(local, local), (frame, frame), (frame, spark_place.frame("orders"))]
    private += [(frame, frame.select("item").distinct()), (frame, path)]
    private += [(frame, f"table:{name}") for name in ("orders", "ORDERS", path)]
    for table, domain in private:
        with pytest.raises(dps.InvalidInput, match=REFUSED):
            dps.top(table, domain=domain, **ASKED)
    public = [(frame, "table:goods"), (frame, spark_place.frame("goods")), (local, "table:goods")]
    for table, domain in public:
        assert dps.top(table, domain=domain, **ASKED).k == 1
    local.createOrReplaceTempView("kept")
    with pytest.raises(dps.InvalidInput, match=REFUSED):
        dps.top("spark+local://", table_name="kept", domain="table:KEPT", **ASKED)
    with pytest.raises(dps.InvalidInput, match=REFUSED):
        rank(local, winner="item", loser="person", domain=local, k=1, epsilon=1.0, comparisons_per_pair=1, max_degree=1)


def test_spark_reads_a_path_that_is_no_public_list(spark_place: SparkSession) -> None:
    spark_place.put("orders", BUYERS)
    path = spark_place.path("orders")
    for name in (path, f"file://{path}", f"{Path(path).parent}/*.parquet", str(Path(path).parent)):
        for domain in (path, f"table:{path}", f"table:file:{path}"):
            with pytest.raises(dps.InvalidInput, match=REFUSED):
                dps.top("spark+local://", table_name=name, domain=domain, **ASKED)
