"""What goes wrong with a server: told plainly, paid for only if recorded, and never answered in part."""

from __future__ import annotations

import contextlib
import logging
import os
import re
import signal
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from engine_cases import BUYERS, GOODS
from engine_places import PostgreSqlDatabase, rows_fetched, rows_of

import dpselect as dps

pytestmark = pytest.mark.slow

SECRET = "pass word/7&"
OF_MANY: dict[str, Any] = {"domain": 10**12, "max_items_per_person": 5, "delta": 1e-6}
FAILING = "CREATE VIEW failing AS SELECT * FROM orders WHERE 1 / (year - 2023) > 0"
READER_URL = f"postgresql://reader:{quote(SECRET, safe='')}@"


@dataclass(frozen=True)
class Shop:
    """A database with the table orders, its reader who has a password, and a ledger for it."""

    place: PostgreSqlDatabase
    ledger: dps.privacy.Ledger

    @property
    def url(self) -> str:
        return self.place.url.replace("postgresql://postgres:@", READER_URL)

    def execute(self, *statements: str) -> None:
        with self.place.connect() as connection:
            for statement in statements:
                connection.execute(statement)

    def ask(self, **options: Any) -> dps.Release:
        arguments = {"item": "item", "person": "person", "k": 2, "epsilon": 1.0, "domain": GOODS, "seed": 1, **options}
        table = arguments.pop("table", self.url)
        return dps.top(table, **{"table_name": "orders", "ledger": self.ledger, "dataset": "shop", **arguments})

    def spent(self) -> int:
        """Return how many releases were recorded; each costs 1."""
        entries = self.ledger.entries("shop")
        assert not any(word in repr(entry) for entry in entries for word in forbidden())
        return len(entries)


def forbidden() -> list[str]:
    """Return what may be shown nowhere: the password in every spelling, and the items of the rows."""
    return [SECRET, quote(SECRET), quote(SECRET, safe=""), "reader:"]


@pytest.fixture
def shop(fresh_database: PostgreSqlDatabase, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> Iterator[Shop]:
    """Yield a shop, and see at the end that nothing is left, written or told."""
    caplog.set_level(logging.DEBUG)
    fresh_database.put("orders", BUYERS)
    with dps.privacy.Ledger(tmp_path / "budget.sqlite") as ledger:
        ledger.create("shop", epsilon=99.0, delta=0.01)
        one = Shop(fresh_database, ledger)
        one.execute(
            "DROP ROLE IF EXISTS reader",
            f"CREATE ROLE reader LOGIN PASSWORD '{SECRET}'",
            "GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader",
            "ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO reader",
        )
        before = fresh_database.relations()
        yield one
        gone = wait_until(lambda: fresh_database.visitors() == 0)
        assert gone, "a connection was left open"
        left = [name for name in fresh_database.relations() if name not in before]
        assert left in ([], ["slow"], ["strange"])
        one.execute("DROP OWNED BY reader", "DROP ROLE reader")
    assert not any(word in caplog.text for word in forbidden())


def wait_until(holds: Callable[[], bool], seconds: float = 20) -> bool:
    """Wait for something that another process does."""
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def told(work: Callable[[], object], kind: type[dps.DpSelectError] = dps.errors.SourceError) -> str:
    """Return the message of an error that keeps everything else to itself."""
    with pytest.raises(kind) as caught:
        work()
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    message = str(caught.value)
    shown = message + repr(caught.value)
    assert not any(word in shown for word in forbidden())
    assert not re.search(rf"\b({'|'.join([*GOODS, 'ann', 'bob'])})\b", shown)
    return message


@contextlib.contextmanager
def once_it_sleeps(shop: Shop, action: Callable[[int], None]) -> Iterator[None]:
    """Make the view slow, whose query sleeps, and act on the server process that runs it."""
    shop.execute("CREATE VIEW slow AS SELECT orders.* FROM orders, pg_sleep(60)")
    asleep = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'PgSleep'"
    done = threading.Event()

    def watch() -> None:
        with shop.place.connect() as connection:
            while not done.is_set():
                found = connection.execute(asleep).fetchone()
                if found:
                    action(found[0])
                    return
                time.sleep(0.02)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()


class Meanwhile(dps.Canonical):
    """The canonical mechanism, with something happening between the two queries."""

    def __init__(self, action: Callable[[], object]) -> None:
        super().__init__(k=2, epsilon=1.0)
        object.__setattr__(self, "_action", action)

    def draw(self, *arguments: Any) -> Any:
        self._action()  # type: ignore[attr-defined]
        return super().draw(*arguments)


def between(shop: Shop, action: Callable[[], object]) -> dps.Release:
    """Ask with something happening between the two queries."""
    return shop.ask(mechanism=Meanwhile(action), k=None, epsilon=None)


def test_all_is_well(shop: Shop) -> None:
    assert shop.ask().items == shop.ask(table=BUYERS, table_name=None).items
    assert shop.spent() == 2


def test_a_connection_that_is_lost_in_the_first_query(shop: Shop) -> None:
    def terminate(process: int) -> None:
        shop.execute(f"SELECT pg_terminate_backend({process})")

    with once_it_sleeps(shop, terminate):
        assert "connection" in told(lambda: shop.ask(table_name="slow"))
    assert shop.spent() == 1


def test_a_connection_that_is_lost_between_the_queries(shop: Shop) -> None:
    def terminate() -> None:
        shop.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND usename = 'reader'"
        )
        assert wait_until(lambda: shop.place.visitors() == 0)

    assert "connection" in told(lambda: between(shop, terminate))
    assert shop.spent() == 1


