"""A shared desk on SQLite and PostgreSQL ledgers, and on sources in files, DuckDB, PostgreSQL and Spark."""

from __future__ import annotations

import csv
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.csv
import pyarrow.parquet
import pytest
from desks import COUNTRIES, FILMS, PRIVATE, QUESTION, RunningDesk, running, served, token_for, write_config, write_data

from dpselect.desk import SharedDesk, read_config
from dpselect.desk.door import Caller
from dpselect.ledger import Ledger
from servers import BRIEF_JAVA, fresh_database

pytestmark = pytest.mark.slow

ESTIMATE, RELEASES = "/v1/datasets/views/estimate", "/v1/datasets/views/releases"


def in_duckdb(folder: Path) -> dict[str, Any]:
    """Put the rows and the lists into a DuckDB file; return the keys of the data set."""
    write_data(folder)
    with duckdb.connect(folder / "rows.duckdb") as connection:
        for name in ("views", "films", "countries"):
            connection.execute(f"CREATE TABLE {name} AS SELECT * FROM read_csv('{folder / name}.csv')")
    return {"source": "duckdb://rows.duckdb", "table": "views", "filters": {"adults": "age >= 18"}}


def in_postgresql(folder: Path, server: str) -> dict[str, Any]:
    """Put the rows and the lists into a schema of their own; return the keys of the data set."""
    import psycopg

    write_data(folder)
    url = fresh_database(server).replace("postgresql+psycopg://", "postgresql://")
    with psycopg.connect(url) as connection:
        connection.execute("CREATE TABLE views (film text, viewer text, age int, country text, day date)")
        connection.execute("CREATE TABLE films (film text)")
        connection.execute("CREATE TABLE countries (country text)")
        for name in ("views", "films", "countries"):
            with (folder / f"{name}.csv").open() as file, connection.cursor() as cursor:
                cursor.executemany(
                    f"INSERT INTO {name} VALUES ({', '.join(['%s'] * (5 if name == 'views' else 1))})",
                    list(csv.reader(file))[1:],
                )
    return {"source": url, "table": "views", "filters": {"adults": "age >= 18"}}


def answers_as_it_should(desk: RunningDesk) -> None:
    """Ask for everything once; nothing private leaves, and no budget is exceeded."""
    told = [desk.send("GET", "/v1/datasets")[2], desk.send("POST", ESTIMATE, QUESTION)[2]]
    assert told[0][0]["domain_size"] == {"film": len(FILMS)}
    for key, change in {"all": {}, "adults": {"filter": "adults"}, "countries": {"by": "country"}}.items():
        status, first = desk.release({**QUESTION, **change}, key=key)
        assert status == 201, first
        assert desk.release({**QUESTION, **change}, key=key) == (200, first)
        told.append(first)
    bob = token_for(desk.folder / "desk.toml", "bob")
    status, error = desk.release({**QUESTION, "epsilon": 0.5}, key="much")
    assert (status, error["error"]["code"]) == (409, "budget-exceeded")
    assert desk.release({**QUESTION, "epsilon": 0.5}, key="bob", token=bob)[0] == 201
    [state] = desk.send("GET", "/v1/datasets")[2]
    assert (state["budget"]["spent"], state["analyst_budget"]["spent"]) == (1.25, 0.75)
    told.append(desk.send("GET", RELEASES)[2])
    assert [entry["key"] for entry in told[-1]] == ["countries", "adults", "all"]
    assert PRIVATE not in json.dumps(told) + "".join(desk.log)


LISTS = {"items": {"film": "table:films"}, "groups": {"country": "table:countries"}}
BUDGETS = {"epsilon": 2.0, "analysts": {"ann": 1.0}}


