"""What "auto" loses against the best mechanism in hindsight: exact forecasts on real data (docs/mechanisms.md).

Every mechanism answers every question of a grid: data set, k, ε, δ, limit of items per person, set or sequence. A class
is what the rule of "auto" may look at: δ or none, set or sequence, the limit.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import cache
from itertools import product
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import dpselect as dps
from dpselect._pictures import label_ends, look, set_title
from dpselect.mechanisms import mechanism_for
from dpselect.reproduce.data import Data, as_histogram
from dpselect.reproduce.drawing import line, log_axis, panels

TITLE = 'what "auto" loses against the best mechanism in hindsight'
HAS_QUICK = True

COUNTED = [
    *(f"dpbench/{name}" for name in ["ADULTFRANK", "HEPTH", "INCOME", "MEDCOST", "NETTRACE", "PATENT", "SEARCHLOGS"]),
    "books_goodreads",
    "netflix",
    "words_lt",
]
PAIRED = ["games_steam", "ml_latest_small", "foursquare_lbsn_Jakarta", "epinions", "fimi_retail"]
"""Data sets of counts, and of pairs of person and item, which can be cut to a limit of items per person."""

QUICK = ("dpbench/PATENT", "netflix", "games_steam")
"""The data sets of the quick form."""

LENGTHS = (3, 10, 30, 100)
EPSILONS = (0.03, 0.1, 0.3, 1.0, 3.0)
LIMITS = (1, 5)
LARGEST_REGRET = {"pure sets": 0.03}
OTHER_REGRET = 0.02
"""The mean F1 that "auto" may lose, by class."""

NOISES = ("exponential", "gumbel", "laplace", "logistic", "half-logistic")
TOLERANCE = 1e-4
DRAWS = 200
"""Relative error of the forecasts, and draws for the mechanism whose F1 has no exact form (peeling, exponential)."""


class Question(NamedTuple):
    """One question of the grid."""

    k: int
    epsilon: float
    delta: float
    limit: int | None
    ordered: bool

    @property
    def group(self) -> str:
        """The class of the question."""
        kind = ("with delta, " if self.delta else "pure ") + ("sequences" if self.ordered else "sets")
        return kind if self.limit is None else f"{kind}, m = {self.limit}"


def mechanisms(question: Question) -> dict[str, dps.Mechanism]:
    """Return all mechanisms that can answer a question, by label."""
    k, epsilon, delta, limit, ordered = question
    shared: dict[str, Any] = {"k": k, "epsilon": epsilon}
    listed: dict[str, dps.Mechanism] = {
        f"oneshot, {noise}": dps.OneShot(**shared, noise=noise, ordered=ordered) for noise in NOISES
    }
    if ordered:
        listed |= {"joint": dps.Joint(**shared), "peeling": dps.Peeling(**shared)}
    else:
        listed["canonical"] = dps.Canonical(**shared)
    if delta:
        gumbel = {**shared, "noise": "gumbel", "delta": delta}
        listed["gumbel, delta"] = dps.Peeling(**gumbel) if ordered else dps.OneShot(**gumbel)
    if limit is not None:
        listed["laplace"] = dps.Laplace(**shared, max_items_per_person=limit)
        if delta:
            listed["gaussian"] = dps.Gaussian(**shared, delta=delta, max_items_per_person=limit)
    return listed


def rows(data: Path, *, quick: bool = False) -> Iterator[dict[str, Any]]:
    """Yield the figures of each mechanism for each question; `auto` and `best` name what is compared."""
    tables = [
        (name, limit) for name in COUNTED + PAIRED for limit in (None, *LIMITS) if limit is None or name in PAIRED
    ]
    if quick:
        tables = [(name, limit) for name, limit in tables if name in QUICK]
    for name, _ in tables:
        Data(data).file_of(name)
    with ProcessPoolExecutor() as pool:
        for done in as_completed(pool.submit(answers, data, name, limit) for name, limit in tables):
            yield from done.result()


def answers(data: Path, name: str, limit: int | None) -> list[dict[str, Any]]:
    """Return the rows of one table."""
    files = Data(data)
    counts = files.counts(name) if limit is None else files.bounded_counts(name, limit)
    people = files.people(name) if name in PAIRED else int(counts[0])
    scores = as_histogram(counts)

    @cache
    def figures(mechanism: dps.Mechanism, ordered: bool) -> dict[str, float]:
        outlook = dps.forecast.forecast(scores, mechanism, draws=DRAWS, tolerance=TOLERANCE, ordered=ordered)
        found = {"exact": outlook.exact, "F1": outlook.f1, "score ratio": outlook.score_ratio}
        return {title: figure.value for title, figure in found.items() if figure is not None}

    found = []
    for k, epsilon, delta, ordered in product(LENGTHS, EPSILONS, (0.0, 0.5 / people), (False, True)):
        question = Question(k, epsilon, delta, limit, ordered)
        chosen = {aim: _automatic(question, aim) for aim in ("most", "exact")}
        listed = {label: (mechanism, figures(mechanism, ordered)) for label, mechanism in mechanisms(question).items()}
        best = max(figure["F1"] for _, figure in listed.values())
        found += [
            {
                "data": name,
                "class": question.group,
                **question._asdict(),
                "mechanism": label,
                **figure,
                "F1 regret": best - figure["F1"],
                **{f"auto, {aim}": mechanism == chosen[aim] for aim in chosen},
            }
            for label, (mechanism, figure) in listed.items()
        ]
    return found


def _automatic(question: Question, aim: str) -> dps.Mechanism:
    """Return what "auto" chooses."""
    k, epsilon, delta, limit, ordered = question
    return mechanism_for(
        "auto", k=k, epsilon=epsilon, delta=delta, ordered=ordered, aim=aim, max_items_per_person=limit
    )


def summary(rows: list[dict[str, Any]]) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Yield the tables to print: means by class and mechanism, and the regret of "auto" by class."""
    groups = sorted({row["class"] for row in rows})
    means, regrets = [], []
    for group in groups:
        inside = [row for row in rows if row["class"] == group]
        best: dict[Any, dict[str, Any]] = {}
        for row in inside:
            key = row["data"], row["k"], row["epsilon"]
            best[key] = max(best.get(key, row), row, key=lambda each: each["F1"])
        labelled = {f"auto, {aim}": [row for row in inside if row[f"auto, {aim}"]] for aim in ("most", "exact")}
        labelled["best in hindsight"] = list(best.values())
        for row in inside:
            labelled.setdefault(row["mechanism"], []).append(row)
        means += [_means(group, label, chosen) for label, chosen in labelled.items()]
        regrets.append(_regret(group, [row for row in inside if row["auto, most"]]))
    yield "mean P[exact], F1 and score ratio", means
    yield 'F1 that "auto" loses against the best mechanism in hindsight', regrets