def test_a_query_that_is_cancelled_from_outside(shop: Shop) -> None:
    with once_it_sleeps(shop, lambda process: shop.execute(f"SELECT pg_cancel_backend({process})")):
        told(lambda: shop.ask(table_name="slow"))
    assert shop.spent() == 1


def test_a_statement_that_takes_longer_than_the_account_may(shop: Shop) -> None:
    shop.execute("CREATE VIEW slow AS SELECT orders.* FROM orders, pg_sleep(60)")
    shop.execute("ALTER ROLE reader SET statement_timeout = 300")
    assert "time" in told(lambda: shop.ask(table_name="slow"))
    assert shop.spent() == 1


def test_an_interrupt_stops_the_query_on_the_server(shop: Shop) -> None:
    with once_it_sleeps(shop, lambda process: os.kill(os.getpid(), signal.SIGINT)), pytest.raises(KeyboardInterrupt):
        shop.ask(table_name="slow")
    assert wait_until(lambda: shop.place.visitors() == 0)
    assert shop.spent() == 1


def test_an_interrupt_between_the_queries_leaves_nothing(shop: Shop) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        between(shop, interrupt)
    assert shop.spent() == 1


CHANGES = {
    "dropped": ["DROP TABLE orders"],
    "emptied": ["DELETE FROM orders"],
    "filled": ["INSERT INTO orders (item, person) SELECT 'fig', 'person ' || n FROM generate_series(1, 50) AS n"],
    "renamed": ["UPDATE orders SET item = 'no ' || item"],
    "of another type": ["ALTER TABLE orders ALTER COLUMN person TYPE bytea USING person::bytea"],
}


@pytest.mark.parametrize(
    ("change", "temporary"),
    [("dropped", True), ("renamed", True), ("emptied", False), ("filled", False), ("of another type", False)],
    ids=lambda given: given if isinstance(given, str) else "may keep" if given else "may not keep",
)
def test_a_table_that_changes_between_the_queries_does_not_change_the_answer(
    shop: Shop, change: str, temporary: bool
) -> None:
    if not temporary:
        shop.execute(f"REVOKE TEMP ON DATABASE {shop.place.database} FROM PUBLIC")

    def act() -> None:
        import psycopg

        with shop.place.connect(options="-clock_timeout=300") as connection:
            for statement in CHANGES[change]:
                # What the release still reads, the server does not let anybody drop.
                with contextlib.suppress(psycopg.errors.LockNotAvailable):
                    connection.execute(statement)

    expected = shop.ask(mechanism=dps.Canonical(k=2, epsilon=1.0), k=None, epsilon=None).items
    assert between(shop, act).items == expected
    assert shop.spent() == 2


