"""Statistical checks that a sampler draws from the law it states."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any

import numpy as np

from dpselect._numbers import positive_integer
from dpselect.scores import Scores
from dpselect.verify.privacy import Subject

THRESHOLD = 1e-7
"""The smallest p-value that passes. Cells are pooled to SMALLEST_CELL expected draws, where the χ²
approximation is good to a small factor, so a sound sampler fails with a chance of at most 1e-6."""

SMALLEST_CELL = 25.0
MEMBER_BINS = 8


@dataclass(frozen=True)
class SamplerCheck:
    """What a statistical check of a sampler found: the p-value of its draws under the law it states."""

    mechanism: Subject
    items: int
    compared: str
    draws: int
    cells: int
    p_value: float

    @property
    def passed(self) -> bool:
        """Whether the draws are compatible with the law."""
        return self.p_value >= THRESHOLD


def check_sampler(mechanism: Subject, scores: Any, *, draws: int = 4000, seed: int = 0) -> SamplerCheck:
    """Compare what `mechanism.select` draws with `mechanism.law`.

    The order in which a set is returned must tell nothing: each of the k! orders of a set y has probability
    P(y) / k!, and this joint law of set and order is what is tested.
    """
    cells: dict[Hashable, float] = {}
    for outcome, probability in mechanism.law(scores).items():
        orders = [outcome] if mechanism.ordered else list(permutations(outcome))
        cells.update((order, probability / len(orders)) for order in orders)
    counts = Counter(
        tuple(int(position) for position in positions) for positions in _selections(mechanism, scores, draws, seed)
    )
    return _judged(mechanism, Scores.of(scores).size, "items and order", counts, cells)


def check_groups(
    mechanism: Subject,
    values: Sequence[float],
    multiplicities: Sequence[int],
    law: Mapping[tuple[int, ...], float],
    *,
    draws: int = 4000,
    seed: int = 0,
) -> SamplerCheck:
    """Compare how many items `mechanism.select` draws from each group of ties with a law of such counts.

    Groups, by descending value, may be larger than memory, where `mechanism.law` cannot list the items. One
    chosen item per draw, picked at random, must lie anywhere in its group with equal chance: counts per
    group, group of that item and place in the group are tested jointly.
    """
    bins = [min(MEMBER_BINS, size) for size in multiplicities]
    cells: dict[Hashable, float] = {}
    for chosen, probability in law.items():
        for group, size in enumerate(multiplicities):
            # Bin b holds the members from ceil(b m / bins) on.
            starts = [-(-place * size // bins[group]) for place in range(bins[group] + 1)]
            for place in range(bins[group]):
                share = (starts[place + 1] - starts[place]) / size
                cells[chosen, group, place] = probability * chosen[group] / mechanism.k * share
    ends = [sum(multiplicities[: group + 1]) for group in range(len(multiplicities))]
    picks = np.random.default_rng(seed).integers(mechanism.k, size=draws)
    counts: Counter[Hashable] = Counter()
    scores = Scores.from_histogram(values, multiplicities)
    for positions, pick in zip(_selections(mechanism, scores, draws, seed), picks, strict=True):
        groups = [next(group for group, end in enumerate(ends) if position < end) for position in positions]
        group, size = groups[pick], multiplicities[groups[pick]]
        index = int(positions[pick]) - (ends[group] - size)
        chosen = tuple(groups.count(each) for each in range(len(ends)))
        counts[chosen, group, index * bins[group] // size] += 1
    return _judged(mechanism, scores.size, "groups and members", counts, cells)


def _selections(mechanism: Subject, scores: Any, draws: int, seed: int) -> Iterator[Any]:
    # Scores are prepared once: preparing them takes longer than a draw.
    prepared = Scores.of(scores)
    seeds = np.random.SeedSequence(seed).generate_state(positive_integer("draws", draws), np.uint64)
    return (mechanism.select(prepared, seed=int(each)) for each in seeds)


def _judged(
    mechanism: Subject, items: int, compared: str, counts: Counter[Any], cells: Mapping[Hashable, float]
) -> SamplerCheck:
    """Compare counts with cell probabilities by Pearson's χ², `Σ (observed − expected)² / expected`."""
    from scipy.special import chdtrc

    draws = counts.total()
    if any(not cells.get(outcome) for outcome in counts):
        # An impossible outcome is proof enough, and pooling it with rare ones would hide it.
        return SamplerCheck(mechanism, items, compared, draws, len(cells), 0.0)
    pools = _pooled([(draws * probability, counts[cell]) for cell, probability in cells.items() if probability])
    statistic = math.fsum((observed - expected) ** 2 / expected for expected, observed in pools)
    p_value = float(chdtrc(len(pools) - 1, statistic)) if len(pools) > 1 else 1.0
    return SamplerCheck(mechanism, items, compared, draws, len(pools), p_value)


def _pooled(pairs: list[tuple[float, int]]) -> list[tuple[float, int]]:
    """Merge the cells with the fewest expected draws until each pool expects at least SMALLEST_CELL.

    What was observed has no say in it: pooling by the data would make every law look right.
    """
    pools: list[tuple[float, int]] = []
    expected, observed = 0.0, 0
    for more_expected, more_observed in sorted(pairs, key=lambda pair: pair[0]):
        expected, observed = expected + more_expected, observed + more_observed
        if expected >= SMALLEST_CELL:
            pools.append((expected, observed))
            expected, observed = 0.0, 0
    if pools and expected:
        last_expected, last_observed = pools.pop()
        pools.append((last_expected + expected, last_observed + observed))
    return pools or [(expected, observed)]
