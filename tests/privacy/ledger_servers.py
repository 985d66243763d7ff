"""Ledgers to test with: places on a PostgreSQL server, and spenders that run in processes of their own."""

from __future__ import annotations

import itertools
import multiprocessing
import os
from typing import Any

import dpselect as dps
from dpselect.privacy.ledger import Ledger

_numbers = itertools.count()

# A small server process with everything loaded, from which spenders are forked: they start in milliseconds.
PROCESSES: Any = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["dpselect.privacy.ledger.audit", "dpselect.privacy.ledger.store", "psycopg"])


def fresh_database(server: str, *settings: str) -> str:
    """Return the URL of a place on the server in which there is nothing yet."""
    import psycopg

    name = f"place_{os.getpid()}_{next(_numbers)}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {name}")
    options = "%20".join(f"-c{setting}".replace("=", "%3D") for setting in (f"search_path={name}", *settings))
    return server.replace("postgresql://", "postgresql+psycopg://") + f"&options={options}"


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
