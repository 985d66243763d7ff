"""Signals of feature vectors and on a ring keep their promise over all neighbours, and follow their law."""

from __future__ import annotations

import pytest

from dpselect.verify import check_privacy, check_sampler
from dpselect.verify.vectors import PAIRS, SAMPLES


@pytest.mark.parametrize("number", range(len(PAIRS)))
def test_signals_keep_their_promise(number: int) -> None:
    check = check_privacy(*PAIRS[number])
    assert check.passed, check
    assert check.neighbours > 400


@pytest.mark.parametrize("number", range(len(SAMPLES)))
def test_signals_follow_their_law(number: int) -> None:
    mechanism, values = SAMPLES[number]
    assert check_sampler(mechanism, values, draws=600).passed
