"""The same command against a file, a DuckDB file, PostgreSQL and Spark: the same answer, and nothing told beside it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from urllib.parse import quote

import pyarrow.parquet
import pytest
from engine_cases import BUYERS, GOODS
from engine_places import DuckDbFile, PostgreSqlDatabase

import servers
from dpselect.privacy import Ledger

pytestmark = pytest.mark.slow

COMMAND = Path(sys.executable).with_name("dpselect")
SECRET = "pass word/7&"
COLUMNS = ["--item", "item", "--person", "person", "-k", "2", "--epsilon", "0.5", "--seed", "7"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with orders.parquet and goods.csv, in which commands run."""
    pyarrow.parquet.write_table(BUYERS, tmp_path / "orders.parquet")
    (tmp_path / "goods.csv").write_text("item\n" + "".join(f"{item}\n" for item in GOODS))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")
    return tmp_path


def run(source: str, *options: str, domain: str = "goods.csv", **environment: str) -> subprocess.CompletedProcess[str]:
    line = [COMMAND, "top", source, *COLUMNS, "--domain", domain, "--format", "json", *options]
    return subprocess.run(
        line, capture_output=True, text=True, check=False, timeout=200, env={**os.environ, **environment}
    )


def put(place: DuckDbFile | PostgreSqlDatabase) -> None:
    import pyarrow

    place.put("orders", BUYERS)
    place.put("goods", pyarrow.table({"item": GOODS}))


KINDS = {
    "people": [],
    "values": ["--value", "paid", "--clip", "-2", "5"],
    "weights, a filter and few items": ["--weight", "share", "--where", "year >= 2023", "--max-items-per-person", "2"],
}


@pytest.mark.parametrize(
    "kind", ["people", pytest.param("values", marks=pytest.mark.long), "weights, a filter and few items"]
)
def test_the_same_command_answers_the_same_from_a_file_and_from_servers(
    folder: Path, postgresql_place: PostgreSqlDatabase, kind: str
) -> None:
    put(file := DuckDbFile(folder))
    put(postgresql_place)
    expected = run("orders.parquet", *KINDS[kind])
    assert expected.returncode == 0, expected.stderr
    for url in (f"duckdb://{file.file}", postgresql_place.url):
        for domain in ("goods.csv", "table:goods"):
            finished = run(url, "--table", "orders", *KINDS[kind], domain=domain)
            assert finished.returncode == 0, finished.stderr
            assert json.loads(finished.stdout) == json.loads(expected.stdout)


@pytest.mark.long
def test_the_same_command_answers_the_same_from_spark(folder: Path) -> None:
    """Spark starts afresh for each command, so that one with everything in it has to do."""
    options = [*KINDS["values"], *KINDS["weights, a filter and few items"]]
    expected = run("orders.parquet", *options)
    table = ["--table", str(folder / "orders.parquet")]
    finished = run("spark+local://2", *table, *options, JDK_JAVA_OPTIONS=servers.BRIEF_JAVA)
    assert finished.returncode == 0, finished.stderr
    assert json.loads(finished.stdout) == json.loads(expected.stdout)
    assert "Traceback" not in finished.stderr
    assert "WARN" not in finished.stderr
    assert "Stage" not in finished.stderr
    assert sorted(path.name for path in folder.iterdir()) == ["goods.csv", "orders.parquet"]


SCORED = [[], ["--value", "year", "--clip", "0", "2500", "--max-items-per-person", "2"]]


def forecast(source: str, *options: str, **environment: str) -> str:
    asked = ["--item", "item", "--person", "person", "-k", "2", "--epsilon", "0.5", "--draws", "0", "--format", "json"]
    line = [COMMAND, "forecast", source, *asked, "--where", "year >= 2023", *options]
    finished = subprocess.run(line, capture_output=True, text=True, timeout=200, env={**os.environ, **environment})
    assert finished.returncode == 0, finished.stderr
    assert "not private" in finished.stderr
    return finished.stdout


