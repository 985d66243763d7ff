"""Serves the application with uvicorn: nothing is logged, and headers and connections are limited."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Mapping
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from dpselect.errors import InvalidInput, plain
from dpselect.service.app import create_app
from dpselect.service.settings import PublicSettings

MOST_CONNECTIONS = 1000
"""Open connections above which requests get status 503; a process may usually open 1024 files."""

LONGEST_PAUSE = 5
"""Seconds after which an idle connection is closed."""

LONGEST_HEAD = 10
"""Seconds within which a new connection must ask, and the headers of a request must arrive."""

LARGEST_HEAD = 16 << 10
"""Bytes of a request line with all headers, or of the trailers of a body; browsers send about a thousand."""


def run(
    offers: Mapping[str, PublicSettings],
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    ready: Callable[[str], None] = lambda address: None,
) -> None:
    """Serve offers over HTTP until interrupted; nothing is logged.

    Parameters
    ----------
    offers : mapping of str to Offer, RingOffer or VectorOffer
        The offers by name.
    host : str
        Address to listen on.
    port : int
        Port to listen on; 0 takes a free one.
    ready : callable
        Called with the URL once the service listens.

    Raises
    ------
    InvalidInput
        If the port cannot be used.

    Examples
    --------
    >>> run({"coast": coast()})  # doctest: +SKIP
    """
    settings = server_settings(create_app(offers))
    with listening_socket(host, port) as listening:
        ready(page_address(listening))
        uvicorn.Server(settings).run(sockets=[listening])


def listening_socket(host: str, port: int) -> socket.socket:
    """Return a socket that listens; port 0 takes a free one."""
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family, backlog=2048)
    except (OSError, OverflowError):
        given = plain(f"{host}:{port}")
        raise InvalidInput("port", given, "must be free and allowed; name another with --host and --port") from None


def page_address(listening: socket.socket) -> str:
    """Return the URL of a listening socket."""
    name, number = listening.getsockname()[:2]
    return f"http://{f'[{name}]' if ':' in name else name}:{number}/"


def server_settings(app: Any) -> Any:
    """Return the settings of uvicorn; headers are limited by a protocol on h11, because httptools has no limit."""
    return uvicorn.Config(
        app,
        access_log=False,
        log_level="critical",
        # Its own logging configuration would close the handlers of everything else in the process.
        log_config=None,
        server_header=False,
        lifespan="off",
        http=LimitedProtocol,
        limit_concurrency=MOST_CONNECTIONS,
        timeout_keep_alive=LONGEST_PAUSE,
    )


class LimitedConnection(h11.Connection):
    """Limits the size of headers even if they arrive all at once; h11 itself limits only incomplete ones.

    All bytes received count, including spaces and empty lines, except those of a body.
    """

    def next_event(self) -> Any:
        """Return the next event, or raise the error that uvicorn answers with status 400."""
        before = len(self.trailing_data[0])
        event = super().next_event()
        body = len(event.data) if isinstance(event, h11.Data) else 0
        if before - len(self.trailing_data[0]) - body > LARGEST_HEAD:
            raise h11.RemoteProtocolError("headers too long", error_status_hint=431)
        return event


class LimitedProtocol(H11Protocol):
    """The HTTP/1.1 protocol of uvicorn on a limited connection, which is closed while headers do not arrive."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.conn = LimitedConnection(h11.SERVER, LARGEST_HEAD)
        self._headers_awaited: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Begin to wait for the first request."""
        super().connection_made(transport)
        self._wait_for_headers()

    def data_received(self, data: bytes) -> None:
        """Read what arrived; between two requests, the first byte of the next one starts its time."""
        super().data_received(data)
        self._wait_for_headers()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait for nothing any more."""
        super().connection_lost(exc)
        if self._headers_awaited is not None:
            self._headers_awaited.cancel()

    def _wait_for_headers(self) -> None:
        missing = self.conn.their_state is h11.IDLE
        if missing and self._headers_awaited is None:
            self._headers_awaited = self.loop.call_later(LONGEST_HEAD, self.transport.close)
        elif not missing and self._headers_awaited is not None:
            self._headers_awaited.cancel()
            self._headers_awaited = None
