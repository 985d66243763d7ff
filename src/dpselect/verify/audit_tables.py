"""What the audit asks `dpselect.top` and `discover`: the whole path from a table in an engine to the answer.

A question about few people costs as much as one about many. So a table holds many copies of one small crowd, each with
people of its own and, as its own group, an answer of its own: one call gives as many answers as there are copies. The
questions without groups are asked about one copy, again and again.
"""

from __future__ import annotations

import contextlib
import datetime
import os
import tempfile
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import dpselect as dps
from dpselect.privacy import Guarantee
from dpselect.verify import servers
from dpselect.verify.audit import Probe
from dpselect.verify.audit_select import TESTED, Halved, seen

SPARK = "Spark"
"""The engine whose session belongs to one process."""

IN_PERIOD, BEFORE = datetime.date(2024, 5, 15), datetime.date(2024, 5, 7)
PERIOD = "2024-W20"


class Row(NamedTuple):
    """A row of one copy of the crowd: who has which item in which of its groups, how much of it, and when."""

    person: str
    item: str
    part: int = 0
    amount: float = 1.0
    day: datetime.date = IN_PERIOD


Engine = Callable[[str, list[dict[str, Any]]], dict[str, Any]]
"""Puts rows under a name into an engine, and returns the arguments with which `top` finds them."""


@dataclass(frozen=True)
class Effort:
    """How many copies a table holds, how often it is asked about, and how often the table of one copy is."""

    copies: int
    calls: int
    single_calls: int


@dataclass(frozen=True)
class Crowd:
    """A question about a crowd, and the rows of the others and of the one person.

    `parts` is the number of groups of each copy; 0 for a question without groups. With `discovers`, the question is one
    to `discover`, and each copy has items of its own.
    """

    name: str
    asked: Mapping[str, Any]
    others: Sequence[Row]
    person: Sequence[Row]
    parts: int = 1
    discovers: bool = False
    flaw: str = ""

    def probe(self, door: str, engine: Engine, effort: Effort) -> Probe:
        """Return the question, to be asked about tables in an engine."""
        return Probe(
            f"discover{door.removeprefix('top')}" if self.discovers else door,
            self.name,
            partial(self._answers, engine, effort),
            self.flaw,
            portable=door != f"top, {SPARK}",
        )

    def _answers(
        self, engine: Engine, effort: Effort, with_person: bool, seeds: Iterator[int | None]
    ) -> tuple[Guarantee, list[Hashable]]:
        copies = effort.copies if self.parts or self.discovers else 1
        calls = effort.calls if self.parts or self.discovers else effort.single_calls
        rows = [*self.others, *(self.person if with_person else ())]
        question = {
            **engine(f"crowds_{os.getpid()}", [self._cells(row, copy) for copy in range(copies) for row in rows]),
            **self.asked,
        }
        found: list[Hashable] = []
        for _ in range(calls):
            guarantee, answers = self._asked(question, copies, next(seeds))
            found += answers
        return guarantee, found

    def _cells(self, row: Row, copy: int) -> dict[str, Any]:
        return {
            "shop": f"{copy}.{row.part}",
            "item": f"{copy}.{row.item}" if self.discovers else row.item,
            "person": f"{row.person} of {copy}",
            "amount": row.amount,
            "day": row.day,
        }

    def _asked(self, question: Mapping[str, Any], copies: int, seed: int | None) -> tuple[Guarantee, list[Hashable]]:
        columns: dict[str, Any] = {"item": "item", "person": "person", "seed": seed}
        if self.discovers:
            listed = dps.discover(**columns, **question)
            items: list[list[str]] = [[] for _ in range(copies)]
            for item in listed.items:
                copy, _, name = item.partition(".")
                items[int(copy)].append(name)
            return listed.guarantee, [(tuple(sorted(each)), listed.guarantee) for each in items]
        if not self.parts:
            release = dps.top(**columns, **question)
            return release.guarantee, [seen(release)]
        labels = [[f"{copy}.{part}" for part in range(self.parts)] for copy in range(copies)]
        release = dps.top(**columns, **question, by="shop", groups=[label for each in labels for label in each])
        answers = release.groups or {}
        return release.guarantee, [tuple(seen(answers[label]) for label in each) for each in labels]


_BOTH = (Row("bob", "a"), Row("bob", "b"))
_ANN = (Row("ann", "a"), Row("ann", "a"))
"""One person with the same item twice, who counts once."""
_ASKED: dict[str, Any] = {"k": 1, "epsilon": 2.0, "domain": ["a", "b"]}

