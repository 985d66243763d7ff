"""Statistical checks (χ²) that a sampler draws from its stated law."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any

import numpy as np

from dpselect._numbers import positive_integer
from dpselect.mechanisms import Lipschitz, NoisyVector, OneShot, Peeling
from dpselect.sampling.laws import group_law
from dpselect.sampling.noise import NOISES
from dpselect.scores import Scores
from dpselect.verify.privacy import Subject

THRESHOLD = 1e-7
"""The smallest p-value that passes. Cells are pooled to SMALLEST_CELL expected draws, where the χ² approximation is
good to a small factor, so a sound sampler fails with probability at most 1e-6."""

SMALLEST_CELL = 25.0
MEMBER_BINS = 8

Counts = tuple[int, ...]
"""The number of items taken from each group of ties."""


@dataclass(frozen=True)
class SamplerCheck:
    """The result of a statistical check of a sampler.

    Parameters
    ----------
    mechanism
        What was checked.
    items
        The number of items.
    compared
        What was compared with the law.
    draws, cells
        The number of draws, and of cells of the χ² test.
    p_value
        The p-value of the draws under the stated law; below 1e-7 the check fails.

    Examples
    --------
    >>> from dpselect import OneShot
    >>> check_sampler(OneShot(k=1, epsilon=1.0), [1, 0, 0], draws=400).cells
    3
    """

    mechanism: Subject
    items: int
    compared: str
    draws: int
    cells: int
    p_value: float

    @property
    def passed(self) -> bool:
        """Whether the draws are consistent with the law."""
        return self.p_value >= THRESHOLD


def check_sampler(mechanism: Subject, scores: Any, *, draws: int = 4000, seed: int = 0) -> SamplerCheck:
    """Compare the draws of `mechanism.select` with `mechanism.law`.

    The order of a returned set must be independent of the scores: each of the k! orders of a set y has probability
    P(y) / k!. The joint law of set and order is tested.

    Parameters
    ----------
    mechanism
        The mechanism.
    scores
        The scores to draw for, few enough that the law lists every outcome.
    draws
        The number of draws.
    seed
        The seed of the draws.

    Returns
    -------
    SamplerCheck
        The p-value.

    Raises
    ------
    InvalidInput
        If `draws` is not a positive integer.

    Examples
    --------
    >>> from dpselect import OneShot
    >>> check_sampler(OneShot(k=1, epsilon=1.0), [2, 1, 0], draws=200).passed
    True
    """
    cells: dict[Hashable, float] = {}
    for outcome, probability in mechanism.law(scores).items():
        orders = [outcome] if mechanism.ordered else list(permutations(outcome))
        cells.update((order, probability / len(orders)) for order in orders)
    counts = Counter(
        tuple(each if isinstance(each, tuple) else int(each) for each in drawn)
        for drawn in _selections(mechanism, scores, draws, seed)
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
    """Compare the number of items drawn from each group of ties with the law of these numbers.

    Groups may be larger than memory, where `mechanism.law` cannot list the items. One chosen item per draw, picked at
    random, must be uniform in its group. The counts per group, the group of that item and its place in the group are
    tested jointly.

    Parameters
    ----------
    mechanism
        The mechanism.
    values, multiplicities
        The distinct scores in descending order, and how many items have each.
    law
        The probability of each tuple of counts per group.
    draws, seed
        The number of draws, and their seed.

    Returns
    -------
    SamplerCheck
        The p-value.

    Raises
    ------
    InvalidInput
        If `draws` is not a positive integer.

    Examples
    --------
    >>> from dpselect import OneShot
    >>> mechanism = OneShot(k=1, epsilon=1.0)
    >>> law = oneshot_groups(mechanism, [10, 0], [1, 10**12])
    >>> check_groups(mechanism, [10, 0], [1, 10**12], law, draws=50).passed
    True
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
    # Preparing scores takes longer than a draw.
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
        # An impossible outcome is a proof; pooling it with rare ones would hide it.
        return SamplerCheck(mechanism, items, compared, draws, len(cells), 0.0)
    pools = _pooled([(draws * probability, counts[cell]) for cell, probability in cells.items() if probability])
    statistic = math.fsum((observed - expected) ** 2 / expected for expected, observed in pools)
    p_value = float(chdtrc(len(pools) - 1, statistic)) if len(pools) > 1 else 1.0
    return SamplerCheck(mechanism, items, compared, draws, len(pools), p_value)


def _pooled(pairs: list[tuple[float, int]]) -> list[tuple[float, int]]:
    """Merge the cells with the fewest expected draws until each pool expects at least SMALLEST_CELL.

    Pooling must not depend on the observed counts, or every law would look right.
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


def oneshot_groups(mechanism: OneShot, values: Sequence[float], sizes: Sequence[int]) -> dict[Counts, float]:
    """Return the law of the counts per group for the k largest noisy scores."""
    rate = float(mechanism.rate(sum(sizes)))
    return group_law([rate * value for value in values], sizes, mechanism.k, NOISES[mechanism.noise])


def vector_groups(
    mechanism: NoisyVector | Lipschitz, values: Sequence[float], sizes: Sequence[int]
) -> dict[Counts, float]:
    """Return the law of the counts per group for the k largest scores with a noise that is an object."""
    rate = float(mechanism.rate())
    return group_law([rate * value for value in values], sizes, mechanism.k, mechanism.distribution)


def peeling_groups(mechanism: Peeling, values: Sequence[float], sizes: Sequence[int]) -> dict[Counts, float]:
    """Return the law of the counts per group for k rounds, each of which takes one item."""
    rate = float(mechanism.rate())
    law: dict[Counts, float] = {tuple(0 for _ in sizes): 1.0}
    for _ in range(mechanism.k):
        after: dict[Counts, float] = {}
        for counts, probability in law.items():
            left = [size - count for size, count in zip(sizes, counts, strict=True)]
            groups = [group for group, size in enumerate(left) if size]
            locations = [rate * values[group] for group in groups]
            winners = group_law(locations, [left[group] for group in groups], 1, NOISES[mechanism.noise])
            for winner, share in winners.items():
                group = groups[winner.index(1)]
                taken = tuple(count + (each == group) for each, count in enumerate(counts))
                after[taken] = after.get(taken, 0.0) + probability * share
        law = after
    return law
