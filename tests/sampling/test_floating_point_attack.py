"""The classic attack on noise in floating point, and why it finds nothing here.

Adding float64 noise to a score leaves the score's mark in the low bits of the sum: some sums are reachable from one
data set and not from its neighbour (Mironov 2012). Here noisy values are compared and never returned.
"""

from __future__ import annotations

import inspect
import math
from fractions import Fraction

import numpy as np
import pytest

import dpselect.sampling as sampling
from dpselect.sampling import NOISES, Field, top_k
from dpselect.sampling.topk import Widths
from dpselect.verify.enumeration import count_exactly

GRID = [(numerator + 0.5) / 1024 for numerator in range(1024)]


def naive_noisy_maxima(scores):
    """Return every noisy maximum that float64 Laplace noise on a grid of 1024 uniforms can give."""
    noises = [math.copysign(math.log1p(-abs(2 * uniform - 1)), uniform - 0.5) for uniform in GRID]
    return {max(score + noise for score in scores) for noise in noises}


def test_the_attack_works_on_naive_noise():
    """Sums from neighbouring scores have next to no value in common: one look at the low bits tells them apart."""
    here, there = naive_noisy_maxima([0.0]), naive_noisy_maxima([1.0])
    assert len(here & there) < 0.05 * len(here)


@pytest.mark.slow
@pytest.mark.parametrize(
    "noise",
    [pytest.param(noise, marks=[] if name == "laplace" else [pytest.mark.long]) for name, noise in NOISES.items()],
    ids=NOISES,
)
def test_neighbours_reach_the_same_answers_with_nearly_the_same_weight(noise):
    """All answers of one neighbour are answers of the other, and no answer gains more than exp(ε)."""
    epsilon = Fraction(1)

    def answers(scores):
        field = Field(np.array(scores), epsilon, None, winners=1)
        return count_exactly(lambda bits: top_k(field, noise, bits, widths=Widths(word=2, step=1))[0], depth=14)

    here, rest_here = answers([1, 0])
    there, rest_there = answers([1, 1])
    assert here.keys() == there.keys() == {0, 1}
    for answer in here:
        assert here[answer] <= math.exp(1) * float(there[answer] + rest_there)
        assert there[answer] <= math.exp(1) * float(here[answer] + rest_here)


def test_only_integers_leave_the_layer():
    """All draws of the sampling layer are indexes and integers, never floats."""
    bits = sampling.SeededBits(5)
    field = Field(np.array([0.1, 0.2, 0.3]), Fraction(1), None, winners=2)
    drawn = {
        "categorical": sampling.categorical(np.array([0.1, 0.2]), bits),
        "rounded_top_k": sampling.rounded_top_k(field, NOISES["laplace"], Fraction(1, 4), bits),
        "shuffled": sampling.shuffled(5, bits),
        "top_k": top_k(field, NOISES["laplace"], bits),
        "uniform_integer": sampling.uniform_integer(10, bits),
        "uniform_sequence": sampling.uniform_sequence(10, 3, bits),
        "uniform_subset": sampling.uniform_subset(10, 3, bits),
    }
    functions = {name for name in sampling.__all__ if inspect.isfunction(getattr(sampling, name))} - {"bit_source"}
    assert functions == drawn.keys()
    for result in drawn.values():
        assert np.asarray(result).dtype.kind in "iu"
