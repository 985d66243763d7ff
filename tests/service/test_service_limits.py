"""A client that says too much, too slowly or nothing takes no more of the service than its settings allow."""

from __future__ import annotations

import contextlib
import logging
import socket
import time
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from serving import Served, served

from dpselect.service import Offer, create_app
from dpselect.service.running import LARGEST_HEAD, server_settings

OFFERS = {"line": Offer([1.0, 2.0], k=1)}
REQUEST = b"GET /v1/multiselect HTTP/1.1\r\nHost: here\r\n"


@contextlib.contextmanager
def connected(service: Served) -> Iterator[socket.socket]:
    address = urlsplit(service.url)
    with socket.create_connection((address.hostname, address.port), timeout=60) as connection:
        yield connection


def status(service: Served, head: bytes) -> bytes:
    """Return the status of the answer to a request."""
    with connected(service) as connection:
        connection.sendall(head + b"\r\n")
        return connection.recv(12)[-3:]


def test_headers_may_be_long_but_not_without_end() -> None:
    with served(OFFERS) as service:
        assert status(service, REQUEST + b"X: " + b"x" * (LARGEST_HEAD // 2) + b"\r\n") == b"200"
        for endless in (b"X: " + b"x" * 2 * LARGEST_HEAD, b"X: x\r\n" * LARGEST_HEAD):
            with connected(service) as connection:
                connection.sendall(REQUEST + endless)
                assert connection.recv(12) == b"HTTP/1.1 400"
        assert status(service, REQUEST) == b"200"


def test_a_connection_that_asks_nothing_more_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpselect.service.running.LONGEST_PAUSE", 1)
    with served(OFFERS) as service, connected(service) as connection:
        connection.sendall(REQUEST + b"\r\n")
        while connection.recv(4096):
            pass


def test_beyond_so_many_connections_requests_are_turned_away_until_others_close(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("dpselect.service.running.MOST_CONNECTIONS", 4)
    with served(OFFERS) as service:
        with contextlib.ExitStack() as silent:
            for _ in range(2):
                silent.enter_context(connected(service))
            assert status(service, REQUEST) == b"200"
            silent.enter_context(connected(service)).sendall(REQUEST)
            assert answered(service, b"503")
        assert answered(service, b"200")


def test_the_logging_of_others_is_left_alone() -> None:
    class Handler(logging.Handler):
        closed = False

        def emit(self, record: logging.LogRecord) -> None:
            """Write nothing."""

        def close(self) -> None:
            self.closed = True
            super().close()

    handler = Handler()
    server_settings(create_app(OFFERS))
    assert not handler.closed


def answered(service: Served, expected: bytes) -> bool:
    """Tell whether the service comes to answer so; it notices when it gets to it that a connection was closed."""
    for _ in range(400):
        if status(service, REQUEST) == expected:
            return True
        time.sleep(0.05)
    return False
