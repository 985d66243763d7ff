"""No item's share exceeds the bound, and one comparison moves π by no more than that allows; both are all but met."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import product

import numpy as np
import numpy.typing as npt
import pytest

from dpselect.ranking.share import largest_share

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]


def kept_losses(items: int, per_pair: int, max_degree: int) -> Iterator[IntArray]:
    """Every matrix of losses in which a pair has at most `per_pair` comparisons and a row at most D·L losses."""
    pairs = [(i, j) for i in range(items) for j in range(i)]
    outcomes = [(won, lost) for won in range(per_pair + 1) for lost in range(per_pair + 1 - won)]
    for chosen in product(outcomes, repeat=len(pairs)):
        losses = np.zeros((items, items), dtype=np.int64)
        for (i, j), (won, lost) in zip(pairs, chosen, strict=True):
            losses[i, j], losses[j, i] = won, lost
        if (losses.sum(axis=1) <= max_degree * per_pair).all():
            yield losses


def stationary(losses: IntArray, scale: int, damping: float) -> FloatArray:
    items = len(losses)
    matrix = losses / scale
    matrix += np.diag(1 - matrix.sum(axis=1))
    return np.linalg.solve(np.eye(items) - (1 - damping) * matrix.T, np.full(items, damping / items))


CASES = [(3, 2, 2), (3, 2, 1), (4, 1, 3), (4, 1, 2)]


@pytest.mark.parametrize(("items", "per_pair", "max_degree"), CASES)
@pytest.mark.parametrize("damping", [0.5, 0.625, 0.75, 0.875, 0.96875])
def test_no_share_exceeds_the_bound(items: int, per_pair: int, max_degree: int, damping: float) -> None:
    bound = float(largest_share(items=items, max_degree=max_degree, damping=Fraction(damping)))
    shares = [
        stationary(losses, max_degree * per_pair, damping).max() for losses in kept_losses(items, per_pair, max_degree)
    ]
    assert max(shares) <= bound + 1e-12
    if damping > 0.9:
        assert max(shares) > 0.9 * bound, "the bound is all but met, so that a smaller one would fail"


@pytest.mark.parametrize(("items", "per_pair", "max_degree"), CASES)
@pytest.mark.parametrize("damping", [0.5, 0.75, 0.96875])
def test_one_comparison_moves_no_difference_by_more_than_two_shares_allow(
    items: int, per_pair: int, max_degree: int, damping: float
) -> None:
    """One more loss of i to j; where the pair is full it takes the place of a loss of j to i."""
    share = largest_share(items=items, max_degree=max_degree, damping=Fraction(damping))
    scale = max_degree * per_pair
    bound = float(min(Fraction(1), 2 * share) * Fraction(2, scale)) * (1 - damping) / damping
    largest = 0.0
    for losses in kept_losses(items, per_pair, max_degree):
        before = stationary(losses, scale, damping)
        for i, j in product(range(items), repeat=2):
            after = losses.copy()
            after[i, j] += 1
            if i != j and after[i, j] + after[j, i] > per_pair and after[j, i]:
                after[j, i] -= 1
            fits = i != j and after[i, j] + after[j, i] <= per_pair and (after.sum(axis=1) <= scale).all()
            if fits:
                moved = stationary(after, scale, damping) - before
                largest = max(largest, moved.max() - moved.min())
    assert largest <= bound + 1e-12
    if damping > 0.9:
        assert largest > 0.8 * bound


def test_little_damping_bounds_nothing() -> None:
    assert largest_share(items=10, max_degree=9, damping=Fraction(1, 2)) == 1
    assert largest_share(items=2, max_degree=1, damping=Fraction(51, 100)) == 1
    assert largest_share(items=1000, max_degree=10, damping=Fraction(99, 100)) == 1
    assert largest_share(items=1000, max_degree=10, damping=Fraction(999, 1000)) < Fraction(12, 10_000)
