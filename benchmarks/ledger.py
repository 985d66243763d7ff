"""A durable spend against a bare durable SQLite insert, and a long ledger against a plain SELECT of its rows.

Both writers use the same settings on the same disk in the same run, alternately. A disk sometimes answers a durable
write from its cache, so medians are compared, not the shortest times.
"""

from __future__ import annotations

import contextlib
import io
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path

import dpselect as dps
from benchmarks.timing import Result
from dpselect.ledger import Ledger

SPEND_LIMIT = 4.0
"""Multiple of the time of the bare insert."""

SHOW_LIMIT = 1.0
"""Seconds for `show` at 10^5 entries."""

COST = dps.Guarantee(2.0**-10)
PARAMETERS = dps.Canonical(k=10, epsilon=COST.epsilon).describe()


def measurements(quick: bool) -> Iterator[Result]:
    """Yield the price of a spend, and of showing and checking a long ledger."""
    with tempfile.TemporaryDirectory(prefix="dpselect-bench-") as folder:
        yield _spend(Path(folder), 20 if quick else 300, quick)
        yield from _show(Path(folder), 500 if quick else 100_000, quick)


def _spend(folder: Path, rounds: int, quick: bool) -> Result:
    with Ledger(folder / "budget.sqlite") as ledger, _bare(folder / "bare.sqlite") as bare:
        ledger.create("films", epsilon=1e6)

        def insert() -> None:
            bare.execute("BEGIN IMMEDIATE")
            bare.execute("INSERT INTO entries (content) VALUES (?)", ("x" * 600,))
            bare.execute("COMMIT")

        def spend() -> None:
            ledger.spend("films", COST, "benchmark", PARAMETERS)

        baseline, ours = _medians(insert, spend, rounds)
    bare.close()
    return Result(
        "ledger",
        "ledger, spend",
        ours / baseline,
        "x",
        limit=None if quick else SPEND_LIMIT,
        baseline_seconds=baseline,
        our_seconds=ours,
        note="base: a bare durable SQLite insert",
    )


def _bare(file: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(file, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE entries (sequence INTEGER PRIMARY KEY, content TEXT)")
    return connection


def _medians(baseline: Callable[[], None], ours: Callable[[], None], rounds: int) -> tuple[float, float]:
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(rounds + 10):
        for work, found in zip((baseline, ours), times, strict=True):
            start = time.perf_counter()
            work()
            found.append(time.perf_counter() - start)
    return statistics.median(times[0][10:]), statistics.median(times[1][10:])


def _show(folder: Path, count: int, quick: bool) -> Iterator[Result]:
    file = folder / "long.sqlite"
    with Ledger(file) as ledger:
        ledger.create("films", epsilon=1e6)
        fill(ledger, count)

        def rows() -> None:
            connection = sqlite3.connect(file)
            found = connection.execute("SELECT * FROM dpselect_entries ORDER BY sequence").fetchall()
            connection.close()
            assert len(found) == count

        plain = _shortest(rows)
        cases = (
            ("show", lambda: _show_in_process(file), SHOW_LIMIT),
            ("entries", lambda: ledger.entries("films"), None),
            ("check", lambda: ledger.check("films"), None),
            ("show, new process", lambda: _command(file), None),
        )
        for name, work, limit in cases:
            seconds = _shortest(work)
            yield Result(
                "ledger",
                f"ledger, {name}",
                seconds,
                " s",
                limit=None if quick else limit,
                size=count,
                baseline_seconds=plain,
                our_seconds=seconds,
                note=f"{seconds / plain:.3g} times a plain SELECT of all rows",
            )


def _show_in_process(file: Path) -> None:
    """Run the command and draw its table, without the start of Python."""
    from dpselect.cli.ledger import show_command
    from dpselect.cli.output import Format

    with contextlib.redirect_stdout(io.StringIO()) as shown:
        show_command("films", last=10, everything=False, ledger=str(file), form=Format.table)
    assert "left" in shown.getvalue()


def _command(file: Path) -> None:
    """Run the command as a user does, with the start of Python in it."""
    line = [
        sys.executable,
        "-c",
        "from dpselect.cli import main; main()",
        "ledger",
        "show",
        "films",
        "--ledger",
        str(file),
    ]
    subprocess.run(line, check=True, capture_output=True)


def _shortest(work: Callable[[], object]) -> float:
    times = []
    for _ in range(3):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def fill(ledger: Ledger, count: int) -> None:
    """Record many releases in one transaction, through the same chain as every spend."""
    from sqlalchemy import Connection

    from dpselect.ledger import records
    from dpselect.ledger.chain import Record, Tip, canonical_json, utc_now
    from dpselect.ledger.rules import Amount

    described, guarantee = canonical_json(PARAMETERS), canonical_json(COST.to_dict())

    def work(connection: Connection, tip: Tip) -> None:
        account, _ = records.state(connection, "films", tip)
        previous = account.head
        for number in range(1, count + 1):
            spent = Amount(number * Fraction(COST.epsilon)).text()
            record = Record(
                account.dataset, number, utc_now(), "benchmark", described, guarantee, COST.epsilon, COST.delta,
                "0", 1, *spent, account.genesis, previous,
            )  # fmt: skip
            previous = records.append(connection, tip, record).hash

    ledger._store().write(work, lambda *_: None)
