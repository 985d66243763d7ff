"""The desk under load: releases against durable commits, how even their times are, and what an estimate costs.

The server is a process of its own on loopback, with padding and rate limits off and a file of a thousand rows.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
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
from dpselect.desk.estimates import estimate, warm_up
from dpselect.desk.questions import EstimateQuestion
from dpselect.ledger import Ledger

COMMITS_LIMIT = 3.0
"""Times a durable commit: at least a third as many releases as commits."""

EVENNESS_LIMIT = 10.0
"""The 99th percentile of the times of releases against their median, with 50 clients."""

ESTIMATE_LIMIT = 0.2
"""Seconds of processor time at 10^5 items."""

CLIENTS = 50
TURNS = 50
"""Releases of a single client, without a look-alike and beside one."""

SETTLED = 2.5
"""Seconds after which the counts of a new file are kept, and an uploaded look-alike is being computed."""

EPSILON = 2.0**-10


def measurements(quick: bool) -> Iterator[Result]:
    """Yield the price of releases and of estimates."""
    with tempfile.TemporaryDirectory(prefix="dpselect-bench-") as folder:
        yield from _estimates(Path(folder), 1_000 if quick else 100_000, quick)
    with tempfile.TemporaryDirectory(prefix="dpselect-bench-") as folder:
        yield from _releases(Path(folder), 2 if quick else 6, quick)


def _estimates(folder: Path, items: int, quick: bool) -> Iterator[Result]:
    """Measure the first estimate of each kind in a desk that was made ready as a server does."""
    config = _configured(folder, items, 1e6)
    desk = SharedDesk(read_config(config))
    desk.check(config)
    warm_up()
    dataset = desk.dataset("views")
    assert dataset is not None
    for case, asked in {
        "estimate": {"k": 10},
        "estimate, lead and accuracy": {"k": 11, "lead": 50.0, "accuracy": 0.95},
        "estimate, ordered": {"k": 100, "ordered": True},
        "estimate, ordered, lead": {"k": 20, "ordered": True, "lead": 50.0},
        "estimate, delta": {"k": 20, "delta": 1e-6},
    }.items():
        question = EstimateQuestion.model_validate({"item": "film", "epsilon": 0.7, **asked})
        started = time.process_time()
        estimate(dataset, question, "ann")
        seconds = time.process_time() - started
        limit = None if quick else ESTIMATE_LIMIT
        yield Result("desk", case, seconds, " s", limit=limit, size=items, k=question.k)


def _releases(folder: Path, each: int, quick: bool) -> Iterator[Result]:
    total = (CLIENTS * each + 2 * TURNS + 1) * EPSILON
    config = _configured(folder, 100, total)
    with Ledger(folder / "ledger.sqlite") as ledger:
        SharedDesk(read_config(config))
        token, _ = TokenStore(str(folder / "ledger.sqlite")).create("ann", scopes=["ask"])
        with _server(config, folder) as (address, process):
            time.sleep(SETTLED)
            _load(address, token, 1, range(1))  # it reads the file
            single = _processor_seconds(process)
            _load(address, token, 1, range(1, TURNS + 1))
            single = _processor_seconds(process) - single
            with _look_alike(address, token):
                beside = _processor_seconds(process)
                _load(address, token, 1, range(TURNS + 1, 2 * TURNS + 1))
                beside = _processor_seconds(process) - beside
            commits, _ = _commit_seconds(folder, 10 if quick else 200)
            started = time.perf_counter()
            times, answered = _load(address, token, CLIENTS, range(1000, 1000 + each))
            seconds = time.perf_counter() - started
            more, used = _commit_seconds(folder, 10 if quick else 200)
            commits += more
        spent, left = ledger.spent("views").epsilon, ledger.remaining("views").epsilon
    if spent > total or left > 0:
        raise RuntimeError(f"the budget was not kept: {spent} of {total}")
    commit = statistics.median(commits)
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
        "release against a durable commit, processor time",
        single / TURNS / used,
        "x",
        baseline_seconds=used,
        our_seconds=single / TURNS,
        note="one client; of the server's own process",
    )
    yield Result(
        "desk",
        "processor time beside a look-alike",
        beside / single,
        "x",
        baseline_seconds=single / TURNS,
        our_seconds=beside / TURNS,
        note="of the server's own process per release; the look-alike of 10^5 items is computed meanwhile",
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


def _processor_seconds(process: subprocess.Popen[bytes]) -> float:
    """Return the processor time that a process has used so far, without that of its children (on Linux)."""
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    user, system = fields[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def _commit_seconds(folder: Path, rounds: int) -> tuple[list[float], float]:
    """Return the times of charges of one ledger, each of them one durable commit, and the processor time of one."""
    with Ledger(folder / "commits.sqlite") as ledger:
        if not (folder / "commits.sqlite").exists():
            ledger.create("films", epsilon=1e6)
        times, used = [], time.process_time()
        for _ in range(rounds):
            started = time.perf_counter()
            ledger.spend("films", dps.Guarantee(EPSILON))
            times.append(time.perf_counter() - started)
    return times, (time.process_time() - used) / rounds


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
def _server(config: Path, folder: Path) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """Start a desk in a process of its own; yield its address and the process."""
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
            yield found[0], process
        finally:
            process.terminate()


@contextlib.contextmanager
def _look_alike(address: str, token: str) -> Iterator[None]:
    """Have the server compute a look-alike that takes longer than the block, and go away at its end."""
    asked = {"item": "film", "k": 90, "epsilon": 0.7, "ordered": True, "like": {"counts": list(range(100_000))}}
    connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=120)
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    connection.request("POST", "/v1/datasets/views/estimate", json.dumps(asked), headers)
    time.sleep(SETTLED)
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