def _means(group: str, label: str, rows: list[dict[str, Any]]) -> dict[str, Any]:
    figures = {name: fmean(row[name] for row in rows) for name in ("exact", "F1", "score ratio")}
    return {"class": group, "mechanism": label, "questions": len(rows), **figures}


def _regret(group: str, rows: list[dict[str, Any]]) -> dict[str, Any]:
    worst = max(rows, key=lambda row: row["F1 regret"])
    where = f"{worst['data']}, k = {worst['k']}, ε = {worst['epsilon']:g}: {worst['mechanism']}"
    return {
        "class": group,
        "mean": fmean(row["F1 regret"] for row in rows),
        "limit": LARGEST_REGRET.get(group, OTHER_REGRET),
        "worst": worst["F1 regret"],
        "where": where,
    }


SHOWN = {
    "canonical, a set (the default)": ("pure sets", "auto, most", look("canonical", default=True)),
    "oneshot, a set with a delta": ("with delta, sets", "auto, most", look("oneshot, delta")),
    "oneshot, a ranked list": ("pure sequences", "auto, most", look("oneshot")),
    'joint, a ranked list with aim="exact"': ("pure sequences", "auto, exact", look("joint")),
    "the usual Laplace noise, a set": ("pure sets", "oneshot, laplace", look("oneshot, laplace")),
}
SHOWN_LENGTH = 10
"""The lines of the picture, by class, choice and the look of the mechanism that "auto" takes; and its k."""


def figure(rows: list[dict[str, Any]]) -> Any:
    """Return the picture: how many of ten items are right, and how often all are, as means over the data sets."""
    figure, axes = panels(1, 2, width=4.6, height=3.0)
    titles = {"F1": "right items of 10, on average", "exact": "answers that are exactly right"}
    first = {}
    for place, (column, title) in zip(axes[0], titles.items(), strict=True):
        means = {}
        for label, (group, choice, style) in SHOWN.items():
            wanted = [row for row in rows if row["class"] == group and row["k"] == SHOWN_LENGTH]
            chosen = [row for row in wanted if row["mechanism"] == choice or row.get(choice) is True]
            means[label] = fmean(row[column] for row in chosen)
            heights = [
                fmean(row[column] for row in chosen if row["epsilon"] == epsilon) * (10 if column == "F1" else 100)
                for epsilon in EPSILONS
            ]
            line(place, EPSILONS, heights, style, label)
        first[column] = max(means, key=means.__getitem__)
        place.set_title(title, fontsize=9)
        place.set_ylim(0, 10.3 if column == "F1" else 103)
        place.set_xlabel("epsilon", fontsize=8)
        log_axis(place)
    axes[0][1].yaxis.set_major_formatter("{x:.0f} %")
    label_ends(axes[0][1])
    set_title(figure, f"Exactly right most often: {first['exact']}. Most items right: {first['F1']}")
    return figure
