"""TOML files: what they state, and where a key stands in the text, so that errors can name the line."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from dpselect.errors import InvalidInput

_TABLE_HEADER = re.compile(r"\s*\[{1,2}\s*([^\[\]]+?)\s*\]{1,2}\s*(#.*)?$")
_KEY = re.compile(r"""\s*((?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*'))*)\s*=""")
_KEY_PART = re.compile(r"""[A-Za-z0-9_-]+|"([^"]*)"|'([^']*)'""")

Place = tuple[str, ...]


def read_toml(path: Path) -> tuple[dict[str, Any], str]:
    """Return what a TOML file states, and its text.

    Raises
    ------
    InvalidInput
        If the file cannot be read or is not valid; TOML limits integers to 64 bits.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise InvalidInput("config", str(path), "there is no such file; check the path") from None
    except (OSError, UnicodeDecodeError):
        raise InvalidInput("config", str(path), "must be a TOML file in UTF-8 that can be read") from None
    problem = "an integer must be within 64 bits"
    try:
        stated = tomllib.loads(text)
        if not _has_huge_integer(stated):
            return stated, text
    except tomllib.TOMLDecodeError as error:
        problem = str(error)
    except ValueError:  # Python does not read integers of thousands of digits
        pass
    except RecursionError:
        problem = "it is nested too deeply"
    raise InvalidInput("config", str(path), f"it is not valid TOML: {problem}")


def _has_huge_integer(value: Any) -> bool:
    if isinstance(value, dict | list):
        return any(map(_has_huge_integer, value.values() if isinstance(value, dict) else value))
    return isinstance(value, int) and not -(2**63) <= value < 2**63


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
