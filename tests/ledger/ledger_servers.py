"""Ledgers to test with: places on a PostgreSQL server, and spenders that run in processes of their own."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
from collections.abc import Iterator
from typing import Any

import dpselect as dps
import servers
from dpselect.ledger import Ledger
from servers import fresh_database as fresh_database

# A small server process with everything loaded, from which spenders are forked: they start in milliseconds.
PROCESSES: Any = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(
    [
        "dpselect._select",
        "dpselect.forecast.reach",
        "dpselect.ledger.audit",
        "dpselect.ledger.store",
        "psycopg",
        "sqlalchemy.dialects.postgresql.psycopg",
    ]
)


@contextlib.contextmanager
def roomy_server() -> Iterator[str]:
    """Yield the URL of a server that hundreds of processes can be connected to at once."""
    import psycopg

    with servers.postgresql() as url:
        import pgserver

        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("ALTER SYSTEM SET max_connections = 300")
            (folder,) = connection.execute("SHOW data_directory").fetchone() or ("",)
        user = "pgserver" if os.geteuid() == 0 else None  # a server refuses to run as root
        pgserver.pg_ctl(["-w", "-m", "fast", "restart"], pgdata=folder, user=user)
        yield url


def spend_many(place: str, worker: int, times: int, epsilon: float) -> tuple[list[str], int]:
    """Spend from a process of its own; return the hashes of what was recorded, and how often it was refused."""
    hashes, refused = [], 0
    with Ledger(place) as ledger:
        for number in range(times):
            try:
                entry = ledger.spend("films", dps.Guarantee(epsilon), f"worker {worker}, release {number}")
                hashes.append(entry.hash)
            except dps.BudgetExceeded:
                refused += 1
    return hashes, refused


def spend_together(place: str, worker: int, times: int, everyone: Any, file: str) -> None:
    """Open the ledger, wait until all others have it open as well, and spend; write down what was recorded."""
    answers = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    with Ledger(place) as ledger:
        ledger.account("films")
        everyone.wait(timeout=300)
        for number in range(times):
            try:
                entry = ledger.spend("films", dps.Guarantee(1.0), f"worker {worker}, release {number}")
                os.write(answers, f"{entry.hash}\n".encode())
            except dps.BudgetExceeded:
                os.write(answers, b"refused\n")
        everyone.wait(timeout=300)


def create_one(place: str, name: str) -> str:
    """Create a data set and spend from it; return which argument was refused, if any."""
    try:
        with Ledger(place) as ledger:
            ledger.create(name, epsilon=1.0)
            ledger.spend(name, dps.Guarantee(0.25))
    except dps.InvalidInput as error:
        return error.argument
    return "created"


def answer_until_killed(place: str, file: str) -> None:
    """Spend without end; write an answer down after each spend, and only then."""
    answers = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    ledger = Ledger(place)
    while True:
        entry = ledger.spend("films", dps.Guarantee(2.0**-10), purpose=f"process {os.getpid()}")
        os.write(answers, f"{entry.hash}\n".encode())
