"""The desk under load: releases against durable commits, how even their times are, and what an estimate costs.

The server is a process of its own on loopback, with padding and rate limits off and a file of a thousand rows.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import re
import select
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import dpselect as dps
from benchmarks.timing import Result
from dpselect.desk import SharedDesk, TokenStore, read_config
from dpselect.desk.estimates import estimate
from dpselect.desk.questions import EstimateQuestion
from dpselect.ledger import Ledger

COMMITS_LIMIT = 3.0
"""Times a durable commit: at least a third as many releases as commits."""

EVENNESS_LIMIT = 10.0
"""The 99th percentile of the times of releases against their median, with 50 clients."""

ESTIMATE_LIMIT = 0.2
"""Seconds of processor time at 10^5 items."""

CLIENTS = 50
TURNS = 10
"""Releases of a single client, without a look-alike and beside one."""

EPSILON = 2.0**-10


def measurements(quick: bool) -> Iterator[Result]:
    """Yield the price of releases and of estimates."""
    with tempfile.TemporaryDirectory(prefix="dpselect-bench-") as folder:
        yield from _estimates(Path(folder), 1_000 if quick else 100_000, quick)
    with tempfile.TemporaryDirectory(prefix="dpselect-bench-") as folder:
        yield from _releases(Path(folder), 2 if quick else 6, quick)


def _estimates(folder: Path, items: int, quick: bool) -> Iterator[Result]:
    desk = SharedDesk(read_config(_configured(folder, items, 1e6)))
    dataset = desk.dataset("views")
    assert dataset is not None
    for case, asked in {
        "estimate": {"k": 10},
        "estimate, lead and accuracy": {"k": 11, "lead": 50.0, "accuracy": 0.95},
        "estimate, ordered": {"k": 100, "ordered": True},
        "estimate, delta": {"k": 20, "delta": 1e-6},
    }.items():
        question = EstimateQuestion.model_validate({"item": "film", "epsilon": 0.7, **asked})
        # The first one of a process loads what all others use.
        estimate(dataset, question.model_copy(update={"epsilon": 0.6}), "ann")
        started = time.process_time()
        estimate(dataset, question, "ann")
        seconds = time.process_time() - started
        limit = None if quick else ESTIMATE_LIMIT
        yield Result("desk", case, seconds, " s", limit=limit, size=items, k=question.k)


def _releases(folder: Path, each: int, quick: bool) -> Iterator[Result]:
    total = (CLIENTS * each + 2 * TURNS) * EPSILON
    config = _configured(folder, 100, total)
    commit = _commit_seconds(folder, 20 if quick else 200)
    with Ledger(folder / "ledger.sqlite") as ledger:
        SharedDesk(read_config(config))
        token, _ = TokenStore(str(folder / "ledger.sqlite")).create("ann", scopes=["ask"])
        with _server(config, folder) as address:
            _load(address, token, 1, range(1))  # it warms the process up; the refused ones are not counted
            single, _ = _load(address, token, 1, range(1, TURNS + 1))
            with _look_alike(address, token):
                beside, _ = _load(address, token, 1, range(TURNS + 1, 2 * TURNS + 1))
            started = time.perf_counter()
            times, answered = _load(address, token, CLIENTS, range(1000, 1000 + each))
            seconds = time.perf_counter() - started
        spent, left = ledger.spent("views").epsilon, ledger.remaining("views").epsilon
    if spent > total or left > 0:
        raise RuntimeError(f"the budget was not kept: {spent} of {total}")
    yield Result(
        "desk",
        "release against a durable commit",
        seconds / answered / commit,
        "x",
        limit=None if quick else COMMITS_LIMIT,
        baseline_seconds=commit,
        our_seconds=seconds / answered,
        note=f"{answered / seconds:,.0f} releases a second, {CLIENTS} clients; the budget was reached and kept",
    )
    yield Result(
        "desk",
        "release beside a look-alike",
        statistics.median(beside) / statistics.median(single),
        "x",
        baseline_seconds=statistics.median(single),
        our_seconds=statistics.median(beside),
        note="one client; the look-alike of 10^5 items is computed meanwhile, and then cancelled",
    )
    cut = statistics.quantiles(times, n=100)[98]
    yield Result(
        "desk",
        "99th percentile against the median",
        cut / statistics.median(times),
        "x",
        limit=None if quick else EVENNESS_LIMIT,
        baseline_seconds=statistics.median(times),
        our_seconds=cut,
    )


def _commit_seconds(folder: Path, rounds: int) -> float:
    with Ledger(folder / "commits.sqlite") as ledger:
        ledger.create("films", epsilon=1e6)
        times = []
        for _ in range(rounds):
            started = time.perf_counter()
            ledger.spend("films", dps.Guarantee(EPSILON))
            times.append(time.perf_counter() - started)
    return statistics.median(times)


def _configured(folder: Path, items: int, epsilon: float) -> Path:
    """Write a small data set and its configuration."""
    (folder / "films.csv").write_text("film\n" + "\n".join(f"film {number}" for number in range(items)) + "\n")
    rows = [f"film {number * number % items},viewer {number % 200}" for number in range(1_000)]
    (folder / "views.csv").write_text("film,viewer\n" + "\n".join(rows) + "\n")
    config = folder / "desk.toml"
    config.write_text(
        'ledger = "ledger.sqlite"\nrequests_per_minute = 0\n\n[datasets.views]\nsource = "views.csv"\n'
        f'person = "viewer"\nitems = {{ film = "films.csv" }}\nepsilon = {epsilon!r}\ndelta = 0.5\nanswer_after = 0\n'
    )
    return config


@contextlib.contextmanager
def _server(config: Path, folder: Path) -> Iterator[str]:
    """Start a desk in a process of its own; yield its address."""
    command = [sys.executable, "-m", "dpselect", "desk", "--config", str(config), "--port", "0"]
    with (
        (folder / "log").open("w") as log,
        subprocess.Popen(command, stderr=log, cwd=folder) as process,
    ):
        try:
            found = None
            while found is None and process.poll() is None:
                time.sleep(0.05)
                found = re.search(r"http://[^/]+/", (folder / "log").read_text())
            if found is None:
                raise RuntimeError("the desk did not start")
            yield found[0]
        finally:
            process.terminate()


@contextlib.contextmanager
def _look_alike(address: str, token: str) -> Iterator[None]:
    """Have the server compute a look-alike that takes longer than the block, and go away at its end."""
    asked = {"item": "film", "k": 90, "epsilon": 0.7, "ordered": True, "like": {"counts": list(range(100_000))}}
    connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=120)
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    connection.request("POST", "/v1/datasets/views/estimate", json.dumps(asked), headers)
    try:
        yield
        if select.select([connection.sock], [], [], 0)[0]:
            raise RuntimeError("the look-alike was ready too early to tell")
    finally:
        connection.close()


def _load(address: str, token: str, clients: int, turns: range) -> tuple[list[float], int]:
    """Ask from many clients at once, each the next question when its answer is there; return times and answers."""
    place = urlsplit(address).netloc
    times: list[float] = []
    answered: list[int] = []
    body = json.dumps({"item": "film", "k": 5, "epsilon": EPSILON}).encode()

    def client(number: int) -> None:
        connection = http.client.HTTPConnection(place, timeout=120)
        for turn in turns:
            key = {"Idempotency-Key": f"{number}-{turn}", "Authorization": f"Bearer {token}"}
            started = time.perf_counter()
            connection.request("POST", "/v1/datasets/views/releases", body, {**key, "Content-Type": "application/json"})
            response = connection.getresponse()
            response.read()
            times.append(time.perf_counter() - started)
            if response.status == 201:
                answered.append(number)
            elif response.status != 409:
                raise RuntimeError(f"a release failed with status {response.status}")
        connection.close()

    threads = [threading.Thread(target=client, args=(number,)) for number in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return times, len(answered)
