"""Numbers on the command line; what is none is left as text, for the package to refuse in its own words."""

from __future__ import annotations

from typing import Any


def whole_number(text: Any) -> Any:
    """Return a whole number, or the text itself."""
    try:
        return int(text)
    except ValueError:
        return text


def number(text: Any) -> Any:
    """Return a number, or the text itself."""
    try:
        return float(text)
    except ValueError:
        return text
