"""Computes how good the answers on given scores are, in a process of its own that can be ended at any moment.

It reads a task from standard input and writes a curve to standard output, both as JSON: see `estimates`.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import replace
from typing import Any

from dpselect import forecast
from dpselect.mechanisms import described_mechanism
from dpselect.scores import Scores

MOST_MEMORY = 4 << 30
"""Bytes of memory that a process may ask for: some curves need an array of k times the number of counts."""

_DRAWS = 400
"""Simulated answers where the expected number of right items has no formula."""


def curve_of(task: dict[str, Any]) -> dict[str, Any]:
    """Return the expected number of right items at each ε."""
    mechanism: Any = described_mechanism(task["mechanism"])
    whole = all(score.is_integer() for score in task["scores"])
    scores = [int(score) for score in task["scores"]] if whole else task["scores"]
    table = Scores.from_histogram(*_sorted(scores, task["items"]))
    at: float = task["at"]

    def right(epsilon: float) -> float:
        figure = forecast.forecast(table, replace(mechanism, epsilon=epsilon * task["ratio"]), draws=_DRAWS).correct
        return 0.0 if figure is None else float(figure.value)

    points = [{"epsilon": each, "value": right(each)} for each in task["epsilons"]]
    return {
        "kind": "right",
        "x": "epsilon",
        "points": points,
        "value_label": f"items of {mechanism.k} that are right, on average",
        "at": {"epsilon": at, "value": right(at)},
    }


def _sorted(scores: list[Any], items: list[int]) -> tuple[list[Any], list[int]]:
    """Return distinct scores, highest first, and how many items have each."""
    together: dict[Any, int] = {}
    for score, number in zip(scores, items, strict=True):
        together[score] = together.get(score, 0) + number
    ordered = sorted(together, reverse=True)
    return ordered, [together[score] for score in ordered]


if __name__ == "__main__":
    if hasattr(os, "nice"):
        os.nice(19)  # releases come first
    if sys.platform == "linux":  # other systems do not hold to it
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    json.dump(curve_of(json.load(sys.stdin)), sys.stdout)
