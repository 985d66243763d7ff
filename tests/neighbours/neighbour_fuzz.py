"""The neighbour tests for as long as you like: `make fuzz`, `make fuzz MINUTES=60`, `make fuzz SEED=7`.

Every source gets its turn, PostgreSQL and Spark less often, until the time is over. A failure is printed with the
smallest case that Hypothesis finds and with the command that repeats it; the exit status is then 1. The case can be
pasted into a test: `check_everybody(source, Case(…))`.
"""

from __future__ import annotations

import argparse
import contextlib
import secrets
import sys
import time
import warnings
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from neighbour_check import try_agreement, try_case
from neighbour_sources import EMBEDDED, Postgres, Source, Spark

import servers

PROGRESS_SECONDS = 30
CASES_OF_A_SEED = 1_000_000
EVERY = {"postgresql": 3, "spark": 20}
"""In how many rounds a source that takes longer gets one turn."""

MOST_FAILURES = 5
"""A source that failed so often is left out: most are the same mistake."""


def fuzz(sources: list[Source | None], first: int, cases: int, minutes: float) -> int:
    """Try so many cases of every source, None for their agreement, until the time is over; return how many failed."""
    tables, failures = Counter[str](), Counter[str]()
    end, told = time.monotonic() + 60 * minutes, time.monotonic()
    turns = ((number, source) for number in range(first, first + cases) for source in sources)
    for number, source in turns:
        if time.monotonic() > end:
            break
        name = "agreement" if source is None else source.name
        if failures[name] >= MOST_FAILURES or (number % EVERY.get(name, 1) and cases > 1):
            continue
        try:
            tables[name] += try_agreement(number) if source is None else try_case(source, number)
        except Exception as error:
            failures[name] += 1
            print(f"\n{name}: {type(error).__name__}: {error}", *getattr(error, "__notes__", []), sep="\n")
            print(f"To repeat it: make fuzz NUMBER={number} SOURCE='{name}'\n", flush=True)
        if time.monotonic() > told + PROGRESS_SECONDS:
            told = time.monotonic()
            left = f"{(end - told) / 60:.1f} minutes left"
            print(f"{tables.total():,} tables, {failures.total()} failures, {left}", flush=True)
    for name in sorted(tables.keys() | failures.keys()):
        print(f"{name:30} {tables[name]:8,} tables {failures[name]:4} failures")
    print(f"{'in all':30} {tables.total():8,} tables {failures.total():4} failures")
    return failures.total()


def main() -> None:
    """Understand the command line, start the servers, and try."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=secrets.randbelow(10**6), help="one at random if left out")
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--number", type=int, help="one case alone")
    parser.add_argument("--source", help="one source alone")
    given = parser.parse_args()
    print(f"Seed {given.seed}, {given.minutes:g} minutes", flush=True)
    warnings.simplefilter("ignore")
    with contextlib.ExitStack() as stack:
        sources: list[Source | None] = [source for source in EMBEDDED if given.source in (None, source.name)]
        if given.source in (None, "agreement"):
            sources.append(None)
        if given.source in (None, "postgresql"):
            sources.append(Postgres(stack.enter_context(servers.postgresql())))
        if given.source in (None, "spark"):
            sources.append(Spark(stack.enter_context(servers.spark())))
        if given.number is None:
            failed = fuzz(sources, given.seed * CASES_OF_A_SEED, CASES_OF_A_SEED, given.minutes)
        else:
            failed = fuzz(sources, given.number, 1, given.minutes)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
