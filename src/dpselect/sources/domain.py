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
from dpselect.sources.frames import is_null

_REQUIREMENTS = {
    "domain": "must be a list, array or table column of the possible items, the path of a file that lists them, "
    "table:NAME, or their number as a positive integer",
    "groups": "must be a list, array or table column of the groups, the path of a file that lists them, or table:NAME",
}
"""What is accepted, by the argument that states a list."""

_NOUNS = {"domain": "item", "groups": "group"}
"""What is listed, by the argument that states a list."""

_LARGEST_NUMBER = 10**300

_TABLE = "table:"


class Unknown(enum.Enum):
    """The type of `UNKNOWN`."""

    UNKNOWN = "unknown"

    def __repr__(self) -> str:
        """Show the public name."""
        return "dpselect.UNKNOWN"


UNKNOWN = Unknown.UNKNOWN
"""The domain if nobody can list the possible items."""


@dataclass(frozen=True)
class Domain:
    """The possible items: a public number, a file or table that lists them, the items themselves, or unknown.

    Exactly one of `number`, `path`, `labels`, `table`, `table_name` and `unknown` is set.

    Attributes
    ----------
    number : int or None
        How many items are possible.
    path : Path or None
        The file that lists them.
    labels : list or None
        The caller's own objects, which the answer returns.
    table : object
        A frame or Ibis table with a column that lists the items.
    table_name : str or None
        The name of such a table in the engine of the rows.
    unknown : bool
        Whether nobody can list the items.
    column : str or None
        The column that lists the items, if the caller named it.
    header : bool
        Whether the first line of a text file is a header; otherwise it is an item.
    argument : str
        The argument that states it, for messages: "domain", or "groups" for a list of groups.
    given : object
        The argument itself, by which a part of the rows is recognised.

    Examples
    --------
    >>> Domain.of(["Heat", "Up", None]).labels
    ['Heat', 'Up']
    >>> Domain.of("films.csv", column="title").path.name
    'films.csv'
    """

    number: int | None = None
    path: Path | None = None
    labels: list[Any] | None = None
    table: Any = None
    table_name: str | None = None
    unknown: bool = False
    column: str | None = None
    header: bool = True
    argument: str = "domain"
    given: Any = field(default=None, compare=False, repr=False)

    @property
    def noun(self) -> str:
        """What is listed: "item" or "group"."""
        return _NOUNS[self.argument]

    @classmethod
    def of(cls, given: Any, *, column: str | None = None, header: bool = True, argument: str = "domain") -> Domain:
        """Return the domain of the arguments `domain`, `domain_column` and `domain_header`; no file is opened."""
        kind = cls._of_kind(given, argument)
        _check_column(kind, column, header)
        return replace(kind, column=column, header=header, argument=argument, given=given)

    @classmethod
    def _of_kind(cls, given: Any, argument: str) -> Domain:
        if given is UNKNOWN:
            return cls(unknown=True)
        if isinstance(given, str) and given.startswith(_TABLE):
            return cls(table_name=given.removeprefix(_TABLE))
        if isinstance(given, str | os.PathLike):
            return cls(path=Path(given))
        number = _whole_number(given, argument)
        if number is not None:
            if number < 1:
                raise InvalidInput(argument, given, "must be at least 1")
            if number > _LARGEST_NUMBER:
                raise InvalidInput(argument, plain("a larger number"), "must be at most 10^300")
            return cls(number=number)
        if hasattr(type(given), "as_table"):  # a column of Ibis
            return cls(table=given.as_table())
        if hasattr(type(given), "columns") or hasattr(type(given), "column_names"):
            return cls(table=given)
        labels = _labels(given, argument)
        if not labels:
            raise InvalidInput(argument, plain("an empty list"), f"must have at least one {_NOUNS[argument]}")
        return cls(labels=labels)


def _check_column(domain: Domain, column: Any, header: Any) -> None:
    """Refuse `domain_column` or `domain_header` for a domain without columns."""
    if column is not None:
        if not isinstance(column, str) or not column:
            raise InvalidInput("domain_column", column, "must be the name of a column")
        if domain.path is None and domain.table is None and domain.table_name is None:
            raise InvalidInput("domain_column", column, "must be left out unless the domain is a file or table")
    if not isinstance(header, bool):
        raise InvalidInput("domain_header", header, "must be True or False")
    if not header and (domain.path is None or column is not None):
        why = "unless the domain is a file" if column is None else f"if the column {column!r} is named"
        raise InvalidInput("domain_header", header, f"must be left out {why}")


def _whole_number(given: Any, argument: str) -> int | None:
    if isinstance(given, bool):
        raise InvalidInput(argument, given, _REQUIREMENTS[argument])
    if getattr(given, "ndim", 0):
        return None
    try:
        return operator.index(given)
    except TypeError:
        return None


def _labels(given: Any, argument: str) -> list[Any]:
    """Return the items of a Python collection, array, Series or Arrow column that are not null."""
    if isinstance(given, bytes | bytearray):
        raise InvalidInput(argument, given, _REQUIREMENTS[argument])
    if getattr(given, "ndim", 1) != 1:
        raise InvalidInput(argument, plain(f"an array of {given.ndim} dimensions"), "must have one dimension")
    if isinstance(given, np.ndarray) and given.dtype.kind == "M":
        given = _times(given)
    for method in ("to_pylist", "to_list", "tolist"):
        if hasattr(given, method):
            given = getattr(given, method)()
            break
    if not isinstance(given, Collection):
        raise InvalidInput(argument, plain(f"an object of type {type(given).__name__}"), _REQUIREMENTS[argument])
    return [label for label in given if not is_null(label)]


def _times(given: Any) -> Any:
    """Return times in microseconds, which `tolist` turns into datetimes, unless that would round them.

    NumPy would list times in nanoseconds as integers.
    """
    microseconds = given.astype("datetime64[us]")
    return microseconds if (np.isnat(given) | (microseconds == given)).all() else list(given)