GROUPED = Crowd("one item", _ASKED, _BOTH, _ANN)
CHOSEN = Crowd(
    "an unknown domain, automatic choice",
    {"k": 1, "epsilon": 1.0, "delta": 0.1, "domain": dps.UNKNOWN, "max_items_per_person": 1},
    (),
    (Row("ann", "own"), Row("ann", "another")),
)
UNKNOWN = Crowd(
    "an unknown domain",
    {"domain": dps.UNKNOWN, "mechanism": dps.Restricted(**TESTED)},
    (),
    (Row("ann", "own"),),
)
VALUES = Crowd("with values", {**_ASKED, "values": 0.5}, (Row("bob", "a"),), (Row("ann", "b"),))
BROKEN = Crowd(
    "one item, broken",
    {"domain": ["a", "b"], "mechanism": Halved(k=1, epsilon=2.0)},
    _BOTH,
    _ANN,
    flaw="the noise is half of what the claim needs",
)
CROWDS = [
    Crowd("one item, no groups", {**_ASKED, "epsilon": 1.0}, _BOTH, _ANN, parts=0),
    GROUPED,
    Crowd(
        "two items in order",
        {**_ASKED, "k": 2, "ordered": True, "domain": ["a", "b", "c"]},
        (*_BOTH, Row("bob", "c")),
        (Row("ann", "c"),),
    ),
    Crowd("the lowest", {**_ASKED, "lowest": True}, _BOTH, _ANN),
    VALUES,
    Crowd(
        "values of one of two items per person",
        {**_ASKED, "k": 2, "mechanism": "laplace", "values": True, "max_items_per_person": 1},
        _BOTH,
        (Row("ann", "a"), Row("ann", "b")),
    ),
    Crowd(
        "sums of clipped amounts",
        {**_ASKED, "value": "amount", "clip": (0, 2)},
        tuple(row._replace(amount=2.0) for row in _BOTH),
        (Row("ann", "a", amount=1e6), Row("ann", "a", amount=5.0)),
    ),
    Crowd(
        "a period",
        {**_ASKED, "time": "day", "period": PERIOD},
        _BOTH,
        (Row("ann", "a"), Row("ann", "b", day=BEFORE)),
    ),
    Crowd("one of two groups per person", _ASKED, (), (Row("ann", "a"), Row("ann", "a", part=1)), parts=2),
    Crowd(
        "two groups per person",
        {**_ASKED, "max_groups_per_person": 2},
        (),
        (Row("ann", "a"), Row("ann", "a", part=1)),
        parts=2,
    ),
    UNKNOWN,
    CHOSEN,
    Crowd(
        "a domain by its number",
        {"k": 1, "epsilon": 1.0, "delta": 0.1, "domain": 100, "max_items_per_person": 1},
        (),
        (Row("ann", "own"), Row("ann", "another")),
    ),
    Crowd(
        "discovery",
        {"epsilon": 1.0, "delta": 0.1, "max_items_per_person": 1},
        (),
        (Row("ann", "own"), Row("ann", "another")),
        discovers=True,
    ),
    BROKEN,
]


def _table(rows: list[dict[str, Any]]) -> Any:
    import pyarrow

    kinds = {"shop": "string", "item": "string", "person": "string", "amount": "float64", "day": "date32"}
    return pyarrow.Table.from_pylist(rows, pyarrow.schema(list(kinds.items())))


def _csv(folder: Path, name: str, rows: list[dict[str, Any]]) -> dict[str, Any]:
    from pyarrow import csv

    csv.write_csv(_table(rows), folder / f"{name}.csv")
    return {"table": folder / f"{name}.csv"}


def _duckdb(folder: Path, name: str, rows: list[dict[str, Any]]) -> dict[str, Any]:
    import duckdb

    file = folder / f"{name}.duckdb"
    with duckdb.connect(str(file)) as connection:
        connection.register("given", _table(rows))
        connection.execute(f"CREATE OR REPLACE TABLE {name} AS SELECT * FROM given")
    return {"table": f"duckdb://{file}", "table_name": name}


def _postgresql(url: str, name: str, rows: list[dict[str, Any]]) -> dict[str, Any]:
    import psycopg

    columns = "shop text, item text, person text, amount double precision, day date"
    with psycopg.connect(url, autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute(f"DROP TABLE IF EXISTS {name}")
        cursor.execute(f"CREATE TABLE {name} ({columns})")
        with cursor.copy(f"COPY {name} FROM STDIN") as copy:
            for row in rows:
                copy.write_row(tuple(row.values()))
    return {"table": url, "table_name": name}


def _spark(session: Any, folder: Path, name: str, rows: list[dict[str, Any]]) -> dict[str, Any]:
    import pyarrow.parquet

    pyarrow.parquet.write_table(_table(rows), folder / f"{name}.parquet")
    return {"table": session.read.parquet(str(folder / f"{name}.parquet"))}


WANTED = {"PostgreSQL": ("pgserver", "psycopg"), SPARK: ("pyspark",)}
"""The packages that an engine needs."""


@contextlib.contextmanager
def open_engines(*, quick: bool) -> Iterator[tuple[dict[str, Engine], dict[str, str]]]:
    """Yield the engines that can be had here, and why others cannot; tables live until the end of the block."""
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="dpselect-audit-")))
        engines: dict[str, Engine] = {"CSV": partial(_csv, folder)}
        skipped: dict[str, str] = {}
        if quick:
            yield engines, dict.fromkeys(("DuckDB", *WANTED), "left out by --quick")
            return
        engines["DuckDB"] = partial(_duckdb, folder)
        for name, packages in WANTED.items():
            missing = [package for package in packages if find_spec(package) is None]
            if missing:
                skipped[name] = f"{' and '.join(missing)} not installed; pip install 'dpselect[test]'"
                continue
            try:
                engines[name] = _started(name, stack, folder)
            except Exception as error:
                skipped[name] = f"it did not start ({type(error).__name__})"
        yield engines, skipped


def _started(name: str, stack: contextlib.ExitStack, folder: Path) -> Engine:
    if name == "PostgreSQL":
        return partial(_postgresql, stack.enter_context(servers.postgresql()))
    return partial(_spark, stack.enter_context(servers.spark()), folder)


FULL, FULL_OF_FILES = Effort(1600, 1, 0), Effort(1600, 1, 200)


def table_probes(engines: Mapping[str, Engine], *, quick: bool) -> list[Probe]:
    """Return what is asked about tables in these engines; only files are asked one answer at a time."""
    probes = []
    for door, engine in engines.items():
        effort = FULL_OF_FILES if door == "CSV" and not quick else FULL
        crowds = [GROUPED, VALUES, UNKNOWN, BROKEN] if quick else CROWDS
        probes += [
            each.probe(f"top, {door}", engine, effort)
            for each in crowds
            if each.parts or each.discovers or effort.single_calls
        ]
    return probes