def test_a_forecast_is_the_same_from_a_file_and_from_servers(
    folder: Path, postgresql_place: PostgreSqlDatabase
) -> None:
    put(file := DuckDbFile(folder))
    put(postgresql_place)
    for scored in SCORED:
        expected = forecast("orders.parquet", "--domain", "goods.csv", *scored)
        for url in (f"duckdb://{file.file}", postgresql_place.url):
            for domain in ("goods.csv", "table:goods"):
                assert forecast(url, "--table", "orders", "--domain", domain, *scored) == expected


@pytest.mark.long
def test_a_forecast_is_the_same_from_spark(folder: Path) -> None:
    table = ["--table", str(folder / "orders.parquet"), "--domain", "goods.csv"]
    for scored in SCORED[1:]:
        found = forecast("spark+local://2", *table, *scored, JDK_JAVA_OPTIONS=servers.BRIEF_JAVA)
        assert found == forecast("orders.parquet", "--domain", "goods.csv", *scored)


def test_a_password_may_come_from_the_environment_and_is_shown_nowhere(
    folder: Path, postgresql_place: PostgreSqlDatabase
) -> None:
    put(postgresql_place)
    with postgresql_place.connect() as connection:
        connection.execute("CREATE OR REPLACE VIEW failing AS SELECT * FROM orders WHERE 1 / (year - 2023) > 0")
    with Ledger(folder / "budget.sqlite") as ledger:
        ledger.create("shop", epsilon=9.0)
    spending = ["--ledger", "budget.sqlite", "--dataset", "shop"]
    quoted = quote(SECRET, safe="")
    url = postgresql_place.url.replace("postgres:@", f"postgres:{quoted}@")
    runs = [
        run(url, "--table", "orders", *spending),
        run(postgresql_place.url, "--table", "orders", *spending, PGPASSWORD=SECRET),
        run(url, "--table", "nothing", *spending),
        run(url, "--table", "failing", *spending),
        run(url, *spending),
        run(f"postgresql://reader:{quoted}@127.0.0.1:1/shop", "--table", "orders", *spending),
        run(f"mysql://reader:{quoted}@127.0.0.1:1/shop", "--table", "orders", *spending),
        run(f"postgresql://reader:{quoted}@127.0.0.1:port/shop", "--table", "orders", *spending),
        run(f"postgresql:/reader:{quoted}@127.0.0.1/shop", "--table", "orders", *spending),
    ]
    with postgresql_place.connect() as connection:
        connection.execute("DROP VIEW failing")
    assert [finished.returncode for finished in runs] == [0, 0, 2, 2, 2, 2, 2, 2, 2]
    for finished in runs:
        told = finished.stdout + finished.stderr
        assert not any(word in told for word in (SECRET, quote(SECRET), quoted, "Traceback"))
    with Ledger(folder / "budget.sqlite") as ledger:
        entries = ledger.entries("shop")
    assert len(entries) == 3
    assert SECRET not in repr(entries)
    assert quoted not in repr(entries)
    assert not any(word.encode() in (folder / "budget.sqlite").read_bytes() for word in (SECRET, quoted))


def test_an_account_that_may_keep_nothing_is_told_on_standard_error(
    folder: Path, fresh_database: PostgreSqlDatabase
) -> None:
    put(fresh_database)
    with fresh_database.connect() as connection:
        connection.execute("DROP ROLE IF EXISTS viewer")
        connection.execute("CREATE ROLE viewer LOGIN")
        connection.execute("GRANT SELECT ON orders TO viewer")
        connection.execute(f"REVOKE TEMP ON DATABASE {fresh_database.database} FROM PUBLIC")
    finished = run(fresh_database.url.replace("postgres:@", "viewer:@"), "--table", "orders")
    with fresh_database.connect() as connection:
        connection.execute("DROP OWNED BY viewer")
        connection.execute("DROP ROLE viewer")
    assert finished.returncode == 0, finished.stderr
    assert "may not make temporary tables" in finished.stderr
    assert json.loads(finished.stdout) == json.loads(run("orders.parquet").stdout)
