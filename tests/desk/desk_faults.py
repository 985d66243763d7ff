"""Servers of a desk that are killed at any moment while clients ask, and what must hold afterwards."""

from __future__ import annotations

import contextlib
import http.client
import itertools
import multiprocessing
import random
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from desks import RunningDesk, token_for

from dpselect.charging import Charge, ChargeTarget
from dpselect.desk import read_config
from dpselect.desk.serving import run
from dpselect.ledger import Ledger

# A small process with everything loaded, from which servers are forked: they start in a tenth of the time.
PROCESSES: Any = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["dpselect.desk.serving", "pandas", "psycopg", "pyarrow.compute"])

COST = 2.0**-10
QUESTION: dict[str, Any] = {"item": "film", "k": 6, "epsilon": COST, "ordered": True}
"""Six of twelve films in order, drawn nearly evenly: two draws agree with probability about 1e-6."""

CLIENTS = 4
ASKED_AGAIN = 10
"""So many of the last keys are asked once more at the end."""


@dataclass(frozen=True)
class Told:
    """What a client was told under a key."""

    key: str
    status: int
    content: Any


class Server:
    """A server in a process of its own, which can be killed and started again."""

    def __init__(self, config: Path, *, is_hasty: bool = False) -> None:
        self._config, self._is_hasty = config, is_hasty
        self._process: Any = None
        self.url: str | None = None

    def start(self) -> None:
        """Start the process; return once it serves."""
        told, tell = PROCESSES.Pipe(duplex=False)
        self._process = PROCESSES.Process(target=serve, args=(str(self._config), tell, self._is_hasty), daemon=True)
        self._process.start()
        tell.close()
        assert told.poll(60), "a server did not start"
        self.url = told.recv().removesuffix("/")
        told.close()

    def ask(self, dataset: str, token: str, question: dict[str, Any], key: str) -> tuple[int, Any]:
        """Ask for a release; return status and content."""
        desk = RunningDesk(str(self.url), token, self._config.parent)
        status, _, content = desk.send("POST", f"/v1/datasets/{dataset}/releases", question, key=key)
        return status, content

    def kill(self) -> None:
        """Send SIGKILL."""
        self.url = None
        self._process.kill()
        self._process.join(timeout=60)
        assert self._process.exitcode == -9, "a server ended by itself"


@contextlib.contextmanager
def two_servers(config: Path, *, is_hasty: bool = False) -> Iterator[list[Server]]:
    """Run two servers of one configuration, each in a process of its own."""
    servers = [Server(config, is_hasty=is_hasty) for _ in range(2)]
    try:
        for server in servers:
            server.start()
        yield servers
    finally:
        for server in servers:
            server.kill()


def serve(config: str, tell: Any, is_hasty: bool) -> None:
    """Serve a configuration as `dpselect desk` does, with a log beside it."""
    sys.stderr = Path(config).with_name("log").open("a", buffering=1)
    if is_hasty:
        answer_before_recording()
    run(config=config, port=0, ready=tell.send)


def answer_before_recording() -> None:
    """Make releases wrong: they are answered first, and charged and stored a moment later."""
    honest = ChargeTarget.charge

    def charge(target: ChargeTarget, plan: Any, **settings: Any) -> Any:
        class Hasty(Charge[Any]):
            def published(self, drawn: Any) -> Any:
                record = lambda: honest(target, plan, **settings).published(drawn)  # noqa: E731
                threading.Timer(2.0, record).start()
                return drawn

        with target.opened() as ledger:
            found = ledger.find(target.dataset, target.once or "")
        return Hasty(plan, target) if found is None else honest(target, plan, **settings)

    ChargeTarget.charge = charge  # type: ignore[method-assign]


@dataclass
class Race:
    """Clients that ask servers of one ledger, servers that are killed, and what came of it."""

    config: Path
    servers: list[Server]
    told: list[Told] = field(default_factory=list)
    kills: int = 0
    cut: int = 0
    """Requests that a kill cut off."""
    left_open: int = 0
    """Releases that were charged and not yet answered when all servers had been killed."""

    def run(self, kills: int, seed: int) -> None:
        """Kill servers until that many are, and let the clients finish what they asked."""
        chance, stopped = random.Random(seed), threading.Event()
        token = token_for(self.config)
        clients = [threading.Thread(target=self._ask, args=(number, token, stopped)) for number in range(CLIENTS)]
        for client in clients:
            client.start()
        try:
            while self.kills < kills:
                if chance.random() < 0.75:  # otherwise they are killed as they start
                    self._wait_for_more(clients)
                time.sleep(chance.uniform(0.0, 0.3))
                struck = self.servers if chance.random() < 0.5 else [chance.choice(self.servers)]
                for server in struck:
                    server.kill()
                self.kills += len(struck)
                if struck == self.servers:
                    self.left_open += self._open()
                for server in struck:
                    server.start()
        finally:
            stopped.set()
            for client in clients:
                client.join()

    def ask_again(self) -> None:
        """Ask the last keys once more, each at one of the servers."""
        token = token_for(self.config)
        keys = list(dict.fromkeys(each.key for each in self.told))[-ASKED_AGAIN:]
        for server, key in zip(itertools.cycle(self.servers), keys, strict=False):
            told = _asked(server, token, key)
            assert told.status == 200
            self.told.append(told)

    def _ask(self, number: int, token: str, stopped: threading.Event) -> None:
        """Ask under one key after another, each until there is an answer; two clients use the same keys."""
        for count in itertools.count():
            if stopped.is_set():
                return
            key = f"{number // 2}-{count}"
            for server in itertools.cycle(self.servers[number % 2 :] + self.servers[: number % 2]):
                if server.url is not None:
                    try:
                        self.told.append(_asked(server, token, key))
                        break
                    except (OSError, http.client.HTTPException):
                        self.cut += 1
                time.sleep(0.01)

    def _wait_for_more(self, clients: list[threading.Thread]) -> None:
        before = len(self.told)
        while len(self.told) == before:
            assert all(client.is_alive() for client in clients), "a client failed"
            time.sleep(0.005)

    def _open(self) -> int:
        with Ledger(read_config(self.config).ledger) as ledger:
            return sum(not entry.answered for entry in ledger.entries("views"))


def _asked(server: Server, token: str, key: str) -> Told:
    return Told(key, *server.ask("views", token, QUESTION, key))


def verdict(race: Race) -> Counter[str]:
    """Check that every key was charged once and answered once, to everybody alike; return figures."""
    place = read_config(race.config).ledger
    with Ledger(place) as ledger:
        assert ledger.check() == [], "a damaged ledger"
        keys = [entry.once for entry in ledger.entries("views")]
        assert len(set(keys)) == len(keys), "a key was charged twice"
        spent = [ledger.spent(name).epsilon for name in ("views", "views/ann")]
        assert spent == [len(keys) * COST] * 2, "a sum that is not that of the records"
        stored = {key: ledger.answer("views", key or "") for key in keys}
    assert {f"ann:{each.key}" for each in race.told} == set(keys), "an answer without a record, or a key without answer"
    for each in race.told:
        assert each.status in (200, 201), each
        answer = stored[f"ann:{each.key}"]
        assert answer is not None, "an answer got out before it was stored"
        assert answer.items() <= each.content.items(), "two answers to one question"
    command = [sys.executable, "-m", "dpselect", "ledger", "check", "--ledger", place]
    checked = subprocess.run(command, capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout
    return Counter(kills=race.kills, keys=len(keys), answers=len(race.told), cut=race.cut, left_open=race.left_open)
