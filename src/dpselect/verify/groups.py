"""Laws of how many items a mechanism takes from each group of ties, for groups of any size."""

from __future__ import annotations

from collections.abc import Sequence

from dpselect.mechanisms import Gaussian, OneShot, Peeling
from dpselect.sampling.laws import group_law
from dpselect.sampling.noise import NOISES, NORMAL

Counts = tuple[int, ...]


def oneshot_groups(mechanism: OneShot, values: Sequence[float], sizes: Sequence[int]) -> dict[Counts, float]:
    """Return the law for the k largest of one noisy vector."""
    rate = float(mechanism.rate(sum(sizes)))
    return group_law([rate * value for value in values], sizes, mechanism.k, NOISES[mechanism.noise])


def gaussian_groups(mechanism: Gaussian, values: Sequence[float], sizes: Sequence[int]) -> dict[Counts, float]:
    """Return the law for the k largest of scores with normal noise."""
    return group_law([value / mechanism.sigma for value in values], sizes, mechanism.k, NORMAL)


def peeling_groups(mechanism: Peeling, values: Sequence[float], sizes: Sequence[int]) -> dict[Counts, float]:
    """Return the law for k rounds, each of which takes one item from what is left."""
    rate = float(mechanism.rate())
    law: dict[Counts, float] = {tuple(0 for _ in sizes): 1.0}
    for _ in range(mechanism.k):
        after: dict[Counts, float] = {}
        for counts, probability in law.items():
            left = [size - count for size, count in zip(sizes, counts, strict=True)]
            held = [group for group, size in enumerate(left) if size]
            locations = [rate * values[group] for group in held]
            turn = group_law(locations, [left[group] for group in held], 1, NOISES[mechanism.noise])
            for winner, chance in turn.items():
                group = held[winner.index(1)]
                taken = tuple(count + (each == group) for each, count in enumerate(counts))
                after[taken] = after.get(taken, 0.0) + probability * chance
        law = after
    return law
