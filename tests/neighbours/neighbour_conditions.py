"""Conditions for `where`, each in SQL and in plain Python.

{amount}, {note} and {item} stand for the columns. A condition is null for a row where it fails, so that the row is left
out. NaN is greater than every number and equal to itself, as in all three engines.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from operator import eq, ge, gt, le, lt, ne
from typing import Any

from neighbour_tables import NUMBERS

Answer = bool | None


@dataclass(frozen=True)
class Condition:
    """What a condition says of a row, by its amount, note and item; `fails`: it can, and an engine may refuse it."""

    sql: str
    keeps: Callable[[dict[str, Any], str], Answer]
    fails: bool = False
    kinds: tuple[str, ...] = NUMBERS
    engines: tuple[str, ...] = ("duckdb", "postgres", "spark")

    @property
    def columns(self) -> list[str]:
        """The roles of the columns that it looks at."""
        return [role for role in ("amount", "note", "item") if f"{{{role}}}" in self.sql]


def conditions_of(engine: str) -> dict[str, Condition]:
    """Return the conditions that an engine understands, by their SQL."""
    return {condition.sql: condition for condition in _CONDITIONS if engine in condition.engines}


def _compare(left: Any, sign: Callable[[Any, Any], bool], right: Any) -> Answer:
    """Compare two values as the engines do."""
    if left is None or right is None:
        return None
    return sign(*((1, 0) if isinstance(value, float) and math.isnan(value) else (0, value) for value in (left, right)))


def _not(answer: Answer) -> Answer:
    return None if answer is None else not answer


def _both(left: Answer, right: Answer) -> Answer:
    return False if left is False or right is False else None if left is None or right is None else True


def _either(left: Answer, right: Answer) -> Answer:
    return _not(_both(_not(left), _not(right)))


def _amount(
    sql: str, sign: Callable[[Any, Any], bool], bound: float, change: Callable[[Any], Any] | None = None
) -> Condition:
    """Return a condition that compares the amount, or something computed from it, for which 64 bits may not do."""

    def keeps(row: dict[str, Any], engine: str) -> Answer:
        found = row["amount"] if change is None or row["amount"] is None else change(row["amount"])
        has_room = not isinstance(found, int) or -(2**63) <= found < 2**63
        # PostgreSQL fails where floats overflow; the others go on with an infinity.
        overflows = engine == "postgres" and found in (math.inf, -math.inf) and abs(row["amount"]) < math.inf
        return _compare(found, sign, bound) if has_room and not overflows else None

    return Condition(sql, keeps, fails=change is not None)


def _note(sql: str, keeps: Callable[[str], Answer]) -> Condition:
    return Condition(sql, lambda row, engine: None if row["note"] is None else keeps(row["note"]))


def _quotient(row: dict[str, Any], engine: str) -> Answer:
    if row["amount"] is None:
        return None
    amount = float(row["amount"])
    if amount == 0:  # DuckDB divides by zero as floats do
        return math.copysign(1, amount) > 0 if engine == "duckdb" else None
    return None if engine == "postgres" and abs(amount) < 1e-300 else _compare(10 / amount, gt, 2.9)


def _small(row: dict[str, Any], engine: str) -> Answer:
    amount = row["amount"]
    return None if amount is None or not -32_768 <= amount < 32_768 else round(amount) > 1


def _as_number(row: dict[str, Any], engine: str) -> Answer:
    try:
        found = None if row["note"] is None else float(row["note"])
    except ValueError:
        return None
    # The only infinity among the notes is 1e400, at which PostgreSQL fails.
    return None if engine == "postgres" and found == math.inf else _compare(found, gt, 0.5)


_CONDITIONS = [
    _amount("{amount} > 5", gt, 5),
    _amount("{amount} >= 5", ge, 5),
    _amount("{amount} < 5", lt, 5),
    _amount("{amount} <> 3", ne, 3),
    _amount("{amount} = 0", eq, 0),
    _amount("NOT {amount} <= 5", gt, 5),
    _amount("NOT ({amount} = 3)", ne, 3),
    _amount("{amount} + 0 > 5", gt, 5),
    _amount("ABS({amount}) >= 3", ge, 3, abs),
    _amount("-{amount} < 0", lt, 0, lambda amount: -amount),
    _amount("{amount} * 2 > 0", gt, 0, lambda amount: amount * 2),
    Condition("10.0 / {amount} > 2.9", _quotient, fails=True),
    Condition("CAST({amount} AS SMALLINT) > 1", _small, fails=True),
    Condition("{amount} IS NULL", lambda row, engine: row["amount"] is None),
    Condition("{amount} IS NOT NULL", lambda row, engine: row["amount"] is not None),
    Condition("{item} IS NOT NULL", lambda row, engine: row["item"] is not None),
    Condition("{note} IS NULL", lambda row, engine: row["note"] is None),
    Condition(
        "{amount} > 5 AND NOT isnan({amount})",
        lambda row, engine: _both(_compare(row["amount"], gt, 5), _not(row["amount"] != row["amount"])),
        kinds=("float",),
        engines=("duckdb", "spark"),
    ),
    Condition(
        "{amount} BETWEEN 0 AND 5",
        lambda row, engine: _both(_compare(row["amount"], ge, 0), _compare(row["amount"], le, 5)),
    ),
    Condition(
        "{amount} IN (0, 3)",
        lambda row, engine: _either(_compare(row["amount"], eq, 0), _compare(row["amount"], eq, 3)),
    ),
    Condition(
        "COALESCE({amount}, 9) > 5",
        lambda row, engine: _compare(9 if row["amount"] is None else row["amount"], gt, 5),
    ),
    Condition(
        "{note} = 'a' OR {amount} > 5",
        lambda row, engine: _either(_compare(row["note"], eq, "a"), _compare(row["amount"], gt, 5)),
    ),
    _note("{note} = 'a'", lambda note: note == "a"),
    _note("NOT {note} = 'a'", lambda note: note != "a"),
    _note("{note} LIKE 'a%'", lambda note: note.startswith("a")),
    _note("{note} IN ('a', '')", lambda note: note in ("a", "")),
    _note("LOWER({note}) = 'a'", lambda note: note in ("a", "A")),
    _note("LENGTH({note}) = 1", lambda note: len(note) == 1),
    Condition("CAST({note} AS FLOAT) > 0.5", _as_number, fails=True),
]
