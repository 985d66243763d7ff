"""What is said about one answer, on answers that can be judged by hand."""

from __future__ import annotations

import numpy as np
import pytest

from dpselect.forecast import metrics

TOP = np.array([9, 7, 4, 4])


@pytest.mark.parametrize(
    ("chosen", "returned", "correct", "f1", "ratio"),
    [
        ([9, 7, 4, 4], 4, 4, 1.0, 1.0),
        ([4, 9, 4, 7], 4, 4, 1.0, 1.0),
        ([9, 4, 4, 4], 4, 3, 0.75, 21 / 24),
        ([9, 3, 2, 4], 4, 2, 0.5, 18 / 24),
        ([9, 7], 2, 2, 4 / 6, 16 / 24),
        ([], 0, 0, 0.0, 0.0),
        ([4, 4, 4], 3, 2, 4 / 7, 12 / 24),
    ],
)
def test_overlap_and_ratio(chosen: list[int], returned: int, correct: int, f1: float, ratio: float) -> None:
    answer = np.array(chosen, dtype=np.int64)
    assert metrics.items_returned(TOP, answer) == returned
    assert metrics.number_correct(TOP, answer) == correct
    assert metrics.f1_score(TOP, answer) == pytest.approx(f1)
    assert metrics.score_ratio(TOP, answer) == pytest.approx(ratio)


def test_a_top_without_any_score_is_always_reached() -> None:
    assert metrics.score_ratio(np.zeros(2), np.zeros(2)) == 1.0


def test_errors_of_the_joint_paper() -> None:
    chosen = np.array([7, 9, 4, 1])
    assert metrics.largest_error(TOP, chosen) == 3
    assert metrics.total_error(TOP, chosen) == 7
    assert metrics.relative_error(TOP, chosen) == 3
    assert metrics.relative_error(TOP, TOP) == 0
    paper = np.array([100, 90, 80, 70, 60])
    for answer, largest in (([100, 80, 70, 60, 90], 30), ([100, 80, 70, 60, 50], 10)):
        assert metrics.signed_error(paper, np.array(answer)) == 10
        assert metrics.largest_error(paper, np.array(answer)) == largest


def test_exact_great_and_good() -> None:
    assert metrics.is_exact(TOP, TOP)
    assert not metrics.is_exact(TOP, TOP[::-1])
    assert not metrics.is_exact(TOP, TOP[:3])
    assert metrics.is_within(TOP, np.array([4, 3, 9, 3]), held=1, lowest=3)
    assert not metrics.is_within(TOP, np.array([7, 4, 4, 3]), held=1, lowest=3)
    assert not metrics.is_within(TOP, np.array([9, 7, 4, 2]), held=1, lowest=3)
    assert metrics.great_ranks(100, 1000) == (10, 110)
    assert metrics.good_ranks(100, 1000) == (1, 150)
    assert metrics.great_ranks(5, 5) == (1, 5)
    assert metrics.good_ranks(5, 6) == (1, 6)