def test_an_account_that_may_keep_nothing_computes_anew_and_says_so(
    shop: Shop, caplog: pytest.LogCaptureFixture, recwarn: pytest.WarningsRecorder
) -> None:
    expected = shop.ask().items
    assert "temporary" not in caplog.text
    shop.execute(f"REVOKE TEMP ON DATABASE {shop.place.database} FROM PUBLIC")
    with rows_fetched() as counted:
        assert shop.ask().items == expected
    assert 0 < sum(counted) <= 4 + 2 + 2
    assert "temporary" in caplog.text
    assert not recwarn.list
    for options in (
        {"value": "paid", "clip": (0, 5)},
        {"max_items_per_person": 1},
        OF_MANY,
        {"weight": "share"},
    ):
        assert shop.ask(**options).items == shop.ask(table=BUYERS, table_name=None, **options).items


def test_a_table_that_the_account_may_not_read(shop: Shop) -> None:
    shop.execute("REVOKE SELECT ON orders FROM reader")
    assert "GRANT SELECT" in told(shop.ask, dps.DpSelectError) or shop.spent() == 0


def test_one_column_that_the_account_may_not_read(shop: Shop) -> None:
    shop.execute("REVOKE SELECT ON orders FROM reader", "GRANT SELECT (item, person, year) ON orders TO reader")
    assert len(shop.ask().items) == 2
    told(lambda: shop.ask(value="paid", clip=(0, 1)), dps.DpSelectError)
    assert shop.spent() <= 2


def test_a_row_that_the_server_cannot_convert(shop: Shop) -> None:
    shop.execute("CREATE VIEW strange AS SELECT item::integer AS item, person FROM orders")
    told(lambda: shop.ask(table_name="strange", **OF_MANY))
    assert shop.spent() == 1


def test_a_view_that_fails_on_one_row(shop: Shop) -> None:
    shop.execute(FAILING)
    told(lambda: shop.ask(table_name="failing"))
    assert shop.spent() == 1
    shop.execute("DROP VIEW failing")


def test_a_row_on_which_a_filter_fails_is_left_out(shop: Shop) -> None:
    """Were it the server's to say, 2023 would stop it with a division by zero."""
    others = shop.ask(where="year <> 2023").items
    assert shop.ask(where="1 / (year - 2023) > 0").items == others
    assert shop.ask(where="CAST(item AS integer) IS NULL OR year > 0").k == 2


def test_without_temporary_objects_a_filter_that_may_fail_is_refused(shop: Shop) -> None:
    shop.execute(f"REVOKE TEMP ON DATABASE {shop.place.database} FROM PUBLIC")
    assert "compare columns with constants" in told(lambda: shop.ask(where="1 / (year - 2023) > 0"), dps.InvalidInput)
    assert shop.spent() == 0
    assert shop.ask(where="year <> 2023 AND NOT (item IN ('ham', 'tea') OR item > 'j')").k == 2


def test_the_least_number_has_no_negative_and_is_left_out(shop: Shop) -> None:
    shop.execute(
        "CREATE TABLE strange (item text, person int, amount int, found int)",
        "INSERT INTO strange SELECT 'ham', i, 7, 4 FROM generate_series(1, 99) AS i",
        "INSERT INTO strange VALUES ('tea', 1, -2147483648, 0)",
        "GRANT SELECT ON strange TO reader",
    )
    for where in ("-amount > -9", "found / 1 > 3", "FOUND / 1 > 3"):
        assert shop.ask(table_name="strange", k=1, where=where, epsilon=20.0).items == ["ham"]
    for hidden in ("ctid = '(0,1)'", "xmin IS NOT NULL"):
        assert "no such column" in told(
            lambda where=hidden: shop.ask(table_name="strange", where=where), dps.InvalidInput
        )
    shop.execute("DROP TABLE strange")


