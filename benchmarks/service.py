"""The service under load: signals to a catalogue of a million results against the same framework's empty endpoint.

The server is one process, the loader another, on loopback. `python -m benchmarks.service empty|coast` is the server.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from benchmarks.timing import Result

RATIO_LIMIT = 2.0
"""Times the empty endpoint: at least half as many requests a second."""

TIME_LIMIT = 1.0
"""Milliseconds a request, all connections together: at least 1000 requests a second."""

GROWTH_LIMIT = 2.0
"""Percent of its memory by which the server may grow under load; the allocator keeps a little."""

CONNECTIONS = 16


def measurements(quick: bool) -> Iterator[Result]:
    """Yield the ratio of times, the time of a request, and how much the server's memory grows."""
    requests, rounds, size = (200, 1, 10_000) if quick else (6000, 5, 1_000_000)
    with _server("empty", 1) as (empty, _), _server("coast", size) as (coast, process):
        signal = b'{"signal": 12.34375}'
        asyncio.run(_load(empty, "/empty", b"{}", requests))
        asyncio.run(_load(coast, "/v1/multiselect/coast", signal, requests))
        before = _memory(process)
        times = [
            (
                asyncio.run(_load(empty, "/empty", b"{}", requests)),
                asyncio.run(_load(coast, "/v1/multiselect/coast", signal, requests)),
            )
            for _ in range(rounds)
        ]
        after = _memory(process)
    baseline, ours = (min(column) / requests for column in zip(*times, strict=True))
    yield Result(
        suite="service",
        case="a signal against an empty endpoint",
        measured=ours / baseline,
        unit="x",
        limit=None if quick else RATIO_LIMIT,
        size=size,
        k=5,
        baseline_seconds=baseline,
        our_seconds=ours,
        note=f"{1 / ours:,.0f} requests a second of {1 / baseline:,.0f}",
    )
    yield Result(
        suite="service",
        case="time of a request, one loader",
        measured=1000 * ours,
        unit=" ms",
        limit=None if quick else TIME_LIMIT,
        size=size,
        k=5,
    )
    if before and after:
        yield Result(
            suite="service",
            case=f"memory after {rounds * requests:,} requests",
            measured=max(0.0, 100 * (after / before - 1)),
            unit=" %",
            limit=None if quick else GROWTH_LIMIT,
            size=size,
            note=f"{after / 2**20:.0f} MB",
        )


@contextlib.contextmanager
def _server(kind: str, size: int) -> Iterator[tuple[str, int]]:
    """Start a server in a process of its own; yield its address and process number."""
    command = [sys.executable, "-m", "benchmarks.service", kind, str(size)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().strip(), process.pid
        finally:
            process.terminate()


def _memory(process: int) -> int | None:
    """Return the bytes that a process holds, where the system tells."""
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:
        return None
    return next((1024 * int(line.split()[1]) for line in lines if line.startswith("VmRSS")), None)


async def _load(url: str, path: str, body: bytes, requests: int) -> float:
    """Send requests over a few connections, each the next one when its answer is there; return the seconds."""
    place = urlsplit(url)
    head = f"POST {path} HTTP/1.1\r\nHost: {place.netloc}\r\nContent-Type: application/json\r\n"
    message = f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body
    left = iter(range(requests))

    async def connection() -> None:
        reader, writer = await asyncio.open_connection(place.hostname, place.port)
        for _ in left:
            writer.write(message)
            answer = await reader.readuntil(b"\r\n\r\n")
            if not answer.startswith(b"HTTP/1.1 200"):
                raise RuntimeError("a request was refused")
            length = next(line for line in answer.lower().split(b"\r\n") if line.startswith(b"content-length"))
            await reader.readexactly(int(length.partition(b":")[2]))
        writer.close()
        await writer.wait_closed()

    start = time.perf_counter()
    await asyncio.gather(*(connection() for _ in range(CONNECTIONS)))
    return time.perf_counter() - start


def _serve(kind: str, size: int) -> None:
    import uvicorn
    from fastapi import FastAPI

    from dpselect.service import coast, create_app
    from dpselect.service.serve import server_settings

    if kind == "coast":
        app = create_app({"coast": coast(size)})
    else:
        app = FastAPI()

        @app.post("/empty")
        async def empty() -> dict[str, str]:
            return {}

    settings = server_settings(app)
    listening = socket.create_server(("127.0.0.1", 0), backlog=2048)
    host, port = listening.getsockname()[:2]
    print(f"http://{host}:{port}", flush=True)
    uvicorn.Server(settings).run(sockets=[listening])


if __name__ == "__main__":
    _serve(sys.argv[1], int(sys.argv[2]))
