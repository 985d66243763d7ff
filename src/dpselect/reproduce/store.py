"""Numbers that outlive an interruption: the rows of finished points, written whole or not at all."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path

from dpselect.errors import InvalidInput
from dpselect.reproduce.study import Point, Row, key_of
from dpselect.writing import write_whole


def write_result(path: Path, text: str | bytes) -> None:
    """Write a file of results, whole or not at all, in a folder that is made if there is none."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, text.encode() if isinstance(text, str) else text)
    except OSError:
        raise InvalidInput("out", str(path.parent), "a folder with space and permission to write is needed") from None


class Store:
    """The finished points of a study, kept in a small file beside its numbers.

    `fingerprint` names all that the numbers depend on besides a point's own settings, the data above all; whatever was
    kept under another one is dropped.
    """

    def __init__(self, path: Path, fingerprint: str) -> None:
        self.path = path
        self.fingerprint = fingerprint
        self._finished = self._load()

    def rows(self, point: Point) -> list[Row] | None:
        """Return the rows of a finished point, None for one that is still to be computed."""
        return self._finished.get(key_of(point))

    def keep(self, point: Point, rows: list[Row]) -> None:
        """Keep the rows of a point, beside those that another run may have finished meanwhile."""
        self._finished = {**self._load(), **self._finished, key_of(point): rows}
        kept = {"fingerprint": self.fingerprint, "finished": self._finished}
        write_result(self.path, json.dumps(kept, ensure_ascii=False, indent=0))

    def _load(self) -> dict[str, list[Row]]:
        try:
            kept = json.loads(self.path.read_text(encoding="utf-8"))
            return dict(kept["finished"]) if kept["fingerprint"] == self.fingerprint else {}
        except (OSError, ValueError, KeyError, TypeError):
            return {}


def as_csv(rows: Sequence[Row]) -> str:
    """Return rows as CSV text; a column that a row does not have stays empty."""
    columns = list(dict.fromkeys(column for row in rows for column in row))
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, fieldnames=columns, lineterminator="\n", restval="")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()
