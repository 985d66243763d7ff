"""Comparisons in ball arithmetic: what is certain is decided, and what may still change is not."""

from __future__ import annotations

from fractions import Fraction
from itertools import permutations

import flint
import pytest

from dpselect.sampling import NOISES, SeededBits
from dpselect.sampling.balls import Draw, Entrant, rational, sort_exactly
from dpselect.sampling.balls import _overlapping as overlapping


def bounded(key: str, low: float, high: float) -> Entrant:
    return Entrant(key, rational(0), [], [], NOISES["gumbel"], low=flint.arb(low), high=flint.arb(high))


@pytest.mark.parametrize(
    ("bounds", "clusters"),
    [
        ([(0, 10), (7, 9), (1, 6)], [["a", "b", "c"]]),
        ([(8, 10), (7, 9), (1, 6)], [["a", "b"], ["c"]]),
        ([(8, 10), (5, 7), (1, 6)], [["a"], ["b", "c"]]),
        ([(8, 10), (6, 8)], [["a", "b"]]),
    ],
    ids=["inside a wide one", "the last apart", "the first apart", "touching"],
)
def test_values_are_split_only_where_all_before_lie_above_all_after(
    bounds: list[tuple[float, float]], clusters: list[list[str]]
) -> None:
    """The third value lies below the second, which lies inside the first: the first may still be below the third."""
    ranked = [bounded(key, *pair) for key, pair in zip("abc", bounds, strict=False)]
    assert [[entrant.key for entrant in cluster] for cluster in overlapping(ranked)] == clusters


def test_further_bits_are_drawn_until_equal_words_part() -> None:
    """Three noises with the same first bits end up in every order."""
    orders = set()
    for seed in range(60):
        entrants = [Entrant(key, rational(Fraction(0)), [Draw(5, 3)], [rational(1)], NOISES["gumbel"]) for key in "abc"]
        orders.add(tuple(entrant.key for entrant in sort_exactly(entrants, SeededBits(seed), 4)))
    assert orders == set(permutations("abc"))
