"""The real service on loopback, with a record of everything that reaches it."""

from __future__ import annotations

import contextlib
import http.client
import socket
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import uvicorn

from dpselect.service import create_app
from dpselect.service.serve import server_settings
from dpselect.service.settings import PublicSettings


@dataclass
class Served:
    """Where the service is, and every request as it came in."""

    url: str
    requests: list[bytes] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)


@contextlib.contextmanager
def served(offers: Mapping[str, PublicSettings]) -> Iterator[Served]:
    """Serve the offers from another thread until the end."""
    app = create_app(offers)
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    listening.listen()
    record = Served(f"http://127.0.0.1:{listening.getsockname()[1]}")

    async def recorded(scope: Any, receive: Any, send: Any) -> None:
        line = [scope["method"].encode(), scope["raw_path"], scope["query_string"]]
        record.requests.append(b" ".join([*line, *(part for header in scope["headers"] for part in header)]))

        async def listened() -> Any:
            message = await receive()
            if message["type"] == "http.request" and message["body"]:
                record.bodies.append(message["body"])
            return message

        await app(scope, listened, send)

    server = uvicorn.Server(server_settings(recorded))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    try:
        yield record
    finally:
        server.should_exit = True
        thread.join()
        listening.close()


def send(service: Served, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None) -> Any:
    """Return status, headers and content of the answer to a request."""
    connection = http.client.HTTPConnection(urlsplit(service.url).netloc, timeout=30)
    try:
        connection.request(method, path, body, headers or {})
        reply = connection.getresponse()
        return reply.status, dict(reply.getheaders()), reply.read()
    finally:
        connection.close()
