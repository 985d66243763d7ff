"""Serves the application on this machine."""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping

from dpselect.errors import DpSelectError, InvalidInput, plain
from dpselect.service.offer import Offer


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
    settings = uvicorn.Config(
        create_app(offers),
        host=host,
        port=port,
        access_log=False,
        log_level="critical",
        server_header=False,
        lifespan="off",
        timeout_keep_alive=30,
    )
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
