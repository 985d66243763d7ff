"""Unknown domains in every engine: pool + 1 rows cross the wire, and the answers are the same for the same seed."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from typing import Any

import pytest
from engine_places import Place, PostgreSqlDatabase, rows_fetched, rows_of

import dpselect as dps

pytestmark = pytest.mark.slow

COUNTS = {"weather": 300, "news": 250, "football": 200} | {f"tied {number}": 20 for number in range(30)}
ROWS = rows_of(
    item=[item for item, count in COUNTS.items() for _ in range(count)] + [f"rare {number}" for number in range(400)],
    person=[person for count in COUNTS.values() for person in range(count)] + list(range(400)),
)


def ask(source: dict[str, Any], **options: Any) -> dps.Release:
    arguments = {"item": "item", "person": "person", "k": 5, "epsilon": 4.0, "delta": 1e-3, "domain": dps.UNKNOWN}
    arguments |= {**source, **options}
    return dps.top(arguments.pop("table"), **arguments)


def test_every_engine_gives_the_pool_in_the_same_order(place: Place) -> None:
    """Ties at the edge of the pool go by a hash of the text, so a seed leads to the same items everywhere."""
    place.put("queries", ROWS)
    source, embedded = place.source("queries"), {"table": ROWS}
    for seed in range(3):
        release = ask(source, seed=seed)
        assert release.to_dict() == ask(embedded, seed=seed).to_dict()
        assert release.items[:3] == ["weather", "news", "football"]
    limited = {"mechanism": "limited", "epsilon": 40.0, "delta": 0.5, "pool": 12, "k": 12, "seed": 5}
    assert ask(source, **limited).items == ask(embedded, **limited).items


def test_the_pool_and_one_more_row_cross_the_wire(place: Place) -> None:
    place.put("queries", ROWS)
    with rows_fetched() as counted:
        ask(place.source("queries"), pool=20)
    assert 0 < sum(counted) <= 21


def test_a_table_without_rows_is_answered_with_nothing(place: Place) -> None:
    place.put("queries", ROWS.slice(0, 0))
    release = ask(place.source("queries"))
    assert release.items == []
    assert release.stopped


@pytest.fixture
def reader(fresh_database: PostgreSqlDatabase) -> Iterator[PostgreSqlDatabase]:
    """Yield a database with an account that may read and no more."""
    fresh_database.put("queries", ROWS)
    with fresh_database.connect() as connection:
        connection.execute("DROP ROLE IF EXISTS asker")
        connection.execute("CREATE ROLE asker LOGIN")
        connection.execute("GRANT SELECT ON queries TO asker")
        yield fresh_database
        connection.execute("DROP OWNED BY asker")
        connection.execute("DROP ROLE asker")


def times_read(database: PostgreSqlDatabase, **options: Any) -> float:
    """Return how often the server read the table for one release; it counts when the connection has ended."""
    query = "SELECT seq_tup_read FROM pg_stat_user_tables WHERE relname = 'queries'"
    visitors = database.visitors()
    with database.connect() as connection:
        before = connection.execute(query).fetchone()[0]
    ask({"table": database.url.replace("postgres:@", "asker:@"), "table_name": "queries"}, **options)
    for _ in range(400):
        if database.visitors() == visitors:
            break
        time.sleep(0.05)
    with database.connect() as connection:
        return float(connection.execute(query).fetchone()[0] - before) / ROWS.num_rows


def test_an_unknown_domain_is_read_once_and_needs_no_temporary_table_in_postgresql(
    reader: PostgreSqlDatabase, caplog: pytest.LogCaptureFixture
) -> None:
    """The server's own count of rows, which for a list shows a second reading where nothing can be kept."""
    caplog.set_level(logging.WARNING)
    listed = {"domain": list(COUNTS), "delta": 0.0, "seed": 1}
    noisy = {"max_items_per_person": 2, "values": 0.5, "mechanism": "restricted"}
    assert [times_read(reader, **options) for options in ({}, noisy, listed)] == [1, 1, 1]
    with reader.connect() as connection:
        connection.execute(f"REVOKE TEMP ON DATABASE {reader.database} FROM PUBLIC")
    assert [times_read(reader, **options) for options in ({}, noisy)] == [1, 1]
    assert caplog.text == ""
    assert times_read(reader, **listed) == 2
    assert "may not make temporary tables" in caplog.text
