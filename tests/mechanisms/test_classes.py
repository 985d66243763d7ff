"""Levels of loss and the steps of rows are those of the definition, and a window of them is part of the whole."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest

import dpselect as dps
from dpselect.mechanisms.classes import LevelSteps
from dpselect.scores import Ranking


@pytest.mark.parametrize(
    "scores",
    [
        [9, 7, 4, 4, 1, 0],
        [3, 3, 3, 3, 3],
        [1.5, 0.25, 0.75, -1.0, 3.0],
        [Fraction(1, 3), Fraction(1, 7), Fraction(5, 3), Fraction(1, 3)],
        [10**12, 5, 3, 10**12 - 1],
    ],
    ids=["uneven", "equal", "floats", "fractions", "far apart"],
)
def test_every_sequence_is_at_its_level(scores: list[float]) -> None:
    top = sorted(scores, reverse=True)
    for k in (1, 2, 3):
        steps = LevelSteps.of(k, Ranking.of(dps.Scores.of(scores).distinct))
        losses = [max(top[row] - score for row, score in enumerate(sequence)) for sequence in permutations(scores, k)]
        distinct = sorted(set(losses))
        assert steps.losses.tolist() == distinct
        assert np.exp(steps.log_sizes) == pytest.approx([losses.count(loss) for loss in distinct], rel=1e-12)
        assert np.exp(steps.log_within) == pytest.approx(np.cumsum(np.exp(steps.log_sizes)), rel=1e-12)


def test_a_window_is_part_of_the_whole() -> None:
    ranking = Ranking.of(dps.Scores.of([40, 33, 33, 21, 20, 13, 8, 8, 8, 5, 2, 1, 0]).distinct)
    whole, window = LevelSteps.of(4, ranking), LevelSteps.of(4, ranking, 7, 25)
    inside = (whole.losses > 7) & (whole.losses <= 25)
    assert window.losses.tolist() == [0, *whole.losses[inside].tolist()]
    assert window.log_within[1:] == pytest.approx(whole.log_within[inside], rel=1e-13)
    assert window.log_sizes[1:] == pytest.approx(whole.log_sizes[inside], rel=1e-12)
    assert window.log_sizes[0] == pytest.approx(math.log(2), rel=1e-15)


def test_sparse_losses_are_numbered_like_dense_ones() -> None:
    """Whole numbers far apart are sorted, near ones looked up in a table; the steps are the same."""
    scores = np.array([30, 27, 20, 20, 11, 4, 4, 0])
    near, far = (LevelSteps.of(3, Ranking.of(dps.Scores.of(scores * scale).distinct)) for scale in (1, 10**9))
    assert (near.losses * 10**9).tolist() == far.losses.tolist()
    assert near.levels.tolist() == far.levels.tolist()
