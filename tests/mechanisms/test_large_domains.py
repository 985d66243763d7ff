"""Positions beyond the machine's words stay whole, distinct and inside the domain."""

from __future__ import annotations

import pytest

import dpselect as dps

MECHANISMS = [
    dps.Canonical(k=4, epsilon=0.5),
    dps.Joint(k=4, epsilon=0.5),
    dps.OneShot(k=4, epsilon=0.5),
    dps.Peeling(k=4, epsilon=0.5),
    dps.Peeling(k=4, epsilon=0.5, noise="gumbel"),
    dps.Peeling(k=4, epsilon=0.5, noise="laplace"),
]


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda mechanism: f"{mechanism.name}-{mechanism.noise}")
def test_positions_are_distinct_whole_numbers(mechanism: dps.Mechanism) -> None:
    for size in (2**62, 2**63 - 1, 2**63, 2**64, 10**19, 2 * 10**19, 10**20):
        scores = dps.Scores.from_histogram([9, 5], [2, size])
        for seed in range(5):
            positions = mechanism.select(scores, seed=seed).tolist()
            assert all(type(position) is int and 0 <= position < size + 2 for position in positions)
            assert len(set(positions)) == 4


@pytest.mark.parametrize("epsilon", [1e-30, 1.0])
def test_scores_at_the_limits_of_words(epsilon: float) -> None:
    for scores in ([2**62 - 1, -(2**62 - 1), -(2**62 - 1)], [2**63 + 5, 0, 7, 2**63], [2**64, -(2**64), 2**63, 1]):
        for mechanism in (dps.Canonical(k=2, epsilon=epsilon), dps.Joint(k=2, epsilon=epsilon)):
            for seed in range(5):
                assert len(set(mechanism.select(scores, seed=seed).tolist())) == 2


def test_more_items_than_floats_can_count_are_refused() -> None:
    with pytest.raises(dps.InvalidInput, match="multiplicities"):
        dps.Scores.from_histogram([(1, 10**306)])