@pytest.mark.parametrize("lists", [{}, LISTS], ids=["files", "tables"])
def test_rows_in_duckdb(tmp_path: Path, lists: dict[str, Any]) -> None:
    with served(write_config(tmp_path, **{**in_duckdb(tmp_path), **BUDGETS, **lists})) as desk:
        answers_as_it_should(desk)
        assert desk.send("POST", "/v1/datasets/views/preview", {**QUESTION, "by": "country"})[0] == 200
        assert desk.send("GET", "/v1/datasets")[2][0]["questions"]["groups"] == {"country": len(COUNTRIES)}


def test_facts_need_no_engine_after_the_start(tmp_path: Path) -> None:
    place = write_config(tmp_path, **{**in_duckdb(tmp_path), **LISTS})
    desk = SharedDesk(read_config(place))
    desk.check(place)
    for file in tmp_path.glob("*.duckdb"):
        file.unlink()
    [state] = desk.states(Caller("ann", frozenset()))
    assert state.domain_size == {"film": len(FILMS)}


@pytest.mark.parametrize("lists", [{}, LISTS], ids=["files", "tables"])
def test_rows_and_ledger_in_postgresql(tmp_path: Path, postgresql_server: str, lists: dict[str, Any]) -> None:
    settings = {**in_postgresql(tmp_path, postgresql_server), **BUDGETS, **lists}
    ledger = fresh_database(postgresql_server)
    # Two services share the ledger, as two processes would.
    config = write_config(tmp_path, ledger=ledger, **settings)
    with served(config) as desk, served(config) as other:
        answers_as_it_should(desk)
        assert other.send("GET", "/v1/datasets")[2] == desk.send("GET", "/v1/datasets")[2]
        assert other.release(key="all")[0] == 200
        assert other.release({**QUESTION, "k": 4}, key="all")[0] == 409
    with Ledger(ledger) as found:
        assert found.check() == []


def test_a_postgresql_table_that_vanishes_needs_no_row_for_facts(tmp_path: Path, postgresql_server: str) -> None:
    import psycopg

    settings = in_postgresql(tmp_path, postgresql_server)
    with served(write_config(tmp_path, **settings)) as desk:
        before = [desk.send("GET", "/v1/datasets")[2], desk.send("POST", ESTIMATE, QUESTION)[2]]
        with psycopg.connect(settings["source"]) as connection:
            connection.execute("ALTER TABLE views RENAME TO away")
        assert [desk.send("GET", "/v1/datasets")[2], desk.send("POST", ESTIMATE, QUESTION)[2]] == before
        status, error = desk.release()
        assert (status, error["error"]["charged"]) == (503, False)
        with psycopg.connect(settings["source"]) as connection:
            connection.execute("ALTER TABLE away RENAME TO views")
        assert desk.release()[0] == 201


@pytest.mark.long
def test_rows_in_spark_and_releases_that_share_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark is started for the first release, used by those that come meanwhile, and started again for the next."""
    monkeypatch.setenv("JDK_JAVA_OPTIONS", BRIEF_JAVA)
    rows = tmp_path / "views.parquet"
    filters = {"adults": "age >= 18"}
    write_config(tmp_path, source="spark+local://2", table=str(rows), filters=filters)
    pyarrow.parquet.write_table(pyarrow.csv.read_csv(tmp_path / "views.csv"), rows)
    questions = [QUESTION, {**QUESTION, "filter": "adults"}, {**QUESTION, "by": "country"}]
    with running(tmp_path, "--config", "desk.toml") as desk, ThreadPoolExecutor(len(questions)) as clients:
        asked = [
            clients.submit(desk.release, question, key=f"chart-{place}") for place, question in enumerate(questions)
        ]
        answers = [each.result() for each in asked]
        assert [status for status, _ in answers] == [201] * len(questions), desk.log
        assert desk.release(questions[0], key="chart-0") == (200, answers[0][1])
        assert PRIVATE not in json.dumps(answers)
    assert desk.process is not None
    assert desk.process.returncode == 0, desk.log
    assert PRIVATE not in "".join(desk.log)
