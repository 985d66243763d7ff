"""What a figure or table of a paper is: points to compute, rows of numbers, a picture, and a verdict."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dpselect.reproduce.data import Data
from dpselect.reproduce.verdict import Verdict

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Point = dict[str, Any]
"""The settings of one step of the work, as plain data: whatever changes its result is in here."""

Row = dict[str, Any]
"""One line of the numbers, as plain data."""


def shown(value: float) -> str:
    """Return a number to three digits, without an exponent."""
    return f"{float(f'{value:.3g}'):,.10g}"


@dataclass(frozen=True)
class Study:
    """A figure or table.

    `points(quick)` lists the steps, `compute(point, data)` returns the rows of one of them, and `judge` and `draw` see
    the rows of all. `data` names the data sets that it reads, `claim` says what the paper reports, in our words.
    """

    name: str
    title: str
    claim: str
    data: Sequence[str]
    points: Callable[[bool], list[Point]]
    compute: Callable[[Point, Data], Iterable[Row]]
    judge: Callable[[list[Row]], Verdict]
    draw: Callable[[list[Row]], Figure] | None = None
    kept_as: str = ""
    """Where finished points are kept; studies that look at the same points name the same place."""


def seed_of(point: Point) -> int:
    """Return the seed of a point's draws: the same for the same settings, whatever was computed before."""
    return int.from_bytes(hashlib.sha256(key_of(point).encode()).digest()[:8])


def key_of(point: Point) -> str:
    """Return the settings as text, in one spelling."""
    return json.dumps(point, ensure_ascii=False, sort_keys=True)


@dataclass(frozen=True)
class Paper:
    """A paper: its short name, what it is about, and the studies that can be computed again."""

    name: str
    title: str
    studies: Sequence[Study]
