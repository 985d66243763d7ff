"""The public domain: which items could be answered, known before any row is read."""

from __future__ import annotations

import enum
import operator
import os
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from dpselect.errors import InvalidInput, plain

_ACCEPTED = (
    "a list, array or table column of the possible items, the path of a file that lists them, table:NAME, "
    "or their number as a whole number of at least 1 is needed"
)


MOST_ITEMS = 10**300

_TABLE = "table:"


class Unknown(enum.Enum):
    """The type of `UNKNOWN`."""

    UNKNOWN = "unknown"

    def __repr__(self) -> str:
        """Show the public name."""
        return "dpselect.UNKNOWN"


UNKNOWN = Unknown.UNKNOWN
"""The domain of someone who cannot say which items are possible."""


@dataclass(frozen=True)
class Unseen:
    """An item of the domain that nobody in the table has: which one cannot be told, only that it is one of them.

    `number` counts the unseen items within one answer: 1, 2, …
    """

    number: int

    def __str__(self) -> str:
        """Name the item as people read it."""
        return f"(unseen item {self.number})"

    def to_json_value(self) -> dict[str, int]:
        """Return the item as plain data for JSON."""
        return {"unseen": self.number}


@dataclass(frozen=True)
class Domain:
    """Exactly one of: a public number of items, a file or table that lists them, the items themselves, or unknown.

    `labels` are the caller's own objects when a Python collection was given, so that the answer can return them;
    `table` is a frame or Ibis table whose column lists the items; `table_name` names one beside the table of rows.
    `column` names that column, if the caller did; without a `header` every line of a text file is an item. `given` is
    the argument itself, by which a list is recognised as part of the rows.
    """

    number: int | None = None
    path: Path | None = None
    labels: list[Any] | None = None
    table: Any = None
    table_name: str | None = None
    unknown: bool = False
    column: str | None = None
    header: bool = True
    given: Any = field(default=None, compare=False, repr=False)

    @classmethod
    def of(cls, given: Any, *, column: str | None = None, header: bool = True) -> Domain:
        """Understand the arguments `domain`, `domain_column` and `domain_header` without looking at any private row."""
        kind = cls._of_kind(given)
        _check_column(kind, column, header)
        return replace(kind, column=column, header=header, given=given)

    @classmethod
    def _of_kind(cls, given: Any) -> Domain:
        if given is UNKNOWN:
            return cls(unknown=True)
        if isinstance(given, str) and given.startswith(_TABLE):
            return cls(table_name=given.removeprefix(_TABLE))
        if isinstance(given, str | os.PathLike):
            return cls(path=Path(given))
        number = _whole_number(given)
        if number is not None:
            if number < 1:
                raise InvalidInput("domain", given, "the number of possible items must be at least 1")
            if number > MOST_ITEMS:
                raise InvalidInput("domain", plain("a number beyond 10^300"), "at most 10^300 items are needed")
            return cls(number=number)
        if hasattr(type(given), "as_table"):  # a column of Ibis; its engine reads it, like that of a table
            return cls(table=given.as_table())
        if hasattr(type(given), "columns") or hasattr(type(given), "column_names"):
            return cls(table=given)
        labels = _labels(given)
        if not labels:
            raise InvalidInput("domain", plain("an empty list"), "at least one possible item is needed")
        return cls(labels=labels)


def _check_column(domain: Domain, column: Any, header: Any) -> None:
    """Refuse what is said about the column of a list that has none."""
    if column is not None:
        if not isinstance(column, str) or not column:
            raise InvalidInput("domain_column", column, "the name of a column is needed")
        if domain.path is None and domain.table is None and domain.table_name is None:
            raise InvalidInput("domain_column", column, "only a file or table of items has columns; leave it out")
    if not isinstance(header, bool):
        raise InvalidInput("domain_header", header, "True or False is needed")
    if not header and (domain.path is None or column is not None):
        why = "only a file can lack a header" if column is None else f"the column {column!r} is named, so there is one"
        raise InvalidInput("domain_header", plain("no header"), f"{why}; leave it out")


def _whole_number(given: Any) -> int | None:
    if isinstance(given, bool):
        raise InvalidInput("domain", given, _ACCEPTED)
    if getattr(given, "ndim", 0):
        return None
    try:
        return operator.index(given)
    except TypeError:
        return None


def _labels(given: Any) -> list[Any]:
    """List the items of a Python collection, array, Series or Arrow column, without the nulls among them."""
    if isinstance(given, bytes | bytearray):
        raise InvalidInput("domain", given, _ACCEPTED)
    if getattr(given, "ndim", 1) != 1:
        raise InvalidInput("domain", plain(f"an array of {given.ndim} dimensions"), "one dimension is needed")
    if isinstance(given, np.ndarray) and given.dtype.kind == "M":
        given = _times(given)
    for method in ("to_pylist", "to_list", "tolist"):
        if hasattr(given, method):
            given = getattr(given, method)()
            break
    if not isinstance(given, Collection):
        raise InvalidInput("domain", plain(f"an object of type {type(given).__name__}"), _ACCEPTED)
    return [label for label in given if not is_null(label)]


def _times(given: Any) -> Any:
    """Return times in microseconds, which Python has too, unless that would round them.

    NumPy would list times in nanoseconds as whole numbers.
    """
    microseconds = given.astype("datetime64[us]")
    return microseconds if (np.isnat(given) | (microseconds == given)).all() else list(given)


def is_null(value: Any) -> bool:
    """Tell whether a Python object stands for "no value": None, NaN, or pandas' NA and NaT."""
    if value is None:
        return True
    if isinstance(value, str):
        return False
    try:
        return bool(value != value)
    except (TypeError, ValueError):
        return type(value).__name__ == "NAType"
