"""Items of an answer, as plain data that JSON can hold, and back."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, time
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Unseen:
    """An item that nobody in the table has, in the answer on a domain of which only the number of items was stated.

    Attributes
    ----------
    number : int
        Counts the unseen items of one answer: 1, 2, …

    Examples
    --------
    >>> print(Unseen(1))
    (unseen item 1)
    """

    number: int

    def __str__(self) -> str:
        """Return the item as shown in tables."""
        return f"(unseen item {self.number})"

    def to_json_value(self) -> dict[str, int]:
        """Return the item as data for JSON."""
        return {"unseen": self.number}


def plain_item(item: Any) -> Any:
    """Return an item as JSON can hold it: dates and times as ISO text, other objects as their str()."""
    if hasattr(item, "to_json_value"):
        return item.to_json_value()
    if isinstance(item, np.datetime64 | np.timedelta64):
        return str(item)  # item() would make nanoseconds a bare number
    if hasattr(item, "item") and hasattr(item, "dtype"):
        item = item.item()
    if isinstance(item, float) and not math.isfinite(item):
        return str(item)
    if item is None or isinstance(item, str | int | float | bool):
        return item
    if isinstance(item, tuple | list):
        return [plain_item(part) for part in item]
    return item.isoformat() if isinstance(item, date | time) else str(item)


def digest_of(texts: Iterable[str]) -> str:
    """Return a SHA-256 that is equal for equal sets of texts, whatever their order; in hexadecimal."""
    return hashlib.sha256(json.dumps(sorted(texts)).encode()).hexdigest()


def item_of(plain: Any) -> Any:
    """Return an item of plain data: an Unseen, a tuple for a list, and otherwise the text, number or boolean itself."""
    if isinstance(plain, dict):
        return Unseen(plain["unseen"])
    return tuple(item_of(part) for part in plain) if isinstance(plain, list) else plain
