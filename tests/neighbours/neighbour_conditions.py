"""Conditions for `where`, each in SQL and in plain Python.

{amount}, {note} and {item} stand for the columns. A condition is null for a row where it fails, so that the row is left
out. NaN is greater than every number and equal to itself, as in all three engines.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from neighbour_tables import NUMBERS

Answer = bool | None
ENGINES = ("duckdb", "postgres", "spark")


@dataclass(frozen=True)
class Condition:
    """What a condition says of a row in an engine; `fails`: it can fail, and an engine may refuse it for that."""

    sql: str
    keeps: Callable[[dict[str, Any], str], Answer]
    kinds: tuple[str, ...] = NUMBERS
    engines: tuple[str, ...] = ENGINES
    fails: bool = False

    @property
    def columns(self) -> list[str]:
        """The roles of the columns that it looks at."""
        return [role for role in ("amount", "note", "item") if f"{{{role}}}" in self.sql]


def compare(left: Any, sign: Callable[[Any, Any], bool], right: Any) -> Answer:
    """Compare two values as the engines do."""
    return None if left is None or right is None else sign(_order(left), _order(right))


def _order(value: Any) -> tuple[Any, ...]:
    return (1,) if isinstance(value, float) and math.isnan(value) else (0, value)


def _not(answer: Answer) -> Answer:
    return None if answer is None else not answer


def _both(left: Answer, right: Answer) -> Answer:
    return False if left is False or right is False else None if left is None or right is None else True


def _either(left: Answer, right: Answer) -> Answer:
    return _not(_both(_not(left), _not(right)))


def _whole(value: Any) -> Any:
    """Return a result of arithmetic, or None where whole numbers of 64 bits have no room for it."""
    return None if isinstance(value, int) and not -(2**63) <= value < 2**63 else value


def _amount(sign: Callable[[Any, Any], bool], bound: float) -> Callable[[dict[str, Any], str], Answer]:
    return lambda row, engine: compare(row["amount"], sign, bound)


def _computed(
    change: Callable[[Any], Any], sign: Callable[[Any, Any], bool], bound: float
) -> Callable[[dict[str, Any], str], Answer]:
    """Return what compares something computed from the amount."""
    return lambda row, engine: compare(None if row["amount"] is None else _whole(change(row["amount"])), sign, bound)


def _note(answer: Callable[[str], Answer]) -> Callable[[dict[str, Any], str], Answer]:
    return lambda row, engine: None if row["note"] is None else answer(row["note"])


def _quotient(row: dict[str, Any], engine: str) -> Answer:
    if row["amount"] is None:
        return None
    amount = float(row["amount"])
    if amount == 0:
        # DuckDB divides by zero as floats do; decimals and whole numbers have no negative zero.
        return math.copysign(1, amount) > 0 if engine == "duckdb" else None
    return None if engine == "postgres" and 0 < abs(amount) < 1e-300 else compare(10 / amount, operator.gt, 2.9)


def _small(row: dict[str, Any], engine: str) -> Answer:
    amount = row["amount"]
    return None if amount is None or not -32_768 <= amount < 32_768 else round(amount) > 1


def _as_number(note: str) -> Answer:
    try:
        return compare(float(note), operator.gt, 0.5)
    except ValueError:
        return None


_ALL = [
    Condition("{amount} > 5", _amount(operator.gt, 5)),
    Condition("{amount} >= 5", _amount(operator.ge, 5)),
    Condition("{amount} < 5", _amount(operator.lt, 5)),
    Condition("{amount} <> 3", _amount(operator.ne, 3)),
    Condition("{amount} = 0", _amount(operator.eq, 0)),
    Condition("NOT {amount} <= 5", _amount(operator.gt, 5)),
    Condition("NOT ({amount} = 3)", _amount(operator.ne, 3)),
    Condition("{amount} + 0 > 5", _amount(operator.gt, 5)),
    Condition(
        "{amount} > 5 AND NOT isnan({amount})",
        lambda row, engine: _both(compare(row["amount"], operator.gt, 5), _not(row["amount"] != row["amount"])),
        kinds=("float",),
        engines=("duckdb", "spark"),
    ),
    Condition("{amount} IS NULL", lambda row, engine: row["amount"] is None),
    Condition("{amount} IS NOT NULL", lambda row, engine: row["amount"] is not None),
    Condition(
        "{amount} BETWEEN 0 AND 5",
        lambda row, engine: _both(compare(row["amount"], operator.ge, 0), compare(row["amount"], operator.le, 5)),
    ),
    Condition(
        "{amount} IN (0, 3)",
        lambda row, engine: _either(compare(row["amount"], operator.eq, 0), compare(row["amount"], operator.eq, 3)),
    ),
    Condition(
        "COALESCE({amount}, 9) > 5",
        lambda row, engine: compare(9 if row["amount"] is None else row["amount"], operator.gt, 5),
    ),
    Condition("ABS({amount}) >= 3", _computed(abs, operator.ge, 3), fails=True),
    Condition("-{amount} < 0", _computed(operator.neg, operator.lt, 0), fails=True),
    Condition("{amount} * 2 > 0", _computed(lambda amount: amount * 2, operator.gt, 0), fails=True),
    Condition("10.0 / {amount} > 2.9", _quotient, fails=True),
    Condition("CAST({amount} AS SMALLINT) > 1", _small, fails=True),
    Condition("{note} = 'a'", _note(lambda note: note == "a")),
    Condition("NOT {note} = 'a'", _note(lambda note: note != "a")),
    Condition("{note} IS NULL", lambda row, engine: row["note"] is None),
    Condition("{note} LIKE 'a%'", _note(lambda note: note.startswith("a"))),
    Condition("{note} IN ('a', '')", _note(lambda note: note in ("a", ""))),
    Condition("LOWER({note}) = 'a'", _note(lambda note: note in ("a", "A"))),
    Condition("LENGTH({note}) = 1", _note(lambda note: len(note) == 1)),
    Condition("CAST({note} AS DOUBLE) > 0.5", _note(_as_number), fails=True),
    Condition(
        "{note} = 'a' OR {amount} > 5",
        lambda row, engine: _either(compare(row["note"], operator.eq, "a"), compare(row["amount"], operator.gt, 5)),
    ),
    Condition("{item} IS NOT NULL", lambda row, engine: row["item"] is not None),
]


def conditions_of(engine: str) -> dict[str, Condition]:
    """Return the conditions that an engine understands, by their SQL."""
    return {condition.sql: condition for condition in _ALL if engine in condition.engines}
