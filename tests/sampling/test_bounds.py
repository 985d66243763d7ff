"""64-bit words for which one float can serve as both bounds of a noise."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dpselect._arrays import BitArray
from dpselect.sampling import NOISES, Field, SeededBits, top_k
from dpselect.sampling.balls import Draw
from dpselect.sampling.bounds import (
    LEAST,
    MOST,
    exponential_bounds,
    exponential_ends,
    known_exponential,
    within_margin,
)
from dpselect.sampling.noise import NORMAL
from dpselect.sampling.topk import HOPELESS

ALL = [*NOISES.values(), NORMAL]
SLACK = Field(np.array([0]), Fraction(1), None, winners=1).slack


def words() -> BitArray:
    """Both ends of the margin, the middle, and words of every size."""
    generator = np.random.default_rng(3)
    sizes = generator.integers(0, 2**64, size=200, dtype=np.uint64) >> generator.integers(0, 27, 200).astype(np.uint64)
    ends = np.array([LEAST, LEAST + 1, 2**63 - 1, 2**63, 2**63 + 1, MOST - 1, MOST], dtype=np.uint64)
    return np.concatenate([sizes, np.uint64(0) - sizes[(sizes > 2**46)], ends])


@pytest.mark.parametrize("noise", ALL, ids=lambda noise: noise.name)
def test_one_number_serves_as_both_bounds_of_the_exact_noise(noise: Any) -> None:
    import flint

    known = words()
    known = known[(known >= LEAST) & (known <= MOST)]
    assert within_margin(known, 64)
    rough = noise.quantile(known_exponential(known))
    with flint.ctx.workprec(300):
        for word, value in zip(known.tolist(), rough.tolist(), strict=True):
            for upper in (False, True):
                exact = noise.ball_quantile(Draw(word, 64).exponential(upper=upper))
                assert abs(exact - flint.arb(value)) < SLACK / 2 * (1 + abs(exact))


@pytest.mark.parametrize("width", [1, 2, 64])
def test_the_bounds_of_one_draw_are_those_of_an_array(width: int) -> None:
    """Both are a few units in the last place from the exact number."""
    known = np.append(words() >> np.uint64(64 - width), np.array([0, 2**width - 1], dtype=np.uint64))
    one_by_one = np.array([exponential_ends(word, width) for word in known.tolist()]).T
    np.testing.assert_allclose(one_by_one, exponential_bounds(known, width), rtol=1e-14)


@pytest.mark.parametrize("noise", NOISES.values(), ids=lambda noise: noise.name)
def test_the_quantile_of_one_number_is_that_of_an_array(noise: Any) -> None:
    logs = np.array([-np.inf, -1e4, -40.5, -39.5, -3.0, 0.0, 1.0, 3.7, np.inf])
    one_by_one = [noise.log_quantile_at(log) for log in logs.tolist()]
    np.testing.assert_allclose(one_by_one, noise.log_quantile(logs), rtol=1e-14)


def test_the_check_notices_words_beyond_the_margin() -> None:
    """One number is not enough there: the bounds of a word near 0 lie farther apart than the slack."""
    for word in (2**20, 2**64 - 2**20):
        known = np.array([word], dtype=np.uint64)
        assert not within_margin(known, 64)
        low, high = (NOISES["laplace"].quantile(bound) for bound in reversed(exponential_bounds(known, 64)))
        assert high[0] - low[0] > SLACK
    assert not within_margin(np.array([LEAST], dtype=np.uint64), 63)
    assert not within_margin(np.array([], dtype=np.uint64), 64)


@pytest.mark.parametrize("noise", ALL, ids=lambda noise: noise.name)
def test_hopeless_entrants_lose_for_all_words(noise: Any) -> None:
    best, worst = (noise.quantile(known_exponential(np.array([word], dtype=np.uint64)))[0] for word in (LEAST, MOST))
    assert best - worst < 0.9 * -HOPELESS


class GivenBits(SeededBits):
    """The words given at first, then further ones."""

    def __init__(self, *words: int) -> None:
        super().__init__(0)
        self.words = np.array(words, dtype=np.uint64)

    def integers(self, count: int, width: int) -> BitArray:
        given, self.words = self.words, self.words[:0]
        return given if len(given) == count and width == 64 else super().integers(count, width)


def test_a_word_beyond_the_margin_can_win_from_far_behind() -> None:
    """Sixty bits of zero are a gumbel noise above 41, which makes up for 40; no rule may drop it beforehand."""
    field = Field(np.array([40, 0, -1000]), Fraction(1), None, winners=1)
    assert top_k(field, NOISES["gumbel"], GivenBits(2**63, 2**3, 2**63)).tolist() == [1]
    assert top_k(field, NOISES["gumbel"], GivenBits(2**63, 2**40, 2**63)).tolist() == [0]
