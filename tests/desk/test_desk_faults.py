"""Servers that are killed at any moment: no answer without a record, one charge and one answer for each key."""

from __future__ import annotations

import json
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psutil
import pytest
from desk_faults import COST, QUESTION, Race, two_servers, verdict
from desks import RunningDesk, running, token_for, write_config

from dpselect.ledger import Ledger
from servers import fresh_database

pytestmark = pytest.mark.slow


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a ledger can be made: a file, or an empty database on the server."""
    if request.param == "sqlite":
        return str(tmp_path / "ledger.sqlite")
    return fresh_database(request.getfixturevalue("postgresql_server"))


def race(folder: Path, place: str, *, kills: int, is_hasty: bool = False) -> Counter[str]:
    """Let clients ask two servers with one ledger, which are killed so often; return figures if all is right."""
    config = write_config(folder, ledger=place, epsilon=1000.0, analysts={"ann": 1000.0})
    with two_servers(config, is_hasty=is_hasty) as servers:
        found = Race(config, servers)
        found.run(kills, seed=2026)
        if not is_hasty:
            found.ask_again()
        figures = verdict(found)
    print(dict(figures))
    assert figures["kills"] >= kills
    return figures


def test_every_key_is_charged_and_answered_once_however_servers_are_killed(place: str, tmp_path: Path) -> None:
    assert race(tmp_path, place, kills=6)["cut"] > 0


@pytest.mark.long
@pytest.mark.xdist_group("crowds")  # two hundred processes take 18 GiB: one such test at a time
def test_every_key_is_charged_and_answered_once_in_a_hundred_kills(place: str, tmp_path: Path) -> None:
    """Once for each kind of ledger: two hundred together."""
    figures = race(tmp_path, place, kills=100)
    assert figures["left_open"] > 0, "no kill hit the time between charge and answer, so nothing was tested"


def test_a_server_that_answers_before_it_records_is_noticed(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match=r"without a record|two answers|not that of the records"):
        race(tmp_path, str(tmp_path / "ledger.sqlite"), kills=6, is_hasty=True)


def test_fifty_clients_of_two_servers_use_up_one_budget_and_no_more(place: str, tmp_path: Path) -> None:
    config = write_config(tmp_path, ledger=place, epsilon=30 * COST)
    with two_servers(config) as servers, ThreadPoolExecutor(50) as clients:
        token = token_for(config)
        told = list(clients.map(lambda n: servers[n % 2].ask("views", token, QUESTION, str(n)), range(50)))
    assert Counter(status for status, _ in told) == {201: 30, 409: 20}
    refusals = [content["error"] for status, content in told if status == 409]
    assert {(error["code"], error["remaining"]) for error in refusals} == {("budget-exceeded", 0.0)}
    with Ledger(place) as ledger:
        assert ledger.spent("views").epsilon == 30 * COST
        assert ledger.remaining("views").epsilon == 0
        assert ledger.check() == []


def test_of_two_analysts_who_ask_for_the_last_of_a_budget_one_gets_it(place: str, tmp_path: Path) -> None:
    """The other one is refused and keeps a budget of their own; asking again under the same key changes nothing."""
    rounds = [f"views{number}" for number in range(3)]
    config = write_config(tmp_path, ledger=place, epsilon=1.0, analysts={"ann": 1.0, "bob": 1.0})
    head, section = config.read_text().split("[datasets.views]")
    for name in rounds:
        shutil.copy(tmp_path / "views.csv", tmp_path / f"{name}.csv")
        head += f"[datasets.{name}]" + section.replace("views.csv", f"{name}.csv")
    config.write_text(head)
    question = {**QUESTION, "epsilon": 0.75}
    with two_servers(config) as servers, ThreadPoolExecutor(2) as clients:
        tokens = {analyst: token_for(config, analyst) for analyst in ("ann", "bob")}
        for name in rounds:

            def ask(analyst: str, name: str = name) -> tuple[int, Any]:
                return servers[analyst == "bob"].ask(name, tokens[analyst], question, "key")

            told = dict(zip(tokens, clients.map(ask, tokens), strict=True))
            assert sorted(status for status, _ in told.values()) == [201, 409]
            with Ledger(place) as ledger:
                assert ledger.spent(name).epsilon == 0.75
                for analyst, (status, content) in told.items():
                    assert ledger.spent(f"{name}/{analyst}").epsilon == (0.75 if status == 201 else 0)
                    assert ask(analyst) == (200 if status == 201 else 409, content)
    with Ledger(place) as ledger:
        assert ledger.check() == []


def test_a_server_that_is_told_to_stop_finishes_what_was_asked_and_takes_nothing_new(tmp_path: Path) -> None:
    config = write_config(tmp_path, answer_after=3.0)
    with running(tmp_path, "--config", str(config)) as desk, ThreadPoolExecutor(3) as clients:
        assert desk.process is not None
        idle = HTTPConnection(urlsplit(desk.url).netloc, timeout=60)
        idle.request("GET", "/healthz")
        idle.getresponse().read()
        asked = [clients.submit(desk.release, QUESTION, str(number)) for number in range(3)]
        with Ledger(tmp_path / "ledger.sqlite") as ledger:
            until(lambda: len(ledger.entries("views")) == 3)
        desk.process.send_signal(signal.SIGTERM)
        until(lambda: refuses(desk))
        until(lambda: is_closed(idle))
        idle.close()
        assert [client.result()[0] for client in asked] == [201, 201, 201]
        assert desk.process.wait(timeout=60) == 0


IMPATIENT = """
from dpselect.desk import serving
serving._PATIENCE = 1
serving.run(config="desk.toml", port=0, ready=lambda address: print(address, flush=True))
"""


def test_a_server_that_is_told_to_stop_does_not_wait_for_an_engine_for_ever(tmp_path: Path) -> None:
    """The condition takes minutes; its client is told, and the same key is charged once."""
    config = write_config(tmp_path, filters={"slow": "length(sha256(repeat(age, 30000000))) > 0"})
    command = [sys.executable, "-c", IMPATIENT]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            desk = RunningDesk(process.stdout.readline().strip(), token_for(config), tmp_path)
            with ThreadPoolExecutor(1) as client, Ledger(tmp_path / "ledger.sqlite") as ledger:
                asked = client.submit(desk.release, {**QUESTION, "filter": "slow"})
                until(lambda: ledger.entries("views"))
                process.send_signal(signal.SIGTERM)
                assert process.wait(timeout=60) == 0
                status, content = asked.result()
        finally:
            process.kill()
    assert (status, content["error"]["code"]) == (503, "stopping")


def test_a_look_alike_that_nobody_waits_for_ends(tmp_path: Path) -> None:
    """Its computation would take minutes; the server goes on to answer meanwhile and afterwards."""
    config = write_config(tmp_path, items={"film": "many.csv"})
    (tmp_path / "many.csv").write_text("film\n" + "".join(f"film {number}\n" for number in range(2_000)))
    question = {**QUESTION, "k": 1000, "epsilon": 1.0, "like": {"counts": list(range(100_000))}}
    with running(tmp_path, "--config", str(config)) as desk:
        assert desk.process is not None
        server = psutil.Process(desk.process.pid)
        connection = HTTPConnection(urlsplit(desk.url).netloc, timeout=60)
        headers = {"Authorization": f"Bearer {desk.token}", "Content-Type": "application/json"}
        connection.request("POST", "/v1/datasets/views/estimate", json.dumps(question), headers)
        until(lambda: [child for child in server.children() if "dpselect.desk.worker" in child.cmdline()])
        (worker,) = server.children()
        assert desk.release()[0] == 201
        assert worker.is_running()
        connection.close()
        until(lambda: not worker.is_running())
        assert desk.release()[0] == 200


def refuses(desk: RunningDesk) -> bool:
    """Whether the server takes no new connection."""
    try:
        socket.create_connection((urlsplit(desk.url).hostname, urlsplit(desk.url).port), timeout=60).close()
    except ConnectionRefusedError:
        return True
    return False


def is_closed(connection: HTTPConnection) -> bool:
    """Whether the server has closed a connection on which nothing is asked."""
    connection.sock.settimeout(60)
    return connection.sock.recv(1) == b""


def until(holds: Callable[[], object]) -> None:
    """Return once the condition holds; fail if it does not within a minute."""
    for _ in range(3000):
        if holds():
            return
        time.sleep(0.02)
    raise AssertionError("it did not happen within a minute")
