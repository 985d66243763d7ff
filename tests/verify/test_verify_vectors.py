"""Signals of feature vectors and on a ring keep their promise over all neighbours, and their broken twins do not."""

from __future__ import annotations

import pytest

from dpselect.verify import check_privacy, check_sampler
from dpselect.verify.broken.vectors import EuclideanNoise, OneNoiseForAll, RowLeftOut, SwappedFeatures
from dpselect.verify.registry import reject
from dpselect.verify.vectors import PAIRS, SAMPLES

TWINS = [
    OneNoiseForAll(k=2, epsilon=1.0),
    EuclideanNoise(k=2, epsilon=1.0),
    SwappedFeatures(k=2, epsilon=4.0),
    RowLeftOut(k=1, epsilon=1.0),
]


@pytest.mark.parametrize("number", range(len(PAIRS)))
def test_signals_keep_their_promise(number: int) -> None:
    check = check_privacy(*PAIRS[number])
    assert check.passed, check
    assert check.neighbours > 400


@pytest.mark.parametrize("number", range(len(SAMPLES)))
def test_signals_follow_their_law(number: int) -> None:
    mechanism, values = SAMPLES[number]
    assert check_sampler(mechanism, values, draws=600).passed


@pytest.mark.parametrize("twin", TWINS, ids=lambda twin: twin.name)
def test_broken_twins_are_rejected_and_sound_ones_are_not(twin: object) -> None:
    rejection = reject(twin)  # type: ignore[arg-type]
    assert not rejection.of_broken.passed
    assert rejection.of_sound.passed
