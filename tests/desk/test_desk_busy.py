"""Whoever only tries things out does not delay a release, and a computation ends when nobody waits for it."""

from __future__ import annotations

import contextlib
import json
import select
import socket
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from desks import QUESTION, RunningDesk, served, token_for, write_config

from dpselect.desk.datasets import DataSet

ESTIMATE = "/v1/datasets/views/estimate"
PREVIEW = "/v1/datasets/views/preview"
RELEASES = "/v1/datasets/views/releases"


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[RunningDesk]:
    with served(write_config(tmp_path, items={"film": "many.csv"}, epsilon=100.0)) as found:
        yield found


@pytest.fixture(autouse=True)
def many(tmp_path: Path) -> None:
    (tmp_path / "many.csv").write_text("film\n" + "".join(f"Film {number}\n" for number in range(20_000)))


@pytest.mark.parametrize(
    ("path", "name"),
    [(ESTIMATE, "dpselect.desk.app.estimate"), (PREVIEW, "dpselect.desk.datasets.DataSet.generated")],
)
def test_many_estimates_and_previews_do_not_keep_a_release_waiting(
    desk: RunningDesk, monkeypatch: pytest.MonkeyPatch, path: str, name: str
) -> None:
    go_on, started = threading.Event(), threading.Semaphore(0)

    def endless(*arguments: Any) -> Any:
        started.release()
        go_on.wait()
        raise RuntimeError

    monkeypatch.setattr(name, endless)
    threads = [threading.Thread(target=desk.send, args=("POST", path, QUESTION)) for _ in range(50)]
    try:
        for thread in threads:
            thread.start()
        started.acquire()
        for number in range(3):
            assert desk.release(key=f"key-{number}")[0] == 201
        assert desk.send("GET", "/readyz")[0] == 200
    finally:
        go_on.set()
        for thread in threads:
            thread.join()


@pytest.mark.parametrize("call", ["releases", "preview", "estimate"])
def test_a_question_that_takes_long_to_check_keeps_no_other_call_waiting(
    desk: RunningDesk, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    go_on, started, question = threading.Event(), threading.Event(), DataSet.question

    def slow(dataset: DataSet, asked: Any) -> Any:
        started.set()
        assert go_on.wait(timeout=30)  # without room for others, the desk would wait for itself
        return question(dataset, asked)

    monkeypatch.setattr(DataSet, "question", slow)
    asked = {**QUESTION, "like": {"counts": [9.0, 5.0, 3.0, 1.0]}} if call == "estimate" else QUESTION
    with ThreadPoolExecutor(1) as client:
        answer = client.submit(desk.send, "POST", f"/v1/datasets/views/{call}", asked, key="key")
        assert started.wait(timeout=30)
        assert desk.send("GET", "/healthz")[0] == 200
        go_on.set()
        assert answer.result()[0] == (201 if call == "releases" else 200)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["question", "history"])
def test_brief_calls_of_one_analyst_keep_no_other_waiting(
    desk: RunningDesk, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """A question can need a calibration, and a history a long ledger to be read; both cost nothing."""
    go_on, started, method = threading.Event(), threading.Event(), getattr(DataSet, name)

    def slow(dataset: DataSet, asked: Any) -> Any:
        if asked == "ann" or getattr(asked, "k", None) == 2:
            started.set()
            assert go_on.wait(timeout=60)
        return method(dataset, asked)

    monkeypatch.setattr(DataSet, name, slow)
    bob = token_for(desk.folder / "desk.toml", "bob")
    call = ("POST", RELEASES, {**QUESTION, "k": 2}) if name == "question" else ("GET", RELEASES)
    threads = [threading.Thread(target=desk.send, args=call, kwargs={"key": f"{number}"}) for number in range(60)]
    try:
        for thread in threads:
            thread.start()
        assert started.wait(timeout=60)
        with ThreadPoolExecutor(1) as client:
            answer = client.submit(desk.release, token=bob)
            assert answer.result(timeout=30)[0] == 201
    finally:
        go_on.set()
        for thread in threads:
            thread.join()


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not limit the memory of a process")
def test_a_look_alike_does_not_take_all_memory(desk: RunningDesk) -> None:
    """Its computation would ask for 11 GiB."""
    asked = {**QUESTION, "k": 10_000, "ordered": True, "like": {"counts": [float(each) for each in range(100_000)]}}
    status, _, error = desk.send("POST", ESTIMATE, asked)
    assert (status, error["error"]["field"]) == (400, "like")
    assert "fewer" in error["error"]["message"]


def heavy(desk: RunningDesk) -> socket.socket:
    """Ask for a curve that takes many minutes; return the connection, on which nothing is waited for."""
    counts = [float(20_000 - number) for number in range(20_000)]
    asked = {**QUESTION, "k": 5_000, "ordered": True, "delta": 1e-6, "like": {"counts": counts}}
    body = json.dumps(asked)
    connection = socket.create_connection(urlsplit(desk.url).netloc.split(":"), timeout=60)
    head = f"POST {ESTIMATE} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {desk.token}\r\n"
    head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    connection.sendall(head.encode() + body.encode())
    return connection


@pytest.mark.slow
def test_a_look_alike_is_computed_apart_and_ends_when_its_client_is_gone(desk: RunningDesk) -> None:
    small = {**QUESTION, "like": {"counts": [9.0, 8.0, 7.0, 1.0, 0.0]}}
    with contextlib.ExitStack() as closing:
        asked = [closing.enter_context(heavy(desk)) for _ in range(8)]
        answered: set[socket.socket] = set()
        while len(answered) < 4:
            answered |= set(select.select(asked, [], [], 60)[0])
            asked = [each for each in asked if each not in answered]
        assert all(b" 429 " in each.recv(4096).partition(b"\r\n")[0] for each in answered)
        status, headers, error = desk.send("POST", ESTIMATE, small)
        assert (status, error["error"]["code"]) == (429, "too-many-requests")
        assert "retry-after" in headers
        assert desk.release()[0] == 201
        # Another analyst does not wait for those of this one.
        bob = token_for(desk.folder / "desk.toml", "bob")
        assert desk.send("POST", ESTIMATE, small, token=bob)[0] == 200
    while desk.send("POST", ESTIMATE, small)[0] == 429:  # until the desk notices that the clients are gone
        pass
    assert desk.send("POST", ESTIMATE, small)[0] == 200
