"""The neighbour tests for as long as you like: `make fuzz`, `make fuzz MINUTES=60`, `make fuzz SEED=7`.

Every source gets its turn, PostgreSQL and Spark less often, until the time is over. A failure is printed with the
smallest case that Hypothesis finds and with the command that repeats it, and ends the program with status 1 at the end. A
case can be pasted into a test: `check_everybody(Parquet(), Case(…))`.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import random
import secrets
import sys
import time
import warnings
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from neighbour_check import Common, check, check_agreement, draw_and_check
from neighbour_sources import EMBEDDED, Postgres, Source, Spark

import servers

PROGRESS_SECONDS = 30
CASES_OF_A_SEED = 1_000_000
EVERY = {"postgresql": 3, "spark": 20}
"""In how many rounds a source that takes longer gets one turn."""

MOST_FAILURES = 5
"""A source that failed so often is left out: most are the same mistake."""


def fuzz(sources: list[Source], numbers: range, minutes: float) -> int:
    """Try the cases of these numbers until the time is over; return how many failed."""
    tables, failures = Counter[str](), Counter[str]()
    end, shown = time.monotonic() + 60 * minutes, time.monotonic()
    for number, source in itertools.product(numbers, [*sources, None]):
        name = "agreement" if source is None else source.name
        if time.monotonic() > end:
            break
        if failures[name] >= MOST_FAILURES or number % EVERY.get(name, 1):
            continue
        try:
            tables[name] += _agreement(number) if source is None else _tables(source, number)
        except Exception as error:
            failures[name] += 1
            print(f"\n{name} FAILS: {error}", *getattr(error, "__notes__", []), sep="\n")
            print(f"Repeat it: make fuzz SEED={numbers.start // CASES_OF_A_SEED} NUMBER={number} SOURCE={name!r}\n")
        if time.monotonic() > shown + PROGRESS_SECONDS:
            shown = time.monotonic()
            print(
                f"{tables.total():,} tables, {failures.total()} failures, {(end - shown) / 60:.1f} minutes left",
                flush=True,
            )
    for name in tables.keys() | failures.keys():
        print(f"{name:30} {tables[name]:8,} tables {failures[name]:4} failures")
    print(f"{'in all':30} {tables.total():8,} tables {failures.total():4} failures")
    return failures.total()


def _tables(source: Source, number: int) -> int:
    return draw_and_check([source], number, lambda *drawn: check(source, *drawn))


def _agreement(number: int) -> int:
    sources = random.Random(number).sample(EMBEDDED, 4)
    return draw_and_check([Common(sources)], number, lambda case, _: check_agreement(sources, case))


def main() -> None:
    """Understand the command line, start the servers, and try."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=secrets.randbelow(10**6), help="one at random if left out")
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--number", type=int, help="a single case")
    parser.add_argument("--source", action="append", help="only this source; can be given several times")
    given = parser.parse_args()
    print(f"Seed {given.seed}, {given.minutes:g} minutes", flush=True)
    warnings.simplefilter("ignore")
    with contextlib.ExitStack() as stack:
        sources = list(EMBEDDED)
        for name, start, kind in (("postgresql", servers.postgresql, Postgres), ("spark", servers.spark, Spark)):
            if not given.source or name in given.source:
                sources.append(kind(stack.enter_context(start())))
        sources = [source for source in sources if not given.source or source.name in given.source]
        first = given.seed * CASES_OF_A_SEED if given.number is None else given.number
        last = first + CASES_OF_A_SEED if given.number is None else first + 1
        failed = fuzz(sources, range(first, last), given.minutes)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
