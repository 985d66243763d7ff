"""Desks to test with: data with private values that can be recognised, configurations, and real servers on loopback.

`running` starts a process of its own, as people do; `served` serves an application from a thread of this process.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import uvicorn

from dpselect.desk import SharedDesk, TokenStore, create_app, read_config
from dpselect.desk.operations import Log
from dpselect.service.serve import server_settings

FILMS = tuple(f"Film {letter}" for letter in "ABCDEFGHIJKL")
COUNTRIES = ("DE", "FR", "PL")
PRIVATE = "qprivateq"
"""Part of every private value of the rows, and of nothing public."""

VIEWERS = 120
QUESTION: dict[str, Any] = {"item": "film", "k": 3, "epsilon": 0.25}


@dataclass
class RunningDesk:
    """A desk that is served: its address, and the token of the curator (alone) or of the analyst "ann" (shared)."""

    url: str
    token: str
    folder: Path
    process: subprocess.Popen[str] | None = None
    log: list[str] = field(default_factory=list)

    def send(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        key: str | None = None,
        token: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> tuple[int, dict[str, str], Any]:
        """Return status, headers and content of the answer to a request; JSON is read."""
        sent = {"Authorization": f"Bearer {self.token if token is None else token}", **(headers or {})}
        if key is not None:
            sent["Idempotency-Key"] = key
        if body is not None:
            sent.setdefault("Content-Type", "application/json")
        connection = http.client.HTTPConnection(urlsplit(self.url).netloc, timeout=180)
        try:
            connection.request(method, path, body if isinstance(body, bytes | None) else json.dumps(body), sent)
            reply = connection.getresponse()
            content = reply.read()
            found = {name.lower(): value for name, value in reply.getheaders()}
            is_json = found.get("content-type", "") == "application/json"
            return reply.status, found, json.loads(content) if is_json else content
        finally:
            connection.close()

    def release(self, question: Mapping[str, Any] = QUESTION, key: str = "key", **sent: Any) -> tuple[int, Any]:
        """Ask the data set "views"; return status and content."""
        status, _, content = self.send("POST", "/v1/datasets/views/releases", dict(question), key=key, **sent)
        return status, content


def write_data(folder: Path) -> None:
    """Write views.csv (film, viewer, age, country, day) and the public lists films.csv and countries.csv.

    Film A has the most viewers. Every viewer, and films that are not in the list, have names with `PRIVATE` in them.
    """
    lines = ["film,viewer,age,country,day"]
    for number in range(VIEWERS):
        person = f"{PRIVATE}-viewer-{number}"
        facts = f"{12 + number % 60},{COUNTRIES[number % 3]},2025-11-{1 + number % 28:02}"
        lines += [f"{film},{person},{facts}" for place, film in enumerate(FILMS) if number % (place + 1) == 0]
        lines += [f"{PRIVATE}-film-{number % 7},{person},{facts}"]
    (folder / "views.csv").write_text("\n".join(lines) + "\n")
    (folder / "films.csv").write_text("film\n" + "".join(f"{film}\n" for film in FILMS))
    (folder / "countries.csv").write_text("country\n" + "".join(f"{country}\n" for country in COUNTRIES))


def write_config(folder: Path, *, ledger: str = "ledger.sqlite", extra: str = "", **changes: Any) -> Path:
    """Write data and desk.toml with the data set "views"; `changes` replace its keys (None removes one).

    Padding and the limit of requests are off unless they are stated.
    """
    write_data(folder)
    stated: dict[str, Any] = {
        "source": "views.csv",
        "person": "viewer",
        "items": {"film": "films.csv"},
        "epsilon": 2.0,
        "people": VIEWERS,
        "filters": {"adults": "CAST(age AS INTEGER) >= 18"},
        "groups": {"country": "countries.csv"},
        "answer_after": 0.0,
        **changes,
    }
    lines = [f"{name} = {_toml(value)}" for name, value in stated.items() if value is not None]
    top = f'ledger = "{ledger}"\n' + ("" if "requests_per_minute" in extra else "requests_per_minute = 0\n")
    place = folder / "desk.toml"
    place.write_text(f"{top}{extra}\n[datasets.views]\n" + "\n".join(lines) + "\n")
    return place


def token_for(config: Path, analyst: str = "ann", **settings: Any) -> str:
    """Return a new token of an analyst; the ledger must exist, or `config` must be served first."""
    store = TokenStore(read_config(config).ledger)
    try:
        return store.create(analyst, **{"scopes": ["ask"], **settings})[0]
    finally:
        store.close()


@contextlib.contextmanager
def served(config: Path, *, wrapped: Callable[[Any], Any] = lambda app: app) -> Iterator[RunningDesk]:
    """Serve the shared desk of a configuration from a thread; yield it with a token of "ann"."""
    log = _Lines()
    desk = SharedDesk(read_config(config))
    with served_app(wrapped(create_app(desk, log=Log(log)))) as url:  # type: ignore[arg-type]
        yield RunningDesk(url, token_for(config), config.parent, log=log.lines)


@contextlib.contextmanager
def served_app(app: Any) -> Iterator[str]:
    """Serve an application from a thread; yield its URL, without a slash at the end."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = uvicorn.Server(server_settings(app))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()


@contextlib.contextmanager
def running(folder: Path, *arguments: str, patience: float = 60) -> Iterator[RunningDesk]:
    """Run `dpselect desk` with these arguments in a folder on a free port; yield it once it serves.

    With `--config FILE` the token is a new one of "ann", otherwise the one in the printed address. Lines on standard
    error are added to `log`. At the end the process gets SIGTERM, and SIGKILL if it is still there `patience` seconds
    later.
    """
    command = [sys.executable, "-m", "dpselect", "desk", *arguments, "--port", "0"]
    process = subprocess.Popen(
        command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env={**os.environ}
    )
    assert process.stderr is not None
    log: list[str] = []
    address = None
    try:
        for line in process.stderr:
            log.append(line)
            if address := re.search(r"the page is at (http://[^/]+)/(?:#token=(\S+))?", line):
                break
        assert address is not None, "".join(log)
        reader = threading.Thread(target=lambda: log.extend(process.stderr or ()), daemon=True)
        reader.start()
        config = folder / arguments[arguments.index("--config") + 1] if "--config" in arguments else None
        token = address[2] if config is None else token_for(config)
        try:
            yield RunningDesk(address[1], token, folder, process, log)
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=patience)
    finally:
        process.kill()
        process.wait()
        if address is not None:
            reader.join()
        process.stderr.close()


class _Lines:
    """A stream that keeps what is written."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def write(self, text: str) -> None:
        self.lines.append(text)

    def flush(self) -> None:
        """Do nothing."""


def _toml(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{json.dumps(name)} = {_toml(each)}" for name, each in value.items()) + " }"
    return json.dumps(value)
