"""Where a key stands in a TOML text, so that errors can name the line."""

from __future__ import annotations

import re

_TABLE_HEADER = re.compile(r"\s*\[\s*([^\[\]]+?)\s*\]\s*(#.*)?$")
_KEY = re.compile(r"""\s*((?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*'))*)\s*=""")
_KEY_PART = re.compile(r"""[A-Za-z0-9_-]+|"([^"]*)"|'([^']*)'""")

Place = tuple[str, ...]


class KeyLines:
    """Finds the line of a key in a TOML text, which `tomllib` does not tell."""

    def __init__(self, text: str) -> None:
        self._lines: dict[Place, int] = {}
        table: Place = ()
        for number, line in enumerate(text.splitlines(), start=1):
            if header := _TABLE_HEADER.match(line):
                table = _parts(header[1])
                self._lines.setdefault(table, number)
            elif key := _KEY.match(line):
                self._lines.setdefault((*table, *_parts(key[1])), number)

    def of(self, place: Place) -> int | None:
        """Return the line of a key, of the nearest key around it, or None."""
        while place:
            if place in self._lines:
                return self._lines[place]
            place = place[:-1]
        return None


def _parts(key: str) -> Place:
    return tuple(match[1] or match[2] or match[0] for match in _KEY_PART.finditer(key))
