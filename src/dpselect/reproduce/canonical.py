"""The canonical paper: how much less ε direct selection of subsets needs (Figures 1 to 10, Table 1)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

import dpselect as dps
from dpselect._arrays import Array
from dpselect.reproduce.canonical_plots import against_epsilon, against_exponent, noises
from dpselect.reproduce.canonical_verdicts import (
    SHARES,
    judge_exponents,
    judge_kinds,
    judge_netflix,
    judge_noises,
    judge_set,
)
from dpselect.reproduce.data import Data, zipf
from dpselect.reproduce.margin import margin
from dpselect.reproduce.study import Paper, Point, Row, Study
from dpselect.reproduce.subset_curves import KINDS, MECHANISMS, Answers, curve
from dpselect.reproduce.verdict import Check, Verdict, counted

LENGTHS = (10, 100, 1000)
NETFLIX = "netflix"
SETS = {name: f"dpbench/{name}" for name in ("PATENT", "SEARCHLOGS", "MEDCOST", "INCOME", "HEPTH")}
"""The sets of Figures 6 to 10."""

EXPONENT, ITEMS = 0.04, 10_000
NOISES = ("exponential", "gumbel", "laplace", "logistic", "half-logistic")
JUMP, QUICK_JUMP = 0.12, 0.5
"""By how much a chance may grow from one point of a curve to the next."""

_ZIPF = "Zipf"


def _counts(point: Point, data: Data) -> Array:
    return (
        zipf(ITEMS, point["exponent"]) if point["data"] == _ZIPF else data.counts(point["data"], more_than=point["k"])
    )


def _compute(point: Point, data: Data) -> Iterator[Row]:
    """Yield a curve over ε, or the chances at one ε, of one mechanism for one k."""
    counts, name = _counts(point, data), point["mechanism"]
    mechanism = dps.OneShot(k=point["k"], epsilon=1.0, noise=name) if name in NOISES else MECHANISMS[name](point["k"])
    about: Row = {"data": point["data"], "k": point["k"], "mechanism": name}
    if "jump" in point:
        for row in curve(mechanism, counts, SHARES, point["jump"], point["kinds"]):
            yield about | row
    else:
        found = Answers(mechanism, counts, point["at"]).chances(point["at"])
        yield {**about, "exponent": point["exponent"], "at_epsilon": point["at"], **found}


def _curve_points(
    name: str,
    lengths: Callable[[bool], tuple[int, ...]],
    exponent: float = 0.0,
    kinds: Sequence[str] = tuple(KINDS),
) -> Callable[[bool], list[Point]]:
    """Return the points of a comparison on one data set: a curve for each mechanism and k."""

    def points(quick: bool) -> list[Point]:
        jump = QUICK_JUMP if quick else JUMP
        return [
            {"data": name, "exponent": exponent, "k": k, "mechanism": mechanism, "jump": jump, "kinds": list(kinds)}
            for k in lengths(quick)
            for mechanism in MECHANISMS
        ]

    return points


def _all_lengths(quick: bool) -> tuple[int, ...]:
    return LENGTHS


def _shorter(quick: bool) -> tuple[int, ...]:
    return LENGTHS[:2] if quick else LENGTHS


def _exponent_points(quick: bool) -> list[Point]:
    exponents = [0.01, 0.02, 0.04, 0.1, 0.4] if quick else [float(s) for s in np.geomspace(0.005, 1.0, 18).round(4)]
    return [
        {"data": _ZIPF, "exponent": exponent, "k": k, "mechanism": name, "at": 1.0}
        for k in _shorter(quick)
        for name in MECHANISMS
        for exponent in exponents
    ]


def _noise_points(quick: bool) -> list[Point]:
    jump = QUICK_JUMP if quick else JUMP
    return [
        {"data": NETFLIX, "k": k, "mechanism": noise, "jump": jump, "kinds": ["top"]}
        for k in (1, *_shorter(quick))
        for noise in NOISES
    ]


def _describe(point: Point, data: Data) -> Iterator[Row]:
    counts = data.counts(point["data"], more_than=0)
    gaps = {f"gap_behind_{k}": int(counts[k - 1] - counts[k]) for k in LENGTHS if k < len(counts)}
    yield {
        "data": point["data"],
        "stated_items": point["items"],
        "items": len(counts),
        "total": int(counts.sum()),
        "largest": int(counts[0]),
        "distinct_counts": len(np.unique(counts)),
        **gaps,
    }


def _judge_sets(rows: list[Row]) -> Verdict:
    said = "; ".join(
        f"{row['data']} {row['items']:,} items, largest count {row['largest']:,}, {row['distinct_counts']:,} distinct "
        "counts"
        for row in rows
    )
    checks = [Check("number of items of", row["data"], row["items"] == row["stated_items"]) for row in rows]
    return counted(checks, f"Sets at hand: {said}.")


def _kinds(
    number: int,
    title: str,
    claim: str,
    name: str,
    lengths: Callable[[bool], tuple[int, ...]],
    judge: Callable[[list[Row]], Verdict],
    kept_as: str = "",
) -> Study:
    """Return a study of top, great and good answers on one set."""
    return Study(
        name=f"figure-{number}",
        title=f"top, great and good answers on {title}",
        claim=claim,
        data=(name,),
        points=_curve_points(name, lengths),
        compute=_compute,
        judge=judge,
        draw=against_epsilon(("top", "great", "good")),
        kept_as=kept_as,
    )


def _another_set(number: int, title: str, name: str) -> Study:
    """Return one of Figures 6 to 10."""
    claim = "As on Netflix: both forms of Canonical need less epsilon than the mechanisms that divide it by k."
    return _kinds(number, title, claim, name, _shorter, judge_set)


PAPER = Paper(
    "canonical",
    "Canonical Lipschitz mechanism",
    [
        Study(
            name="figure-1",
            title="exactly the top k of Netflix",
            claim="Both forms of Canonical return the exact top 1000 almost certainly with an epsilon of at most 1. "
            "Mechanisms that divide their budget need 6 times as much at k = 10, 34 times at k = 100 and up to 81 "
            "times at k = 1000.",
            data=(NETFLIX,),
            points=_curve_points(NETFLIX, _all_lengths),
            compute=_compute,
            judge=judge_netflix,
            draw=against_epsilon(("top",)),
            kept_as="netflix",
        ),
        Study(
            name="figure-2",
            title="Zipf's law with varying exponent at epsilon = 1",
            claim="Both forms of Canonical are more likely to be exact at k = 100 and 1000 than the mechanisms that "
            "divide epsilon by k, and, with a smaller lead, to be good.",
            data=(),
            points=_exponent_points,
            compute=_compute,
            judge=judge_exponents,
            draw=against_exponent,
        ),
        Study(
            name="figure-3",
            title="Zipf's law with exponent 0.04 and varying epsilon",
            claim="Where all are nearly certain at epsilon = 1 (k = 10), the lead of both forms of Canonical shows at "
            "smaller values.",
            data=(),
            points=_curve_points(_ZIPF, _shorter, EXPONENT, ("top", "good")),
            compute=_compute,
            judge=lambda rows: judge_set(rows, ("top", "good")),
            draw=against_epsilon(("top", "good")),
        ),
        Study(
            name="figure-4",
            title="five noises in one shot on Netflix",
            claim="All noises do about equally well, exponential noise best of all.",
            data=(NETFLIX,),
            points=_noise_points,
            compute=_compute,
            judge=judge_noises,
            draw=noises,
        ),
        _kinds(
            5,
            "Netflix",
            "Both forms of Canonical need less epsilon than the others for great and good answers too.",
            NETFLIX,
            _all_lengths,
            judge_kinds,
            "netflix",
        ),
        *(_another_set(number, title, name) for number, (title, name) in enumerate(SETS.items(), start=6)),
        Study(
            name="table-1",
            title="the data sets",
            claim="Netflix has 17,770 items, the five other sets have 4,096 each.",
            data=(NETFLIX, *SETS.values()),
            points=lambda quick: [
                {"data": name, "items": 17_770 if name == NETFLIX else 4096} for name in (NETFLIX, *SETS.values())
            ],
            compute=_describe,
            judge=_judge_sets,
        ),
        margin(),
    ],
)
