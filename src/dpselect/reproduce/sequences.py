"""How far chosen sequences are from the true one, in seeded draws (joint, Definition 2.2)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import dpselect as dps
from dpselect._arrays import Array
from dpselect.reproduce.data import Data, look_alike
from dpselect.reproduce.study import Point, Row, seed_of
from dpselect.sampling import bit_source

EPSILON, DELTA = 1.0, 1e-6

REAL = {"Books": "books_goodreads", "Games": "games_steam"}
"""The paper's sets that are at hand."""

GENERATED: dict[str, tuple[int, float, float, float, float]] = {
    "Foods": (166_000, 10_000, 50, 1.2, 0),
    "Movies": (62_000, 81_000, 400, 2.0, 0),
    "News": (40_000, 843_000, 2, 0.65, 2),
    "Tweets": (52_000, 3_500_000, 5, 0.6, 3),
}
"""Look-alikes of the others: size, highest count, bend, steepness, droop. Sizes are the paper's, shapes ours."""

LONGEST = 200
"""The largest k, and how many gaps are shown."""

SETS = ("Books", "Foods", "Games", "Movies", "News", "Tweets")


def concentrated_round(k: int) -> float:
    """Return what each of k rounds costs in CDP-PEEL: the ε' of `ε = k ε'²/8 + 2 ε' √(k ln(1/δ)/8)`, or ε/k if larger.

    Joint, section 4.1; tighter calibrations exist, but these are the paper's.
    """
    reach = 8 * math.log(1 / DELTA)
    return max(EPSILON / k, (math.sqrt(reach + 8 * EPSILON) - math.sqrt(reach)) / math.sqrt(k))


MECHANISMS: dict[str, Callable[[int], dps.Mechanism]] = {
    "Joint": lambda k: dps.Joint(k=k, epsilon=EPSILON, noise="gumbel"),
    "Joint, exponential noise": lambda k: dps.Joint(k=k, epsilon=EPSILON),
    "PNF-PEEL": lambda k: dps.Peeling(k=k, epsilon=EPSILON),
    "CDP-PEEL": lambda k: dps.Peeling(k=k, epsilon=k * concentrated_round(k), noise="gumbel"),
    "Gamma": lambda k: dps.Gamma(k=k, epsilon=EPSILON),
}
"""All 1-DP, CDP-PEEL (1, 1e-6)-DP. The first as published; the second is our default for sequences."""

LAPLACE = "Laplace"
"""The k largest counts after Laplace noise of scale k/ε, in their noisy order, as in the code that the joint paper's
authors published; simulated in NumPy."""

CORE = ("Joint", "Joint, exponential noise", "PNF-PEEL", "CDP-PEEL")
ALL = (*MECHANISMS, LAPLACE)
METRICS = {"linf": "ℓ∞ error", "l1": "ℓ1 error", "k_relative": "k-relative error", "worst_rank": "rank of the ℓ∞ error"}


def counts_of(name: str, data: Data) -> Array:
    """Return the counts of one of the paper's six sets or its look-alike, highest first."""
    return data.counts(REAL[name], more_than=LONGEST) if name in REAL else look_alike(*GENERATED[name])


def lengths(quick: bool) -> list[int]:
    """Return the values of k: 5, 15, … 195, or four of them."""
    return [5, 35, 95, 195] if quick else list(range(5, 200, 10))


def error_points(sets: tuple[str, ...], mechanisms: tuple[str, ...]) -> Callable[[bool], list[Point]]:
    """Return the points of a study of errors: 50 draws each, 9 in a hurry."""
    return lambda quick: [
        {"data": name, "k": k, "mechanism": mechanism, "draws": 9 if quick else 50}
        for name in sets
        for mechanism in mechanisms
        for k in lengths(quick)
    ]


def gap_points(quick: bool) -> list[Point]:
    """Return one point a set: the gaps behind its first 200 ranks."""
    return [{"data": name, "gaps": LONGEST} for name in SETS]


def compute(point: Point, data: Data) -> Iterator[Row]:
    """Yield the quartiles of every error over the draws of a point, or the gaps of a set."""
    counts = counts_of(point["data"], data)
    if "gaps" in point:
        gaps = counts[: point["gaps"]] - counts[1 : point["gaps"] + 1]
        yield from ({"data": point["data"], "k": rank + 1, "gap": int(gap)} for rank, gap in enumerate(gaps))
        return
    k = point["k"]
    if point["mechanism"] == LAPLACE:
        chosen = laplace_draws(counts, k, point["draws"], seed_of(point))
    else:
        chosen = draws(MECHANISMS[point["mechanism"]](k), counts, point["draws"], seed_of(point))
    row = {"data": point["data"], "k": k, "mechanism": point["mechanism"], "draws": point["draws"]}
    for metric, values in errors(counts[:k], chosen).items():
        for name, share in (("low", 25), ("median", 50), ("high", 75)):
            row[f"{metric}_{name}"] = float(np.percentile(values, share))
    yield row


def draws(mechanism: dps.Mechanism, counts: Array, number: int, seed: int) -> Array:
    """Return the scores of the sequences that so many draws choose, one draw a row; seeded, as no release may be."""
    bits, scores = bit_source(seed), as_histogram(counts)
    return np.array([mechanism.draw(scores, bits).values for _ in range(number)])


def laplace_draws(counts: Array, k: int, number: int, seed: int) -> Array:
    """Return what `draws` does, for the Laplace baseline."""
    generator, chosen = np.random.default_rng(seed), []
    for _ in range(number):
        noisy = counts + generator.laplace(scale=k / EPSILON, size=len(counts))
        highest = np.argpartition(-noisy, k - 1)[:k]
        chosen.append(counts[highest[np.argsort(-noisy[highest])]])
    return np.array(chosen)


def as_histogram(counts: Array) -> dps.Scores:
    """Return counts as scores whose cost follows distinct values."""
    values, sizes = np.unique(counts, return_counts=True)
    return dps.Scores.from_histogram(list(zip(values.tolist(), sizes.tolist(), strict=True)))


def errors(true: Array, chosen: Array) -> dict[str, Any]:
    """Return every error of each draw.

    With c the true counts and s the chosen ones: ℓ∞ = max |c_i − s_i|, ℓ1 = Σ |c_i − s_i|,
    k-relative = max (c_k − s_i), and the rank i at which ℓ∞ is attained first, 0 where there is no error.
    """
    apart = np.abs(true - chosen)
    worst = apart.max(axis=1)
    return {
        "linf": worst,
        "l1": apart.sum(axis=1),
        "k_relative": (true[-1] - chosen).max(axis=1),
        "worst_rank": np.where(worst > 0, apart.argmax(axis=1) + 1, 0),
    }
