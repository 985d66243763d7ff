"""Verdicts by plain counting: in how many of the settings computed is a paper's sentence true as it stands?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby


@dataclass(frozen=True)
class Check:
    """Whether a paper's sentence is true in one setting, which `group` and `at` name together: "Foods, k =" and "5"."""

    group: str
    at: str
    held: bool


@dataclass(frozen=True)
class Verdict:
    """In how many settings a paper's claim is true here, and a paragraph with the figures."""

    held: int
    settings: int
    text: str

    @property
    def holds(self) -> bool:
        """Whether the claim is true in every setting."""
        return self.held == self.settings

    @property
    def word(self) -> str:
        """Say it at the head of the paragraph."""
        if self.holds:
            return "holds"
        share = f"{self.held} of {self.settings} settings"
        return f"holds in {share}" if 2 * self.held >= self.settings else f"does not hold; it is true in {share}"


def counted(checks: Sequence[Check], text: str) -> Verdict:
    """Return the verdict on a claim, whatever the figure, with every exception named after the text."""
    if not checks:
        raise ValueError("a claim is judged by at least one setting")
    named = exceptions(checks)
    return Verdict(sum(check.held for check in checks), len(checks), f"{text} Exceptions: {named}." if named else text)


def exceptions(checks: Sequence[Check]) -> str:
    """Name the settings in which a claim fails, group by group; three or more in a row as "5 to 25"."""
    groups: dict[str, list[Check]] = {}
    for check in checks:
        groups.setdefault(check.group, []).append(check)
    named = []
    for group, own in groups.items():
        runs = [[check.at for check in run] for held, run in groupby(own, lambda check: check.held) if not held]
        places = [f"{run[0]} to {run[-1]}" if len(run) > 2 else ", ".join(run) for run in runs]
        if places:
            named.append(f"{group} {', '.join(places)}")
    return "; ".join(named)
