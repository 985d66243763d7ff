"""How much mechanisms for unknown domains return, in seeded draws (restricted, section 8)."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

import dpselect as dps
from dpselect._arrays import Array
from dpselect.forecast import f1_score, items_returned, score_ratio
from dpselect.reproduce.data import Data
from dpselect.reproduce.sequences import as_histogram
from dpselect.reproduce.study import Point, Row, seed_of
from dpselect.sampling import bit_source

SETS = ("epinions", "foursquare_lbsn_Jakarta", "games_steam")
"""Sets of pairs with a long tail, in place of Yelp, Foursquare and Gowalla."""

LENGTHS = (10, 50, 100)
POOLS = (1, 10, 50)
"""How many times k the pool is."""

MOST_ITEMS = 8
"""How many items a person has at most, where that is known (restricted, appendix E)."""

ADDED = {0: "no", 10**8: "100 million", 10**9: "1 billion", 10**10: "10 billion"}
"""How many items of count 1 are added to the domain (restricted, appendix D)."""

RG, LD, TS, RN, LL, EM = (
    "RestrictedGumbel",
    "LimitedDomain",
    "TopStable",
    "RestrictedNormal",
    "LimitedDomain, Laplace",
    "Exponential mechanism",
)
Maker = Callable[[int, float, float, int], dps.Mechanism]
MECHANISMS: dict[str, Maker] = {
    RG: lambda k, epsilon, delta, pool: dps.RestrictedGumbel(k=k, epsilon=epsilon, delta=delta, pool=pool),
    LD: lambda k, epsilon, delta, pool: dps.LimitedDomain(k=k, epsilon=epsilon, delta=delta, pool=pool),
    TS: lambda k, epsilon, delta, pool: dps.TopStable(k=k, epsilon=epsilon, delta=delta, pool=pool),
    RN: lambda k, epsilon, delta, pool: dps.RestrictedNormal(
        k=k, epsilon=epsilon, delta=delta, pool=pool, max_items_per_person=MOST_ITEMS
    ),
    LL: lambda k, epsilon, delta, pool: dps.LimitedDomain(
        k=k, epsilon=epsilon, delta=delta, pool=pool, noise="laplace", max_items_per_person=MOST_ITEMS
    ),
    EM: lambda k, epsilon, delta, pool: dps.Peeling(k=k, epsilon=epsilon, delta=delta, noise="gumbel"),
}
"""All (ε, 1/(2n))-DP for n people; how each divides that is the package's own rule, as tight as its proofs allow."""

KNOWN_BOUND = (RN, LL)
METRICS = {"returned": items_returned, "score_ratio": score_ratio, "f1": f1_score}


def epsilons(quick: bool) -> list[float]:
    """Return the totals: 0.01 to 1, or four of them."""
    return [0.1, 0.4, 0.7, 1.0] if quick else [0.01, 0.1, 0.25, 0.4, 0.55, 0.7, 0.85, 1.0]


def points(mechanisms: tuple[str, ...]) -> Callable[[bool], list[Point]]:
    """Return one point for each set, k, pool and mechanism: 100 draws at every ε, 8 in a hurry."""
    return lambda quick: [
        {"data": name, "k": k, "times": times, "mechanism": mechanism, "epsilons": epsilons(quick), **_effort(quick)}
        for name in SETS
        for k in LENGTHS
        for times in POOLS
        for mechanism in mechanisms
    ]


def domain_points(quick: bool) -> list[Point]:
    """Return the points of Figure 7: the largest set, and ever more items of count 1 that only EM has to look at."""
    added = [(RG, 0), *((EM, size) for size in ADDED)]
    return [
        {
            "data": SETS[0],
            "k": k,
            "times": 50,
            "mechanism": name,
            "added": size,
            "epsilons": epsilons(quick),
            **_effort(quick),
        }
        for k in LENGTHS
        for name, size in added
    ]


def _effort(quick: bool) -> dict[str, int]:
    return {"draws": 8 if quick else 100}


def compute(point: Point, data: Data) -> Iterator[Row]:
    """Yield for each ε the mean and deviation of every metric."""
    k, name, mechanism = point["k"], point["data"], point["mechanism"]
    counts = data.bounded_counts(name, MOST_ITEMS, k) if mechanism in KNOWN_BOUND else data.counts(name, more_than=k)
    scores = with_ones(counts, point.get("added", 0))
    delta, bits = 1 / (2 * data.people(name)), bit_source(seed_of(point))
    about: Row = {part: point[part] for part in ("data", "k", "times", "mechanism", "added", "draws") if part in point}
    for epsilon in point["epsilons"]:
        chooser = MECHANISMS[mechanism](k, epsilon, delta, k * point["times"])
        answers = [chooser.draw(scores, bits).values for _ in range(point["draws"])]
        row: Row = {**about, "delta": delta, "epsilon": epsilon}
        for metric, measure in METRICS.items():
            values = [measure(counts[:k], answer) for answer in answers]
            row |= {metric: float(np.mean(values)), f"{metric}_deviation": float(np.std(values))}
        yield row


def with_ones(counts: Array, added: int) -> dps.Scores:
    """Return scores with so many further items of count 1, which cost nothing as a histogram."""
    if not added:
        return as_histogram(counts)
    values, sizes = np.unique(np.append(counts, 1), return_counts=True)
    sizes[values == 1] += added - 1
    return dps.Scores.from_histogram(list(zip(values.tolist(), sizes.tolist(), strict=True)))
