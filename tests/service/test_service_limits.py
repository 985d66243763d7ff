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
from dpselect.service.serve import LARGEST_HEAD, server_settings

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


TOO_LONG = (
    REQUEST + b"X: " + b"x" * (LARGEST_HEAD + 1) + b"\r\n",
    REQUEST + b"X: " + b" " * LARGEST_HEAD + b"x\r\n",
    REQUEST + b"X: x\r\n" * (LARGEST_HEAD // 6),
    b"GET /" + b"x" * LARGEST_HEAD + b" HTTP/1.1\r\nHost: here\r\n",
    REQUEST + b"\r\n" + REQUEST + b"X: " + b"x" * LARGEST_HEAD + b"\r\n",
)


def test_too_long_headers_are_refused_even_if_they_arrive_at_once() -> None:
    with served(OFFERS) as service:
        for head in TOO_LONG:
            with connected(service) as connection:
                connection.sendall(head + b"\r\n")
                assert statuses(connection) == [b"200"] * (head.count(b"GET") - 1) + [b"400"], head[:60]


def test_too_long_headers_inside_a_body_are_refused() -> None:
    start = b"POST /v1/multiselect/line HTTP/1.1\r\nHost: here\r\nTransfer-Encoding: chunked\r\n\r\n"
    chunk, long = b'd\r\n{"signal": 1}\r\n', b"x" * LARGEST_HEAD
    with served(OFFERS) as service:
        for body, expected in (
            (chunk + b"0\r\n\r\n", b"200"),
            (chunk + b"0\r\nX: " + long + b"\r\n\r\n", b"400"),
            (chunk.replace(b"d\r", b"d;" + long + b"\r") + b"0\r\n\r\n", b"400"),
        ):
            with connected(service) as connection:
                connection.sendall(start + body)
                assert connection.recv(12)[-3:] == expected


@pytest.mark.slow
@pytest.mark.parametrize(
    ("catalogue", "refused", "chunked"), [("line", b"413", False), ("nowhere", b"404", True)], ids=["length", "chunked"]
)
def test_the_rest_of_a_body_is_not_taken_in_after_the_answer(catalogue: str, refused: bytes, chunked: bool) -> None:
    """Of 200 MB a few are accepted: those that the system holds for a connection that nobody reads."""
    megabyte, whole = 1 << 20, 200
    framing = "Transfer-Encoding: chunked" if chunked else f"Content-Length: {whole * megabyte}"
    piece = b"100000\r\n" + b"x" * megabyte + b"\r\n" if chunked else b"x" * megabyte
    with served(OFFERS) as service, connected(service) as connection:
        connection.sendall(f"POST /v1/multiselect/{catalogue} HTTP/1.1\r\nHost: here\r\n{framing}\r\n\r\n".encode())
        accepted = 0
        with contextlib.suppress(ConnectionError):
            while accepted < whole * megabyte:
                accepted += connection.send(piece)
        assert accepted < whole * megabyte / 4
        assert statuses(connection) == [refused]
        assert status(service, REQUEST) == b"200"


def test_a_connection_stays_open_after_a_body_that_was_read() -> None:
    body = b'{"signal": 1}'
    request = b"POST /v1/multiselect/line HTTP/1.1\r\nHost: here\r\nContent-Length: 13\r\n\r\n"
    with served(OFFERS) as service, connected(service) as connection:
        for sent, expected in ((body, b"200"), (b"x" * 13, b"422"), (body, b"200")):
            connection.sendall(request + sent)
            answer = connection.recv(4096)
            assert answer[9:12] == expected
            assert b"connection: close" not in answer.lower()


@pytest.mark.slow
def test_a_connection_that_asks_nothing_more_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpselect.service.serve.LONGEST_PAUSE", 1)
    with served(OFFERS) as service, connected(service) as connection:
        connection.sendall(REQUEST + b"\r\n")
        while connection.recv(4096):
            pass


@pytest.mark.slow
def test_a_connection_on_which_no_request_arrives_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpselect.service.serve.LONGEST_HEAD", 0.3)
    with served(OFFERS) as service:
        for sent in (b"", REQUEST, REQUEST + b"\r\n" + REQUEST):
            with connected(service) as connection:
                connection.sendall(sent)
                assert statuses(connection) == [b"200"] * (sent.count(b"GET") - 1)


def test_a_request_may_take_longer_than_its_headers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpselect.service.serve.LONGEST_HEAD", 0.3)
    request = b"POST /v1/multiselect/line HTTP/1.1\r\nHost: here\r\nContent-Length: 13\r\n\r\n"
    with served(OFFERS) as service, connected(service) as connection:
        for _ in range(2):
            connection.sendall(request)
            time.sleep(0.6)
            connection.sendall(b'{"signal": 1}')
            assert connection.recv(4096)[9:12] == b"200"


def test_beyond_so_many_connections_requests_are_turned_away_until_others_close(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("dpselect.service.serve.MOST_CONNECTIONS", 4)
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


def statuses(connection: socket.socket) -> list[bytes]:
    """Return the statuses of all answers until the service closes the connection."""
    received = b""
    with contextlib.suppress(ConnectionError):
        while part := connection.recv(65536):
            received += part
    return [answer[:3] for answer in received.split(b"HTTP/1.1 ")[1:]]


def answered(service: Served, expected: bytes) -> bool:
    """Tell whether the service comes to answer so; it notices when it gets to it that a connection was closed."""
    for _ in range(400):
        if status(service, REQUEST) == expected:
            return True
        time.sleep(0.05)
    return False
