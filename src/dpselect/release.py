"""A release: what was published, and what was promised about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dpselect.mechanisms.base import Mechanism
from dpselect.privacy.guarantee import Guarantee


@dataclass(frozen=True)
class Release:
    """The chosen items with their guarantee; everything in it may be published.

    `ordered` says whether the order of `items` is part of the private output; if not, it is random. `secure` is False
    when a seed was given: whoever knows the seed can undo the noise, so such a release protects nobody.
    """

    items: list[Any]
    ordered: bool
    guarantee: Guarantee
    mechanism: Mechanism
    secure: bool
    values: list[Any] | None = None

    @property
    def k(self) -> int:
        """How many items were asked for."""
        return self.mechanism.k

    def to_dict(self) -> dict[str, Any]:
        """Return the release as plain data that json.dumps accepts."""
        return {
            "items": [_plain(item) for item in self.items],
            "ordered": self.ordered,
            "values": self.values,
            "mechanism": self.mechanism.describe(),
            "guarantee": self.guarantee.to_dict(),
            "secure": self.secure,
            "k": self.k,
        }


def _plain(item: Any) -> Any:
    """Return an item as JSON knows it; what JSON does not know becomes its text."""
    if hasattr(item, "to_json_value"):
        return item.to_json_value()
    if hasattr(item, "item") and hasattr(item, "dtype"):
        item = item.item()
    if item is None or isinstance(item, str | int | float | bool):
        return item
    if isinstance(item, tuple | list):
        return [_plain(part) for part in item]
    return str(item)
