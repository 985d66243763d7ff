"""Serves the application on this machine."""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping
from typing import Any

from dpselect.errors import DpSelectError, InvalidInput, plain
from dpselect.service.offer import Offer

MOST_CONNECTIONS = 1000
"""Open connections from which on requests are answered with status 503; a process may usually open 1024 files."""

LONGEST_PAUSE = 5
"""Seconds after which a connection is closed that has been answered and asks nothing more."""


def run(
    offers: Mapping[str, Offer],
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    ready: Callable[[str], None] = lambda address: None,
) -> None:
    """Serve until interrupted; `ready` is told the address. Port 0 takes any that is free. Nothing is logged."""
    try:
        import uvicorn

        from dpselect.service.app import create_app
    except ImportError:
        raise DpSelectError("the service needs further packages: pip install 'dpselect[serve]'") from None
    settings = server_settings(create_app(offers))
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listening = socket.create_server((host, port), family=family, backlog=2048)
    except (OSError, OverflowError):
        given = plain(f"{host}:{port}")
        raise InvalidInput("port", given, "it cannot be listened on; name another with --host and --port") from None
    with listening:
        name, number = listening.getsockname()[:2]
        ready(f"http://{f'[{name}]' if ':' in name else name}:{number}/")
        uvicorn.Server(settings).run(sockets=[listening])


def server_settings(app: Any) -> Any:
    """Return the settings of uvicorn: nothing is logged, and no client takes memory without bound.

    Headers are limited by a protocol on h11. The parser of httptools, which answers 1.4 times as often, keeps whatever
    comes.
    """
    import uvicorn

    from dpselect.service.protocol import LimitedProtocol

    return uvicorn.Config(
        app,
        access_log=False,
        log_level="critical",
        # Its own set-up of logging would close the handlers of everything else in the process.
        log_config=None,
        server_header=False,
        lifespan="off",
        http=LimitedProtocol,
        limit_concurrency=MOST_CONNECTIONS,
        timeout_keep_alive=LONGEST_PAUSE,
    )
