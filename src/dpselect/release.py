"""A release: what was published, and what was promised about it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import date, time
from typing import Any

import numpy as np

from dpselect.mechanisms.base import Mechanism
from dpselect.privacy.guarantee import Guarantee

PUBLIC, NUMBER, UNKNOWN, ROWS = "public", "number", "unknown", "rows"


@dataclass(frozen=True)
class StatedDomain:
    """What the caller stated about the items that could be answered, on which the guarantee rests.

    `stated` is "public" where the items themselves were, "number" where only their number was, "unknown" where which
    items exist is private too, and "rows" where the rows name them. `items` is their number where that was stated, and
    otherwise None: it would be private.
    """

    items: int | None
    stated: str

    def __str__(self) -> str:
        """Say it in words."""
        if self.items is None:
            return "named by the rows" if self.stated == ROWS else "unknown; which items exist is private"
        number = f"{self.items:,}" if self.items < 10**15 else f"{self.items:.0e}"
        items = f"{number} item{'' if self.items == 1 else 's'}"
        return f"{items}, stated as public" if self.stated == PUBLIC else f"{items}, only their number stated as public"

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return {"items": self.items, "stated": self.stated}


@dataclass(frozen=True)
class Release:
    """The chosen items with their guarantee; everything in it may be published.

    `ordered` says whether the order of `items` is part of the private output; if not, it is random. `secure` is False
    when a seed was given: whoever knows the seed can undo the noise, so such a release protects nobody.
    Where noisy scores were asked for, `values` holds one for each item, in the order of `items`, and `intervals` a pair
    (low, high) for each that holds the true score with probability `confidence`; their cost is part of `guarantee`.
    `domain` says what was stated about the possible items.
    """

    items: list[Any]
    ordered: bool
    guarantee: Guarantee
    mechanism: Mechanism
    secure: bool
    values: list[Any] | None = None
    intervals: list[tuple[Any, Any]] | None = None
    confidence: float | None = None
    domain: StatedDomain | None = None

    @property
    def k(self) -> int:
        """How many items were asked for."""
        return self.mechanism.k

    @property
    def stopped(self) -> bool:
        """Whether fewer than k items are shown, because more would show too much; only where the domain is unknown."""
        return len(self.items) < self.k

    def to_dict(self) -> dict[str, Any]:
        """Return the release as plain data that json.dumps accepts."""
        data = {
            "items": [_plain(item) for item in self.items],
            "ordered": self.ordered,
            "values": self.values,
            "mechanism": self.mechanism.describe(),
            "guarantee": self.guarantee.to_dict(),
            "domain": None if self.domain is None else self.domain.to_dict(),
            "secure": self.secure,
            "k": self.k,
        }
        if self.mechanism.may_stop:
            data["stopped"] = self.stopped
        if self.intervals is not None:
            data["intervals"] = [list(interval) for interval in self.intervals]
            data["confidence"] = self.confidence
        return data


def _plain(item: Any) -> Any:
    """Return an item as JSON knows it; dates and times become ISO text, and what else JSON does not know its text."""
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
        return [_plain(part) for part in item]
    return item.isoformat() if isinstance(item, date | time) else str(item)
