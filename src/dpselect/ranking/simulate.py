"""Invented comparisons with a known truth: the model of Bradley, Terry and Luce."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dpselect._arrays import FloatArray, IntArray
from dpselect._numbers import positive_integer, positive_number, seed_or_none
from dpselect.errors import InvalidInput, plain


@dataclass(frozen=True, repr=False)
class Contests:
    """How often items 0..items−1 met: of pair p, `wins[p]` times first[p] won and `losses[p]` times second[p]."""

    items: int
    first: IntArray
    second: IntArray
    wins: IntArray
    losses: IntArray

    @property
    def size(self) -> int:
        """The number of comparisons."""
        return int(self.wins.sum() + self.losses.sum())

    def rows(self) -> IntArray:
        """Return a row (winner, loser) for each comparison, pair by pair."""
        winners = np.concatenate([self.first, self.second])
        losers = np.concatenate([self.second, self.first])
        return np.repeat(np.column_stack([winners, losers]), np.concatenate([self.wins, self.losses]), axis=0)

    def __repr__(self) -> str:
        """Show the sizes only."""
        return f"<{self.size} comparisons of {self.items} items>"


def ladder(items: int, *, ratio: float, k: int | None = None, gap: float = 1.0) -> FloatArray:
    """Return strengths whose logarithms fall evenly, so that the first item is `ratio` times as strong as the last.

    `ω_i = r^((d−1−i)/(d−1))` for i = 0..d−1, times g for the first k: a gap behind rank k.
    d: items, r: ratio, g: gap.
    """
    count = positive_integer("items", items)
    logarithms = np.linspace(np.log(positive_number("ratio", ratio)), 0.0, count)
    if k is not None:
        logarithms[: positive_integer("k", k)] += np.log(positive_number("gap", gap))
    return np.exp(logarithms)


def simulate(
    strengths: Any, *, comparisons_per_pair: int, share_of_pairs: float = 1.0, seed: int | None = None
) -> Contests:
    """Let items meet, each of strength ω; i wins against j with probability `ω_i / (ω_i + ω_j)`.

    Each pair is compared with probability `share_of_pairs`, and then `comparisons_per_pair` times, all independently
    (oneshot, section 3). The rows are invented: the generator is NumPy's, not the one that protects people.

    >>> from dpselect.ranking.simulate import ladder, simulate
    >>> simulate(ladder(5, ratio=4.0), comparisons_per_pair=3, seed=1)
    <30 comparisons of 5 items>
    """
    weights = _strengths(strengths)
    times = positive_integer("comparisons_per_pair", comparisons_per_pair)
    share = positive_number("share_of_pairs", share_of_pairs)
    if share > 1:
        raise InvalidInput("share_of_pairs", share_of_pairs, "a number above 0 and at most 1 is needed")
    generator = np.random.default_rng(seed_or_none(seed))
    first, second = _pairs(len(weights), share, generator)
    wins = generator.binomial(times, weights[first] / (weights[first] + weights[second])).astype(np.int64)
    return Contests(len(weights), first, second, wins, times - wins)


def _pairs(items: int, share: float, generator: np.random.Generator) -> tuple[IntArray, IntArray]:
    """Return the pairs that meet, smaller item first: each of the d(d−1)/2 with the same chance.

    Their number is drawn first, then so many places among all pairs, since most pairs of a large sparse graph never
    meet and need not be gone through.
    """
    every = items * (items - 1) // 2
    count = every if share == 1 else int(generator.binomial(every, share))
    places = (
        np.sort(generator.choice(every, count, replace=False, shuffle=False)) if count < every else np.arange(every)
    )
    # Place p of pair (i, j), i < j: the pairs of the items after i come last, (d−1−i)(d−2−i)/2 of them behind i's own.
    before = np.cumsum(np.arange(items - 1, 0, -1), dtype=np.int64)
    first = np.searchsorted(before, places, side="right").astype(np.int64)
    second = places - (before[first] - (items - 1 - first)) + first + 1
    return first, second.astype(np.int64)


def _strengths(given: Any) -> FloatArray:
    weights = np.asarray(given, dtype=np.float64)
    if weights.ndim != 1 or len(weights) < 2 or not (np.isfinite(weights) & (weights > 0)).all():
        raise InvalidInput("strengths", plain("something else"), "two or more positive numbers are needed")
    return weights
