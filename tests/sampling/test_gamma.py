"""A gamma variable is enclosed by proven bounds, also far out in its tails."""

from __future__ import annotations

import numpy as np
import pytest

from dpselect.sampling import SeededBits
from dpselect.sampling.balls import working_precision
from dpselect.sampling.gamma import ACCURACY, GammaDraw


class FirstWord(SeededBits):
    """A seeded source whose first word is given."""

    def __init__(self, word: int) -> None:
        super().__init__(1)
        self._word: int | None = word

    def integers(self, count: int, width: int) -> np.ndarray:
        if self._word is None:
            return super().integers(count, width)
        word, self._word = self._word, None
        return np.array([word], dtype=np.uint64)


@pytest.mark.slow
@pytest.mark.parametrize("shape", [2, 3, 101, 10**6])
def test_the_enclosure_is_sharp_and_contains_the_quantile(shape: int) -> None:
    from scipy.stats import gamma

    for word in (0, 1, 1000, 2**30, 2**63, 2**64 - 1000, 2**64 - 1):
        drawn = GammaDraw(shape, FirstWord(word))
        with working_precision(800):
            assert drawn.ball(64).rel_accuracy_bits() >= ACCURACY
        if 1000 < word < 2**63 + 1:
            assert drawn.approximate == pytest.approx(gamma.isf(word / 2**64, shape), rel=1e-9)


def test_the_law_is_gamma() -> None:
    """Kolmogorov–Smirnov against the exact law; a wrong shape is rejected. Failure rate 1e-6."""
    from scipy.stats import gamma, kstest

    drawn = [GammaDraw(5, SeededBits(seed)).approximate for seed in range(400)]
    assert kstest(drawn, gamma(5).cdf).pvalue > 1e-6
    assert kstest(drawn, gamma(4).cdf).pvalue < 1e-6
