"""The frame of the studies: what a figure or table of a paper consists of, and how its claim is judged.

A verdict counts the settings in which a paper's claim is true as stated, false, or undecided because the draws do not
tell; it names those in which it is false. It speaks of the settings that were computed only.
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
    """Whether a claim is true in one setting; `group` and `at` together name it, as "Foods, k =" and "5".

    `held` is None if the claim was drawn and the draws do not tell (`judging.py`).
    """

    group: str
    at: str
    held: bool | None

    def __post_init__(self) -> None:
        """Make `held` a plain bool: a comparison of NumPy's numbers is not, and verdicts count by identity."""
        if self.held is not None:
            object.__setattr__(self, "held", bool(self.held))


@dataclass(frozen=True)
class Verdict:
    """In how many settings a paper's claim is true or false, our own figure, and a paragraph with the numbers.

    Parameters
    ----------
    held : int
        Number of settings in which the claim is true.
    settings : int
        Number of settings that were computed.
    text : str
        The paragraph with the numbers.
    figure : str
        Our own number for the claim, in a few words.
    undecided : int
        Number of settings in which the draws do not tell.
    only : str
        What was computed, if settings were left out; such as "k = 100 only".

    Examples
    --------
    >>> Verdict(3, 4, "").word
    'holds in 3 of 4 settings, fails in 1'
    >>> Verdict(3, 4, "", undecided=1, only="k = 100 only").word
    'holds in 3 of 4 settings, undecided in 1 (k = 100 only)'
    """

    held: int
    settings: int
    text: str
    figure: str = ""
    undecided: int = 0
    only: str = ""

    @property
    def failed(self) -> int:
        """Number of settings in which the claim is false."""
        return self.settings - self.held - self.undecided

    @property
    def holds(self) -> bool:
        """Whether the claim is true in every setting that was computed."""
        return self.held == self.settings

    @property
    def word(self) -> str:
        """The verdict in a few words: the most frequent answer first."""
        found = {"holds": self.held, "fails": self.failed, "undecided": self.undecided}
        (most, number), *others = sorted(found.items(), key=lambda one: -one[1])
        if number == self.settings:
            places = "" if number == 1 else f" in all {number} settings"
        else:
            places = f" in {number} of {self.settings} settings"
        rest = "".join(f", {answer} in {count}" for answer, count in others if count)
        return f"{most}{places}{rest}{f' ({self.only})' if self.only else ''}"


def counted(checks: Sequence[Claim], figure: str, text: str) -> Verdict:
    """Return the verdict on a claim; settings in which it is false are named after the text."""
    if not checks:
        raise ValueError("a claim needs at least one setting")
    named = exceptions(checks)
    held, undecided = (sum(check.held is answer for check in checks) for answer in (True, None))
    return Verdict(held, len(checks), f"{text} Exceptions: {named}." if named else text, figure, undecided)


def exceptions(checks: Sequence[Claim]) -> str:
    """Name the settings in which a claim is false, by group; three or more in a row as "5 to 25"."""
    groups: dict[str, list[Claim]] = {}
    for check in checks:
        groups.setdefault(check.group, []).append(check)
    named = []
    for group, own in groups.items():
        runs = [[check.at for check in run] for false, run in groupby(own, lambda check: check.held is False) if false]
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
    short : str
        The claim in a few words, for the line that names claim, figure and verdict.
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
    quick_only : str
        What a quick run computes if it leaves settings out, such as "k = 10, 100 only".

    Examples
    --------
    >>> from dpselect.reproduce import PAPERS
    >>> [study.name for study in PAPERS["oneshot"].studies]
    ['theorem-2.2', 'theorem-2.3']
    """

    name: str
    title: str
    claim: str
    short: str
    data: Sequence[str]
    points: Callable[[bool], list[Point]]
    compute: Callable[[Point, Data], Iterable[Row]]
    judge: Callable[[list[Row]], Verdict]
    draw: Callable[[list[Row]], Figure] | None = None
    kept_as: str = ""
    quick_only: str = ""


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


def seconds_of_selection(mechanism: Mechanism, counts: Array, point: Point) -> list[float]:
    """Return the processor times of `point["trials"]` seeded selections, from shuffled counts to items, least first."""
    shuffled = np.random.default_rng(0).permutation(counts)
    return seconds_of(lambda trial: mechanism.select(shuffled, seed=seed_of(point) % 2**32 + trial), point["trials"])


def seconds_of(task: Callable[[int], object], trials: int) -> list[float]:
    """Return the processor times of a task that is given the number of its trial, least first."""
    seconds = []
    for trial in range(trials):
        started = time.process_time()
        task(trial)
        seconds.append(time.process_time() - started)
    return sorted(seconds)


def summary(ordered: Sequence[float]) -> tuple[float, float, float]:
    """Return the least, the median and the largest of ordered numbers."""
    return ordered[0], ordered[len(ordered) // 2], ordered[-1]
