"""Domains list every score vector and every neighbour, and nothing else."""

from __future__ import annotations

import pytest

from dpselect.errors import InvalidInput
from dpselect.privacy import COUNTS, Sensitivity
from dpselect.verify import Domain, neighbours


def test_counts_move_up_by_zero_or_one() -> None:
    pairs = list(neighbours(Domain(2, 1, COUNTS)))
    assert len(pairs) == 4 * 4
    assert set(pairs) == {
        ((a, b), (a + up_a, b + up_b)) for a in (0, 1) for b in (0, 1) for up_a in (0, 1) for up_b in (0, 1)
    }


def test_scores_that_move_both_ways_leave_the_box_on_both_sides() -> None:
    reached = {neighbour for _, neighbour in neighbours(Domain(1, 2, Sensitivity(-1, 1)))}
    assert reached == {(-1,), (0,), (1,), (2,), (3,)}


def test_the_grid_may_be_finer_than_whole_scores() -> None:
    domain = Domain(1, 1, COUNTS, step=0.5)
    assert domain.score_vectors() == [(0,), (0.5,), (1,)]
    assert domain.moves() == [(0,), (0.5,), (1,)]
    assert str(domain) == "{0..1 by 0.5}^1"


def test_a_step_that_misses_the_sensitivity_is_refused() -> None:
    with pytest.raises(InvalidInput, match="step"):
        Domain(2, 3, COUNTS, step=0.75)


@pytest.mark.parametrize("size", [0, -1, 1.5])
def test_a_domain_needs_items(size: object) -> None:
    with pytest.raises(InvalidInput, match="size"):
        Domain(size)  # type: ignore[arg-type]
