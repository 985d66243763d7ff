"""The frame of the studies: what a figure or table of a paper consists of, and how its claim is judged.

A verdict counts the settings in which a paper's claim is true as stated, and names the others.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np

from dpselect import Mechanism
from dpselect._arrays import Array
from dpselect.reproduce.data import Data

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Point = dict[str, Any]
"""The settings of one step of a study, as plain data. Everything that changes the result is included."""

Row = dict[str, Any]
"""One row of the computed numbers, as plain data."""


@dataclass(frozen=True)
class Claim:
    """Whether a claim is true in one setting; `group` and `at` together name it, as "Foods, k =" and "5"."""

    group: str
    at: str
    held: bool


@dataclass(frozen=True)
class Verdict:
    """In how many settings a paper's claim is true, and a paragraph with the numbers.

    Parameters
    ----------
    held : int
        Number of settings in which the claim is true.
    settings : int
        Number of settings that were computed.
    text : str
        The paragraph with the numbers.

    Examples
    --------
    >>> Verdict(3, 4, "").word
    'holds in 3 of 4 settings'
    """

    held: int
    settings: int
    text: str

    @property
    def holds(self) -> bool:
        """Whether the claim is true in every setting."""
        return self.held == self.settings

    @property
    def word(self) -> str:
        """The verdict in a few words, for the start of the paragraph."""
        if self.holds:
            return "holds"
        share = f"{self.held} of {self.settings} settings"
        return f"holds in {share}" if 2 * self.held >= self.settings else f"does not hold; it is true in {share}"


def counted(checks: Sequence[Claim], text: str) -> Verdict:
    """Return the verdict on a claim; settings in which it fails are named after the text."""
    if not checks:
        raise ValueError("a claim needs at least one setting")
    named = exceptions(checks)
    return Verdict(sum(check.held for check in checks), len(checks), f"{text} Exceptions: {named}." if named else text)


def exceptions(checks: Sequence[Claim]) -> str:
    """Name the settings in which a claim fails, by group; three or more in a row as "5 to 25"."""
    groups: dict[str, list[Claim]] = {}
    for check in checks:
        groups.setdefault(check.group, []).append(check)
    named = []
    for group, own in groups.items():
        runs = [[check.at for check in run] for held, run in groupby(own, lambda check: check.held) if not held]
        places = [f"{run[0]} to {run[-1]}" if len(run) > 2 else ", ".join(run) for run in runs]
        if places:
            named.append(f"{group} {', '.join(places)}")
    return "; ".join(named)


@dataclass(frozen=True)
class Study:
    """A figure, table or theorem of a paper.

    Parameters
    ----------
    name : str
        Such as "figure-4"; also the name of the files.
    title : str
        What it shows.
    claim : str
        What the paper reports, in our words.
    data : sequence of str
        The data sets that it reads.
    points : callable
        `points(quick)` lists the steps.
    compute : callable
        `compute(point, data)` returns the rows of one step.
    judge : callable
        Returns the verdict from the rows of all steps.
    draw : callable, optional
        Returns the picture from the rows of all steps.
    kept_as : str
        Name of the file that caches finished points; studies with the same points share it. Default: `name`.

    Examples
    --------
    >>> from dpselect.reproduce import PAPERS
    >>> [study.name for study in PAPERS["oneshot"].studies]
    ['theorem-2.2', 'theorem-2.3']
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


@dataclass(frozen=True)
class Paper:
    """A paper: its short name, its subject, and the studies that can be computed again.

    Examples
    --------
    >>> from dpselect.reproduce import PAPERS
    >>> PAPERS["joint"].title
    'A joint exponential mechanism for top-k sequences'
    """

    name: str
    title: str
    studies: Sequence[Study]


def seed_of(point: Point) -> int:
    """Return the seed of a point's draws, which depends on its settings alone."""
    return int.from_bytes(hashlib.sha256(key_of(point).encode()).digest()[:8])


def key_of(point: Point) -> str:
    """Return the settings as text, always in the same form."""
    return json.dumps(point, ensure_ascii=False, sort_keys=True)


def seconds_of_selection(mechanism: Mechanism, counts: Array, point: Point) -> float:
    """Return the smallest processor time of `point["trials"]` seeded selections, from shuffled counts to items."""
    shuffled, seconds = np.random.default_rng(0).permutation(counts), []
    for trial in range(point["trials"]):
        started = time.process_time()
        mechanism.select(shuffled, seed=seed_of(point) % 2**32 + trial)
        seconds.append(time.process_time() - started)
    return min(seconds)
