"""Serves a desk with uvicorn until it is stopped."""

from __future__ import annotations

import asyncio
import os
import socket
import webbrowser
from collections.abc import Callable, Sequence
from pathlib import Path

import uvicorn

from dpselect.desk.alone import AloneDesk
from dpselect.desk.app import create_app
from dpselect.desk.config import read_config
from dpselect.desk.estimates import warm_up
from dpselect.desk.shared import LOOPBACK, SharedDesk
from dpselect.errors import InvalidInput
from dpselect.service import listening_socket, page_address, server_settings

_PATIENCE = 30
"""Seconds for which a stopped service still finishes what was asked."""


def run(
    files: Sequence[str | os.PathLike[str]] = (),
    *,
    config: str | os.PathLike[str] | None = None,
    ledger: str | None = None,
    host: str = "127.0.0.1",
    port: int = 8417,
    open_browser: bool = False,
    ready: Callable[[str], None] = lambda address: None,
) -> None:
    """Serve the desk over HTTP until interrupted.

    Parameters
    ----------
    files : sequence of path
        Alone: the files that the page offers.
    config : path, optional
        The configuration of a shared desk.
    ledger : str, optional
        Alone: the path or URL of the ledger; by default that of desk.toml, or ledger.sqlite.
    host, port
        Where to listen; alone only on loopback. Port 0 takes a free one.
    open_browser : bool
        Whether to open the page in a browser.
    ready : callable
        Called with the URL of the page once the service listens; alone, its fragment holds the token.

    Raises
    ------
    InvalidInput
        If the configuration, a file, the address or the port cannot be used.
    """
    desk: AloneDesk | SharedDesk
    if config is None:
        if host not in LOOPBACK:
            raise InvalidInput("host", host, "must be 127.0.0.1 without --config: the desk alone is for this machine")
        desk = AloneDesk(Path.cwd(), [Path(file) for file in files], ledger)
    else:
        if ledger is not None:
            raise InvalidInput("ledger", ledger, "must be left out with --config, which names the ledger")
        if files:
            raise InvalidInput("files", str(files[0]), "must be left out with --config, which names the data sets")
        path = Path(config)
        desk = SharedDesk(read_config(path), host=host, path=path)
        desk.check(path)
    warm_up()
    with listening_socket(host, port) as listening:
        address = page_address(listening) + (f"#token={desk.token}" if isinstance(desk, AloneDesk) else "")
        ready(address)
        if open_browser:
            webbrowser.open(address)
        settings = server_settings(create_app(desk))
        settings.timeout_graceful_shutdown = _PATIENCE
        _Server(settings).run(sockets=[listening])


class _Server(uvicorn.Server):
    """Ends the process when its patience ends: the thread of an engine cannot be stopped, and Python waits for it."""

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Finish what was asked, for a while."""
        await super().shutdown(sockets)
        if self.server_state.tasks:  # they were cancelled, and tell their clients so
            await asyncio.sleep(1)
            os._exit(0)