def test_filters_in_the_words_of_postgresql(shop: Shop) -> None:
    shop.execute(
        "CREATE TABLE strange (item text, person int, payload jsonb, name text)",
        "INSERT INTO strange SELECT 'ham', i, '{\"kind\": \"a\"}', 'x\\' FROM generate_series(1, 99) AS i",
        "INSERT INTO strange SELECT 'tea', i, '{\"kind\": \"b\"}', '\\' FROM generate_series(1, 150) AS i",
        "GRANT SELECT ON strange TO reader",
    )
    for where in ("payload ->> 'kind' = 'a'", r"name = E'x\\'", r"name <> E'\\'"):
        assert shop.ask(table_name="strange", k=1, where=where).items == ["ham"]
    shop.execute("DROP TABLE strange")


def test_a_list_of_items_that_the_column_cannot_hold(shop: Shop) -> None:
    told(lambda: shop.ask(item="year"), dps.InvalidInput)
    assert shop.spent() == 0


def test_a_wrong_password(shop: Shop) -> None:
    with shop.place.connect() as connection:
        rules = Path(connection.execute("SHOW hba_file").fetchone()[0])
    before = rules.read_text()
    rules.write_text("local all reader scram-sha-256\n" + before)
    try:
        shop.execute("SELECT pg_reload_conf()")
        # The server reads its rules again when it gets to it.
        wrong = shop.url.replace(quote(SECRET, safe=""), "Wrong1234")
        assert wait_until(lambda: not connects(wrong))
        message = told(lambda: shop.ask(table=wrong), dps.DpSelectError)
        assert "password" in message
        assert "Wrong1234" not in message
        assert shop.spent() == 0
        assert len(shop.ask().items) == 2
    finally:
        rules.write_text(before)
        shop.execute("SELECT pg_reload_conf()")


def connects(url: str) -> bool:
    import psycopg

    try:
        psycopg.connect(url).close()
    except psycopg.OperationalError:
        return False
    return True


def test_a_server_that_is_not_there(shop: Shop) -> None:
    for host in ("127.0.0.1:1", "no-such-host.invalid:5432"):
        url = f"{READER_URL}{host}/shop?connect_timeout=3"
        assert "connect" in told(lambda url=url: shop.ask(table=url), dps.DpSelectError)
    assert shop.spent() == 0


def test_a_database_that_is_not_there(shop: Shop) -> None:
    told(lambda: shop.ask(table=shop.url.replace("/shop_", "/nothing_")), dps.DpSelectError)
    assert shop.spent() == 0


def test_tables_of_a_schema(shop: Shop) -> None:
    shop.execute("CREATE SCHEMA old", "GRANT USAGE ON SCHEMA old TO reader", "CREATE TABLE old.orders AS TABLE orders")
    shop.execute("GRANT SELECT ON old.orders TO reader", "DELETE FROM orders")
    assert shop.ask(table_name="old.orders").items == shop.ask(table=BUYERS, table_name=None).items
    shop.execute("DROP SCHEMA old CASCADE")


def test_a_connection_that_was_passed_stays_open_and_as_it_was(shop: Shop) -> None:
    import ibis

    backend = ibis.postgres.from_connection(shop.place.connect())
    settings = backend.con.info.transaction_status, backend.con.autocommit, backend.con.isolation_level
    table = backend.table("orders")
    expected = shop.ask().items
    assert shop.ask(table=table, table_name=None).items == expected
    goods = rows_of(item=GOODS)
    shop.place.put("goods", goods)
    assert set(shop.ask(table=table, table_name=None, domain=backend.table("goods")).items) <= set(GOODS)
    shop.execute(FAILING)
    told(lambda: shop.ask(table=backend.table("failing"), table_name=None, where="1 / (year - 2023) > 0"))
    shop.execute("DROP VIEW failing")
    assert (backend.con.info.transaction_status, backend.con.autocommit, backend.con.isolation_level) == settings
    assert backend.con.execute("SELECT count(*) FROM orders").fetchone()[0] == BUYERS.num_rows
    assert backend.con.execute("SELECT count(*) FROM pg_class WHERE relpersistence = 't'").fetchone()[0] == 0
    backend.disconnect()
    shop.execute("DROP TABLE goods")
